/* Speed of learning: agent-updates per second (one gradient and one combine of one agent in one repetition).
 *
 *   shared     the paper's setting: K = 32, complete graph, M = 10, LMS; all neighbourhoods equal, so one aggregation serves all;
 *              16 repetitions in vector lanes, one thread
 *   own        64 agents on a random regular graph, every agent aggregates its own 32 neighbours (itself among them)
 *   weights    the same with 32 agents on the complete graph and weights that differ a little from receiver to receiver
 *   alone      this without lanes, for rules that look at whole vectors: vref, and mref with its memory
 *   million    10^6 agents on a random 8-regular graph, M = 10, all threads
 * Reported are the best of some repeats, and the part of the mean rule in the same run for comparison.
 *
 * usage: bench_learn [--repeats N] [--agents N] [--cpu] [--cases TEXT] [--json FILE]     (others are ignored)
 *   --cpu          processor time per thread, where other programs keep the machine busy
 *   --cases TEXT   only those whose name is TEXT
 */
#include <reef/reef.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct options {
    int repeats;
    ptrdiff_t agents;
    bool cpu;
    const char *only; /* NULL: all cases */
    FILE *json;
} options;

static void fail(const reef_error *error)
{
    (void)fprintf(stderr, "bench_learn: %s\n", error->text);
    exit(1);
}

static void must(reef_status status, const reef_error *error)
{
    if (status != REEF_OK) {
        fail(error);
    }
}

/* Wall-clock time, or processor time per thread. */
static double seconds(const options *o, ptrdiff_t threads)
{
    struct timespec now;
    double parts = o->cpu ? (double)(threads ? threads : (ptrdiff_t)sysconf(_SC_NPROCESSORS_ONLN)) : 1;
    (void)clock_gettime(o->cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec) / parts;
}

/* One line of the table. */
typedef struct bench_case {
    const char *name;
    const char *graph;
    const char *rule;
    ptrdiff_t agents; /* 0: as many as asked for */
    ptrdiff_t lanes, threads;
    int64_t rounds;
    double goal; /* million updates per second, 0: none */
    bool own;    /* weights differ from receiver to receiver by some ulp, so that nothing can be shared */
} bench_case;

static const bench_case cases[] = {
    {"shared", "complete", "mean", 32, 16, 1, 1000, 0, false},
    {"shared", "complete", "median", 32, 16, 1, 1000, 0, false},
    {"shared", "complete", "ref", 32, 16, 1, 1000, 50, false},
    {"own", "regular:degree=31", "mean", 64, 16, 1, 100, 0, false},
    {"own", "regular:degree=31", "ref", 64, 16, 1, 100, 7, false},
    {"weights", "complete", "ref", 32, 16, 1, 100, 0, true},
    {"alone", "complete", "mean", 32, 1, 1, 300, 0, true},
    {"alone", "complete", "vref", 32, 1, 1, 300, 0, true},
    {"alone", "complete", "mref", 32, 1, 1, 300, 0, true},
    {"alone", "complete", "mref:lazy=0", 32, 1, 1, 300, 0, true},
    {"million", "regular:degree=8", "mean", 0, 1, 0, 3, 0, false},
    {"million", "regular:degree=8", "ref", 0, 1, 0, 3, 2, false},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* Everything a run needs. */
typedef struct world {
    reef_context *context;
    reef_problem *problem;
    reef_graph *graph;
    reef_links *links;
    reef_agg *rule;
    reef_run *run;
} world;

/* Columns that are all different, though hardly. */
static void disturb_weights(reef_graph *graph, ptrdiff_t agents)
{
    reef_error error;
    reef_csr csr = reef_graph_csr(graph);
    double *weights = malloc((size_t)csr.start[agents] * sizeof *weights);
    if (!weights) {
        exit(1);
    }
    for (ptrdiff_t k = 0; k < agents; k++) {
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
            weights[i] = csr.weight[i] * (1 + (i - csr.start[k] == k ? 1e-9 : 0));
        }
    }
    must(reef_graph_put_weights(graph, weights, &error), &error);
    free(weights);
}

static world make_world(const bench_case *c, ptrdiff_t agents)
{
    reef_error error;
    world w = {0};
    must(reef_context_create(&w.context, NULL, &error), &error);
    must(reef_context_set_threads(w.context, c->threads, &error), &error);
    must(reef_problem_create(w.context, &w.problem, "lms:dimension=10,noise=0.01", agents, 1, &error), &error);
    must(reef_graph_create(w.context, &w.graph, c->graph, agents, 1, &error), &error);
    if (c->own) {
        disturb_weights(w.graph, agents);
    }
    must(reef_links_create(w.context, &w.links, "static", (const reef_graph *const *)&w.graph, 1, 1, &error), &error);
    must(reef_agg_create(w.context, &w.rule, c->rule, &error), &error);
    const reef_run_setup setup = {
        .problem = w.problem, .strategy = "diffusion:mu=0.01", .rule = w.rule, .links = w.links, .lanes = c->lanes};
    must(reef_run_create(w.context, &w.run, &setup, &error), &error);
    return w;
}

static void end_world(world *w)
{
    reef_run_destroy(&w->run);
    reef_agg_destroy(&w->rule);
    reef_links_destroy(&w->links);
    reef_graph_destroy(&w->graph);
    reef_problem_destroy(&w->problem);
    reef_context_destroy(&w->context);
}

static void measure(const bench_case *c, const options *o)
{
    reef_error error;
    ptrdiff_t agents = c->agents ? c->agents : o->agents;
    (void)fprintf(stderr, "%s, %s ...\r", c->name, c->rule);
    world w = make_world(c, agents);
    double best = 1e300;
    must(reef_run_step(w.run, c->rounds / 10 + 1, &error), &error);
    for (int i = 0; i < o->repeats; i++) {
        double start = seconds(o, c->threads);
        must(reef_run_step(w.run, c->rounds, &error), &error);
        double taken = seconds(o, c->threads) - start;
        best = taken < best ? taken : best;
    }
    double updates = (double)agents * (double)c->lanes * (double)c->rounds;
    char aim[16] = "";
    if (c->goal > 0) {
        (void)snprintf(aim, sizeof aim, "%.0f", c->goal);
    }
    printf("%-8s  %-18s  %-11s  %8td  %6td  %8s  %10.2f  %5s  %8.1f\n", c->name, c->graph, c->rule, agents, c->lanes,
           c->threads == 1 ? "1" : "all", updates / best / 1e6, aim, best / updates * 1e9);
    if (o->json) {
        (void)fprintf(o->json,
                      "{\"case\": \"%s\", \"rule\": \"%s\", \"agents\": %td, \"lanes\": %td, \"threads\": %td, "
                      "\"million_updates_per_second\": %.4f, \"goal\": %.0f}\n",
                      c->name, c->rule, agents, c->lanes, c->threads, updates / best / 1e6, c->goal);
    }
    end_world(&w);
}

int main(int argc, char **argv)
{
    options o = {.repeats = 7, .agents = 1000000};
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--cpu") == 0) {
            o.cpu = true;
        } else if (more && strcmp(argv[i], "--repeats") == 0) {
            o.repeats = (int)strtol(argv[++i], NULL, 10);
        } else if (more && strcmp(argv[i], "--agents") == 0) {
            o.agents = (ptrdiff_t)strtol(argv[++i], NULL, 10);
        } else if (more && strcmp(argv[i], "--cases") == 0) {
            o.only = argv[++i];
        } else if (more && strcmp(argv[i], "--json") == 0) {
            o.json = fopen(argv[++i], "w");
        }
    }
    printf("Learning: LMS with M = 10, adapt then combine; %s.\n\n", reef_system_facts().instructions);
    printf("%-8s  %-18s  %-11s  %8s  %6s  %8s  %10s  %5s  %8s\n", "case", "graph", "rule", "agents", "lanes", "threads",
           "M upd./s", "goal", "ns/upd.");
    for (int i = 0; i < CASES; i++) {
        if (!o.only || strcmp(o.only, cases[i].name) == 0) {
            measure(&cases[i], &o);
        }
    }
    if (o.json && fclose(o.json) != 0) {
        return 1;
    }
    return 0;
}
