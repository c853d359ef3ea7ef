/* What is known about lms in closed form.
 *
 * All covariances R_k are diagonal, or all are the same (identity, AR(1)), so nothing has to be solved:
 *   minimiser     (sum p_k R_k) w = sum p_k R_k w_k^o          coordinate by coordinate, or w = sum p_k w_k^o / sum p_k
 *   mean-square deviation of w from it, small step sizes, H = sum mu_k p_k R_k, delta_k = w_k^o - w:
 *     MSD = 1/2 tr H^-1 (sum (mu_k p_k)^2 S_k / B + drift^2 I)
 *     S_k = (sigma_k^2 + delta_k' R_k delta_k) R_k + R_k delta_k delta_k' R_k      covariance of a sample's gradient at w
 *   and exactly, for R_k = I and w_k^o = w, with m = sum mu_k p_k and s = sum (mu_k p_k)^2:
 *     MSD = (M sum (mu_k p_k sigma_k)^2 / B + c M drift^2) / (1 - c),   c = (1 - m)^2 + (M + 1) s / B
 */
#include "base/memory.h"
#include "problem/lms.h"

#include <math.h>

double rfi_lms_variance(const void *state, ptrdiff_t agent)
{
    const rfi_lms *lms = state;
    const double sigma = (double)rfi_lms_sigma(lms, agent);
    const double q = lms->params.outliers;
    return (1 - q) * sigma * sigma + q * lms->params.outlier_noise;
}

/* Diagonal element m of R_k; 1 unless the covariances are diagonal. */
static double diagonal(const rfi_lms *lms, ptrdiff_t k, ptrdiff_t m)
{
    const double root = lms->root ? (double)lms->root[k * lms->width + m] : 1;
    return root * root;
}

static double offset(const rfi_lms *lms, ptrdiff_t k, ptrdiff_t m)
{
    return lms->offset ? (double)lms->offset[k * lms->width + m] : 0;
}

/* Coordinate m of the minimiser's distance from w^o; p NULL: equal weights. */
static double mean_offset(const rfi_lms *lms, const double *p, ptrdiff_t m)
{
    double above = 0;
    double below = 0;
    for (ptrdiff_t k = 0; lms->offset && k < lms->agents; k++) {
        const double weight = (p ? p[k] : 1) * diagonal(lms, k, m);
        above += weight * offset(lms, k, m);
        below += weight;
    }
    return below > 0 ? above / below : 0;
}

void rfi_lms_minimiser(const void *state, ptrdiff_t agent, const double *p, int64_t round, ptrdiff_t repetition,
                       double *w)
{
    const rfi_lms *lms = state;
    (void)repetition;
    for (ptrdiff_t from = 0; from < lms->width; from += RFI_LMS_PART) {
        const ptrdiff_t count = lms->width - from < RFI_LMS_PART ? lms->width - from : RFI_LMS_PART;
        rfi_lms_optimum(lms, round, from, count, w + from);
        for (ptrdiff_t m = from; m < from + count; m++) {
            w[m] += agent >= 0 ? offset(lms, agent, m) : mean_offset(lms, p, m);
        }
    }
}

/* delta' R_k delta, fed coordinate by coordinate. For AR(1), R_ij = rho^|i-j|:  delta_i^2 + 2 delta_i tail_i with
 * tail_i = sum_{j<i} rho^(i-j) delta_j = rho (tail_{i-1} + delta_{i-1}). */
typedef struct quadratic {
    double sum, tail;
} quadratic;

static void add_term(quadratic *q, const rfi_lms *lms, ptrdiff_t k, ptrdiff_t m, double delta)
{
    q->sum += diagonal(lms, k, m) * delta * delta + 2 * delta * q->tail;
    if (lms->params.covariance == RFI_LMS_AR1) {
        q->tail = lms->params.rho * (q->tail + delta);
    }
}

double rfi_lms_excess(const void *state, ptrdiff_t agent, int64_t round, ptrdiff_t repetition, const double *w)
{
    const rfi_lms *lms = state;
    double part[RFI_LMS_PART];
    quadratic q = {0};
    (void)repetition;
    for (ptrdiff_t from = 0; from < lms->width; from += RFI_LMS_PART) {
        const ptrdiff_t count = lms->width - from < RFI_LMS_PART ? lms->width - from : RFI_LMS_PART;
        rfi_lms_optimum(lms, round, from, count, part);
        for (ptrdiff_t m = 0; m < count; m++) {
            add_term(&q, lms, agent, from + m, w[from + m] - part[m] - offset(lms, agent, from + m));
        }
    }
    return 0.5 * q.sum;
}

/* ---- steady state ---- */

static double exact(const rfi_lms *lms, const double *p, const double *mu, double size)
{
    const double width = (double)lms->width;
    double m = 0;
    double s = 0;
    double noise = 0;
    for (ptrdiff_t k = 0; k < lms->agents; k++) {
        const double step = mu[k] * p[k];
        m += step;
        s += step * step;
        noise += step * step * rfi_lms_variance(lms, k);
    }
    const double c = (1 - m) * (1 - m) + (width + 1) * s / size;
    const double walk = c * width * lms->params.drift * lms->params.drift;
    return c < 1 ? (width * noise / size + walk) / (1 - c) : HUGE_VAL;
}

/* H (for AR(1): the factor of R in it, M times) and the minimiser. */
typedef struct limit_point {
    double *curvature; /* M: the diagonal of H, or that factor */
    double *centre;    /* M: distance of the minimiser from w^o */
} limit_point;

/* The limit is the minimiser with weights mu_k p_k. */
static void find_limit(const rfi_lms *lms, const double *p, const double *mu, limit_point *at)
{
    for (ptrdiff_t m = 0; m < lms->width; m++) {
        at->curvature[m] = 0;
        at->centre[m] = 0;
    }
    for (ptrdiff_t k = 0; k < lms->agents; k++) {
        for (ptrdiff_t m = 0; m < lms->width; m++) {
            const double weight = mu[k] * p[k] * diagonal(lms, k, m);
            at->curvature[m] += weight;
            at->centre[m] += weight * offset(lms, k, m);
        }
    }
    for (ptrdiff_t m = 0; m < lms->width; m++) {
        at->centre[m] /= at->curvature[m];
    }
}

/* tr H^-1 S_k. With AR(1), H^-1 R_k = I / curvature. */
static double trace(const rfi_lms *lms, const limit_point *at, ptrdiff_t k)
{
    quadratic q = {0};
    double first = 0;
    double second = 0;
    for (ptrdiff_t m = 0; m < lms->width; m++) {
        const double delta = offset(lms, k, m) - at->centre[m];
        const double r = diagonal(lms, k, m);
        add_term(&q, lms, k, m, delta);
        first += r / at->curvature[m];
        second += r * r * delta * delta / at->curvature[m];
    }
    if (lms->params.covariance == RFI_LMS_AR1) {
        second = q.sum / at->curvature[0];
    }
    return (rfi_lms_variance(lms, k) + q.sum) * first + second;
}

/* tr H^-1. For AR(1), R^-1 is tridiagonal: 1, 1 + rho^2, ..., 1 + rho^2, 1 over 1 - rho^2. */
static double inverse_trace(const rfi_lms *lms, const limit_point *at)
{
    double sum = 0;
    const double square = lms->params.covariance == RFI_LMS_AR1 ? lms->params.rho * lms->params.rho : 0;
    for (ptrdiff_t m = 0; m < lms->width; m++) {
        const double inner = m > 0 && m < lms->width - 1 ? 1 + square : 1;
        sum += (lms->width > 1 ? inner / (1 - square) : 1) / at->curvature[m];
    }
    return sum;
}

static double small_step(const rfi_lms *lms, const double *p, const double *mu, double size, const limit_point *at)
{
    double sum = lms->params.drift * lms->params.drift * inverse_trace(lms, at);
    for (ptrdiff_t k = 0; k < lms->agents; k++) {
        const double step = mu[k] * p[k];
        sum += step * step * trace(lms, at, k) / size;
    }
    return 0.5 * sum;
}

double rfi_lms_theory(const void *state, const double *p, const double *mu, ptrdiff_t size)
{
    const rfi_lms *lms = state;
    const double samples = size > 1 ? (double)size : 1;
    if (lms->params.loss != RFI_LMS_SQUARE) {
        return NAN;
    }
    if (lms->params.covariance == RFI_LMS_IDENTITY && !lms->offset) {
        return exact(lms, p, mu, samples);
    }
    limit_point at = {.curvature = rfi_allocate_many(lms->context, 2 * lms->width, sizeof(double))};
    if (!at.curvature) {
        return NAN;
    }
    at.centre = at.curvature + lms->width;
    find_limit(lms, p, mu, &at);
    const double msd = small_step(lms, p, mu, samples, &at);
    rfi_release(lms->context, at.curvature);
    return msd;
}
