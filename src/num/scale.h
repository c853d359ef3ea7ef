/* Robust scales of one column: MAD in three normalisations, Qn, and the S-scale. */
#ifndef RFI_NUM_SCALE_H
#define RFI_NUM_SCALE_H

#include "num/order.h"

#include <stddef.h>

typedef enum rfi_scale_kind {
    RFI_SCALE_MAD,        /* 1.4815 MAD: RobustSP's and the paper's constant */
    RFI_SCALE_MAD_EXACT,  /* 1.4826.. MAD: consistent at the Gaussian */
    RFI_SCALE_MAD_FINITE, /* k_n MAD: unbiased at the Gaussian for this n */
    RFI_SCALE_QN,         /* Rousseeuw and Croux (1993), with their finite-sample factors */
    RFI_SCALE_S           /* Tukey biweight S-scale, 50 % breakdown: makes REF a true MM-estimate */
} rfi_scale_kind;

/* The factor that turns a MAD into a scale: 1.4815, 1.4826.. or k_n. n = effective number of values, any real
 * number; below 2 it counts as 2. The kinds that are not MADs get 1.4826.. . */
double rfi_mad_factor(rfi_scale_kind kind, double n);

/* median |x - centre| (midpoint median), not normalised. spare: n doubles. */
double rfi_mad(const double *x, ptrdiff_t n, double centre, double *spare);

/* Weighted MAD, not normalised. spare: n doubles; order, order_spare: n indices each. */
double rfi_wmad(const double *x, const double *a, ptrdiff_t n, double centre, double half_tol, double *spare,
                ptrdiff_t *order, ptrdiff_t *order_spare);

/* Qn of n >= 2 values, O(n log n) plus O(n) per bit of the answer; n = 1: 0. spare: n doubles. */
double rfi_qn(const double *x, ptrdiff_t n, double *spare);

/* S-estimate of location and scale (Tukey biweight, c0 = 1.54764, b = 1/2): the pair that
 * minimises the M-scale, searched from the median and from the middle of the shortest half.
 * a: weights > 0 with any sum, or NULL for equal ones. Returns the scale and stores the
 * location; where at least half of the weight coincides the scale is 0 and the location is that
 * value (midway between two of them). spare: 2 n doubles. */
double rfi_s_estimate(const double *x, const double *a, ptrdiff_t n, double *location, double *spare);

#endif
