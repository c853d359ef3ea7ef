/* Reference values: RobustSP's output and converged fixed points, with and without weights (tests/golden/README.md).
 *
 * A column's estimate is taken as the aggregation rules take it: rows of weight 0 left out; scale 0 or below 16
 * times the smallest normal: the median; two values with equal weights: their mean.
 */
#include "num/mest.h"
#include "num/order.h"
#include "num/scale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <jansson.h>
#include <math.h>

#define N_MAX 257
#define LOCATION_CASES 288
#define WEIGHTED_CASES 190

static const rfi_mest tukey = {RFI_TUKEY, 4.685, 1e-12, 100};
static const rfi_mest huber = {RFI_HUBER, 1.345, 1e-12, 100};

/* One line of a file: the values of positive weight. */
typedef struct golden_case {
    const json_t *fields;
    double x[N_MAX];
    double a[N_MAX];
    ptrdiff_t n;
} golden_case;

static double number(const golden_case *c, const char *name)
{
    const json_t *field = json_object_get(c->fields, name);
    if (!json_is_number(field))
        fail_msg("no number '%s'", name);
    return json_number_value(field);
}

static int id(const golden_case *c)
{
    return (int)number(c, "id");
}

static void load_values(golden_case *c, const json_t *fields)
{
    const json_t *x = json_object_get(fields, "x");
    const json_t *a = json_object_get(fields, "a");
    c->fields = fields;
    c->n = 0;
    assert_in_range(json_array_size(x), 1, N_MAX);
    for (size_t i = 0; i < json_array_size(x); i++) {
        const double weight = a ? json_number_value(json_array_get(a, i)) : 1.0;
        if (!(weight > 0.0))
            continue;
        c->x[c->n] = json_number_value(json_array_get(x, i));
        c->a[c->n++] = weight;
    }
}

/* Calls `check` for every line of a file and returns how many there were. */
static int for_all_cases(const char *file, void (*check)(const golden_case *c))
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", REEF_GOLDEN_DIR, file);
    FILE *stream = fopen(path, "r");
    if (!stream)
        fail_msg("cannot read %s", path);
    int cases = 0;
    for (;; cases++) {
        json_error_t error;
        json_t *fields = json_loadf(stream, JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL, &error);
        if (!fields)
            break;
        golden_case c;
        load_values(&c, fields);
        check(&c);
        json_decref(fields);
    }
    fclose(stream);
    return cases;
}

typedef struct centre {
    double median;
    double scale; /* 1.4815 MAD */
} centre;

static centre centre_by_count(const golden_case *c)
{
    double spare[N_MAX];
    memcpy(spare, c->x, (size_t)c->n * sizeof *spare);
    const double median = rfi_median(spare, c->n, RFI_MEDIAN_AVERAGE);
    return (centre){median, rfi_mad_factor(RFI_SCALE_MAD, (double)c->n) * rfi_mad(c->x, c->n, median, spare)};
}

static centre centre_by_weight(const golden_case *c)
{
    double spare[N_MAX];
    ptrdiff_t order[N_MAX];
    ptrdiff_t order_spare[N_MAX];
    rfi_argsort(c->x, c->n, order, order_spare);
    const double median = rfi_wmedian(c->x, c->a, order, c->n, RFI_HALF_TOL_F64, RFI_MEDIAN_AVERAGE);
    const double mad = rfi_wmad(c->x, c->a, c->n, median, RFI_HALF_TOL_F64, spare, order, order_spare);
    return (centre){median, rfi_mad_factor(RFI_SCALE_MAD, (double)c->n) * mad};
}

static double estimate(const rfi_mest *est, const golden_case *c, centre at)
{
    if (at.scale < 16.0 * DBL_MIN)
        return at.median;
    if (c->n == 2 && c->a[0] == c->a[1])
        return rfi_midpoint(c->x[0], c->x[1]);
    return rfi_mest_solve(est, c->x, c->a, c->n, at.median, at.scale).value;
}

static void same_bits(const golden_case *c, const char *name, double got)
{
    const double want = number(c, name);
    if (!(got == want))
        fail_msg("case %d: %s is %.17g, wanted %.17g", id(c), name, got, want);
}

static void within(const golden_case *c, const char *name, double got, double tolerance)
{
    const double want = number(c, name);
    const double ulp = nextafter(fabs(want), HUGE_VAL) - fabs(want);
    if (!(fabs(got - want) <= tolerance + 4.0 * ulp))
        fail_msg("case %d: %s is %.17g, wanted %.17g, tolerance %g", id(c), name, got, want, tolerance);
}

static void check_location(const golden_case *c)
{
    const centre at = centre_by_count(c);
    same_bits(c, "median", at.median);
    same_bits(c, "madn", at.scale);

    const double t = estimate(&tukey, c, at);
    within(c, "tukey_converged", t, 1e-12 * at.scale);
    if (!json_is_true(json_object_get(c->fields, "tukey_nan_fallback_to_median")))
        within(c, "tukey", t, 1e-4 * at.scale);

    const double h = estimate(&huber, c, at);
    within(c, "huber_converged", h, 1e-12 * at.scale);
    within(c, "huber", h, 1e-4 * at.scale);
}

static void check_weighted(const golden_case *c)
{
    const centre weighted = centre_by_weight(c);
    same_bits(c, "wmedian", weighted.median);
    same_bits(c, "wmadn", weighted.scale);
    within(c, "whuber_conv", estimate(&huber, c, weighted), 1e-12 * weighted.scale);
    within(c, "wtukey_conv", estimate(&tukey, c, weighted), 1e-12 * weighted.scale);

    const centre counted = centre_by_count(c);
    within(c, "count_start_wtukey_conv", estimate(&tukey, c, counted), 1e-12 * counted.scale);
}

static void test_location_golden(void **state)
{
    (void)state;
    assert_int_equal(for_all_cases("location_golden.jsonl", check_location), LOCATION_CASES);
}

static void test_weighted_golden(void **state)
{
    (void)state;
    assert_int_equal(for_all_cases("weighted_golden.jsonl", check_weighted), WEIGHTED_CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_location_golden),
        cmocka_unit_test(test_weighted_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
