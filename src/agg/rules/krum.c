/* krum: the one row whose nearest others are closest.
 *
 *   score_i = sum of the n - f - 2 smallest ||x_i - x_j||^2, j != i;   out = the row of the smallest score
 *
 * Ties go to the first row. Weights have no meaning for the choice of a single row, so unequal ones are refused. */
#include "agg/rules/krum.h"

#include "agg/rules/rules.h"

#include <math.h>

typedef struct krum_params {
    reef_malicious f;
    int dialect;
} krum_params;

const char *const rfi_krum_dialects[] = {"paper", "byzfl", "flower", NULL};

static const reef_field krum_fields[] = {
    RFI_FIELD_F(krum_params, "max"),
    {.name = "dialect",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(krum_params, dialect),
     .preset = "paper",
     .unit = "",
     .help =
         "nearest others in a score: n - f - 2 (paper, flower) or n - f - 1 (byzfl); all but paper take n >= 2 f + 1",
     .words = rfi_krum_dialects},
};

ptrdiff_t rfi_krum_neighbours(ptrdiff_t n, ptrdiff_t f, int dialect)
{
    ptrdiff_t wanted = n - f - (dialect == RFI_KRUM_BYZFL ? 1 : 2);
    return wanted > 1 ? wanted : 1;
}

/* Room for them is behind the first 8 count numbers of scratch. */
static inline double *distances_of(const reef_points *points)
{
    return points->work + 8 * points->count;
}

void rfi_krum_prepare(const reef_points *points)
{
    rfi_points_apart(points, distances_of(points));
}

double rfi_krum_score(const reef_points *points, const bool *in, ptrdiff_t i, ptrdiff_t neighbours)
{
    const double *distance = distances_of(points) + i * points->n;
    double *spare = points->work;
    ptrdiff_t others = 0;
    double score = 0;
    for (ptrdiff_t j = 0; j < points->n; j++) {
        spare[others] = distance[j]; /* never the last place if it does not count */
        others += in[j] && j != i;
    }
    rfi_sort(spare, others);
    for (ptrdiff_t j = 0; j < others && j < neighbours; j++) {
        score += spare[j];
    }
    return score;
}

ptrdiff_t rfi_krum_bound(int dialect, ptrdiff_t n)
{
    if (dialect != RFI_KRUM_PAPER) {
        return (n - 1) / 2;
    }
    return n >= 3 ? (n - 3) / 2 : 0;
}

static ptrdiff_t krum_bound(const void *params, ptrdiff_t n)
{
    return rfi_krum_bound(((const krum_params *)params)->dialect, n);
}

static reef_status krum_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                              reef_error *error)
{
    const krum_params *p = params;
    ptrdiff_t neighbours = rfi_krum_neighbours(points->n, points->f, p->dialect);
    bool *in = (bool *)points->index;
    double best = INFINITY;
    ptrdiff_t chosen = -1;
    (void)effort;
    (void)error;
    for (ptrdiff_t l = 0; l < points->n; l++) {
        in[l] = true;
    }
    rfi_krum_prepare(points);
    for (ptrdiff_t l = 0; l < points->n; l++) {
        double score = rfi_krum_score(points, in, l, neighbours);
        if (chosen < 0 || score < best || (points->far[chosen] && !points->far[l])) {
            best = score;
            chosen = l;
        }
    }
    for (ptrdiff_t l = 0; l < points->count; l++) {
        share[l] = l == chosen;
    }
    return REEF_OK;
}

const reef_rule rfi_agg_krum = {
    .kind = {.name = "krum",
             .summary = "the single input closest to its n - f - 2 nearest others",
             .citation = "Blanchard et al., Machine learning with adversaries (NeurIPS 2017)",
             .fields = krum_fields,
             .field_count = RFI_COUNT(krum_fields),
             .params_size = sizeof(krum_params)},
    .traits = REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE | REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .bound = krum_bound,
    .bound_text = "n >= 2 f + 3 (dialect=byzfl and flower: n >= 2 f + 1)",
    .needs = rfi_needs_gram,
    .weigh = krum_weigh,
};
