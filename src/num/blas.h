/* Dense products in single precision, row-major: BLAS if the library was built with one (-DREEF_BLAS=ON|OFF|AUTO), plain C
 * loops otherwise.
 *
 * The bits of a result may differ between BLAS and plain loops, between two BLAS libraries, and for one BLAS between
 * machines, since each sums in its own order. For one build on one machine the same call gives the same bits. In the plain
 * loops an element's sum runs over k in ascending order and does not depend on m, n or its place.
 */
#ifndef RFI_NUM_BLAS_H
#define RFI_NUM_BLAS_H

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>

/* "OpenBLAS", "BLAS" or "plain C". */
const char *rfi_blas_name(void);

/* Loads the BLAS, if the library was built with one, and makes OpenBLAS use only the calling thread, as is right within threads of
 * our own. To be called before the first product by whoever creates something that computes with them; from any thread, any number of
 * times. REEF_E_NOMEM: `ulimit -v` leaves too little for it; REEF_E_FILE: it is not there. Never the plain loops instead: bits must not
 * depend on what happens to be there. */
reef_status rfi_blas_load(reef_error *error);

/* C = alpha op(A) op(B) + beta C, op(A) m x k, op(B) k x n, C m x n; op transposes if `ta` (`tb`). lda, ldb, ldc: elements
 * from one stored row to the next. C is not read if beta = 0, A and B are not read if alpha = 0 or k = 0. C must not overlap
 * A or B. */
void rfi_sgemm(bool ta, bool tb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha, const float *a, ptrdiff_t lda,
               const float *b, ptrdiff_t ldb, float beta, float *c, ptrdiff_t ldc);
/* y = alpha op(A) x + beta y, A stored m x n; x and y contiguous. y is not read if beta = 0. */
void rfi_sgemv(bool ta, ptrdiff_t m, ptrdiff_t n, float alpha, const float *a, ptrdiff_t lda, const float *x,
               float beta, float *y);

/* The plain loops, always there: for sizes a BLAS cannot take, and for tests. */
void rfi_plain_sgemm(bool ta, bool tb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha, const float *a,
                     ptrdiff_t lda, const float *b, ptrdiff_t ldb, float beta, float *c, ptrdiff_t ldc);
void rfi_plain_sgemv(bool ta, ptrdiff_t m, ptrdiff_t n, float alpha, const float *a, ptrdiff_t lda, const float *x,
                     float beta, float *y);

#endif
