/* gaussian: own + sigma N(0, I), drawn separately by every malicious agent in every round. */
#include "attack/attack.h"

typedef struct gaussian_params {
    double sigma;
} gaussian_params;

static const reef_field gaussian_fields[] = {
    {.name = "sigma",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(gaussian_params, sigma),
     .preset = "1",
     .min = 0,
     .max = 1e37,
     .unit = "",
     .help = "standard deviation of the noise"},
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const gaussian_params *p = params;
    for (ptrdiff_t r = 0; r < view->lanes; r++) {
        rfi_rng rng;
        rfi_attack_rng(view, r, view->sender, view->round, &rng);
        for (ptrdiff_t i = r; i < view->length; i += view->lanes) {
            out[i] = rfi_to_float((double)view->own[i] + p->sigma * rfi_rng_normal(&rng));
        }
    }
    return true;
}

const reef_attack_kind rfi_attack_gaussian = {
    .kind = {.name = "gaussian",
             .summary = "adds Gaussian noise, drawn anew in every round",
             .citation = "",
             .fields = gaussian_fields,
             .field_count = RFI_COUNT(gaussian_fields),
             .params_size = sizeof(gaussian_params)},
    .traits = REEF_ATTACK_LANES,
    .message = message,
};
