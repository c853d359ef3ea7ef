/* The report is exact: out is recomputed from the effective weights of every spec, and everything else in the report from
 * the effective weights. */
#include "support/check.h"
#include "support/oracle.h"
#include "support/specs.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static trial t;

static double column_median(ptrdiff_t i)
{
    static matrix x;
    double median[LENGTH_MAX];
    oracle_take(&t, &x);
    oracle_median(&x, 0, median);
    return median[i];
}

/* What stands at the place of origin or centre: 0, or for cclip:start=median the median. */
static double centre_value(const char *spec, ptrdiff_t i)
{
    return strstr(spec, "start=median") && spec_uses(spec, "cclip") ? column_median(i) : 0;
}

static void check_shares(const char *text)
{
    for (ptrdiff_t i = 0; i < t.m; i++) {
        double sum = t.centre[i];
        CHECK(t.centre[i] >= 0 && t.centre[i] <= 1 + 1e-12, "%s: centre share %g", text, t.centre[i]);
        for (ptrdiff_t l = 0; l < t.n; l++) {
            double share = t.shares[l * t.m + i];
            CHECK(share >= 0 && share <= 1 + 1e-12, "%s: share %g", text, share);
            sum += share;
        }
        CHECK_CLOSE(sum, 1, 1e-12, text);
    }
}

static void check_out(const char *spec, const char *text)
{
    /* an M-estimate is solved to 1e-12 or 1e-6 scales, and its shares are those of the point it returns */
    double tol = 4 * dtype_epsilon(t.dtype) + (t.dtype == REEF_F32 ? 4e-6 : 1e-11);
    for (ptrdiff_t i = 0; i < t.m; i++) {
        double value = t.centre[i] * centre_value(spec, i);
        double size = fabs(value);
        for (ptrdiff_t l = 0; l < t.n; l++) {
            value += t.shares[l * t.m + i] * t.x[l][i];
            size += t.shares[l * t.m + i] * fabs(t.x[l][i]);
        }
        CHECK_CLOSE(t.out[i], value, tol * size + (t.dtype == REEF_F32 ? (double)FLT_MIN : DBL_MIN), text);
    }
}

static void check_sums(const char *text)
{
    double total = t.centre_share;
    double centre = 0;
    for (ptrdiff_t i = 0; i < t.m; i++) {
        centre += t.centre[i] / (double)t.m;
    }
    CHECK_CLOSE(t.centre_share, centre, 1e-13, text);
    for (ptrdiff_t l = 0; l < t.n; l++) {
        double trust = 0;
        double rejected = 0;
        for (ptrdiff_t i = 0; i < t.m; i++) {
            trust += t.shares[l * t.m + i] / trial_weight(&t, l) / (double)t.m;
            rejected += (t.shares[l * t.m + i] == 0) / (double)t.m;
        }
        CHECK_CLOSE(t.trust[l], trust, 1e-12 * (1 + trust), text);
        CHECK_CLOSE(t.rejected[l], rejected, 1e-12, text);
        total += trial_weight(&t, l) * t.trust[l];
        assert_int_equal(t.reason[l], REEF_USED);
    }
    CHECK_CLOSE(total, 1, 1e-12, text);
    assert_int_equal(t.dropped, 0);
    assert_int_equal(t.masked, 0);
    /* an objective that is flat at its minimum takes more than 100 steps; that is rare */
    CHECK(t.unconverged <= 1 + t.m / 20, "%s: %lld not converged", text, (long long)t.unconverged);
    assert_true(t.mean_iterations >= 0 && t.mean_iterations <= t.max_iterations);
}

static void check_spec(const char *spec, rows_kind kind, ptrdiff_t n, bool weigh, uint32_t seed)
{
    char text[200];
    reef_agg *agg = make_agg(spec);
    trial_fill(&t, kind, n, lengths[seed % (uint32_t)lengths_count], seed % 3 ? REEF_F64 : REEF_F32, seed);
    if (weigh && (reef_agg_traits(agg) & REEF_TRAIT_WEIGHTS)) {
        trial_weigh(&t, seed);
    }
    t.has_self = true;
    t.self = n / 3;
    t.round = (int64_t)seed * 1000003;
    (void)snprintf(text, sizeof text, "%s (n = %td, m = %td, rows %d, %s, weighted %d)", spec, n, t.m, (int)kind,
                   t.dtype == REEF_F32 ? "float32" : "float64", t.weighted);
    trial_apply(&t, agg);
    CHECK(t.status == REEF_OK, "%s: %s", text, t.error.text);
    check_shares(text);
    check_out(spec, text);
    check_sums(text);
    reef_agg_destroy(&agg);
}

static void out_follows_from_the_shares(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        for (ptrdiff_t j = 0; j < row_counts_count; j++) {
            for (int kind = 0; kind < ROWS_KINDS; kind++) {
                uint32_t seed = (uint32_t)(i * 1000 + j * 10 + kind);
                check_spec(all_specs[i], (rows_kind)kind, row_counts[j], seed % 2 == 0, seed);
            }
        }
    }
}

/* With a centre set from outside the result still follows from shares and centre. */
static void a_remembered_centre(void **state)
{
    static const char *const specs[] = {"cclip", "cclip:tau=1,L=5", "cclip:start=median,tau=2", "nnm | cclip:tau=1",
                                        "bucketing | cclip:tau=0.5,L=3"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        double centre[LENGTH_MAX];
        ptrdiff_t length = 17;
        reef_agg *agg = make_agg(specs[i]);
        reef_state *memory = NULL;
        reef_shape shape = {.rows = 9, .segments = 1, .lengths = &length, .dtype = REEF_F64};
        assert_int_equal(reef_state_create(&memory, agg, &shape, NULL), REEF_OK);
        trial_fill(&t, ROWS_OFFSET, 9, length, REEF_F64, (uint32_t)i);
        for (ptrdiff_t j = 0; j < length; j++) {
            centre[j] = 18 + (double)j / 7;
        }
        assert_int_equal(reef_state_set_centre(memory, 0, centre, NULL), REEF_OK);
        t.state = memory;
        trial_apply(&t, agg);
        assert_int_equal(t.status, REEF_OK);
        check_shares(specs[i]);
        assert_true(t.centre_share > 0 || strcmp(specs[i], "cclip") == 0);
        for (ptrdiff_t j = 0; j < length; j++) {
            double value = t.centre[j] * centre[j];
            for (ptrdiff_t l = 0; l < t.n; l++) {
                value += t.shares[l * t.m + j] * t.x[l][j];
            }
            CHECK_CLOSE(t.out[j], value, 1e-13 * fabs(value), specs[i]);
        }
        reef_state_destroy(&memory);
        reef_agg_destroy(&agg);
    }
}

/* Clean data: everybody near their fair share. Liars: found out. */
static void trust_says_who_lied(void **state)
{
    static const char *const specs[] = {"ref", "vref", "tukey", "multikrum:f=8", "mda:f=8", "nnm:f=8 | ref", "geomed"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        trial_fill(&t, ROWS_GAUSS, 32, 70, REEF_F32, (uint32_t)i);
        for (ptrdiff_t l = 0; l < 8; l++) {
            for (ptrdiff_t j = 0; j < t.m; j++) {
                t.x[l][j] += 30;
            }
        }
        trial_must_run(&t, specs[i]);
        for (ptrdiff_t l = 0; l < 32; l++) {
            CHECK(l < 8 ? t.trust[l] < 0.2 : t.trust[l] > 0.9 && t.trust[l] < 2, "%s: trust of row %td is %g", specs[i],
                  l, t.trust[l]);
        }
    }
}

static void effort_is_reported(void **state)
{
    (void)state;
    trial_fill(&t, ROWS_GAUSS, 32, 70, REEF_F64, 3);
    trial_must_run(&t, "ref");
    assert_true(t.mean_iterations > 1 && t.mean_iterations < 8 && t.max_iterations < 20);
    trial_must_run(&t, "ref:max_iter=1");
    assert_int_equal(t.unconverged, 70);
    assert_int_equal(t.max_iterations, 1);
    trial_must_run(&t, "vref:max_iter=1");
    assert_int_equal(t.unconverged, 1);
    trial_must_run(&t, "vref:block=10,max_iter=1");
    assert_int_equal(t.unconverged, 7);
    trial_must_run(&t, "geomed:max_iter=2");
    assert_int_equal(t.unconverged, 1);
    assert_int_equal(t.max_iterations, 2);
    trial_must_run(&t, "cclip:L=4");
    assert_int_equal(t.max_iterations, 4);
    trial_must_run(&t, "mean");
    assert_int_equal(t.max_iterations, 0);
}

/* Stopped early, the result is still the weighted mean that the shares say. */
static void unconverged_results_follow_from_the_shares(void **state)
{
    static const char *const specs[] = {"geomed:max_iter=2", "vref:max_iter=1", "ref:max_iter=1", "ref:max_iter=2",
                                        "huber:max_iter=1"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        trial_fill(&t, ROWS_HEAVY, 12, 30, REEF_F64, 1);
        trial_must_run(&t, specs[i]);
        check_shares(specs[i]);
        check_out(specs[i], specs[i]);
    }
}

/* The efficiency a rule is tuned to: asked for, computed from c, or less where n=auto meets its cap. */
static void efficiency_is_reported(void **state)
{
    static const struct {
        const char *spec;
        ptrdiff_t n;
        double efficiency, tol;
    } cases[] = {
        {"ref", 32, 0.95, 1e-9},          {"ref:efficiency=0.85", 5, 0.85, 1e-9}, {"ref:c=7.0414", 9, 0.99, 1e-4},
        {"huber:c=1.345", 9, 0.95, 1e-4}, {"ref:n=auto", 20, 0.95, 1e-9},         {"tukey:c=3.1369", 9, 0.80, 1e-4},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        trial_fill(&t, ROWS_GAUSS, cases[i].n, 4, REEF_F64, 1);
        trial_must_run(&t, cases[i].spec);
        CHECK_CLOSE(t.efficiency, cases[i].efficiency, cases[i].tol, cases[i].spec);
    }
    trial_fill(&t, ROWS_GAUSS, 3, 4, REEF_F64, 1);
    trial_must_run(&t, "ref:n=auto"); /* c = 26.7 would be needed and 12 is the cap */
    assert_true(t.efficiency > 0.8 && t.efficiency < 0.95);
    static const char *const without[] = {"median", "krum", "nnm | ref", "clip | huber"};
    for (ptrdiff_t i = 0; i < COUNT(without); i++) {
        trial_must_run(&t, without[i]);
        CHECK(isnan(t.efficiency), "%s: %g", without[i], t.efficiency);
    }
}

/* Half of the weight or more in one hand. Rows that were left out do not count. */
static void a_dominant_row_is_reported(void **state)
{
    (void)state;
    trial_fill(&t, ROWS_GAUSS, 5, 3, REEF_F64, 1);
    trial_must_run(&t, "ref");
    assert_int_equal(t.dominant, -1);
    trial_weigh(&t, 1);
    for (ptrdiff_t l = 0; l < 5; l++) {
        t.weights[l] = l == 3 ? 4 : 1;
    }
    trial_must_run(&t, "ref");
    assert_int_equal(t.dominant, 3);
    t.weights[3] = 3;
    trial_must_run(&t, "ref");
    assert_int_equal(t.dominant, -1);
    t.x[0][0] = NAN;
    trial_must_run(&t, "ref");
    assert_int_equal(t.dominant, 3); /* three of the six that are left */
}

/* A report is overwritten by the next aggregation, and refused for another number of rows. */
static void reports_are_reusable(void **state)
{
    double x[5] = {1, 2, 3, 4, 1e9};
    double out = 0;
    const void *rows[5];
    reef_report *report = NULL;
    reef_agg *agg = make_agg("ref");
    reef_error error;
    (void)state;
    for (int l = 0; l < 5; l++) {
        rows[l] = &x[l];
    }
    reef_input input = {.rows = rows};
    assert_int_equal(reef_report_create(NULL, &report, 5, &error), REEF_OK);
    assert_int_equal(reef_agg_apply(agg, &input, 5, 1, REEF_F64, &out, report, &error), REEF_OK);
    assert_true(reef_report_trust(report)[4] == 0 && reef_report_rejected(report)[4] == 1);
    x[4] = NAN;
    assert_int_equal(reef_agg_apply(agg, &input, 5, 1, REEF_F64, &out, report, &error), REEF_OK);
    assert_int_equal(reef_report_reason(report, 4), REEF_NONFINITE);
    assert_int_equal(reef_report_dropped(report), 1);
    x[4] = 2.5;
    assert_int_equal(reef_agg_apply(agg, &input, 5, 1, REEF_F64, &out, report, &error), REEF_OK);
    assert_int_equal(reef_report_reason(report, 4), REEF_USED);
    assert_int_equal(reef_report_dropped(report), 0);
    assert_true(reef_report_trust(report)[4] > 0.9);
    assert_int_equal(reef_agg_apply(agg, &input, 4, 1, REEF_F64, &out, report, &error), REEF_E_ARG);
    assert_int_equal(reef_report_reason(report, -1), REEF_ZERO_WEIGHT);
    assert_int_equal(reef_report_reason(report, 5), REEF_ZERO_WEIGHT);
    reef_report_destroy(&report);
    reef_report_destroy(&report);
    reef_report_destroy(NULL);
    reef_agg_destroy(&agg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_follows_from_the_shares),
        cmocka_unit_test(a_remembered_centre),
        cmocka_unit_test(trust_says_who_lied),
        cmocka_unit_test(effort_is_reported),
        cmocka_unit_test(unconverged_results_follow_from_the_shares),
        cmocka_unit_test(efficiency_is_reported),
        cmocka_unit_test(a_dominant_row_is_reported),
        cmocka_unit_test(reports_are_reusable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
