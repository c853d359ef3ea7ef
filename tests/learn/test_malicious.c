/* What liars may do to a run, and what it says about them. */
#include "support/check.h"
#include "support/runs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { K = 12, M = QUADRATIC_M };

/* ---- one attack for everything ---- */

typedef struct habits {
    float value;     /* what it sends in every coordinate, if not... */
    bool send_round; /* ...the number of the round */
    bool send_to;    /* ...the number of the receiver */
    bool send_own;   /* ...what it would have sent */
    bool first_only; /* only in its first coordinate; the others are honest */
    bool rests;      /* silent in rounds 1, 4, 7, ... */
    bool silent;     /* always */
    int64_t delay;
    unsigned traits;
} habits;

/* What it was told last. */
static reef_attack_view told;
static float told_own[M];
static float told_previous[M];

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const habits *p = params;
    told = *view;
    for (ptrdiff_t i = 0; i < view->length && i < M; i++) {
        told_own[i] = view->own[i];
        told_previous[i] = view->previous[i];
    }
    float value = p->send_round ? (float)view->round : p->send_to ? (float)view->receiver : p->value;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = p->send_own || (p->first_only && i > 0) ? view->own[i] : value;
    }
    return !p->silent && !(p->rests && view->round % 3 == 1);
}

static int64_t delay_of(const void *params)
{
    return ((const habits *)params)->delay;
}

static unsigned traits_of(const void *params)
{
    return ((const habits *)params)->traits;
}

static const reef_attack_kind malicious_kind = {
    .kind = {.name = "liar", .summary = "", .citation = "", .params_size = sizeof(habits)},
    .message = message,
    .delay = delay_of,
    .traits_of = traits_of,
};

static world_plan plan_of(const habits *h, ptrdiff_t malicious_count)
{
    return (world_plan){.agents = K,
                        .own_problem = &quadratic,
                        .own_attack = &malicious_kind,
                        .attack_params = h,
                        .malicious_count = malicious_count};
}

/* ---- a run goes on ---- */

static void nothing_ends_a_run(void **state)
{
    static const habits all[] = {{.value = NAN},
                                 {.value = INFINITY},
                                 {.value = -INFINITY},
                                 {.value = 3.4e38F},
                                 {.silent = true},
                                 {.value = NAN, .first_only = true},
                                 {.value = 1, .delay = 3},
                                 {.rests = true, .value = -3.4e38F, .delay = 2},
                                 {.send_to = true, .traits = REEF_ATTACK_EDGE},
                                 {.value = NAN, .traits = REEF_ATTACK_EDGE},
                                 {.silent = true, .traits = REEF_ATTACK_EDGE}};
    static const char *const rules[] = {"median",        "ref",           "trimmed:f=3",
                                        "krum:f=3",      "geomed",        "vref",
                                        "cclip:tau=0.1", "nnm:f=3 | ref", "trimmed:f=3,keep_self=true",
                                        "mref"};
    static const char *const strategies[] = {
        "diffusion", "diffusion:order=cta", "diffusion:order=consensus", "federated", "rsa", "rsa_tv", "oracle"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(all) * COUNT(rules) * COUNT(strategies); i++) {
        const char *strategy = strategies[i % COUNT(strategies)];
        const char *rule = rules[i / COUNT(strategies) % COUNT(rules)];
        world_plan plan = plan_of(&all[i / COUNT(strategies) / COUNT(rules)], 3);
        world w;
        plan.strategy = strategy;
        plan.rule = rule;
        if (strcmp(strategy, "federated") == 0 && strstr(rule, "keep_self")) {
            continue; /* refused: a server has no row of its own */
        }
        world_open(&w, &plan);
        world_step(&w, 12);
        assert_int_equal(reef_run_round(w.run), 12);
        assert_true(!reef_run_model(w.run, -1) && !reef_run_model(w.run, K) && !reef_run_holds(w.run, PTRDIFF_MAX));
        for (ptrdiff_t k = 3; k < K; k++) {
            for (ptrdiff_t m = 0; m < M; m++) {
                double x = (double)reef_run_model(w.run, k)[m];
                CHECK(fabs(x) < 100, "%s with %s under lie %td: agent %td is at %g", strategy, rule,
                      i / COUNT(strategies) / COUNT(rules), k, x);
            }
        }
        world_close(&w);
    }
}

/* ---- counters ---- */

static void counts_add_up(void **state)
{
    enum { MALICIOUS = 3, ROUNDS = 5 };
    static const char *const rules[] = {"median", "ref", "mean"};
    (void)state;
    for (int trust = 0; trust < 2; trust++) {
        for (ptrdiff_t i = 0; i < COUNT(rules); i++) {
            world w;
            world_plan plan = plan_of(&(habits){.value = NAN}, MALICIOUS);
            plan.rule = rules[i];
            plan.trust = trust;
            world_open(&w, &plan);
            world_step(&w, ROUNDS);
            reef_run_counts c = reef_run_counts_of(w.run);
            /* every agent drops the rows of all liars; a liar hears its own lie as well */
            CHECK(c.dropped == ROUNDS * K * MALICIOUS, "%s: %lld rows dropped", rules[i], (long long)c.dropped);
            assert_int_equal(c.messages, ROUNDS * K * (K - 1));
            assert_int_equal(c.kept + c.silent, 0);
            world_close(&w);
            plan = plan_of(&(habits){.silent = true}, MALICIOUS);
            plan.rule = rules[i];
            plan.trust = trust;
            world_open(&w, &plan);
            world_step(&w, ROUNDS);
            c = reef_run_counts_of(w.run);
            assert_int_equal(c.silent, ROUNDS * MALICIOUS * (K - 1));
            assert_int_equal(c.messages, ROUNDS * (K - MALICIOUS) * (K - 1));
            assert_int_equal(c.kept + c.dropped, 0);
            world_close(&w);
        }
    }
}

/* Silent liars are as if they were not there, also where a liar is the first of those who hear the same. */
static void the_silent_are_not_heard(void **state)
{
    static const ptrdiff_t malicious_count[] = {1, 4};
    (void)state;
    for (int i = 0; i < 2; i++) {
        world silent;
        world oracle;
        world_plan plan = plan_of(&(habits){.silent = true}, malicious_count[i]);
        world_open(&silent, &plan);
        plan.strategy = "oracle";
        plan.rule = "";
        world_open(&oracle, &plan);
        world_step(&silent, 20);
        world_step(&oracle, 20);
        for (ptrdiff_t k = malicious_count[i]; k < K; k++) {
            CHECK_CLOSE((double)reef_run_model(silent.run, k)[1], (double)reef_run_model(oracle.run, k)[1], 1e-6,
                        "the mean without silent agents, and that of the honest ones");
        }
        world_close(&silent);
        world_close(&oracle);
    }
}

/* Agent 1 hears liars only: it goes on by itself, and each time is counted. The oracle, too, leaves it alone. */
static void without_messages_agents_keep_their_own(void **state)
{
    static const int32_t from[] = {0, 2, 0, 2};
    static const int32_t to[] = {1, 1, 3, 3};
    static const bool malicious[] = {true, false, true, false};
    static const habits lies[] = {{.value = NAN}, {.silent = true}, {.silent = true, .traits = REEF_ATTACK_EDGE}};
    const reef_link_list edges = {.count = 4, .senders = from, .receivers = to, .directed = true, .no_loops = true};
    (void)state;
    for (ptrdiff_t i = 0; i <= COUNT(lies); i++) {
        bool oracle = i == COUNT(lies);
        world_plan plan = plan_of(&lies[oracle ? 0 : i], 0);
        world w;
        world alone;
        plan.agents = 4;
        plan.edges = &edges;
        plan.malicious = malicious;
        plan.rule = oracle ? "" : "median";
        plan.strategy = oracle ? "oracle" : "diffusion";
        world_open(&w, &plan);
        plan.rule = "";
        plan.strategy = "local";
        plan.edges = NULL;
        world_open(&alone, &plan);
        world_step(&w, 6);
        world_step(&alone, 6);
        for (ptrdiff_t k = 1; k < 4; k += 2) {
            CHECK(memcmp(reef_run_model(w.run, k), reef_run_model(alone.run, k), M * sizeof(float)) == 0,
                  "agent %td did not keep its own model under lie %td", k, i);
        }
        assert_int_equal(reef_run_counts_of(w.run).kept, 4 * 6); /* the liars hear nobody */
        world_close(&w);
        world_close(&alone);
    }
}

/* ---- what arrives ---- */

/* Agents 1 and 2 hear agent 0 alone, which hears nobody: their models are its messages. */
static void open_mirror(world *w, const habits *h, const char *strategy)
{
    static const int32_t from[] = {0, 0};
    static const int32_t to[] = {1, 2};
    const reef_link_list edges = {.count = 2, .senders = from, .receivers = to, .directed = true, .no_loops = true};
    world_plan plan = plan_of(h, 1);
    plan.agents = 3;
    plan.edges = &edges;
    plan.strategy = strategy;
    plan.rule = strncmp(strategy, "rsa", 3) == 0 ? "" : "median";
    world_open(w, &plan);
}

static double heard(const world *w, ptrdiff_t k)
{
    return (double)reef_run_model(w->run, k)[0];
}

static void late_messages_are_those_of_earlier_rounds(void **state)
{
    enum { DELAY = 4 };
    world w;
    (void)state;
    open_mirror(&w, &(habits){.send_round = true, .rests = true, .delay = DELAY}, "diffusion:mu=0");
    double last = 0;
    for (int64_t round = 0; round < 30; round++) {
        int64_t kept = reef_run_counts_of(w.run).kept;
        world_step(&w, 1);
        int64_t made = round - DELAY;
        bool sent = made >= 0 && made % 3 != 1;
        last = sent ? (double)made : last; /* with mu = 0 who hears nothing stays where it is */
        CHECK_CLOSE(heard(&w, 1), last, 0, "late message");
        assert_int_equal(reef_run_counts_of(w.run).kept - kept, sent ? 1 : 3);
    }
    assert_int_equal(reef_run_counts_of(w.run).late, 0);
    world_close(&w);
}

static void each_receiver_gets_its_own_lie(void **state)
{
    static const char *const strategies[] = {"diffusion:mu=0", "diffusion:mu=0,order=cta",
                                             "diffusion:mu=0,order=consensus"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        world w;
        open_mirror(&w, &(habits){.send_to = true, .traits = REEF_ATTACK_EDGE}, strategies[i]);
        world_step(&w, 3);
        CHECK_CLOSE(heard(&w, 1), 1, 0, "the lie to agent 1");
        CHECK_CLOSE(heard(&w, 2), 2, 0, "the lie to agent 2");
        world_close(&w);
    }
}

/* ---- what liars know ---- */

static void malicious_know_what_they_should(void **state)
{
    static const struct {
        int knowledge;
        unsigned traits;
        const char *strategy, *graph;
        ptrdiff_t known, honest, malicious_count; /* liar 2 to (if to one) receiver 11, who hears 9, 10, 11, 0, 1 */
    } cases[] = {
        {REEF_KNOW_ALL, REEF_ATTACK_ROWS, "diffusion", "ring:k=2", 9, 9, 3},
        {REEF_KNOW_ALL, 0, "diffusion", "ring:k=2", 0, 9, 3},
        {REEF_KNOW_MALICIOUS, REEF_ATTACK_ROWS, "diffusion", "ring:k=2", 3, 9, 3},
        {REEF_KNOW_NEIGHBOURS, REEF_ATTACK_ROWS, "diffusion", "ring:k=2", 3, 3, 2},
        {REEF_KNOW_ALL, REEF_ATTACK_ROWS | REEF_ATTACK_EDGE, "diffusion", "ring:k=2", 9, 3, 2},
        {REEF_KNOW_NEIGHBOURS, 0, "diffusion", "ring:k=2", 0, 9, 3},
        {REEF_KNOW_NEIGHBOURS, REEF_ATTACK_ROWS, "federated", NULL, 9, 9, 3},
        {REEF_KNOW_MALICIOUS, REEF_ATTACK_ROWS, "federated", NULL, 3, 9, 3},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        const reef_attack_common common = {.knowledge = cases[i].knowledge, .on = 1};
        world_plan plan = plan_of(&(habits){.send_own = true, .traits = cases[i].traits}, 3);
        world w;
        plan.common = &common;
        plan.strategy = cases[i].strategy;
        plan.graph = cases[i].graph;
        world_open(&w, &plan);
        world_step(&w, 2);
        CHECK(told.known == cases[i].known && told.honest == cases[i].honest &&
                  told.malicious_count == cases[i].malicious_count,
              "case %td: %td rows known, %td honest, %td liars", i, told.known, told.honest, told.malicious_count);
        assert_int_equal(told.round, 1);
        world_close(&w);
    }
}

/* previous: where the step began that led to what is sent. The liar hears nobody, so that its model takes plain
 * gradient steps, and own - previous is one. */
static void malicious_know_where_they_came_from(void **state)
{
    static const struct {
        const char *strategy;
        int64_t age; /* rounds since what is sent was adapted */
    } cases[] = {{"diffusion:mu=0.1", 0},
                 {"diffusion:mu=0.1,order=cta", 1},
                 {"diffusion:mu=0.1,order=consensus", 1},
                 {"rsa_tv:mu=0.1,lambda=0", 1}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        world w;
        open_mirror(&w, &(habits){.send_own = true}, cases[i].strategy);
        for (int64_t round = 0; round < 6; round++) {
            world_step(&w, 1);
            for (ptrdiff_t m = 0; m < M; m++) {
                double g = quadratic_gradient(0, round - cases[i].age, 0, 0, m, (double)told_previous[m]);
                double want = round < cases[i].age ? 0 : -0.1 * g;
                CHECK_CLOSE((double)told_own[m] - (double)told_previous[m], want, 1e-6, cases[i].strategy);
            }
        }
        world_close(&w);
    }
}

/* ---- trust ---- */

static reef_trust_facts facts_of(const world_plan *plan)
{
    reef_trust_facts facts;
    reef_error error;
    world w;
    world_plan p = *plan;
    p.trust = true;
    world_open(&w, &p);
    world_step(&w, 5);
    CHECK(reef_run_trust_facts(w.run, &facts, &error) == REEF_OK, "%s", error.text);
    for (ptrdiff_t k = 0; k < reef_run_agents(w.run); k++) {
        int32_t senders[K];
        double share[K];
        double sum = 0;
        ptrdiff_t count = reef_run_trust(w.run, k, senders, share, K);
        for (ptrdiff_t i = 0; i < count; i++) {
            sum += share[i];
        }
        CHECK_CLOSE(sum, 1, 1e-6, "effective weights at a receiver");
    }
    world_close(&w);
    return facts;
}

static void trust_tells_malicious(void **state)
{
    static const char *const graphs[] = {"complete", "ring:k=4"};
    reef_trust_facts facts;
    (void)state;
    for (int i = 0; i < 2; i++) {
        const world_plan far = {.agents = K,
                                .graph = graphs[i],
                                .problem = "lms:dimension=20",
                                .rule = "ref",
                                .attack = "additive:delta=100",
                                .malicious_count = 2};
        facts = facts_of(&far);
        CHECK_CLOSE(facts.malicious_count, 0, 1e-9, "trust in liars");
        CHECK_CLOSE(facts.auc, 1, 0, "honest before liars");
        CHECK(facts.honest > 1 && facts.honest < 1.6, "trust in honest agents: %g", facts.honest);
        /* the mean does not tell them apart, whatever the weights: all have their fair share */
        facts = facts_of(&(world_plan){.agents = K,
                                       .graph = "star",
                                       .weights = "metropolis",
                                       .attack = "additive:delta=100",
                                       .malicious_count = 2});
        CHECK_CLOSE(facts.honest, 1, 1e-8, "trust in honest agents by the mean");
        CHECK_CLOSE(facts.malicious_count, 1, 1e-8, "trust in liars by the mean");
        CHECK_CLOSE(facts.auc, 0.5, 0, "order by the mean");
    }
    facts = facts_of(&(world_plan){.agents = K, .rule = "ref"});
    CHECK(isnan(facts.malicious_count) && isnan(facts.auc), "no liars, but trust %g in them, order %g",
          facts.malicious_count, facts.auc);
    /* dropped rows have no weight, the others theirs */
    world_plan broken = plan_of(&(habits){.value = NAN}, 3);
    facts = facts_of(&broken);
    CHECK_CLOSE(facts.malicious_count, 0, 0, "trust in NaN");
    CHECK_CLOSE(facts.honest, 12.0 / 9, 1e-8, "trust in the others");
}

/* Neighbourhoods of many sizes: whether trust is kept changes no bit. */
static void trust_changes_nothing(void **state)
{
    static const char *const graphs[] = {"star", "erdos_renyi:p=0.3", "barabasi_albert", "line"};
    static const char *const rules[] = {"mean", "ref", "geomed"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(graphs) * COUNT(rules); i++) {
        world_plan plan = {.agents = 60, .graph = graphs[i % COUNT(graphs)], .rule = rules[i / COUNT(graphs)]};
        world with;
        world without;
        world_open(&without, &plan);
        plan.trust = true;
        world_open(&with, &plan);
        world_step(&without, 10);
        world_step(&with, 10);
        check_same(&with, &without, plan.graph);
        assert_int_equal(reef_run_counts_of(with.run).kept, 0);
        world_close(&with);
        world_close(&without);
    }
}

static void trust_only_where_it_is_given(void **state)
{
    static const char *const strategies[] = {"local", "rsa", "rsa_tv", "oracle"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(strategies); i++) {
        reef_trust_facts facts;
        reef_error error;
        int32_t sender;
        double share;
        world w;
        world_open(&w, &(world_plan){.strategy = strategies[i], .rule = "", .trust = true});
        world_step(&w, 2);
        assert_int_equal(reef_run_trust(w.run, 3, &sender, &share, 1), 0);
        assert_int_equal(reef_run_trust(w.run, 0, &sender, &share, 1), 0);
        assert_int_equal(reef_run_trust_facts(w.run, &facts, &error), REEF_E_ARG);
        world_close(&w);
    }
}

/* ---- labels ---- */

static void flipped_labels_reach_the_problem(void **state)
{
    static const reef_attack_kind labels = {.kind = {.name = "labels", .summary = "", .citation = ""},
                                            .traits = REEF_ATTACK_LABELS | REEF_ATTACK_LANES};
    static const struct {
        const char *strategy;
        int steps;
    } cases[] = {{"diffusion", 1}, {"federated:steps=3", 3}, {"rsa", 1}};
    const reef_attack_common common = {.knowledge = REEF_KNOW_AUTO, .from = 2, .until = 7, .on = 1};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        world w;
        atomic_store(&quadratic_flipped, 0);
        world_open(&w, &(world_plan){.agents = 100,
                                     .own_problem = &quadratic,
                                     .own_attack = &labels,
                                     .common = &common,
                                     .malicious_count = 5,
                                     .strategy = cases[i].strategy,
                                     .rule = strcmp(cases[i].strategy, "rsa") == 0 ? "" : "median"});
        world_step(&w, 10);
        assert_int_equal(atomic_load(&quadratic_flipped), 5 * 5 * cases[i].steps);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_ends_a_run),
        cmocka_unit_test(counts_add_up),
        cmocka_unit_test(the_silent_are_not_heard),
        cmocka_unit_test(without_messages_agents_keep_their_own),
        cmocka_unit_test(late_messages_are_those_of_earlier_rounds),
        cmocka_unit_test(each_receiver_gets_its_own_lie),
        cmocka_unit_test(malicious_know_what_they_should),
        cmocka_unit_test(malicious_know_where_they_came_from),
        cmocka_unit_test(trust_tells_malicious),
        cmocka_unit_test(trust_changes_nothing),
        cmocka_unit_test(trust_only_where_it_is_given),
        cmocka_unit_test(flipped_labels_reach_the_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
