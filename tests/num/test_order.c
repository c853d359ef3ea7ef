/* Sorting, medians and weighted medians against their definitions, on orderings that hurt naive algorithms. */
#include "num/order.h"
#include "num/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#define N_MAX 300

typedef void (*pattern)(double *x, ptrdiff_t n, rfi_rng *rng);

static void random_values(double *x, ptrdiff_t n, rfi_rng *rng)
{
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = rfi_rng_normal(rng);
}

static void few_values(double *x, ptrdiff_t n, rfi_rng *rng)
{
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = (double)rfi_rng_below(rng, 4) - 1.0;
}

static void constant(double *x, ptrdiff_t n, rfi_rng *rng)
{
    (void)rng;
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = 7.25;
}

static void ascending(double *x, ptrdiff_t n, rfi_rng *rng)
{
    (void)rng;
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = (double)i;
}

static void descending(double *x, ptrdiff_t n, rfi_rng *rng)
{
    (void)rng;
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = (double)-i;
}

static void organ_pipe(double *x, ptrdiff_t n, rfi_rng *rng)
{
    (void)rng;
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = (double)(i < n / 2 ? i : n - i);
}

static void sawtooth(double *x, ptrdiff_t n, rfi_rng *rng)
{
    (void)rng;
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = (double)(i % 17);
}

/* Musser's sequence: every median of three is the second smallest value left. */
static void median_of_three_killer(double *x, ptrdiff_t n, rfi_rng *rng)
{
    (void)rng;
    const ptrdiff_t k = n / 2;
    for (ptrdiff_t i = 0; i < k; i++) {
        x[i] = (double)(i % 2 == 0 ? i + 1 : k + i + (k % 2 == 0 ? 0 : 1));
        x[k + i] = (double)(2 * (i + 1));
    }
    if (n % 2 == 1)
        x[n - 1] = (double)n;
}

static void extreme_values(double *x, ptrdiff_t n, rfi_rng *rng)
{
    static const double pool[] = {DBL_MAX, -DBL_MAX, DBL_MIN, -DBL_MIN, 4.9e-324, -4.9e-324, 0.0, -0.0, 1.0};
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = pool[rfi_rng_below(rng, 9)];
}

static const pattern patterns[] = {
    random_values,          few_values,     constant, ascending, descending, organ_pipe, sawtooth,
    median_of_three_killer, extreme_values,
};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Calls `check` for every pattern and every length up to N_MAX; `sorted` is what the C library makes of x. */
static void for_all_columns(void (*check)(double *x, const double *sorted, ptrdiff_t n))
{
    rfi_rng rng;
    rfi_rng_init(&rng, 1, 1, 0, 0, 0);
    for (size_t p = 0; p < PATTERNS; p++) {
        for (ptrdiff_t n = 1; n <= N_MAX; n++) {
            double x[N_MAX];
            double sorted[N_MAX];
            patterns[p](x, n, &rng);
            memcpy(sorted, x, (size_t)n * sizeof *x);
            qsort(sorted, (size_t)n, sizeof *sorted, compare);
            check(x, sorted, n);
        }
    }
}

static void check_sort(double *x, const double *sorted, ptrdiff_t n)
{
    rfi_sort(x, n);
    for (ptrdiff_t i = 0; i < n; i++)
        assert_true(x[i] == sorted[i]);
}

static void test_sort(void **state)
{
    (void)state;
    for_all_columns(check_sort);
}

static void check_sort_pairs(double *x, const double *sorted, ptrdiff_t n)
{
    double original[N_MAX];
    double index[N_MAX];
    int seen[N_MAX] = {0};
    for (ptrdiff_t i = 0; i < n; i++) {
        original[i] = x[i];
        index[i] = (double)i;
    }
    rfi_sort_pairs(x, index, n);
    for (ptrdiff_t i = 0; i < n; i++) {
        assert_true(x[i] == sorted[i]);
        assert_true(original[(int)index[i]] == x[i]);
        assert_int_equal(seen[(int)index[i]]++, 0);
    }
}

static void test_sort_pairs(void **state)
{
    (void)state;
    for_all_columns(check_sort_pairs);
}

static void check_argsort(double *x, const double *sorted, ptrdiff_t n)
{
    ptrdiff_t order[N_MAX];
    ptrdiff_t spare[N_MAX];
    int seen[N_MAX] = {0};
    rfi_argsort(x, n, order, spare);
    for (ptrdiff_t i = 0; i < n; i++) {
        assert_true(x[order[i]] == sorted[i]);
        assert_int_equal(seen[order[i]]++, 0);
        if (i > 0 && x[order[i]] == x[order[i - 1]])
            assert_true(order[i] > order[i - 1]);
    }
}

static void test_argsort_is_stable(void **state)
{
    (void)state;
    for_all_columns(check_argsort);
}

static void check_median(double *x, const double *sorted, ptrdiff_t n)
{
    const double lower = sorted[(n - 1) / 2];
    const double upper = sorted[n / 2];
    const double average = lower == upper ? lower : 0.5 * lower + 0.5 * upper;
    assert_true(rfi_median_sorted(sorted, n, RFI_MEDIAN_AVERAGE) == average);
    assert_true(rfi_median_sorted(sorted, n, RFI_MEDIAN_LOWER) == lower);
    assert_true(rfi_median_sorted(sorted, n, RFI_MEDIAN_UPPER) == upper);
    double work[N_MAX];
    for (int kind = 0; kind < 3; kind++) {
        memcpy(work, x, (size_t)n * sizeof *x);
        const double got = rfi_median(work, n, (rfi_median_kind)kind);
        assert_true(got == rfi_median_sorted(sorted, n, (rfi_median_kind)kind));
    }
    qsort(work, (size_t)n, sizeof *work, compare);
    for (ptrdiff_t i = 0; i < n; i++)
        assert_true(work[i] == sorted[i]);
}

static void test_median(void **state)
{
    (void)state;
    for_all_columns(check_median);
}

/* CPU seconds to select and sort one long column of a pattern. */
static double seconds_for(pattern fill, double *x, double *y, ptrdiff_t n)
{
    rfi_rng rng;
    rfi_rng_init(&rng, 2, 1, 0, 0, 0);
    fill(x, n, &rng);
    memcpy(y, x, (size_t)n * sizeof *x);
    const clock_t begin = clock();
    const double median = rfi_median(x, n, RFI_MEDIAN_UPPER);
    rfi_sort(y, n);
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    assert_true(median == y[n / 2]);
    for (ptrdiff_t i = 1; i < n; i++)
        assert_true(y[i - 1] <= y[i]);
    return seconds;
}

/* Without the fallback to heapsort two of the patterns cost several hundred times as much as random values. */
static void test_no_pattern_is_quadratic(void **state)
{
    (void)state;
    enum { N = 200000 };
    double *x = malloc(N * sizeof *x);
    double *y = malloc(N * sizeof *y);
    assert_true(x && y);
    const double random = seconds_for(random_values, x, y, N);
    for (size_t p = 0; p < PATTERNS; p++)
        assert_true(seconds_for(patterns[p], x, y, N) < 30.0 * random);
    free(x);
    free(y);
}

static void test_midpoint(void **state)
{
    (void)state;
    const double tiny = 4.9406564584124654e-324;
    assert_true(rfi_midpoint(DBL_MAX, DBL_MAX) == DBL_MAX);
    assert_true(rfi_midpoint(-DBL_MAX, DBL_MAX) == 0.0);
    assert_true(rfi_midpoint(tiny, tiny) == tiny);
    assert_true(rfi_midpoint(3 * tiny, 3 * tiny) == 3 * tiny);
    assert_true(rfi_midpoint(1.0, 2.0) == 1.5);
    for (int i = 0; i < 20; i++)
        for (int j = i; j < 20; j++)
            assert_true(rfi_midpoint(i * tiny, j * tiny) >= i * tiny && rfi_midpoint(i * tiny, j * tiny) <= j * tiny);
}

static double wmedian(const double *x, const double *a, ptrdiff_t n, rfi_median_kind kind)
{
    ptrdiff_t order[N_MAX];
    ptrdiff_t spare[N_MAX];
    rfi_argsort(x, n, order, spare);
    return rfi_wmedian(x, a, order, n, RFI_HALF_TOL_F64, kind);
}

/* Sum 1, sum n, and weights that are not exact in binary. */
static void check_equal_weights(double *x, const double *sorted, ptrdiff_t n)
{
    const double shares[] = {1.0, 1.0 / (double)n, 0.1};
    for (int s = 0; s < 3; s++) {
        double a[N_MAX];
        for (ptrdiff_t i = 0; i < n; i++)
            a[i] = shares[s];
        for (int kind = 0; kind < 3; kind++) {
            const double want = rfi_median_sorted(sorted, n, (rfi_median_kind)kind);
            assert_true(wmedian(x, a, n, (rfi_median_kind)kind) == want);
            assert_true(rfi_wmedian(sorted, a, NULL, n, RFI_HALF_TOL_F64, (rfi_median_kind)kind) == want);
        }
    }
}

static void test_equal_weights_give_the_median(void **state)
{
    (void)state;
    for_all_columns(check_equal_weights);
}

/* Plain cumulation of this many tenths is wrong by more than the tolerance. */
static void test_equal_weights_in_long_columns(void **state)
{
    (void)state;
    enum { N = 1000000 };
    double *a = malloc(N * sizeof *a);
    assert_non_null(a);
    for (ptrdiff_t i = 0; i < N; i++)
        a[i] = 0.1;
    for (ptrdiff_t n = N - 1; n <= N; n++) {
        ptrdiff_t lower;
        ptrdiff_t upper;
        rfi_wmedian_ranks(a, NULL, n, RFI_HALF_TOL_F64, &lower, &upper);
        assert_int_equal(lower, (n - 1) / 2);
        assert_int_equal(upper, n / 2);
    }
    free(a);
}

static void test_integer_weights_equal_replication(void **state)
{
    (void)state;
    rfi_rng rng;
    rfi_rng_init(&rng, 3, 1, 0, 0, 0);
    for (int trial = 0; trial < 2000; trial++) {
        const ptrdiff_t n = 1 + (ptrdiff_t)rfi_rng_below(&rng, 12);
        double x[12];
        double a[12];
        double replicated[60];
        ptrdiff_t total = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            x[i] = (double)rfi_rng_below(&rng, 9);
            a[i] = 1.0 + (double)rfi_rng_below(&rng, 5);
            for (int copy = 0; copy < (int)a[i]; copy++)
                replicated[total++] = x[i];
            a[i] /= 7.0;
        }
        rfi_sort(replicated, total);
        for (int kind = 0; kind < 3; kind++)
            assert_true(wmedian(x, a, n, (rfi_median_kind)kind) ==
                        rfi_median_sorted(replicated, total, (rfi_median_kind)kind));
    }
}

static void test_wmedian_by_hand(void **state)
{
    (void)state;
    const double x[] = {3.0, 1.0, 2.0};
    assert_true(wmedian(x, (double[]){0.2, 0.2, 0.6}, 3, RFI_MEDIAN_AVERAGE) == 2.0);
    assert_true(wmedian(x, (double[]){0.6, 0.2, 0.2}, 3, RFI_MEDIAN_AVERAGE) == 3.0);
    assert_true(wmedian(x, (double[]){0.5, 0.25, 0.25}, 3, RFI_MEDIAN_AVERAGE) == 2.5);
    assert_true(wmedian(x, (double[]){0.5, 0.25, 0.25}, 3, RFI_MEDIAN_LOWER) == 2.0);
    assert_true(wmedian(x, (double[]){0.5, 0.25, 0.25}, 3, RFI_MEDIAN_UPPER) == 3.0);
    /* a weight too small for the tolerance tips nothing */
    assert_true(wmedian(x, (double[]){0.5, 0.25, 0.25 - 1e-14}, 3, RFI_MEDIAN_AVERAGE) == 2.5);
    assert_true(wmedian(x, (double[]){4.0}, 1, RFI_MEDIAN_AVERAGE) == 3.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_sort_pairs),
        cmocka_unit_test(test_argsort_is_stable),
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_no_pattern_is_quadratic),
        cmocka_unit_test(test_midpoint),
        cmocka_unit_test(test_equal_weights_give_the_median),
        cmocka_unit_test(test_equal_weights_in_long_columns),
        cmocka_unit_test(test_integer_weights_equal_replication),
        cmocka_unit_test(test_wmedian_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
