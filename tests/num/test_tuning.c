/* Tuning constants against published values, numerical integrals and simulation-free properties. */
#include "num/special.h"
#include "num/tuning.h"

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

static void test_published_constants(void **state)
{
    (void)state;
    static const double tukey[][2] = {{0.80, 3.1369}, {0.85, 3.4437}, {0.90, 3.8827},
                                      {0.95, 4.6851}, {0.98, 5.9207}, {0.99, 7.0414}};
    for (size_t i = 0; i < sizeof tukey / sizeof tukey[0]; i++)
        CLOSE(rfi_mest_tune(RFI_TUKEY, tukey[i][0]), tukey[i][1], 6e-5);
    CLOSE(rfi_mest_tune(RFI_HUBER, 0.95), 1.345, 5e-4);
    CLOSE(rfi_mest_tune(RFI_HUBER, 0.99), 2.01, 5e-3);
}

static void test_tune_inverts_efficiency(void **state)
{
    (void)state;
    for (double e = 0.5; e <= 0.999; e += 0.00998) {
        CLOSE(rfi_mest_efficiency(RFI_TUKEY, rfi_mest_tune(RFI_TUKEY, e)), e, 1e-12);
        if (e > 2.0 / acos(-1.0) + 0.001)
            CLOSE(rfi_mest_efficiency(RFI_HUBER, rfi_mest_tune(RFI_HUBER, e)), e, 1e-12);
        for (double dof = 1.0; dof < 1e6; dof *= 9.3)
            CLOSE(rfi_joint_efficiency(dof, rfi_joint_tune(dof, e)), e, 1e-8);
    }
}

static void test_efficiencies_outside_the_range(void **state)
{
    (void)state;
    assert_true(rfi_mest_tune(RFI_TUKEY, 0.1) == rfi_mest_tune(RFI_TUKEY, RFI_EFFICIENCY_MIN));
    assert_true(rfi_mest_tune(RFI_TUKEY, 1.0) == rfi_mest_tune(RFI_TUKEY, RFI_EFFICIENCY_MAX));
    assert_true(rfi_mest_tune(RFI_HUBER, 0.5) == 0.001);
    CLOSE(rfi_mest_efficiency(RFI_HUBER, 0.001), 2.0 / acos(-1.0), 1e-3);
    CLOSE(rfi_mest_efficiency(RFI_HUBER, 40.0), 1.0, 1e-15);
    CLOSE(rfi_mest_efficiency(RFI_TUKEY, 1e6), 1.0, 1e-11);
}

/* The defining integrals by the midpoint rule over the chi density, with b' taken by differences. */
static double tukey_b(double r, double c)
{
    const double q = fmin(r / c, 1.0);
    return (1.0 - q * q) * (1.0 - q * q);
}

static double efficiency_by_definition(double dof, double c)
{
    enum { CELLS = 20000 };
    const double from = fmax(0.0, sqrt(dof) - 9.0);
    const double width = (sqrt(dof) + 9.0 - from) / CELLS;
    double alpha = 0.0;
    double beta = 0.0;
    for (int i = 0; i < CELLS; i++) {
        const double r = from + (i + 0.5) * width;
        const double f = rfi_chi_density(dof, r) * width;
        const double slope = (tukey_b(r + 1e-6, c) - tukey_b(r - 1e-6, c)) / 2e-6;
        alpha += f * r * r * tukey_b(r, c) * tukey_b(r, c) / dof;
        beta += f * (tukey_b(r, c) + r * slope / dof);
    }
    return beta * beta / alpha;
}

static void test_joint_efficiency_by_definition(void **state)
{
    (void)state;
    static const double dofs[] = {1, 2, 3, 7.5, 64, 1000, 4096, 4097, 1e5, 1e7};
    for (size_t i = 0; i < sizeof dofs / sizeof dofs[0]; i++)
        for (double beyond = 0.7; beyond < 12.0; beyond *= 1.6)
            CLOSE(rfi_joint_efficiency(dofs[i], sqrt(dofs[i]) + beyond),
                  efficiency_by_definition(dofs[i], sqrt(dofs[i]) + beyond), 1e-6);
}

/* Where the radius lies below nearly all residuals the sums cancel; the efficiency must stay tiny, never NaN. By
 * Stein's identity beta = E[r^2 b] / B, hence (Cauchy-Schwarz) it is at most P(B/2 + 1, c^2/2). */
static void test_joint_efficiency_of_tiny_radii(void **state)
{
    (void)state;
    for (double dof = 1.0; dof < 2e9; dof *= 4.0) {
        for (double part = 0.01; part < 0.99; part += 0.07) {
            const double e = rfi_joint_efficiency(dof, part * sqrt(dof));
            assert_true(e >= 0.0 && e <= rfi_gamma_p(0.5 * dof + 1.0, 0.5 * part * part * dof) * (1.0 + 1e-12));
        }
    }
}

static void test_joint_constants(void **state)
{
    (void)state;
    static const double table[][4] = {
        {1, 4.685, 5.921, 0.6745},    {2, 5.123, 6.431, 1.1774},    {4, 5.810, 7.227, 1.8321},
        {8, 6.818, 8.385, 2.7100},    {10, 7.224, 8.847, 3.0564},   {16, 8.228, 9.982, 3.9164},
        {32, 10.154, 12.123, 5.5978}, {64, 12.771, 14.973, 7.9583},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const double dof = table[i][0];
        CLOSE(rfi_joint_tune(dof, 0.95), table[i][1], 6e-4);
        CLOSE(rfi_joint_tune(dof, 0.98), table[i][2], 6e-4);
        CLOSE(rfi_joint_kappa(dof, 0.98), fmax(table[i][2] / table[i][3], 2.0), 2e-3);
    }
    CLOSE(rfi_joint_tune(1024.0, 0.98) / rfi_chi_median(1024.0), 1.27, 5e-3);
    CLOSE(rfi_joint_tune(16384.0, 0.98) / rfi_chi_median(16384.0), 1.07, 5e-3);
    CLOSE(rfi_joint_tune(1.0, 0.9), rfi_mest_tune(RFI_TUKEY, 0.9), 0.0);
}

/* kappa is 2 without computing above 4096 degrees of freedom. That is the truth: c_B / chi_B falls with B, grows
 * with the efficiency, and is below 2 there even for the largest efficiency offered. */
static void test_floor_binds_for_large_dof(void **state)
{
    (void)state;
    double before = HUGE_VAL;
    for (double dof = 1.0; dof <= 1.1e9; dof *= 2.0) {
        const double ratio = rfi_joint_tune(dof, RFI_EFFICIENCY_MAX) / rfi_chi_median(dof);
        assert_true(ratio < before);
        assert_true(dof < 4096.0 || ratio < 1.56);
        before = ratio;
    }
    double ratio = 0.0;
    for (double e = RFI_EFFICIENCY_MIN; e <= RFI_EFFICIENCY_MAX; e += 0.00998) {
        const double next = rfi_joint_tune(4096.0, e);
        assert_true(next > ratio);
        ratio = next;
    }
    for (double dof = 4096.0; dof <= 1e9; dof *= 10.0)
        assert_true(rfi_joint_kappa(dof, RFI_EFFICIENCY_MAX) == 2.0);
    assert_true(rfi_joint_kappa(512.0, RFI_EFFICIENCY_MAX) > 2.0);
}

/* ---- finite samples: what needs no simulation ---- */

static const rfi_scale_kind kinds[] = {RFI_SCALE_MAD, RFI_SCALE_MAD_EXACT, RFI_SCALE_MAD_FINITE, RFI_SCALE_QN,
                                       RFI_SCALE_S};

/* The constants of a separate study of plain REF (1.4815 MAD), 95 %. */
static void test_finite_known_values(void **state)
{
    (void)state;
    const rfi_finite_tuning four = rfi_finite_tune(RFI_SCALE_MAD, 4.0, 0.95);
    CLOSE(four.c, 9.9, 0.15);
    CLOSE(four.achieved, 0.95, 1e-12);
    CLOSE(rfi_finite_tune(RFI_SCALE_MAD, 5.0, 0.95).c, 11.1, 0.15);
    /* n = 3 would need 27: the cap binds, and that is said */
    const rfi_finite_tuning three = rfi_finite_tune(RFI_SCALE_MAD, 3.0, 0.95);
    assert_true(three.c == RFI_FINITE_C_MAX);
    CLOSE(three.achieved, 0.893, 0.003);
    /* the efficiency at which the wanted constant is 4.685 is that of plain REF */
    static const double plain[][2] = {{3, 0.769}, {5, 0.814}, {8, 0.871}, {16, 0.907}, {32, 0.929}, {64, 0.940}};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        CLOSE(rfi_finite_tune(RFI_SCALE_MAD, plain[i][0], plain[i][1]).c, 4.685, 0.01 * 4.685 + 0.06);
    static const double finite[][2] = {{3, 0.830}, {5, 0.857}, {8, 0.901}, {16, 0.921}, {32, 0.936}};
    for (size_t i = 0; i < sizeof finite / sizeof finite[0]; i++)
        CLOSE(rfi_finite_tune(RFI_SCALE_MAD_FINITE, finite[i][0], finite[i][1]).c, 4.685, 0.01 * 4.685 + 0.06);
}

/* c grows with the efficiency, stays below the cap, and never jumps between neighbouring n or efficiencies. */
static void test_finite_is_continuous(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        for (double n = 2.1; n < 80.0; n += 0.31) {
            double before = 0.0;
            for (double e = 0.5; e <= 0.999; e += 0.002) {
                const rfi_finite_tuning at = rfi_finite_tune(kinds[k], n, e);
                assert_true(at.c >= before && at.c <= RFI_FINITE_C_MAX);
                assert_true(before == 0.0 || e > 0.99 || at.c - before < 0.1 * at.c);
                assert_true(at.achieved >= 0.5 && at.achieved < 1.0);
                assert_true(at.c == RFI_FINITE_C_MAX ? at.achieved <= e + 1e-12 : at.achieved >= e - 1e-12);
                before = at.c;
                CLOSE(rfi_finite_tune(kinds[k], n + 1e-9, e).c, at.c, 1e-6);
            }
        }
    }
}

static void test_finite_tends_to_the_limit(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        for (double e = 0.8; e < 0.995; e += 0.03) {
            const double limit = rfi_mest_tune(RFI_TUKEY, e);
            CLOSE(rfi_finite_tune(kinds[k], 1e7, e).c, limit, 0.006 * limit);
            const double at65 = rfi_finite_tune(kinds[k], 64.001, e).c;
            CLOSE(at65, rfi_finite_tune(kinds[k], 64.0, e).c, 1e-3);
            /* half of the way at twice the n, roughly */
            const double gap64 = rfi_finite_tune(kinds[k], 64.0, e).c - limit;
            const double gap128 = rfi_finite_tune(kinds[k], 128.0, e).c - limit;
            CLOSE(gap128, 0.5 * gap64, 0.03 + 0.1 * fabs(gap64));
        }
    }
}

static void test_finite_small_n(void **state)
{
    (void)state;
    for (double n = 0.0; n <= 2.0; n += 0.5) {
        const rfi_finite_tuning at = rfi_finite_tune(RFI_SCALE_MAD, n, 0.95);
        CLOSE(at.c, 4.685, 1e-3);
        assert_true(at.achieved == 1.0);
    }
    assert_true(rfi_finite_tune(RFI_SCALE_MAD, 1.0, 0.999).c == RFI_FINITE_C_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_constants),
        cmocka_unit_test(test_tune_inverts_efficiency),
        cmocka_unit_test(test_efficiencies_outside_the_range),
        cmocka_unit_test(test_joint_efficiency_by_definition),
        cmocka_unit_test(test_joint_efficiency_of_tiny_radii),
        cmocka_unit_test(test_joint_constants),
        cmocka_unit_test(test_floor_binds_for_large_dof),
        cmocka_unit_test(test_finite_known_values),
        cmocka_unit_test(test_finite_is_continuous),
        cmocka_unit_test(test_finite_tends_to_the_limit),
        cmocka_unit_test(test_finite_small_n),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
