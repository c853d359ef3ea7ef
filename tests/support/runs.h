/* Runs for tests: a setup in words, and the objects made from it. */
#ifndef TESTS_SUPPORT_RUNS_H
#define TESTS_SUPPORT_RUNS_H

#include <reef/learn.h>
#include <stdatomic.h>

/* Everything may be left zero; texts then are those in brackets. */
typedef struct world_plan {
    ptrdiff_t agents;                     /* [12] */
    const char *problem;                  /* [lms:dimension=5] */
    const reef_problem_kind *own_problem; /* instead */
    const char *graph;                    /* [complete]; not used by strategies with a server */
    const reef_link_list *edges;          /* instead */
    const char *weights;                  /* as the graph has them */
    const char *links;                    /* [static] */
    ptrdiff_t graphs;                     /* [1] so many graphs of that spec with seeds 1, 2, ... take turns */
    const char *strategy;                 /* [diffusion] */
    const char *rule;                     /* [mean] "" for none */
    const char *attack;                   /* none */
    const reef_attack_kind *own_attack;   /* instead */
    const void *attack_params;
    const reef_attack_common *common;
    ptrdiff_t malicious_count; /* the first so many agents lie... */
    const bool *malicious;     /* ...or these */
    const double *step_factor;
    uint64_t seed, problem_seed;
    ptrdiff_t lanes, repetition;
    bool trust;
    const reef_engine *engine; /* over whose ranks the agents are spread; none */
    ptrdiff_t threads;         /* [1] */
    reef_context *context;     /* instead of one of its own */
} world_plan;

enum { WORLD_GRAPHS = 3 };

typedef struct world {
    reef_context *context;
    bool own_context;
    reef_problem *problem;
    reef_graph *graph[WORLD_GRAPHS];
    reef_links *links;
    reef_agg *rule;
    reef_attack *attack;
    bool *malicious;
    reef_run *run;
} world;

/* Makes everything; a failed test if that cannot be. */
void world_open(world *w, const world_plan *plan);
/* The same; the status of whatever failed first, with nothing left to close. */
reef_status world_try(world *w, const world_plan *plan, reef_error *error);
void world_close(world *w);
void world_step(world *w, int64_t rounds);
/* All models end to end, liars' too: reef_run_agents x M x R numbers into `models`. */
void world_models(const world *w, float *models);
/* Fails unless the two runs have the same models and counters, bit for bit. */
void check_same(const world *a, const world *b, const char *what);

/* A problem without chance: J_k(w) = h_k/2 |w - c_k|^2 with c_km = ((7 k + 3 m) mod 11 - 5) / 4, h_k = 1 + (k mod 3) / 2, M = 4, and
 * a gradient error 0.125 ((3 k + 5 round + step + 2 repetition) mod 7 - 3). Agent k has 10 + 10 (k mod 4) samples; flipped labels turn
 * the gradient round and are counted. */
enum { QUADRATIC_M = 4 };
extern const reef_problem_kind quadratic;
extern atomic_int quadratic_flipped;
double quadratic_gradient(ptrdiff_t k, int64_t round, int64_t step, ptrdiff_t repetition, ptrdiff_t m, double w);

#endif
