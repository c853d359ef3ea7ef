/* Internals of the problem lms: linear regression with data generated as it is needed.
 *
 *   u ~ N(0, R_k)                    features, M numbers
 *   d = u' w_k^o + v                 target
 *   v ~ N(0, sigma_k^2)              noise; with probability q of variance sigma_out^2 instead
 *   J_k(w) = 1/2 E (d - u' w)^2      gradient of a sample: -u (d - u' w)
 *   w_k^o = w^o + h n_k              own optimum, n_k ~ N(0, I)
 *   w^o(i) = w^o(i-1) + drift n_i    in round i; w^o(0) is the same in all repetitions
 */
#ifndef RFI_PROBLEM_LMS_H
#define RFI_PROBLEM_LMS_H

#include "num/lanes.h"

#include <reef/problem.h>

enum { RFI_LMS_IDENTITY, RFI_LMS_DIAGONAL, RFI_LMS_AR1 };
enum { RFI_LMS_SQUARE, RFI_LMS_HUBER };

typedef struct rfi_lms_params {
    int64_t dimension;
    double noise, noise_spread;
    int covariance;
    double spread, rho;
    char optimum[REEF_TEXT_SIZE]; /* random, ones, axis, or M numbers */
    double norm, heterogeneity, drift;
    double outliers, outlier_noise;
    int loss;
    double threshold;
} rfi_lms_params;

typedef struct rfi_lms {
    const reef_context *context;
    rfi_lms_params params;
    uint64_t seed;
    ptrdiff_t agents; /* K */
    ptrdiff_t width;  /* M */
    const rfi_lanes *lanes;
    double *optimum; /* M: w^o(0) */
    float common_sigma;
    float *sigma;       /* K, or NULL: all alike */
    float *root;        /* K x M: square roots of the diagonals of R_k, or NULL: covariance is not diagonal */
    float *offset;      /* K x M: h n_k, or NULL: h = 0 */
    float contaminated; /* a standard normal below this marks an outlier; -inf: none */
} rfi_lms;

/* Standard deviation of the (usual) noise of agent k, as data are made with it. */
float rfi_lms_sigma(const rfi_lms *lms, ptrdiff_t k);
/* Most coordinates of w^o at once. */
enum { RFI_LMS_PART = 64 };
/* w^o(round), coordinates from..from+count-1; from a multiple of 4, count up to RFI_LMS_PART. */
void rfi_lms_optimum(const rfi_lms *lms, int64_t round, ptrdiff_t from, ptrdiff_t count, double *w);

/* Entries of the problem. */
size_t rfi_lms_work_size(const void *state, ptrdiff_t size, ptrdiff_t lanes);
void rfi_lms_gradients(const void *state, const reef_batch *batch);
void rfi_lms_minimiser(const void *state, ptrdiff_t agent, const double *p, int64_t round, ptrdiff_t repetition,
                       double *w);
double rfi_lms_excess(const void *state, ptrdiff_t agent, int64_t round, ptrdiff_t repetition, const double *w);
double rfi_lms_theory(const void *state, const double *p, const double *mu, ptrdiff_t size);
double rfi_lms_variance(const void *state, ptrdiff_t agent);

#endif
