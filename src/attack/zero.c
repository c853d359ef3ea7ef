/* zero: sends nothing new. reference=zero: the vector 0; reference=previous: its model of the previous round, as a free rider does. */
#include "attack/attack.h"

typedef struct zero_params {
    int reference;
} zero_params;

static const reef_field zero_fields[] = {
    RFI_FIELD_REFERENCE(zero_params, "zero"),
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const zero_params *p = params;
    const float *reference = rfi_reference_row(view, p->reference);
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = reference ? reference[i] : 0;
    }
    return true;
}

static unsigned traits_of(const void *params)
{
    const zero_params *p = params;
    return REEF_ATTACK_LANES | rfi_reference_trait(p->reference);
}

const reef_attack_kind rfi_attack_zero = {
    .kind = {.name = "zero",
             .summary = "sends zeros, or its model of the previous round",
             .citation = "",
             .fields = zero_fields,
             .field_count = RFI_COUNT(zero_fields),
             .params_size = sizeof(zero_params)},
    .traits = REEF_ATTACK_LANES,
    .message = message,
    .traits_of = traits_of,
};
