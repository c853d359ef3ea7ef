/* huber: M-estimate of location per coordinate with Huber's b(r) = min(1, k/|r|), k = 1.345 at 95 % efficiency. Monotone, so
 * the solution is unique; outliers are never rejected, but their influence is bounded. See mrule.c. */
#include "agg/rules/mrule.h"
#include "agg/rules/rules.h"

static reef_status huber_prepare(void *params, reef_error *error)
{
    return rfi_mrule_prepare(RFI_HUBER, params, error);
}

static double huber_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    return rfi_mrule_column(RFI_HUBER, params, column, share, effort);
}

static double huber_efficiency(const void *params, double n)
{
    return rfi_mrule_efficiency(RFI_HUBER, params, n);
}

static ptrdiff_t huber_span(const void *params, reef_span *span)
{
    return rfi_mrule_span(RFI_HUBER, params, span);
}

const reef_rule rfi_agg_huber = {
    .kind = {.name = "huber",
             .summary = "M-estimate with Huber's function: the influence of outliers is bounded",
             .citation = "Huber, Robust estimation of a location parameter (1964)",
             .fields = rfi_mrule_fields,
             .field_count = RFI_MRULE_FIELD_COUNT,
             .params_size = sizeof(rfi_mrule_params)},
    .traits = RFI_MRULE_TRAITS,
    .prepare = huber_prepare,
    .traits_of = rfi_mrule_traits,
    .tune = rfi_mrule_tune,
    .efficiency = huber_efficiency,
    .relative_floor = rfi_mrule_relative_floor,
    .scale = rfi_mrule_scale,
    .column = huber_column,
    .span = huber_span,
};
