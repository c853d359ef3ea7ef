/* Federated learning: sampling, local steps, weights, the server's recursion, the clock, the counters. */
#include "support/check.h"
#include "support/runs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { K = 20, M = QUADRATIC_M };

/* ---- an attack without lies that tells who sent something, and a rule of equal weights ---- */

static int64_t arrivals[K];
static int64_t last_arrivals; /* in the round under way */

static bool watch(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    arrivals[view->sender]++;
    last_arrivals++;
    memcpy(out, view->own, (size_t)view->length * sizeof *out);
    return true;
}

static const reef_attack_kind watcher = {.kind = {.name = "watcher", .summary = "", .citation = ""}, .message = watch};

/* All agents but the last are watched: somebody must be honest. */
static void open_watched(world *w, const char *strategy, uint64_t seed)
{
    memset(arrivals, 0, sizeof arrivals);
    last_arrivals = 0;
    world_open(w, &(world_plan){.agents = K,
                                .own_problem = &quadratic,
                                .strategy = strategy,
                                .own_attack = &watcher,
                                .malicious_count = K - 1,
                                .seed = seed});
}

static void as_many_as_asked_for(void **state)
{
    static const struct {
        const char *strategy;
        int64_t each; /* per round */
    } cases[] = {{"federated", 20},
                 {"federated:fraction=0.35", 7},
                 {"federated:fraction=0.301", 7},
                 {"federated:fraction=1e-6", 1},
                 {"federated:clients=3", 3},
                 {"federated:clients=20,fraction=0.1", 20}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        world w;
        open_watched(&w, cases[i].strategy, 1);
        world_step(&w, 50);
        reef_run_counts c = reef_run_counts_of(w.run);
        CHECK(c.gradients == 50 * cases[i].each, "%s: %lld agents worked", cases[i].strategy, (long long)c.gradients);
        assert_int_equal(c.messages, 2 * c.gradients);
        assert_int_equal(c.bytes, c.messages * M * 4);
        assert_int_equal(c.silent + c.late + c.kept + c.dropped, 0);
        world_close(&w);
    }
}

/* Every agent is drawn alike: chi-square with 18 degrees of freedom stays below its 99.99 % point. */
static void sampling_is_uniform(void **state)
{
    enum { ROUNDS = 2000 };
    const double p = 6.0 / K;
    double chi = 0;
    world w;
    (void)state;
    open_watched(&w, "federated:clients=6", 3);
    world_step(&w, ROUNDS);
    for (int k = 0; k < K - 1; k++) {
        double miss = (double)arrivals[k] - ROUNDS * p;
        chi += miss * miss / (ROUNDS * p * (1 - p));
    }
    CHECK(chi < 48, "agents are not drawn alike: chi-square %g", chi);
    CHECK(chi > 3, "agents are drawn too evenly for chance: chi-square %g", chi);
    world_close(&w);
}

static void the_absent_are_counted(void **state)
{
    enum { ROUNDS = 1000 };
    world w;
    (void)state;
    open_watched(&w, "federated:available=0.5,dropout=0.2", 3);
    world_step(&w, ROUNDS);
    reef_run_counts c = reef_run_counts_of(w.run);
    /* 10000 work on average, with a deviation of 71; of these 20 % fail, with one of 40 */
    CHECK_CLOSE((double)c.gradients, 0.5 * K * ROUNDS, 400, "agents that were there");
    CHECK_CLOSE((double)c.silent, 0.2 * (double)c.gradients, 220, "agents that never answered");
    assert_int_equal(c.messages, 2 * c.gradients - c.silent);
    world_close(&w);
}

static double server_of(const world *w, ptrdiff_t m)
{
    return (double)reef_run_model(w->run, 0)[m];
}

/* ---- the server's recursion, naively ---- */

typedef struct naive {
    int64_t steps;
    double mu, server_step, server_momentum, momentum;
    double weight[K];
    double w[M], v[M];
    double velocity[K][M];
} naive;

static void naive_round(naive *d, int64_t round)
{
    double update[M] = {0};
    double total = 0;
    for (ptrdiff_t k = 0; k < K; k++) {
        total += d->weight[k];
        for (ptrdiff_t m = 0; m < M; m++) {
            double model = d->w[m];
            for (int64_t s = 0; s < d->steps; s++) {
                double g = quadratic_gradient(k, round, s, 0, m, model);
                d->velocity[k][m] = d->momentum * d->velocity[k][m] + (1 - d->momentum) * g;
                model -= d->mu * d->velocity[k][m];
            }
            update[m] += d->weight[k] * (model - d->w[m]);
        }
    }
    for (ptrdiff_t m = 0; m < M; m++) {
        d->v[m] = d->server_momentum * d->v[m] + update[m] / total;
        d->w[m] += d->server_step * d->v[m];
    }
}

static void compare(const char *strategy, naive *d)
{
    world w;
    world_open(&w, &(world_plan){.agents = K, .own_problem = &quadratic, .strategy = strategy});
    for (int64_t round = 0; round < 30; round++) {
        world_step(&w, 1);
        naive_round(d, round);
        for (ptrdiff_t m = 0; m < M; m++) {
            CHECK_CLOSE(server_of(&w, m), d->w[m], 2e-6, strategy);
        }
    }
    world_close(&w);
}

/* 10, 20, 30, 40 samples in turn; the median among 20 agents is the 11th: 30; at most 1 times (2 times) that. */
static void the_server_follows_its_equations(void **state)
{
    naive d = {.steps = 1, .mu = 0.1, .server_step = 1};
    (void)state;
    for (int k = 0; k < K; k++) {
        d.weight[k] = 1;
    }
    naive more = d;
    compare("federated:mu=0.1", &d);
    d = more;
    compare("federated:mu=0.1,exchange=model", &d);
    d = more;
    d.steps = 5;
    d.momentum = 0.5;
    compare("federated:mu=0.1,steps=5,momentum=0.5", &d);
    d = more;
    d.server_step = 0.5;
    d.server_momentum = 0.8;
    compare("federated:mu=0.1,server_step=0.5,server_momentum=0.8", &d);
    d = more;
    d.server_step = 0.5;
    d.server_momentum = 0.8;
    compare("federated:mu=0.1,server_step=0.5,server_momentum=0.8,exchange=model", &d);
    d = more;
    for (int k = 0; k < K; k++) {
        d.weight[k] = 10 + 10 * (k % 4);
    }
    compare("federated:mu=0.1,weights=samples,batch=0", &d);
    d = more;
    for (int k = 0; k < K; k++) {
        d.weight[k] = fmin(10 + 10 * (k % 4), 30);
    }
    compare("federated:mu=0.1,weights=samples,cap=1", &d);
}

static void local_steps_vary(void **state)
{
    enum { ROUNDS = 500 };
    world w;
    (void)state;
    open_watched(&w, "federated:steps=2,steps_max=6", 5);
    int64_t before = 0;
    bool fewer = false;
    bool more = false;
    for (int i = 0; i < ROUNDS; i++) {
        world_step(&w, 1);
        int64_t now = reef_run_counts_of(w.run).gradients;
        assert_in_range(now - before, 2 * K, 6 * K);
        fewer = fewer || now - before < 4 * K;
        more = more || now - before > 4 * K;
        before = now;
    }
    assert_true(fewer && more);
    /* mean 4, variance 2 */
    CHECK_CLOSE((double)before / (ROUNDS * K), 4, 5 * sqrt(2.0 / (ROUNDS * K)), "mean number of local steps");
    world_close(&w);
}

/* ---- the clock ---- */

/* Nobody is asked again while on the way; what was sent arrives or is under way; messages older than the bound are not used. */
static void messages_follow_the_clock(void **state)
{
    static const int64_t bounds[] = {0, 2, 1000};
    int64_t late[3];
    (void)state;
    for (int b = 0; b < 3; b++) {
        char strategy[100];
        world w;
        int64_t used = 0;
        (void)snprintf(strategy, sizeof strategy, "federated:mean_delay=3,staleness=%lld", (long long)bounds[b]);
        open_watched(&w, strategy, 9);
        for (int i = 0; i < 400; i++) {
            last_arrivals = 0;
            world_step(&w, 1);
            used += last_arrivals;
            reef_run_counts c = reef_run_counts_of(w.run);
            int64_t received = c.messages - c.gradients;
            int64_t under_way = c.gradients - received;
            assert_in_range(under_way, 0, K);
            CHECK(used <= received - c.late, "%lld used of %lld received, %lld late", (long long)used,
                  (long long)received, (long long)c.late);
        }
        reef_run_counts c = reef_run_counts_of(w.run);
        late[b] = c.late;
        /* a journey takes floor(3 E) + 1 rounds, E exponential: 1 + 1 / (exp(1/3) - 1) = 3.53 on average */
        CHECK_CLOSE((double)c.gradients, 400 * K / (1 + 1 / (exp(1.0 / 3) - 1)), 150, "journeys");
        assert_int_equal(c.silent, 0);
        world_close(&w);
    }
    assert_int_equal(late[2], 0);
    assert_true(late[0] > late[1] && late[1] > 0);
    /* older than 2 rounds: floor(3 E) >= 3 with probability exp(-1) */
    CHECK_CLOSE((double)late[1] / (400 * K / 3.53), exp(-1), 0.04, "late messages");
}

/* ---- liars at the server ---- */

static bool mute(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    (void)view;
    (void)out;
    return false;
}

static const reef_attack_kind silence = {.kind = {.name = "silence", .summary = "", .citation = ""}, .message = mute};

static void silent_malicious_are_counted(void **state)
{
    world w;
    world honest;
    (void)state;
    world_open(&w, &(world_plan){.agents = K,
                                 .own_problem = &quadratic,
                                 .strategy = "federated",
                                 .own_attack = &silence,
                                 .malicious_count = 3,
                                 .trust = true});
    world_step(&w, 10);
    reef_run_counts c = reef_run_counts_of(w.run);
    assert_int_equal(c.silent, 30);
    assert_int_equal(c.messages, 10 * K + 10 * (K - 3));
    assert_int_equal(c.kept, 0);
    reef_trust_facts facts;
    reef_error error;
    assert_int_equal(reef_run_trust_facts(w.run, &facts, &error), REEF_OK);
    CHECK_CLOSE(facts.malicious_count, 0, 0, "trust in those who say nothing");
    CHECK_CLOSE(facts.auc, 1, 0, "honest before silent");
    world_close(&w);
    /* nobody answers: the server keeps its model */
    world_open(&w, &(world_plan){.agents = K, .own_problem = &quadratic, .strategy = "federated:dropout=1"});
    world_open(&honest, &(world_plan){.agents = K, .own_problem = &quadratic, .strategy = "federated"});
    world_step(&w, 10);
    world_step(&honest, 1);
    c = reef_run_counts_of(w.run);
    assert_int_equal(c.kept, 10);
    assert_int_equal(c.silent, 10 * K);
    CHECK_CLOSE(server_of(&w, 0), 0, 0, "the server's first model");
    assert_true(server_of(&honest, 0) != 0);
    world_close(&w);
    world_close(&honest);
}

/* Only those who were asked are trusted or not. */
static void trust_is_about_those_who_were_asked(void **state)
{
    int32_t senders[K];
    double share[K];
    double sum = 0;
    reef_trust_facts facts;
    reef_error error;
    world w;
    (void)state;
    world_open(&w, &(world_plan){.agents = K,
                                 .own_problem = &quadratic,
                                 .strategy = "federated:clients=8,weights=samples",
                                 .malicious_count = 6,
                                 .trust = true});
    world_step(&w, 5);
    ptrdiff_t count = reef_run_trust(w.run, 0, senders, share, K);
    assert_int_equal(count, 8);
    for (ptrdiff_t i = 0; i < count; i++) {
        sum += share[i];
        assert_true(share[i] > 0);
        assert_true(i == 0 || senders[i] > senders[i - 1]);
    }
    CHECK_CLOSE(sum, 1, 1e-12, "shares of the mean");
    assert_int_equal(reef_run_trust(w.run, 1, senders, share, K), 0);
    assert_int_equal(reef_run_trust(w.run, 0, senders, share, 3), 3);
    assert_int_equal(reef_run_trust_facts(w.run, &facts, &error), REEF_OK);
    CHECK_CLOSE(facts.honest, 1, 1e-8, "the mean believes everybody by weight");
    CHECK_CLOSE(facts.auc, 0.5, 0, "the mean tells nobody apart");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_asked_for),
        cmocka_unit_test(sampling_is_uniform),
        cmocka_unit_test(the_absent_are_counted),
        cmocka_unit_test(the_server_follows_its_equations),
        cmocka_unit_test(local_steps_vary),
        cmocka_unit_test(messages_follow_the_clock),
        cmocka_unit_test(silent_malicious_are_counted),
        cmocka_unit_test(trust_is_about_those_who_were_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
