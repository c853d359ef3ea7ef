/* Every rule a second time: straight from its definition, on explicit matrices, without regard to speed, overflow or
 * memory. What the library computes in Gram space or tile by tile is compared with this. */
#ifndef TESTS_SUPPORT_ORACLE_H
#define TESTS_SUPPORT_ORACLE_H

#include "support/trial.h"

typedef struct matrix {
    ptrdiff_t n, m;
    double x[ROWS_MAX][LENGTH_MAX];
    double a[ROWS_MAX]; /* weights, sum 1 */
} matrix;

void oracle_take(const trial *t, matrix *x);
/* The rows of x as a trial: float64, with its weights if they differ. */
void oracle_give(const matrix *x, trial *t);

double oracle_distance2(const double *x, const double *y, ptrdiff_t m);

/* --- rules; out has m numbers --- */

/* Mean by weights of the rows marked. */
void oracle_mean_of(const matrix *x, const bool *in, double *out);
void oracle_mean(const matrix *x, double *out);
/* even: 0 average, -1 lower, 1 upper */
void oracle_median(const matrix *x, int even, double *out);
void oracle_weighted_median(const matrix *x, double *out);
/* self: row that is always kept, or -1 */
void oracle_trimmed(const matrix *x, ptrdiff_t f, ptrdiff_t self, double *out);
void oracle_meamed(const matrix *x, ptrdiff_t f, double *out);
/* mean of the m rows with the best scores over `neighbours` nearest others */
void oracle_krum(const matrix *x, ptrdiff_t neighbours, ptrdiff_t m, double *out);
void oracle_bulyan(const matrix *x, ptrdiff_t f, double *out);
/* Largest squared distance between two of the rows marked. */
double oracle_diameter2(const matrix *x, const bool *in);
/* All subsets, n <= 16: the smallest squared diameter of n - f rows, and the first set (ROWS_MAX marks) that has it. */
double oracle_mda(const matrix *x, ptrdiff_t f, bool *first);
void oracle_geomed_byzfl(const matrix *x, double nu, int steps, double *out);
/* Length of the gradient of sum a ||x - y|| at y, less the weight of a row that y sits on: <= 0 at the optimum. */
double oracle_geomed_gradient(const matrix *x, const double *y);
/* L steps of centered clipping, in place */
void oracle_cclip(const matrix *x, double tau, int steps, double *v);
/* Tukey (c > 0) or Huber (c < 0: constant -c) M-estimate by plain reweighting, scale factor * MAD by count */
void oracle_mest(const matrix *x, double c, double factor, double *out);
/* VREF over coordinates [from, to) with the given kappa, to convergence; fills in out[from..to) and the weights b */
void oracle_vref(const matrix *x, ptrdiff_t from, ptrdiff_t to, double kappa, double *out, double *b);
/* max(c_B / chi_B, 2, sqrt(1 + 8 max a)) */
double oracle_kappa(const matrix *x, ptrdiff_t block, double efficiency);

/* --- pre-aggregators --- */

void oracle_nnm(const matrix *x, ptrdiff_t f, matrix *to);
void oracle_clip(const matrix *x, double c, matrix *to);
void oracle_arc(const matrix *x, ptrdiff_t f, matrix *to);
/* buckets from the rule's own mixing matrix, which test_bucketing.c checks */
void oracle_bucketing(const matrix *x, const char *spec, int64_t round, matrix *to);

#endif
