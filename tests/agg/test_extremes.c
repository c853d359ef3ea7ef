/* Data at the ends of the number range: a defined, finite result or REEF_E_FAR, for every spec. */
#include "num/rng.h"
#include "support/check.h"
#include "support/specs.h"
#include "support/trial.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static trial t;

static bool measures_distances(const char *spec)
{
    static const char *const rules[] = {"geomed", "krum", "multikrum", "bulyan",    "mda",  "cclip",
                                        "vref",   "mref", "nnm",       "bucketing", "clip", "arc"};
    for (ptrdiff_t i = 0; i < COUNT(rules); i++) {
        if (spec_uses(spec, rules[i])) {
            return true;
        }
    }
    return false;
}

/* Finite, inside the hull where claimed, shares in order; or distances that overflow. */
static void check_outcome(const char *spec, unsigned traits, const char *what)
{
    double smallest = t.dtype == REEF_F32 ? (double)FLT_MIN : DBL_MIN;
    trial_run(&t, spec);
    if (t.status == REEF_E_FAR && measures_distances(spec) && t.dtype == REEF_F64) {
        return;
    }
    CHECK(t.status == REEF_OK, "%s, %s, n = %td: %s", spec, what, t.n, t.error.text);
    for (ptrdiff_t i = 0; i < t.m; i++) {
        double low = INFINITY;
        double high = -INFINITY;
        double sum = t.centre[i];
        for (ptrdiff_t l = 0; l < t.n; l++) {
            low = fmin(low, t.x[l][i]);
            high = fmax(high, t.x[l][i]);
            sum += t.shares[l * t.m + i];
        }
        CHECK(isfinite(t.out[i]), "%s, %s, n = %td: %g", spec, what, t.n, t.out[i]);
        CHECK_CLOSE(sum, 1, 1e-9, spec);
        if (traits & REEF_TRAIT_HULL) {
            double slack = smallest + 4 * dtype_epsilon(t.dtype) * fmax(fabs(low), fabs(high));
            CHECK(t.out[i] >= low - slack && t.out[i] <= high + slack, "%s, %s, n = %td: %.17g outside %.17g to %.17g",
                  spec, what, t.n, t.out[i], low, high);
        }
    }
}

typedef double maker(rfi_rng *rng, reef_dtype dtype);

static double denormal(rfi_rng *rng, reef_dtype dtype)
{
    double least = dtype == REEF_F32 ? 0x1p-149 : 0x1p-1074;
    return least * ((double)rfi_rng_below(rng, 41) - 20);
}

static double smallest_normals(rfi_rng *rng, reef_dtype dtype)
{
    return (dtype == REEF_F32 ? (double)FLT_MIN : DBL_MIN) * (1 + rfi_rng_uniform(rng));
}

static double near_the_top(rfi_rng *rng, reef_dtype dtype)
{
    return (dtype == REEF_F32 ? 1e38 : 1e308) * (1 + 0.5 * rfi_rng_uniform(rng));
}

static double both_ends(rfi_rng *rng, reef_dtype dtype)
{
    double top = dtype == REEF_F32 ? (double)FLT_MAX : DBL_MAX;
    return rfi_rng_below(rng, 2) ? top : -top;
}

static double very_top(rfi_rng *rng, reef_dtype dtype)
{
    (void)rng;
    return dtype == REEF_F32 ? (double)FLT_MAX : DBL_MAX;
}

static double any_exponent(rfi_rng *rng, reef_dtype dtype)
{
    int range = dtype == REEF_F32 ? 125 : 1020;
    int exponent = (int)rfi_rng_below(rng, (uint32_t)(2 * range)) - range;
    return ldexp(rfi_rng_normal(rng) / 8, exponent);
}

static double mostly_equal(rfi_rng *rng, reef_dtype dtype)
{
    (void)dtype;
    return rfi_rng_below(rng, 3) ? 0.1 : rfi_rng_normal(rng);
}

static double signed_zero(rfi_rng *rng, reef_dtype dtype)
{
    (void)dtype;
    return rfi_rng_below(rng, 2) ? 0.0 : -0.0;
}

static double huge_or_tiny(rfi_rng *rng, reef_dtype dtype)
{
    double top = dtype == REEF_F32 ? 1e38 : 1e308;
    return rfi_rng_below(rng, 3) ? rfi_rng_normal(rng) / top : top * rfi_rng_normal(rng) / 8;
}

static const struct {
    const char *name;
    maker *make;
} makers[] = {
    {"denormals", denormal},        {"smallest normals", smallest_normals}, {"near the top", near_the_top},
    {"both ends", both_ends},       {"largest numbers", very_top},          {"any exponent", any_exponent},
    {"mostly equal", mostly_equal}, {"signed zeros", signed_zero},          {"huge or tiny", huge_or_tiny},
};

static void every_spec_survives(void **state)
{
    static const ptrdiff_t counts[] = {1, 2, 3, 4, 7, 10, 49};
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        reef_agg *agg = make_agg(all_specs[i]);
        unsigned traits = reef_agg_traits(agg);
        reef_agg_destroy(&agg);
        for (ptrdiff_t k = 0; k < COUNT(makers) * COUNT(counts) * 2; k++) {
            ptrdiff_t n = counts[k / 2 % COUNT(counts)];
            reef_dtype dtype = k % 2 ? REEF_F32 : REEF_F64;
            ptrdiff_t kind = k / (2 * COUNT(counts));
            rfi_rng rng;
            if (n == 49 && spec_uses(all_specs[i], "mda")) {
                continue; /* f = 12: not the place to spend time */
            }
            rfi_rng_init(&rng, (uint64_t)k, 71, 0, 0, 0);
            trial_fill(&t, ROWS_GAUSS, n, 4, dtype, 1);
            t.has_self = true;
            for (ptrdiff_t l = 0; l < n; l++) {
                for (ptrdiff_t m = 0; m < t.m; m++) {
                    t.x[l][m] = makers[kind].make(&rng, dtype);
                }
            }
            if ((traits & REEF_TRAIT_WEIGHTS) && k % 3 == 0) {
                trial_weigh(&t, (uint32_t)k);
            }
            check_outcome(all_specs[i], traits, makers[kind].name);
        }
    }
}

/* Elementwise rules never need distances: they work at any size, and exactly scale. */
static void elementwise_rules_reach_the_top(void **state)
{
    static const char *const specs[] = {"mean",  "median", "trimmed",      "meamed",      "huber",
                                        "tukey", "ref",    "ref:scale=qn", "ref:scale=s", "ref:init=weighted"};
    static trial small;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        trial_fill(&small, ROWS_GAUSS, 11, 20, REEF_F64, (uint32_t)i);
        trial_must_run(&small, specs[i]);
        t = small;
        for (ptrdiff_t l = 0; l < t.n; l++) {
            for (ptrdiff_t m = 0; m < t.m; m++) {
                t.x[l][m] *= 0x1p1020;
            }
        }
        trial_must_run(&t, specs[i]);
        for (ptrdiff_t m = 0; m < t.m; m++) {
            CHECK_CLOSE(t.out[m] * 0x1p-1020, small.out[m], 1e-12 * fabs(small.out[m]), specs[i]);
        }
    }
}

/* A liar at the end of the range, among honest numbers of ordinary size, changes nothing. */
static void one_huge_malicious(void **state)
{
    static const char *const specs[] = {"median",
                                        "trimmed",
                                        "meamed",
                                        "krum",
                                        "multikrum",
                                        "bulyan",
                                        "mda:f=2",
                                        "tukey",
                                        "ref",
                                        "vref",
                                        "geomed",
                                        "huber",
                                        "nnm | ref",
                                        "nnm | vref",
                                        "arc:f=2 | ref",
                                        "cclip",
                                        "clip | mean",
                                        "nnm | krum",
                                        "geomed:dialect=byzfl",
                                        "ref:scale=s"};
    static const double sizes[] = {1e100, 1e153, 1e155, 1e200, 1e300, DBL_MAX};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        for (ptrdiff_t j = 0; j < COUNT(sizes) * 2; j++) {
            trial_fill(&t, ROWS_GAUSS, 15, 6, REEF_F64, (uint32_t)i);
            for (ptrdiff_t m = 0; m < 6; m++) {
                t.x[3][m] = (j % 2 ? -1 : 1) * sizes[j / 2];
            }
            trial_must_run(&t, specs[i]);
            for (ptrdiff_t m = 0; m < 6; m++) {
                CHECK(fabs(t.out[m]) < 100, "%s, liar at %g: %g", specs[i], t.x[3][0], t.out[m]);
            }
        }
    }
}

/* More than half of the rows so far apart that squares overflow: refused in words. */
static void far_rows_are_refused(void **state)
{
    static const char *const specs[] = {"vref", "krum", "geomed", "nnm | ref", "mda", "cclip", "vref:block=2"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        trial_fill(&t, ROWS_GAUSS, 9, 4, REEF_F64, 2);
        for (ptrdiff_t l = 0; l < 9; l++) {
            for (ptrdiff_t m = 0; m < 4; m++) {
                t.x[l][m] *= 1e200;
            }
        }
        trial_run(&t, specs[i]);
        assert_int_equal(t.status, REEF_E_FAR);
        assert_non_null(strstr(t.error.text, "scale the data down"));
        for (ptrdiff_t l = 0; l < 9; l++) {
            for (ptrdiff_t m = 0; m < 4; m++) {
                t.x[l][m] *= 1e-60;
            }
        }
        trial_must_run(&t, specs[i]);
    }
}

/* Rules measured from the origin or a centre must not lose sight of it: a result of norm tau or c, not the bare mean. */
static void far_from_the_origin(void **state)
{
    static const struct {
        const char *spec;
        double longest;
    } cases[] = {{"cclip", 100}, {"cclip:tau=1,L=5", 5}, {"clip | mean", 2}, {"clip:c=7 | median", 7}};
    static const double sizes[] = {1e10, 1e100, 1e153, 1e156, 1e200, 1e300};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        for (ptrdiff_t j = 0; j < COUNT(sizes); j++) {
            trial_fill(&t, ROWS_GAUSS, 7, 4, REEF_F64, 2);
            for (ptrdiff_t l = 0; l < 7; l++) {
                for (ptrdiff_t m = 0; m < 4; m++) {
                    t.x[l][m] = sizes[j] * (1 + 1e-12 * t.x[l][m]);
                }
            }
            trial_run(&t, cases[i].spec);
            if (t.status == REEF_E_FAR) {
                continue;
            }
            double norm = hypot(hypot(t.out[0], t.out[1]), hypot(t.out[2], t.out[3]));
            CHECK(t.status == REEF_OK && norm <= cases[i].longest * 1.001 && norm > cases[i].longest * 0.5,
                  "%s, rows at %g: status %d, norm %g", cases[i].spec, sizes[j], (int)t.status, norm);
        }
    }
}

/* More than half identical: the result is that value, whatever the rest say. */
static void a_majority_of_ties(void **state)
{
    static const char *const specs[] = {"median",     "ref",  "tukey",  "huber", "ref:scale=qn", "ref:scale=s",
                                        "ref:n=auto", "vref", "geomed", "krum",  "mda"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        for (int single = 0; single < 2; single++) {
            trial_fill(&t, ROWS_HEAVY, 9, 5, single ? REEF_F32 : REEF_F64, (uint32_t)i);
            for (ptrdiff_t l = 0; l < 6; l++) {
                memcpy(t.x[l], t.x[8], sizeof t.x[l]);
            }
            trial_must_run(&t, specs[i]);
            for (ptrdiff_t m = 0; m < t.m; m++) {
                CHECK_CLOSE(t.out[m], t.x[8][m], 1e-6 * trial_magnitude(&t), specs[i]);
            }
        }
    }
}

/* Scales next to the smallest normal number, and weights: kernels take the median there and leave only its report to the scalar rule, whose
 * result may be another one. */
static void tiny_scales(void **state)
{
    enum { N = 10, M = 60 };
    static const double x[N] = {2.891, 2.547, 0.766, 1.617, 4.157, 0.344, 1.023, 0.344, 2.375, 3.578};
    static const double weights[N] = {2, 1, 2, 1, 1, 1, 2, 2, 2, 1};
    static const char *const specs[] = {"ref", "ref:nan=drop-coordinate", "huber", "tukey", "clip:c=1 | ref"};
    static double rows[N][M], out[2][M];
    reef_report *report = NULL;
    reef_error error = {0};
    const void *row[N];
    (void)state;
    CHECK(reef_report_create(NULL, &report, N, &error) == REEF_OK, "%s", error.text);
    for (ptrdiff_t i = 0; i < 2 * COUNT(specs); i++) {
        bool single = i % 2 == 0;
        reef_agg *agg = make_agg(specs[i / 2]);
        const reef_input input = {.rows = row, .weights = weights};
        for (ptrdiff_t k = 0; k < (ptrdiff_t)N * M;
             k++) { /* scales from the smallest normal number to some 30 times it */
            double value = x[k / M] * (single ? (double)FLT_MIN : DBL_MIN) * (1 + 0.5 * (double)(k % M));
            float narrow = (float)value;
            row[k / M] = rows[k / M];
            memcpy((char *)rows[k / M] + k % M * (single ? 4 : 8), single ? (void *)&narrow : (void *)&value,
                   single ? 4 : 8);
        }
        for (int with = 0; with < 2; with++) {
            reef_status status = reef_agg_apply(agg, &input, N, M, single ? REEF_F32 : REEF_F64, out[with],
                                                with ? report : NULL, &error);
            CHECK(status == REEF_OK, "%s: %s", specs[i / 2], error.text);
        }
        CHECK(memcmp(out[0], out[1], sizeof out[0]) == 0, "%s, float%d", specs[i / 2], single ? 32 : 64);
        reef_agg_destroy(&agg);
    }
    reef_report_destroy(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spec_survives), cmocka_unit_test(elementwise_rules_reach_the_top),
        cmocka_unit_test(one_huge_malicious),  cmocka_unit_test(far_rows_are_refused),
        cmocka_unit_test(far_from_the_origin), cmocka_unit_test(a_majority_of_ties),
        cmocka_unit_test(tiny_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
