/* bulyan: Krum again and again, then a mean around the median.
 *
 * 1. theta = n - 2 f rows are chosen one after the other by Krum among those not yet chosen.
 * 2. At each coordinate the theta - 2 f chosen values nearest to their median are averaged.
 * With few rows left a Krum score still sums at least one distance. f = 0 is the mean. */
#include "agg/rules/fast.h"
#include "agg/rules/krum.h"
#include "agg/rules/rules.h"

#include <math.h>

/* Choosing costs n^3 log n operations (26 n^2 bytes): minutes. */
enum { ROWS_MAX = 2048 };

typedef struct bulyan_params {
    reef_malicious f;
} bulyan_params;

static const reef_field bulyan_fields[] = {
    RFI_FIELD_F(bulyan_params, "max"),
};

static ptrdiff_t bulyan_bound(const void *params, ptrdiff_t n)
{
    (void)params;
    return n >= 3 ? (n - 3) / 4 : 0;
}

/* The row with the smallest score among those still in; ties: the first. */
static ptrdiff_t best_row(const reef_points *points, const bool *in, ptrdiff_t rest)
{
    double best = INFINITY;
    ptrdiff_t chosen = -1;
    ptrdiff_t neighbours = rfi_krum_neighbours(rest, points->f, RFI_KRUM_PAPER);
    for (ptrdiff_t l = 0; l < points->n; l++) {
        if (!in[l]) {
            continue;
        }
        double score = rfi_krum_score(points, in, l, neighbours);
        if (chosen < 0 || score < best || (points->far[chosen] && !points->far[l])) {
            best = score;
            chosen = l;
        }
    }
    return chosen;
}

static reef_status bulyan_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                                reef_error *error)
{
    ptrdiff_t n = points->n;
    bool *in = (bool *)points->index;
    bool *chosen = (bool *)(points->index + n);
    (void)params;
    (void)effort;
    (void)error;
    for (ptrdiff_t l = 0; l < n; l++) {
        in[l] = true;
        chosen[l] = false;
    }
    rfi_krum_prepare(points);
    for (ptrdiff_t i = 0; i < n - 2 * points->f; i++) {
        ptrdiff_t l = best_row(points, in, n - i);
        in[l] = false;
        chosen[l] = true;
    }
    rfi_share_kept(points, chosen, share);
    return REEF_OK;
}

/* Of n chosen values. */
static ptrdiff_t kept_of(ptrdiff_t n, ptrdiff_t f)
{
    return n - 2 * f > 1 ? n - 2 * f : 1;
}

static double bulyan_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    (void)params;
    (void)effort;
    double median = rfi_column_median(column, false, RFI_MEDIAN_AVERAGE, NULL);
    return rfi_mean_nearest(column, median, kept_of(column->n, column->f), share);
}

static ptrdiff_t bulyan_span(const void *params, reef_span *span)
{
    (void)params;
    if (!span->equal) {
        return -1;
    }
    rfi_span inner = rfi_span_of(span);
    rfi_kernel_report report = rfi_span_report(span);
    return span->kernels->meamed(&inner, kept_of(span->n, span->f), &report);
}

static bool bulyan_feasible(const void *params, ptrdiff_t n, ptrdiff_t f)
{
    (void)params;
    (void)f;
    return n <= ROWS_MAX;
}

const reef_rule rfi_agg_bulyan = {
    .kind = {.name = "bulyan",
             .summary = "inputs chosen by repeated Krum, then the mean around their median",
             .citation = "El Mhamdi, Guerraoui, Rouault, The hidden vulnerability of distributed learning (ICML 2018)",
             .fields = bulyan_fields,
             .field_count = RFI_COUNT(bulyan_fields),
             .params_size = sizeof(bulyan_params)},
    .traits = REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE | REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .bound = bulyan_bound,
    .bound_text = "n >= 4 f + 3",
    .feasible = bulyan_feasible,
    .limit_text = "bulyan takes at most 2048 inputs",
    .needs = rfi_needs_gram,
    .weigh = bulyan_weigh,
    .column = bulyan_column,
    .span = bulyan_span,
};
