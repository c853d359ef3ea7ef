/* Checks of networks against brute force over all placements of liars on small graphs. */
#include "support/check.h"
#include "support/graphs.h"

#include <math.h>
#include <string.h>

enum { MOST = 8 };

/* The definitions, written out on a dense matrix. */
typedef struct plain {
    ptrdiff_t n;
    double a[MOST][MOST]; /* a[l][k] */
} plain;

static plain plain_of(const reef_csr *csr)
{
    plain m = {.n = csr->agents};
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
            m.a[csr->senders[i]][k] = csr->weight[i];
        }
    }
    return m;
}

/* share[0] by count, share[1] by weight */
static void shares(const plain *m, const bool *malicious, ptrdiff_t k, double share[2])
{
    double count = 0;
    double honest = 0;
    double mass = 0;
    double honest_mass = 0;
    for (ptrdiff_t l = 0; l < m->n; l++) {
        count += m->a[l][k] > 0;
        mass += m->a[l][k];
        honest += m->a[l][k] > 0 && !malicious[l];
        honest_mass += malicious[l] ? 0 : m->a[l][k];
    }
    share[0] = count > 0 ? honest / count : 1;
    share[1] = mass > 0 ? honest_mass / mass : 1;
}

/* reach[t] bit k of row l: a path of exactly t steps. The subgraph is connected if sums of powers fill up, primitive if one power does. */
static void paths(const plain *m, const bool *malicious, bool *connected, bool *primitive)
{
    unsigned step[MOST] = {0};
    unsigned now[MOST] = {0};
    unsigned any[MOST] = {0};
    unsigned all = 0;
    for (ptrdiff_t l = 0; l < MOST; l++) {
        for (ptrdiff_t k = 0; k < MOST; k++) {
            step[l] |= (unsigned)(m->a[l][k] > 0 && !malicious[l] && !malicious[k]) << k;
        }
        all |= (unsigned)(l < m->n && !malicious[l]) << l;
        now[l] = 1U << l;
        any[l] = now[l];
    }
    *primitive = false;
    for (int t = 0; t < MOST * MOST; t++) {
        bool full = all != 0;
        for (ptrdiff_t l = 0; l < m->n; l++) {
            unsigned next = 0;
            for (ptrdiff_t k = 0; k < m->n; k++) {
                next |= now[l] >> k & 1 ? step[k] : 0;
            }
            now[l] = next;
            any[l] |= next;
            full = full && (malicious[l] || (next & all) == all);
        }
        *primitive = *primitive || full;
    }
    *connected = all != 0;
    for (ptrdiff_t l = 0; l < m->n; l++) {
        *connected = *connected && (malicious[l] || (any[l] & all) == all);
    }
}

static void compare(const reef_csr *csr, const bool *malicious, const char *what)
{
    plain m = plain_of(csr);
    reef_graph_facts facts;
    bool connected = false;
    bool primitive = false;
    double least[2] = {2, 2};
    ptrdiff_t failing[2] = {0, 0};
    assert_int_equal(reef_graph_check(NULL, csr, malicious, &facts, NULL), REEF_OK);
    for (ptrdiff_t k = 0; k < m.n; k++) {
        double share[2];
        shares(&m, malicious, k, share);
        for (int i = 0; i < 2 && !malicious[k]; i++) {
            least[i] = fmin(least[i], share[i]);
            failing[i] += share[i] <= 0.5 + 1e-9;
        }
    }
    paths(&m, malicious, &connected, &primitive);
    const reef_majority *majority[2] = {&facts.by_count, &facts.by_weight};
    for (int i = 0; i < 2; i++) {
        CHECK(majority[i]->failing == failing[i] && majority[i]->holds == (failing[i] == 0), "%s: %td failing, not %td",
              what, majority[i]->failing, failing[i]);
        if (least[i] < 2) {
            double share[2];
            CHECK_CLOSE(majority[i]->share, least[i], 1e-12, what);
            assert_false(malicious[majority[i]->worst]);
            shares(&m, malicious, majority[i]->worst, share);
            CHECK_CLOSE(share[i], least[i], 1e-12, what);
        } else {
            assert_int_equal(majority[i]->worst, -1);
        }
    }
    CHECK(facts.connected == connected, "%s: connected %d, not %d", what, facts.connected, connected);
    CHECK(facts.primitive == primitive, "%s: primitive %d, not %d", what, facts.primitive, primitive);
    /* spare: as many more liars as leave the worst agent a majority */
    assert_true((facts.least_spare >= 0) == facts.by_count.holds);
}

static void all_placements(void **state)
{
    static const char *const specs[] = {"complete",
                                        "ring",
                                        "ring:k=2,loops=false",
                                        "ring:loops=false",
                                        "line",
                                        "line:loops=false",
                                        "star",
                                        "two_cliques",
                                        "erdos_renyi:p=0.3,directed=true,connected=false",
                                        "erdos_renyi:p=0.4,directed=true,connected=false,loops=false",
                                        "erdos_renyi:p=0.2,connected=false,loops=false",
                                        "erdos_renyi:p=0.15,directed=true,connected=false"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        for (ptrdiff_t n = 5; n <= MOST; n++) {
            reef_graph *graph = make_graph(specs[i], n, (uint64_t)n);
            for (int round = 0; round < 2; round++) {
                reef_csr csr = reef_graph_csr(graph);
                for (unsigned set = 0; set < 1U << n; set++) {
                    bool malicious[MOST] = {false};
                    for (ptrdiff_t k = 0; k < n; k++) {
                        malicious[k] = set >> k & 1;
                    }
                    compare(&csr, malicious, specs[i]);
                }
                if (reef_graph_set_weights(graph, "hastings",
                                           &(reef_weight_data){.perron = (double[]){1, 2, 3, 4, 1, 2, 9, 1}},
                                           NULL) != REEF_OK) {
                    break;
                }
            }
            reef_graph_destroy(&graph);
        }
    }
}

/* A link of weight zero is no link. */
static void zero_weights(void **state)
{
    static const double cut[] = {1, 0, 0, 1, 0, 0, 1}; /* the line 0 - 1 - 2, every agent for itself */
    reef_graph_facts facts;
    (void)state;
    reef_graph *graph = make_graph("line", 3, 0);
    assert_int_equal(reef_graph_put_weights(graph, cut, NULL), REEF_OK);
    reef_csr csr = reef_graph_csr(graph);
    assert_int_equal(reef_graph_check(NULL, &csr, NULL, &facts, NULL), REEF_OK);
    assert_true(facts.components == 3 && !facts.connected && !facts.primitive && facts.links == 3);
    assert_true(facts.largest == 1 && facts.smallest == 1 && facts.self_heavy == 3 && facts.self_heavy_first == 0);
    reef_graph_destroy(&graph);
}

static void facts_of_a_star(void **state)
{
    bool malicious[9] = {false};
    reef_graph_facts facts;
    (void)state;
    reef_graph *graph = make_graph("star", 9, 0);
    reef_csr csr = reef_graph_csr(graph);
    assert_int_equal(reef_graph_check(NULL, &csr, NULL, &facts, NULL), REEF_OK);
    assert_true(facts.agents == 9 && facts.links == 9 + 16 && facts.smallest == 2 && facts.largest == 9);
    assert_true(facts.malicious_count == 0 && facts.by_count.holds && facts.primitive && facts.period == 1);
    assert_true(facts.least_spare == 0 && facts.least_spare_agent == 1); /* a leaf of two can bear nobody */
    assert_true(facts.self_heavy == 8 && facts.self_heavy_first == 1 && facts.largest_self == 0.5);
    assert_true(facts.column_error < 1e-15);
    malicious[0] = true;
    assert_int_equal(reef_graph_check(NULL, &csr, malicious, &facts, NULL), REEF_OK);
    assert_true(facts.malicious_count == 1 && facts.by_count.failing == 8 && facts.components == 8 &&
                facts.period == 0);
    assert_true(facts.least_spare == -1);
    assert_int_equal(reef_graph_check(NULL, &csr, malicious, NULL, NULL), REEF_E_ARG);
    assert_int_equal(reef_graph_check(NULL, NULL, malicious, &facts, NULL), REEF_E_ARG);
    reef_graph_destroy(&graph);
    graph = make_graph("grid:rows=3,loops=false", 12, 0);
    csr = reef_graph_csr(graph);
    assert_int_equal(reef_graph_check(NULL, &csr, NULL, &facts, NULL), REEF_OK);
    assert_true(facts.connected && facts.period == 2 && !facts.primitive); /* a chess board */
    reef_graph_destroy(&graph);
}

/* What an agent can bear: all sets of others, tried. */
static void tolerated(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        int32_t by_count[12];
        int32_t by_weight[12];
        reef_graph *graph = make_graph(graph_specs[i], 12, 8);
        assert_int_equal(reef_graph_set_weights(graph, "relative_degree", NULL, NULL), REEF_OK);
        reef_csr csr = reef_graph_csr(graph);
        assert_int_equal(reef_graph_tolerated(NULL, &csr, by_count, by_weight, NULL), REEF_OK);
        for (ptrdiff_t k = 0; k < 12; k++) {
            ptrdiff_t n = csr.start[k + 1] - csr.start[k];
            ptrdiff_t borne = n; /* smallest set of others with half of the weight or more, less one */
            ptrdiff_t others = 0;
            for (unsigned set = 0; set < 1U << n; set++) {
                double mass = 0;
                ptrdiff_t size = 0;
                bool own = false;
                for (ptrdiff_t j = 0; j < n; j++) {
                    bool in = set >> j & 1;
                    mass += in ? csr.weight[csr.start[k] + j] : 0;
                    size += in;
                    own = own || (in && csr.senders[csr.start[k] + j] == k);
                }
                if (!own && mass >= 0.5 - 1e-9 && size - 1 < borne) {
                    borne = size - 1;
                }
                others = !own && size > others ? size : others;
            }
            borne = borne < others ? borne : others;
            CHECK(by_weight[k] == borne, "%s: agent %td bears %d by weight, not %td", graph_specs[i], k,
                  (int)by_weight[k], borne);
            /* by count: one more is half or more of the senders */
            CHECK(2 * by_count[k] < n && 2 * (by_count[k] + 1) >= n, "%s: agent %td bears %d of %td", graph_specs[i], k,
                  (int)by_count[k], n);
        }
        reef_graph_destroy(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_placements),
        cmocka_unit_test(zero_weights),
        cmocka_unit_test(facts_of_a_star),
        cmocka_unit_test(tolerated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
