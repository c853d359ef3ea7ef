/* A million agents on a random 8-regular graph: memory and time stay in proportion. */
#include "support/alloc.h"
#include "support/check.h"
#include "support/runs.h"

#include <stdlib.h>

enum {
    AGENTS = MONTE_CARLO(1000000, 20000),
    MALICIOUS = AGENTS / 20,
    ROW = 64 /* bytes of M = 10 numbers at a cache line */
};

/* A run needs two rows per agent (w and phi) and one per liar; all beside, lists of agents and classes, must take less than that
 * again. The graph is the caller's and counted apart. */
static void a_million_agents(void **state)
{
    const size_t needs = ROW * (2 * (size_t)AGENTS + MALICIOUS);
    alloc_log log;
    reef_error error;
    double before[1];
    double after[1];
    (void)state;
    reef_context *context = alloc_context(&log, 2);
    reef_graph *graph = NULL;
    reef_links *links = NULL;
    assert_int_equal(reef_graph_create(context, &graph, "regular:degree=8", AGENTS, 1, &error), REEF_OK);
    const reef_graph *const graphs[] = {graph};
    assert_int_equal(reef_links_create(context, &links, "static", graphs, 1, 1, &error), REEF_OK);
    reef_problem *problem = NULL;
    reef_agg *rule = NULL;
    reef_attack *attack = NULL;
    reef_run *run = NULL;
    bool *malicious = calloc(AGENTS, sizeof *malicious);
    assert_non_null(malicious);
    for (ptrdiff_t k = 0; k < MALICIOUS; k++) {
        malicious[k * 20] = true;
    }
    assert_int_equal(reef_problem_create(context, &problem, "lms:dimension=10", AGENTS, 1, &error), REEF_OK);
    assert_int_equal(reef_agg_create(context, &rule, "ref", &error), REEF_OK);
    assert_int_equal(reef_attack_create(context, &attack, "additive:delta=10", &error), REEF_OK);
    size_t held = atomic_load(&log.held);
    atomic_store(&log.peak, held);
    const reef_run_setup setup = {.problem = problem,
                                  .strategy = "diffusion:mu=0.1,batch=16",
                                  .rule = rule,
                                  .links = links,
                                  .attack = attack,
                                  .malicious = malicious};
    assert_int_equal(reef_run_create(context, &run, &setup, &error), REEF_OK);
    assert_int_equal(reef_run_msd(run, NULL, before, &error), REEF_OK);
    assert_int_equal(reef_run_step(run, 5, &error), REEF_OK);
    assert_int_equal(reef_run_msd(run, NULL, after, &error), REEF_OK);
    size_t used = atomic_load(&log.peak) - held;
    CHECK(used < 2 * needs, "%zu bytes for a state of %zu", used, needs);
    CHECK(after[0] < 0.6 * before[0], "it does not learn: %g, then %g", before[0], after[0]);
    assert_int_equal(reef_run_counts_of(run).messages, (int64_t)5 * 8 * AGENTS);
    reef_run_destroy(&run);
    reef_attack_destroy(&attack);
    reef_agg_destroy(&rule);
    reef_problem_destroy(&problem);
    reef_links_destroy(&links);
    reef_graph_destroy(&graph);
    free(malicious);
    reef_context_destroy(&context);
    assert_int_equal(atomic_load(&log.live), 0);
}

/* Lies made for each receiver do not take time in proportion to all agents, which here would be minutes. */
static bool two_faced(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = (float)(view->receiver % 3);
    }
    return true;
}

static void many_two_faced_malicious(void **state)
{
    static const reef_attack_kind kind = {
        .kind = {.name = "two_faced", .summary = "", .citation = ""}, .traits = REEF_ATTACK_EDGE, .message = two_faced};
    enum { MANY = MONTE_CARLO(300000, 20000) };
    world w;
    (void)state;
    world_open(
        &w,
        &(world_plan){
            .agents = MANY, .graph = "ring:k=4", .rule = "median", .own_attack = &kind, .malicious_count = MANY / 4});
    world_step(&w, 2);
    assert_int_equal(reef_run_counts_of(w.run).messages, (int64_t)2 * 8 * MANY);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_million_agents), cmocka_unit_test(many_two_faced_malicious)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
