/* mean: the weighted average. out = sum a_l x_l. The most efficient rule for Gaussian data; a single malicious row can move it anywhere. */
#include "agg/rules/fast.h"
#include "agg/rules/rules.h"

#include <string.h>

static double mean_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    (void)params;
    (void)effort;
    memcpy(share, column->a, (size_t)column->n * sizeof *share);
    return rfi_normalise_sum(column->x, share, column->n);
}

static ptrdiff_t mean_span(const void *params, reef_span *span)
{
    (void)params;
    return rfi_span_sum(span);
}

const reef_rule rfi_agg_mean = {
    .kind = {.name = "mean",
             .summary = "weighted average; efficient, but a single malicious input can move it anywhere",
             .citation = "McMahan et al., Communication-efficient learning of deep networks (AISTATS 2017)"},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_REPLICATION | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION |
              REEF_TRAIT_SCALE | REEF_TRAIT_HULL,
    .column = mean_column,
    .span = mean_span,
};
