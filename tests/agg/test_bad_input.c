/* Bad arguments: a status, a sentence that says what is wrong and what is allowed, and an untouched output. */
#include "support/check.h"
#include "support/specs.h"
#include "support/trial.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static trial t;

/* ---- specs ---- */

typedef struct bad_spec {
    const char *spec;
    reef_status status;
    const char *says; /* part of the text */
} bad_spec;

static void check_bad_spec(const bad_spec *bad)
{
    reef_agg *const nothing = (reef_agg *)&t;
    reef_agg *agg = nothing;
    reef_error error = {0};
    reef_status status = reef_agg_create(NULL, &agg, bad->spec, &error);
    CHECK(status == bad->status, "'%s': status %d (%s), wanted %d", bad->spec, (int)status, error.text,
          (int)bad->status);
    assert_ptr_equal(agg, nothing);
    assert_int_equal(error.status, status);
    CHECK(strstr(error.text, bad->says), "'%s': \"%s\" does not say \"%s\"", bad->spec, error.text, bad->says);
    assert_int_equal(reef_agg_create(NULL, &agg, bad->spec, NULL), status);
    assert_true(strlen(error.text) > 20 && strlen(error.text) < sizeof error.text);
}

static void unknown_names_get_a_suggestion(void **state)
{
    static const bad_spec bad[] = {
        {"mediann", REEF_E_NAME, "did you mean 'median'"},
        {"trimed", REEF_E_NAME, "did you mean 'trimmed'"},
        {"krumm", REEF_E_NAME, "did you mean 'krum'"},
        {"REF", REEF_E_NAME, "there is no rule 'REF'"},
        {"qqqqqqqqqqqq", REEF_E_NAME, "reef list"},
        {"ref:efficency=0.95", REEF_E_NAME, "did you mean 'efficiency'"},
        {"trimmed:ff=2", REEF_E_NAME, "did you mean 'f'"},
        {"mean:zzz=1", REEF_E_NAME, "mean has no parameter 'zzz'"},
        {"vref:blok=3", REEF_E_NAME, "did you mean 'block'"},
        {"nnn:f=2 | ref", REEF_E_NAME, "did you mean 'nnm'"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        check_bad_spec(&bad[i]);
    }
}

static void values_out_of_range(void **state)
{
    static const bad_spec bad[] = {
        {"ref:efficiency=1.5", REEF_E_RANGE, "0.999"},
        {"ref:efficiency=0.1", REEF_E_RANGE, "0.5"},
        {"ref:c=-1", REEF_E_RANGE, "0.1"},
        {"ref:c=0", REEF_E_RANGE, "auto"},
        {"ref:max_iter=0", REEF_E_RANGE, "1"},
        {"ref:max_iter=-3", REEF_E_RANGE, "1"},
        {"ref:scale=mda", REEF_E_RANGE, "mad-exact"},
        {"ref:init=weight", REEF_E_RANGE, "weighted"},
        {"ref:scale=qn,init=weighted", REEF_E_RANGE, "qn"},
        {"trimmed:f=-1", REEF_E_RANGE, "count"},
        {"trimmed:f=0.5", REEF_E_RANGE, "fraction"},
        {"trimmed:f=50%", REEF_E_RANGE, "fraction"},
        {"trimmed:f=1e99", REEF_E_RANGE, "count"},
        {"trimmed:f=10000000000", REEF_E_RANGE, "count"},
        {"trimmed:f=most", REEF_E_RANGE, "max"},
        {"trimmed:beta=0.5", REEF_E_RANGE, "0.4999"},
        {"trimmed:keep_self=perhaps", REEF_E_RANGE, "true or false"},
        {"multikrum:m=0", REEF_E_RANGE, "1"},
        {"cclip:tau=0", REEF_E_RANGE, "tau"},
        {"cclip:L=0", REEF_E_RANGE, "L"},
        {"vref:block=0", REEF_E_RANGE, "whole"},
        {"clip:c=-1 | mean", REEF_E_RANGE, "c"},
        {"bucketing:s=0 | mean", REEF_E_RANGE, "s"},
        {"mean:nan=maybe", REEF_E_RANGE, "drop-row"},
        {"huber:sigma=0", REEF_E_RANGE, "sigma"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        check_bad_spec(&bad[i]);
    }
}

static void malformed_specs(void **state)
{
    static const bad_spec bad[] = {
        {"", REEF_E_SYNTAX, "missing"},
        {"   ", REEF_E_SYNTAX, "missing"},
        {"|", REEF_E_SYNTAX, "missing"},
        {"nnm |", REEF_E_SYNTAX, "missing"},
        {"| ref", REEF_E_SYNTAX, "missing"},
        {":::", REEF_E_SYNTAX, "missing"},
        {"ref:", REEF_E_SYNTAX, "key=value"},
        {"ref:c", REEF_E_SYNTAX, "key=value"},
        {"ref:c=", REEF_E_SYNTAX, "key=value"},
        {"ref:=3", REEF_E_SYNTAX, "key=value"},
        {"ref:c=3,", REEF_E_SYNTAX, "key=value"},
        {"ref:,c=3", REEF_E_SYNTAX, "key=value"},
        {"ref:c=nan", REEF_E_SYNTAX, "c"},
        {"ref:c=inf", REEF_E_SYNTAX, "c"},
        {"ref:c=0x10", REEF_E_SYNTAX, "c"},
        {"ref:c=4,5", REEF_E_SYNTAX, "key=value"},
        {"ref:c=4 5", REEF_E_SYNTAX, "c"},
        {"ref:c=1e999", REEF_E_SYNTAX, "c"},
        {"ref:c==4", REEF_E_SYNTAX, "c"},
        {"ref:max_iter=2.5", REEF_E_SYNTAX, "max_iter"},
        {"ref:c=4,c=5", REEF_E_SYNTAX, "twice"},
        {"ref:nan=error,nan=error", REEF_E_SYNTAX, "twice"},
        {"nnm", REEF_E_SYNTAX, "pre-aggregator"},
        {"nnm | clip", REEF_E_SYNTAX, "pre-aggregator"},
        {"ref | mean", REEF_E_SYNTAX, "not a pre-aggregator"},
        {"nnm:nan=error | ref", REEF_E_SYNTAX, "last rule"},
        {"nnm | trimmed:keep_self=true", REEF_E_SYNTAX, "own input"},
        {"clip|clip|clip|clip|clip|clip|clip|clip|mean", REEF_E_SYNTAX, "at most 8"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        check_bad_spec(&bad[i]);
    }
    reef_agg *agg = NULL;
    assert_int_equal(reef_agg_create(NULL, &agg, NULL, NULL), REEF_E_ARG);
    assert_int_equal(reef_agg_create(NULL, NULL, "mean", NULL), REEF_E_ARG);
    reef_agg_destroy(&agg);
    reef_agg_destroy(NULL);
}

/* Any bytes at all: a status, never a crash, and the text is terminated. */
static void hostile_specs(void **state)
{
    static char text[10000];
    static const char *const pieces[] = {"ref", "nnm", ":",   ",", "=", "|", " ",   "f",
                                         "c",   "max", "1e9", "-", "%", ".", "nan", "\xff\xfe"};
    uint32_t x = 12345;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t used = 0;
        for (int j = 0; j < i % 13; j++) {
            x = x * 1664525 + 1013904223;
            const char *piece = pieces[(x >> 16) % (uint32_t)COUNT(pieces)];
            memcpy(text + used, piece, strlen(piece));
            used += strlen(piece);
        }
        text[used] = '\0';
        reef_agg *agg = NULL;
        reef_error error = {0};
        reef_status status = reef_agg_create(NULL, &agg, text, &error);
        assert_true((status == REEF_OK) == (agg != NULL));
        assert_true(memchr(error.text, 0, sizeof error.text) != NULL);
        reef_agg_destroy(&agg);
    }
    static const char fill[] = {'a', ' ', '|', ':', ',', '=', '\x01', '\xff'};
    for (size_t i = 0; i < sizeof fill; i++) {
        for (size_t length = 1; length < sizeof text; length *= 3) {
            reef_agg *agg = NULL;
            memset(text, fill[i], length);
            text[length] = '\0';
            assert_int_not_equal(reef_agg_create(NULL, &agg, text, NULL), REEF_OK);
            memcpy(text, "ref:", length < 4 ? 0 : 4);
            assert_true(length < 5 || reef_agg_create(NULL, &agg, text, NULL) != REEF_OK);
            assert_null(agg);
        }
    }
}

/* ---- shapes and pointers ---- */

typedef struct call {
    const reef_agg *agg;
    const reef_input *input;
    ptrdiff_t rows, length;
    reef_dtype dtype;
    void *out;
    reef_status status;
    const char *says;
} call;

static void bad_calls(void **state)
{
    double x[4] = {1, 2, 3, 4};
    double out = -7;
    const void *pointers[] = {x, x + 1, NULL, x + 3};
    reef_input good = {.rows = pointers};
    reef_input no_rows = {0};
    reef_input wrong_self = {.rows = pointers, .has_self = true, .self = 2};
    reef_input negative_self = {.rows = pointers, .has_self = true, .self = -1};
    reef_agg *mean = make_agg("mean");
    reef_agg *krum = make_agg("krum");
    reef_agg *self = make_agg("trimmed:keep_self=true");
    const call calls[] = {
        {NULL, &good, 2, 1, REEF_F64, &out, REEF_E_ARG, "NULL"},
        {mean, NULL, 2, 1, REEF_F64, &out, REEF_E_ARG, "NULL"},
        {mean, &no_rows, 2, 1, REEF_F64, &out, REEF_E_ARG, "rows"},
        {mean, &good, 4, 1, REEF_F64, &out, REEF_E_ARG, "row 2"},
        {mean, &good, 2, 1, REEF_F64, NULL, REEF_E_ARG, "out"},
        {mean, &good, 0, 1, REEF_F64, &out, REEF_E_ARG, "K = 0"},
        {mean, &good, -5, 1, REEF_F64, &out, REEF_E_ARG, "K = -5"},
        {mean, &good, 2, 0, REEF_F64, &out, REEF_E_ARG, "M = 0"},
        {mean, &good, 2, -1, REEF_F64, &out, REEF_E_ARG, "M = -1"},
        {mean, &good, 2, PTRDIFF_MAX, REEF_F64, &out, REEF_E_OVERFLOW, "address space"},
        {mean, &good, PTRDIFF_MAX, 2, REEF_F64, &out, REEF_E_OVERFLOW, "address space"},
        {mean, &good, PTRDIFF_MAX / 8, 1, REEF_F64, &out, REEF_E_OVERFLOW, "address space"},
        {krum, &good, (ptrdiff_t)1 << 40, 1, REEF_F64, &out, REEF_E_OVERFLOW, "address space"},
        {mean, &good, 2, 1, (reef_dtype)9, &out, REEF_E_ARG, "dtype 9"},
        {mean, &wrong_self, 2, 1, REEF_F64, &out, REEF_E_ARG, "self = 2"},
        {mean, &negative_self, 2, 1, REEF_F64, &out, REEF_E_ARG, "self = -1"},
        {self, &good, 2, 1, REEF_F64, &out, REEF_E_ARG, "self"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(calls); i++) {
        const call *c = &calls[i];
        reef_error error = {0};
        reef_status status = reef_agg_apply(c->agg, c->input, c->rows, c->length, c->dtype, c->out, NULL, &error);
        CHECK(status == c->status, "call %td: status %d, %s", i, (int)status, error.text);
        CHECK(strstr(error.text, c->says), "call %td: %s", i, error.text);
        assert_true(out == -7);
        assert_int_equal(reef_agg_apply(c->agg, c->input, c->rows, c->length, c->dtype, c->out, NULL, NULL), status);
    }
    reef_agg_destroy(&mean);
    reef_agg_destroy(&krum);
    reef_agg_destroy(&self);
}

static void bad_shapes(void **state)
{
    static const ptrdiff_t huge[] = {PTRDIFF_MAX / 2, PTRDIFF_MAX / 2, PTRDIFF_MAX / 2};
    static const ptrdiff_t good[] = {3, 4};
    static const ptrdiff_t empty[] = {3, 0};
    size_t bytes = 77;
    reef_plan *const nothing = (reef_plan *)&t;
    reef_plan *plan = nothing;
    reef_agg *agg = make_agg("vref");
    reef_error error;
    const reef_shape bad[] = {
        {.rows = 2, .segments = 0, .lengths = good},
        {.rows = 2, .segments = -1, .lengths = good},
        {.rows = 2, .segments = 2, .lengths = NULL},
        {.rows = 2, .segments = 2, .lengths = empty},
        {.rows = 2, .segments = 3, .lengths = huge},
        {.rows = 2, .segments = 2, .lengths = good, .workers = -1},
        {.rows = 2, .segments = 2, .lengths = good, .workers = 1000000},
        {.rows = 2, .segments = 2, .lengths = good, .dtype = (reef_dtype)2},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        reef_status status = reef_plan_size(agg, &bad[i], &bytes, &error);
        assert_int_equal(status, i == 4 ? REEF_E_OVERFLOW : REEF_E_ARG);
        assert_int_equal(reef_plan_create(&plan, agg, &bad[i], &error), status);
        assert_int_equal(reef_plan_init(&plan, agg, &bad[i], &t, sizeof t, &error), status);
    }
    reef_shape shape = {.rows = 2, .segments = 2, .lengths = good};
    assert_int_equal(reef_plan_size(agg, &shape, NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_plan_size(agg, NULL, &bytes, &error), REEF_E_ARG);
    assert_int_equal(reef_plan_size(NULL, &shape, &bytes, &error), REEF_E_ARG);
    assert_int_equal(reef_plan_create(NULL, agg, &shape, &error), REEF_E_ARG);
    assert_int_equal(reef_plan_init(&plan, agg, &shape, NULL, 1 << 20, &error), REEF_E_ARG);
    assert_int_equal(reef_plan_init(NULL, agg, &shape, &t, sizeof t, &error), REEF_E_ARG);
    assert_ptr_equal(plan, nothing);
    assert_true(bytes == 77);
    reef_plan_destroy(NULL);
    reef_report *report = NULL;
    assert_int_equal(reef_report_create(NULL, &report, 0, &error), REEF_E_ARG);
    assert_int_equal(reef_report_create(NULL, &report, -1, &error), REEF_E_ARG);
    assert_int_equal(reef_report_create(NULL, &report, PTRDIFF_MAX, &error), REEF_E_OVERFLOW);
    assert_int_equal(reef_report_create(NULL, NULL, 3, &error), REEF_E_ARG);
    assert_null(report);
    reef_agg_destroy(&agg);
}

/* ---- weights and liars ---- */

static void bad_weights(void **state)
{
    static const double sets[][4] = {{1, -1, 1, 1},       {1, -1e-300, 1, 1}, {1, NAN, 1, 1},
                                     {1, INFINITY, 1, 1}, {0, 0, 0, 0},       {-0.0, 0, 0, 0}};
    (void)state;
    for (ptrdiff_t s = 0; s < COUNT(sets); s++) {
        for (ptrdiff_t i = 0; i < all_specs_count; i++) {
            trial_fill(&t, ROWS_GAUSS, 4, 3, REEF_F64, 1);
            t.has_self = true;
            t.weighted = true;
            memcpy(t.weights, sets[s], sizeof sets[s]);
            trial_run(&t, all_specs[i]);
            assert_int_equal(t.status, REEF_E_WEIGHTS);
            assert_true(t.untouched);
            assert_non_null(strstr(t.error.text, s < 4 ? "weight 1" : "all 4 weights are zero"));
        }
    }
}

static void too_many_malicious(void **state)
{
    static const struct {
        const char *spec;
        ptrdiff_t enough; /* rows with which the spec works */
        const char *says;
    } cases[] = {
        {"trimmed:f=3", 7, "n >= 2 f + 1"},
        {"trimmed:f=3,keep_self=true", 8, "2 f + 2"},
        {"meamed:f=3", 7, "n >= 2 f + 1"},
        {"krum:f=3", 9, "n >= 2 f + 3"},
        {"krum:f=3,dialect=byzfl", 7, "2 f + 1"},
        {"multikrum:f=3", 9, "n >= 2 f + 3"},
        {"bulyan:f=3", 15, "n >= 4 f + 3"},
        {"mda:f=3", 7, "n >= 2 f + 1"},
        {"nnm:f=3 | mean", 7, "n >= 2 f + 1"},
        {"arc:f=3 | mean", 7, "n >= 2 f + 1"},
        {"bucketing:s=2 | krum:f=3", 17, "n >= 2 f + 3"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        for (ptrdiff_t n = 1; n <= cases[i].enough + 1; n++) {
            trial_fill(&t, ROWS_GAUSS, n, 3, REEF_F64, 1);
            t.has_self = true;
            trial_run(&t, cases[i].spec);
            bool works = n >= cases[i].enough;
            CHECK(t.status == (works ? REEF_OK : REEF_E_MALICIOUS), "%s, n = %td: %d %s", cases[i].spec, n,
                  (int)t.status, t.error.text);
            assert_true(works || t.untouched);
            CHECK(works || strstr(t.error.text, cases[i].says), "%s: %s", cases[i].spec, t.error.text);
            CHECK(works || strstr(t.error.text, "at most f ="), "%s: %s", cases[i].spec, t.error.text);
        }
    }
    /* what would take too long is refused as well */
    trial_fill(&t, ROWS_GAUSS, 60, 2, REEF_F64, 1);
    trial_run(&t, "mda:f=25");
    assert_int_equal(t.status, REEF_E_RANGE);
    assert_true(t.untouched);
    assert_non_null(strstr(t.error.text, "f = 16"));
}

/* Rules whose work grows with the cube of the rows say so at once instead of taking hours. */
static void too_many_rows(void **state)
{
    enum { ROWS = 4097 };
    static const struct {
        const char *spec;
        ptrdiff_t rows;
        const char *says;
    } cases[] = {{"nnm:f=1 | mean", 4097, "nnm takes at most 4096 inputs"},
                 {"bulyan:f=1", 2049, "bulyan takes at most 2048 inputs"}};
    static const void *rows[ROWS];
    const float number = 1;
    float out = 0;
    (void)state;
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        rows[l] = &number;
    }
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_agg *agg = NULL;
        reef_error error = {REEF_OK, ""};
        assert_int_equal(reef_agg_create(NULL, &agg, cases[i].spec, NULL), REEF_OK);
        assert_int_equal(
            reef_agg_apply(agg, &(reef_input){.rows = rows}, cases[i].rows, 1, REEF_F32, &out, NULL, &error),
            REEF_E_RANGE);
        CHECK(strstr(error.text, cases[i].says), "%s", error.text);
        reef_agg_destroy(&agg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names_get_a_suggestion),
        cmocka_unit_test(values_out_of_range),
        cmocka_unit_test(malformed_specs),
        cmocka_unit_test(hostile_specs),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(bad_shapes),
        cmocka_unit_test(bad_weights),
        cmocka_unit_test(too_many_malicious),
        cmocka_unit_test(too_many_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
