/* mda: minimum-diameter averaging. Of all sets of n - f rows the one with the smallest diameter (largest distance between two of
 * its rows) is averaged.
 *
 * A set of n - f rows with diameter <= D exists exactly when the pairs farther apart than D can be covered by f rows (those left
 * out): a vertex cover, searched by branching on the row with the most conflicts. The smallest D is found by bisection over the
 * sorted distances. Of several sets with that diameter, the one that keeps the rows nearest to the coordinatewise median is taken
 * (dialect=byzfl: the one that comes first in the order of the rows). */
#include "agg/rules/rules.h"
#include "num/order.h"

typedef struct mda_params {
    reef_malicious f;
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

/* What is searched in reasonable time: see the costs in docs/rules/mda.md. */
enum { MALICIOUS_MAX = 16, ROWS_MAX = 128 };

enum state { OPEN, KEPT, OUT };

typedef struct search {
    const reef_points *points;
    unsigned char *state;    /* n: enum state */
    unsigned char *conflict; /* n x n: farther apart than the diameter allows */
} search;

static void find_conflicts(search *s, double limit2)
{
    ptrdiff_t n = s->points->n;
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            s->conflict[i * n + j] = reef_points_distance2(s->points, i, j) > limit2;
        }
    }
}

/* The row with the most conflicts among rows that are not out, their number, and the number of all conflicts. */
static ptrdiff_t busiest(const search *s, ptrdiff_t *most, ptrdiff_t *all)
{
    ptrdiff_t n = s->points->n;
    ptrdiff_t row = -1;
    ptrdiff_t ends = 0; /* each conflict has two */
    *most = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t degree = 0;
        for (ptrdiff_t j = 0; s->state[i] != OUT && j < n; j++) {
            degree += s->conflict[i * n + j] && s->state[j] != OUT;
        }
        ends += degree;
        if (degree > *most) {
            *most = degree;
            row = i;
        }
    }
    *all = ends / 2;
    return row;
}

static bool coverable(search *s, ptrdiff_t left);

/* Leaves out the row, or all rows it conflicts with, and continues with the rest. Only open rows may be left out. */
static bool coverable_without(search *s, ptrdiff_t row, bool itself, ptrdiff_t left)
{
    ptrdiff_t n = s->points->n;
    ptrdiff_t out[MALICIOUS_MAX];
    ptrdiff_t count = 0;
    bool possible = true;
    for (ptrdiff_t j = 0; j < n && possible; j++) {
        bool leaves = itself ? j == row : s->conflict[row * n + j] && s->state[j] != OUT;
        if (!leaves) {
            continue;
        }
        possible = s->state[j] == OPEN && count < left;
        if (possible) {
            s->state[j] = OUT;
            out[count++] = j;
        }
    }
    possible = possible && coverable(s, left - count);
    while (count > 0) {
        s->state[out[--count]] = OPEN;
    }
    return possible;
}

/* Can all conflicts be covered by leaving out `left` more rows? Either the busiest row leaves, or everyone it conflicts with: a row
 * with more conflicts than may leave must go itself. */
static bool coverable(search *s, ptrdiff_t left)
{
    ptrdiff_t degree = 0;
    ptrdiff_t all = 0;
    ptrdiff_t row = busiest(s, &degree, &all);
    if (degree == 0) {
        return true;
    }
    if (all > left * degree) { /* each row that leaves takes at most `degree` conflicts with it */
        return false;
    }
    return coverable_without(s, row, true, left) || (degree <= left && coverable_without(s, row, false, left));
}

/* The smallest squared diameter for which leaving out f rows is enough. distances: n (n - 1) / 2 values, sorted. */
static double smallest_diameter(search *s, const double *distances, ptrdiff_t count, ptrdiff_t f)
{
    ptrdiff_t low = -1; /* diameter 0 */
    ptrdiff_t high = count - 1;
    find_conflicts(s, 0);
    if (count == 0 || coverable(s, f)) {
        return 0;
    }
    while (high - low > 1) {
        ptrdiff_t middle = low + (high - low) / 2;
        find_conflicts(s, distances[middle]);
        if (coverable(s, f)) {
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
        if (kept < n - f && coverable(s, f - out)) {
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
    ptrdiff_t count = 0;
    (void)effort;
    (void)error;
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = i + 1; j < n; j++) {
            distances[count++] = reef_points_distance2(points, i, j);
        }
    }
    rfi_sort(distances, count);
    /* distances take less than half of the scratch; the conflicts come after them */
    search s = {points, (unsigned char *)(points->index + 3 * n), (unsigned char *)(distances + count + n)};
    for (ptrdiff_t l = 0; l < n; l++) {
        s.state[l] = OPEN;
    }
    find_conflicts(&s, smallest_diameter(&s, distances, count, points->f));
    for (ptrdiff_t l = 0; l < n; l++) {
        /* nearest to the median first; byzfl: in their order */
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
    return f <= MALICIOUS_MAX && n <= ROWS_MAX;
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
    .kind = {.name = "mda",
             .summary = "mean of the n - f inputs with the smallest diameter (f <= 16, n <= 128)",
             .citation = "El Mhamdi et al., Genuinely distributed Byzantine machine learning (PODC 2020)",
             .fields = mda_fields,
             .field_count = RFI_COUNT(mda_fields),
             .params_size = sizeof(mda_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE |
              REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .traits_of = mda_traits,
    .bound = rfi_bound_minority,
    .bound_text = RFI_BOUND_MINORITY_TEXT,
    .feasible = mda_feasible,
    .limit_text = "at most f = 16 and n = 128 are searched",
    .needs = mda_needs,
    .weigh = mda_weigh,
};
