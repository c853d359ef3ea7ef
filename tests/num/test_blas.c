/* Products against sums in double precision, element by element: BLAS (if built in) and the plain loops, all transposes, odd
 * sizes, padded rows, special alpha and beta. */
#include "num/blas.h"
#include "num/rng.h"
#include "support/alloc.h"
#include "support/check.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef void gemm(bool, bool, ptrdiff_t, ptrdiff_t, ptrdiff_t, float, const float *, ptrdiff_t, const float *,
                  ptrdiff_t, float, float *, ptrdiff_t);
typedef void gemv(bool, ptrdiff_t, ptrdiff_t, float, const float *, ptrdiff_t, const float *, float, float *);
static gemm *const gemms[] = {rfi_sgemm, rfi_plain_sgemm};
static gemv *const gemvs[] = {rfi_sgemv, rfi_plain_sgemv};

enum { LARGEST = 150 };
static float a[LARGEST * LARGEST], b[LARGEST * LARGEST], c[LARGEST * LARGEST], before[LARGEST * LARGEST];

static void fill(rfi_rng *rng, float *x)
{
    for (int i = 0; i < LARGEST * LARGEST; i++) {
        x[i] = (float)rfi_rng_normal(rng);
    }
}

/* One element: its value and a bound on what rounding may do to it. */
static double element(bool ta, bool tb, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k, ptrdiff_t lda, ptrdiff_t ldb,
                      double *bound)
{
    double sum = 0;
    *bound = 0;
    for (ptrdiff_t l = 0; l < k; l++) {
        double product =
            (double)(ta ? a[l * lda + i] : a[i * lda + l]) * (double)(tb ? b[j * ldb + l] : b[l * ldb + j]);
        sum += product;
        *bound += fabs(product);
    }
    *bound *= (double)(k + 2) * (double)FLT_EPSILON;
    return sum;
}

static void check_case(gemm *multiply, int transposes, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha, float beta)
{
    bool ta = transposes & 1, tb = transposes & 2;
    ptrdiff_t lda = (ta ? m : k) + 1, ldb = (tb ? k : n) + 2, ldc = n + 3;
    memcpy(before, c, sizeof c);
    multiply(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    for (ptrdiff_t i = 0; i < LARGEST * LARGEST; i++) {
        ptrdiff_t row = i / ldc, column = i % ldc;
        if (row >= m || column >= n) {
            CHECK(c[i] == before[i], "%td x %td x %td: element %td outside of C is written", m, n, k, i);
            continue;
        }
        double bound = 0;
        double old = beta == 0 ? 0 : (double)beta * (double)before[i];
        double want = (double)alpha * element(ta, tb, row, column, k, lda, ldb, &bound) + old;
        bound = fabs((double)alpha) * bound + 4 * (double)FLT_EPSILON * fabs(old) + 1e-30;
        CHECK(fabs((double)c[i] - want) <= bound, "%td x %td x %td, transposes %d, alpha %g, beta %g: %g instead of %g",
              m, n, k, transposes, (double)alpha, (double)beta, (double)c[i], want);
    }
}

static void products(void **state)
{
    static const ptrdiff_t sizes[][3] = {{1, 1, 1},   {1, 7, 3},    {5, 1, 9},    {4, 4, 4},     {3, 10, 64},
                                         {7, 13, 33}, {32, 10, 65}, {6, 129, 31}, {9, 140, 100}, {130, 5, 1},
                                         {2, 3, 0},   {0, 3, 2},    {3, 0, 2}};
    static const float scales[][2] = {{1, 0}, {1, 1}, {-0.5F, 2}, {0, 3}, {0, 0}, {2, 0.25F}};
    rfi_rng rng;
    (void)state;
    assert_int_equal(rfi_blas_load(NULL), REEF_OK);
    rfi_rng_init(&rng, 3, 1, 0, 0, 0);
    fill(&rng, a);
    fill(&rng, b);
    for (ptrdiff_t g = 0; g < COUNT(gemms); g++) {
        for (ptrdiff_t s = 0; s < COUNT(sizes); s++) {
            for (int t = 0; t < 4; t++) {
                for (ptrdiff_t w = 0; w < COUNT(scales); w++) {
                    fill(&rng, c);
                    check_case(gemms[g], t, sizes[s][0], sizes[s][1], sizes[s][2], scales[w][0], scales[w][1]);
                }
            }
        }
    }
}

static void vectors(void **state)
{
    static const ptrdiff_t sizes[][2] = {{1, 1}, {3, 5}, {64, 10}, {10, 64}, {33, 129}, {130, 3}};
    static const float scales[][2] = {{1, 0}, {1, 1}, {-0.5F, 2}, {0, 3}};
    rfi_rng rng;
    (void)state;
    rfi_rng_init(&rng, 4, 1, 0, 0, 0);
    fill(&rng, a);
    fill(&rng, b);
    for (ptrdiff_t g = 0; g < 2 * COUNT(gemvs) * COUNT(sizes) * COUNT(scales); g++) {
        bool ta = g % 2;
        const ptrdiff_t *size = sizes[g / 2 % COUNT(sizes)];
        const float *w = scales[g / 2 / COUNT(sizes) % COUNT(scales)];
        ptrdiff_t m = size[0], n = size[1], lda = n + 1;
        fill(&rng, c);
        memcpy(before, c, sizeof c);
        gemvs[g / 2 / COUNT(sizes) / COUNT(scales)](ta, m, n, w[0], a, lda, b, w[1], c);
        for (ptrdiff_t i = 0; i < (ta ? n : m) + 5; i++) {
            double bound = 0;
            if (i >= (ta ? n : m)) {
                assert_true(c[i] == before[i]);
                continue;
            }
            double old = (double)w[1] * (double)before[i];
            double want = (double)w[0] * element(ta, false, i, 0, ta ? m : n, lda, 1, &bound) + old;
            CHECK_CLOSE((double)c[i], want, bound + 4 * (double)FLT_EPSILON * fabs(old) + 1e-30, "gemv");
        }
    }
}

/* beta = 0 overwrites NaN; NaN in A or B arrives. */
static void not_a_number(void **state)
{
    (void)state;
    for (int g = 0; g < 2; g++) {
        float x[4] = {1, 2, 3, 4};
        float y[4] = {NAN, NAN, NAN, NAN};
        gemms[g](false, true, 2, 2, 2, 1, x, 2, x, 2, 0, y, 2);
        assert_true(y[0] == 5 && y[1] == 11 && y[2] == 11 && y[3] == 25);
        gemms[g](false, false, 2, 2, 0, 1, x, 2, x, 2, 0, y, 2);
        assert_true(y[0] == 0 && y[3] == 0);
        x[1] = NAN;
        gemms[g](false, false, 2, 2, 2, 1, x, 2, (float[]){0, 0, 0, 0}, 2, 0, y, 2);
        assert_true(isnan(y[0]) && isnan(y[1]) && y[2] == 0);
        y[0] = y[1] = NAN;
        gemvs[g](false, 1, 2, 1, (float[]){3, 4}, 2, (float[]){1, 2}, 0, y);
        assert_true(y[0] == 11 && isnan(y[1]));
    }
}

/* An element of the plain product does not depend on how many rows and columns are computed with it. */
static void plain_bits(void **state)
{
    float alone = 0;
    rfi_rng rng;
    (void)state;
    rfi_rng_init(&rng, 5, 1, 0, 0, 0);
    fill(&rng, a);
    fill(&rng, b);
    rfi_plain_sgemm(false, true, 11, 140, 100, 1, a, 100, b, 100, 0, c, 140);
    for (ptrdiff_t i = 0; i < 11; i++) {
        for (ptrdiff_t j = 0; j < 140; j += 13) {
            rfi_plain_sgemm(false, true, 1, 1, 100, 1, a + i * 100, 100, b + j * 100, 100, 0, &alone, 1);
            assert_memory_equal(&alone, &c[i * 140 + j], sizeof alone);
        }
    }
}

static void name(void **state)
{
    (void)state;
    assert_true(strcmp(rfi_blas_name(), "OpenBLAS") == 0 || strcmp(rfi_blas_name(), "BLAS") == 0 ||
                strcmp(rfi_blas_name(), "plain C") == 0);
    print_message("products by %s\n", rfi_blas_name());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),   cmocka_unit_test(vectors), cmocka_unit_test(not_a_number),
        cmocka_unit_test(plain_bits), cmocka_unit_test(name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
