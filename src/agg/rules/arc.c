/* arc: adaptive robust clipping. The k = floor(2 f (n - f) / n) longest rows are shortened to the length of the next one. */
#include "agg/rules/rules.h"
#include "num/order.h"

#include <math.h>
#include <string.h>

typedef struct arc_params {
    reef_malicious f;
} arc_params;

static const reef_field arc_fields[] = {
    RFI_FIELD_F(arc_params, "max"),
};

static ptrdiff_t arc_mixed(const void *params, ptrdiff_t n)
{
    (void)params;
    return n;
}

static reef_status arc_mix(const void *params, const reef_points *points, double *matrix, double *weights,
                           reef_error *error)
{
    ptrdiff_t n = points->n;
    double *norm = points->work;
    double *sorted = points->work + points->count;
    (void)params;
    (void)error;
    for (ptrdiff_t l = 0; l < n; l++) {
        norm[l] = sqrt(reef_points_distance2(points, l, points->origin));
        sorted[l] = norm[l];
    }
    rfi_sort(sorted, n);
    /* in the order of operations that ByzFL uses, so that rounding is the same */
    ptrdiff_t clipped = (ptrdiff_t)(2 * (double)points->f / (double)n * (double)(n - points->f));
    double limit = sorted[n - clipped - 1];
    for (ptrdiff_t l = 0; l < n; l++) {
        rfi_shorten(points, l, norm[l] > limit ? limit / norm[l] : 1, matrix);
    }
    memcpy(weights, points->a, (size_t)n * sizeof *weights);
    return REEF_OK;
}

static unsigned arc_needs(const void *params)
{
    (void)params;
    return REEF_NEED_GRAM | REEF_NEED_ORIGIN;
}

const reef_rule rfi_agg_arc = {
    .kind = {.name = "arc",
             .summary = "shortens the longest inputs to the length of the next one (for updates)",
             .citation = "Allouah et al., Adaptive gradient clipping for robust federated learning (2024)",
             .fields = arc_fields,
             .field_count = RFI_COUNT(arc_fields),
             .params_size = sizeof(arc_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_SCALE | REEF_TRAIT_ROBUST,
    .bound = rfi_bound_minority,
    .bound_text = RFI_BOUND_MINORITY_TEXT,
    .needs = arc_needs,
    .mixed = arc_mixed,
    .mix = arc_mix,
};
