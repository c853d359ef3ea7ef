/* Memory: each allocation in turn fails and nothing leaks; a million agents fit. */
#include "support/alloc.h"
#include "support/check.h"
#include "support/graphs.h"

#include <stdio.h>
#include <stdlib.h>

static alloc_log events;

/* Everything a user may do with one graph; the first failure is returned. */
static reef_status use(reef_context *context, const char *spec, const char *weights)
{
    enum { AGENTS = 24 };
    static const double data[AGENTS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6};
    bool malicious[AGENTS];
    int32_t bears[AGENTS];
    int32_t senders[AGENTS];
    double weight[AGENTS];
    reef_graph_facts facts;
    reef_spectrum spectrum;
    reef_graph *graph = NULL;
    reef_links *links = NULL;
    reef_weight_data values = {.variance = data, .perron = data};
    reef_placement placement = {.how = REEF_PLACE_WORST, .malicious_count = {REEF_MALICIOUS_COUNT, 1}};
    reef_status status = reef_graph_create(context, &graph, spec, AGENTS, 1, NULL);
    if (status != REEF_OK) {
        assert_null(graph);
        return status;
    }
    reef_csr csr = reef_graph_csr(graph);
    const double *old = csr.weight;
    status = reef_graph_set_weights(graph, weights, &values, NULL);
    csr = reef_graph_csr(graph);
    assert_true(status == REEF_OK || csr.weight == old);
    if (status == REEF_OK) {
        status = reef_graph_check(context, &csr, NULL, &facts, NULL);
    }
    if (status == REEF_OK) {
        status = reef_graph_tolerated(context, &csr, NULL, bears, NULL);
    }
    if (status == REEF_OK) {
        status = reef_graph_place_malicious(context, &csr, &placement, malicious, NULL, NULL);
    }
    if (status == REEF_OK) {
        status = reef_graph_spectrum(context, &csr, NULL, NULL, weight, &spectrum, NULL);
    }
    if (status == REEF_OK) {
        status = reef_links_create(context, &links, "failing", &(const reef_graph *){graph}, 1, 0, NULL);
    }
    if (status == REEF_OK) {
        int total = atomic_load(&events.total);
        (void)reef_links_eval(links, 3, 5, senders, weight);
        assert_int_equal(atomic_load(&events.total), total); /* rounds allocate nothing */
    }
    reef_links_destroy(&links);
    reef_graph_destroy(&graph);
    return status;
}

static void each_allocation_fails(void **state)
{
    static const struct {
        const char *graph, *weights;
    } cases[] = {
        {"complete", "metropolis"},
        {"ring:k=2", "laplacian"},
        {"grid", "relative_degree"},
        {"two_cliques", "uniform"},
        {"erdos_renyi:p=0.6,directed=true", "relative_variance"},
        {"geometric", "hastings"},
        {"regular:degree=20", "max_degree"},
        {"regular", "hastings"},
        {"watts_strogatz", "metropolis"},
        {"barabasi_albert", "metropolis"},
    };
    (void)state;
    reef_context *context = alloc_context(&events, 1);
    int live = atomic_load(&events.live);
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        int at = 0;
        for (reef_status status = REEF_E_NOMEM; status != REEF_OK; at++) {
            events.fail_at = atomic_load(&events.total) + at;
            status = use(context, cases[i].graph, cases[i].weights);
            CHECK(status == REEF_OK || status == REEF_E_NOMEM, "%s: status %d", cases[i].graph, (int)status);
            assert_int_equal(atomic_load(&events.live), live);
        }
        events.fail_at = -1;
        CHECK(at > 12, "%s: only %d allocations", cases[i].graph, at);
    }
    reef_context_destroy(&context);
    assert_int_equal(atomic_load(&events.live), 0);
    assert_false(atomic_load(&events.broken));
}

static void reading_fails(void **state)
{
    char path[256];
    char graph_spec[400];
    char weight_spec[400];
    (void)state;
    write_temporary("0 0 .5\n1 0 .5\n0 1 .5\n1 1 .5", path);
    (void)snprintf(graph_spec, sizeof graph_spec, "file:path=%s,directed=true", path);
    (void)snprintf(weight_spec, sizeof weight_spec, "file:directed=true,path=%s", path);
    reef_context *context = alloc_context(&events, 1);
    int live = atomic_load(&events.live);
    reef_status status = REEF_E_NOMEM;
    for (int at = 0; status != REEF_OK; at++) {
        reef_graph *graph = NULL;
        events.fail_at = atomic_load(&events.total) + at;
        status = reef_graph_create(context, &graph, graph_spec, 0, 0, NULL);
        if (status == REEF_OK) {
            status = reef_graph_set_weights(graph, weight_spec, NULL, NULL);
        }
        assert_true(status == REEF_OK || status == REEF_E_NOMEM);
        reef_graph_destroy(&graph);
        assert_int_equal(atomic_load(&events.live), live);
    }
    assert_int_equal(remove(path), 0);
    reef_context_destroy(&context);
    assert_int_equal(atomic_load(&events.live), 0);
}

/* A million agents of degree 8: the graph takes 12 bytes per link and 8 per agent, and making it at most twice that. */
static void a_million_agents(void **state)
{
    static const char *const specs[] = {"regular:degree=8",
                                        "erdos_renyi:p=8e-6,connected=false",
                                        "geometric:radius=0.0016,connected=false",
                                        "watts_strogatz:k=8,p=0.1",
                                        "barabasi_albert:m=4",
                                        "ring:k=4",
                                        "grid:torus=true"};
    ptrdiff_t agents = MONTE_CARLO(1000000, 20000);
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        reef_context *context = alloc_context(&events, 1);
        reef_graph *graph = NULL;
        reef_error error = {REEF_OK, ""};
        reef_status status = reef_graph_create(context, &graph, specs[i], agents, 1, &error);
        CHECK(status == REEF_OK, "%s: %s", specs[i], error.text);
        double own = 12 * (double)reef_graph_links(graph) + 8 * (double)agents;
        double held = (double)atomic_load(&events.held);
        double peak = (double)atomic_load(&events.peak);
        CHECK(held < 1.02 * own + 1e4, "%s: %.1f MB for a graph of %.1f MB", specs[i], held / 1e6, own / 1e6);
        CHECK(peak < 2 * own + 3e6, "%s: peak of %.1f MB for a graph of %.1f MB", specs[i], peak / 1e6, own / 1e6);
        if (i == 0) {
            assert_int_equal(reef_graph_links(graph), 9 * agents);
            assert_int_equal(reef_graph_largest(graph), 9);
        }
        reef_graph_destroy(&graph);
        reef_context_destroy(&context);
        assert_int_equal(atomic_load(&events.live), 0);
    }
}

/* What costs more than a few passes over the links, on fewer of them. */
static void many_agents_checked(void **state)
{
    ptrdiff_t agents = MONTE_CARLO(100000, 5000);
    reef_graph *graph = make_graph("regular:degree=8", agents, 3);
    reef_csr csr = reef_graph_csr(graph);
    bool *malicious = malloc((size_t)agents * sizeof *malicious);
    double *p = malloc((size_t)agents * sizeof *p);
    reef_graph_facts facts;
    reef_spectrum spectrum;
    ptrdiff_t placed = 0;
    (void)state;
    assert_true(malicious && p);
    reef_placement placement = {
        .how = REEF_PLACE_WORST, .malicious_count = {REEF_MALICIOUS_FRACTION, 0.1}, .keep_majority = true};
    assert_int_equal(reef_graph_place_malicious(NULL, &csr, &placement, malicious, &placed, NULL), REEF_OK);
    assert_int_equal(placed, agents / 10);
    assert_int_equal(reef_graph_check(NULL, &csr, malicious, &facts, NULL), REEF_OK);
    assert_true(facts.by_count.holds && facts.malicious_count == placed && facts.least_spare == 0);
    reef_spectrum_options options = {.tolerance = 1e-3};
    assert_int_equal(reef_graph_spectrum(NULL, &csr, NULL, &options, p, &spectrum, NULL), REEF_OK);
    assert_true(spectrum.converged && spectrum.second_converged);
    /* random 8-regular graphs: adjacency second near 2 sqrt(7); with the loop (1 + 2 sqrt 7) / 9 */
    CHECK_CLOSE(spectrum.second, 0.69906, 0.005, "second eigenvalue");
    CHECK_CLOSE(p[agents - 1] * (double)agents, 1, 1e-9, "equal shares");
    free(malicious);
    free(p);
    reef_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_fails),
        cmocka_unit_test(reading_fails),
        cmocka_unit_test(a_million_agents),
        cmocka_unit_test(many_agents_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
