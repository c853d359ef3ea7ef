/* The interface to problems: specs and what is said about mistakes, printing, own kinds, memory. */
#include "support/alloc.h"
#include "support/check.h"

#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void listing(void **state)
{
    (void)state;
    assert_int_equal(reef_kind_count(NULL, REEF_FAMILY_PROBLEM), 4);
    assert_null(reef_kind_at(NULL, REEF_FAMILY_PROBLEM, -1));
    assert_null(reef_kind_at(NULL, REEF_FAMILY_PROBLEM, reef_kind_count(NULL, REEF_FAMILY_PROBLEM)));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_PROBLEM, "lsm"));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_PROBLEM, NULL));
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_PROBLEM); i++) {
        const reef_problem_kind *kind = (const void *)reef_kind_at(NULL, REEF_FAMILY_PROBLEM, i);
        assert_ptr_equal(reef_kind_find(NULL, REEF_FAMILY_PROBLEM, kind->kind.name), kind);
        assert_true(kind->kind.summary && kind->kind.citation && kind->kind.field_count <= 32);
        assert_true(!(kind->traits & REEF_PROBLEM_OPTIMUM) == !kind->optimum);
        assert_true(!(kind->traits & REEF_PROBLEM_CLASSES) == !kind->score);
        for (ptrdiff_t f = 0; f < kind->kind.field_count; f++) {
            assert_true(kind->kind.fields[f].help && kind->kind.fields[f].unit);
        }
    }
}

static void printing(void **state)
{
    static const struct {
        const char *spec, *printed;
    } cases[] = {
        {"lms:noise=0.1,covariance=ar1",
         "lms:dimension=10,noise=0.1,noise_spread=1,covariance=ar1,spread=4,rho=0.5,optimum=random,norm=1,"
         "heterogeneity=0,drift=0,outliers=0,outlier_noise=100,loss=square,threshold=1.345"},
        {"logistic", "logistic:data=gaussian:classes=2,partition=iid,l2=0,sampling=replace,steps=1"},
        {"softmax:data=(digits:test=0.3,bias=yes),partition=dirichlet:alpha=0.5",
         "softmax:data=(digits:test=0.3,bias=yes),partition=dirichlet:alpha=0.5,l2=0,sampling=replace,steps=1"},
        {"mlp:hidden=(8,4)",
         "mlp:data=digits,partition=iid,l2=0,sampling=replace,steps=1,hidden=(8,4),activation=relu"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        char text[1000];
        reef_problem *problem = NULL;
        assert_int_equal(reef_problem_create(NULL, &problem, cases[i].spec, 2, 1, NULL), REEF_OK);
        assert_int_equal(reef_problem_print(problem, text, sizeof text), strlen(cases[i].printed));
        assert_string_equal(text, cases[i].printed);
        assert_int_equal(reef_problem_agents(problem), 2);
        assert_true(reef_problem_dimension(problem) >= 1);
        reef_problem_destroy(&problem);
        assert_null(problem);
        assert_int_equal(reef_problem_create(NULL, &problem, cases[i].printed, 2, 1, NULL), REEF_OK);
        reef_problem_destroy(&problem);
    }
    reef_problem_destroy(NULL);
}

static void refusals(void **state)
{
    static const struct {
        const char *spec;
        ptrdiff_t agents;
        reef_status status;
        const char *says;
    } cases[] = {
        {"", 1, REEF_E_SYNTAX, "a problem is missing"},
        {"lsm", 1, REEF_E_NAME, "there is no problem 'lsm'; did you mean 'lms'?"},
        {"lms", 0, REEF_E_RANGE, "0 agents; between 1"},
        {"lms", -5, REEF_E_RANGE, "-5 agents; between 1"},
        {"lms", PTRDIFF_MAX, REEF_E_RANGE, "agents; between 1"},
        {"lms:dimension=0", 1, REEF_E_RANGE, "dimension = '0' is not allowed"},
        {"lms:noise=-1", 1, REEF_E_RANGE, "noise = '-1' is not allowed"},
        {"lms:rho=1", 1, REEF_E_RANGE, "rho = '1'"},
        {"lms:covariance=full", 1, REEF_E_RANGE, "identity|diagonal|ar1"},
        {"softmax:data=mnist", 1, REEF_E_NAME, "there is no data source 'mnist'"},
        {"softmax:data=(digits:task=regression)", 1, REEF_E_ARG, "softmax needs data with at least 2 classes"},
        {"softmax:data=(digits:test=0.5", 1, REEF_E_SYNTAX, "do not match"},
        {"softmax:partition=dirichlet:beta=1", 1, REEF_E_NAME, "dirichlet has no parameter 'beta'"},
        {"softmax", 5000, REEF_E_RANGE, "5000 agents, but only"},
        {"logistic:data=digits", 1, REEF_E_ARG, "logistic distinguishes 2 classes, but the data have 10"},
        {"mlp:hidden=()", 1, REEF_E_SYNTAX, "hidden = '' is not allowed"},
        {"mlp:hidden=1.5", 1, REEF_E_SYNTAX, "whole numbers from 1 to 1000000"},
        {"mlp:hidden=(3,0)", 1, REEF_E_SYNTAX, "whole numbers from 1 to 1000000"},
        {"mlp:hidden=(1,2,3,4,5,6,7,8)", 1, REEF_E_RANGE, "has more than 7 layers"},
        {"mlp:hidden=(1000000,1000000)", 1, REEF_E_RANGE, "more than 2^31 numbers"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_problem *problem = (reef_problem *)&problem;
        reef_error error = {REEF_OK, ""};
        reef_status status = reef_problem_create(NULL, &problem, cases[i].spec, cases[i].agents, 1, &error);
        CHECK(status == cases[i].status && strstr(error.text, cases[i].says), "\"%s\": %d, '%s' does not say '%s'",
              cases[i].spec, (int)status, error.text, cases[i].says);
        assert_null(problem);
    }
    reef_problem *problem = NULL;
    assert_int_equal(reef_problem_create(NULL, NULL, "lms", 1, 1, NULL), REEF_E_ARG);
    assert_int_equal(reef_problem_create(NULL, &problem, NULL, 1, 1, NULL), REEF_E_ARG);
}

/* ---- an own kind ---- */

typedef struct own_params {
    double target;
} own_params;

typedef struct own_state {
    double target;
    ptrdiff_t agents;
} own_state;

static const reef_field own_fields[] = {
    {.name = "target",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(own_params, target),
     .preset = "3",
     .unit = "",
     .help = "where to go"},
};

static int alive;

static reef_status own_create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    own_state *own = malloc(sizeof *own);
    (void)error;
    assert_non_null(own);
    *own = (own_state){((const own_params *)params)->target, setup->agents};
    alive++;
    *state = own;
    return own->target < 0 ? REEF_E_RANGE : REEF_OK;
}

static void own_destroy(void *state)
{
    alive--;
    free(state);
}

static ptrdiff_t own_dimension(const void *state)
{
    return ((const own_state *)state)->target > 100 ? 0 : 1;
}

static size_t own_work(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    (void)state;
    (void)size;
    (void)lanes;
    return 0;
}

static void own_gradients(const void *state, const reef_batch *batch)
{
    for (ptrdiff_t a = 0; a < batch->count; a++) {
        batch->gradients[a][0] = batch->models[a][0] - (float)((const own_state *)state)->target;
    }
}

static void own_kinds(void **state)
{
    reef_problem_kind kind = {
        .kind = {.name = "own",
                 .summary = "a target",
                 .citation = "",
                 .fields = own_fields,
                 .field_count = 1,
                 .params_size = sizeof(own_params)},
        .create = own_create,
        .destroy = own_destroy,
        .dimension = own_dimension,
        .work_size = own_work,
        .gradients = own_gradients,
    };
    const own_params params = {7};
    const own_params wide = {101};
    char text[40];
    reef_problem *problem = NULL;
    (void)state;
    assert_int_equal(reef_problem_create_own(NULL, &problem, &kind, NULL, 5, 1, NULL), REEF_OK);
    assert_int_equal(reef_problem_print(problem, text, sizeof text), 12);
    assert_string_equal(text, "own:target=3");
    assert_ptr_equal(reef_problem_kind_of(problem), &kind);
    assert_int_equal(((const own_state *)reef_problem_state(problem))->agents, 5);
    reef_problem_destroy(&problem);
    assert_int_equal(reef_problem_create_own(NULL, &problem, &kind, &params, 5, 1, NULL), REEF_OK);
    assert_int_equal(reef_problem_print(problem, text, 6), 12);
    assert_string_equal(text, "own:t");
    reef_problem_destroy(&problem);
    assert_int_equal(alive, 0);
    assert_int_equal(reef_problem_create_own(NULL, &problem, &kind, &wide, 5, 1, NULL), REEF_E_ARG);
    assert_int_equal(alive, 0);
    assert_null(problem);
    kind.traits = REEF_PROBLEM_OPTIMUM;
    assert_int_equal(reef_problem_create_own(NULL, &problem, &kind, NULL, 5, 1, NULL), REEF_E_ARG);
    kind.traits = 0;
    kind.gradients = NULL;
    assert_int_equal(reef_problem_create_own(NULL, &problem, &kind, NULL, 5, 1, NULL), REEF_E_ARG);
    assert_int_equal(reef_problem_create_own(NULL, &problem, NULL, NULL, 5, 1, NULL), REEF_E_ARG);
}

/* ---- memory ---- */

static const char *const specs[] = {
    "lms:noise_spread=2,covariance=diagonal,heterogeneity=1",
    "logistic",
    "mlp:hidden=(5,3),partition=(dirichlet:alpha=1)",
};

static void failing_allocations(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        reef_status status = REEF_E_NOMEM;
        for (int at = 0; status != REEF_OK; at++) {
            alloc_log log;
            reef_problem *problem = NULL;
            reef_context *context = alloc_context(&log, 1);
            const int before = atomic_load(&log.live);
            log.fail_at = atomic_load(&log.total) + at;
            status = reef_problem_create(context, &problem, specs[i], 4, 1, NULL);
            assert_true(status == REEF_OK || status == REEF_E_NOMEM);
            assert_true((status == REEF_OK) == (problem != NULL));
            assert_true(at > 0 || status != REEF_OK);
            reef_problem_destroy(&problem);
            assert_int_equal(atomic_load(&log.live), before);
            assert_false(atomic_load(&log.broken));
            log.fail_at = -1;
            reef_context_destroy(&context);
        }
    }
}

/* Gradients stay within the work space they asked for and within M numbers, and allocate nothing. */
static void work_space(void **state)
{
    static const char *const all[] = {"lms:covariance=diagonal,outliers=0.1,drift=0.1,dimension=5", "lms:dimension=70",
                                      "logistic", "softmax", "mlp:hidden=(9,3)"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(all); i++) {
        alloc_log log;
        reef_problem *problem = NULL;
        reef_context *context = alloc_context(&log, 1);
        assert_int_equal(reef_problem_create(context, &problem, all[i], 3, 1, NULL), REEF_OK);
        const reef_problem_kind *kind = reef_problem_kind_of(problem);
        const void *made = reef_problem_state(problem);
        const int total = atomic_load(&log.total);
        static const int32_t sizes[] = {1, 3, 300, 0};
        for (int s = 0; s < (kind->samples ? 4 : 3); s++) {
            const int32_t lanes = kind->traits & REEF_PROBLEM_LANES ? 5 : 1;
            const size_t numbers = (size_t)(reef_problem_dimension(problem) * lanes);
            const size_t work_bytes = kind->work_size(made, sizes[s], lanes) + 64;
            float *model = calloc(numbers, sizeof *model);
            float *out = guarded_new(numbers * sizeof *out);
            char *work = guarded_new(work_bytes);
            assert_non_null(model);
            const float *models[] = {model, model};
            float *gradients[] = {out, out};
            const int32_t agents[] = {0, 2};
            reef_batch batch = {.count = 2,
                                .agents = agents,
                                .models = models,
                                .gradients = gradients,
                                .round = 12345678901,
                                .size = sizes[s],
                                .lanes = lanes,
                                .work = work + (64 - (uintptr_t)work % 64) % 64};
            kind->gradients(made, &batch);
            assert_true(guarded_intact(out, numbers * sizeof *out) && guarded_intact(work, work_bytes));
            free(model);
            guarded_free(out);
            guarded_free(work);
        }
        assert_int_equal(atomic_load(&log.total), total);
        reef_problem_destroy(&problem);
        reef_context_destroy(&context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listing),
        cmocka_unit_test(printing),
        cmocka_unit_test(refusals),
        cmocka_unit_test(own_kinds),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(work_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
