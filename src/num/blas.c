/* The one file that knows a BLAS. cmake/ReefBlas.cmake defines REEF_HAVE_CBLAS for it if there is one. */
#include "num/blas.h"

#ifdef REEF_HAVE_CBLAS

#include <cblas.h>
#include <limits.h>

/* Weak: there in OpenBLAS, NULL with any other. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

const char *rfi_blas_name(void)
{
    return openblas_set_num_threads ? "OpenBLAS" : "BLAS";
}

void rfi_blas_single_thread(void)
{
    if (openblas_set_num_threads) {
        openblas_set_num_threads(1);
    }
}

static bool fits(ptrdiff_t a, ptrdiff_t b, ptrdiff_t c)
{
    return a <= INT_MAX && b <= INT_MAX && c <= INT_MAX;
}

static CBLAS_TRANSPOSE transpose(bool yes)
{
    return yes ? CblasTrans : CblasNoTrans;
}

void rfi_sgemm(bool ta, bool tb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha, const float *a, ptrdiff_t lda,
               const float *b, ptrdiff_t ldb, float beta, float *c, ptrdiff_t ldc)
{
    /* Some BLAS return at once for k = 0 without scaling C, and none takes sizes beyond int. */
    if (k < 1 || alpha == 0 || !fits(m, n, k) || !fits(lda, ldb, ldc)) {
        rfi_plain_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    cblas_sgemm(CblasRowMajor, transpose(ta), transpose(tb), (int)m, (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb,
                beta, c, (int)ldc);
}

void rfi_sgemv(bool ta, ptrdiff_t m, ptrdiff_t n, float alpha, const float *a, ptrdiff_t lda, const float *x,
               float beta, float *y)
{
    if (m < 1 || n < 1 || alpha == 0 || !fits(m, n, lda)) {
        rfi_plain_sgemv(ta, m, n, alpha, a, lda, x, beta, y);
        return;
    }
    /* Reference BLAS multiplies y by beta = 0 in some versions; clearing it first makes NaN in y harmless everywhere. */
    for (ptrdiff_t i = 0; beta == 0 && i < (ta ? n : m); i++) {
        y[i] = 0;
    }
    cblas_sgemv(CblasRowMajor, transpose(ta), (int)m, (int)n, alpha, a, (int)lda, x, 1, beta, y, 1);
}

#else

const char *rfi_blas_name(void)
{
    return "plain C";
}

void rfi_blas_single_thread(void)
{
}

void rfi_sgemm(bool ta, bool tb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha, const float *a, ptrdiff_t lda,
               const float *b, ptrdiff_t ldb, float beta, float *c, ptrdiff_t ldc)
{
    rfi_plain_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void rfi_sgemv(bool ta, ptrdiff_t m, ptrdiff_t n, float alpha, const float *a, ptrdiff_t lda, const float *x,
               float beta, float *y)
{
    rfi_plain_sgemv(ta, m, n, alpha, a, lda, x, beta, y);
}

#endif
