/* additive: own + delta d, the attack of the REF paper. d is all ones, or drawn from N(0, I) once for all malicious agents and rounds. */
#include "attack/attack.h"

typedef struct additive_params {
    double delta;
    int direction;
} additive_params;

enum { ONES, GAUSSIAN };
static const char *const directions[] = {"ones", "gaussian", NULL};

static const reef_field additive_fields[] = {
    {.name = "delta",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(additive_params, delta),
     .preset = "1000",
     .min = -1e38,
     .max = 1e38,
     .unit = "",
     .help = "what is added to every coordinate"},
    {.name = "direction",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(additive_params, direction),
     .preset = "ones",
     .unit = "",
     .help = "the same in every coordinate, or a fixed random direction of N(0, 1) entries times delta",
     .words = directions},
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const additive_params *p = params;
    if (p->direction == ONES) {
        for (ptrdiff_t i = 0; i < view->length; i++) {
            out[i] = rfi_to_float((double)view->own[i] + p->delta);
        }
        return true;
    }
    for (ptrdiff_t r = 0; r < view->lanes; r++) {
        rfi_rng rng;
        rfi_attack_rng(view, r, 0, 0, &rng);
        for (ptrdiff_t i = r; i < view->length; i += view->lanes) {
            out[i] = rfi_to_float((double)view->own[i] + p->delta * rfi_rng_normal(&rng));
        }
    }
    return true;
}

const reef_attack_kind rfi_attack_additive = {
    .kind = {.name = "additive",
             .summary = "adds delta to every coordinate",
             .citation = "Vlaski, Schroth, Muma, Zoubir, Robust and efficient aggregation (EUSIPCO 2022)",
             .fields = additive_fields,
             .field_count = RFI_COUNT(additive_fields),
             .params_size = sizeof(additive_params)},
    .traits = REEF_ATTACK_LANES,
    .message = message,
};
