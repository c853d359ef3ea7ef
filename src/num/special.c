/* Special functions behind the tuning constants.
 *
 *   P(a, x) = 1/Gamma(a) int_0^x t^(a-1) e^-t dt      regularised lower incomplete gamma function
 *
 * x < a + 1:  P = p sum_k x^k / ((a+1)..(a+k))                       (Abramowitz and Stegun 6.5.29)
 * otherwise:  1 - P = p a / (x + 1 - a - 1 (1-a) / (x + 3 - a - ..)) (6.5.31, by Lentz's method)
 * with p = x^a e^-x / Gamma(a+1), written after Loader (2000, "Fast and accurate computation of binomial
 * probabilities") as  p = exp(-a D - E) / sqrt(2 pi a),  D = (x - a)/a - log(x/a),  E = Stirling's remainder at
 * a, because a log x - x - log Gamma loses log10(a) digits for large a. Both expansions need O(sqrt(a)) terms near
 * x = a. No function uses lgamma, which writes a global.
 */
#include "num/special.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#define TWO_PI 6.283185307179586477
#define HALF_LOG_TWO_PI 0.918938533204672742
#define SQRT_HALF 0.707106781186547524

/* Stirling's remainder: log Gamma(a+1) - (a + 1/2) log a + a - log(2 pi) / 2. */
static double stirling_remainder(double a)
{
    if (a < 16.0)
        return log(tgamma(a + 1.0)) - (a + 0.5) * log(a) + a - HALF_LOG_TWO_PI;
    const double a2 = a * a;
    return (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / a2) / a2) / a2) / a2) / a;
}

/* (x - a)/a - log(x/a) without cancellation near x = a: with u = (x - a)/a and v = u / (2 + u) the logarithm is
 * 2 artanh v, hence u - log(1 + u) = u v - 2 (v^3/3 + v^5/5 + ..). */
static double deviance(double a, double x)
{
    const double u = (x - a) / a;
    if (fabs(u) > 0.2)
        return u - log(x / a);
    const double v = u / (2.0 + u);
    const double v2 = v * v;
    double power = v * v2;
    double sum = 0.0;
    for (int k = 3; k < 20; k += 2) {
        sum += power / k;
        power *= v2;
    }
    return u * v - 2.0 * sum;
}

/* p = x^a e^-x / Gamma(a+1). */
static double gamma_prefactor(double a, double x)
{
    return exp(-a * deviance(a, x) - stirling_remainder(a)) / sqrt(TWO_PI * a);
}

/* P(a, x) for x < a + 1: all terms are positive and decrease. The rest is less than the geometric series with the
 * ratio x / (a + k), which for large a is many times the last term. */
static double gamma_p_series(double a, double x)
{
    double term = 1.0;
    double sum = 1.0;
    for (double k = 1.0; term * x > 0.25 * DBL_EPSILON * sum * (a + k - x); k += 1.0) {
        term *= x / (a + k);
        sum += term;
    }
    return gamma_prefactor(a, x) * sum;
}

/* 1 - P(a, x) for x >= a + 1, where every denominator is positive. */
static double gamma_q_fraction(double a, double x)
{
    double b = x + 1.0 - a;
    double c = HUGE_VAL;
    double d = 1.0 / b;
    double fraction = d;
    double change = 0.0;
    for (double k = 1.0; fabs(change - 1.0) > DBL_EPSILON && k < 1e6; k += 1.0) {
        const double numerator = k * (a - k);
        b += 2.0;
        d = 1.0 / (b + numerator * d);
        c = b + numerator / c;
        change = c * d;
        fraction *= change;
    }
    return gamma_prefactor(a, x) * a * fraction;
}

double rfi_gamma_p(double a, double x)
{
    assert(a > 0 && x >= 0);
    if (!(x > 0.0))
        return 0.0;
    if (x < a + 1.0)
        return gamma_p_series(a, x);
    /* Here 1 - P < e^-300, and the fraction would be asked for digits nobody sees. */
    if (x > 2.0 * a + 700.0)
        return 1.0;
    return 1.0 - gamma_q_fraction(a, x);
}

/* Median of the gamma distribution with large shape a (Choi 1994, "On the medians of gamma distributions"). */
static double gamma_median_series(double a)
{
    return a - 1.0 / 3.0 + (8.0 / 405.0 + (184.0 / 25515.0 + 2248.0 / 3444525.0 / a) / a) / a;
}

/* Newton's method on P(a, x) = 1/2. The median is within (a - 1/3, a) for a >= 1/2, the series within 3 % of it,
 * and the density is almost flat there, so the steps shrink quadratically from the first. */
double rfi_chi_median(double dof)
{
    assert(dof >= 1);
    const double a = 0.5 * dof;
    double x = gamma_median_series(a);
    if (a < 200.0) {
        for (int i = 0; i < 6; i++) {
            const double density = gamma_prefactor(a, x) * a / x;
            x -= (rfi_gamma_p(a, x) - 0.5) / density;
        }
    }
    return sqrt(2.0 * x);
}

double rfi_chi_density(double dof, double r)
{
    return r > 0.0 ? gamma_prefactor(0.5 * dof, 0.5 * r * r) * dof / r : 0.0;
}

double rfi_normal_cdf(double z)
{
    return 0.5 * erfc(-z * SQRT_HALF);
}

/* Quantile for 0 < p <= 1/2: a rational start (Abramowitz and Stegun 26.2.23, error 4.5e-4), then Halley steps,
 * each of which triples the number of digits. */
static double lower_quantile(double p)
{
    const double t = sqrt(-2.0 * log(p));
    double z = (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
    for (int i = 0; i < 3; i++) {
        /* (cdf - p) / density; the density is taken into the exponent so that far tails do not underflow first */
        const double u = (rfi_normal_cdf(z) - p) * sqrt(TWO_PI) * exp(0.5 * z * z);
        z -= u / (1.0 + 0.5 * z * u);
    }
    return z;
}

double rfi_normal_quantile(double p)
{
    if (!(p > 0.0 && p < 1.0))
        return p == 0.0 ? -HUGE_VAL : (p == 1.0 ? HUGE_VAL : (double)NAN);
    return p <= 0.5 ? lower_quantile(p) : -lower_quantile(1.0 - p);
}
