/* The M-estimates against slow and independent definitions, and on data meant to break them. */
#include "num/mest.h"
#include "num/order.h"
#include "num/rng.h"
#include "num/scale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#define N_MAX 64

static const rfi_mest tukey = {RFI_TUKEY, 4.685, 1e-12, 100};
static const rfi_mest huber = {RFI_HUBER, 1.345, 1e-12, 100};

#define CLOSE(got, want, tol)                                                                                          \
    do {                                                                                                               \
        const double got_ = (got), want_ = (want);                                                                     \
        if (!(fabs(got_ - want_) <= (tol)))                                                                            \
            fail_msg("%s = %.17g, wanted %.17g", #got, got_, want_);                                                   \
    } while (0)

/* Plain IRLS from the same start, until it stands still. */
static double irls(const rfi_mest *est, const double *x, const double *a, ptrdiff_t n, double start, double s)
{
    double m = start;
    for (int i = 0; i < 100000; i++) {
        double sum = 0.0;
        double weight = 0.0;
        for (ptrdiff_t l = 0; l < n; l++) {
            const double b = (a ? a[l] : 1.0) * rfi_mest_weight(est, x[l], m, s);
            sum += b * (x[l] - m);
            weight += b;
        }
        m += sum / weight;
        if (fabs(sum / weight) <= 1e-16 * s)
            break;
    }
    return m;
}

static double median_and_scale(const double *x, ptrdiff_t n, double *s)
{
    double spare[N_MAX];
    memcpy(spare, x, (size_t)n * sizeof *x);
    const double start = rfi_median(spare, n, RFI_MEDIAN_AVERAGE);
    *s = rfi_mad_factor(RFI_SCALE_MAD, (double)n) * rfi_mad(x, n, start, spare);
    return start;
}

/* Normal values, a quarter of them shifted by `shift`, every other column with heavy tails. */
static void draw(rfi_rng *rng, double *x, ptrdiff_t n, double shift)
{
    const int heavy = (int)rfi_rng_below(rng, 2);
    for (ptrdiff_t l = 0; l < n; l++) {
        x[l] = rfi_rng_normal(rng);
        if (heavy)
            x[l] /= sqrt(rfi_rng_uniform(rng));
        if (l % 4 == 0)
            x[l] += shift;
    }
}

static void test_weight(void **state)
{
    (void)state;
    assert_true(rfi_mest_weight(&tukey, 3.0, 3.0, 2.0) == 1.0);
    assert_true(rfi_mest_weight(&tukey, 3.0 + 2.0 * 4.685, 3.0, 2.0) == 0.0);
    assert_true(rfi_mest_weight(&tukey, -1e300, 3.0, 1e-300) == 0.0);
    CLOSE(rfi_mest_weight(&tukey, 4.685, 0.0, 2.0), 0.5625, 1e-15);
    assert_true(rfi_mest_weight(&huber, 1.0, 0.0, 1.0) == 1.0);
    CLOSE(rfi_mest_weight(&huber, -2.69, 0.0, 1.0), 0.5, 1e-15);
    assert_true(rfi_mest_weight(&huber, 1e300, 0.0, 1e-300) == 0.0);
}

/* rho' = psi = r b(r), by central differences; and the value at and beyond the edge. */
static void test_objective_is_the_integral_of_psi(void **state)
{
    (void)state;
    const rfi_mest *const families[] = {&tukey, &huber};
    for (int f = 0; f < 2; f++) {
        for (double x = -8.0; x < 8.0; x += 0.37) {
            const double h = 1e-5;
            const double s = 1.3;
            const double a = 0.7;
            const double up = rfi_mest_objective(families[f], &x, &a, 1, -h, s);
            const double down = rfi_mest_objective(families[f], &x, &a, 1, h, s);
            const double psi = a * x / s * rfi_mest_weight(families[f], x, 0.0, s) / s;
            CLOSE((up - down) / (2.0 * h), psi, 1e-8);
        }
    }
    const double far[] = {1e200, -1e150};
    CLOSE(rfi_mest_objective(&tukey, far, NULL, 2, 0.0, 1e-300), 2.0 * 4.685 * 4.685 / 6.0, 1e-14);
    CLOSE(rfi_mest_objective(&huber, (double[]){3.0}, NULL, 1, 0.0, 1.0), 1.345 * 3.0 - 0.5 * 1.345 * 1.345, 1e-14);
}

static void test_equal_weights_reach_the_irls_point(void **state)
{
    (void)state;
    rfi_rng rng;
    rfi_rng_init(&rng, 1, 3, 0, 0, 0);
    const rfi_mest *const families[] = {&tukey, &huber};
    for (int trial = 0; trial < 2000; trial++) {
        const ptrdiff_t n = 3 + (ptrdiff_t)rfi_rng_below(&rng, N_MAX - 2);
        double x[N_MAX];
        double s;
        draw(&rng, x, n, trial % 3 == 0 ? 0.0 : 1e3);
        const double start = median_and_scale(x, n, &s);
        for (int f = 0; f < 2; f++) {
            const rfi_location got = rfi_mest_solve(families[f], x, NULL, n, start, s);
            assert_true(got.converged && got.iterations <= 30);
            CLOSE(got.value, irls(families[f], x, NULL, n, start, s), 1e-12 * s + 4.0 * DBL_EPSILON * fabs(got.value));
        }
    }
}

/* Unequal weights (Tukey): the objective is never above that of the start; at most 0.2 % of the columns end at
 * another point than IRLS does, and as few have a minimum so flat that 100 steps do not settle it. */
static void test_unequal_weights(void **state)
{
    (void)state;
    enum { TRIALS = 4000 };
    rfi_rng rng;
    rfi_rng_init(&rng, 2, 3, 0, 0, 0);
    int elsewhere = 0;
    int unsettled = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        const ptrdiff_t n = 3 + (ptrdiff_t)rfi_rng_below(&rng, 30);
        double x[N_MAX];
        double a[N_MAX];
        double s;
        draw(&rng, x, n, trial % 3 == 0 ? 3.0 : 0.0);
        for (ptrdiff_t l = 0; l < n; l++)
            a[l] = -log(rfi_rng_uniform(&rng));
        const double start = median_and_scale(x, n, &s);
        const rfi_location got = rfi_mest_solve(&tukey, x, a, n, start, s);
        CLOSE(rfi_mest_step(&tukey, x, a, n, got.value, s, 0.5).step, 0.0, got.converged ? 2e-12 * s : 1e-3 * s);
        assert_true(rfi_mest_objective(&tukey, x, a, n, got.value, s) <=
                    rfi_mest_objective(&tukey, x, a, n, start, s) * (1.0 + 1e-13));
        unsettled += !got.converged;
        elsewhere += fabs(got.value - irls(&tukey, x, a, n, start, s)) > 1e-9 * s;
    }
    assert_in_range(elsewhere, 0, TRIALS / 500);
    assert_in_range(unsettled, 0, TRIALS / 500);
}

static void test_sum_of_weights_does_not_matter(void **state)
{
    (void)state;
    rfi_rng rng;
    rfi_rng_init(&rng, 3, 3, 0, 0, 0);
    double x[10];
    double a[10];
    double scaled[10];
    draw(&rng, x, 10, 4.0);
    for (int l = 0; l < 10; l++) {
        a[l] = 0.05 + rfi_rng_uniform(&rng);
        scaled[l] = a[l] * 0x1p-30;
    }
    assert_true(rfi_mest_solve(&tukey, x, a, 10, 0.0, 1.0).value ==
                rfi_mest_solve(&tukey, x, scaled, 10, 0.0, 1.0).value);
}

/* With guard 1/2 no step increases the objective, wherever it starts. */
static void test_safe_steps_descend(void **state)
{
    (void)state;
    rfi_rng rng;
    rfi_rng_init(&rng, 4, 3, 0, 0, 0);
    const rfi_mest *const families[] = {&tukey, &huber};
    for (int trial = 0; trial < 5000; trial++) {
        double x[12];
        double a[12];
        draw(&rng, x, 12, 6.0);
        for (int l = 0; l < 12; l++)
            a[l] = pow(rfi_rng_uniform(&rng), 3.0);
        const rfi_mest *est = families[trial % 2];
        const double m = 6.0 * rfi_rng_normal(&rng);
        const double s = 0.1 + rfi_rng_uniform(&rng);
        const double step = rfi_mest_step(est, x, a, 12, m, s, 0.5).step;
        assert_true(rfi_mest_objective(est, x, a, 12, m + step, s) <=
                    rfi_mest_objective(est, x, a, 12, m, s) * (1.0 + 1e-13));
    }
}

/* Powers of two change nothing but the exponent, down to the smallest scale the callers let through. */
static void test_scale_equivariance_to_the_ends_of_the_range(void **state)
{
    (void)state;
    rfi_rng rng;
    rfi_rng_init(&rng, 5, 3, 0, 0, 0);
    static const int exponents[] = {-1000, -600, -40, 40, 600, 990};
    for (int trial = 0; trial < 200; trial++) {
        double x[9];
        double s;
        draw(&rng, x, 9, 20.0);
        const double start = median_and_scale(x, 9, &s);
        for (int f = 0; f < 2; f++) {
            const rfi_mest *est = f == 0 ? &tukey : &huber;
            const double want = rfi_mest_solve(est, x, NULL, 9, start, s).value;
            for (int e = 0; e < 6; e++) {
                double y[9];
                for (int l = 0; l < 9; l++)
                    y[l] = ldexp(x[l], exponents[e]);
                const double got =
                    rfi_mest_solve(est, y, NULL, 9, ldexp(start, exponents[e]), ldexp(s, exponents[e])).value;
                CLOSE(ldexp(got, -exponents[e]), want, 1e-13 * s + 4.0 * DBL_EPSILON * fabs(want));
            }
        }
    }
    const double smallest = 16.0 * DBL_MIN;
    const double x[] = {-smallest, 0.0, 2.0 * smallest, 0x1p999, -0x1p999};
    const rfi_location got = rfi_mest_solve(&tukey, x, NULL, 5, 0.0, smallest);
    assert_true(got.converged && got.value > 0.0 && got.value < smallest);
}

/* However far an outlier goes, a redescending estimate settles; RobustSP's overflows into the median. */
static void test_huge_outlier_is_ignored(void **state)
{
    (void)state;
    double x[] = {-1.0, -0.4, 0.1, 0.5, 1.1, 0.0};
    const double want = rfi_mest_solve(&tukey, x, NULL, 5, 0.1, 1.0).value;
    for (double outlier = 1e2; outlier < 1e300; outlier *= 1e7) {
        x[5] = outlier;
        CLOSE(rfi_mest_solve(&tukey, x, NULL, 6, 0.1, 1.0).value, want, 1e-15);
    }
}

/* A large common offset: steps below half an ulp end the iteration. */
static void test_offset_converges(void **state)
{
    (void)state;
    const double x[] = {1e15 + 0.125, 1e15 + 0.25, 1e15 + 0.5, 1e15 + 0.75, 1e15 + 3.0};
    const rfi_location got = rfi_mest_solve(&tukey, x, NULL, 5, x[2], 0.37);
    assert_true(got.converged);
    assert_true(got.value >= x[0] && got.value <= x[4]);
}

static void test_nobody_heard(void **state)
{
    (void)state;
    /* start far from every value: the estimate stays and says so without NaN */
    const double x[] = {100.0, -100.0};
    const rfi_location got = rfi_mest_solve(&tukey, x, NULL, 2, 0.0, 1.0);
    assert_true(got.converged && got.value == 0.0);
    const rfi_mest_move move = rfi_mest_step(&tukey, x, NULL, 2, 0.0, 1.0, 0.3);
    assert_true(move.step == 0.0 && move.distance == HUGE_VAL);
}

/* A bold step of one whole scale would leave the only value in reach behind, and twice the IRLS step mirrors the
 * location about it, for ever. */
static void test_bold_step_keeps_sight(void **state)
{
    (void)state;
    const rfi_mest narrow = {RFI_TUKEY, 0.5, 1e-12, 100};
    const double x[] = {0.3, 50.0};
    const rfi_location got = rfi_mest_solve(&narrow, x, NULL, 2, 0.0, 1.0);
    assert_true(got.converged);
    CLOSE(got.value, 0.3, 1e-12);
}

/* The same mirror with the usual constant: columns with one dominant weight. */
static void test_dominant_weight(void **state)
{
    (void)state;
    rfi_rng rng;
    rfi_rng_init(&rng, 6, 3, 0, 0, 0);
    const rfi_mest wide = {RFI_TUKEY, 7.0, 1e-12, 100};
    for (int trial = 0; trial < 100000; trial++) {
        const ptrdiff_t n = 3 + (ptrdiff_t)rfi_rng_below(&rng, 10);
        double x[N_MAX];
        double a[N_MAX];
        double s;
        draw(&rng, x, n, trial % 3 == 0 ? 3.0 : 0.0);
        for (ptrdiff_t l = 0; l < n; l++)
            a[l] = pow(rfi_rng_uniform(&rng), 30.0);
        const double start = median_and_scale(x, n, &s);
        const rfi_location got = rfi_mest_solve(&wide, x, a, n, start, s);
        CLOSE(rfi_mest_step(&wide, x, a, n, got.value, s, 0.5).step, 0.0, got.converged ? 2e-12 * s : 1e-3 * s);
    }
}

static void test_iteration_cap(void **state)
{
    (void)state;
    const double x[] = {0.0, 0.3, 1.0, 4.0};
    const rfi_mest once = {RFI_TUKEY, 4.685, 1e-12, 1};
    const rfi_location got = rfi_mest_solve(&once, x, NULL, 4, 0.65, 0.7);
    assert_int_equal(got.iterations, 1);
    assert_false(got.converged);
    const rfi_mest never = {RFI_TUKEY, 4.685, 1e-12, 0};
    assert_true(rfi_mest_solve(&never, x, NULL, 4, 0.65, 0.7).value == 0.65);
}

static void test_one_value(void **state)
{
    (void)state;
    const double x = 3.25;
    assert_true(rfi_mest_solve(&tukey, &x, NULL, 1, 3.25, 1.0).value == 3.25);
    CLOSE(rfi_mest_solve(&tukey, &x, NULL, 1, 3.0, 1.0).value, 3.25, 1e-12);
    CLOSE(rfi_mest_solve(&huber, &x, NULL, 1, -100.0, 200.0).value, 3.25, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_objective_is_the_integral_of_psi),
        cmocka_unit_test(test_equal_weights_reach_the_irls_point),
        cmocka_unit_test(test_unequal_weights),
        cmocka_unit_test(test_sum_of_weights_does_not_matter),
        cmocka_unit_test(test_safe_steps_descend),
        cmocka_unit_test(test_scale_equivariance_to_the_ends_of_the_range),
        cmocka_unit_test(test_huge_outlier_is_ignored),
        cmocka_unit_test(test_offset_converges),
        cmocka_unit_test(test_nobody_heard),
        cmocka_unit_test(test_bold_step_keeps_sight),
        cmocka_unit_test(test_dominant_weight),
        cmocka_unit_test(test_iteration_cap),
        cmocka_unit_test(test_one_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
