/* A server with 10 000 clients, of which 300 report in each round: mref finds the liars among them, in the memory that its page states. */
#include "support/check.h"
#include "support/runs.h"

enum { CLIENTS = 10000, MALICIOUS = 2500, NUMBERS = 100 };

static void memory_is_as_stated(void **state)
{
    const ptrdiff_t length = NUMBERS;
    const reef_shape shape = {.rows = CLIENTS, .segments = 1, .lengths = &length, .dtype = REEF_F32, .workers = 1};
    reef_agg *agg = NULL;
    reef_state *memory = NULL;
    size_t plan = 0;
    (void)state;
    assert_int_equal(reef_agg_create(NULL, &agg, "mref:sketch=64", NULL), REEF_OK);
    assert_int_equal(reef_state_create(&memory, agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_plan_size(agg, &shape, &plan, NULL), REEF_OK);
    double per_client = (double)reef_state_room(memory, CLIENTS) / CLIENTS;
    print_message("state: %.0f bytes per client; plan for all at once: %.0f MB\n", per_client, (double)plan / 1e6);
    /* averages, record, and the pairs of the first 4096 */
    CHECK(per_client <= 768 + 224 + 843 + 1, "%g bytes per client", per_client);
    CHECK(plan < (size_t)100000000, "a plan of %zu bytes", plan);
    reef_state_destroy(&memory);
    reef_agg_destroy(&agg);
}

static void clients_who_come_and_go_are_remembered(void **state)
{
    enum { ROUNDS = MONTE_CARLO(240, 6) };
    world w;
    reef_trust_facts facts = {0, 0, 0};
    (void)state;
    world_open(&w, &(world_plan){.agents = CLIENTS,
                                 .problem = "lms:dimension=100,noise=0.01",
                                 .problem_seed = 1,
                                 .strategy = "federated:clients=300,mu=0.02,batch=4",
                                 .rule = "mref:sketch=64",
                                 .attack = "alie:sign=minus,z=1",
                                 .malicious_count = MALICIOUS,
                                 .seed = 7,
                                 .trust = true});
    world_step(&w, ROUNDS);
    assert_int_equal(reef_run_trust_facts(w.run, &facts, NULL), REEF_OK);
    print_message("after %d rounds: trust of honest clients %.2f, of liars %.2f, auc %.3f\n", ROUNDS, facts.honest,
                  facts.malicious_count, facts.auc);
    if (ROUNDS > 100) {
        CHECK(facts.malicious_count < 0.3, "liars have a trust of %g", facts.malicious_count);
        CHECK(facts.honest > 1.2, "honest clients have a trust of %g", facts.honest);
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_as_stated),
        cmocka_unit_test(clients_who_come_and_go_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
