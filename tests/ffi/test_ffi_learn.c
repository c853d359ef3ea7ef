/* Runs with gradients of the caller's, and experiments, through the flat interface. */
#include "support/check.h"
#include "support/scratch.h"

#include <reef/reef.h>
#include <math.h>
#include <string.h>

enum { AGENTS = 150, DIMENSION = 3, ROOM = 200, CALLS = 64 };

/* Agents pull to the point (1, 2, 3); what the callback was asked is kept. */
typedef struct journal {
    ptrdiff_t calls;
    ptrdiff_t count[CALLS];
    int64_t round[CALLS], step[CALLS], size;
    bool flipped;
} journal;

static void pull(void *user, ptrdiff_t count, const int32_t *agents, const float *models, float *gradients,
                 const unsigned char *flipped, int64_t round, int64_t step, int64_t size)
{
    journal *j = user;
    for (ptrdiff_t i = 0; i < count; i++) {
        assert_true(agents[i] >= 0 && agents[i] < AGENTS && (i == 0 || agents[i] > agents[i - 1]));
        float sign = flipped && flipped[i] ? -1.0F : 1.0F;
        j->flipped = j->flipped || sign < 0;
        for (ptrdiff_t m = 0; m < DIMENSION; m++) {
            gradients[i * DIMENSION + m] = sign * (models[i * DIMENSION + m] - (float)(m + 1));
        }
    }
    if (j->calls < CALLS) {
        j->count[j->calls] = count;
        j->round[j->calls] = round;
        j->step[j->calls] = step;
    }
    j->calls++;
    j->size = size;
}

typedef struct parts {
    reef_context *context;
    reef_problem *problem;
    reef_agg *rule;
    reef_graph *graph;
    reef_links *links;
    reef_attack *attack;
    reef_run *run;
    journal journal;
} parts;

static void make_parts(parts *p, const char *strategy, const char *attack, ptrdiff_t malicious_count)
{
    char text[ROOM] = "";
    unsigned char malicious[AGENTS] = {0};
    static const float start[DIMENSION] = {10, 10, 10};
    memset(malicious, 2, (size_t)malicious_count); /* any value but 0 is a liar */
    *p = (parts){0};
    assert_int_equal(reef_ffi_context(&p->context, 2, text, ROOM), REEF_OK);
    assert_int_equal(
        reef_ffi_problem(p->context, &p->problem, AGENTS, DIMENSION, start, NULL, pull, &p->journal, text, ROOM),
        REEF_OK);
    assert_int_equal(reef_ffi_agg(p->context, &p->rule, "median", text, ROOM), REEF_OK);
    assert_int_equal(reef_ffi_graph(p->context, &p->graph, "complete", "metropolis", AGENTS, 1, text, ROOM), REEF_OK);
    assert_int_equal(reef_ffi_links(p->context, &p->links, "static", p->graph, 1, text, ROOM), REEF_OK);
    if (attack) {
        assert_int_equal(reef_ffi_attack(p->context, &p->attack, attack, text, ROOM), REEF_OK);
    }
    reef_status status = reef_ffi_run(p->context, &p->run, p->problem, strategy, p->rule, p->links, p->attack,
                                      malicious, NULL, 1, 1, text, ROOM);
    CHECK(status == REEF_OK, "%s", text);
}

static void free_parts(parts *p)
{
    reef_run_destroy(&p->run);
    reef_attack_destroy(&p->attack);
    reef_links_destroy(&p->links);
    reef_graph_destroy(&p->graph);
    reef_agg_destroy(&p->rule);
    reef_problem_destroy(&p->problem);
    reef_context_destroy(&p->context);
}

static double distance(const parts *p, ptrdiff_t agent)
{
    const float *w = reef_run_model(p->run, agent);
    double sum = 0;
    for (ptrdiff_t m = 0; m < DIMENSION; m++) {
        sum += fabs((double)w[m] - (double)(m + 1));
    }
    return sum;
}

static void diffusion_asks_for_all_agents_at_once(void **state)
{
    parts p;
    int64_t counts[8] = {0};
    (void)state;
    make_parts(&p, "diffusion:mu=0.5,batch=5", "additive:delta=1000", 30);
    assert_int_equal(reef_ffi_run_step(p.run, 40, NULL, 0), REEF_OK);
    assert_int_equal(p.journal.calls, 40);
    for (ptrdiff_t i = 0; i < 40; i++) {
        assert_int_equal(p.journal.count[i], AGENTS);
        assert_int_equal(p.journal.round[i], i);
    }
    assert_int_equal(p.journal.size, 5);
    assert_true(distance(&p, AGENTS - 1) < 1e-3);
    reef_ffi_run_counts(p.run, counts);
    assert_int_equal(counts[0], 40);
    assert_int_equal(counts[3], 40 * AGENTS);
    free_parts(&p);
}

/* Local steps go side by side: one call per step, of those that take it. */
static void federated_steps_side_by_side(void **state)
{
    parts p;
    (void)state;
    make_parts(&p, "federated:mu=0.2,steps=2,steps_max=4,fraction=0.5", NULL, 0);
    assert_int_equal(reef_ffi_run_step(p.run, 15, NULL, 0), REEF_OK);
    assert_int_equal(p.journal.calls, 15 * 4);
    assert_int_equal(p.journal.count[0], AGENTS / 2);
    assert_int_equal(p.journal.count[1], AGENTS / 2);
    assert_true(p.journal.count[2] < AGENTS / 2 && p.journal.count[3] < p.journal.count[2]);
    assert_int_equal(p.journal.step[3], 3);
    assert_true(distance(&p, 0) < 0.1);
    free_parts(&p);
}

static void labels_are_said_to_be_flipped(void **state)
{
    parts p;
    (void)state;
    make_parts(&p, "diffusion:mu=0.5", "label_flip", 10);
    assert_int_equal(reef_ffi_run_step(p.run, 3, NULL, 0), REEF_OK);
    assert_true(p.journal.flipped);
    free_parts(&p);
}

/* The same pull as a problem that takes any number of agents at a time. */
static reef_status make_plain(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    static char nothing;
    (void)params;
    (void)setup;
    (void)error;
    *state = &nothing;
    return REEF_OK;
}

static void free_plain(void *state)
{
    (void)state;
}

static ptrdiff_t plain_dimension(const void *state)
{
    (void)state;
    return DIMENSION;
}

static size_t plain_work(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    (void)state;
    (void)size;
    (void)lanes;
    return 0;
}

static void plain_start(const void *state, ptrdiff_t lanes, ptrdiff_t repetition, float *model)
{
    (void)state;
    (void)lanes;
    (void)repetition;
    model[0] = model[1] = model[2] = 10;
}

static void plain_gradients(const void *state, const reef_batch *batch)
{
    (void)state;
    for (ptrdiff_t i = 0; i < batch->count; i++) {
        for (ptrdiff_t m = 0; m < DIMENSION; m++) {
            batch->gradients[i][m] = batch->models[i][m] - (float)(m + 1);
        }
    }
}

static void all_at_once_or_in_parts_is_the_same(void **state)
{
    static const reef_problem_kind kind = {.kind = {.name = "plain", .summary = "", .citation = ""},
                                           .create = make_plain,
                                           .destroy = free_plain,
                                           .dimension = plain_dimension,
                                           .work_size = plain_work,
                                           .start = plain_start,
                                           .gradients = plain_gradients};
    static const char *const strategies[] = {"diffusion:mu=0.3,momentum=0.5", "diffusion:order=cta,mu=0.3",
                                             "federated:mu=0.1,steps=1,steps_max=3,fraction=0.3,momentum=0.5"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(strategies); i++) {
        parts p;
        reef_problem *problem = NULL;
        reef_run *run = NULL;
        make_parts(&p, strategies[i], NULL, 0);
        assert_int_equal(reef_problem_create_own(p.context, &problem, &kind, NULL, AGENTS, 0, NULL), REEF_OK);
        assert_int_equal(
            reef_ffi_run(p.context, &run, problem, strategies[i], p.rule, p.links, NULL, NULL, NULL, 1, 1, NULL, 0),
            REEF_OK);
        assert_int_equal(reef_ffi_run_step(run, 10, NULL, 0), REEF_OK);
        assert_int_equal(reef_ffi_run_step(p.run, 10, NULL, 0), REEF_OK);
        for (ptrdiff_t k = 0; k < AGENTS; k++) {
            assert_memory_equal(reef_run_model(run, k), reef_run_model(p.run, k), DIMENSION * sizeof(float));
        }
        reef_run_destroy(&run);
        reef_problem_destroy(&problem);
        free_parts(&p);
    }
}

static void wrong_problems_are_told(void **state)
{
    char text[ROOM] = "";
    const int64_t samples[2] = {5, 0};
    reef_problem *problem = NULL;
    journal j = {0};
    (void)state;
    assert_int_equal(reef_ffi_problem(NULL, &problem, 2, 3, NULL, NULL, NULL, NULL, text, ROOM), REEF_E_ARG);
    assert_int_equal(reef_ffi_problem(NULL, &problem, 2, 0, NULL, NULL, pull, &j, text, ROOM), REEF_E_ARG);
    assert_int_equal(reef_ffi_problem(NULL, &problem, 2, 3, NULL, samples, pull, &j, text, ROOM), REEF_E_ARG);
    assert_non_null(strstr(text, "agent 1 has 0 samples"));
    assert_int_equal(reef_ffi_problem(NULL, &problem, 0, 3, NULL, NULL, pull, &j, text, ROOM), REEF_E_RANGE);
    assert_int_equal(reef_ffi_problem(NULL, &problem, PTRDIFF_MAX / 2, 3, NULL, NULL, pull, &j, NULL, 0), REEF_E_RANGE);
    assert_int_equal(reef_ffi_problem(NULL, &problem, 1 << 30, PTRDIFF_MAX / 2, NULL, NULL, pull, &j, text, ROOM),
                     REEF_E_NOMEM);
    assert_null(problem);
    reef_graph *graph = NULL;
    assert_int_equal(reef_ffi_graph(NULL, &graph, "ring", "nonsense", 5, 1, text, ROOM), REEF_E_NAME);
    assert_null(graph);
    reef_run *run = NULL;
    assert_int_equal(reef_ffi_run(NULL, &run, NULL, "diffusion", NULL, NULL, NULL, NULL, NULL, 1, 0, text, ROOM),
                     REEF_E_ARG);
}

static void count_calls(void *user, ptrdiff_t items, ptrdiff_t items_done, ptrdiff_t cells, ptrdiff_t cells_done,
                        double seconds)
{
    assert_true(items_done <= items && cells_done <= cells && seconds >= 0);
    ++*(int *)user;
}

static void experiments_run(void **state)
{
    static const char yaml[] = "agents: 5\ngraph: complete\nproblem: lms\nrule: [mean, ref]\nrounds: 50\n";
    const char *const overrides[] = {"rounds=20", "rule=[median]"};
    scratch place;
    char text[ROOM] = "";
    char path[SCRATCH_PATH];
    int calls = 0;
    int stopped = -1;
    reef_experiment *experiment = NULL;
    (void)state;
    scratch_open(&place);
    scratch_file(&place, "small.yaml", yaml, sizeof yaml - 1, path);
    assert_int_equal(reef_ffi_experiment(NULL, &experiment, path, overrides, 2, text, ROOM), REEF_OK);
    assert_int_equal(reef_experiment_cells(experiment), 1);
    assert_int_equal(reef_ffi_experiment_run(experiment, NULL, 0, 0, count_calls, &calls, NULL, &stopped, text, ROOM),
                     REEF_OK);
    assert_true(calls > 0);
    assert_int_equal(stopped, 0);
    static const volatile sig_atomic_t stop = 1;
    assert_int_equal(reef_ffi_experiment_run(experiment, NULL, 0, 0, NULL, NULL, &stop, &stopped, text, ROOM), REEF_OK);
    assert_int_equal(stopped, 1);
    reef_experiment_destroy(&experiment);
    assert_int_equal(reef_ffi_experiment(NULL, &experiment, "/nowhere.yaml", NULL, 0, text, ROOM), REEF_E_FILE);
    scratch_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(diffusion_asks_for_all_agents_at_once),
        cmocka_unit_test(federated_steps_side_by_side),
        cmocka_unit_test(labels_are_said_to_be_flipped),
        cmocka_unit_test(all_at_once_or_in_parts_is_the_same),
        cmocka_unit_test(wrong_problems_are_told),
        cmocka_unit_test(experiments_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
