/* All families in one table: the public side of the registry. */
#include "agg/driver.h"
#include "attack/attack.h"
#include "base/error.h"
#include "experiment/config/placement.h"
#include "graph/graph.h"
#include "learn/run.h"
#include "problem/dataset.h"
#include "problem/partition.h"
#include "problem/problem.h"

#include <string.h>

static const rfi_family *const families[] = {
    [REEF_FAMILY_RULE] = &rfi_family_rule,           [REEF_FAMILY_ATTACK] = &rfi_family_attack,
    [REEF_FAMILY_PROBLEM] = &rfi_family_problem,     [REEF_FAMILY_GRAPH] = &rfi_family_graph,
    [REEF_FAMILY_WEIGHTS] = &rfi_family_weights,     [REEF_FAMILY_LINKS] = &rfi_family_links,
    [REEF_FAMILY_STRATEGY] = &rfi_family_strategy,   [REEF_FAMILY_SOURCE] = &rfi_family_source,
    [REEF_FAMILY_PARTITION] = &rfi_family_partition, [REEF_FAMILY_PLACEMENT] = &rfi_family_placement,
};
_Static_assert(RFI_COUNT(families) == REEF_FAMILIES, "every family is in the table");

/* NULL: no such family, whatever number a caller made of it. */
static const rfi_family *family_of(reef_family number)
{
    return (unsigned)number < REEF_FAMILIES ? families[number] : NULL;
}

const char *reef_family_name(reef_family family)
{
    const rfi_family *found = family_of(family);
    return found ? found->name : NULL;
}

ptrdiff_t reef_kind_count(const reef_context *context, reef_family family)
{
    const rfi_family *found = family_of(family);
    return found ? rfi_kind_count(found, context) : 0;
}

const reef_kind *reef_kind_at(const reef_context *context, reef_family family, ptrdiff_t index)
{
    const rfi_family *found = family_of(family);
    return found ? rfi_kind_at(found, context, index) : NULL;
}

const reef_kind *reef_kind_find(const reef_context *context, reef_family family, const char *name)
{
    const rfi_family *found = family_of(family);
    return found && name ? rfi_kind_find(found, context, (rfi_slice){name, strlen(name)}) : NULL;
}

const reef_field *reef_kind_common(reef_family family, const reef_kind *kind, ptrdiff_t *count)
{
    const rfi_family *found = family_of(family);
    rfi_fields common = found && kind ? rfi_kind_common(found, kind) : (rfi_fields){"", NULL, 0};
    if (count) {
        *count = common.count;
    }
    return common.count > 0 ? common.fields : NULL;
}

reef_status reef_kind_register(reef_context *context, reef_family family, const reef_kind *kind, reef_error *error)
{
    const rfi_family *found = family_of(family);
    if (!found) {
        return rfi_fail(error, REEF_E_ARG, "unknown family %d", (int)family);
    }
    return rfi_kind_register(found, context, kind, error);
}
