/* meamed: mean around the median. At each coordinate the n - f values nearest to the median are averaged. */
#include "agg/rules/fast.h"
#include "agg/rules/rules.h"

typedef struct meamed_params {
    reef_malicious f;
} meamed_params;

static const reef_field meamed_fields[] = {
    RFI_FIELD_F(meamed_params, "max"),
};

static double meamed_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    (void)params;
    (void)effort;
    double median = rfi_column_median(column, false, RFI_MEDIAN_AVERAGE, NULL);
    return rfi_mean_nearest(column, median, column->n - column->f, share);
}

static ptrdiff_t meamed_span(const void *params, reef_span *span)
{
    (void)params;
    if (!rfi_span_weights(span)) {
        return -1;
    }
    rfi_span inner = rfi_span_of(span);
    rfi_kernel_report report = rfi_span_report(span);
    if (!span->equal) {
        return span->kernels->meamed_weighted(&inner, span->n - span->f, &report);
    }
    return span->kernels->meamed(&inner, span->n - span->f, &report);
}

const reef_rule rfi_agg_meamed = {
    .kind = {.name = "meamed",
             .summary = "mean of the n - f values nearest to the median, per coordinate",
             .citation = "Xie, Koyejo, Gupta, Generalized Byzantine-tolerant SGD (2018)",
             .fields = meamed_fields,
             .field_count = RFI_COUNT(meamed_fields),
             .params_size = sizeof(meamed_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE |
              REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .bound = rfi_bound_minority,
    .bound_text = RFI_BOUND_MINORITY_TEXT,
    .column = meamed_column,
    .span = meamed_span,
};
