/* Memory: nothing is allocated while aggregating; every allocation that fails gives REEF_E_NOMEM, leaks nothing and leaves
 * the caller's pointer alone. */
#include "support/alloc.h"
#include "support/check.h"
#include "support/model.h"
#include "support/specs.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- malloc itself, counted where no sanitizer has taken its place ---- */

static atomic_int heap_calls;

#if defined(__GLIBC__) && !defined(TEST_SANITIZED)
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);

void *malloc(size_t bytes)
{
    atomic_fetch_add(&heap_calls, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(&heap_calls, 1);
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    atomic_fetch_add(&heap_calls, 1);
    return __libc_realloc(memory, bytes);
}
#endif

static void the_counter_counts(void **state)
{
    (void)state;
#if defined(__GLIBC__) && !defined(TEST_SANITIZED)
    int before = atomic_load(&heap_calls);
    void *volatile block = malloc(10);
    free(block);
    assert_int_equal(atomic_load(&heap_calls), before + 1);
#else
    skip();
#endif
}

static void check_quiet(const char *spec, reef_context *context, alloc_log *log, model *d)
{
    reef_agg *agg = NULL;
    reef_plan *plan = NULL;
    reef_report *report = NULL;
    reef_state *memory = NULL;
    reef_error error;
    assert_int_equal(reef_agg_create(context, &agg, spec, &error), REEF_OK);
    assert_int_equal(reef_plan_create(&plan, agg, &d->shape, &error), REEF_OK);
    assert_int_equal(reef_report_create(context, &report, d->shape.rows, &error), REEF_OK);
    assert_int_equal(reef_state_create(&memory, agg, &d->shape, &error), REEF_OK);
    int hooked = atomic_load(&log->total);
    for (uint32_t round = 0; round < 4; round++) {
        reef_input input = {.has_self = true, .round = round, .state = round % 2 ? memory : NULL};
        model_refill(d, round);
        if (round == 3) {
            model_set(d, 0, 1, 2, NAN);
        }
        int heap = atomic_load(&heap_calls);
        reef_status status =
            reef_plan_apply_segments(plan, &input, d->rows, d->outs, round > 1 ? report : NULL, &error);
        int after = atomic_load(&heap_calls);
        CHECK(status == REEF_OK, "%s: %s", spec, error.text);
        CHECK(after == heap, "%s calls malloc %d times", spec, after - heap);
    }
    CHECK(atomic_load(&log->total) == hooked, "%s allocates from its context", spec);
    reef_state_destroy(&memory);
    reef_report_destroy(&report);
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
}

static void aggregating_allocates_nothing(void **state)
{
    static const ptrdiff_t small[] = {70, 5};
    static const ptrdiff_t large[] = {150000};
    alloc_log log;
    (void)state;
    for (ptrdiff_t threads = 1; threads <= 3; threads += 2) {
        reef_context *context = alloc_context(&log, threads);
        for (ptrdiff_t i = 0; i < all_specs_count; i++) {
            model d;
            model_create(&d, 9, 2, small, REEF_F32, 0, 1);
            check_quiet(all_specs[i], context, &log, &d);
            model_destroy(&d);
        }
        model d; /* large enough for several threads */
        model_create(&d, 5, 1, large, REEF_F32, 0, 1);
        check_quiet("nnm | vref", context, &log, &d);
        check_quiet("median", context, &log, &d);
        model_destroy(&d);
        reef_context_destroy(&context);
        assert_null(context);
        assert_int_equal(atomic_load(&log.live), 0);
        assert_false(atomic_load(&log.broken));
    }
}

/* ---- each allocation in turn fails ---- */

static reef_context *const untouched_context = (reef_context *)&heap_calls;
static reef_agg *const untouched_agg = (reef_agg *)&heap_calls;
static reef_plan *const untouched_plan = (reef_plan *)&heap_calls;
static reef_report *const untouched_report = (reef_report *)&heap_calls;
static reef_state *const untouched_state = (reef_state *)&heap_calls;

static void creating_a_context_fails(void **state)
{
    alloc_log log;
    reef_error error = {0};
    reef_allocator hook = alloc_hook(&log);
    reef_context *context = untouched_context;
    (void)state;
    log.fail_at = 0;
    assert_int_equal(reef_context_create(&context, &hook, &error), REEF_E_NOMEM);
    assert_int_equal(error.status, REEF_E_NOMEM);
    assert_ptr_equal(context, untouched_context);
    assert_int_equal(atomic_load(&log.live), 0);
    assert_int_equal(reef_context_create(NULL, &hook, &error), REEF_E_ARG);
    hook.release = NULL;
    assert_int_equal(reef_context_create(&context, &hook, &error), REEF_E_ARG);
    hook.allocate = NULL;
    assert_int_equal(reef_context_create(&context, &hook, &error), REEF_E_ARG);
    reef_context_destroy(NULL);
}

static void creating_aggregators_fails(void **state)
{
    alloc_log log;
    reef_context *context = alloc_context(&log, 1);
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        int live = atomic_load(&log.live);
        for (int at = 0;; at++) {
            reef_agg *agg = untouched_agg;
            reef_error error = {0};
            log.fail_at = atomic_load(&log.total) + at;
            reef_status status = reef_agg_create(context, &agg, all_specs[i], &error);
            if (status == REEF_OK) {
                assert_true(at >= 2); /* the aggregator, and its parameters */
                reef_agg_destroy(&agg);
                break;
            }
            assert_int_equal(status, REEF_E_NOMEM);
            assert_int_equal(error.status, REEF_E_NOMEM);
            assert_ptr_equal(agg, untouched_agg);
            assert_int_equal(atomic_load(&log.live), live);
        }
        log.fail_at = -1;
        assert_int_equal(atomic_load(&log.live), live);
    }
    reef_context_destroy(&context);
    assert_int_equal(atomic_load(&log.live), 0);
}

static void creating_the_rest_fails(void **state)
{
    static const ptrdiff_t length = 10;
    reef_shape shape = {.rows = 3, .segments = 1, .lengths = &length, .dtype = REEF_F32};
    reef_plan *plan = untouched_plan;
    reef_report *report = untouched_report;
    reef_state *memory = untouched_state;
    reef_agg *agg = NULL;
    alloc_log log;
    reef_context *context = alloc_context(&log, 1);
    float x[3][10] = {{0}};
    float out[10];
    const void *rows[] = {x[0], x[1], x[2]};
    reef_input input = {.rows = rows};
    (void)state;
    assert_int_equal(reef_agg_create(context, &agg, "cclip", NULL), REEF_OK);
    int live = atomic_load(&log.live);
    log.fail_at = atomic_load(&log.total);
    assert_int_equal(reef_plan_create(&plan, agg, &shape, NULL), REEF_E_NOMEM);
    log.fail_at = atomic_load(&log.total);
    assert_int_equal(reef_report_create(context, &report, 3, NULL), REEF_E_NOMEM);
    log.fail_at = atomic_load(&log.total);
    assert_int_equal(reef_state_create(&memory, agg, &shape, NULL), REEF_E_NOMEM);
    log.fail_at = atomic_load(&log.total);
    memset(out, 0x33, sizeof out);
    assert_int_equal(reef_agg_apply(agg, &input, 3, 10, REEF_F32, out, NULL, NULL), REEF_E_NOMEM);
    for (size_t i = 0; i < sizeof out; i++) {
        assert_int_equal(((unsigned char *)out)[i], 0x33);
    }
    log.fail_at = -1;
    assert_ptr_equal(plan, untouched_plan);
    assert_ptr_equal(report, untouched_report);
    assert_ptr_equal(memory, untouched_state);
    assert_int_equal(atomic_load(&log.live), live);
    reef_agg_destroy(&agg);
    reef_context_destroy(&context);
    assert_int_equal(atomic_load(&log.live), 0);
}

static double middle(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    (void)params;
    (void)effort;
    for (ptrdiff_t i = 0; i < column->n; i++) {
        share[i] = i == 0;
    }
    return column->x[0];
}

static void registering_fails(void **state)
{
    enum { RULES = 20 };
    static char names[RULES][8];
    static reef_rule rules[RULES];
    alloc_log log;
    reef_context *context = alloc_context(&log, 1);
    int refused = 0;
    (void)state;
    for (int i = 0; i < RULES; i++) {
        names[i][0] = 'u';
        names[i][1] = (char)('a' + i);
        rules[i] = (reef_rule){.kind = {.name = names[i], .summary = "", .citation = ""}, .column = middle};
        ptrdiff_t count = reef_kind_count(context, REEF_FAMILY_RULE);
        log.fail_at = atomic_load(&log.total);
        reef_status status = reef_kind_register(context, REEF_FAMILY_RULE, &rules[i].kind, NULL);
        if (status != REEF_OK) {
            refused++;
            assert_int_equal(status, REEF_E_NOMEM);
            assert_int_equal(reef_kind_count(context, REEF_FAMILY_RULE), count);
            assert_null(reef_kind_find(context, REEF_FAMILY_RULE, names[i]));
            log.fail_at = -1;
            assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &rules[i].kind, NULL), REEF_OK);
        }
        assert_int_equal(reef_kind_count(context, REEF_FAMILY_RULE), count + 1);
        assert_ptr_equal(reef_kind_find(context, REEF_FAMILY_RULE, names[i]), &rules[i]);
    }
    assert_true(refused >= 2); /* the table grew more than once */
    for (int i = 0; i < RULES; i++) {
        assert_ptr_equal(reef_kind_find(context, REEF_FAMILY_RULE, names[i]), &rules[i]);
    }
    reef_context_destroy(&context);
    assert_int_equal(atomic_load(&log.live), 0);
}

/* No memory for threads: the work is done all the same, alone. */
static void threads_are_optional(void **state)
{
    static const ptrdiff_t lengths_[] = {200000};
    alloc_log log;
    reef_context *context = alloc_context(&log, 3);
    reef_agg *agg = NULL;
    model d;
    float *expected = malloc(200000 * sizeof *expected);
    (void)state;
    model_create(&d, 5, 1, lengths_, REEF_F32, 0, 1);
    reef_input input = {.rows = d.rows[0]};
    assert_int_equal(reef_agg_create(context, &agg, "median", NULL), REEF_OK);
    assert_int_equal(reef_agg_apply(agg, &input, 5, 200000, REEF_F32, expected, NULL, NULL), REEF_OK);
    for (int at = 0; at < 4; at++) {
        assert_int_equal(reef_context_set_threads(context, 4, NULL), REEF_OK); /* ends the threads it had */
        log.fail_at = atomic_load(&log.total) + at;
        reef_status status = reef_agg_apply(agg, &input, 5, 200000, REEF_F32, d.out[0], NULL, NULL);
        assert_true(status == REEF_OK || status == REEF_E_NOMEM);
        if (status == REEF_OK) {
            assert_memory_equal(expected, d.out[0], 200000 * sizeof *expected);
        }
        log.fail_at = -1;
    }
    free(expected);
    reef_agg_destroy(&agg);
    model_destroy(&d);
    reef_context_destroy(&context);
    assert_int_equal(atomic_load(&log.live), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counter_counts),       cmocka_unit_test(aggregating_allocates_nothing),
        cmocka_unit_test(creating_a_context_fails), cmocka_unit_test(creating_aggregators_fails),
        cmocka_unit_test(creating_the_rest_fails),  cmocka_unit_test(registering_fails),
        cmocka_unit_test(threads_are_optional),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
