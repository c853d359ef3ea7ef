/* First eigenvalue and vector of a symmetric matrix, by Lanczos' method with full orthogonalisation: the ends of the spectrum come first, and an
 * eigenvalue that stands out of the others by a third is exact to 1e-12 after 20 steps. */
#include "agg/rules/mref/mref.h"
#include "num/rng.h"

#include <math.h>
#include <string.h>

enum { STEPS = RFI_MREF_SPLIT_STEPS }; /* at most */
enum { PURPOSE_AXIS = 0x61786973 };

/* T = V' A V: alpha on the diagonal, beta beside it. */
typedef struct tridiagonal {
    ptrdiff_t size;
    double alpha[STEPS], beta[STEPS];
} tridiagonal;

/* Four sums side by side, whatever the machine. */
static double product(const double *x, const double *y, ptrdiff_t count)
{
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    ptrdiff_t i = 0;
    for (; i + 4 <= count; i += 4) {
        a += x[i] * y[i];
        b += x[i + 1] * y[i + 1];
        c += x[i + 2] * y[i + 2];
        d += x[i + 3] * y[i + 3];
    }
    a += i < count ? x[i] * y[i] : 0;
    b += i + 1 < count ? x[i + 1] * y[i + 1] : 0;
    c += i + 2 < count ? x[i + 2] * y[i + 2] : 0;
    return (a + c) + (b + d);
}

/* A start that is orthogonal to nothing likely: numbers from 1/2 to 3/2 with signs, by a hash. */
static void start(double *v, ptrdiff_t q)
{
    for (ptrdiff_t i = 0; i < q; i++) {
        uint64_t x = rfi_rng_key((uint64_t)i, PURPOSE_AXIS);
        v[i] = (0.5 + (double)(x >> 11) * 0x1p-53) * (x & 1 ? 1 : -1);
    }
    double length = sqrt(product(v, v, q));
    for (ptrdiff_t i = 0; i < q; i++) {
        v[i] /= length;
    }
}

/* Orthogonal to the first `count` vectors. */
static void orthogonalise(const double *basis, ptrdiff_t count, ptrdiff_t q, double *w)
{
    for (ptrdiff_t s = 0; s < count; s++) {
        double along = product(basis + s * q, w, q);
        for (ptrdiff_t i = 0; i < q; i++) {
            w[i] -= along * basis[s * q + i];
        }
    }
}

static tridiagonal reduce(const double *a, ptrdiff_t q, int steps, double *basis)
{
    tridiagonal t = {.size = 0};
    ptrdiff_t most = q < steps ? q : steps;
    start(basis, q);
    while (t.size < most) {
        const double *v = basis + t.size * q;
        double *w = basis + (t.size + 1) * q;
        for (ptrdiff_t i = 0; i < q; i++) {
            w[i] = product(a + i * q, v, q);
        }
        double size = sqrt(product(w, w, q));
        t.alpha[t.size] = product(w, v, q);
        orthogonalise(basis, t.size + 1, q, w);
        double beta = sqrt(product(w, w, q));
        t.beta[t.size++] = beta;
        if (!(beta > 1e-12 * size)) {
            break;
        }
        for (ptrdiff_t i = 0; i < q; i++) {
            w[i] /= beta;
        }
    }
    return t;
}

/* Is x above all eigenvalues? Then x - T has positive pivots, which are left in d. */
static bool is_above(const tridiagonal *t, double x, double *d)
{
    for (ptrdiff_t s = 0; s < t->size; s++) {
        d[s] = x - t->alpha[s] - (s > 0 ? t->beta[s - 1] * t->beta[s - 1] / d[s - 1] : 0);
        if (!(d[s] > 0)) {
            return false;
        }
    }
    return true;
}

/* Least number above all eigenvalues, with its pivots; 0: there is none, as all are 0 or not finite. */
static double bisect(const tridiagonal *t, double *d)
{
    double most = 0;
    double pivots[STEPS];
    for (ptrdiff_t s = 0; s < t->size; s++) {
        most = fmax(most, fabs(t->alpha[s]) + (s > 0 ? t->beta[s - 1] : 0) + (s + 1 < t->size ? t->beta[s] : 0));
    }
    double low = -most;
    double high = most * (1 + 1e-12);
    if (!is_above(t, high, d)) {
        return 0;
    }
    for (int i = 0; i < 60 && high - low > 1e-13 * most; i++) {
        double middle = (low + high) / 2;
        if (is_above(t, middle, pivots)) {
            high = middle;
            memcpy(d, pivots, sizeof pivots);
        } else {
            low = middle;
        }
    }
    return high;
}

/* y = first vector of T, by inverse iteration with x - T, which is positive definite. */
static void invert(const tridiagonal *t, const double *d, double *y)
{
    for (ptrdiff_t s = 0; s < t->size; s++) {
        y[s] = 1;
    }
    for (int step = 0; step < 3; step++) {
        for (ptrdiff_t s = 1; s < t->size; s++) {
            y[s] += t->beta[s - 1] / d[s - 1] * y[s - 1];
        }
        double squares = 0;
        for (ptrdiff_t s = t->size - 1; s >= 0; s--) {
            y[s] = (y[s] + (s + 1 < t->size ? t->beta[s] * y[s + 1] : 0)) / d[s];
        }
        double largest = 0;
        for (ptrdiff_t s = 0; s < t->size; s++) {
            largest = fmax(largest, fabs(y[s]));
        }
        for (ptrdiff_t s = 0; s < t->size; s++) {
            y[s] /= largest;
            squares += y[s] * y[s];
        }
        for (ptrdiff_t s = 0; s < t->size; s++) {
            y[s] /= sqrt(squares);
        }
    }
}

double rfi_mref_first_vector(const double *a, ptrdiff_t q, int steps, double *vector, double *room)
{
    double d[STEPS] = {0};
    double y[STEPS];
    tridiagonal t = reduce(a, q, steps, room);
    double lambda = bisect(&t, d);
    if (!(lambda > 0)) { /* no more than rounding: nothing to divide by */
        memcpy(vector, room, (size_t)q * sizeof *vector);
        return 0;
    }
    invert(&t, d, y);
    memset(vector, 0, (size_t)q * sizeof *vector);
    for (ptrdiff_t s = 0; s < t.size; s++) {
        for (ptrdiff_t i = 0; i < q; i++) {
            vector[i] += y[s] * room[s * q + i];
        }
    }
    return lambda;
}
