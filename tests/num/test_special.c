/* Special functions against closed forms, tables and each other. */
#include "num/special.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#define CLOSE(got, want, tol)                                                                                          \
    do {                                                                                                               \
        const double got_ = (got), want_ = (want);                                                                     \
        if (!(fabs(got_ - want_) <= (tol)))                                                                            \
            fail_msg("%s = %.17g, wanted %.17g", #got, got_, want_);                                                   \
    } while (0)

static void test_gamma_p_half_is_erf(void **state)
{
    (void)state;
    for (double x = 1e-12; x < 600.0; x *= 1.3)
        CLOSE(rfi_gamma_p(0.5, x), erf(sqrt(x)), 2e-14 * erf(sqrt(x)));
}

/* Whole a: 1 - P = e^-x sum_{k<a} x^k / k!. */
static void test_gamma_p_of_whole_numbers(void **state)
{
    (void)state;
    for (int a = 1; a < 40; a++) {
        for (double x = 0.05; x < 100.0; x *= 1.4) {
            double term = exp(-x);
            double q = 0.0;
            for (int k = 0; k < a; k++) {
                q += term;
                term *= x / (k + 1);
            }
            CLOSE(rfi_gamma_p(a, x), 1.0 - q, 1e-14);
        }
    }
}

/* P(a, x) - P(a + 1, x) = x^a e^-x / Gamma(a + 1), across the seam between series and fraction. */
static void test_gamma_p_recurrence(void **state)
{
    (void)state;
    for (double a = 0.5; a < 60.0; a += 0.7)
        for (double x = 0.5 * a; x < 2.0 * a; x += 0.1 * a)
            CLOSE(rfi_gamma_p(a, x) - rfi_gamma_p(a + 1.0, x), exp(a * log(x) - x) / tgamma(a + 1.0), 1e-13);
}

static void test_gamma_p_limits(void **state)
{
    (void)state;
    CLOSE(rfi_gamma_p(3.0, 0.0), 0.0, 0.0);
    CLOSE(rfi_gamma_p(1.0, 1e-300), 1e-300, 1e-312);
    CLOSE(rfi_gamma_p(5.0, 1e308), 1.0, 0.0);
    CLOSE(rfi_gamma_p(2048.0, 100.0), 0.0, 1e-300);
    CLOSE(rfi_gamma_p(2048.0, 20000.0), 1.0, 0.0);
    /* P(a, a) = 1/2 + 1 / (3 sqrt(2 pi a)) + O(a^-3/2) */
    for (double a = 1e3; a < 2e9; a *= 10.0)
        CLOSE(rfi_gamma_p(a, a), 0.5 + 1.0 / (3.0 * sqrt(2.0 * acos(-1.0) * a)), 0.01 / (a * sqrt(a)) + 4e-13);
}

static void test_chi_median(void **state)
{
    (void)state;
    static const double known[][2] = {{1, 0.6744897501960817},
                                      {2, 1.1774100225154747},
                                      {4, 1.8321},
                                      {8, 2.7100},
                                      {10, 3.0564},
                                      {16, 3.9164},
                                      {32, 5.5978},
                                      {64, 7.9583}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        CLOSE(rfi_chi_median(known[i][0]), known[i][1], i < 2 ? 1e-15 * 4 : 5e-5);
    for (double dof = 1.0; dof < 3000.0; dof *= 1.37) {
        const double m = rfi_chi_median(dof);
        CLOSE(rfi_gamma_p(0.5 * dof, 0.5 * m * m), 0.5, 2e-14);
    }
    /* no step where Newton hands over to the series */
    const double slope = (rfi_chi_median(402.0) - rfi_chi_median(398.0)) / 4.0;
    CLOSE(rfi_chi_median(400.0 + 1e-6) - rfi_chi_median(400.0 - 1e-6), 2e-6 * slope, 1e-12);
    CLOSE(rfi_chi_median(1e9) / sqrt(1e9 - 2.0 / 3.0), 1.0, 1e-15);
}

/* The density integrates to the distribution function. */
static void test_chi_density(void **state)
{
    (void)state;
    for (double dof = 2.0; dof < 1e6; dof *= 7.0) {
        const double to = rfi_chi_median(dof);
        const double from = fmax(0.0, to - 9.0);
        enum { PANELS = 4000 };
        double sum = 0.0;
        for (int i = 0; i <= PANELS; i++)
            sum += rfi_chi_density(dof, from + (to - from) * i / PANELS) *
                   (i == 0 || i == PANELS ? 1.0 : (i % 2 == 1 ? 4.0 : 2.0));
        CLOSE(sum * (to - from) / (3.0 * PANELS), 0.5, 1e-9);
    }
    CLOSE(rfi_chi_density(5.0, 0.0), 0.0, 0.0);
    CLOSE(rfi_chi_density(1.0, 1.0), 2.0 * exp(-0.5) / sqrt(2.0 * acos(-1.0)), 1e-15);
}

static void test_normal(void **state)
{
    (void)state;
    CLOSE(rfi_normal_cdf(0.0), 0.5, 0.0);
    CLOSE(rfi_normal_cdf(1.959963984540054), 0.975, 1e-15);
    CLOSE(rfi_normal_cdf(-40.0), 0.0, 1e-300);
    CLOSE(rfi_normal_quantile(0.75), 0.6744897501960817, 3e-16);
    CLOSE(rfi_normal_quantile(0.625), 0.31863936396437514, 3e-16);
    CLOSE(rfi_normal_quantile(0.5), 0.0, 1e-16);
    CLOSE(rfi_normal_quantile(1e-300), -37.0471, 1e-4);
    for (double z = -37.0; z < 2.0; z += 0.0137)
        CLOSE(rfi_normal_quantile(rfi_normal_cdf(z)), z, 1e-14);
    for (double p = 0.01; p < 1.0; p += 0.01)
        CLOSE(rfi_normal_quantile(p), -rfi_normal_quantile(1.0 - p), 1e-13);
    assert_true(rfi_normal_quantile(0.0) == -HUGE_VAL);
    assert_true(rfi_normal_quantile(1.0) == HUGE_VAL);
    assert_true(isnan(rfi_normal_quantile(1.5)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gamma_p_half_is_erf),
        cmocka_unit_test(test_gamma_p_of_whole_numbers),
        cmocka_unit_test(test_gamma_p_recurrence),
        cmocka_unit_test(test_gamma_p_limits),
        cmocka_unit_test(test_chi_median),
        cmocka_unit_test(test_chi_density),
        cmocka_unit_test(test_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
