/* geomed: the geometric median, argmin_y sum_l a_l ||x_l - y||, by Weiszfeld's iteration in Gram space.
 *
 *   y <- sum u_l x_l / sum u_l,  u_l = a_l / d_l,  d_l = ||x_l - y||
 *
 * Every iterate is a convex combination of the rows, so one pass over the data for the Gram matrix and one for the final
 * weighted sum suffice, whatever the number of iterations. When y coincides with a row k, the step of Vardi and Zhang is taken:
 *   y <- (1 - g) T + g y,  T the Weiszfeld step without k,  g = min(1, a_k / R),  R = ||sum_{l != k} u_l (x_l - y)||
 * which stays at the row exactly when that row is the optimum.
 * dialect=byzfl: start at 0, u_l = 1 / max(nu, d_l), a fixed number of steps. */
#include "agg/rules/gramspace.h"
#include "agg/rules/rules.h"
#include "num/order.h"

#include <math.h>
#include <string.h>

typedef struct geomed_params {
    double tol;
    int64_t max_iter;
    int dialect;
    double nu;
    int64_t steps;
} geomed_params;

enum { PAPER, BYZFL };
static const char *const dialects[] = {"paper", "byzfl", NULL};

static const reef_field geomed_fields[] = {
    {.name = "tol",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(geomed_params, tol),
     .preset = "1e-9",
     .min = 1e-14,
     .max = 1,
     .unit = "median distance",
     .help = "stop when a step is shorter than this"},
    {.name = "max_iter",
     .type = REEF_FIELD_INT,
     .offset = offsetof(geomed_params, max_iter),
     .preset = "1000",
     .min = 1,
     .max = 1e6,
     .unit = "steps",
     .help = "cap on the number of steps"},
    {.name = "dialect",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(geomed_params, dialect),
     .preset = "paper",
     .unit = "",
     .help = "paper: to convergence; byzfl: `steps` smoothed steps from 0",
     .words = dialects},
    {.name = "nu",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(geomed_params, nu),
     .preset = "0.1",
     .min = 1e-300,
     .max = 1e300,
     .unit = "distance",
     .help = "dialect=byzfl: smallest distance used in a weight"},
    {.name = "steps",
     .type = REEF_FIELD_INT,
     .offset = offsetof(geomed_params, steps),
     .preset = "3",
     .min = 1,
     .max = 1e6,
     .unit = "steps",
     .help = "dialect=byzfl: number of steps"},
};

/* Distances below this part of the median one are rounding: y sits on that row. */
static const double coincidence = 1e-7;

/* Scratch of one solve, all of points->count doubles. */
typedef struct scratch {
    double *distance, *product, *next, *pair;
} scratch;

static scratch scratch_of(const reef_points *points)
{
    ptrdiff_t count = points->count;
    double *work = points->work;
    return (scratch){work, work + count, work + 2 * count, work + 3 * count};
}

static void normalise(double *w, ptrdiff_t count)
{
    double sum = 0;
    for (ptrdiff_t p = 0; p < count; p++) {
        sum += w[p];
    }
    for (ptrdiff_t p = 0; p < count; p++) {
        w[p] /= sum;
    }
}

static double typical_distance(const reef_points *points, const double *distance, double *spare)
{
    for (ptrdiff_t l = 0; l < points->n; l++) {
        spare[l] = isfinite(distance[l]) ? distance[l] : 1e300;
    }
    return rfi_median(spare, points->n, RFI_MEDIAN_LOWER);
}

/* One guarded step: s.next from w. Returns the distance gone. */
static double step(const reef_points *points, const double *w, double typical, const scratch *s)
{
    double total = 0;
    double near = coincidence * typical;
    ptrdiff_t met = -1;
    for (ptrdiff_t p = 0; p < points->count; p++) {
        s->next[p] = 0;
    }
    for (ptrdiff_t l = 0; l < points->n; l++) {
        if (s->distance[l] <= near) {
            met = met < 0 || s->distance[l] < s->distance[met] ? l : met;
        }
    }
    double met_weight = 0;
    for (ptrdiff_t l = 0; l < points->n; l++) {
        /* rounding may put y on two rows that are not quite on each other */
        double apart2 = met >= 0 ? reef_points_distance2(points, l, met) : (double)INFINITY;
        bool on_it = s->distance[l] <= near || apart2 <= near * near;
        if (on_it) {
            met_weight += points->a[l]; /* rows that coincide pull as one */
        } else if (isfinite(s->distance[l])) {
            s->next[l] = points->a[l] / s->distance[l];
            total += s->next[l];
        }
    }
    if (total == 0) { /* all rows that count are here */
        memcpy(s->next, w, (size_t)points->count * sizeof *w);
        return 0;
    }
    normalise(s->next, points->count);
    double gone = rfi_gram_step(points, s->next, w, s->pair);
    if (met < 0) {
        return gone;
    }
    double stay = met_weight >= total * gone ? 1 : met_weight / (total * gone);
    for (ptrdiff_t p = 0; p < points->count; p++) {
        s->next[p] = (1 - stay) * s->next[p] + stay * w[p];
    }
    return (1 - stay) * gone;
}

/* The step from the coordinatewise median. The optimum is unique, so the start decides only how long it takes; from the mean, liars at
 * distance D would cost log D steps times the inverse of the honest margin. */
static void start(const reef_points *points, double *share, const scratch *s)
{
    for (ptrdiff_t l = 0; l < points->n; l++) {
        s->distance[l] = points->far[l] ? (double)INFINITY : sqrt(points->gram[l * points->count + l]);
    }
    double typical = typical_distance(points, s->distance, s->pair);
    for (ptrdiff_t l = 0; l < points->count; l++) {
        bool counts = l < points->n && !points->far[l];
        double away = counts ? fmax(s->distance[l], coincidence * typical) : 1;
        share[l] = counts ? points->a[l] / (typical > 0 ? away / typical : 1) : 0;
    }
    normalise(share, points->count);
}

static void solve_paper(const geomed_params *p, const reef_points *points, double *share, reef_effort *effort)
{
    scratch s = scratch_of(points);
    start(points, share, &s);
    effort->converged = false;
    while (!effort->converged && effort->iterations < p->max_iter) {
        rfi_gram_distances(points, share, s.product, s.distance);
        double typical = typical_distance(points, s.distance, s.pair);
        double gone = step(points, share, typical, &s);
        memcpy(share, s.next, (size_t)points->count * sizeof *share);
        effort->iterations++;
        effort->converged = gone <= p->tol * typical;
    }
}

static void solve_byzfl(const geomed_params *p, const reef_points *points, double *share, reef_effort *effort)
{
    scratch s = scratch_of(points);
    for (ptrdiff_t l = 0; l < points->count; l++) {
        share[l] = l == points->origin;
    }
    for (; effort->iterations < p->steps; effort->iterations++) {
        rfi_gram_distances(points, share, s.product, s.distance);
        for (ptrdiff_t l = 0; l < points->count; l++) {
            bool counts = l < points->n && isfinite(s.distance[l]);
            share[l] = counts ? points->a[l] / fmax(p->nu, s.distance[l]) : 0;
        }
        normalise(share, points->count);
    }
}

static reef_status geomed_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                                reef_error *error)
{
    const geomed_params *p = params;
    (void)error;
    if (p->dialect == BYZFL) {
        solve_byzfl(p, points, share, effort);
    } else {
        solve_paper(p, points, share, effort);
    }
    return REEF_OK;
}

static unsigned geomed_needs(const void *params)
{
    const geomed_params *p = params;
    return p->dialect == BYZFL ? REEF_NEED_GRAM | REEF_NEED_ORIGIN : REEF_NEED_GRAM;
}

static unsigned geomed_traits(const void *params)
{
    const geomed_params *p = params;
    unsigned lost = REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE | REEF_TRAIT_ROBUST;
    return p->dialect == BYZFL ? rfi_agg_geomed.traits & ~lost : rfi_agg_geomed.traits;
}

const reef_rule rfi_agg_geomed = {
    .kind = {.name = "geomed",
             .summary = "geometric median: the point with the smallest sum of distances to the inputs",
             .citation =
                 "Weiszfeld (1937); Vardi, Zhang (2000); Pillutla, Kakade, Harchaoui, Robust aggregation (2022)",
             .fields = geomed_fields,
             .field_count = RFI_COUNT(geomed_fields),
             .params_size = sizeof(geomed_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_REPLICATION | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION |
              REEF_TRAIT_SCALE | REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .traits_of = geomed_traits,
    .needs = geomed_needs,
    .weigh = geomed_weigh,
};
