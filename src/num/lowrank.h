/* A matrix as a product of two thin ones.
 *
 *   R  rows x columns, the matrix     S  columns near the span of those of R
 *   Q  orthonormal, the span of S     T = Q' R     T T' = U diag(s^2) U'
 *   R ~ (Q U_r s_r^(1/2)) (s_r^(-1/2) U_r' T),  the r largest s
 *
 * This is the truncated singular value decomposition of Q Q' R: the best approximation of rank r with columns in the span of S. For a sum of
 * products whose left factors are all in S, Q Q' R = R, and it is the best of all. Otherwise it is a start, from which steps of orthogonal
 * iteration (S = R Z', Z the leading directions on the right) lead to it. Only T, as high as S is wide, is decomposed, never R: first T T', whose
 * eigenvalues do not resolve s below 1e-8 of the largest, then T itself by one-sided Jacobi rotations.
 * docs/decisions/0006-own-singular-values.md says why not LAPACK. */
#ifndef RFI_NUM_LOWRANK_H
#define RFI_NUM_LOWRANK_H

#include <reef/context.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct rfi_lowrank {
    ptrdiff_t rows, columns, rank;
    const void *numbers; /* rows x columns, finite */
    bool wide;           /* they are double, else float */
    ptrdiff_t span;      /* of S */
    double *basis;       /* span x rows: the columns of S one after the other; overwritten */
} rfi_lowrank;

/* How large the matrix is and how far the product is off, both by the root of the sum of squares. */
typedef struct rfi_lowrank_error {
    double size, miss;
} rfi_lowrank_error;

/* left: rows x rank, right: rank x columns, of about the same size. If R has a lower rank than asked for, columns of `left` are 0 and the rows of
 * `right` at their side some of no meaning but not 0, so that whoever trains the factors further is not stuck at 0 in both. */
reef_status rfi_lowrank_factor(const reef_context *context, const rfi_lowrank *problem, double *left, double *right,
                               rfi_lowrank_error *far, reef_error *error);

/* Eigenvalues of a symmetric matrix (order x order, destroyed) on its diagonal, the largest first, and its eigenvectors as the rows of
 * `vectors`; Jacobi's rotations. */
void rfi_jacobi(double *matrix, ptrdiff_t order, double *vectors);

#endif
