/* Arithmetic on affine combinations of points, given by their coefficients: what lets an iteration over vectors of any length
 * run on the Gram matrix alone. Coefficients are w_p >= 0 with sum 1 over points->count points; far points have none. */
#ifndef RFI_AGG_RULES_GRAMSPACE_H
#define RFI_AGG_RULES_GRAMSPACE_H

#include <reef/rule.h>

/* product = G w; returns w'G w. */
double rfi_gram_product(const reef_points *points, const double *w, double *product);

/* distance[l] = ||x_l - sum_p w_p p|| for the n rows (+Inf for far ones). product: count doubles of scratch. */
void rfi_gram_distances(const reef_points *points, const double *w, double *product, double *distance);

/* The same from product = G w and square = w'G w. */
void rfi_gram_spread(const reef_points *points, const double *product, double square, double *distance);

/* || sum_p (v_p - w_p) p ||. spare: 2 count doubles. */
double rfi_gram_step(const reef_points *points, const double *v, const double *w, double *spare);

#endif
