/* two_faced: own + delta to some receivers, own - delta to the others, to pull the honest agents apart. Who hears which is decided by even and
 * odd numbers, or by one coin toss per receiver and repetition. A row for all is own + delta. */
#include "attack/attack.h"

typedef struct two_faced_params {
    double delta;
    int split;
} two_faced_params;

enum { PARITY, RANDOM };
static const char *const splits[] = {"parity", "random", NULL};

static const reef_field two_faced_fields[] = {
    {.name = "delta",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(two_faced_params, delta),
     .preset = "1",
     .min = -1e38,
     .max = 1e38,
     .unit = "",
     .help = "what is added for some receivers and subtracted for others, in every coordinate"},
    {.name = "split",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(two_faced_params, split),
     .preset = "parity",
     .unit = "",
     .help = "receivers with even and odd numbers, or at random",
     .words = splits},
};

static double side(const two_faced_params *p, const reef_attack_view *view, ptrdiff_t lane)
{
    rfi_rng rng;
    if (view->receiver < 0) {
        return 1;
    }
    if (p->split == PARITY) {
        return view->receiver % 2 ? -1 : 1;
    }
    rfi_attack_rng(view, lane, view->receiver, 0, &rng);
    return rfi_rng_uniform(&rng) < 0.5 ? -1 : 1;
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const two_faced_params *p = params;
    for (ptrdiff_t r = 0; r < view->lanes; r++) {
        double delta = p->delta * side(p, view, r);
        for (ptrdiff_t i = r; i < view->length; i += view->lanes) {
            out[i] = rfi_to_float((double)view->own[i] + delta);
        }
    }
    return true;
}

const reef_attack_kind rfi_attack_two_faced = {
    .kind = {.name = "two_faced",
             .summary = "plus delta to some receivers, minus delta to the others",
             .citation = "",
             .fields = two_faced_fields,
             .field_count = RFI_COUNT(two_faced_fields),
             .params_size = sizeof(two_faced_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_EDGE,
    .message = message,
};
