/* Members, each by itself with rows passed by hand, have the bits of a run: for every rule, attack and graph here, with momentum and
 * schedules, where rows are absent, and after a state was saved and loaded. */
#include <reef/member.h>

#include "support/alloc.h"
#include "support/check.h"
#include "support/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGENTS = 13, ROUNDS = 60 };

typedef struct crew {
    reef_member *member[AGENTS];
    int32_t sender[AGENTS][AGENTS];
    double weights[AGENTS][AGENTS];
    ptrdiff_t senders[AGENTS];
    const void *phi[AGENTS];
    const void *sent[AGENTS];
} crew;

static void hire(crew *c, const world *w, const world_plan *plan, ptrdiff_t k)
{
    reef_csr csr = reef_graph_csr(w->graph[0]);
    c->senders[k] = csr.start[k + 1] - csr.start[k];
    for (ptrdiff_t i = 0; i < c->senders[k]; i++) {
        c->sender[k][i] = csr.senders[csr.start[k] + i];
        c->weights[k][i] = csr.weight[csr.start[k] + i];
    }
    const reef_member_setup setup = {.problem = w->problem,
                                     .strategy = plan->strategy ? plan->strategy : "diffusion",
                                     .rule = w->rule,
                                     .agent = k,
                                     .senders = c->senders[k],
                                     .sender = c->sender[k],
                                     .weights = c->weights[k],
                                     .dtype = REEF_F32,
                                     .attack = w->attack,
                                     .seed = plan->seed,
                                     .agents = AGENTS,
                                     .malicious = w->malicious};
    reef_error error = {REEF_OK, ""};
    reef_status status = reef_member_create(NULL, &c->member[k], &setup, &error);
    CHECK(status == REEF_OK, "%s", error.text);
}

static void dismiss(crew *c)
{
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        reef_member_destroy(&c->member[k]);
    }
}

/* rows[i] = what `from` has of the i-th sender of agent k. */
static void pick(const crew *c, ptrdiff_t k, const void *const *from, const void **rows)
{
    for (ptrdiff_t i = 0; i < c->senders[k]; i++) {
        rows[i] = from[c->sender[k][i]];
    }
}

static void play_round(crew *c, int64_t round)
{
    const void *rows[AGENTS];
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        c->phi[k] = reef_member_adapt(c->member[k], round);
    }
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        pick(c, k, c->phi, rows);
        c->sent[k] = reef_member_message(c->member[k], round, rows);
    }
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        reef_error error;
        pick(c, k, c->sent, rows);
        (void)!reef_member_combine(c->member[k], round, rows,
                                   &error); /* without a usable row it keeps phi, as a run does */
    }
}

static void compare(const crew *c, const world *w, const char *what, int64_t round)
{
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        size_t bytes = (size_t)reef_run_dimension(w->run) * sizeof(float);
        CHECK(memcmp(reef_member_model(c->member[k]), reef_run_model(w->run, k), bytes) == 0,
              "%s: agent %td differs after round %lld", what, k, (long long)round);
    }
}

/* Everything is saved, dismissed, hired again and loaded. */
static void replace(crew *c, const world *w, const world_plan *plan)
{
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        reef_error error = {REEF_OK, ""};
        size_t size = reef_member_size(c->member[k]);
        unsigned char *bytes = malloc(size);
        assert_non_null(bytes);
        assert_int_equal(reef_member_save(c->member[k], bytes, size, &error), REEF_OK);
        reef_member_destroy(&c->member[k]);
        hire(c, w, plan, k);
        CHECK(reef_member_load(c->member[k], bytes, size, &error) == REEF_OK, "%s", error.text);
        free(bytes);
    }
}

static void check_plan(const world_plan *plan, int64_t saved_at)
{
    world w;
    crew c = {0};
    char what[200];
    (void)snprintf(what, sizeof what, "%s, %s, %s", plan->rule, plan->attack ? plan->attack : "no attack", plan->graph);
    world_open(&w, plan);
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        hire(&c, &w, plan, k);
    }
    for (int64_t round = 0; round < ROUNDS; round++) {
        if (round == saved_at) {
            replace(&c, &w, plan);
        }
        play_round(&c, round);
        world_step(&w, 1);
        if (round < 3 || round % 10 == 9) {
            compare(&c, &w, what, round);
        }
    }
    dismiss(&c);
    world_close(&w);
}

static const char *const rules[] = {
    "mean",         "median", "ref", "vref", "mref", "cclip:tau=1", "geomed", "krum:f=1", "trimmed:f=1,keep_self=true",
    "nnm:f=1 | ref"};
static const char *const graphs[] = {"ring:k=2", "complete", "erdos_renyi:p=0.8"};

static void has_the_bits_of_a_run(void **state)
{
    static const char *const attacks[] = {NULL, "additive:delta=1000", "sign_flip", "gaussian", "silent"};
    (void)state;
    int played = 0;
    for (ptrdiff_t r = 0; r < COUNT(rules); r++) {
        for (ptrdiff_t a = 0; a < COUNT(attacks); a++) {
            for (ptrdiff_t g = 0; g < COUNT(graphs); g++, played++) {
                const world_plan plan = {.agents = AGENTS,
                                         .rule = rules[r],
                                         .attack = attacks[a],
                                         .malicious_count = attacks[a] ? 2 : 0,
                                         .graph = graphs[g],
                                         .weights = "metropolis",
                                         .strategy = "diffusion:mu=0.05",
                                         .seed = 5};
                check_plan(&plan, -1);
            }
        }
    }
    assert_int_equal(played, 150);
}

/* Attacks that look at others' rows: equal where the malicious agents hear everybody. */
static void knows_what_it_hears(void **state)
{
    static const char *const attacks[] = {"alie", "ipm", "alie:knowledge=malicious", "mimic", "min_max"};
    (void)state;
    for (ptrdiff_t a = 0; a < COUNT(attacks); a++) {
        const world_plan plan = {.agents = AGENTS,
                                 .rule = "mref",
                                 .attack = attacks[a],
                                 .malicious_count = 3,
                                 .graph = "complete",
                                 .seed = 5};
        check_plan(&plan, 20);
    }
}

static void steps_as_the_strategy_says(void **state)
{
    static const char *const strategies[] = {
        "diffusion:mu=0.05,momentum=0.9", "diffusion:mu=0.05,schedule=inverse,decay=10",
        "diffusion:mu=0.05,schedule=piecewise,every=7", "diffusion:mu=0.05,schedule=sqrt,batch=4"};
    (void)state;
    for (ptrdiff_t s = 0; s < COUNT(strategies); s++) {
        for (ptrdiff_t r = 0; r < COUNT(rules); r++) {
            const world_plan plan = {.agents = AGENTS,
                                     .rule = rules[r],
                                     .attack = "sign_flip",
                                     .malicious_count = 2,
                                     .graph = "ring:k=2",
                                     .strategy = strategies[s]};
            check_plan(&plan, 31); /* and a state between */
        }
    }
}

/* Who was trusted, as the rule's report has it and the weights of those who were there. */
static void tells_whom_it_trusted(void **state)
{
    (void)state;
    world w;
    crew c = {0};
    double share[AGENTS];
    double fair[AGENTS];
    const world_plan plan = {.agents = AGENTS,
                             .rule = "ref",
                             .attack = "additive:delta=1000",
                             .malicious_count = 3,
                             .graph = "complete",
                             .seed = 5};
    world_open(&w, &plan);
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        hire(&c, &w, &plan, k);
        reef_member_set_seed(c.member[k], 7); /* without a memory it does nothing */
    }
    play_round(&c, 0);
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        double sum = 0;
        reef_member_trust(c.member[k], share, fair);
        for (ptrdiff_t i = 0; i < AGENTS; i++) {
            sum += share[i];
            CHECK_CLOSE(fair[i], 1.0 / AGENTS, 1e-15, "fair share");
            CHECK(w.malicious[i] == (share[i] < 0.01), "agent %td gives %td a share of %g", k, i, share[i]);
        }
        CHECK_CLOSE(sum, 1, 1e-6, "sum of shares");
        reef_member_trust(c.member[k], NULL, NULL);
    }
    dismiss(&c);
    world_close(&w);
}

static void learns_classes(void **state)
{
    (void)state;
    const world_plan plan = {.agents = AGENTS,
                             .problem = "softmax:data=gaussian",
                             .rule = "mref",
                             .attack = "label_flip",
                             .malicious_count = 3,
                             .graph = "ring:k=2",
                             .strategy = "diffusion:mu=0.1,batch=8"};
    check_plan(&plan, 10);
}

/* ---- models of the caller's ---- */

static const int32_t three[] = {4, 7, 9};
static const double weights[] = {0.25, 0.5, 0.25};

static reef_member_setup own_models(const reef_agg *rule)
{
    return (reef_member_setup){
        .rule = rule, .agent = 7, .senders = 3, .sender = three, .weights = weights, .dimension = 2, .dtype = REEF_F64};
}

static void combines_models_of_the_callers(void **state)
{
    (void)state;
    const double own[] = {1, 2};
    const double other[] = {3, 4};
    reef_error error = {REEF_OK, ""};
    reef_agg *rule = NULL;
    reef_member *m = NULL;
    assert_int_equal(reef_agg_create(NULL, &rule, "mean", &error), REEF_OK);
    reef_member_setup setup = own_models(rule);
    CHECK(reef_member_create(NULL, &m, &setup, &error) == REEF_OK, "%s", error.text);
    assert_null(reef_member_adapt(m, 0));
    reef_member_offer(m, own);
    const void *rows[3] = {NULL, NULL, other};
    assert_memory_equal(reef_member_message(m, 0, rows), own, sizeof own);
    assert_int_equal(reef_member_combine(m, 0, rows, &error), REEF_OK);
    const double *w = reef_member_model(m);
    CHECK_CLOSE(w[0], (0.5 * 1 + 0.25 * 3) / 0.75, 1e-15, "weighted mean of those who are there");
    CHECK_CLOSE(reef_report_trust(reef_member_report(m))[0], 0, 0, "trust in the absent");
    assert_int_equal(reef_member_adopt(m, 1, rows, &error), REEF_OK);
    CHECK_CLOSE(w[1], 4, 0, "taken over from the only other");
    rows[2] = NULL;
    assert_int_not_equal(reef_member_adopt(m, 2, rows, &error), REEF_OK);
    CHECK_CLOSE(w[1], 4, 0, "stays");
    reef_member_destroy(&m);
    reef_agg_destroy(&rule);
}

static void damaged_states_are_refused(void **state)
{
    (void)state;
    reef_error error = {REEF_OK, ""};
    reef_agg *rule = NULL;
    reef_member *m = NULL;
    assert_int_equal(reef_agg_create(NULL, &rule, "mref", &error), REEF_OK);
    reef_member_setup setup = own_models(rule);
    assert_int_equal(reef_member_create(NULL, &m, &setup, &error), REEF_OK);
    size_t size = reef_member_size(m);
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(reef_member_save(m, bytes, size - 1, &error), REEF_E_ARG);
    assert_int_equal(reef_member_save(m, bytes, size, &error), REEF_OK);
    for (size_t i = 0; i < size; i += i < 64 ? 1 : 37) {
        bytes[i] ^= 4;
        CHECK(reef_member_load(m, bytes, size, &error) == REEF_E_FORMAT, "byte %zu passes", i);
        bytes[i] ^= 4;
    }
    assert_int_equal(reef_member_load(m, bytes, size - 1, &error), REEF_E_FORMAT);
    assert_int_equal(reef_member_load(m, bytes, size, &error), REEF_OK);
    reef_member_destroy(&m);
    setup.agent = 4; /* somebody else's */
    assert_int_equal(reef_member_create(NULL, &m, &setup, &error), REEF_OK);
    assert_int_equal(reef_member_load(m, bytes, size, &error), REEF_E_FORMAT);
    free(bytes);
    reef_member_destroy(&m);
    reef_agg_destroy(&rule);
}

static void bad_setups_are_refused(void **state)
{
    (void)state;
    world w;
    const world_plan plan = {.agents = AGENTS, .rule = "mean"};
    world_open(&w, &plan);
    const int32_t unsorted[] = {7, 4, 9};
    const double negative[] = {0.5, -1, 0.5};
    const bool malicious[AGENTS] = {[7] = true};
    reef_attack *late = NULL;
    reef_error error = {REEF_OK, ""};
    assert_int_equal(reef_attack_create(NULL, &late, "late", &error), REEF_OK);
    reef_member_setup good = own_models(w.rule);
    reef_member_setup bad[] = {good, good, good, good, good, good, good, good, good, good};
    bad[0].rule = NULL;
    bad[1].sender = unsorted;
    bad[2].weights = negative;
    bad[3].agent = 5; /* does not hear itself */
    bad[4].dimension = 0;
    bad[5].problem = w.problem; /* float64 models */
    bad[6].problem = w.problem; /* no strategy */
    bad[6].dtype = REEF_F32;
    bad[6].dimension = 0;
    bad[7].strategy = "diffusion:order=cta";
    bad[8].strategy = "federated";
    bad[9].attack = late;
    bad[9].dtype = REEF_F32;
    bad[9].agents = AGENTS;
    bad[9].malicious = malicious;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        reef_member *m = NULL;
        error.text[0] = '\0';
        CHECK(reef_member_create(NULL, &m, &bad[i], &error) != REEF_OK, "setup %td passes", i);
        assert_null(m);
        assert_true(error.text[0]);
    }
    reef_attack_destroy(&late);
    world_close(&w);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    alloc_log log = {.fail_at = -1};
    reef_context *context = alloc_context(&log, 1);
    reef_agg *rule = NULL;
    reef_error error = {REEF_OK, ""};
    assert_int_equal(reef_agg_create(context, &rule, "mref", &error), REEF_OK);
    reef_member_setup setup = own_models(rule);
    setup.strategy = "diffusion";
    int live = log.live;
    reef_status status = REEF_E_NOMEM;
    for (int fail_at = 0; status != REEF_OK; fail_at++) {
        reef_member *m = NULL;
        log.total = 0;
        log.fail_at = fail_at;
        status = reef_member_create(context, &m, &setup, &error);
        CHECK(status == REEF_OK || status == REEF_E_NOMEM, "%s", error.text);
        reef_member_destroy(&m);
        assert_int_equal(log.live, live);
    }
    log.fail_at = -1;
    reef_agg_destroy(&rule);
    reef_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_bits_of_a_run),      cmocka_unit_test(knows_what_it_hears),
        cmocka_unit_test(steps_as_the_strategy_says), cmocka_unit_test(learns_classes),
        cmocka_unit_test(tells_whom_it_trusted),      cmocka_unit_test(combines_models_of_the_callers),
        cmocka_unit_test(damaged_states_are_refused), cmocka_unit_test(bad_setups_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
