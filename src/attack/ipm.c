/* ipm: inner-product manipulation. The update points against the mean of the honest ones: r - epsilon (mu - r), where r is the
 * reference. Small epsilon hides among the honest rows, large ones reverse the mean once epsilon > h / f. */
#include "attack/attack.h"

typedef struct ipm_params {
    double epsilon;
    int reference;
} ipm_params;

static const reef_field ipm_fields[] = {
    {.name = "epsilon",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(ipm_params, epsilon),
     .preset = "0.5",
     .min = 0,
     .max = 1e38,
     .unit = "",
     .help = "length of the update against the mean, in units of the mean update"},
    RFI_FIELD_REFERENCE(ipm_params, "previous"),
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const ipm_params *p = params;
    const float *reference = rfi_reference_row(view, p->reference);
    double mean[RFI_ATTACK_BLOCK];
    for (ptrdiff_t from = 0; from < view->length; from += RFI_ATTACK_BLOCK) {
        ptrdiff_t count = rfi_block_count(view, from);
        rfi_attack_moments(view, from, count, mean, NULL);
        for (ptrdiff_t i = 0; i < count; i++) {
            double origin = reference ? (double)reference[from + i] : 0;
            out[from + i] = rfi_to_float(origin - p->epsilon * (mean[i] - origin));
        }
    }
    return true;
}

static unsigned traits_of(const void *params)
{
    const ipm_params *p = params;
    return REEF_ATTACK_LANES | REEF_ATTACK_ROWS | rfi_reference_trait(p->reference);
}

const reef_attack_kind rfi_attack_ipm = {
    .kind = {.name = "ipm",
             .summary = "an update opposite to the honest mean update",
             .citation = "Xie, Koyejo, Gupta, Fall of empires: breaking Byzantine-tolerant SGD by inner product "
                         "manipulation (2020)",
             .fields = ipm_fields,
             .field_count = RFI_COUNT(ipm_fields),
             .params_size = sizeof(ipm_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS,
    .message = message,
    .traits_of = traits_of,
};
