/* From a requested Gaussian efficiency to a tuning constant, and back.
 *
 *   B  degrees of freedom (coordinates that share a weight)     r = |residual| / sigma ~ chi_B     t = r / c
 *
 * Asymptotic efficiency of the location M-estimate with weight b(r) at the Gaussian (Maronna 1976):
 *   eff = beta^2 / alpha,   alpha = E[r^2 b^2] / B,   beta = E[b + r b' / B]
 * Tukey: b = (1 - t^2)^2, r b' = -4 t^2 (1 - t^2) inside t < 1, so both are sums of truncated moments
 *   E[t^2j ; r < c] = B (B+2) .. (B+2j-2) / c^2j  P(B/2 + j, c^2/2).                                     (1)
 * Huber (B = 1), with F, f the normal distribution and density and A = 2 F(c) - 1:
 *   eff = A^2 / (A - 2 c f(c) + 2 c^2 (1 - F(c))).
 */
#include "num/tuning.h"

#include "num/finite_table.h"
#include "num/special.h"

#include <math.h>
#include <stdbool.h>

/* Beyond this many degrees of freedom the terms of (1) cancel too much, and the integrals are summed numerically. */
#define EXACT_DOF_MAX 4096.0
#define KAPPA_FLOOR 2.0
#define SQRT_TWO_PI 2.506628274631000502

/* ---- asymptotic efficiency ---- */

/* Moments E[t^2j ; r < c], j = 0..5, of equation (1). */
static void truncated_moments(double dof, double c, double moment[6])
{
    const double x = 0.5 * c * c;
    double factor = 1.0;
    for (int j = 0; j < 6; j++) {
        moment[j] = factor * rfi_gamma_p(0.5 * dof + j, x);
        factor *= (dof + 2.0 * j) / (c * c);
    }
}

static double efficiency_by_moments(double dof, double c)
{
    double t[6];
    truncated_moments(dof, c, t);
    const double alpha = c * c / dof * (t[1] - 4.0 * t[2] + 6.0 * t[3] - 4.0 * t[4] + t[5]);
    const double beta = t[0] - 2.0 * t[1] + t[2] - 4.0 / dof * (t[1] - t[2]);
    return alpha > 0.0 ? beta * beta / alpha : 0.0;
}

/* Simpson's rule over the bulk of chi_B, sqrt(B) -+ 9 (its standard deviation is 0.71). */
static double efficiency_by_quadrature(double dof, double c)
{
    enum { PANELS = 512 };
    const double from = sqrt(dof) - 9.0;
    const double to = fmin(sqrt(dof) + 9.0, c);
    if (!(to > from))
        return 0.0;
    double alpha = 0.0;
    double beta = 0.0;
    for (int i = 0; i <= PANELS; i++) {
        const double r = from + (to - from) * i / PANELS;
        const double z = (c - r) / c * ((c + r) / c);
        const double simpson = i == 0 || i == PANELS ? 1.0 : (i % 2 == 1 ? 4.0 : 2.0);
        const double density = simpson * rfi_chi_density(dof, r);
        alpha += density * r * r / dof * z * z * z * z;
        beta += density * z * (z - 4.0 / dof * (r / c) * (r / c));
    }
    return (to - from) / (3.0 * PANELS) * beta * beta / alpha;
}

double rfi_joint_efficiency(double dof, double c)
{
    return dof <= EXACT_DOF_MAX ? efficiency_by_moments(dof, c) : efficiency_by_quadrature(dof, c);
}

static double huber_efficiency(double c)
{
    const double inside = 1.0 - 2.0 * rfi_normal_cdf(-c);
    const double density = exp(-0.5 * c * c) / SQRT_TWO_PI;
    return inside * inside / (inside - 2.0 * c * density + 2.0 * c * c * rfi_normal_cdf(-c));
}

double rfi_mest_efficiency(rfi_mest_loss family, double c)
{
    return family == RFI_HUBER ? huber_efficiency(c) : rfi_joint_efficiency(1.0, c);
}

/* ---- its inverse ---- */

#define C_SMALLEST 1e-3

/* One of the efficiency curves, all increasing in c where they exceed RFI_EFFICIENCY_MIN. */
typedef struct curve {
    rfi_mest_loss family;
    double dof;
} curve;

static double efficiency_on(const curve *of, double c)
{
    return of->family == RFI_HUBER ? huber_efficiency(c) : rfi_joint_efficiency(of->dof, c);
}

static double clamp_efficiency(double efficiency)
{
    return fmax(RFI_EFFICIENCY_MIN, fmin(efficiency, RFI_EFFICIENCY_MAX));
}

/* Bisection down to neighbouring doubles. The bracket grows from the median radius, up (the efficiency tends to 1)
 * and then down in small steps, so that the crossing found is the one next to the efficient end. */
static double invert(const curve *of, double efficiency)
{
    const double wanted = clamp_efficiency(efficiency);
    double high = rfi_chi_median(of->dof);
    while (efficiency_on(of, high) < wanted)
        high *= 2.0;
    double low = high;
    do
        low *= 0.9;
    while (low > C_SMALLEST && efficiency_on(of, low) >= wanted);
    if (low <= C_SMALLEST)
        return C_SMALLEST;
    for (;;) {
        const double mid = 0.5 * (low + high);
        if (!(mid > low && mid < high))
            return high;
        if (efficiency_on(of, mid) < wanted)
            low = mid;
        else
            high = mid;
    }
}

double rfi_mest_tune(rfi_mest_loss family, double efficiency)
{
    return invert(&(curve){family, 1.0}, efficiency);
}

double rfi_joint_tune(double dof, double efficiency)
{
    return invert(&(curve){RFI_TUKEY, dof}, efficiency);
}

double rfi_joint_kappa(double dof, double efficiency)
{
    if (dof > EXACT_DOF_MAX)
        return KAPPA_FLOOR;
    return fmax(rfi_joint_tune(dof, efficiency) / rfi_chi_median(dof), KAPPA_FLOOR);
}

/* ---- finite samples ----
 *
 * finite_loss[scale][n][j] = 1/efficiency - 1 of the estimate with constant finite_c[j]. Logarithms are interpolated
 * in both directions: the loss falls like a power of c. */

enum finite_rows { ROWS_MAD, ROWS_QN, ROWS_S };

/* The rows of a scale, and what it estimates at the Gaussian, in sigmas, as n grows. */
typedef struct finite_scale {
    enum finite_rows rows;
    double limit;
} finite_scale;

static finite_scale finite_scale_of(rfi_scale_kind kind)
{
    if (kind == RFI_SCALE_QN)
        return (finite_scale){ROWS_QN, 2.2219 / 2.219144465985076};
    if (kind == RFI_SCALE_S)
        return (finite_scale){ROWS_S, 1.0};
    return (finite_scale){ROWS_MAD, rfi_mad_factor(RFI_SCALE_MAD, 0.0) / rfi_mad_factor(RFI_SCALE_MAD_EXACT, 0.0)};
}

/* log loss for n values at grid point j. */
static double log_loss(finite_scale scale, double n, int j)
{
    const double first = FINITE_N_FIRST;
    const double last = FINITE_N_LAST;
    if (n > last) {
        const double limit = 1.0 / rfi_mest_efficiency(RFI_TUKEY, finite_c[j] * scale.limit) - 1.0;
        const double at_last = finite_loss[scale.rows][FINITE_N_LAST - FINITE_N_FIRST][j];
        return log(limit + (at_last - limit) * last / n);
    }
    const double from_first = n > first ? n - first : 0.0;
    const int row = from_first < last - first ? (int)from_first : FINITE_N_LAST - FINITE_N_FIRST - 1;
    const double part = from_first - row;
    return (1.0 - part) * log(finite_loss[scale.rows][row][j]) + part * log(finite_loss[scale.rows][row + 1][j]);
}

/* Value at x on the line through (x0, y0) and (x1, y1). */
static double line(double x, double x0, double y0, double x1, double y1)
{
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

/* Walks down the grid from the cap to the first segment that holds the wanted loss. `cap` and the result are in
 * units of the table's own scale. */
static rfi_finite_tuning tune_on_grid(finite_scale scale, double n, double efficiency, double cap)
{
    const double wanted = log(1.0 / efficiency - 1.0);
    int j = FINITE_GRID - 2;
    while (j > 0 && finite_c[j] >= cap)
        j--;
    double high = log(cap);
    double high_loss =
        line(high, log(finite_c[j]), log_loss(scale, n, j), log(finite_c[j + 1]), log_loss(scale, n, j + 1));
    if (high_loss >= wanted)
        return (rfi_finite_tuning){cap, 1.0 / (1.0 + exp(high_loss))};
    for (; j >= 0; j--) {
        const double low = log(finite_c[j]);
        const double low_loss = log_loss(scale, n, j);
        if (low_loss >= wanted)
            return (rfi_finite_tuning){exp(line(wanted, low_loss, low, high_loss, high)), efficiency};
        high = low;
        high_loss = low_loss;
    }
    return (rfi_finite_tuning){finite_c[0], 1.0 / (1.0 + exp(high_loss))};
}

rfi_finite_tuning rfi_finite_tune(rfi_scale_kind scale, double n, double efficiency)
{
    const double wanted = clamp_efficiency(efficiency);
    if (n <= 2.0)
        return (rfi_finite_tuning){fmin(rfi_mest_tune(RFI_TUKEY, wanted), RFI_FINITE_C_MAX), 1.0};
    const finite_scale rows = finite_scale_of(scale);
    /* c scales of one kind are as wide as c * ratio scales of the kind the rows were made with. */
    const double ratio = rows.rows == ROWS_MAD ? rfi_mad_factor(scale, n) / rfi_mad_factor(RFI_SCALE_MAD, n) : 1.0;
    const rfi_finite_tuning tuning = tune_on_grid(rows, n, wanted, RFI_FINITE_C_MAX * ratio);
    return (rfi_finite_tuning){fmin(tuning.c / ratio, RFI_FINITE_C_MAX), tuning.achieved};
}
