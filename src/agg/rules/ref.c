/* ref: the MM-estimate of the paper, per coordinate: median, normalised MAD, Tukey's biweight, iterated to convergence.
 *
 * As robust as the median (against any malicious minority), with 95 % of the efficiency of the mean. Efficiency is asymptotic
 * unless n=auto, which tunes c for the actual number of agents. See mrule.c for the estimator. */
#include "agg/rules/mrule.h"
#include "agg/rules/rules.h"

static reef_status ref_prepare(void *params, reef_error *error)
{
    return rfi_mrule_prepare(RFI_TUKEY, params, error);
}

static double ref_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    return rfi_mrule_column(RFI_TUKEY, params, column, share, effort);
}

static double ref_efficiency(const void *params, double n)
{
    return rfi_mrule_efficiency(RFI_TUKEY, params, n);
}

static ptrdiff_t ref_span(const void *params, reef_span *span)
{
    return rfi_mrule_span(RFI_TUKEY, params, span);
}

const reef_rule rfi_agg_ref = {
    .kind = {.name = "ref",
             .summary = "REF: MM-estimate per coordinate, as robust as the median and nearly as efficient as the mean",
             .citation = "Vlaski, Schroth, Muma, Zoubir, Robust and efficient aggregation (EUSIPCO 2022)",
             .fields = rfi_mrule_ref_fields,
             .field_count = RFI_MRULE_REF_FIELD_COUNT,
             .params_size = sizeof(rfi_mrule_params)},
    .traits = RFI_MRULE_TRAITS,
    .prepare = ref_prepare,
    .traits_of = rfi_mrule_traits,
    .tune = rfi_mrule_tune,
    .efficiency = ref_efficiency,
    .relative_floor = rfi_mrule_relative_floor,
    .scale = rfi_mrule_scale,
    .column = ref_column,
    .span = ref_span,
};
