/* Weights: as replication where a rule claims it, zero weight as absence, refusal where a rule cannot use them. */
#include "num/rng.h"
#include "support/check.h"
#include "support/specs.h"
#include "support/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static trial weighted, other;

static unsigned traits_of(const char *spec)
{
    reef_agg *agg = make_agg(spec);
    unsigned traits = reef_agg_traits(agg);
    reef_agg_destroy(&agg);
    return traits;
}

/* Copies row l of `weighted` counts[l] times into `other`. */
static void replicate(const int *counts)
{
    ptrdiff_t n = 0;
    other = weighted;
    other.weighted = false;
    for (ptrdiff_t l = 0; l < weighted.n; l++) {
        for (int c = 0; c < counts[l]; c++) {
            memcpy(other.x[n++], weighted.x[l], sizeof other.x[0]);
        }
    }
    other.n = n;
}

static void check_replication(const char *spec, rows_kind kind, ptrdiff_t n, uint32_t seed)
{
    int counts[ROWS_MAX];
    char text[120];
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 11, 0, 0, 0);
    /* on a line the geometric median of an even mass is an interval, and any of its points will do */
    ptrdiff_t m = (spec_uses(spec, "geomed") ? 4 : 1) + (ptrdiff_t)(seed % 9);
    trial_fill(&weighted, kind, n, m, seed % 3 ? REEF_F64 : REEF_F32, seed);
    weighted.weighted = true;
    for (ptrdiff_t l = 0; l < n; l++) {
        counts[l] = 1 + (int)rfi_rng_below(&rng, 3);
        weighted.weights[l] = 0.25 * counts[l]; /* the sum does not matter */
    }
    trial_must_run(&weighted, spec);
    replicate(counts);
    trial_must_run(&other, spec);
    (void)snprintf(text, sizeof text, "%s, %td rows as %td, kind %d", spec, weighted.n, other.n, (int)kind);
    double tol = (spec_tolerance(spec, weighted.dtype == REEF_F32) + 4 * dtype_epsilon(weighted.dtype)) *
                 trial_magnitude(&weighted);
    trial_close_out(&weighted, &other, tol, text);
}

static void replication(void **state)
{
    (void)state;
    int claims = 0;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        if (!(traits_of(all_specs[i]) & REEF_TRAIT_REPLICATION)) {
            continue;
        }
        claims++;
        for (ptrdiff_t j = 0; j < row_counts_count; j++) {
            for (int kind = 0; kind < ROWS_KINDS; kind++) {
                check_replication(all_specs[i], (rows_kind)kind, row_counts[j], (uint32_t)(i * 100 + j * 7 + kind));
            }
        }
    }
    assert_true(claims >= 8);
    assert_true(traits_of("ref:init=weighted") & REEF_TRAIT_REPLICATION);
    assert_false(traits_of("ref") & REEF_TRAIT_REPLICATION);
}

/* ref counts agents by default, so a heavy agent is not many agents: the test above can fail. */
static void counting_start_is_not_replication(void **state)
{
    static const double x[] = {0, 1, 2, 50, 51};
    int counts[] = {1, 1, 1, 3, 3};
    (void)state;
    trial_fill(&weighted, ROWS_GAUSS, 5, 1, REEF_F64, 0);
    weighted.weighted = true;
    for (ptrdiff_t l = 0; l < 5; l++) {
        weighted.x[l][0] = x[l];
        weighted.weights[l] = counts[l];
    }
    trial_must_run(&weighted, "ref");
    replicate(counts);
    trial_must_run(&other, "ref");
    assert_true(weighted.out[0] < 5 && other.out[0] > 45);
}

/* Rows of weight 0 hold garbage, which nobody may look at. */
static void check_zero_weight(const char *spec, ptrdiff_t n, bool unequal, uint32_t seed)
{
    bool out[ROWS_MAX] = {false};
    trial_fill(&weighted, ROWS_GAUSS, n, 7, seed % 3 ? REEF_F64 : REEF_F32, seed);
    trial_weigh(&weighted, seed);
    weighted.has_self = true;
    weighted.self = 1;
    for (ptrdiff_t l = 0; l < n; l++) {
        weighted.weights[l] = unequal ? weighted.weights[l] : 0.3;
        if (l % 3 == 0) {
            out[l] = true;
            weighted.weights[l] = 0;
            weighted.x[l][(size_t)l % 7] = l % 2 ? (double)NAN : 1e30;
        }
    }
    trial_remove(&weighted, out, &other);
    trial_must_run(&weighted, spec);
    trial_must_run(&other, spec);
    trial_same_out(&weighted, &other, spec);
    ptrdiff_t kept = 0;
    for (ptrdiff_t l = 0; l < n; l++) {
        assert_int_equal(weighted.reason[l], out[l] ? REEF_ZERO_WEIGHT : REEF_USED);
        assert_true(out[l] ? weighted.trust[l] == 0 && weighted.rejected[l] == 1 : true);
        if (!out[l]) {
            CHECK_CLOSE(weighted.trust[l], other.trust[kept], 1e-15 * other.trust[kept], spec);
            kept++;
        }
    }
    assert_int_equal(weighted.dropped, 0);
}

static void zero_weight_is_absence(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        for (ptrdiff_t n = 2; n <= 14; n += 4) {
            check_zero_weight(all_specs[i], n, false, (uint32_t)(i + n));
            if (traits_of(all_specs[i]) & REEF_TRAIT_WEIGHTS) {
                check_zero_weight(all_specs[i], n, true, (uint32_t)(i + n));
            }
        }
    }
}

/* Equal weights of any size are the same as none; scaling weights changes nothing that matters. */
static void only_ratios_count(void **state)
{
    static const double sizes[] = {1, 0.1, 3, 1e-300, 1e300, 5e-324};
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        trial_fill(&other, ROWS_GAUSS, 7, 5, REEF_F64, (uint32_t)i);
        other.has_self = true;
        trial_must_run(&other, all_specs[i]);
        for (ptrdiff_t j = 0; j < COUNT(sizes); j++) {
            weighted = other;
            weighted.weighted = true;
            for (ptrdiff_t l = 0; l < 7; l++) {
                weighted.weights[l] = sizes[j];
            }
            trial_must_run(&weighted, all_specs[i]);
            trial_same_out(&weighted, &other, all_specs[i]);
        }
    }
}

static void unequal_weights_are_refused_without_the_trait(void **state)
{
    (void)state;
    int refused = 0;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        trial_fill(&weighted, ROWS_GAUSS, 11, 4, REEF_F64, 5);
        weighted.has_self = true;
        trial_weigh(&weighted, 5);
        trial_run(&weighted, all_specs[i]);
        bool can = traits_of(all_specs[i]) & REEF_TRAIT_WEIGHTS;
        assert_int_equal(weighted.status, can ? REEF_OK : REEF_E_WEIGHTS);
        if (!can) {
            refused++;
            assert_true(weighted.untouched);
            assert_non_null(strstr(weighted.error.text, "weights"));
        }
    }
    assert_true(refused >= 5);
}

/* A heavier row pulls harder, for every rule that takes weights and believes this row at all. */
static void weights_matter(void **state)
{
    static const char *const specs[] = {
        "mean",  "trimmed", "meamed", "geomed",     "multikrum",        "mda",           "cclip", "huber",
        "tukey", "ref",     "vref",   "nnm | mean", "clip:c=50 | mean", "arc:f=0 | mean"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        trial_fill(&weighted, ROWS_GAUSS, 9, 3, REEF_F64, 77);
        weighted.weighted = true;
        for (ptrdiff_t l = 0; l < 9; l++) {
            weighted.weights[l] = 1;
        }
        other = weighted;
        other.weights[4] = 2;
        memset(weighted.x[4], 0, sizeof weighted.x[4]);
        memset(other.x[4], 0, sizeof other.x[4]);
        trial_must_run(&weighted, specs[i]);
        trial_must_run(&other, specs[i]);
        double light = hypot(hypot(weighted.out[0], weighted.out[1]), weighted.out[2]);
        double heavy = hypot(hypot(other.out[0], other.out[1]), other.out[2]);
        CHECK(heavy < light, "%s: %g with weight 1, %g with weight 2", specs[i], light, heavy);
    }
}

/* Whoever mref believes shares the result, however small their weights are beside that of a row far away. */
static void tiny_weights_share_all(void **state)
{
    enum { TINY_ROWS = 6, TINY_LENGTH = 8 };
    static const double tiny[] = {1e-3, 1e-12, 1e-40, 1e-90};
    double numbers[TINY_ROWS][TINY_LENGTH];
    const void *rows[TINY_ROWS];
    double weights[TINY_ROWS];
    reef_report *report = NULL;
    reef_agg *agg = make_agg("mref");
    (void)state;
    assert_int_equal(reef_report_create(NULL, &report, TINY_ROWS, NULL), REEF_OK);
    for (ptrdiff_t i = 0; i < COUNT(tiny); i++) {
        double out[TINY_LENGTH];
        for (ptrdiff_t l = 0; l < TINY_ROWS; l++) {
            rows[l] = numbers[l];
            weights[l] = l == 0 ? 1 : tiny[i];
            for (ptrdiff_t m = 0; m < TINY_LENGTH; m++) {
                numbers[l][m] = l == 0 ? 1e6 : 1 + 0.1 * (double)((l * 5 + m * 3) % 7);
            }
        }
        const reef_input input = {.rows = rows, .weights = weights};
        assert_int_equal(reef_agg_apply(agg, &input, TINY_ROWS, TINY_LENGTH, REEF_F64, out, report, NULL), REEF_OK);
        double trust = reef_report_trust(report)[1]; /* the share of five, by the weight */
        CHECK(trust > 0.5 / tiny[i] / TINY_ROWS, "weights %g: trust %g", tiny[i], trust);
        for (ptrdiff_t m = 0; m < TINY_LENGTH; m++) {
            CHECK(out[m] >= 1 - 1e-9 && out[m] <= 1.6 + 1e-9, "weights %g: %g", tiny[i], out[m]);
        }
    }
    reef_report_destroy(&report);
    reef_agg_destroy(&agg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replication),
        cmocka_unit_test(counting_start_is_not_replication),
        cmocka_unit_test(zero_weight_is_absence),
        cmocka_unit_test(only_ratios_count),
        cmocka_unit_test(unequal_weights_are_refused_without_the_trait),
        cmocka_unit_test(weights_matter),
        cmocka_unit_test(tiny_weights_share_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
