/* Non-finite data under the three policies. */
#include "num/rng.h"
#include "support/check.h"
#include "support/specs.h"
#include "support/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static trial t, clean;

static const double bad_values[] = {NAN, INFINITY, -INFINITY};

/* Marks `count` random rows and puts one to all of their entries out of order. */
static void spoil(ptrdiff_t count, bool *bad, uint32_t seed)
{
    ptrdiff_t order[ROWS_MAX];
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 31, 0, 0, 0);
    rfi_rng_permutation(&rng, order, t.n);
    memset(bad, 0, ROWS_MAX * sizeof *bad);
    for (ptrdiff_t j = 0; j < count; j++) {
        ptrdiff_t l = order[j];
        bad[l] = true;
        t.x[l][rfi_rng_below(&rng, (uint32_t)t.m)] = bad_values[(size_t)j % 3];
        for (ptrdiff_t i = 0; j % 4 == 3 && i < t.m; i++) {
            t.x[l][i] = NAN;
        }
    }
}

static void check_dropped(const bool *bad, ptrdiff_t count, double tol, const char *what)
{
    assert_int_equal(t.dropped, count);
    assert_int_equal(t.masked, 0);
    for (ptrdiff_t l = 0, kept = 0; l < t.n; l++) {
        assert_int_equal(t.reason[l], bad[l] ? REEF_NONFINITE : REEF_USED);
        for (ptrdiff_t i = 0; i < t.m; i++) {
            double want = bad[l] ? 0 : clean.shares[kept * t.m + i];
            CHECK_CLOSE(t.shares[l * t.m + i], want, tol, what);
        }
        assert_true(!bad[l] || (t.trust[l] == 0 && t.rejected[l] == 1));
        kept += !bad[l];
    }
}

/* Spec with its f, or two of them, as numbers: %d stands for f. */
static void print_spec(char *text, size_t size, const char *format, ptrdiff_t f)
{
    size_t used = 0;
    text[0] = '\0';
    for (const char *c = format; *c && used + 8 < size; c++) {
        if (c[0] == '#') {
            used += (size_t)snprintf(text + used, size - used, "%td", f);
        } else {
            text[used++] = *c;
            text[used] = '\0';
        }
    }
}

/* n rows of which `count` are bad, rule with f: the same as the rest alone with f - count. */
static void check_drop_row(const char *format, ptrdiff_t n, ptrdiff_t f, ptrdiff_t count, reef_dtype dtype, bool weigh)
{
    bool bad[ROWS_MAX];
    char spec[160];
    char lowered[160];
    uint32_t seed = (uint32_t)(n * 100 + f * 10 + count);
    trial_fill(&t, ROWS_GAUSS, n, 6, dtype, seed);
    if (weigh) {
        trial_weigh(&t, seed);
    }
    t.has_self = true;
    t.self = n - 1;
    spoil(count, bad, seed);
    trial_remove(&t, bad, &clean);
    bool lost_self = bad[n - 1];
    print_spec(spec, sizeof spec, format, f);
    print_spec(lowered, sizeof lowered, format, f > count ? f - count : 0);
    trial_must_run(&t, spec);
    if (lost_self && strstr(spec, "keep_self")) {
        return; /* nothing to compare with: alone, the rule insists on a self */
    }
    trial_must_run(&clean, lowered);
    /* weights are divided by another sum, elsewhere the bits are the same */
    double tol = weigh ? 4 * dtype_epsilon(dtype) : 0;
    trial_close_out(&t, &clean, tol * trial_magnitude(&clean), spec);
    check_dropped(bad, count, tol, spec);
}

static void dropped_rows_lower_f(void **state)
{
    static const char *const counted[] = {
        "trimmed:f=#",
        "meamed:f=#",
        "krum:f=#",
        "krum:f=#,dialect=byzfl",
        "multikrum:f=#",
        "multikrum:f=#,m=3",
        "bulyan:f=#",
        "mda:f=#",
        "nnm:f=# | mean",
        "nnm:f=# | krum:f=#",
        "arc:f=# | mean",
        "arc:f=# | nnm:f=# | trimmed:f=#",
        "trimmed:f=#,keep_self=true",
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(counted); i++) {
        for (ptrdiff_t f = 0; f <= 4; f++) {
            ptrdiff_t n = 4 * f + 3; /* bulyan's bound, and enough for all */
            for (ptrdiff_t count = 0; count < n && count <= f + 3; count++) {
                /* mixed rows tie, and which of them are trimmed would depend on the rounding of weights */
                bool able = !strstr(counted[i], "krum") && !strstr(counted[i], "bulyan") && !strchr(counted[i], '|');
                bool weigh = count % 2 && able;
                check_drop_row(counted[i], n, f, count, count % 3 ? REEF_F64 : REEF_F32, weigh);
            }
        }
    }
}

/* The same at the very bound of each rule: liars who send NaN cannot stop it. */
static void bounds_still_hold_after_drops(void **state)
{
    static const struct {
        const char *format;
        int per_malicious, more;
    } cases[] = {
        {"krum:f=#", 2, 3},      {"krum:f=#,dialect=byzfl", 2, 1},
        {"multikrum:f=#", 2, 3}, {"bulyan:f=#", 4, 3},
        {"mda:f=#", 2, 1},       {"trimmed:f=#", 2, 1},
        {"meamed:f=#", 2, 1},    {"nnm:f=# | ref", 2, 1},
        {"arc:f=# | ref", 2, 1}, {"trimmed:f=#,keep_self=true", 2, 2},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        for (ptrdiff_t f = 1; f <= 5; f++) {
            ptrdiff_t n = cases[i].per_malicious * f + cases[i].more;
            for (ptrdiff_t count = 1; count < n; count++) {
                check_drop_row(cases[i].format, n, f, count, REEF_F64, false);
            }
        }
    }
}

/* A fraction counts the rows that came, less those found out. */
static void fractions_count_all_rows(void **state)
{
    bool bad[ROWS_MAX];
    (void)state;
    for (ptrdiff_t count = 0; count < 6; count++) {
        trial_fill(&t, ROWS_GAUSS, 20, 4, REEF_F64, 2);
        spoil(count, bad, 5);
        trial_remove(&t, bad, &clean);
        char lowered[64];
        (void)snprintf(lowered, sizeof lowered, "trimmed:f=%td", count < 5 ? 5 - count : 0);
        trial_must_run(&t, "trimmed:f=25%");
        trial_must_run(&clean, lowered);
        trial_same_out(&t, &clean, lowered);
    }
}

/* Every spec, from one to all rows bad, all dtypes. */
static void drop_row_for_every_spec(void **state)
{
    bool bad[ROWS_MAX];
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        for (ptrdiff_t j = 0; j < row_counts_count && row_counts[j] <= 16; j++) {
            ptrdiff_t n = row_counts[j];
            for (ptrdiff_t count = 1; count <= n; count += 1 + n / 8) {
                trial_fill(&t, ROWS_GAUSS, n, 5, count % 2 ? REEF_F64 : REEF_F32, (uint32_t)(i + n));
                t.has_self = true;
                spoil(count, bad, (uint32_t)count);
                trial_run(&t, all_specs[i]);
                assert_int_equal(t.status, count < n ? REEF_OK : REEF_E_NO_ROWS);
                for (ptrdiff_t m = 0; count < n && m < t.m; m++) {
                    CHECK(isfinite(t.out[m]), "%s: n = %td, %td bad", all_specs[i], n, count);
                }
            }
        }
    }
}

static void error_policy_names_the_agent(void **state)
{
    static const int64_t ids[] = {900, 901, 902, 903, 904, 905};
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        char spec[200];
        bool has_list = strrchr(all_specs[i], ':') &&
                        (!strrchr(all_specs[i], '|') || strrchr(all_specs[i], ':') > strrchr(all_specs[i], '|'));
        (void)snprintf(spec, sizeof spec, "%s%snan=error", all_specs[i], has_list ? "," : ":");
        trial_fill(&t, ROWS_GAUSS, 6, 4, REEF_F64, 1);
        t.has_self = true;
        trial_must_run(&t, spec);
        clean = t;
        trial_must_run(&clean, all_specs[i]);
        trial_same_out(&t, &clean, spec);
        t.x[4][2] = NAN;
        t.x[5][0] = INFINITY;
        trial_run(&t, spec);
        assert_int_equal(t.status, REEF_E_NONFINITE);
        assert_non_null(strstr(t.error.text, "2 of 6"));
        assert_non_null(strstr(t.error.text, "agent 4"));
    }
    const void *rows[6];
    double x[6] = {0, 0, 0, NAN, 0, 0};
    double out = 0;
    for (int l = 0; l < 6; l++) {
        rows[l] = &x[l];
    }
    reef_agg *agg = make_agg("median:nan=error");
    reef_error error;
    reef_input input = {.rows = rows, .ids = ids};
    assert_int_equal(reef_agg_apply(agg, &input, 6, 1, REEF_F64, &out, NULL, &error), REEF_E_NONFINITE);
    assert_non_null(strstr(error.text, "903"));
    reef_agg_destroy(&agg);
}

/* ---- drop-coordinate ---- */

static void make_holes(ptrdiff_t most_per_column, uint32_t seed)
{
    ptrdiff_t order[ROWS_MAX];
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 41, 0, 0, 0);
    for (ptrdiff_t i = 0; i < t.m; i++) {
        rfi_rng_permutation(&rng, order, t.n);
        ptrdiff_t holes = (ptrdiff_t)rfi_rng_below(&rng, (uint32_t)most_per_column + 1);
        for (ptrdiff_t j = 0; j < holes; j++) {
            t.x[order[j]][i] = bad_values[(size_t)(i + j) % 3];
        }
    }
}

/* Elementwise: each column is as if its holes had never been sent, with f lowered by their number. */
static void check_column(const char *format, ptrdiff_t f, ptrdiff_t i)
{
    bool hole[ROWS_MAX] = {false};
    char spec[120];
    ptrdiff_t holes = 0;
    for (ptrdiff_t l = 0; l < t.n; l++) {
        hole[l] = !isfinite(t.x[l][i]);
        holes += hole[l];
    }
    trial_remove(&t, hole, &clean);
    clean.m = 1;
    for (ptrdiff_t l = 0, k = 0; l < t.n; l++) {
        if (!hole[l]) {
            clean.x[k++][0] = t.x[l][i];
        }
    }
    print_spec(spec, sizeof spec, format, f > holes ? f - holes : 0);
    trial_must_run(&clean, spec);
    /* columns with holes take the scalar path, whole ones may take a vector kernel */
    double tol = spec_tolerance(format, t.dtype == REEF_F32) * (1 + trial_magnitude(&clean));
    CHECK_CLOSE(t.out[i], clean.out[0], tol, format);
    for (ptrdiff_t l = 0, k = 0; l < t.n; l++) {
        CHECK_CLOSE(t.shares[l * t.m + i], hole[l] ? 0 : clean.shares[k], 10 * tol, format);
        k += !hole[l];
    }
}

static void drop_coordinate_elementwise(void **state)
{
    static const char *const formats[] = {"mean:nan=drop-coordinate",        "median:nan=drop-coordinate",
                                          "trimmed:f=#,nan=drop-coordinate", "meamed:f=#,nan=drop-coordinate",
                                          "huber:nan=drop-coordinate",       "ref:nan=drop-coordinate",
                                          "ref:n=auto,nan=drop-coordinate",  "ref:init=weighted,nan=drop-coordinate",
                                          "ref:scale=qn,nan=drop-coordinate"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(formats); i++) {
        for (ptrdiff_t n = 3; n <= 12; n++) {
            char spec[120];
            ptrdiff_t f = (n - 1) / 2;
            trial_fill(&t, ROWS_GAUSS, n, 20, n % 2 ? REEF_F64 : REEF_F32, (uint32_t)n);
            if (n % 3 == 0) {
                trial_weigh(&t, 3);
            }
            make_holes(n - 1, (uint32_t)n);
            print_spec(spec, sizeof spec, formats[i], f);
            trial_must_run(&t, spec);
            for (ptrdiff_t m = 0; m < t.m; m++) {
                check_column(formats[i], f, m);
            }
        }
    }
}

/* All rules: a hole gets no share, holes are counted, nothing else is lost, the result is finite. */
static void check_holes(const char *spec, ptrdiff_t n, uint32_t seed)
{
    char full[200];
    ptrdiff_t holes = 0;
    bool has_list = strchr(strrchr(spec, '|') ? strrchr(spec, '|') : spec, ':') != NULL;
    (void)snprintf(full, sizeof full, "%s%snan=drop-coordinate", spec, has_list ? "," : ":");
    trial_fill(&t, ROWS_GAUSS, n, 9, seed % 2 ? REEF_F64 : REEF_F32, seed);
    t.has_self = true;
    make_holes(n - 1, seed);
    trial_must_run(&t, full);
    for (ptrdiff_t i = 0; i < t.m; i++) {
        double sum = t.centre[i];
        for (ptrdiff_t l = 0; l < n; l++) {
            double share = t.shares[l * t.m + i];
            bool hole = !isfinite(t.x[l][i]);
            holes += hole;
            CHECK(share >= 0 && (!hole || share == 0), "%s: share %g, hole %d", full, share, hole);
            sum += share;
        }
        CHECK_CLOSE(sum, 1, 1e-12, full);
        CHECK(isfinite(t.out[i]), "%s", full);
    }
    assert_int_equal(t.masked, holes);
    assert_int_equal(t.dropped, 0);
}

static void drop_coordinate_for_every_spec(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        for (ptrdiff_t n = 2; n <= 14; n += 3) {
            check_holes(all_specs[i], n, (uint32_t)(i * 3 + n));
        }
    }
}

static void a_column_without_values(void **state)
{
    (void)state;
    trial_fill(&t, ROWS_GAUSS, 4, 3, REEF_F64, 8);
    for (ptrdiff_t l = 0; l < 4; l++) {
        t.x[l][1] = NAN;
    }
    trial_run(&t, "ref:nan=drop-coordinate");
    assert_int_equal(t.status, REEF_E_NO_ROWS);
    assert_non_null(strstr(t.error.text, "coordinate 1"));
    trial_run(&t, "ref");
    assert_int_equal(t.status, REEF_E_NO_ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropped_rows_lower_f),           cmocka_unit_test(bounds_still_hold_after_drops),
        cmocka_unit_test(fractions_count_all_rows),       cmocka_unit_test(drop_row_for_every_spec),
        cmocka_unit_test(error_policy_names_the_agent),   cmocka_unit_test(drop_coordinate_elementwise),
        cmocka_unit_test(drop_coordinate_for_every_spec), cmocka_unit_test(a_column_without_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
