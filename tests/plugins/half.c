/* Adds one kind and then one that is refused: nothing must be left of both. */
#include <reef/reef.h>

static double first(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    (void)params;
    (void)effort;
    for (ptrdiff_t i = 0; i < column->n; i++) {
        share[i] = i == 0;
    }
    return column->x[0];
}

static const reef_rule sound = {.kind = {.name = "first", .summary = "the first row", .citation = ""}, .column = first};
static const reef_rule unsound = {.kind = {.name = "nothing", .summary = "no entry", .citation = ""}};

REEF_PLUGIN(registry, error)
{
    reef_status status = registry->add(registry->context, REEF_FAMILY_RULE, &sound.kind, error);
    return status == REEF_OK ? registry->add(registry->context, REEF_FAMILY_RULE, &unsound.kind, error) : status;
}
