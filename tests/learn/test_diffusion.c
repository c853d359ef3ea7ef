/* Diffusion against its equations, written out in double precision for a problem without chance. */
#include "support/check.h"
#include "support/runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 9, M = QUADRATIC_M, ROUNDS = 40 };

typedef double models[K][M];

/* ---- rules, naively: one coordinate of n values, own among them at `self` ---- */

typedef double (*naive_rule)(const double *x, const double *a, ptrdiff_t n, ptrdiff_t self);

static double mean_of(const double *x, const double *a, ptrdiff_t n, ptrdiff_t self)
{
    double sum = 0;
    double total = 0;
    (void)self;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += a[i] * x[i];
        total += a[i];
    }
    return sum / total;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Uniform weights only. */
static double median_of(const double *x, const double *a, ptrdiff_t n, ptrdiff_t self)
{
    double sorted[K];
    (void)a;
    (void)self;
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    return 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
}

/* BRIDGE: the mean of the own value and of the neighbours' without the smallest and the largest (f = 1). */
static double bridge_of(const double *x, const double *a, ptrdiff_t n, ptrdiff_t self)
{
    double sorted[K];
    ptrdiff_t count = 0;
    double sum = x[self];
    (void)a;
    for (ptrdiff_t i = 0; i < n; i++) {
        if (i != self) {
            sorted[count++] = x[i];
        }
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    for (ptrdiff_t i = 1; i + 1 < count; i++) {
        sum += sorted[i];
    }
    return sum / (double)(count - 1);
}

/* ---- diffusion, naively ---- */

typedef enum order { ATC, CTA, CONSENSUS } order;

typedef struct naive {
    order order;
    naive_rule rule;
    const reef_links *links;
    double beta;
    double (*step)(int64_t round);
    const double *factor; /* K or NULL */
    models w, velocity;
} naive;

static void adapt(naive *d, int64_t round, models at, models base, models to)
{
    for (ptrdiff_t k = 0; k < K; k++) {
        for (ptrdiff_t m = 0; m < M; m++) {
            double g = quadratic_gradient(k, round, 0, 0, m, at[k][m]);
            d->velocity[k][m] = d->beta * d->velocity[k][m] + (1 - d->beta) * g;
            to[k][m] = base[k][m] - d->step(round) * (d->factor ? d->factor[k] : 1) * d->velocity[k][m];
        }
    }
}

static void combine(const naive *d, int64_t round, models from, models to)
{
    for (ptrdiff_t k = 0; k < K; k++) {
        int32_t senders[K];
        double weights[K];
        ptrdiff_t self = -1;
        ptrdiff_t n = reef_links_eval(d->links, round, k, senders, weights);
        for (ptrdiff_t i = 0; i < n; i++) {
            self = senders[i] == k ? i : self;
        }
        for (ptrdiff_t m = 0; m < M; m++) {
            double x[K];
            for (ptrdiff_t i = 0; i < n; i++) {
                x[i] = from[senders[i]][m];
            }
            to[k][m] = n > 0 ? d->rule(x, weights, n, self) : from[k][m];
        }
    }
}

static void naive_round(naive *d, int64_t round)
{
    models phi;
    models next;
    switch (d->order) {
    case ATC:
        adapt(d, round, d->w, d->w, phi);
        combine(d, round, phi, next);
        break;
    case CTA:
        combine(d, round, d->w, phi);
        adapt(d, round, phi, phi, next);
        break;
    case CONSENSUS:
        combine(d, round, d->w, phi);
        adapt(d, round, d->w, phi, next);
        break;
    }
    memcpy(d->w, next, sizeof next);
}

static void compare(const world_plan *plan, naive *d)
{
    char what[200];
    world w;
    world_plan p = *plan;
    p.agents = K;
    p.own_problem = &quadratic;
    p.step_factor = d->factor;
    world_open(&w, &p);
    d->links = w.links;
    for (int64_t round = 0; round < ROUNDS; round++) {
        world_step(&w, 1);
        naive_round(d, round);
        for (ptrdiff_t k = 0; k < K; k++) {
            for (ptrdiff_t m = 0; m < M; m++) {
                (void)snprintf(what, sizeof what, "%s, %s, %s: agent %td, coordinate %td in round %lld", p.strategy,
                               p.rule, p.graph ? p.graph : "edges", k, m, (long long)round);
                CHECK_CLOSE((double)reef_run_model(w.run, k)[m], d->w[k][m], 3e-6, what);
            }
        }
    }
    assert_int_equal(reef_run_counts_of(w.run).gradients, K * ROUNDS);
    world_close(&w);
}

static double constant(int64_t round)
{
    (void)round;
    return 0.05;
}

static double inverse(int64_t round)
{
    return 0.3 / (1 + (double)round / 10);
}

static double root(int64_t round)
{
    return 0.3 / sqrt(1 + (double)round / 10);
}

static double piecewise(int64_t round)
{
    const int64_t whole = round / 15;
    return 0.3 * pow(0.5, (double)whole);
}

static const char *const graphs[] = {"ring:k=2", "complete", "star", "grid", "regular:degree=4"};

#define FOR_ORDERS(name)                                                                                               \
    static const char *const name[] = {"diffusion:mu=0.05,order=atc", "diffusion:mu=0.05,order=cta",                   \
                                       "diffusion:mu=0.05,order=consensus"}

static void every_order_and_graph(void **state)
{
    FOR_ORDERS(strategies);
    (void)state;
    for (int o = ATC; o <= CONSENSUS; o++) {
        for (ptrdiff_t g = 0; g < COUNT(graphs); g++) {
            world_plan plan = {.strategy = strategies[o], .graph = graphs[g], .rule = "mean", .weights = "metropolis"};
            compare(&plan, &(naive){.order = (order)o, .rule = mean_of, .step = constant});
            plan.weights = NULL;
            plan.rule = "median";
            compare(&plan, &(naive){.order = (order)o, .rule = median_of, .step = constant});
        }
        /* BRIDGE: neighbourhoods of at least four */
        const world_plan bridge = {
            .strategy = strategies[o], .graph = "ring:k=2", .rule = "trimmed:f=1,keep_self=true"};
        compare(&bridge, &(naive){.order = (order)o, .rule = bridge_of, .step = constant});
    }
}

static void momentum_schedules_and_factors(void **state)
{
    static const double factor[K] = {1, 0, 0.5, 2, 1, 1.5, 1, 0.25, 1};
    static const struct {
        const char *strategy;
        order order;
        double beta;
        double (*step)(int64_t);
    } cases[] = {
        {"diffusion:mu=0.05,momentum=0.9", ATC, 0.9, constant},
        {"diffusion:mu=0.05,momentum=0.5,order=cta", CTA, 0.5, constant},
        {"diffusion:mu=0.05,momentum=0.5,order=consensus", CONSENSUS, 0.5, constant},
        {"diffusion:mu=0.3,schedule=inverse,decay=10", ATC, 0, inverse},
        {"diffusion:mu=0.3,schedule=sqrt,decay=10", ATC, 0, root},
        {"diffusion:mu=0.3,schedule=piecewise,factor=0.5,every=15,order=cta", CTA, 0, piecewise},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        const world_plan plan = {.strategy = cases[i].strategy, .graph = "ring", .rule = "mean"};
        compare(&plan,
                &(naive){.order = cases[i].order, .rule = mean_of, .beta = cases[i].beta, .step = cases[i].step});
        compare(&plan, &(naive){.order = cases[i].order,
                                .rule = mean_of,
                                .beta = cases[i].beta,
                                .step = cases[i].step,
                                .factor = factor});
    }
}

static void links_that_change(void **state)
{
    FOR_ORDERS(strategies);
    static const int32_t from[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 2, 4};
    static const int32_t to[] = {1, 2, 3, 4, 5, 6, 7, 8, 0, 4, 6, 1};
    const reef_link_list directed = {.count = COUNT(from), .senders = from, .receivers = to, .directed = true};
    const reef_link_list deaf = {.count = 1, .senders = from, .receivers = to, .directed = true, .no_loops = true};
    (void)state;
    for (int o = ATC; o <= CONSENSUS; o++) {
        world_plan plan = {.strategy = strategies[o], .rule = "mean", .links = "failing:p=0.4", .graph = "ring:k=2"};
        compare(&plan, &(naive){.order = (order)o, .rule = mean_of, .step = constant});
        plan.links = "failing:p=0.4,symmetric=false,lost=self";
        compare(&plan, &(naive){.order = (order)o, .rule = mean_of, .step = constant});
        plan.links = "static:every=2";
        plan.graph = "erdos_renyi:p=0.4";
        plan.graphs = 3;
        compare(&plan, &(naive){.order = (order)o, .rule = mean_of, .step = constant});
        plan = (world_plan){.strategy = strategies[o], .rule = "mean", .edges = &directed};
        compare(&plan, &(naive){.order = (order)o, .rule = mean_of, .step = constant});
        plan.edges = &deaf; /* most hear nobody, not even themselves, and keep what they have */
        compare(&plan, &(naive){.order = (order)o, .rule = mean_of, .step = constant});
    }
}

/* Three graphs whose turn it is: the first one has all neighbourhoods equal, the others not. */
static void classes_of_one_graph_are_not_those_of_another(void **state)
{
    reef_graph *graph[3] = {NULL, NULL, NULL};
    reef_links *links = NULL;
    reef_problem *problem = NULL;
    reef_agg *rule = NULL;
    reef_run *run = NULL;
    reef_error error;
    naive d = {.order = ATC, .rule = mean_of, .step = constant};
    (void)state;
    assert_int_equal(reef_graph_create(NULL, &graph[0], "complete", K, 1, &error), REEF_OK);
    assert_int_equal(reef_graph_create(NULL, &graph[1], "ring", K, 1, &error), REEF_OK);
    assert_int_equal(reef_graph_create(NULL, &graph[2], "star", K, 1, &error), REEF_OK);
    const reef_graph *const graphs_in_turn[] = {graph[0], graph[1], graph[2]};
    assert_int_equal(reef_links_create(NULL, &links, "static", graphs_in_turn, 3, 1, &error), REEF_OK);
    assert_int_equal(reef_problem_create_own(NULL, &problem, &quadratic, NULL, K, 1, &error), REEF_OK);
    assert_int_equal(reef_agg_create(NULL, &rule, "mean", &error), REEF_OK);
    const reef_run_setup setup = {.problem = problem, .strategy = "diffusion:mu=0.05", .rule = rule, .links = links};
    assert_int_equal(reef_run_create(NULL, &run, &setup, &error), REEF_OK);
    d.links = links;
    for (int64_t round = 0; round < 12; round++) {
        assert_int_equal(reef_run_step(run, 1, &error), REEF_OK);
        naive_round(&d, round);
        for (ptrdiff_t k = 0; k < K; k++) {
            CHECK_CLOSE((double)reef_run_model(run, k)[0], d.w[k][0], 3e-6, "graphs in turn");
        }
    }
    reef_run_destroy(&run);
    reef_agg_destroy(&rule);
    reef_problem_destroy(&problem);
    reef_links_destroy(&links);
    for (int i = 0; i < 3; i++) {
        reef_graph_destroy(&graph[i]);
    }
}

/* Equal neighbourhoods are combined once. With weights that differ in the last place nothing is shared: the same comes out. */
static void sharing_changes_nothing(void **state)
{
    static const char *const rules[] = {"mean", "median", "ref", "krum:f=1", "cclip:tau=0.5"};
    static const char *const orders[] = {"diffusion:mu=0.05", "diffusion:mu=0.05,order=cta"};
    static const char *const attacks[] = {"additive:delta=2", "alie", "sign_flip"};
    double weights[K * K];
    int32_t senders[K * K];
    int32_t receivers[K * K];
    (void)state;
    for (int i = 0; i < K * K; i++) {
        senders[i] = i % K;
        receivers[i] = i / K;
        weights[i] = 1.0 / K;
        if (senders[i] == receivers[i]) {
            for (int ulps = 0; ulps < senders[i]; ulps++) { /* each column another */
                weights[i] = nextafter(weights[i], 1);
            }
        }
    }
    const reef_link_list edges = {
        .count = (ptrdiff_t)K * K, .senders = senders, .receivers = receivers, .weights = weights, .directed = true};
    for (ptrdiff_t i = 0; i < COUNT(rules) * COUNT(orders) * COUNT(attacks); i++) {
        world shared;
        world single;
        world_plan plan = {.agents = K,
                           .own_problem = &quadratic,
                           .rule = rules[i % COUNT(rules)],
                           .strategy = orders[i / COUNT(rules) % COUNT(orders)],
                           .attack = attacks[i / COUNT(rules) / COUNT(orders)],
                           .malicious_count = 2};
        world_open(&shared, &plan);
        plan.edges = &edges;
        world_open(&single, &plan);
        world_step(&shared, ROUNDS);
        world_step(&single, ROUNDS);
        for (ptrdiff_t k = 0; k < K; k++) {
            for (ptrdiff_t m = 0; m < M; m++) {
                char what[100];
                (void)snprintf(what, sizeof what, "%s with %s, shared or not", plan.rule, plan.attack);
                CHECK_CLOSE((double)reef_run_model(shared.run, k)[m], (double)reef_run_model(single.run, k)[m], 2e-4,
                            what);
            }
        }
        reef_run_counts a = reef_run_counts_of(shared.run);
        reef_run_counts b = reef_run_counts_of(single.run);
        CHECK(memcmp(&a, &b, sizeof a) == 0, "%s: other counters when shared", plan.rule);
        world_close(&shared);
        world_close(&single);
    }
}

static void counters(void **state)
{
    world w;
    (void)state;
    world_open(&w, &(world_plan){.agents = K, .graph = "ring:k=2", .rule = "ref"});
    world_step(&w, 7);
    reef_run_counts c = reef_run_counts_of(w.run);
    assert_int_equal(c.rounds, 7);
    assert_int_equal(c.messages, 7 * K * 4);
    assert_int_equal(c.bytes, c.messages * 5 * 4);
    assert_int_equal(c.gradients, 7 * K);
    assert_int_equal(c.kept + c.dropped + c.silent + c.late, 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_and_graph),   cmocka_unit_test(momentum_schedules_and_factors),
        cmocka_unit_test(links_that_change),       cmocka_unit_test(classes_of_one_graph_are_not_those_of_another),
        cmocka_unit_test(sharing_changes_nothing), cmocka_unit_test(counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
