/* The second largest modulus for reversible A, by Lanczos.
 *
 * B = D^-1/2 A D^1/2 with D = diag(p) is symmetric and has the eigenvalues of A; that of 1 belongs to sqrt(p), which is projected out
 * of every vector. After m steps the ends of the spectrum are those of an m x m tridiagonal matrix T (alpha, beta), and an eigenvalue
 * theta of T whose eigenvector has last component s is within beta_m |s| of one of B. Vectors are not reorthogonalised: this produces
 * copies of converged eigenvalues, which do no harm at the ends. */
#include "graph/spectrum.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>

/* Below this the Krylov space is exhausted: what is left is rounding (the norm of B is 1). */
#define EXHAUSTED 1e-13

/* Eigenvalues of a symmetric tridiagonal matrix by implicit QL (Bowdler, Martin, Reinsch, Wilkinson 1968): d diagonal -> eigenvalues,
 * e[0..n-2] beside it (destroyed, n places), z a row vector that is turned along. False if it does not converge. */
static bool tridiagonal(ptrdiff_t n, double *d, double *e, double *z)
{
    enum { SWEEPS = 60 };
    e[n - 1] = 0;
    for (ptrdiff_t l = 0; l < n; l++) {
        for (int sweep = 0;; sweep++) {
            ptrdiff_t m = l;
            while (m < n - 1 && fabs(e[m]) > 1e-16 * (fabs(d[m]) + fabs(d[m + 1]))) {
                m++;
            }
            if (m == l) {
                break;
            }
            if (sweep == SWEEPS) {
                return false;
            }
            double g = (d[l + 1] - d[l]) / (2 * e[l]);
            g = d[m] - d[l] + e[l] / (g + copysign(hypot(g, 1), g));
            double s = 1;
            double c = 1;
            double shift = 0;
            for (ptrdiff_t i = m - 1; i >= l; i--) {
                double f = s * e[i];
                double b = c * e[i];
                double r = hypot(f, g);
                e[i + 1] = r;
                s = r > 0 ? f / r : 0;
                c = r > 0 ? g / r : 1;
                g = d[i + 1] - shift;
                r = (d[i] - g) * s + 2 * c * b;
                shift = s * r;
                d[i + 1] = g + shift;
                g = c * r - b;
                double turned = z[i + 1];
                z[i + 1] = s * z[i] + c * turned;
                z[i] = c * z[i] - s * turned;
            }
            d[l] -= shift;
            e[l] = g;
            e[m] = 0;
        }
    }
    return true;
}

typedef struct lanczos {
    const rfi_operator *op;
    double *root;                /* sqrt(p) */
    double *before, *now, *next; /* K each */
    double *alpha, *beta;        /* T so far; beta[m - 1] leads out of it */
    double *d, *e, *z;           /* copies to solve */
    ptrdiff_t steps, most;
} lanczos;

static void project(const lanczos *z, double *x)
{
    ptrdiff_t n = z->op->csr->agents;
    double along = rfi_dot(z->root, x, n);
    for (ptrdiff_t k = 0; k < n; k++) {
        x[k] -= along * z->root[k];
    }
}

/* next = B now. */
static void multiply(const lanczos *z, double *scratch)
{
    ptrdiff_t n = z->op->csr->agents;
    for (ptrdiff_t k = 0; k < n; k++) {
        scratch[k] = z->now[k] * z->root[k];
    }
    rfi_operate(z->op, scratch, z->next);
    for (ptrdiff_t k = 0; k < n; k++) {
        z->next[k] = z->root[k] > 0 ? z->next[k] / z->root[k] : 0;
    }
}

/* One step of the recurrence; returns the new beta. */
static double advance(lanczos *z, double *scratch)
{
    ptrdiff_t n = z->op->csr->agents;
    double last = z->steps > 0 ? z->beta[z->steps - 1] : 0;
    multiply(z, scratch);
    double alpha = rfi_dot(z->now, z->next, n);
    for (ptrdiff_t k = 0; k < n; k++) {
        z->next[k] -= alpha * z->now[k] + last * z->before[k];
    }
    project(z, z->next);
    double beta = sqrt(rfi_dot(z->next, z->next, n));
    for (ptrdiff_t k = 0; k < n; k++) {
        z->before[k] = z->now[k];
        z->now[k] = beta > EXHAUSTED ? z->next[k] / beta : 0;
    }
    z->alpha[z->steps] = alpha;
    z->beta[z->steps] = beta;
    z->steps++;
    return beta;
}

/* The largest modulus of T and how far it may be off. */
static bool ritz(const lanczos *z, double *modulus, double *miss)
{
    ptrdiff_t m = z->steps;
    for (ptrdiff_t i = 0; i < m; i++) {
        z->d[i] = z->alpha[i];
        z->e[i] = z->beta[i];
        z->z[i] = i == m - 1;
    }
    if (!tridiagonal(m, z->d, z->e, z->z)) {
        return false;
    }
    *modulus = -1;
    for (ptrdiff_t i = 0; i < m; i++) {
        if (fabs(z->d[i]) > *modulus) {
            *modulus = fabs(z->d[i]);
            *miss = z->beta[m - 1] * fabs(z->z[i]);
        }
    }
    return true;
}

static void iterate(lanczos *z, double *scratch, reef_spectrum *spectrum)
{
    ptrdiff_t next_look = 8;
    for (;;) {
        double miss = INFINITY;
        bool exhausted = advance(z, scratch) <= EXHAUSTED;
        bool last = z->steps == z->most;
        if (!exhausted && !last && z->steps < next_look) {
            continue;
        }
        next_look = z->steps + z->steps / 4 + 1;
        bool solved = ritz(z, &spectrum->second, &miss);
        spectrum->second_converged = solved && (exhausted || miss <= z->op->tolerance);
        if (spectrum->second_converged || exhausted || last) {
            break;
        }
    }
    spectrum->second = fmin(spectrum->second, 1);
    spectrum->second_iterations = z->steps;
}

static void begin(lanczos *z, const double *p)
{
    ptrdiff_t n = z->op->csr->agents;
    for (ptrdiff_t k = 0; k < n; k++) {
        z->root[k] = sqrt(p[k]);
        z->before[k] = 0;
    }
    rfi_random_direction(z->op, z->now);
    project(z, z->now);
    double norm = sqrt(rfi_dot(z->now, z->now, n));
    for (ptrdiff_t k = 0; k < n; k++) {
        z->now[k] /= norm;
    }
}

reef_status rfi_second_reversible(const rfi_operator *op, const double *p, reef_spectrum *spectrum, reef_error *error)
{
    ptrdiff_t n = op->csr->agents;
    ptrdiff_t enough = 4 * op->honest + 100; /* without rounding, as many steps as agents would do */
    ptrdiff_t steps = op->max_iterations < enough ? op->max_iterations : enough;
    double *vectors = rfi_allocate_many(op->context, n, 5 * sizeof *vectors);
    double *small = rfi_allocate_many(op->context, steps, 5 * sizeof *small);
    reef_status status = REEF_OK;
    if (vectors && small) {
        lanczos z = {.op = op,
                     .most = steps,
                     .root = vectors,
                     .before = vectors + n,
                     .now = vectors + 2 * n,
                     .next = vectors + 3 * n,
                     .alpha = small,
                     .beta = small + steps,
                     .d = small + 2 * steps,
                     .e = small + 3 * steps,
                     .z = small + 4 * steps};
        begin(&z, p);
        iterate(&z, vectors + 4 * n, spectrum);
    } else {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory for vectors of %td agents", n);
    }
    rfi_release(op->context, vectors);
    rfi_release(op->context, small);
    return status;
}
