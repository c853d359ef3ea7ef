/* nnm: nearest-neighbour mixing. Each row is replaced by the weighted mean of the n - f rows nearest to it, itself included. */
#include "agg/rules/rules.h"
#include "num/order.h"

#include <string.h>

/* Mixing costs n^3 operations and 53 n^2 bytes: minutes and 0.9 GB. */
enum { ROWS_MAX = 4096 };

typedef struct nnm_params {
    reef_malicious f;
} nnm_params;

static const reef_field nnm_fields[] = {
    RFI_FIELD_F(nnm_params, "max"),
};

static ptrdiff_t nnm_mixed(const void *params, ptrdiff_t n)
{
    (void)params;
    return n;
}

static reef_status nnm_mix(const void *params, const reef_points *points, double *matrix, double *weights,
                           reef_error *error)
{
    ptrdiff_t n = points->n;
    double *distance = points->work;
    ptrdiff_t *order = points->index;
    (void)params;
    (void)error;
    for (ptrdiff_t k = 0; k < n; k++) {
        double *row = matrix + k * points->count;
        double sum = 0;
        for (ptrdiff_t l = 0; l < n; l++) {
            /* the row itself comes before any copy of it */
            distance[l] = l == k ? -1 : reef_points_distance2(points, k, l);
        }
        rfi_argsort(distance, n, order, order + n);
        for (ptrdiff_t i = 0; i < n - points->f; i++) {
            row[order[i]] = points->a[order[i]];
            sum += points->a[order[i]];
        }
        for (ptrdiff_t l = 0; l < n; l++) {
            row[l] /= sum;
        }
    }
    memcpy(weights, points->a, (size_t)n * sizeof *weights);
    return REEF_OK;
}

static bool nnm_feasible(const void *params, ptrdiff_t n, ptrdiff_t f)
{
    (void)params;
    (void)f;
    return n <= ROWS_MAX;
}

const reef_rule rfi_agg_nnm = {
    .kind = {.name = "nnm",
             .summary = "replaces each input by the mean of the n - f inputs nearest to it",
             .citation = "Allouah et al., Fixing by mixing (AISTATS 2023)",
             .fields = nnm_fields,
             .field_count = RFI_COUNT(nnm_fields),
             .params_size = sizeof(nnm_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE |
              REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .bound = rfi_bound_minority,
    .bound_text = RFI_BOUND_MINORITY_TEXT,
    .feasible = nnm_feasible,
    .limit_text = "nnm takes at most 4096 inputs",
    .needs = rfi_needs_gram,
    .mixed = nnm_mixed,
    .mix = nnm_mix,
};
