/* few_coordinates: own + delta in `count` random coordinates, the same for all malicious agents; the rest is honest. Aimed at rules that
 * judge whole rows by their distance. */
#include "attack/attack.h"

typedef struct few_params {
    int64_t count;
    double delta;
    bool moving;
} few_params;

static const reef_field few_fields[] = {
    {.name = "count",
     .type = REEF_FIELD_INT,
     .offset = offsetof(few_params, count),
     .preset = "1",
     .min = 0,
     .max = 1e15,
     .unit = "coordinates",
     .help = "number of coordinates that are changed, at most all"},
    {.name = "delta",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(few_params, delta),
     .preset = "1000",
     .min = -1e38,
     .max = 1e38,
     .unit = "",
     .help = "what is added to each of them"},
    {.name = "moving",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(few_params, moving),
     .preset = "false",
     .unit = "",
     .help = "choose new coordinates in every round"},
};

/* Selection sampling (Fan, Muller, Rezucha 1962): every set of that size is equally likely, and no memory is needed. */
static void change_lane(const few_params *p, const reef_attack_view *view, ptrdiff_t r, float *out)
{
    rfi_rng rng;
    ptrdiff_t left = view->length / view->lanes;
    int64_t wanted = p->count < left ? p->count : left;
    rfi_attack_rng(view, r, 0, p->moving ? view->round : 0, &rng);
    for (ptrdiff_t i = r; wanted > 0; i += view->lanes, left--) {
        if (rfi_rng_uniform(&rng) * (double)left < (double)wanted) {
            out[i] = rfi_to_float((double)view->own[i] + p->delta);
            wanted--;
        }
    }
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    (void)rfi_attack_honest(view, out);
    for (ptrdiff_t r = 0; r < view->lanes; r++) {
        change_lane(params, view, r, out);
    }
    return true;
}

const reef_attack_kind rfi_attack_few_coordinates = {
    .kind = {.name = "few_coordinates",
             .summary = "adds delta to a few random coordinates, honest in all others",
             .citation = "",
             .fields = few_fields,
             .field_count = RFI_COUNT(few_fields),
             .params_size = sizeof(few_params)},
    .traits = REEF_ATTACK_LANES,
    .message = message,
};
