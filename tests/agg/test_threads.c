/* Threads of a context: the same bits for any number of them, from several callers at once, after fork. */
#include "support/check.h"
#include "support/model.h"
#include "support/trial.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 6 };
static const ptrdiff_t lengths[] = {140001, 5000};

static const char *const specs[] = {"mean", "median",           "ref",
                                    "vref", "vref:block=777",   "nnm | trimmed",
                                    "krum", "cclip:tau=40,L=2", "ref:scale_floor_rel=0.1"};

/* Out and trust of one aggregation, `threads` = 0: without a context. */
static void aggregate(reef_context *context, const char *spec, model *d, float *out, double *trust)
{
    reef_agg *agg = NULL;
    reef_plan *plan = NULL;
    reef_report *report = NULL;
    reef_input input = {0};
    assert_int_equal(reef_agg_create(context, &agg, spec, NULL), REEF_OK);
    assert_int_equal(reef_plan_create(&plan, agg, &d->shape, NULL), REEF_OK);
    assert_int_equal(reef_report_create(NULL, &report, ROWS, NULL), REEF_OK);
    model_clear_out(d);
    reef_error error;
    reef_status status = reef_plan_apply_segments(plan, &input, d->rows, d->outs, report, &error);
    CHECK(status == REEF_OK, "%s: %s", spec, error.text);
    model_take_out(d, out);
    memcpy(trust, reef_report_trust(report), ROWS * sizeof *trust);
    reef_report_destroy(&report);
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
}

static void any_number_of_threads(void **state)
{
    static const ptrdiff_t counts[] = {1, 2, 3, 7};
    model d;
    double trust[2][ROWS];
    (void)state;
    model_create(&d, ROWS, 2, lengths, REEF_F32, 0, 3);
    size_t bytes = (size_t)d.total * sizeof(float);
    float *expected = malloc(bytes);
    float *got = malloc(bytes);
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        aggregate(NULL, specs[i], &d, expected, trust[0]);
        for (ptrdiff_t j = 0; j < COUNT(counts); j++) {
            reef_context *context = NULL;
            assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
            assert_int_equal(reef_context_set_threads(context, counts[j], NULL), REEF_OK);
            aggregate(context, specs[i], &d, got, trust[1]);
            CHECK(memcmp(expected, got, bytes) == 0, "%s with %td threads", specs[i], counts[j]);
            CHECK(memcmp(trust[0], trust[1], sizeof trust[0]) == 0, "trust of %s with %td threads", specs[i],
                  counts[j]);
            reef_context_destroy(&context);
        }
    }
    free(expected);
    free(got);
    model_destroy(&d);
}

static void setting_threads(void **state)
{
    reef_context *context = NULL;
    reef_error error;
    (void)state;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, -1, &error), REEF_E_ARG);
    assert_non_null(strstr(error.text, "-1"));
    assert_int_equal(reef_context_set_threads(context, REEF_THREADS_MAX + 1, &error), REEF_E_ARG);
    assert_int_equal(reef_context_set_threads(NULL, 1, &error), REEF_E_ARG);
    assert_int_equal(reef_context_set_threads(context, 0, &error), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, REEF_THREADS_MAX, &error), REEF_OK);
    reef_context_destroy(&context);
}

/* Several callers share a context: one has the threads, the others work alone. */
typedef struct caller {
    reef_context *context;
    model d;
    float *out;
    double trust[ROWS];
} caller;

static void *call(void *argument)
{
    caller *c = argument;
    for (int i = 0; i < 5; i++) {
        aggregate(c->context, "vref", &c->d, c->out, c->trust);
    }
    return NULL;
}

static void callers_at_once(void **state)
{
    enum { CALLERS = 3 };
    static caller callers[CALLERS];
    pthread_t threads[CALLERS];
    reef_context *context = NULL;
    double trust[ROWS];
    (void)state;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, 3, NULL), REEF_OK);
    for (int i = 0; i < CALLERS; i++) {
        callers[i].context = context;
        model_create(&callers[i].d, ROWS, 2, lengths, REEF_F32, 0, (uint32_t)i);
        callers[i].out = malloc((size_t)callers[i].d.total * sizeof(float));
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        caller *c = &callers[i];
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        float *expected = malloc((size_t)c->d.total * sizeof(float));
        aggregate(NULL, "vref", &c->d, expected, trust);
        assert_memory_equal(expected, c->out, (size_t)c->d.total * sizeof(float));
        assert_memory_equal(trust, c->trust, sizeof trust);
        free(expected);
        free(c->out);
        model_destroy(&c->d);
    }
    reef_context_destroy(&context);
}

/* A child has none of its parent's threads, and must not wait for them. */
static void after_fork(void **state)
{
#if defined(TEST_SANITIZED) || defined(TEST_NO_THREADS_AFTER_FORK)
    (void)state;
    skip(); /* sanitizers and fork with threads do not go together */
#else
    model d;
    double trust[ROWS];
    reef_context *context = NULL;
    (void)state;
    model_create(&d, ROWS, 2, lengths, REEF_F32, 0, 3);
    size_t bytes = (size_t)d.total * sizeof(float);
    float *expected = malloc(bytes);
    float *got = malloc(bytes);
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, 3, NULL), REEF_OK);
    aggregate(context, "median", &d, expected, trust);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        aggregate(context, "median", &d, got, trust);
        int differs = memcmp(expected, got, bytes) != 0;
        reef_context_destroy(&context);
        _exit(differs);
    }
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    aggregate(context, "median", &d, got, trust); /* and the parent still works */
    assert_memory_equal(expected, got, bytes);
    reef_context_destroy(&context);
    free(expected);
    free(got);
    model_destroy(&d);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(setting_threads),
        cmocka_unit_test(callers_at_once),
        cmocka_unit_test(after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
