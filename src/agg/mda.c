/* mda: minimum-diameter averaging. Of all sets of n - f rows the one with the smallest diameter (largest distance between two of
 * its rows) is averaged.
 *
 * A set of n - f rows with diameter <= D exists exactly when the pairs farther apart than D can be covered by f rows (those left
 * out), which a search that branches on one such pair at a time answers in 2^f steps. The smallest D is found by bisection over the
 * sorted distances. Of several sets with that diameter the one is taken that keeps rows nearest to the coordinatewise median
 * (dialect=byzfl: that comes first in the order of the rows). */
#include "agg/rules.h"
#include "num/order.h"

#include <string.h>

typedef struct mda_params {
    reef_liars f;
    int dialect;
} mda_params;

enum { PAPER, BYZFL };
static const char *const dialects[] = {"paper", "byzfl", NULL};

static const reef_field mda_fields[] = {
    RFI_FIELD_F(mda_params, "max"),
    {.name = "dialect",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(mda_params, dialect),
     .preset = "paper",
     .unit = "",
     .help = "sets of equal diameter: the one nearest to the median (paper), or the first (byzfl)",
     .words = dialects},
};

/* 2^f searches; 16 liars take milliseconds. */
enum { LIARS_MAX = 16, ROWS_MAX = 1024 };

enum state { OPEN, KEPT, OUT };

typedef struct search {
    const reef_points *points;
    double limit2;        /* squared diameter allowed */
    unsigned char *state; /* n: enum state */
} search;

/* The first pair that is too far apart and of which neither is out. */
static bool find_conflict(const search *s, ptrdiff_t *a, ptrdiff_t *b)
{
    for (ptrdiff_t i = *a; i < s->points->n; i++) {
        for (ptrdiff_t j = i + 1; s->state[i] != OUT && j < s->points->n; j++) {
            if (s->state[j] != OUT && reef_points_distance2(s->points, i, j) > s->limit2) {
                *a = i;
                *b = j;
                return true;
            }
        }
    }
    return false;
}

/* Can all conflicts be covered by `left` more rows? Conflicts of rows before `from` are covered already. */
static bool coverable(search *s, ptrdiff_t from, ptrdiff_t left)
{
    ptrdiff_t pair[2] = {from, 0};
    if (!find_conflict(s, &pair[0], &pair[1])) {
        return true;
    }
    for (int side = 0; left > 0 && side < 2; side++) {
        ptrdiff_t row = pair[side];
        if (s->state[row] == OPEN) {
            s->state[row] = OUT;
            bool found = coverable(s, pair[0], left - 1);
            s->state[row] = OPEN;
            if (found) {
                return true;
            }
        }
    }
    return false;
}

/* The smallest squared diameter for which leaving out f rows is enough. distances: n (n - 1) / 2 values, sorted. */
static double smallest_diameter(search *s, const double *distances, ptrdiff_t count, ptrdiff_t f)
{
    ptrdiff_t low = -1; /* diameter 0 */
    ptrdiff_t high = count - 1;
    s->limit2 = 0;
    if (count == 0 || coverable(s, 0, f)) {
        return 0;
    }
    while (high - low > 1) {
        ptrdiff_t middle = low + (high - low) / 2;
        s->limit2 = distances[middle];
        if (coverable(s, 0, f)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return distances[high];
}

/* Keeps rows in the given order whenever the rest can still be covered, until n - f are kept. */
static void choose_rows(search *s, const ptrdiff_t *order, ptrdiff_t f)
{
    ptrdiff_t n = s->points->n;
    ptrdiff_t kept = 0;
    ptrdiff_t out = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t row = order[i];
        s->state[row] = KEPT;
        if (kept < n - f && coverable(s, 0, f - out)) {
            kept++;
        } else {
            s->state[row] = OUT;
            out++;
        }
    }
}

static reef_status mda_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                             reef_error *error)
{
    const mda_params *p = params;
    ptrdiff_t n = points->n;
    double *distances = points->work;
    ptrdiff_t *order = points->index;
    bool *keep = (bool *)(points->index + 2 * n);
    search s = {points, 0, (unsigned char *)(points->index + 3 * n)};
    ptrdiff_t count = 0;
    (void)effort;
    (void)error;
    memset(s.state, OPEN, (size_t)n);
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = i + 1; j < n; j++) {
            distances[count++] = reef_points_distance2(points, i, j);
        }
    }
    rfi_sort(distances, count);
    s.limit2 = smallest_diameter(&s, distances, count, points->f);
    for (ptrdiff_t l = 0; l < n; l++) {
        /* nearest to the median first; byzfl: as they stand */
        distances[l] = p->dialect == BYZFL ? 0 : (points->far[l] ? 1e308 : points->gram[l * points->count + l]);
    }
    rfi_argsort(distances, n, order, order + n);
    choose_rows(&s, order, points->f);
    for (ptrdiff_t l = 0; l < n; l++) {
        keep[l] = s.state[l] == KEPT;
    }
    rfi_share_kept(points, keep, share);
    return REEF_OK;
}

static bool mda_feasible(const void *params, ptrdiff_t n, ptrdiff_t f)
{
    (void)params;
    return f <= LIARS_MAX && n <= ROWS_MAX;
}

static unsigned mda_needs(const void *params)
{
    const mda_params *p = params;
    return p->dialect == BYZFL ? REEF_NEED_GRAM : REEF_NEED_GRAM | REEF_NEED_MEDIAN;
}

static unsigned mda_traits(const void *params)
{
    const mda_params *p = params;
    return p->dialect == BYZFL ? rfi_agg_mda.traits & ~(unsigned)REEF_TRAIT_PERMUTATION : rfi_agg_mda.traits;
}

const reef_rule rfi_agg_mda = {
    .name = "mda",
    .summary = "mean of the n - f rows with the smallest diameter (few liars: 2^f steps)",
    .citation = "El Mhamdi et al., Genuinely distributed Byzantine machine learning (PODC 2020)",
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE |
              REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .fields = mda_fields,
    .field_count = RFI_COUNT(mda_fields),
    .params_size = sizeof(mda_params),
    .traits_of = mda_traits,
    .bound = rfi_bound_minority,
    .bound_text = RFI_BOUND_MINORITY_TEXT,
    .feasible = mda_feasible,
    .limit_text = "at most f = 16 and n = 1024 are searched",
    .needs = mda_needs,
    .weigh = mda_weigh,
};
