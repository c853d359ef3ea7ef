/* Short vectors: the short way of reef_plan_apply, which later calls of a plan take, gives what the first call gives, and leaves to the
 * long way whatever is out of the ordinary. */
#include "support/check.h"
#include "support/specs.h"
#include "support/trial.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ROWS = 9, LONGEST = 257 };

/* Rules with a kernel, and some whose plans have no short way. */
static const char *const specs[] = {"mean",
                                    "median",
                                    "median:even=lower",
                                    "trimmed:f=2",
                                    "meamed:f=2",
                                    "ref",
                                    "ref:n=auto",
                                    "huber",
                                    "ref:scale_floor_rel=0.3",
                                    "krum:f=2",
                                    "nnm:f=2 | median",
                                    "mean:nan=drop-coordinate",
                                    "median:nan=error"};
static const ptrdiff_t short_lengths[] = {1, 4, 16, 17, 64, LONGEST};

typedef struct sample {
    unsigned char bytes[ROWS][LONGEST * sizeof(double)];
    unsigned char out[LONGEST * sizeof(double)];
    const void *rows[ROWS];
    reef_dtype dtype;
    ptrdiff_t length;
} sample;

static void put(sample *s, ptrdiff_t l, ptrdiff_t m, double value)
{
    float narrow = (float)value;
    if (s->dtype == REEF_F32) {
        memcpy(s->bytes[l] + m * (ptrdiff_t)sizeof narrow, &narrow, sizeof narrow);
    } else {
        memcpy(s->bytes[l] + m * (ptrdiff_t)sizeof value, &value, sizeof value);
    }
}

static void fill(sample *s, reef_dtype dtype, ptrdiff_t length, uint32_t seed)
{
    s->dtype = dtype;
    s->length = length;
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        s->rows[l] = s->bytes[l];
        for (ptrdiff_t m = 0; m < length; m++) {
            seed = seed * 1664525U + 1013904223U;
            put(s, l, m, (double)(seed >> 8) * 0x1p-24 + (l == 8 ? 1 : 0));
        }
    }
}

static reef_plan *plan_of(const sample *s, const reef_agg *agg)
{
    reef_plan *plan = NULL;
    reef_error error;
    reef_shape shape = {.rows = ROWS, .segments = 1, .lengths = &s->length, .dtype = s->dtype};
    assert_int_equal(reef_plan_create(&plan, agg, &shape, &error), REEF_OK);
    return plan;
}

static reef_status apply(reef_plan *plan, sample *s, reef_error *error)
{
    memset(s->out, 0xa5, sizeof s->out);
    return reef_plan_apply(plan, &(reef_input){.rows = s->rows}, s->out, NULL, error);
}

/* A call of a plan that has been used before, and that of a new plan: the same status, message and bits. */
static void check_like_new(reef_plan *used, const reef_agg *agg, sample *s, const char *what)
{
    static sample fresh;
    reef_error error = {0};
    reef_error error_new = {0};
    fresh = *s;
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        if (s->rows[l] == s->bytes[l]) {
            fresh.rows[l] = fresh.bytes[l];
        }
    }
    reef_plan *plan = plan_of(&fresh, agg);
    reef_status status = apply(used, s, &error);
    reef_status status_new = apply(plan, &fresh, &error_new);
    CHECK(status == status_new, "%s: %d, a new plan %d: %s", what, (int)status, (int)status_new, error.text);
    CHECK(status == REEF_OK || strcmp(error.text, error_new.text) == 0, "%s: %s, a new plan: %s", what, error.text,
          error_new.text);
    CHECK(status != REEF_OK || memcmp(s->out, fresh.out, sizeof s->out) == 0, "%s: another result", what);
    reef_plan_destroy(&plan);
}

/* Values that kernels do not finish by themselves, one call after the other. */
static void disturb(sample *s, reef_plan *plan, const reef_agg *agg, const char *spec)
{
    static const double odd[] = {NAN, INFINITY, 1e300, -1e300, 0x1p-1060, 1e-40, 3e38, -0.0};
    for (ptrdiff_t i = 0; i < COUNT(odd); i++) {
        fill(s, s->dtype, s->length, (uint32_t)i);
        put(s, 3, s->length - 1, odd[i]);
        put(s, i % 2, 0, odd[i]);
        check_like_new(plan, agg, s, spec);
        fill(s, s->dtype, s->length, (uint32_t)i + 100);
        check_like_new(plan, agg, s, spec);
    }
    for (ptrdiff_t l = 0; l < ROWS; l++) { /* holes only */
        put(s, l, 0, NAN);
    }
    check_like_new(plan, agg, s, spec);
    fill(s, s->dtype, s->length, 7);
    check_like_new(plan, agg, s, spec);
}

static void like_a_new_plan(void **state)
{
    static sample s;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        reef_agg *agg = make_agg(specs[i]);
        for (ptrdiff_t j = 0; j < 2 * COUNT(short_lengths); j++) {
            fill(&s, j % 2 ? REEF_F32 : REEF_F64, short_lengths[j / 2], (uint32_t)j);
            reef_plan *plan = plan_of(&s, agg);
            for (uint32_t round = 0; round < 3; round++) {
                fill(&s, s.dtype, s.length, round);
                check_like_new(plan, agg, &s, specs[i]);
            }
            disturb(&s, plan, agg, specs[i]);
            reef_plan_destroy(&plan);
        }
        reef_agg_destroy(&agg);
    }
}

/* Weights that are all the same are as good as none, for every call; of those that cannot be told from them by the first, none. */
static void equal_weights(void **state)
{
    static sample s;
    static const double sizes[] = {1, 0.1, 1e300, 5e-324};
    static const double wrong[] = {0, -1, NAN, INFINITY};
    reef_error error;
    unsigned char plain[sizeof s.out];
    double weights[ROWS];
    (void)state;
    fill(&s, REEF_F32, 64, 1);
    reef_agg *agg = make_agg("ref");
    reef_plan *plan = plan_of(&s, agg);
    reef_input input = {.rows = s.rows, .weights = weights};
    assert_int_equal(apply(plan, &s, &error), REEF_OK);
    memcpy(plain, s.out, sizeof plain);
    for (ptrdiff_t i = 0; i < 3 * COUNT(sizes); i++) {
        for (ptrdiff_t l = 0; l < ROWS; l++) {
            weights[l] = sizes[i % COUNT(sizes)];
        }
        assert_int_equal(reef_plan_apply(plan, &input, s.out, NULL, &error), REEF_OK);
        assert_memory_equal(s.out, plain, 64 * sizeof(float));
        weights[ROWS - 1] *= 2;
        assert_int_equal(reef_plan_apply(plan, &input, s.out, NULL, &error), REEF_OK);
        assert_memory_not_equal(s.out, plain, 64 * sizeof(float));
        for (ptrdiff_t l = 0; l < ROWS; l++) {
            weights[l] = wrong[i % COUNT(wrong)];
        }
        assert_int_equal(reef_plan_apply(plan, &input, s.out, NULL, &error), REEF_E_WEIGHTS);
    }
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
}

/* Everything else an input can have, between plain calls. */
static void other_inputs_between(void **state)
{
    static sample s;
    static const double weights[ROWS] = {1, 2, 3, 0, 5, 6, 7, 8, 9};
    static const double bad[ROWS] = {1, -1};
    unsigned char plain[sizeof s.out];
    unsigned char weighted[sizeof s.out];
    reef_error error;
    (void)state;
    fill(&s, REEF_F32, 16, 1);
    reef_agg *agg = make_agg("ref");
    reef_plan *plan = plan_of(&s, agg);
    reef_report *report = NULL;
    reef_input with = {.rows = s.rows, .weights = weights};
    assert_int_equal(reef_report_create(NULL, &report, ROWS, &error), REEF_OK);
    assert_int_equal(apply(plan, &s, &error), REEF_OK);
    memcpy(plain, s.out, sizeof plain);
    assert_int_equal(reef_plan_apply(plan, &with, s.out, NULL, &error), REEF_OK);
    memcpy(weighted, s.out, sizeof weighted);
    assert_memory_not_equal(plain, weighted, 16 * sizeof(float));
    for (int round = 0; round < 3; round++) {
        check_like_new(plan, agg, &s, "after weights");
        assert_memory_equal(s.out, plain, sizeof plain);
        assert_int_equal(reef_plan_apply(plan, &with, s.out, report, &error), REEF_OK);
        assert_memory_equal(s.out, weighted, sizeof weighted);
        assert_true(reef_report_reason(report, 3) == REEF_ZERO_WEIGHT);
        check_like_new(plan, agg, &s, "after weights and a report");
        check_like_new(plan, agg, &s, "after plain calls");
        assert_int_equal(reef_plan_apply(plan, &(reef_input){.rows = s.rows}, s.out, report, &error), REEF_OK);
        assert_memory_equal(s.out, plain, 16 * sizeof(float));
        assert_true(reef_report_reason(report, 3) == REEF_USED && reef_report_trust(report)[3] > 0);
        check_like_new(plan, agg, &s, "after a report");
        assert_int_equal(reef_plan_apply(plan, &(reef_input){.rows = s.rows, .weights = bad}, s.out, NULL, &error),
                         REEF_E_WEIGHTS);
        assert_int_equal(reef_plan_apply(plan, &(reef_input){.rows = s.rows, .step = NAN}, s.out, NULL, &error),
                         REEF_E_ARG);
        assert_int_equal(reef_plan_apply(plan, &(reef_input){.rows = s.rows, .size = 3}, s.out, NULL, &error),
                         REEF_E_ARG);
    }
    reef_report_destroy(&report);
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
}

/* Places that overlap or are missing are refused in every call, with the message of the first. */
static void places_are_checked(void **state)
{
    static sample s;
    reef_error error;
    (void)state;
    fill(&s, REEF_F32, 16, 1);
    reef_agg *agg = make_agg("median");
    reef_plan *plan = plan_of(&s, agg);
    for (int round = 0; round < 3; round++) {
        const ptrdiff_t width = 16 * sizeof(float);
        check_like_new(plan, agg, &s, "in order");
        for (ptrdiff_t by = -width - 1; by <= width + 1; by++) {
            unsigned char *out = s.bytes[4] + LONGEST * sizeof(double) / 2;
            s.rows[4] = out + by;
            bool apart = by <= -width || by >= width;
            reef_status status = reef_plan_apply(plan, &(reef_input){.rows = s.rows}, out, NULL, &error);
            CHECK(status == (apart ? REEF_OK : REEF_E_ARG), "out %td bytes behind a row: %d", by, (int)status);
            CHECK(apart || strcmp(error.text, "out overlaps row 4 of segment 0") == 0, "%s", error.text);
        }
        s.rows[4] = NULL;
        assert_int_equal(apply(plan, &s, &error), REEF_E_ARG);
        assert_string_equal(error.text, "row 4 of segment 0 is NULL");
        s.rows[4] = s.bytes[4];
        assert_int_equal(reef_plan_apply(plan, &(reef_input){.rows = s.rows}, NULL, NULL, &error), REEF_E_ARG);
        assert_int_equal(reef_plan_apply(plan, &(reef_input){0}, s.out, NULL, &error), REEF_E_ARG);
        assert_int_equal(reef_plan_apply(plan, &(reef_input){0}, s.out, NULL, NULL), REEF_E_ARG);
    }
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
}

/* A rule that must be told which row is the receiver's own is told every time. */
static void self_is_asked_for(void **state)
{
    static sample s;
    reef_error error;
    (void)state;
    fill(&s, REEF_F64, 16, 1);
    reef_agg *agg = make_agg("median:keep_self=true");
    reef_plan *plan = plan_of(&s, agg);
    for (int round = 0; round < 3; round++) {
        reef_input input = {.rows = s.rows, .has_self = true, .self = 2};
        assert_int_equal(reef_plan_apply(plan, &input, s.out, NULL, &error), REEF_OK);
        assert_int_equal(apply(plan, &s, &error), REEF_E_ARG);
    }
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
}

/* An aggregation under way is over once another was done. */
static void ends_what_was_begun(void **state)
{
    static sample s;
    reef_error error;
    (void)state;
    fill(&s, REEF_F64, 16, 1);
    reef_agg *agg = make_agg("mean");
    reef_plan *plan = plan_of(&s, agg);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(reef_plan_begin(plan, &(reef_input){0}, NULL, &error), REEF_OK);
        assert_int_equal(apply(plan, &s, &error), REEF_OK);
        assert_int_equal(reef_plan_combine(plan, 0, 0, 0, 16, s.rows, s.out, &error), REEF_E_ORDER);
        assert_int_equal(reef_plan_end(plan, &error), REEF_E_ORDER);
    }
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_a_new_plan),   cmocka_unit_test(other_inputs_between),
        cmocka_unit_test(equal_weights),     cmocka_unit_test(places_are_checked),
        cmocka_unit_test(self_is_asked_for), cmocka_unit_test(ends_what_was_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
