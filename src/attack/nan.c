/* nan: values that are not numbers, or barely: NaN, infinities, the three in turn, or the largest finite number; everywhere, or in one
 * random coordinate of an otherwise honest row. */
#include "attack/attack.h"

#include <math.h>

typedef struct nan_params {
    int value;
    int where;
} nan_params;

enum { VALUE_NAN, VALUE_INF, VALUE_MINUS_INF, VALUE_MIXED, VALUE_HUGE };
enum { WHERE_ALL, WHERE_ONE };
static const char *const values[] = {"nan", "inf", "-inf", "mixed", "huge", NULL};
static const char *const wheres[] = {"all", "one", NULL};

static const reef_field nan_fields[] = {
    {.name = "value",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(nan_params, value),
     .preset = "nan",
     .unit = "",
     .help = "NaN, infinity, minus infinity, the three in turn, or the largest finite float",
     .words = values},
    {.name = "where",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(nan_params, where),
     .preset = "all",
     .unit = "",
     .help = "in all coordinates, or in one that is drawn anew in every round",
     .words = wheres},
};

/* The value for coordinate m. */
static float bad_value(int value, ptrdiff_t m)
{
    static const float bad[] = {
        [VALUE_NAN] = NAN, [VALUE_INF] = INFINITY, [VALUE_MINUS_INF] = -INFINITY, [VALUE_HUGE] = FLT_MAX};
    return bad[value == VALUE_MIXED ? m % 3 : value];
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const nan_params *p = params;
    ptrdiff_t coordinates = view->length / view->lanes;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = p->where == WHERE_ALL ? bad_value(p->value, i / view->lanes) : view->own[i];
    }
    for (ptrdiff_t r = 0; r < view->lanes && p->where == WHERE_ONE && coordinates > 0; r++) {
        rfi_rng rng;
        rfi_attack_rng(view, r, view->sender, view->round, &rng);
        ptrdiff_t m = (ptrdiff_t)(rfi_rng_uniform(&rng) * (double)coordinates);
        out[m * view->lanes + r] = bad_value(p->value, m);
    }
    return true;
}

static unsigned traits_of(const void *params)
{
    const nan_params *p = params;
    return REEF_ATTACK_LANES | (p->where == WHERE_ALL ? REEF_ATTACK_SAME : 0);
}

const reef_attack_kind rfi_attack_nan = {
    .kind = {.name = "nan",
             .summary = "NaN, infinities or the largest finite numbers",
             .citation = "",
             .fields = nan_fields,
             .field_count = RFI_COUNT(nan_fields),
             .params_size = sizeof(nan_params)},
    .traits = REEF_ATTACK_LANES,
    .message = message,
    .traits_of = traits_of,
};
