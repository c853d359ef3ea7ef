/* M-estimates of location with a fixed scale: Tukey's biweight and Huber's function (Huber 1981; Maronna, Martin
 * and Yohai 2006, chapter 2).
 *
 *   x_l, a_l   values and their weights          d = x - m      residual
 *   m, s       location, scale (fixed)           R = c s        rejection (Tukey) or clipping (Huber) radius
 *   q = min(|d| / R, 1)                          clipped before it is squared: no finite outlier overflows
 *
 *             b                psi / R           psi'                   rho / R^2 (times s^2)
 *   Tukey     (1 - q^2)^2      sign(d) q b       (1 - q^2)(1 - 5 q^2)   (1 - (1 - q^2)^3) / 6
 *   Huber     min(1, R/|d|)    sign(d) q         [ |d| <= R ]           q^2 / 2 + max(|d| / R - 1, 0)
 *
 * Sums are taken in units of R, so neither tiny nor huge scales lose digits to underflow or overflow. IRLS moves by
 * sum(a psi) / sum(a b), Newton by sum(a psi) / sum(a psi'); the guarded denominator max(sum a psi', g sum a b) is
 * between the two. IRLS minimises a quadratic majoriser of the objective with curvature sum(a b), so a step of at
 * most twice its length (g >= 1/2) cannot increase the objective. At exactly twice it may mirror m about a dominant
 * value forever, so a safe step that turns back by more than half of the one before is halved.
 */
#include "num/mest.h"

#include <assert.h>
#include <math.h>

/* Bold phase: Newton with a loose guard and steps of at most one scale; afterwards monotone descent. */
#define BOLD_STEPS 6
#define BOLD_GUARD 0.3
#define SAFE_GUARD 0.5

typedef struct step_sums {
    double psi;    /* sum a psi, in units of R */
    double slope;  /* sum a psi' */
    double weight; /* sum a b */
} step_sums;

static step_sums tukey_sums(const double *x, const double *a, ptrdiff_t n, double m, double radius)
{
    step_sums sums = {0.0, 0.0, 0.0};
    for (ptrdiff_t l = 0; l < n; l++) {
        const double u = (x[l] - m) / radius;
        const double r = u < -1.0 ? -1.0 : (u > 1.0 ? 1.0 : u);
        const double share = a ? a[l] : 1.0;
        const double z = 1.0 - r * r;
        const double az = share * z;
        sums.psi += az * z * r;
        sums.slope += az * (1.0 - 5.0 * r * r);
        sums.weight += az * z;
    }
    return sums;
}

static step_sums huber_sums(const double *x, const double *a, ptrdiff_t n, double m, double radius)
{
    step_sums sums = {0.0, 0.0, 0.0};
    for (ptrdiff_t l = 0; l < n; l++) {
        const double u = (x[l] - m) / radius;
        const double share = a ? a[l] : 1.0;
        if (fabs(u) <= 1.0) {
            sums.psi += share * u;
            sums.slope += share;
            sums.weight += share;
        } else {
            sums.psi += copysign(share, u);
            sums.weight += share / fabs(u);
        }
    }
    return sums;
}

double rfi_mest_weight(const rfi_mest *est, double x, double m, double s)
{
    const double u = fabs(x - m) / (est->c * s);
    if (est->family == RFI_HUBER)
        return u <= 1.0 ? 1.0 : 1.0 / u;
    const double q = u < 1.0 ? u : 1.0;
    const double z = 1.0 - q * q;
    return z * z;
}

/* rho(d / s) with rho' = psi: starts as r^2 / 2. */
static double rho(const rfi_mest *est, double d, double s)
{
    const double u = fabs(d) / (est->c * s);
    const double q = u < 1.0 ? u : 1.0;
    const double c2 = est->c * est->c;
    if (est->family == RFI_HUBER)
        return c2 * (0.5 * q * q + (u - q));
    /* 1 - (1 - q^2)^3 without cancellation for small q */
    const double q2 = q * q;
    return c2 * q2 * (3.0 + q2 * (q2 - 3.0)) / 6.0;
}

double rfi_mest_objective(const rfi_mest *est, const double *x, const double *a, ptrdiff_t n, double m, double s)
{
    double sum = 0.0;
    for (ptrdiff_t l = 0; l < n; l++)
        sum += (a ? a[l] : 1.0) * rho(est, x[l] - m, s);
    return sum;
}

rfi_mest_move rfi_mest_step(const rfi_mest *est, const double *x, const double *a, ptrdiff_t n, double m, double s,
                            double guard)
{
    const double radius = est->c * s;
    const step_sums sums = est->family == RFI_HUBER ? huber_sums(x, a, n, m, radius) : tukey_sums(x, a, n, m, radius);
    const double denominator = fmax(sums.slope, guard * sums.weight);
    rfi_mest_move move = {0.0, HUGE_VAL};
    if (denominator > 0.0)
        move.step = sums.psi / denominator * radius;
    if (sums.slope > 0.0)
        move.distance = fabs(sums.psi) / sums.slope * radius;
    return move;
}

static double clamp(double value, double limit)
{
    return value < -limit ? -limit : (value > limit ? limit : value);
}

rfi_location rfi_mest_solve(const rfi_mest *est, const double *x, const double *a, ptrdiff_t n, double start, double s)
{
    assert(n >= 1 && s >= 0 && isfinite(start));
    /* A step towards a value that is heard, and not longer than R, cannot lose sight of it. */
    const double longest = fmin(1.0, est->c) * s;
    rfi_location at = {start, 0, false};
    double before = 0.0;
    while (at.iterations < est->max_iter && !at.converged) {
        const bool bold = at.iterations < BOLD_STEPS;
        const rfi_mest_move move = rfi_mest_step(est, x, a, n, at.value, s, bold ? BOLD_GUARD : SAFE_GUARD);
        double step = move.step;
        const bool clamped = bold && fabs(step) > longest;
        if (bold)
            step = clamp(step, longest);
        else if ((step < 0.0) != (before < 0.0) && fabs(step) > 0.5 * fabs(before))
            step *= 0.5;
        before = step;
        const double next = at.value + step;
        /* a step lost in rounding ends it too, unless it was the clamp that made it short */
        at.converged = move.distance <= est->tol * s || (next == at.value && !clamped);
        at.value = next;
        at.iterations++;
    }
    return at;
}
