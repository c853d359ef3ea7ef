/* The registry as a whole: every family alike, adding to three of them, and what was added named in specs and experiment files. */
#include "support/check.h"

#include <reef/reef.h>
#include <string.h>

static void every_family_alike(void **state)
{
    (void)state;
    for (int f = 0; f < REEF_FAMILIES; f++) {
        reef_family family = (reef_family)f;
        ptrdiff_t count = reef_kind_count(NULL, family);
        assert_non_null(reef_family_name(family));
        assert_true(count > 0);
        for (ptrdiff_t i = 0; i < count; i++) {
            const reef_kind *kind = reef_kind_at(NULL, family, i);
            assert_ptr_equal(reef_kind_find(NULL, family, kind->name), kind);
            assert_true(kind->summary[0] && kind->citation && kind->field_count >= 0 && kind->field_count <= 32);
            ptrdiff_t common = -1;
            const reef_field *fields = reef_kind_common(family, kind, &common);
            assert_true(common >= 0 && (fields != NULL) == (common > 0));
        }
        assert_null(reef_kind_at(NULL, family, -1));
        assert_null(reef_kind_at(NULL, family, count));
        assert_null(reef_kind_find(NULL, family, "no-such-thing"));
        assert_null(reef_kind_find(NULL, family, NULL));
    }
}

static void no_such_family(void **state)
{
    reef_context *context = NULL;
    const reef_kind *mean = reef_kind_find(NULL, REEF_FAMILY_RULE, "mean");
    ptrdiff_t count = -1;
    (void)state;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    for (int i = 0; i < 2; i++) {
        reef_family family = i ? (reef_family)REEF_FAMILIES : (reef_family)-1;
        assert_null(reef_family_name(family));
        assert_int_equal(reef_kind_count(context, family), 0);
        assert_null(reef_kind_at(context, family, 0));
        assert_null(reef_kind_find(context, family, "mean"));
        assert_null(reef_kind_common(family, mean, &count));
        assert_int_equal(count, 0);
        assert_int_equal(reef_kind_register(context, family, mean, NULL), REEF_E_ARG);
    }
    reef_context_destroy(&context);
}

/* ---- kinds of our own ---- */

static bool send_own(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    memcpy(out, view->own, (size_t)view->length * sizeof *out);
    return true;
}

static const reef_attack_kind harmless = {
    .kind = {.name = "harmless", .summary = "sends what an honest agent would", .citation = ""},
    .traits = REEF_ATTACK_LANES,
    .message = send_own,
};

static int made;

static reef_status valley_create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    (void)params;
    (void)setup;
    (void)error;
    made++;
    *state = &made;
    return REEF_OK;
}

static void valley_destroy(void *state)
{
    (void)state;
    made--;
}

static ptrdiff_t valley_dimension(const void *state)
{
    (void)state;
    return 2;
}

static size_t valley_work(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    (void)state;
    (void)size;
    (void)lanes;
    return 0;
}

static void valley_gradients(const void *state, const reef_batch *batch)
{
    (void)state;
    for (ptrdiff_t a = 0; a < batch->count; a++) {
        batch->gradients[a][0] = batch->models[a][0] - 1;
        batch->gradients[a][1] = batch->models[a][1] + 1;
    }
}

static void valley_optimum(const void *state, ptrdiff_t agent, const double *p, int64_t round, ptrdiff_t repetition,
                           double *w)
{
    (void)state;
    (void)agent;
    (void)p;
    (void)round;
    (void)repetition;
    w[0] = 1;
    w[1] = -1;
}

static const reef_problem_kind valley = {
    .kind = {.name = "valley", .summary = "one minimum for all", .citation = ""},
    .traits = REEF_PROBLEM_OPTIMUM,
    .create = valley_create,
    .destroy = valley_destroy,
    .dimension = valley_dimension,
    .work_size = valley_work,
    .gradients = valley_gradients,
    .optimum = valley_optimum,
};

static reef_context *context_with_both(void)
{
    reef_context *context = NULL;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_ATTACK, &harmless.kind, NULL), REEF_OK);
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_PROBLEM, &valley.kind, NULL), REEF_OK);
    return context;
}

static void by_spec(void **state)
{
    reef_context *context = context_with_both();
    reef_attack *attack = NULL;
    reef_problem *problem = NULL;
    reef_error error;
    (void)state;
    assert_int_equal(reef_kind_count(context, REEF_FAMILY_ATTACK), reef_kind_count(NULL, REEF_FAMILY_ATTACK) + 1);
    assert_int_equal(reef_kind_count(context, REEF_FAMILY_RULE), reef_kind_count(NULL, REEF_FAMILY_RULE));
    assert_ptr_equal(reef_kind_find(context, REEF_FAMILY_PROBLEM, "valley"), &valley.kind);
    assert_int_equal(reef_attack_create(context, &attack, "harmless:from=3", &error), REEF_OK);
    assert_ptr_equal(reef_attack_kind_of(attack), &harmless);
    assert_int_equal(reef_attack_common_of(attack)->from, 3);
    reef_attack_destroy(&attack);
    assert_int_equal(reef_attack_create(NULL, &attack, "harmless", &error), REEF_E_NAME);
    assert_int_equal(reef_attack_create(context, &attack, "harmles", &error), REEF_E_NAME);
    assert_non_null(strstr(error.text, "did you mean 'harmless'?"));
    assert_int_equal(reef_problem_create(context, &problem, "valley", 4, 1, &error), REEF_OK);
    reef_problem_destroy(&problem);
    assert_int_equal(reef_problem_create(NULL, &problem, "valley", 4, 1, &error), REEF_E_NAME);
    reef_context_destroy(&context);
    assert_int_equal(made, 0);
}

static void refusals(void **state)
{
    reef_context *context = context_with_both();
    reef_attack_kind attack = harmless;
    reef_problem_kind problem = valley;
    reef_error error;
    (void)state;
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_ATTACK, &harmless.kind, &error), REEF_E_NAME);
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_ATTACK, NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_kind_register(NULL, REEF_FAMILY_ATTACK, &harmless.kind, &error), REEF_E_ARG);
    attack.kind.name = "worse";
    attack.work_rows = -1;
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_ATTACK, &attack.kind, &error), REEF_E_ARG);
    problem.kind.name = "ridge";
    problem.optimum = NULL;
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_PROBLEM, &problem.kind, &error), REEF_E_ARG);
    assert_non_null(strstr(error.text, "problem 'ridge' needs create"));
    const reef_field field = {.name = "x", .type = REEF_FIELD_REAL, .offset = 8, .preset = "1", .help = "beyond"};
    problem = valley;
    problem.kind = (reef_kind){.name = "ridge", "a field beyond its struct", "", &field, 1, 8};
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_PROBLEM, &problem.kind, &error), REEF_E_ARG);
    assert_non_null(strstr(error.text, "an offset within params_size"));
    for (int f = REEF_FAMILY_GRAPH; f < REEF_FAMILIES; f++) {
        assert_int_equal(reef_kind_register(context, (reef_family)f, &harmless.kind, &error), REEF_E_ARG);
        assert_non_null(strstr(error.text, "rules, attacks and problems can be registered"));
    }
    reef_context_destroy(&context);
}

/* In an experiment's text, through the contexts of its workers; and no experiment of others can do so. */
static void in_an_experiment(void **state)
{
    static const char text[] = "name: own\nagents: 6\ngraph: complete\nproblem: valley\nrule: mean\nmalicious: 1\n"
                               "attack: harmless\nstrategy: {kind: diffusion, mu: 0.5}\nrounds: 40\nrepetitions: 2\n";
    reef_context *context = context_with_both();
    reef_experiment *e = NULL;
    reef_error error = {REEF_OK, ""};
    (void)state;
    reef_status status = reef_experiment_read(context, &e, text, strlen(text), "own.yaml", NULL, 0, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    reef_experiment_destroy(&e);
    assert_int_equal(reef_experiment_read(NULL, &e, text, strlen(text), "own.yaml", NULL, 0, &error), REEF_E_NAME);
    reef_context_destroy(&context);
    assert_int_equal(made, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_alike), cmocka_unit_test(no_such_family),   cmocka_unit_test(by_spec),
        cmocka_unit_test(refusals),           cmocka_unit_test(in_an_experiment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
