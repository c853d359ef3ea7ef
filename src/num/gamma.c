/* Gamma variates after Marsaglia and Tsang (2000), "A simple method for generating gamma variables".
 *
 *   d = shape - 1/3, c = 1 / sqrt(9 d), shape >= 1
 *   repeat   x normal, v = (1 + c x)^3, u uniform   until v > 0 and ln u < x^2/2 + d - d v + d ln v
 *   result   d v
 *
 * For shape < 1: Gamma(shape) = Gamma(shape + 1) U^(1 / shape).
 * Normals come from Marsaglia's polar method, which needs a logarithm and a root only.
 */
#include "num/gamma.h"

#include <assert.h>
#include <math.h>

#define LN2_HIGH 0x1.62e42fefa3800p-1 /* ln 2, the last 11 bits zero: products with exponents are exact */
#define LN2_LOW 0x1.ef35793c76730p-45
#define SQRT_HALF 0.70710678118654752440

enum { LOG_TERMS = 24, EXP_TERMS = 18 };

/* x = 2^e m with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh t, t = (m - 1) / (m + 1), |t| < 0.172. */
double rfi_exact_log(double x)
{
    assert(x > 0 && isfinite(x));
    int e = 0;
    double m = frexp(x, &e); /* exact, as ldexp below */
    if (m < SQRT_HALF) {
        m *= 2;
        e--;
    }
    double t = (m - 1) / (m + 1);
    double square = t * t;
    double sum = 0;
    for (int k = LOG_TERMS; k >= 1; k--) {
        sum = (sum + 1.0 / (2 * k + 1)) * square;
    }
    return e * LN2_HIGH + (2 * t + (2 * t * sum + e * LN2_LOW));
}

/* x = k ln 2 + r with |r| <= ln(2) / 2 (k rounded towards zero would do as well, with more terms). */
double rfi_exact_exp(double x)
{
    assert(x <= 0);
    if (!(x > -700)) {
        return 0;
    }
    int k = (int)(x / (LN2_HIGH + LN2_LOW) - 0.5);
    double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    double sum = 1;
    for (int i = EXP_TERMS; i >= 1; i--) {
        sum = 1 + sum * r / i;
    }
    return ldexp(sum, k);
}

static double polar_normal(rfi_rng *rng)
{
    double a;
    double square;
    do {
        a = 2 * rfi_rng_uniform(rng) - 1;
        double b = 2 * rfi_rng_uniform(rng) - 1;
        square = a * a + b * b;
    } while (square >= 1 || square == 0);
    return a * sqrt(-2 * rfi_exact_log(square) / square);
}

double rfi_rng_log_gamma(rfi_rng *rng, double shape)
{
    double boost = 0;
    if (shape < 1) {
        boost = rfi_exact_log(rfi_rng_uniform(rng)) / shape;
        shape += 1;
    }
    double d = shape - 1.0 / 3;
    double c = 1 / sqrt(9 * d);
    for (;;) {
        double x = polar_normal(rng);
        double root = 1 + c * x;
        double u = rfi_rng_uniform(rng);
        if (root <= 0) {
            continue;
        }
        double v = root * root * root;
        double log_v = 3 * rfi_exact_log(root);
        if (rfi_exact_log(u) < 0.5 * x * x + d * (1 - v + log_v)) {
            return rfi_exact_log(d) + log_v + boost;
        }
    }
}

void rfi_rng_dirichlet(rfi_rng *rng, double alpha, double *share, ptrdiff_t n)
{
    assert(n >= 1 && alpha > 0);
    double largest = -INFINITY;
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        share[i] = rfi_rng_log_gamma(rng, alpha);
        largest = share[i] > largest ? share[i] : largest;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        share[i] = rfi_exact_exp(share[i] - largest);
        sum += share[i];
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        share[i] /= sum;
    }
}
