/* Setups that cannot be are refused with a sentence that says why; no allocation that fails leaks; specs read back. */
#include "support/alloc.h"
#include "support/check.h"
#include "support/runs.h"
#include "support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const bool everybody[12] = {true, true, true, true, true, true, true, true, true, true, true, true};
static const double bad_factor[12] = {1, 1, 1, NAN};
static const double negative_factor[12] = {1, -1};

static bool send_nothing(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    (void)view;
    (void)out;
    return false;
}

static const reef_attack_kind one_lane = {.kind = {.name = "one_lane", .summary = "", .citation = ""},
                                          .message = send_nothing};
static const reef_attack_kind greedy = {
    .kind = {.name = "greedy", .summary = "", .citation = ""}, .message = send_nothing, .work_rows = PTRDIFF_MAX / 2};

static void bad_setups_are_explained(void **state)
{
    static const struct {
        world_plan plan;
        const char *says;
    } cases[] = {
        {{.strategy = "difusion"}, "diffusion"},
        {{.strategy = "diffusion:mu=-1"}, "mu"},
        {{.strategy = "diffusion:order=atx"}, "atx"},
        {{.strategy = "diffusion:momentum=1"}, "momentum"},
        {{.rule = ""}, "needs a rule"},
        {{.strategy = "federated", .rule = ""}, "needs a rule"},
        {{.rule = "krum:f=5", .graph = "ring"}, "3 inputs to combine"},
        {{.rule = "krum:f=5", .graph = "star"}, "2 inputs to combine"},
        {{.rule = "krum:f=5", .strategy = "federated:clients=8"}, "8 inputs to combine"},
        {{.rule = "trimmed:f=1,keep_self=true", .strategy = "federated"}, "own"},
        {{.rule = "trimmed:f=1,keep_self=true", .graph = "complete:loops=false"}, "does not hear itself"},
        {{.rule = "krum:f=1", .lanes = 4}, "the rule works on one repetition"},
        {{.rule = "vref", .lanes = 4}, "the rule works on one repetition"},
        {{.own_attack = &one_lane, .lanes = 4}, "the attack works on one repetition"},
        {{.own_attack = &greedy, .malicious_count = 1}, "attack"},
        {{.lanes = -1}, "lanes"},
        {{.lanes = 5000}, "lanes"},
        {{.repetition = -1}, "repetition"},
        {{.repetition = INT32_MAX, .lanes = 4}, "repetition"},
        {{.malicious = everybody}, "all 12 agents are malicious"},
        {{.step_factor = bad_factor}, "step factor of agent 3"},
        {{.step_factor = negative_factor}, "step factor of agent 1"},
        {{.strategy = "diffusion:batch=0"}, "batch=0"},
        {{.strategy = "federated:clients=13"}, "clients=13"},
        {{.strategy = "federated:steps=5,steps_max=3"}, "steps_max=3"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_error error = {0};
        world w;
        reef_status status = world_try(&w, &cases[i].plan, &error);
        CHECK(status != REEF_OK, "case %td (%s) is taken", i, cases[i].says);
        CHECK(strstr(error.text, cases[i].says), "case %td: '%s' does not speak of '%s'", i, error.text, cases[i].says);
        assert_null(w.run);
    }
}

/* Parts that do not fit each other, and parts that are not there. */
static void parts_that_do_not_fit(void **state)
{
    world w;
    world other;
    reef_error error;
    reef_run *run = NULL;
    (void)state;
    world_open(&w, &(world_plan){.agents = 12});
    world_open(&other, &(world_plan){.agents = 13});
    const reef_run_setup good = {.problem = w.problem, .strategy = "diffusion", .rule = w.rule, .links = w.links};
    reef_run_setup setup = good;
    setup.links = other.links;
    assert_int_equal(reef_run_create(w.context, &run, &setup, &error), REEF_E_ARG);
    assert_non_null(strstr(error.text, "the graph has 13 agents, the problem 12"));
    setup.links = NULL;
    assert_int_equal(reef_run_create(w.context, &run, &setup, &error), REEF_E_NO_LINKS);
    assert_non_null(strstr(error.text, "needs links"));
    setup = good;
    setup.problem = NULL;
    assert_int_equal(reef_run_create(w.context, &run, &setup, &error), REEF_E_ARG);
    setup = good;
    setup.strategy = NULL;
    assert_int_equal(reef_run_create(w.context, &run, &setup, NULL), REEF_E_ARG);
    assert_int_equal(reef_run_create(w.context, &run, NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_run_create(w.context, NULL, &good, &error), REEF_E_ARG);
    run = w.run; /* a failed create leaves NULL */
    setup.strategy = "nothing";
    assert_int_not_equal(reef_run_create(w.context, &run, &setup, &error), REEF_OK);
    assert_null(run);
    reef_run_destroy(&run);
    reef_run_destroy(NULL);
    assert_int_equal(reef_run_step(NULL, 1, &error), REEF_E_ARG);
    assert_int_equal(reef_run_step(w.run, -1, &error), REEF_E_ARG);
    assert_int_equal(reef_run_step(w.run, INT64_MAX, &error), REEF_E_ARG);
    assert_int_equal(reef_run_save(NULL, "x", &error), REEF_E_ARG);
    assert_int_equal(reef_run_save(w.run, NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_run_load(NULL, "x", &error), REEF_E_ARG);
    assert_int_equal(reef_run_load(w.run, NULL, &error), REEF_E_ARG);
    world_close(&w);
    world_close(&other);
}

/* A server hears everybody, whatever links are given beside; without a context all is done by the caller. */
static void things_that_do_no_harm(void **state)
{
    world with;
    world without;
    world alone;
    reef_run *run = NULL;
    reef_error error;
    (void)state;
    world_open(&with, &(world_plan){.strategy = "federated", .rule = "ref", .graph = "ring", .trust = true});
    world_open(&without, &(world_plan){.strategy = "federated", .rule = "ref", .trust = true});
    world_step(&with, 10);
    world_step(&without, 10);
    check_same(&with, &without, "links beside a server");
    const reef_run_setup setup = {.problem = with.problem, .strategy = "federated", .rule = with.rule};
    assert_int_equal(reef_run_create(NULL, &run, &setup, &error), REEF_OK);
    assert_int_equal(reef_run_step(run, 10, &error), REEF_OK);
    assert_memory_equal(reef_run_model(run, 0), reef_run_model(with.run, 0), 5 * sizeof(float));
    reef_run_destroy(&run);
    world_close(&with);
    world_close(&without);
    /* one agent that hears nobody, not even itself, learns by itself */
    world_open(&with, &(world_plan){.agents = 1, .graph = "complete:loops=false", .trust = true});
    world_open(&alone, &(world_plan){.agents = 1, .strategy = "local", .rule = ""});
    world_step(&with, 10);
    world_step(&alone, 10);
    assert_memory_equal(reef_run_model(with.run, 0), reef_run_model(alone.run, 0), 5 * sizeof(float));
    assert_int_equal(reef_run_counts_of(with.run).kept, 10);
    world_close(&with);
    world_close(&alone);
}

static void rules_without_weights(void **state)
{
    world w;
    (void)state;
    world_open(&w, &(world_plan){.graph = "ring:k=3", .weights = "metropolis", .rule = "krum:f=1"});
    assert_true(reef_run_uniform(w.run));
    world_step(&w, 3);
    assert_int_equal(reef_run_counts_of(w.run).kept, 0);
    world_close(&w);
    world_open(&w, &(world_plan){.graph = "ring:k=3", .weights = "metropolis", .rule = "ref"});
    assert_false(reef_run_uniform(w.run));
    world_close(&w);
}

/* ---- metrics that a problem does not have ---- */

static void metrics_say_what_is_missing(void **state)
{
    world w;
    reef_error error;
    reef_score score;
    double x[2];
    (void)state;
    world_open(&w, &(world_plan){.own_problem = &quadratic, .lanes = 2});
    world_step(&w, 1);
    assert_int_equal(reef_run_msd(w.run, NULL, x, &error), REEF_E_ARG);
    assert_non_null(strstr(error.text, "quadratic"));
    assert_int_equal(reef_run_excess(w.run, x, &error), REEF_E_ARG);
    assert_int_equal(reef_run_score(w.run, &score, &error), REEF_E_ARG);
    reef_run_consensus(w.run, x);
    CHECK_CLOSE(x[0], 0, 1e-12, "all agents of a complete graph agree");
    world_close(&w);
    world_open(
        &w, &(world_plan){
                .problem = "lms:dimension=5,heterogeneity=1", .strategy = "local", .rule = "", .malicious_count = 3});
    world_step(&w, 2000);
    /* each learns its own: apart by the heterogeneity, 5 coordinates of variance 1 (less the common mean) */
    reef_run_consensus(w.run, x);
    CHECK(x[0] > 2 && x[0] < 10, "consensus distance %g", x[0]);
    assert_int_equal(reef_run_excess(w.run, x, &error), REEF_OK);
    CHECK(x[0] < 0.01, "excess risk of each at its own optimum: %g", x[0]);
    assert_int_equal(reef_run_msd(w.run, NULL, x, &error), REEF_OK);
    CHECK(x[0] > 2, "deviation from the common optimum: %g", x[0]);
    world_close(&w);
}

/* ---- memory ---- */

static int64_t late_by(const void *params)
{
    (void)params;
    return 2;
}

static const reef_attack_kind late = {.kind = {.name = "late", .summary = "", .citation = ""},
                                      .traits = REEF_ATTACK_ROWS | REEF_ATTACK_RULE,
                                      .message = send_nothing,
                                      .delay = late_by};

/* One of create, rounds, save and load with an allocation that fails; true: none did. */
static bool try_with_failure(world_plan plan, int fail_at, ptrdiff_t i, const char *path)
{
    alloc_log log;
    reef_error error;
    world w;
    plan.context = alloc_context(&log, 2);
    log.fail_at = fail_at;
    reef_status status = world_try(&w, &plan, &error);
    if (status == REEF_OK) {
        int before = atomic_load(&log.total);
        status = reef_run_step(w.run, 4, &error);
        CHECK(atomic_load(&log.total) == before || plan.engine, "rounds of setup %td allocate", i);
    }
    if (status == REEF_OK) {
        status = reef_run_save(w.run, path, &error);
    }
    if (status == REEF_OK) {
        status = reef_run_load(w.run, path, &error);
    }
    CHECK(status == REEF_OK || status == REEF_E_NOMEM, "allocation %d of setup %td: %s", fail_at, i, error.text);
    world_close(&w);
    CHECK(!atomic_load(&log.broken), "setup %td wrote beyond its memory", i);
    reef_context_destroy(&plan.context);
    CHECK(atomic_load(&log.live) == 0, "allocation %d of setup %td: %d blocks leak", fail_at, i,
          atomic_load(&log.live));
    return status == REEF_OK;
}

/* Every allocation of create, save and load fails in turn, and over ranks of the rounds. */
static void failing_allocations_leak_nothing(void **state)
{
    const world_plan plans[] = {
        {.agents = 6,
         .rule = "cclip",
         .strategy = "diffusion:order=consensus,momentum=0.5",
         .own_attack = &late,
         .malicious_count = 1,
         .trust = true},
        {.agents = 6,
         .rule = "ref",
         .strategy = "federated:weights=samples",
         .attack = "alie",
         .malicious_count = 1,
         .trust = true},
        {.agents = 6, .rule = "median", .graph = "star", .attack = "alie:knowledge=neighbours", .malicious_count = 1},
        {.agents = 6, .rule = "", .strategy = "rsa_tv", .attack = "sign_flip", .malicious_count = 1},
        {.agents = 6,
         .rule = "cclip",
         .strategy = "diffusion:order=cta,momentum=0.5",
         .own_attack = &late,
         .malicious_count = 1,
         .trust = true,
         .engine = reef_engine_alone()},
        {.agents = 6,
         .rule = "mref",
         .strategy = "federated:mean_delay=1",
         .own_attack = &late,
         .malicious_count = 1,
         .trust = true,
         .engine = reef_engine_alone()},
        {.agents = 6,
         .rule = "",
         .strategy = "rsa:norm=l2",
         .attack = "alie",
         .malicious_count = 1,
         .engine = reef_engine_alone()},
    };
    scratch s;
    char path[SCRATCH_PATH];
    (void)state;
    scratch_open(&s);
    (void)scratch_path(&s, "run", path);
    for (ptrdiff_t i = 0; i < COUNT(plans); i++) {
        int fail_at = 0;
        while (!try_with_failure(plans[i], fail_at, i, path)) {
            fail_at++;
            assert_true(fail_at < 1000);
        }
    }
    scratch_close(&s);
}

/* ---- strategies ---- */

static void specs_read_back(void **state)
{
    static const char *const specs[] = {
        "diffusion:order=cta,mu=0.5,schedule=inverse,decay=7,factor=0.25,every=9,batch=3,momentum=0.125",
        "federated:fraction=0.5,clients=3,available=0.75,dropout=0.125,steps=2,steps_max=4,exchange=model",
        "federated:weights=samples,cap=3,server_step=0.5,server_momentum=0.25,mean_delay=1.5,staleness=4",
        "rsa:lambda=0.25,norm=l2,weight_decay=0.5",
        "rsa_tv:norm=linf",
        "local:mu=0.125",
        "oracle:schedule=piecewise"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        char text[1000];
        char again[1000];
        char cut[8];
        world w;
        world_open(&w, &(world_plan){.strategy = specs[i], .rule = i < 3 ? "mean" : ""});
        size_t length = reef_run_print(w.run, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_int_equal(reef_run_print(w.run, cut, sizeof cut), length);
        assert_int_equal(strlen(cut), sizeof cut - 1);
        assert_int_equal(reef_run_print(w.run, NULL, 0), length);
        world_close(&w);
        world_open(&w, &(world_plan){.strategy = text, .rule = i < 3 ? "mean" : ""});
        (void)reef_run_print(w.run, again, sizeof again);
        assert_string_equal(text, again);
        for (const char *key = strchr(specs[i], ':'); key; key = strchr(key + 1, ',')) {
            char pair[60];
            (void)snprintf(pair, sizeof pair, "%.*s", (int)strcspn(key + 1, ","), key + 1);
            CHECK(strstr(text, pair), "'%s' does not say %s", text, pair);
        }
        world_close(&w);
    }
}

static void catalogue(void **state)
{
    (void)state;
    assert_int_equal(reef_kind_count(NULL, REEF_FAMILY_STRATEGY), 6);
    assert_null(reef_kind_at(NULL, REEF_FAMILY_STRATEGY, -1));
    assert_null(reef_kind_at(NULL, REEF_FAMILY_STRATEGY, reef_kind_count(NULL, REEF_FAMILY_STRATEGY)));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_STRATEGY, "nothing"));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_STRATEGY, NULL));
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_STRATEGY); i++) {
        const reef_kind *kind = reef_kind_at(NULL, REEF_FAMILY_STRATEGY, i);
        assert_ptr_equal(reef_kind_find(NULL, REEF_FAMILY_STRATEGY, kind->name), kind);
        assert_true(kind->summary[0] && kind->citation);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_setups_are_explained),
        cmocka_unit_test(parts_that_do_not_fit),
        cmocka_unit_test(things_that_do_no_harm),
        cmocka_unit_test(rules_without_weights),
        cmocka_unit_test(metrics_say_what_is_missing),
        cmocka_unit_test(failing_allocations_leak_nothing),
        cmocka_unit_test(specs_read_back),
        cmocka_unit_test(catalogue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
