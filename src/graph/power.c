/* The second largest modulus for any A: power iteration on vectors of sum zero, where the eigenvalue 1 plays no part.
 *
 * Such a vector x converges to the space of the largest remaining eigenvalues: one real one, two real ones, or a complex pair. With
 * y = A x, z = A y this is seen from
 *
 *   y = lambda x + r            |r| small: one eigenvalue, lambda
 *   z = s y - t x + rest        |rest| small: two, the roots of mu^2 - s mu + t
 *
 * each fitted by least squares. Three or more of one modulus are never resolved; the growth of x is then reported as an estimate. */
#include "graph/spectrum.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>

typedef struct fit {
    double modulus;
    double miss; /* relative length of what the fit does not explain */
} fit;

/* Takes out the part along p, the only direction that rounding can feed. */
static void make_sum_zero(const double *p, double *x, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        sum += x[k];
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        x[k] -= sum * p[k];
    }
}

static double scale_to_one(double *x, ptrdiff_t n)
{
    double norm = sqrt(rfi_dot(x, x, n));
    for (ptrdiff_t k = 0; k < n && norm > 0; k++) {
        x[k] /= norm;
    }
    return norm;
}

static double larger_root(double s, double t)
{
    double inside = s * s / 4 - t;
    return inside < 0 ? sqrt(t) : fabs(s) / 2 + sqrt(inside);
}

/* |x| = 1; y = A x; z = A y; r is scratch. */
static fit fit_moduli(const double *x, const double *y, const double *z, double *r, ptrdiff_t n)
{
    double lambda = rfi_dot(x, y, n);
    double norm = sqrt(rfi_dot(y, y, n));
    for (ptrdiff_t k = 0; k < n; k++) {
        r[k] = y[k] - lambda * x[k];
    }
    double rr = rfi_dot(r, r, n);
    fit one = {fabs(lambda), sqrt(rr) / norm};
    if (one.miss <= 1e-14) {
        return one;
    }
    double a = rfi_dot(z, x, n);
    double b = rfi_dot(z, r, n) / rr;
    double rest = 0;
    double zz = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        double left = z[k] - a * x[k] - b * r[k];
        rest += left * left;
        zz += z[k] * z[k];
    }
    fit two = {larger_root(b, b * lambda - a), zz > 0 ? sqrt(rest / zz) : 0};
    return one.miss <= two.miss ? one : two;
}

/* vectors: x, y, z, r of n each. */
static void iterate(const rfi_operator *op, const double *p, double *vectors, reef_spectrum *spectrum)
{
    ptrdiff_t n = op->csr->agents;
    double *x = vectors;
    double *y = x + n;
    double *z = y + n;
    double *r = z + n;
    rfi_random_direction(op, x);
    make_sum_zero(p, x, n);
    (void)scale_to_one(x, n);
    rfi_operate(op, x, y);
    make_sum_zero(p, y, n);
    for (spectrum->second_iterations = 1;; spectrum->second_iterations++) {
        double norm = sqrt(rfi_dot(y, y, n));
        if (norm <= 1e-15) { /* A is zero on all of them */
            spectrum->second = 0;
            spectrum->second_converged = true;
            return;
        }
        rfi_operate(op, y, z);
        make_sum_zero(p, z, n);
        fit found = fit_moduli(x, y, z, r, n);
        spectrum->second_converged = found.miss <= op->tolerance;
        if (spectrum->second_converged || spectrum->second_iterations >= op->max_iterations) {
            spectrum->second = fmin(1, spectrum->second_converged ? found.modulus : norm);
            return;
        }
        for (ptrdiff_t k = 0; k < n; k++) {
            x[k] = y[k] / norm;
            y[k] = z[k] / norm;
        }
    }
}

reef_status rfi_second_general(const rfi_operator *op, const double *p, reef_spectrum *spectrum, reef_error *error)
{
    double *vectors = rfi_allocate_many(op->context, op->csr->agents, 4 * sizeof *vectors);
    if (!vectors) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for vectors of %td agents", op->csr->agents);
    }
    iterate(op, p, vectors, spectrum);
    rfi_release(op->context, vectors);
    return REEF_OK;
}
