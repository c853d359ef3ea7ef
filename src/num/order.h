/* Order statistics of one column: sorting, medians, weighted medians.
 *
 * No value is NaN: callers remove those first. Infinities have their place in the order (squared distances to far rows).
 * None of them allocates. Notation: n values x_0..x_{n-1}, weights a_0..a_{n-1} > 0.
 */
#ifndef RFI_NUM_ORDER_H
#define RFI_NUM_ORDER_H

#include <stddef.h>

/* What the median of an even number of values is: the mean of the two middle ones
 * (ours, numpy, ByzFL), the lower one (torch.median) or the upper one. */
typedef enum rfi_median_kind { RFI_MEDIAN_AVERAGE, RFI_MEDIAN_LOWER, RFI_MEDIAN_UPPER } rfi_median_kind;

/* Sorts x ascending, in place, O(n log n) in the worst case. */
void rfi_sort(double *x, ptrdiff_t n);

/* The same, carrying the companions a[i] of x[i] along; not stable. */
void rfi_sort_pairs(double *x, double *a, ptrdiff_t n);

/* order becomes the indices 0..n-1 sorted by x ascending; equal values keep index order.
 * O(n log n) in the worst case. spare holds n further indices. */
void rfi_argsort(const double *x, ptrdiff_t n, ptrdiff_t *order, ptrdiff_t *spare);

/* Median of n >= 1 values; reorders x. O(n log n) at worst. */
double rfi_median(double *x, ptrdiff_t n, rfi_median_kind kind);

/* Median of values that are sorted already. */
double rfi_median_sorted(const double *x, ptrdiff_t n, rfi_median_kind kind);

/* Relative tolerance with which half the weight mass is compared. */
#define RFI_HALF_TOL_F64 1e-12
#define RFI_HALF_TOL_F32 1e-6

/* Indices into `order` of the lower and upper weighted median: the first j whose cumulative
 * weight C_j >= W/2 - t, and the first with C_j > W/2 + t, where t = half_tol * W.
 * order sorts x ascending (rfi_argsort), or is NULL when x is sorted; a may have any positive sum W. */
void rfi_wmedian_ranks(const double *a, const ptrdiff_t *order, ptrdiff_t n, double half_tol, ptrdiff_t *lower,
                       ptrdiff_t *upper);

/* Weighted median in the midpoint form (or its lower / upper end). With equal weights it is
 * the ordinary median bit for bit; integer weights equal replication. */
double rfi_wmedian(const double *x, const double *a, const ptrdiff_t *order, ptrdiff_t n, double half_tol,
                   rfi_median_kind kind);

/* 0.5 a + 0.5 b, exact for a == b and never overflowing. */
double rfi_midpoint(double a, double b);

#endif
