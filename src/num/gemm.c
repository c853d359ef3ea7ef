/* Products in plain C, written so that the compiler vectorises them.
 *
 * B is taken in blocks of DEPTH x WIDTH that stay in the first cache; a transposed B is turned round into a block of its own
 * first. Within a block the inner loop runs along a row of C: c(i, :) += alpha a(i, k) b(k, :), ROWS rows at a time so that
 * each value of B serves several.
 */
#include "num/blas.h"

enum { DEPTH = 32, WIDTH = 128, ROWS = 4 };

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

/* C *= beta, without reading C for beta = 0. */
static void scale(ptrdiff_t m, ptrdiff_t n, float beta, float *c, ptrdiff_t ldc)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            c[i * ldc + j] = beta == 0 ? 0 : beta * c[i * ldc + j];
        }
    }
}

/* One block: rows i0..i1-1 of C, `depth` steps of k from k0, `width` columns. b points at the block, c at its column. */
typedef struct block {
    bool ta;
    float alpha;
    const float *a;
    ptrdiff_t lda;
    ptrdiff_t k0, depth, width;
    const float *b;
    ptrdiff_t ldb;
    float *c;
    ptrdiff_t ldc;
} block;

static float element_a(const block *t, ptrdiff_t i, ptrdiff_t k)
{
    return t->alpha * (t->ta ? t->a[k * t->lda + i] : t->a[i * t->lda + k]);
}

static void four_rows(const block *t, ptrdiff_t i)
{
    float *restrict c0 = t->c + i * t->ldc;
    float *restrict c1 = c0 + t->ldc;
    float *restrict c2 = c1 + t->ldc;
    float *restrict c3 = c2 + t->ldc;
    for (ptrdiff_t k = 0; k < t->depth; k++) {
        const float *restrict b = t->b + k * t->ldb;
        float a0 = element_a(t, i, t->k0 + k);
        float a1 = element_a(t, i + 1, t->k0 + k);
        float a2 = element_a(t, i + 2, t->k0 + k);
        float a3 = element_a(t, i + 3, t->k0 + k);
        for (ptrdiff_t j = 0; j < t->width; j++) {
            c0[j] += a0 * b[j];
            c1[j] += a1 * b[j];
            c2[j] += a2 * b[j];
            c3[j] += a3 * b[j];
        }
    }
}

static void one_row(const block *t, ptrdiff_t i)
{
    float *restrict c = t->c + i * t->ldc;
    for (ptrdiff_t k = 0; k < t->depth; k++) {
        const float *restrict b = t->b + k * t->ldb;
        float a = element_a(t, i, t->k0 + k);
        for (ptrdiff_t j = 0; j < t->width; j++) {
            c[j] += a * b[j];
        }
    }
}

static void multiply(const block *t, ptrdiff_t m)
{
    ptrdiff_t i = 0;
    for (; i + ROWS <= m; i += ROWS) {
        four_rows(t, i);
    }
    for (; i < m; i++) {
        one_row(t, i);
    }
}

static void turn(const float *b, ptrdiff_t ldb, ptrdiff_t depth, ptrdiff_t width, float *turned)
{
    for (ptrdiff_t j = 0; j < width; j++) {
        for (ptrdiff_t k = 0; k < depth; k++) {
            turned[k * WIDTH + j] = b[j * ldb + k];
        }
    }
}

void rfi_plain_sgemm(bool ta, bool tb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha, const float *a,
                     ptrdiff_t lda, const float *b, ptrdiff_t ldb, float beta, float *c, ptrdiff_t ldc)
{
    float turned[DEPTH * WIDTH];
    if (beta != 1) {
        scale(m, n, beta, c, ldc);
    }
    for (ptrdiff_t j0 = 0; alpha != 0 && j0 < n; j0 += WIDTH) {
        ptrdiff_t width = least(WIDTH, n - j0);
        for (ptrdiff_t k0 = 0; k0 < k; k0 += DEPTH) {
            ptrdiff_t depth = least(DEPTH, k - k0);
            const float *part = tb ? b + j0 * ldb + k0 : b + k0 * ldb + j0;
            if (tb) {
                turn(part, ldb, depth, width, turned);
            }
            block t = {ta, alpha, a, lda, k0, depth, width, tb ? turned : part, tb ? WIDTH : ldb, c + j0, ldc};
            multiply(&t, m);
        }
    }
}

void rfi_plain_sgemv(bool ta, ptrdiff_t m, ptrdiff_t n, float alpha, const float *a, ptrdiff_t lda, const float *x,
                     float beta, float *y)
{
    ptrdiff_t rows = ta ? n : m;
    ptrdiff_t depth = ta ? m : n;
    if (ta) { /* y' = x' A runs along the rows of A */
        rfi_plain_sgemm(false, false, 1, rows, depth, alpha, x, depth, a, lda, beta, y, rows);
    } else {
        rfi_plain_sgemm(false, false, rows, 1, depth, alpha, a, lda, x, 1, beta, y, 1);
    }
}
