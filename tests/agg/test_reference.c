/* Each rule against its definition (tests/support/oracle.c), float64. */
#include "num/scale.h"
#include "num/tuning.h"
#include "support/check.h"
#include "support/oracle.h"
#include "support/specs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static trial t;
static matrix x;
static double want[LENGTH_MAX];

static void make(rows_kind kind, ptrdiff_t n, ptrdiff_t m, bool weigh, uint32_t seed)
{
    trial_fill(&t, kind, n, m, REEF_F64, seed);
    if (weigh) {
        trial_weigh(&t, seed);
    }
    oracle_take(&t, &x);
}

static void check(const char *spec, double tol)
{
    trial_must_run(&t, spec);
    double size = trial_magnitude(&t);
    for (ptrdiff_t i = 0; i < t.m; i++) {
        CHECK(fabs(t.out[i] - want[i]) <= tol * size, "%s (n = %td, m = %td, weighted %d): %.17g instead of %.17g",
              spec, t.n, t.m, t.weighted, t.out[i], want[i]);
    }
}

#define SPEC(...)                                                                                                      \
    char spec[160];                                                                                                    \
    (void)snprintf(spec, sizeof spec, __VA_ARGS__)

static const rows_kind all_kinds[] = {ROWS_GAUSS, ROWS_OFFSET, ROWS_TIES, ROWS_SPARSE, ROWS_HEAVY};

static void means_and_medians(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 34; n++) {
        rows_kind kind = all_kinds[n % 5];
        make(kind, n, 6, n % 2, (uint32_t)n);
        oracle_mean(&x, want);
        check("mean", 1e-15);
        oracle_weighted_median(&x, want);
        check("median", 0);
        make(kind, n, 6, false, (uint32_t)n);
        oracle_median(&x, 0, want);
        check("median", 0);
        oracle_median(&x, -1, want);
        check("median:even=lower", 0);
        oracle_median(&x, 1, want);
        check("median:even=upper", 0);
    }
}

static void trimmed(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 33; n += 2) {
        for (ptrdiff_t f = 0; 2 * f < n; f += 1 + n / 10) {
            SPEC("trimmed:f=%td", f);
            make(all_kinds[(n + f) % 5], n, 6, f % 2, (uint32_t)n);
            oracle_trimmed(&x, f, -1, want);
            check(spec, 1e-14);
        }
    }
    static const double betas[] = {0, 0.05, 0.1, 0.25, 0.4, 0.49};
    for (ptrdiff_t i = 0; i < COUNT(betas); i++) {
        SPEC("trimmed:beta=%g", betas[i]);
        for (ptrdiff_t n = 1; n <= 33; n += 4) {
            make(ROWS_GAUSS, n, 6, false, (uint32_t)n);
            oracle_trimmed(&x, (ptrdiff_t)floor(betas[i] * (double)n), -1, want);
            check(spec, 1e-14);
        }
    }
}

/* BRIDGE: b smallest and b largest of the |N| neighbours go, the own value stays, divisor |N| - 2 b + 1. */
static void keep_self(void **state)
{
    (void)state;
    for (ptrdiff_t n = 2; n <= 20; n += 3) {
        for (ptrdiff_t b = 0; 2 * b <= n - 2; b++) {
            SPEC("trimmed:f=%td,keep_self=true", b);
            for (ptrdiff_t self = 0; self < n; self += 4) {
                make(ROWS_GAUSS, n, 6, false, (uint32_t)n);
                t.has_self = true;
                t.self = self;
                t.x[self][0] = 1e6; /* kept even where it is the largest */
                oracle_take(&t, &x);
                oracle_trimmed(&x, b, self, want);
                check(spec, 1e-14);
                double divisor = (double)(n - 1 - 2 * b + 1);
                CHECK_CLOSE(t.trust[self], (double)n / divisor, 1e-12, spec);
                assert_true(t.rejected[self] == 0);
            }
        }
        /* the median screens down to the middle one or two neighbours */
        make(ROWS_GAUSS, n, 6, false, (uint32_t)n);
        t.has_self = true;
        oracle_trimmed(&x, (n - 2) / 2, 0, want);
        check("median:keep_self=true", 1e-14);
    }
}

static void meamed(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 33; n += 2) {
        for (ptrdiff_t f = 0; 2 * f < n; f += 1 + n / 10) {
            SPEC("meamed:f=%td", f);
            make(all_kinds[(n + f) % 5], n, 6, f % 2, (uint32_t)n);
            oracle_meamed(&x, f, want);
            check(spec, 1e-14);
        }
    }
}

static void krum(void **state)
{
    (void)state;
    for (ptrdiff_t f = 0; f <= 6; f++) {
        for (ptrdiff_t n = 2 * f + 3; n <= 2 * f + 9; n++) {
            make(n % 2 ? ROWS_GAUSS : ROWS_OFFSET, n, 5, false, (uint32_t)(n + f));
            SPEC("krum:f=%td", f);
            oracle_krum(&x, n - f - 2, 1, want);
            check(spec, 0);
            (void)snprintf(spec, sizeof spec, "krum:f=%td,dialect=byzfl", f);
            oracle_krum(&x, n - f - 1, 1, want);
            check(spec, 0);
            make(ROWS_GAUSS, n, 5, f % 2, (uint32_t)(n + f));
            (void)snprintf(spec, sizeof spec, "multikrum:f=%td", f);
            oracle_krum(&x, n - f - 2, n - f, want);
            check(spec, 1e-14);
            (void)snprintf(spec, sizeof spec, "multikrum:f=%td,dialect=byzfl,m=3", f);
            oracle_krum(&x, n - f - 1, 3 < n - f ? 3 : n - f, want);
            check(spec, 1e-14);
        }
    }
}

static void bulyan(void **state)
{
    (void)state;
    for (ptrdiff_t f = 0; f <= 4; f++) {
        for (ptrdiff_t n = 4 * f + 3; n <= 4 * f + 7; n++) {
            SPEC("bulyan:f=%td", f);
            make(ROWS_GAUSS, n, 5, false, (uint32_t)(n + f));
            oracle_bulyan(&x, f, want);
            check(spec, 1e-14);
        }
    }
}

/* Of all sets with the smallest diameter one is averaged; byzfl takes the first. */
static void check_mda(ptrdiff_t n, ptrdiff_t f, uint32_t seed)
{
    bool first[ROWS_MAX];
    bool chosen[ROWS_MAX];
    ptrdiff_t size = 0;
    SPEC("mda:f=%td", f);
    make(seed % 2 ? ROWS_GAUSS : ROWS_TIES, n, 1 + (ptrdiff_t)seed, seed % 3 == 0, seed);
    double smallest = oracle_mda(&x, f, first);
    trial_must_run(&t, spec);
    for (ptrdiff_t l = 0; l < n; l++) {
        chosen[l] = t.trust[l] > 0;
        size += chosen[l];
    }
    assert_int_equal(size, n - f);
    CHECK_CLOSE(oracle_diameter2(&x, chosen), smallest, 1e-12 * smallest, spec);
    oracle_mean_of(&x, chosen, want);
    check(spec, 1e-14);
    (void)snprintf(spec, sizeof spec, "mda:f=%td,dialect=byzfl", f);
    oracle_mean_of(&x, first, want);
    check(spec, 1e-14);
}

static void mda(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 12; n++) {
        for (ptrdiff_t f = 0; 2 * f < n; f++) {
            for (uint32_t seed = 0; seed < 6; seed++) {
                check_mda(n, f, seed);
            }
        }
    }
}

/* The M-estimates by plain reweighting with the scale by count; tukey with the paper's constants is ref. */
static void m_estimates(void **state)
{
    double tukey = rfi_mest_tune(RFI_TUKEY, 0.95);
    double huber = rfi_mest_tune(RFI_HUBER, 0.95);
    double exact = rfi_mad_factor(RFI_SCALE_MAD_EXACT, 0);
    (void)state;
    CHECK_CLOSE(tukey, 4.685, 2e-4, "c at 95 %");
    CHECK_CLOSE(huber, 1.345, 2e-4, "k at 95 %");
    CHECK_CLOSE(exact, 1.4826, 1e-5, "MAD factor");
    for (ptrdiff_t n = 3; n <= 33; n += 3) {
        make(n % 2 ? ROWS_GAUSS : ROWS_OFFSET, n, 8, n % 3 == 0, (uint32_t)n);
        oracle_mest(&x, tukey, 1.4815, want);
        check("ref", 1e-11);
        check("tukey", 1e-11);
        oracle_mest(&x, 4.685, 1.4815, want);
        check("ref:c=4.685", 1e-11);
        oracle_mest(&x, tukey, exact, want);
        check("ref:scale=mad-exact", 1e-11);
        oracle_mest(&x, tukey, rfi_mad_factor(RFI_SCALE_MAD_FINITE, (double)n), want);
        check("ref:scale=mad-finite", 1e-11);
        oracle_mest(&x, -huber, 1.4815, want);
        check("huber", 1e-11);
        oracle_mest(&x, -huber, exact, want);
        check("huber:scale=mad-exact,start=mean", 1e-11);
    }
}

/* Where the MAD is 0 the result is the median, until a floor lets the others be heard. */
static void scale_floors(void **state)
{
    static const double values[] = {0, 0, 0, 0, 1, 1, -0.5};
    (void)state;
    make(ROWS_GAUSS, 7, 3, false, 1);
    for (ptrdiff_t l = 0; l < 7; l++) {
        t.x[l][0] = values[l];
    }
    trial_must_run(&t, "ref");
    assert_true(t.out[0] == 0 && t.trust[4] < 1);
    assert_true(t.shares[4 * t.m] == 0);
    trial_must_run(&t, "ref:scale_floor=100");
    CHECK_CLOSE(t.out[0], 1.5 / 7, 1e-3, "nearly the mean");
    trial_must_run(&t, "ref:scale_floor_rel=1000");
    CHECK_CLOSE(t.out[0], 1.5 / 7, 1e-3, "nearly the mean");
    CHECK_CLOSE(t.shares[4 * t.m], 1.0 / 7, 1e-3, "heard");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_and_medians),
        cmocka_unit_test(trimmed),
        cmocka_unit_test(keep_self),
        cmocka_unit_test(meamed),
        cmocka_unit_test(krum),
        cmocka_unit_test(bulyan),
        cmocka_unit_test(mda),
        cmocka_unit_test(m_estimates),
        cmocka_unit_test(scale_floors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
