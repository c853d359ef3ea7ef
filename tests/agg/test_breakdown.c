/* Breakdown: as many liars as a rule states, anywhere, cannot carry the result away; one more than a minority can. */
#include "num/rng.h"
#include "support/check.h"
#include "support/specs.h"
#include "support/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static trial t;

static double honest_norm(ptrdiff_t malicious_count)
{
    double largest = 0;
    for (ptrdiff_t l = malicious_count; l < t.n; l++) {
        double square = 0;
        for (ptrdiff_t i = 0; i < t.m; i++) {
            square += t.x[l][i] * t.x[l][i];
        }
        largest = fmax(largest, sqrt(square));
    }
    return largest;
}

/* How far clipping to a ball around the last centre may carry: L tau in all. */
static double reach(const char *spec)
{
    if (!spec_uses(spec, "cclip")) {
        return 0;
    }
    return strstr(spec, "tau=") ? 12 : 100;
}

/* The first `liars` rows all say `lie` (with a little noise) at every coordinate. */
static void corrupt(ptrdiff_t malicious_count, double lie, uint32_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 21, 0, 0, 0);
    for (ptrdiff_t l = 0; l < malicious_count; l++) {
        for (ptrdiff_t i = 0; i < t.m; i++) {
            t.x[l][i] = lie * (1 + 1e-3 * rfi_rng_uniform(&rng));
        }
    }
}

static void check_malicious(const char *spec, const reef_agg *agg, ptrdiff_t n, ptrdiff_t malicious_count, double lie)
{
    uint32_t seed = (uint32_t)(n * 31 + malicious_count);
    trial_fill(&t, ROWS_GAUSS, n, 5, lie < 0 ? REEF_F32 : REEF_F64, seed);
    if ((reef_agg_traits(agg) & REEF_TRAIT_WEIGHTS) && spec_uses(spec, "ref") && !strstr(spec, "init=weighted")) {
        trial_weigh(&t, seed); /* breakdown of ref is by number, whatever the weights */
    }
    /* worst case of the geometric median: 2 (n - f) / (n - 2 f) times the largest honest norm */
    double bound = 3 * (double)n * honest_norm(malicious_count) + reach(spec);
    corrupt(malicious_count, lie, seed);
    trial_apply(&t, agg);
    CHECK(t.status == REEF_OK, "%s: %s", spec, t.error.text);
    for (ptrdiff_t i = 0; i < t.m; i++) {
        CHECK(fabs(t.out[i]) <= bound, "%s: n = %td, %td liars at %g carry the result to %g (honest up to %g)", spec, n,
              malicious_count, lie, t.out[i], honest_norm(malicious_count));
    }
}

static const double lies[] = {1e3, -1e3, 1e6, -1e9, 1e12, 1e30, -1e30, 1e100, 1e160, 1e300};

static void a_stated_number_of_malicious(void **state)
{
    (void)state;
    int robust = 0;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        reef_agg *agg = make_agg(all_specs[i]);
        bool claims = reef_agg_traits(agg) & REEF_TRAIT_ROBUST;
        robust += claims;
        for (ptrdiff_t j = 0; claims && j < row_counts_count; j++) {
            ptrdiff_t n = row_counts[j];
            ptrdiff_t stated = reef_agg_tolerates(agg, n);
            ptrdiff_t malicious_count = stated < 0 ? (n - 1) / 2 : stated;
            for (ptrdiff_t k = 0; k < COUNT(lies); k++) {
                check_malicious(all_specs[i], agg, n, malicious_count, lies[k]);
                check_malicious(all_specs[i], agg, n, malicious_count / 2, lies[k]);
            }
        }
        reef_agg_destroy(&agg);
    }
    assert_true(robust >= 35);
}

/* Rules that reject: gross liars leave no trace at all, the result lies among the honest values, their trust is 0. */
static void gross_malicious_are_rejected(void **state)
{
    static const char *const specs[] = {"median",       "trimmed:f=max", "meamed",     "krum",      "multikrum",
                                        "bulyan",       "mda:f=25%",     "tukey",      "ref",       "vref",
                                        "ref:scale=qn", "ref:scale=s",   "nnm | krum", "nnm | ref", "nnm:f=25% | vref"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        reef_agg *agg = make_agg(specs[i]);
        for (ptrdiff_t n = 5; n <= 21; n += 4) {
            ptrdiff_t stated = reef_agg_tolerates(agg, n);
            ptrdiff_t malicious_count = stated < 0 ? (n - 1) / 2 : stated;
            trial_fill(&t, ROWS_GAUSS, n, 6, REEF_F64, (uint32_t)n);
            corrupt(malicious_count, 1e9, 3);
            trial_apply(&t, agg);
            assert_int_equal(t.status, REEF_OK);
            for (ptrdiff_t j = 0; j < t.m; j++) {
                CHECK(fabs(t.out[j]) < 4, "%s, n = %td: %g", specs[i], n, t.out[j]);
            }
            for (ptrdiff_t l = 0; l < malicious_count; l++) {
                CHECK(t.trust[l] == 0 && t.rejected[l] == 1, "%s, n = %td: liar trusted %g", specs[i], n, t.trust[l]);
            }
        }
        reef_agg_destroy(&agg);
    }
}

/* Liars who go, one by one, as far as they like in different directions. */
static void scattered_malicious(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        reef_agg *agg = make_agg(all_specs[i]);
        ptrdiff_t n = 15;
        ptrdiff_t stated = reef_agg_tolerates(agg, n);
        ptrdiff_t malicious_count = stated < 0 ? (n - 1) / 2 : stated;
        trial_fill(&t, ROWS_GAUSS, n, 5, REEF_F64, (uint32_t)i);
        double bound = 3 * (double)n * honest_norm(malicious_count) + reach(all_specs[i]);
        for (ptrdiff_t l = 0; l < malicious_count; l++) {
            for (ptrdiff_t j = 0; j < t.m; j++) {
                t.x[l][j] *= pow(10, 5.0 + 40.0 * (double)l);
            }
        }
        if (reef_agg_traits(agg) & REEF_TRAIT_ROBUST) {
            trial_apply(&t, agg);
            CHECK(t.status == REEF_OK, "%s: %s", all_specs[i], t.error.text);
            for (ptrdiff_t j = 0; j < t.m; j++) {
                CHECK(fabs(t.out[j]) <= bound, "%s: %g", all_specs[i], t.out[j]);
            }
        }
        reef_agg_destroy(&agg);
    }
}

/* The other side, so that the tests above can fail. */
static void a_majority_breaks_them(void **state)
{
    static const char *const specs[] = {"median", "ref", "vref", "geomed", "huber", "tukey"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        for (ptrdiff_t n = 3; n <= 33; n += 6) {
            trial_fill(&t, ROWS_GAUSS, n, 4, REEF_F64, 9);
            corrupt((n - 1) / 2 + 1, 1e6, 1);
            trial_must_run(&t, specs[i]);
            CHECK(t.out[0] > 1e5, "%s, n = %td: %g", specs[i], n, t.out[0]);
        }
    }
    trial_fill(&t, ROWS_GAUSS, 33, 4, REEF_F64, 9);
    corrupt(1, 1e9, 1);
    trial_must_run(&t, "mean");
    assert_true(t.out[0] > 1e7);
}

/* Seven agents of 11 hold little weight: with init=count the heavy minority loses, with init=weighted it wins. */
static void breakdown_by_count_or_by_weight(void **state)
{
    (void)state;
    for (int by_weight = 0; by_weight < 2; by_weight++) {
        trial_fill(&t, ROWS_GAUSS, 11, 3, REEF_F64, 4);
        trial_weigh(&t, 1);
        corrupt(4, 1e5, 2);
        for (ptrdiff_t l = 0; l < 11; l++) {
            t.weights[l] = l < 4 ? 3 : 1;
        }
        trial_must_run(&t, by_weight ? "ref:init=weighted" : "ref:init=count");
        assert_true(by_weight ? t.out[0] > 9e4 : fabs(t.out[0]) < 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stated_number_of_malicious),
        cmocka_unit_test(gross_malicious_are_rejected),
        cmocka_unit_test(scattered_malicious),
        cmocka_unit_test(a_majority_breaks_them),
        cmocka_unit_test(breakdown_by_count_or_by_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
