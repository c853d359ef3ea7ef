/* tukey: M-estimate of location per coordinate with Tukey's biweight and a start and scale of the user's choice; ref is the
 * choice of the paper. Redescending: a start that is not robust (start=mean) can end at a wrong root. See mrule.c. */
#include "agg/rules/mrule.h"
#include "agg/rules/rules.h"

static reef_status tukey_prepare(void *params, reef_error *error)
{
    return rfi_mrule_prepare(RFI_TUKEY, params, error);
}

static double tukey_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    return rfi_mrule_column(RFI_TUKEY, params, column, share, effort);
}

static double tukey_efficiency(const void *params, double n)
{
    return rfi_mrule_efficiency(RFI_TUKEY, params, n);
}

static ptrdiff_t tukey_span(const void *params, reef_span *span)
{
    return rfi_mrule_span(RFI_TUKEY, params, span);
}

const reef_rule rfi_agg_tukey = {
    .kind = {.name = "tukey",
             .summary = "M-estimate with Tukey's biweight and a chosen start and scale",
             .citation = "Beaton, Tukey (1974); Maronna et al., Robust statistics (2019)",
             .fields = rfi_mrule_fields,
             .field_count = RFI_MRULE_FIELD_COUNT,
             .params_size = sizeof(rfi_mrule_params)},
    .traits = RFI_MRULE_TRAITS,
    .prepare = tukey_prepare,
    .traits_of = rfi_mrule_traits,
    .tune = rfi_mrule_tune,
    .efficiency = tukey_efficiency,
    .relative_floor = rfi_mrule_relative_floor,
    .scale = rfi_mrule_scale,
    .column = tukey_column,
    .span = tukey_span,
};
