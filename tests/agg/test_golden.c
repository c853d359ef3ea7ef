/* Reference values of tests/golden through the public interface: each record is one column, M = 1. */
#include "support/check.h"
#include "support/trial.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 300 };

typedef struct record {
    json_t *fields;
    int id;
    ptrdiff_t n;
    double x[VALUES_MAX];
    double a[VALUES_MAX];
    bool weighted;
} record;

static double number(const record *r, const char *name)
{
    const json_t *value = json_object_get(r->fields, name);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void load(record *r, const char *line)
{
    json_error_t error;
    r->fields = json_loads(line, 0, &error);
    CHECK(r->fields, "%s", error.text);
    const json_t *x = json_object_get(r->fields, "x");
    const json_t *a = json_object_get(r->fields, "a");
    r->id = (int)number(r, "id");
    r->n = (ptrdiff_t)json_array_size(x);
    r->weighted = a != NULL;
    assert_true(r->n >= 1 && r->n <= VALUES_MAX);
    for (ptrdiff_t l = 0; l < r->n; l++) {
        r->x[l] = json_number_value(json_array_get(x, (size_t)l));
        r->a[l] = a ? json_number_value(json_array_get(a, (size_t)l)) : 1;
    }
}

static int for_all(const char *file, void (*check)(const record *r))
{
    static char line[65536];
    static record r;
    char path[512];
    int count = 0;
    (void)snprintf(path, sizeof path, "%s/%s", REEF_GOLDEN_DIR, file);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        load(&r, line);
        check(&r);
        json_decref(r.fields);
        count++;
    }
    (void)fclose(in);
    return count;
}

/* The column through a spec, in either type. */
static double aggregate(const record *r, const char *spec, reef_dtype dtype)
{
    float narrow[VALUES_MAX];
    const void *rows[VALUES_MAX];
    double out64 = NAN;
    float out32 = NAN;
    reef_agg *agg = make_agg(spec);
    reef_error error;
    for (ptrdiff_t l = 0; l < r->n; l++) {
        narrow[l] = (float)r->x[l];
        rows[l] = dtype == REEF_F32 ? (const void *)&narrow[l] : (const void *)&r->x[l];
    }
    reef_input input = {.rows = rows, .weights = r->weighted ? r->a : NULL};
    void *out = dtype == REEF_F32 ? (void *)&out32 : (void *)&out64;
    reef_status status = reef_agg_apply(agg, &input, r->n, 1, dtype, out, NULL, &error);
    CHECK(status == REEF_OK, "record %d, %s: %s", r->id, spec, error.text);
    reef_agg_destroy(&agg);
    return dtype == REEF_F32 ? (double)out32 : out64;
}

static double ulp(double x, reef_dtype dtype)
{
    if (dtype == REEF_F32) {
        float size = fabsf((float)x);
        return (double)(nextafterf(size, INFINITY) - size);
    }
    return nextafter(fabs(x), INFINITY) - fabs(x);
}

static void check_value(const record *r, const char *spec, const char *field, double scales, double ulps)
{
    double want = number(r, field);
    double s = number(r, r->weighted ? "wmadn" : "madn");
    double got = aggregate(r, spec, REEF_F64);
    char text[120];
    (void)snprintf(text, sizeof text, "record %d, %s against %s", r->id, spec, field);
    CHECK_CLOSE(got, want, scales * s + ulps * ulp(want, REEF_F64), text);
}

/* The scale that the weights do not enter, for records whose fixed point starts by count. */
static double count_scale(const record *r)
{
    double s = 0;
    record plain = *r;
    ptrdiff_t n = 0;
    for (ptrdiff_t l = 0; l < r->n; l++) {
        plain.x[n] = r->x[l];
        n += r->a[l] > 0;
    }
    plain.n = n;
    plain.weighted = false;
    double median = aggregate(&plain, "median", REEF_F64);
    for (ptrdiff_t l = 0; l < n; l++) {
        plain.x[l] = fabs(plain.x[l] - median);
    }
    s = 1.4815 * aggregate(&plain, "median", REEF_F64);
    return s;
}

static void check_location(const record *r)
{
    check_value(r, "median", "median", 0, 0);
    check_value(r, "ref:c=4.685", "tukey_converged", 1e-12, 4);
    check_value(r, "tukey:c=4.685", "tukey_converged", 1e-12, 4);
    check_value(r, "huber:c=1.345", "huber_converged", 1e-12, 4);
    /* the efficiency gives c = 4.68506 and k = 1.34500 */
    check_value(r, "ref", "tukey_converged", 1e-3, 4);
    check_value(r, "huber", "huber_converged", 1e-3, 4);
    bool fell_back = json_is_true(json_object_get(r->fields, "tukey_nan_fallback_to_median"));
    if (!fell_back) {
        check_value(r, "ref:c=4.685", "tukey", 1e-4, 4);
    }
    if (isfinite(number(r, "huber"))) {
        check_value(r, "huber:c=1.345", "huber", 1e-4, 4);
    }
}

static void check_single(const record *r)
{
    if (!json_is_true(json_object_get(r->fields, "f32_exact"))) {
        return;
    }
    static const char *const pairs[][2] = {
        {"ref:c=4.685", "tukey_converged"}, {"huber:c=1.345", "huber_converged"}, {"median", "median"}};
    for (ptrdiff_t i = 0; i < COUNT(pairs); i++) {
        char text[120];
        double want = number(r, pairs[i][1]);
        double got = aggregate(r, pairs[i][0], REEF_F32);
        (void)snprintf(text, sizeof text, "record %d, float32 %s", r->id, pairs[i][0]);
        CHECK_CLOSE(got, want, 1e-6 * number(r, "madn") + ulp(want, REEF_F32), text);
    }
}

static void check_weighted(const record *r)
{
    char text[120];
    check_value(r, "median", "wmedian", 0, 0);
    check_value(r, "ref:c=4.685,init=weighted", "wtukey_conv", 1e-12, 4);
    check_value(r, "huber:c=1.345,init=weighted", "whuber_conv", 1e-12, 4);
    double want = number(r, "count_start_wtukey_conv");
    (void)snprintf(text, sizeof text, "record %d, count start", r->id);
    CHECK_CLOSE(aggregate(r, "ref:c=4.685", REEF_F64), want, 1e-12 * count_scale(r) + 4 * ulp(want, REEF_F64), text);
    double mean = number(r, "wmean");
    double size = 0;
    for (ptrdiff_t l = 0; l < r->n; l++) {
        size = fmax(size, fabs(r->x[l]));
    }
    CHECK_CLOSE(aggregate(r, "mean", REEF_F64), mean, 1e-15 * size * sqrt((double)r->n), "weighted mean");
}

static void location_records(void **state)
{
    (void)state;
    assert_int_equal(for_all("location_golden.jsonl", check_location), 288);
}

static void location_records_in_float32(void **state)
{
    (void)state;
    assert_int_equal(for_all("location_golden.jsonl", check_single), 288);
}

static void weighted_records(void **state)
{
    (void)state;
    assert_int_equal(for_all("weighted_golden.jsonl", check_weighted), 190);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(location_records),
        cmocka_unit_test(location_records_in_float32),
        cmocka_unit_test(weighted_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
