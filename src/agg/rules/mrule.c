/* M-estimates of location per coordinate.
 *
 *   start m0 = median (or mean); scale s = normalised MAD, Qn or S-scale of the values, fixed from then on;
 *   m solves sum a_l psi((x_l - m)/s) = 0, reached from m0;  abar_l = a_l b_l / sum_j a_j b_j,  b_l = b((x_l - m)/s)
 *
 * init=count (default): start and scale count values, weights enter the equation only, so that breakdown is by number of agents;
 * init=weighted: weighted median and weighted MAD, breakdown by weight mass.
 * s = 0 (more than half the values coincide), or too small to divide by: the result is the median. One value, or two of
 * equal weight: their mean. */
#include "agg/rules/mrule.h"

#include "agg/rules/fast.h"
#include "agg/rules/rules.h"
#include "base/error.h"
#include "num/scale.h"
#include "num/tuning.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const char *const auto_words[] = {"auto", NULL};
static const char *const n_words[] = {"asymptotic", "auto", NULL};
static const char *const scale_words[] = {"mad", "mad-exact", "mad-finite", "qn", "s", NULL};
static const char *const start_words[] = {"median", "mean", NULL};
static const char *const init_words[] = {"count", "weighted", NULL};

#define FIELD(member, type_, preset_, min_, max_, unit_, words_, help_)                                                \
    {                                                                                                                  \
        .name = #member, .type = (type_), .offset = offsetof(rfi_mrule_params, member), .preset = (preset_),           \
        .min = (min_), .max = (max_), .unit = (unit_), .help = (help_), .words = (words_)                              \
    }

#define FIELD_C                                                                                                        \
    FIELD(c, REEF_FIELD_REAL, "auto", 0.1, 1e6, "scales", auto_words,                                                  \
          "tuning constant; auto: the one that gives the requested efficiency")
#define FIELD_EFFICIENCY                                                                                               \
    FIELD(efficiency, REEF_FIELD_REAL, "0.95", RFI_EFFICIENCY_MIN, RFI_EFFICIENCY_MAX, "", NULL,                       \
          "efficiency for Gaussian data relative to the mean, when c is auto")
#define FIELD_SCALE                                                                                                    \
    FIELD(scale, REEF_FIELD_WORD, "mad", 0, 0, "", scale_words,                                                        \
          "scale: 1.4815 MAD (the paper), 1.4826 MAD, MAD unbiased for n, Qn, or S (true MM-estimate)")
#define FIELD_INIT                                                                                                     \
    FIELD(init, REEF_FIELD_WORD, "count", 0, 0, "", init_words,                                                        \
          "start and scale by number of agents, or by weight mass")
#define FIELD_FLOOR                                                                                                    \
    FIELD(scale_floor, REEF_FIELD_REAL, "0", 0, 1e150, "as the data", NULL,                                            \
          "smallest scale: without one, values outside a majority of exact ties have no influence")
#define FIELD_FLOOR_REL                                                                                                \
    FIELD(scale_floor_rel, REEF_FIELD_REAL, "0", 0, 1e6, "typical scale", NULL,                                        \
          "smallest scale, relative to the median scale of the 4096 coordinates around it")
#define FIELD_TOL                                                                                                      \
    FIELD(tol, REEF_FIELD_REAL, "auto", 1e-15, 1, "scales", auto_words,                                                \
          "stop when a step is shorter; auto: 1e-6 for float32, 1e-12 for float64")
#define FIELD_MAX_ITER FIELD(max_iter, REEF_FIELD_INT, "100", 1, 1e6, "steps", NULL, "cap on the number of steps")

const reef_field rfi_mrule_ref_fields[RFI_MRULE_REF_FIELD_COUNT] = {
    FIELD_C,
    FIELD_EFFICIENCY,
    FIELD(n, REEF_FIELD_WORD, "asymptotic", 0, 0, "", n_words,
          "auto: reach the efficiency for the actual number of agents, not only for many"),
    FIELD_SCALE,
    FIELD_INIT,
    FIELD_FLOOR,
    FIELD_FLOOR_REL,
    FIELD_TOL,
    FIELD_MAX_ITER,
};

const reef_field rfi_mrule_fields[RFI_MRULE_FIELD_COUNT] = {
    FIELD_C,
    FIELD_EFFICIENCY,
    FIELD(start, REEF_FIELD_WORD, "median", 0, 0, "", start_words, "where the iteration starts"),
    FIELD_SCALE,
    FIELD(sigma, REEF_FIELD_REAL, "auto", 1e-150, 1e150, "as the data", auto_words,
          "scale, when it is known; auto: estimated"),
    FIELD_INIT,
    FIELD_FLOOR,
    FIELD_FLOOR_REL,
    FIELD_TOL,
    FIELD_MAX_ITER,
};

reef_status rfi_mrule_prepare(rfi_mest_loss family, rfi_mrule_params *p, reef_error *error)
{
    if (p->init == RFI_INIT_WEIGHTED && p->scale == RFI_SCALE_QN) {
        return rfi_fail(error, REEF_E_RANGE, "scale=qn has no weighted form; use init=count, or another scale");
    }
    if (p->sigma == 0) {
        p->sigma = NAN; /* ref has no such field */
    }
    p->asymptotic_c = isnan(p->c) ? rfi_mest_tune(family, p->efficiency) : p->c;
    return REEF_OK;
}

/* n, or with weights the number of equal ones that would be as good. */
static double effective_n(const reef_column *column)
{
    double squares = 0;
    if (column->equal) {
        return (double)column->n;
    }
    for (ptrdiff_t i = 0; i < column->n; i++) {
        squares += column->a[i] * column->a[i];
    }
    return 1 / squares;
}

static double half_tol(const reef_column *column)
{
    return column->single ? RFI_HALF_TOL_F32 : RFI_HALF_TOL_F64;
}

/* Scale and the location it was measured from: the median, or for S its own. */
static double scale_and_start(const rfi_mrule_params *p, const reef_column *column, double *start)
{
    ptrdiff_t n = column->n;
    bool weighted = p->init == RFI_INIT_WEIGHTED && !column->equal;
    rfi_scale_kind kind = (rfi_scale_kind)p->scale;
    *start = rfi_column_median(column, weighted, RFI_MEDIAN_AVERAGE, NULL);
    switch (kind) {
    case RFI_SCALE_QN:
        return rfi_qn(column->x, n, column->work);
    case RFI_SCALE_S:
        return rfi_s_estimate(column->x, weighted ? column->a : NULL, n, start, column->work);
    case RFI_SCALE_MAD:
    case RFI_SCALE_MAD_EXACT:
    case RFI_SCALE_MAD_FINITE:
        break;
    }
    double mad = weighted ? rfi_wmad(column->x, column->a, n, *start, half_tol(column), column->work, column->index,
                                     column->index + n)
                          : rfi_mad(column->x, n, *start, column->work);
    return rfi_mad_factor(kind, weighted ? effective_n(column) : (double)n) * mad;
}

double rfi_mrule_scale(const void *params, const reef_column *column)
{
    double start = 0;
    return scale_and_start(params, column, &start);
}

double rfi_mrule_relative_floor(const void *params)
{
    const rfi_mrule_params *p = params;
    return p->scale_floor_rel;
}

double rfi_mrule_tune(const void *params, double n)
{
    const rfi_mrule_params *p = params;
    if (p->n == RFI_N_AUTO && isnan(p->c)) {
        return rfi_finite_tune((rfi_scale_kind)p->scale, n, p->efficiency).c;
    }
    return p->asymptotic_c;
}

/* abar_l at the solution; false if nothing is left, which only weights near the underflow limit can cause. */
static bool effective_shares(const rfi_mest *est, const reef_column *column, double m, double s, double *share)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < column->n; i++) {
        share[i] = column->a[i] * rfi_mest_weight(est, column->x[i], m, s);
        sum += share[i];
    }
    for (ptrdiff_t i = 0; sum > 0 && i < column->n; i++) {
        share[i] /= sum;
    }
    return sum > 0;
}

static double start_of(const rfi_mrule_params *p, const reef_column *column, double robust_start)
{
    double mean = 0;
    if (p->start != RFI_START_MEAN) {
        return robust_start;
    }
    for (ptrdiff_t i = 0; i < column->n; i++) {
        mean += column->a[i] * column->x[i];
    }
    return mean;
}

double rfi_mrule_column(rfi_mest_loss family, const rfi_mrule_params *p, const reef_column *column, double *share,
                        reef_effort *effort)
{
    bool by_weight = p->init == RFI_INIT_WEIGHTED;
    double smallest = 16 * (column->single ? (double)FLT_MIN : DBL_MIN);
    double start = 0;
    if (column->n == 1 || (column->n == 2 && column->equal)) {
        memcpy(share, column->a, (size_t)column->n * sizeof *share);
        return rfi_normalise_sum(column->x, share, column->n);
    }
    double s = scale_and_start(p, column, &start);
    s = isnan(p->sigma) ? s : p->sigma;
    s = fmax(s, fmax(p->scale_floor, column->floor));
    if (s < smallest) {
        return rfi_column_median(column, by_weight, RFI_MEDIAN_AVERAGE, share);
    }
    rfi_mest est = {family, column->tuned, p->tol, (int)p->max_iter};
    if (isnan(est.tol)) {
        est.tol = column->single ? 1e-6 : 1e-12;
    }
    rfi_location found = rfi_mest_solve(&est, column->x, column->a, column->n, start_of(p, column, start), s);
    effort->iterations = found.iterations;
    effort->converged = found.converged;
    if (!effective_shares(&est, column, found.value, s, share)) {
        return rfi_column_median(column, by_weight, RFI_MEDIAN_AVERAGE, share);
    }
    /* without convergence one more IRLS step: it descends too, and the result is what the shares say */
    double last_step = 0;
    for (ptrdiff_t i = 0; !found.converged && i < column->n; i++) {
        last_step += share[i] * (column->x[i] - found.value);
    }
    return found.value + last_step;
}

double rfi_mrule_efficiency(rfi_mest_loss family, const rfi_mrule_params *p, double n)
{
    if (p->n == RFI_N_AUTO && isnan(p->c)) {
        return rfi_finite_tune((rfi_scale_kind)p->scale, n, p->efficiency).achieved;
    }
    return rfi_mest_efficiency(family, p->asymptotic_c);
}

ptrdiff_t rfi_mrule_span(rfi_mest_loss family, const rfi_mrule_params *p, reef_span *span)
{
    bool mad = p->scale == RFI_SCALE_MAD || p->scale == RFI_SCALE_MAD_EXACT || p->scale == RFI_SCALE_MAD_FINITE;
    bool by_count = p->init == RFI_INIT_COUNT || span->equal;
    bool usable = true;
    double least = span->single ? 0x1p-40 : 0x1p-400; /* smaller weights would vanish in products */
    for (ptrdiff_t i = 0; !span->equal && i < span->n; i++) {
        usable = usable && span->a[i] > least;
    }
    bool small = span->n == 1 || (span->n == 2 && span->equal);
    if (!mad || !by_count || !usable || small || p->start != RFI_START_MEDIAN || !isnan(p->sigma)) {
        return -1;
    }
    rfi_kernel_mest est = {.family = family == RFI_HUBER ? RFI_KERNEL_HUBER : RFI_KERNEL_TUKEY,
                           .c = span->tuned,
                           .mad_factor = rfi_mad_factor((rfi_scale_kind)p->scale, (double)span->n),
                           .floor = fmax(p->scale_floor, span->floor),
                           .tol = p->tol,
                           .max_iter = (int)p->max_iter};
    if (isnan(est.tol)) {
        est.tol = span->single ? 1e-6 : 1e-12;
    }
    rfi_span inner = rfi_span_of(span);
    rfi_kernel_report report = rfi_span_report(span);
    ptrdiff_t hard = span->kernels->mest(&inner, &est, &report);
    span->iterations = report.iterations;
    span->max_iterations = report.max_iterations;
    return hard;
}

unsigned rfi_mrule_traits(const void *params)
{
    const rfi_mrule_params *p = params;
    unsigned traits = RFI_MRULE_TRAITS;
    bool counts_n = p->scale == RFI_SCALE_MAD_FINITE || p->n == RFI_N_AUTO;
    if (p->init == RFI_INIT_WEIGHTED && !counts_n) {
        traits |= REEF_TRAIT_REPLICATION;
    }
    if (p->scale_floor > 0 || !isnan(p->sigma)) {
        traits &= ~(unsigned)REEF_TRAIT_SCALE;
    }
    if (p->start == RFI_START_MEAN) {
        traits &= ~(unsigned)REEF_TRAIT_ROBUST;
    }
    return traits;
}
