/* Objects that cells share: each is made once, kept while it is used, and not without end after that. */
#include "experiment/config/stock.h"
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "agents: 12\n"
                           "graph: ring\n"
                           "weights: metropolis\n"
                           "problem: lms\n"
                           "rule: [ref, mean]\n"
                           "attack: {kind: additive, delta: [1, 2, 3]}\n"
                           "malicious: 2\n"
                           "trust: true\n"
                           "seed: [1, 2]\n"
                           "rounds: 20\n"
                           "repetitions: 2\n";

/* 12 cells, of which 6 share a seed: two of each shared object, however many threads and files there are. */
static void a_run_makes_each_object_once(void **state)
{
    enum { SHARED = 5 }; /* graph, graph with weights, problem, links, placement */
    scratch s;
    reef_context *context = NULL;
    reef_experiment *e = NULL;
    reef_error error = {REEF_OK, ""};
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_open(&s);
    assert_int_equal(reef_context_create(&context, NULL, &error), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, 3, &error), REEF_OK);
    reef_status status = reef_experiment_read(context, &e, text, strlen(text), "t.yaml", NULL, 0, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    assert_int_equal(reef_experiment_cells(e), 12);
    assert_int_equal(rfi_stock_made(e->stock), 2 * SHARED);
    const reef_experiment_options options = {.folder = scratch_path(&s, "results", folder)};
    status = reef_experiment_run(e, &options, NULL, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    assert_int_equal(rfi_stock_made(e->stock), 2 * SHARED);
    reef_experiment_destroy(&e);
    reef_context_destroy(&context);
    char command[2 * SCRATCH_PATH];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of our own */
    scratch_close(&s);
}

static void take(rfi_stock *stock, rfi_need need, const rfi_shared **shared)
{
    reef_error error = {REEF_OK, ""};
    reef_status status = rfi_stock_take(stock, &need, shared, &error);
    CHECK(status == REEF_OK && *shared, "%s: %s", need.spec, error.text);
}

static void same_needs_share_others_do_not(void **state)
{
    rfi_stock *stock = rfi_stock_create(NULL);
    const rfi_need plain = {.part = RFI_PART_GRAPH, .spec = "ring", .agents = 9, .seed = 1};
    const rfi_shared *first = NULL;
    const rfi_shared *other = NULL;
    (void)state;
    take(stock, plain, &first);
    take(stock, plain, &other);
    assert_ptr_equal(first, other);
    rfi_stock_give(stock, other);
    rfi_need changed[4] = {plain, plain, plain, plain};
    changed[0].spec = "complete";
    changed[1].agents = 10;
    changed[2].seed = 2;
    changed[3] = (rfi_need){.part = RFI_PART_PROBLEM, .spec = "lms", .agents = 9, .seed = 1};
    for (ptrdiff_t i = 0; i < COUNT(changed); i++) {
        take(stock, changed[i], &other);
        assert_ptr_not_equal(first, other);
        rfi_stock_give(stock, other);
    }
    assert_int_equal(rfi_stock_made(stock), 5);
    rfi_stock_give(stock, first);
    rfi_stock_destroy(&stock);
}

/* More idle objects than there may be: what is in use stays, and so does what it rests on. */
static void idle_ones_go_those_in_use_stay(void **state)
{
    rfi_stock *stock = rfi_stock_create(NULL);
    rfi_need need = {.part = RFI_PART_GRAPH, .spec = "ring", .agents = 5, .seed = 0};
    const rfi_shared *graph = NULL;
    const rfi_shared *links = NULL;
    const rfi_shared *other = NULL;
    (void)state;
    take(stock, need, &graph);
    take(stock, (rfi_need){.part = RFI_PART_LINKS, .spec = "static", .agents = 5, .graph = graph}, &links);
    rfi_stock_give(stock, graph);
    for (need.seed = 1; need.seed <= RFI_IDLE_COUNT + 10; need.seed++) {
        take(stock, need, &other);
        rfi_stock_give(stock, other);
    }
    ptrdiff_t made = rfi_stock_made(stock);
    need.seed = 0;
    take(stock, need, &other);
    assert_ptr_equal(other, graph);
    assert_int_equal(rfi_stock_made(stock), made);
    assert_ptr_equal(reef_links_graph(links->links, 0), graph->graph);
    rfi_stock_give(stock, other);
    need.seed = 1; /* used longest ago */
    take(stock, need, &other);
    assert_int_equal(rfi_stock_made(stock), made + 1);
    rfi_stock_give(stock, other);
    rfi_stock_give(stock, links);
    rfi_stock_destroy(&stock);
}

static void failures_leave_nothing(void **state)
{
    alloc_log log;
    reef_error error;
    const rfi_shared *shared = NULL;
    (void)state;
    reef_context *context = alloc_context(&log, 1);
    int before = atomic_load(&log.live);
    rfi_stock *stock = rfi_stock_create(context);
    const rfi_need wrong = {.part = RFI_PART_GRAPH, .spec = "rinng", .agents = 5};
    const rfi_need rootless = {.part = RFI_PART_LINKS, .spec = "static", .agents = 5};
    assert_int_equal(rfi_stock_take(stock, &wrong, &shared, &error), REEF_E_NAME);
    assert_null(shared);
    assert_int_equal(rfi_stock_take(stock, &rootless, &shared, &error), REEF_E_ARG);
    const rfi_need good = {.part = RFI_PART_PROBLEM, .spec = "lms", .agents = 5};
    for (int i = 0; !shared; i++) {
        atomic_store(&log.total, 0);
        log.fail_at = i;
        reef_status status = rfi_stock_take(stock, &good, &shared, &error);
        assert_int_equal(status, shared ? REEF_OK : REEF_E_NOMEM);
    }
    rfi_stock_give(stock, shared);
    rfi_stock_destroy(&stock);
    assert_int_equal(atomic_load(&log.live), before);
    reef_context_destroy(&context);
    assert_false(atomic_load(&log.broken));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_makes_each_object_once),
        cmocka_unit_test(same_needs_share_others_do_not),
        cmocka_unit_test(idle_ones_go_those_in_use_stay),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
