/* Worlds and the problem without chance. */
#include "support/runs.h"

#include "support/check.h"

#include <stdlib.h>
#include <string.h>

/* ---- worlds ---- */

static const char *or_else(const char *text, const char *preset)
{
    return text ? text : preset;
}

static reef_status make_links(world *w, const world_plan *p, ptrdiff_t agents, reef_error *error)
{
    reef_status status = REEF_OK;
    ptrdiff_t count = p->graphs ? p->graphs : 1;
    for (ptrdiff_t i = 0; status == REEF_OK && i < count; i++) {
        status = p->edges ? reef_graph_create_links(w->context, &w->graph[i], agents, p->edges, error)
                          : reef_graph_create(w->context, &w->graph[i], or_else(p->graph, "complete"), agents,
                                              (uint64_t)i + 1, error);
        if (status == REEF_OK && p->weights) {
            status = reef_graph_set_weights(w->graph[i], p->weights, NULL, error);
        }
    }
    const reef_graph *graphs[WORLD_GRAPHS] = {w->graph[0], w->graph[1], w->graph[2]};
    return status == REEF_OK
               ? reef_links_create(w->context, &w->links, or_else(p->links, "static"), graphs, count, 5, error)
               : status;
}

static reef_status make_parts(world *w, const world_plan *p, ptrdiff_t agents, reef_error *error)
{
    const char *strategy = or_else(p->strategy, "diffusion");
    bool server = strncmp(strategy, "federated", 9) == 0 || strcmp(strategy, "rsa") == 0 ||
                  strncmp(strategy, "rsa:", 4) == 0 || strncmp(strategy, "local", 5) == 0;
    reef_status status =
        p->own_problem
            ? reef_problem_create_own(w->context, &w->problem, p->own_problem, NULL, agents, p->problem_seed, error)
            : reef_problem_create(w->context, &w->problem, or_else(p->problem, "lms:dimension=5"), agents,
                                  p->problem_seed, error);
    if (status == REEF_OK && (!server || p->graph)) {
        status = make_links(w, p, agents, error);
    }
    if (status == REEF_OK && (!p->rule || p->rule[0])) {
        status = reef_agg_create(w->context, &w->rule, or_else(p->rule, "mean"), error);
    }
    if (status == REEF_OK && p->own_attack) {
        status = reef_attack_create_own(w->context, &w->attack, p->own_attack, p->attack_params, p->common, error);
    } else if (status == REEF_OK && p->attack) {
        status = reef_attack_create(w->context, &w->attack, p->attack, error);
    }
    return status;
}

reef_status world_try(world *w, const world_plan *p, reef_error *error)
{
    ptrdiff_t agents = p->agents ? p->agents : 12;
    *w = (world){.context = p->context, .own_context = !p->context};
    if (w->own_context) {
        assert_int_equal(reef_context_create(&w->context, NULL, error), REEF_OK);
        assert_int_equal(reef_context_set_threads(w->context, p->threads ? p->threads : 1, error), REEF_OK);
    }
    w->malicious = calloc((size_t)agents, sizeof *w->malicious);
    assert_non_null(w->malicious);
    for (ptrdiff_t k = 0; k < agents; k++) {
        w->malicious[k] = p->malicious ? p->malicious[k] : k < p->malicious_count;
    }
    reef_status status = make_parts(w, p, agents, error);
    const reef_run_setup setup = {.problem = w->problem,
                                  .strategy = or_else(p->strategy, "diffusion"),
                                  .rule = w->rule,
                                  .links = w->links,
                                  .attack = w->attack,
                                  .malicious = w->malicious,
                                  .step_factor = p->step_factor,
                                  .seed = p->seed,
                                  .lanes = p->lanes,
                                  .repetition = p->repetition,
                                  .trust = p->trust,
                                  .engine = p->engine};
    if (status == REEF_OK) {
        status = reef_run_create(w->context, &w->run, &setup, error);
    }
    if (status != REEF_OK) {
        world_close(w);
    }
    return status;
}

void world_open(world *w, const world_plan *plan)
{
    reef_error error = {0};
    reef_status status = world_try(w, plan, &error);
    CHECK(status == REEF_OK, "%s with %s: %s", or_else(plan->strategy, "diffusion"), or_else(plan->rule, "mean"),
          error.text);
}

void world_close(world *w)
{
    reef_run_destroy(&w->run);
    reef_attack_destroy(&w->attack);
    reef_agg_destroy(&w->rule);
    reef_links_destroy(&w->links);
    for (ptrdiff_t i = 0; i < WORLD_GRAPHS; i++) {
        reef_graph_destroy(&w->graph[i]);
    }
    reef_problem_destroy(&w->problem);
    free(w->malicious);
    w->malicious = NULL;
    if (w->own_context) {
        reef_context_destroy(&w->context);
    }
}

void world_step(world *w, int64_t rounds)
{
    reef_error error;
    CHECK(reef_run_step(w->run, rounds, &error) == REEF_OK, "%s", error.text);
}

static size_t row_bytes(const world *w)
{
    return (size_t)(reef_run_dimension(w->run) * reef_run_lanes(w->run)) * sizeof(float);
}

void world_models(const world *w, float *models)
{
    for (ptrdiff_t k = 0; k < reef_run_agents(w->run); k++) {
        memcpy((char *)models + (size_t)k * row_bytes(w), reef_run_model(w->run, k), row_bytes(w));
    }
}

void check_same(const world *a, const world *b, const char *what)
{
    reef_run_counts x = reef_run_counts_of(a->run);
    reef_run_counts y = reef_run_counts_of(b->run);
    assert_int_equal(reef_run_round(a->run), reef_run_round(b->run));
    CHECK(memcmp(&x, &y, sizeof x) == 0, "%s: other counters in round %lld", what, (long long)reef_run_round(a->run));
    for (ptrdiff_t k = 0; k < reef_run_agents(a->run); k++) {
        CHECK(memcmp(reef_run_model(a->run, k), reef_run_model(b->run, k), row_bytes(a)) == 0,
              "%s: agent %td has another model in round %lld", what, k, (long long)reef_run_round(a->run));
    }
}

/* ---- the problem ---- */

atomic_int quadratic_flipped;

static double centre_of(ptrdiff_t k, ptrdiff_t m)
{
    return (double)((7 * k + 3 * m) % 11 - 5) / 4;
}

double quadratic_gradient(ptrdiff_t k, int64_t round, int64_t step, ptrdiff_t repetition, ptrdiff_t m, double w)
{
    double curvature = 1 + (double)(k % 3) / 2;
    return curvature * (w - centre_of(k, m)) + 0.125 * (double)((3 * k + 5 * round + step + 2 * repetition) % 7 - 3);
}

static reef_status create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    static char nothing;
    (void)params;
    (void)setup;
    (void)error;
    *state = &nothing;
    return REEF_OK;
}

static void destroy(void *state)
{
    (void)state;
}

static ptrdiff_t dimension(const void *state)
{
    (void)state;
    return QUADRATIC_M;
}

static size_t work_size(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    (void)state;
    (void)size;
    (void)lanes;
    return 0;
}

static void gradients(const void *state, const reef_batch *batch)
{
    (void)state;
    for (ptrdiff_t i = 0; i < batch->count; i++) {
        bool flipped = batch->flipped && batch->flipped[i];
        atomic_fetch_add(&quadratic_flipped, flipped);
        for (ptrdiff_t j = 0; j < QUADRATIC_M * batch->lanes; j++) {
            double g =
                quadratic_gradient(batch->agents[i], batch->round, batch->step, batch->repetition + j % batch->lanes,
                                   j / batch->lanes, (double)batch->models[i][j]);
            batch->gradients[i][j] = (float)(flipped ? -g : g);
        }
    }
}

static ptrdiff_t samples(const void *state, ptrdiff_t agent)
{
    (void)state;
    return 10 + 10 * (agent % 4);
}

const reef_problem_kind quadratic = {
    .kind = {.name = "quadratic", .summary = "", .citation = ""},
    .traits = REEF_PROBLEM_LANES | REEF_PROBLEM_CLASSES,
    .create = create,
    .destroy = destroy,
    .dimension = dimension,
    .work_size = work_size,
    .gradients = gradients,
    .samples = samples,
};
