/* Placing liars: numbers, seeds, majorities that are kept, harm that the greedy choice does. */
#include "support/check.h"
#include "support/graphs.h"

#include <string.h>

enum { AGENTS = 60 };

static reef_graph_facts facts_with(const reef_graph *graph, const bool *malicious)
{
    reef_csr csr = reef_graph_csr(graph);
    reef_graph_facts facts;
    assert_int_equal(reef_graph_check(NULL, &csr, malicious, &facts, NULL), REEF_OK);
    return facts;
}

static reef_status place(const reef_graph *graph, reef_placement placement, bool *malicious, ptrdiff_t *placed)
{
    reef_csr csr = reef_graph_csr(graph);
    return reef_graph_place_malicious(NULL, &csr, &placement, malicious, placed, NULL);
}

static void counts(void **state)
{
    static const struct {
        reef_malicious malicious_count;
        ptrdiff_t placed;
    } cases[] = {
        {{REEF_MALICIOUS_COUNT, 0}, 0},       {{REEF_MALICIOUS_COUNT, 7}, 7},
        {{REEF_MALICIOUS_COUNT, 60}, 60},     {{REEF_MALICIOUS_FRACTION, 0.3}, 18},
        {{REEF_MALICIOUS_FRACTION, 0.05}, 3}, {{REEF_MALICIOUS_FRACTION, 0.999}, 59},
    };
    (void)state;
    reef_graph *graph = make_graph("ring:k=2", AGENTS, 0);
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        for (int how = REEF_PLACE_RANDOM; how <= REEF_PLACE_WORST; how++) {
            bool malicious[AGENTS];
            ptrdiff_t placed = -1;
            memset(malicious, true, sizeof malicious);
            assert_int_equal(
                place(graph, (reef_placement){.how = (reef_place)how, .malicious_count = cases[i].malicious_count},
                      malicious, &placed),
                REEF_OK);
            assert_int_equal(placed, cases[i].placed);
            assert_int_equal(facts_with(graph, malicious).malicious_count, placed);
        }
    }
    reef_graph_destroy(&graph);
}

static void seeds(void **state)
{
    bool a[AGENTS];
    bool b[AGENTS];
    bool c[AGENTS];
    ptrdiff_t hits[AGENTS] = {0};
    reef_placement random = {.malicious_count = {REEF_MALICIOUS_COUNT, 15}};
    (void)state;
    reef_graph *graph = make_graph("complete", AGENTS, 0);
    assert_int_equal(place(graph, random, a, NULL), REEF_OK);
    assert_int_equal(place(graph, random, b, NULL), REEF_OK);
    random.seed = 1;
    assert_int_equal(place(graph, random, c, NULL), REEF_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    for (random.seed = 0; random.seed < 2000; random.seed++) {
        assert_int_equal(place(graph, random, a, NULL), REEF_OK);
        for (ptrdiff_t k = 0; k < AGENTS; k++) {
            hits[k] += a[k];
        }
    }
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        CHECK_CLOSE((double)hits[k] / 2000, 0.25, 0.05, "each agent is chosen alike");
    }
    reef_graph_destroy(&graph);
}

/* Majorities hold, and nobody more could have been made a liar. */
static void majorities_are_kept(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        reef_graph *graph = make_graph(graph_specs[i], AGENTS, 2);
        for (int how = REEF_PLACE_RANDOM; how <= REEF_PLACE_WORST; how++) {
            bool malicious[AGENTS];
            ptrdiff_t placed = 0;
            reef_placement most = {
                .how = (reef_place)how, .malicious_count = {REEF_MALICIOUS_MAX, 0}, .keep_majority = true};
            assert_int_equal(place(graph, most, malicious, &placed), REEF_OK);
            CHECK(facts_with(graph, malicious).by_count.holds, "%s: the majority is lost", graph_specs[i]);
            for (ptrdiff_t k = 0; k < AGENTS; k++) {
                if (!malicious[k]) {
                    malicious[k] = true;
                    CHECK(!facts_with(graph, malicious).by_count.holds, "%s: agent %td could lie too", graph_specs[i],
                          k);
                    malicious[k] = false;
                }
            }
            /* exactly so many can be asked for; one more than there are agents cannot */
            most.malicious_count = (reef_malicious){REEF_MALICIOUS_COUNT, (double)placed};
            assert_int_equal(place(graph, most, malicious, &placed), REEF_OK);
            most.malicious_count.value = AGENTS + 1;
            assert_int_equal(place(graph, most, malicious, &placed), REEF_E_MALICIOUS);
        }
        reef_graph_destroy(&graph);
    }
}

static void shortage_is_said(void **state)
{
    bool malicious[AGENTS];
    ptrdiff_t placed = 0;
    reef_error error;
    (void)state;
    reef_graph *graph = make_graph("complete", 11, 0);
    reef_csr csr = reef_graph_csr(graph);
    reef_placement six = {.malicious_count = {REEF_MALICIOUS_COUNT, 6}, .keep_majority = true};
    assert_int_equal(reef_graph_place_malicious(NULL, &csr, &six, malicious, &placed, &error), REEF_E_MALICIOUS);
    assert_int_equal(placed, 5);
    assert_non_null(strstr(error.text, "5 of 6"));
    assert_true(facts_with(graph, malicious).by_count.holds);
    six.malicious_count.kind = REEF_MALICIOUS_MAX;
    six.keep_majority = false;
    assert_int_equal(reef_graph_place_malicious(NULL, &csr, &six, malicious, &placed, &error), REEF_E_ARG);
    reef_graph_destroy(&graph);
}

/* The greedy choice finds the centre of a star, and breaks more neighbourhoods than chance does. */
static void worst_is_worse(void **state)
{
    bool malicious[AGENTS];
    (void)state;
    reef_graph *graph = make_graph("star:centre=17", AGENTS, 0);
    assert_int_equal(place(graph,
                           (reef_placement){.how = REEF_PLACE_WORST, .malicious_count = {REEF_MALICIOUS_COUNT, 1}},
                           malicious, NULL),
                     REEF_OK);
    assert_true(malicious[17]);
    reef_graph_destroy(&graph);
    static const char *const specs[] = {"grid:torus=true", "regular:degree=6", "barabasi_albert", "geometric",
                                        "watts_strogatz"};
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        double chance = 0;
        graph = make_graph(specs[i], AGENTS, 3);
        for (uint64_t seed = 0; seed < 50; seed++) {
            reef_placement random = {.malicious_count = {REEF_MALICIOUS_FRACTION, 0.25}, .seed = seed};
            assert_int_equal(place(graph, random, malicious, NULL), REEF_OK);
            chance += (double)facts_with(graph, malicious).by_count.failing / 50;
        }
        reef_placement worst = {.how = REEF_PLACE_WORST, .malicious_count = {REEF_MALICIOUS_FRACTION, 0.25}};
        assert_int_equal(place(graph, worst, malicious, NULL), REEF_OK);
        double greedy = (double)facts_with(graph, malicious).by_count.failing;
        CHECK(greedy > 1.3 * chance + 1, "%s: greedy breaks %g, chance %g", specs[i], greedy, chance);
        reef_graph_destroy(&graph);
    }
}

static void lists(void **state)
{
    static const int32_t good[] = {3, 0};
    static const int32_t twice[] = {3, 3};
    static const int32_t outside[] = {3, 10};
    static const int32_t many[] = {0, 1, 2, 3, 4};
    bool malicious[10];
    ptrdiff_t placed = 0;
    reef_placement list = {.how = REEF_PLACE_LIST, .list = good, .list_count = 2, .keep_majority = true};
    (void)state;
    reef_graph *graph = make_graph("complete", 10, 0);
    assert_int_equal(place(graph, list, malicious, &placed), REEF_OK);
    assert_true(placed == 2 && malicious[0] && !malicious[1] && !malicious[2] && malicious[3]);
    list.list = twice;
    assert_int_equal(place(graph, list, malicious, &placed), REEF_E_ARG);
    list.list = outside;
    assert_int_equal(place(graph, list, malicious, &placed), REEF_E_ARG);
    list.list = many;
    list.list_count = 4;
    assert_int_equal(place(graph, list, malicious, &placed), REEF_OK);
    list.list_count = 5;
    assert_int_equal(place(graph, list, malicious, &placed), REEF_E_MALICIOUS);
    list.keep_majority = false;
    assert_int_equal(place(graph, list, malicious, &placed), REEF_OK);
    list.list = NULL;
    assert_int_equal(place(graph, list, malicious, &placed), REEF_E_ARG);
    reef_graph_destroy(&graph);
}

/* Who hears a liar matters, not whom it hears. */
static void directed(void **state)
{
    static const int32_t from[] = {0, 0, 0, 4, 4, 4};
    static const int32_t to[] = {1, 2, 3, 3, 2, 1};
    reef_link_list links = {.count = 6, .senders = from, .receivers = to, .directed = true};
    bool malicious[5];
    ptrdiff_t placed = 0;
    reef_graph *graph = NULL;
    (void)state;
    assert_int_equal(reef_graph_create_links(NULL, &graph, 5, &links, NULL), REEF_OK);
    reef_placement most = {.how = REEF_PLACE_WORST, .malicious_count = {REEF_MALICIOUS_MAX, 0}, .keep_majority = true};
    assert_int_equal(place(graph, most, malicious, &placed), REEF_OK);
    /* 1, 2, 3 hear 0, 4 and themselves: one liar each. 0 goes first; then nobody hears 1, 2, 3, and 4 is free after them. */
    assert_true(malicious[0] && placed == 5);
    most.malicious_count = (reef_malicious){REEF_MALICIOUS_COUNT, 1};
    assert_int_equal(place(graph, most, malicious, &placed), REEF_OK);
    assert_true(malicious[0] && placed == 1);
    reef_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),           cmocka_unit_test(seeds),          cmocka_unit_test(majorities_are_kept),
        cmocka_unit_test(shortage_is_said), cmocka_unit_test(worst_is_worse), cmocka_unit_test(lists),
        cmocka_unit_test(directed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
