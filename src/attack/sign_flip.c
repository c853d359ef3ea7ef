/* sign_flip: the negative, scaled.
 *
 *   reference=zero       out = -scale own                                  (the model itself, as Li et al. do)
 *   reference=previous   out = previous - scale (own - previous)           (the update, as with gradients)
 */
#include "attack/attack.h"

typedef struct sign_flip_params {
    double scale;
    int reference;
} sign_flip_params;

static const reef_field sign_flip_fields[] = {
    {.name = "scale",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(sign_flip_params, scale),
     .preset = "1",
     .min = 0,
     .max = 1e38,
     .unit = "",
     .help = "factor applied to the flipped vector; the literature also uses 4 and 10"},
    RFI_FIELD_REFERENCE(sign_flip_params, "zero"),
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const sign_flip_params *p = params;
    const float *reference = rfi_reference_row(view, p->reference);
    for (ptrdiff_t i = 0; i < view->length; i++) {
        double origin = reference ? (double)reference[i] : 0;
        out[i] = rfi_to_float(origin - p->scale * ((double)view->own[i] - origin));
    }
    return true;
}

const reef_attack_kind rfi_attack_sign_flip = {
    .kind = {.name = "sign_flip",
             .summary = "the opposite of its model or of its update, scaled",
             .citation = "Li, Xu, Chen, Giannakis, Ling, RSA: Byzantine-robust stochastic aggregation methods (2019)",
             .fields = sign_flip_fields,
             .field_count = RFI_COUNT(sign_flip_fields),
             .params_size = sizeof(sign_flip_params)},
    .traits = REEF_ATTACK_LANES,
    .message = message,
};
