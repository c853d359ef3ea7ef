/* Links that change: rates, symmetry, order of asking, weights that sum to one. */
#include "support/check.h"
#include "support/graphs.h"

#include <math.h>
#include <string.h>

enum { AGENTS = 24 };

static reef_links *make_links(const char *spec, const reef_graph *const *graphs, ptrdiff_t count, uint64_t seed)
{
    reef_links *links = NULL;
    reef_error error = {REEF_OK, ""};
    reef_status status = reef_links_create(NULL, &links, spec, graphs, count, seed, &error);
    CHECK(status == REEF_OK, "%s: %s", spec, error.text);
    return links;
}

/* Live senders as bits, weights as a dense column. */
static uint32_t ask(const reef_links *links, int64_t round, ptrdiff_t receiver, double column[AGENTS])
{
    int32_t senders[AGENTS];
    double weight[AGENTS];
    uint32_t live = 0;
    double sum = 0;
    ptrdiff_t count = reef_links_eval(links, round, receiver, senders, weight);
    assert_true(count <= reef_links_largest(links));
    memset(column, 0, AGENTS * sizeof *column);
    for (ptrdiff_t i = 0; i < count; i++) {
        assert_true(i == 0 || senders[i - 1] < senders[i]);
        live |= UINT32_C(1) << senders[i];
        column[senders[i]] = weight[i];
        sum += weight[i];
    }
    if (count > 0) {
        CHECK_CLOSE(sum, 1, 1e-14, "sum of weights");
    }
    return live;
}

static void static_links(void **state)
{
    double column[AGENTS];
    (void)state;
    const reef_graph *graph = make_graph("ring:k=2", AGENTS, 0);
    reef_links *links = make_links("static", &graph, 1, 0);
    assert_true(reef_links_always_up(links));
    assert_ptr_equal(reef_links_graph(links, 99), graph);
    for (int64_t round = 0; round < 5; round++) {
        assert_int_equal(ask(links, round, 5, column), 0x1F << 3);
        assert_true(column[3] == 0.2);
    }
    reef_links_destroy(&links);
    assert_null(links);
    reef_graph_destroy((reef_graph **)&graph);
}

static void failing_links(void **state)
{
    enum { ROUNDS = 400 };
    static const char *const specs[] = {"failing:p=0.3", "failing:p=0.3,symmetric=false", "failing:p=0.3,lost=self"};
    (void)state;
    const reef_graph *graph = make_graph("regular:degree=6", AGENTS, 0);
    reef_csr csr = reef_graph_csr(graph);
    assert_int_equal(reef_graph_set_weights((reef_graph *)graph, "metropolis", NULL, NULL), REEF_OK);
    csr = reef_graph_csr(graph);
    for (ptrdiff_t s = 0; s < COUNT(specs); s++) {
        reef_links *links = make_links(specs[s], &graph, 1, 77);
        double up = 0;
        double together = 0;
        assert_false(reef_links_always_up(links));
        for (int64_t round = 0; round < ROUNDS; round++) {
            uint32_t live[AGENTS];
            double row[AGENTS] = {0};
            for (ptrdiff_t k = 0; k < AGENTS; k++) {
                double column[AGENTS];
                live[k] = ask(links, round, k, column);
                assert_true(live[k] >> k & 1); /* a loop never fails */
                for (ptrdiff_t l = 0; l < AGENTS; l++) {
                    row[l] += column[l];
                }
            }
            for (ptrdiff_t k = 0; k < AGENTS; k++) {
                for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
                    ptrdiff_t l = csr.senders[i];
                    up += l != k && (live[k] >> l & 1);
                    together += l != k && (live[k] >> l & 1) == (live[l] >> k & 1);
                }
                if (s == 2) {
                    CHECK_CLOSE(row[k], 1, 1e-13, "lost=self keeps doubly stochastic weights");
                }
            }
        }
        double asked = 6.0 * AGENTS * ROUNDS;
        CHECK_CLOSE(up / asked, 0.7, 0.01, specs[s]);
        CHECK_CLOSE(together / asked, s == 1 ? 0.7 * 0.7 + 0.3 * 0.3 : 1, s == 1 ? 0.01 : 0, specs[s]);
        reef_links_destroy(&links);
    }
    reef_graph_destroy((reef_graph **)&graph);
}

/* Any order of asking, another object, rounds beyond 32 bits: the same answer; other seeds and rounds: another. */
static void answers_do_not_depend_on_order(void **state)
{
    double column[AGENTS];
    uint32_t forth[50];
    uint32_t other[50];
    (void)state;
    const reef_graph *graph = make_graph("complete", AGENTS, 0);
    static const char *const specs[] = {"failing:p=0.5", "gossip:keep=5"};
    for (ptrdiff_t s = 0; s < COUNT(specs); s++) {
        reef_links *a = make_links(specs[s], &graph, 1, 5);
        reef_links *b = make_links(specs[s], &graph, 1, 5);
        reef_links *c = make_links(specs[s], &graph, 1, 6);
        ptrdiff_t same_seed = 0;
        ptrdiff_t same_high = 0;
        for (int64_t round = 0; round < 50; round++) {
            forth[round] = ask(a, round, 3, column);
            other[round] = ask(c, round, 3, column);
            same_seed += forth[round] == other[round];
            same_high += forth[round] == ask(a, round + (INT64_C(1) << 32), 3, column);
        }
        for (int64_t round = 49; round >= 0; round--) {
            assert_int_equal(ask(b, round, 3, column), forth[round]);
            assert_true(round == 0 || forth[round] != forth[round - 1]);
        }
        assert_true(same_seed <= 2 && same_high <= 2);
        reef_links_destroy(&a);
        reef_links_destroy(&b);
        reef_links_destroy(&c);
    }
    reef_graph_destroy((reef_graph **)&graph);
}

static void gossip_keeps_a_few(void **state)
{
    enum { ROUNDS = 3000 };
    double column[AGENTS];
    ptrdiff_t heard[AGENTS] = {0};
    (void)state;
    const reef_graph *graph = make_graph("complete", AGENTS, 0);
    reef_links *links = make_links("gossip:keep=4", &graph, 1, 5);
    for (int64_t round = 0; round < ROUNDS; round++) {
        uint32_t live = ask(links, round, 7, column);
        ptrdiff_t count = 0;
        for (ptrdiff_t l = 0; l < AGENTS; l++) {
            count += live >> l & 1;
            heard[l] += live >> l & 1;
        }
        assert_int_equal(count, 5);
    }
    for (ptrdiff_t l = 0; l < AGENTS; l++) {
        CHECK_CLOSE((double)heard[l] / ROUNDS, l == 7 ? 1 : 4.0 / 23, l == 7 ? 0 : 0.035, "gossip");
    }
    reef_links_destroy(&links);
    links = make_links("gossip:keep=100", &graph, 1, 5); /* more than there are: all */
    assert_int_equal(ask(links, 0, 7, column), 0xFFFFFF);
    reef_links_destroy(&links);
    links = make_links("gossip:keep=0", &graph, 1, 5); /* alone */
    assert_int_equal(ask(links, 0, 7, column), 1 << 7);
    assert_true(column[7] == 1);
    reef_links_destroy(&links);
    reef_graph_destroy((reef_graph **)&graph);
}

static void graphs_take_turns(void **state)
{
    double column[AGENTS];
    (void)state;
    const reef_graph *graphs[] = {make_graph("ring", AGENTS, 0), make_graph("star", AGENTS, 0),
                                  make_graph("complete", AGENTS, 0)};
    reef_links *links = make_links("static:every=2", graphs, 3, 0);
    assert_int_equal(reef_links_largest(links), AGENTS);
    for (int64_t round = 0; round < 24; round++) {
        assert_ptr_equal(reef_links_graph(links, round), graphs[round / 2 % 3]);
        (void)ask(links, round, 2, column);
    }
    assert_int_equal(ask(links, 0, 2, column), 0xE);
    assert_int_equal(ask(links, 2, 2, column), 0x5);
    reef_links_destroy(&links);
    ptrdiff_t hits[3] = {0};
    links = make_links("failing:order=random,p=0", graphs, 3, 9);
    for (int64_t round = 0; round < 3000; round++) {
        for (ptrdiff_t i = 0; i < 3; i++) {
            hits[i] += reef_links_graph(links, round) == graphs[i];
        }
    }
    for (ptrdiff_t i = 0; i < 3; i++) {
        CHECK_CLOSE((double)hits[i] / 3000, 1.0 / 3, 0.05, "random order");
    }
    reef_links_destroy(&links);
    for (ptrdiff_t i = 0; i < 3; i++) {
        reef_graph_destroy((reef_graph **)&graphs[i]);
    }
}

static void nobody_left(void **state)
{
    double column[AGENTS];
    (void)state;
    const reef_graph *graph = make_graph("ring:loops=false", AGENTS, 0);
    reef_links *links = make_links("failing:p=1", &graph, 1, 0);
    assert_int_equal(ask(links, 0, 3, column), 0);
    reef_links_destroy(&links);
    reef_graph_destroy((reef_graph **)&graph);
}

static void refusals(void **state)
{
    static const struct {
        const char *spec;
        reef_status status;
        const char *says;
    } cases[] = {
        {"failing:p=2", REEF_E_RANGE, "from 0 to 1"},        {"fail", REEF_E_NAME, "kind of links 'fail'"},
        {"failling", REEF_E_NAME, "did you mean 'failing'"}, {"static:every=0", REEF_E_RANGE, "every"},
        {"static:order=odd", REEF_E_RANGE, "turn|random"},
    };
    reef_links *links = NULL;
    reef_error error;
    (void)state;
    const reef_graph *graphs[] = {make_graph("ring", 10, 0), make_graph("ring", 11, 0)};
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(reef_links_create(NULL, &links, cases[i].spec, graphs, 1, 0, &error), cases[i].status);
        CHECK(strstr(error.text, cases[i].says), "%s: '%s' does not say '%s'", cases[i].spec, error.text,
              cases[i].says);
        assert_null(links);
    }
    assert_int_equal(reef_links_create(NULL, &links, "static", graphs, 2, 0, &error), REEF_E_ARG);
    assert_non_null(strstr(error.text, "graph 1"));
    assert_int_equal(reef_links_create(NULL, &links, "static", graphs, 0, 0, &error), REEF_E_ARG);
    assert_int_equal(reef_kind_count(NULL, REEF_FAMILY_LINKS), 3);
    assert_null(reef_kind_at(NULL, REEF_FAMILY_LINKS, 3));
    assert_ptr_equal(reef_kind_find(NULL, REEF_FAMILY_LINKS, "gossip"), reef_kind_at(NULL, REEF_FAMILY_LINKS, 2));
    ptrdiff_t count = 0;
    assert_string_equal(reef_kind_common(REEF_FAMILY_LINKS, reef_kind_at(NULL, REEF_FAMILY_LINKS, 0), &count)[0].name,
                        "every");
    assert_int_equal(count, 3);
    reef_links_destroy(NULL);
    reef_graph_destroy((reef_graph **)&graphs[0]);
    reef_graph_destroy((reef_graph **)&graphs[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(static_links),
        cmocka_unit_test(failing_links),
        cmocka_unit_test(answers_do_not_depend_on_order),
        cmocka_unit_test(gossip_keeps_a_few),
        cmocka_unit_test(graphs_take_turns),
        cmocka_unit_test(nobody_left),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
