/* Every kind of graph: form, degrees and numbers of links by formula, connectedness, seeds, specs that read back, messages. */
#include "support/check.h"
#include "support/graphs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Senders of k beside itself. */
static ptrdiff_t degree(const reef_graph *graph, ptrdiff_t k)
{
    reef_csr csr = reef_graph_csr(graph);
    return csr.start[k + 1] - csr.start[k] - (reef_csr_find(&csr, k, k) >= 0);
}

static void forms(void **state)
{
    static const ptrdiff_t sizes[] = {12, 24, 60};
    (void)state;
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        for (ptrdiff_t j = 0; j < COUNT(sizes); j++) {
            reef_graph *graph = make_graph(graph_specs[i], sizes[j], 7);
            reef_csr csr = reef_graph_csr(graph);
            check_graph_form(graph, graph_specs[i]);
            assert_int_equal(reef_graph_agents(graph), sizes[j]);
            if (!strstr(graph_specs[i], "directed=true")) {
                check_graph_both_ways(graph, graph_specs[i]);
            }
            if (!strstr(graph_specs[i], "connected=false")) {
                CHECK(is_strongly_connected(graph), "%s with %td agents is not connected", graph_specs[i], sizes[j]);
            }
            for (ptrdiff_t k = 0; k < sizes[j]; k++) {
                CHECK(reef_csr_find(&csr, k, k) >= 0, "%s: agent %td does not hear itself", graph_specs[i], k);
            }
            reef_graph_destroy(&graph);
            assert_null(graph);
        }
    }
}

static void loops_can_be_left_out(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        char spec[200];
        (void)snprintf(spec, sizeof spec, "%s%cloops=false", graph_specs[i], strchr(graph_specs[i], ':') ? ',' : ':');
        reef_graph *with = make_graph(graph_specs[i], 24, 3);
        reef_graph *without = make_graph(spec, 24, 3);
        check_graph_form(without, spec);
        assert_int_equal(reef_graph_links(with), reef_graph_links(without) + 24);
        for (ptrdiff_t k = 0; k < 24; k++) {
            reef_csr csr = reef_graph_csr(without);
            assert_int_equal(reef_csr_find(&csr, k, k), -1);
            assert_int_equal(degree(with, k), degree(without, k));
        }
        reef_graph_destroy(&with);
        reef_graph_destroy(&without);
    }
}

static void expect(const char *spec, ptrdiff_t agents, ptrdiff_t both_ways)
{
    reef_graph *graph = make_graph(spec, agents, 1);
    CHECK(reef_graph_links(graph) == agents + 2 * both_ways, "%s with %td agents has %td links, not %td", spec, agents,
          (reef_graph_links(graph) - agents) / 2, both_ways);
    reef_graph_destroy(&graph);
}

static void numbers_of_links(void **state)
{
    (void)state;
    for (ptrdiff_t n = 13; n <= 41; n += 7) {
        expect("complete", n, n * (n - 1) / 2);
        expect("ring", n, n);
        expect("ring:k=5", n, 5 * n);
        expect("line", n, n - 1);
        expect("star", n, n - 1);
        expect("erdos_renyi:p=1", n, n * (n - 1) / 2);
        expect("erdos_renyi:p=0,connected=false", n, 0);
        expect("erdos_renyi:p=1,directed=true", n, n * (n - 1) / 2);
        expect("geometric:radius=2", n, n * (n - 1) / 2);
        expect("geometric:radius=0,connected=false", n, 0);
        expect("watts_strogatz:k=4,p=0.3", n, 2 * n);
        expect("barabasi_albert:m=3", n, 6 + (n - 4) * 3);
        expect("two_cliques:bridges=2", n, (n + 1) / 2 * ((n + 1) / 2 - 1) / 2 + n / 2 * (n / 2 - 1) / 2 + 2);
    }
    expect("ring:k=6", 12, 66); /* complete: the sixth neighbour is met from both sides */
    expect("grid:rows=4", 20, 4 * 4 + 3 * 5);
    expect("grid:rows=4,torus=true", 20, 2 * 20);
    expect("grid:rows=2,torus=true", 20, 20 + 10); /* rows of 10 close up, columns of 2 have nothing to close */
    expect("grid", 36, 60);
    expect("grid", 37, 36);                   /* a prime: one row */
    expect("grid:rows=1,torus=true", 12, 12); /* a ring */
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        if (strncmp(graph_specs[i], "complete", 8) == 0 || strncmp(graph_specs[i], "line", 4) == 0) {
            expect(graph_specs[i], 1, 0); /* one agent alone */
        }
    }
    expect("ring", 1, 0);
    expect("ring", 2, 1);
    expect("erdos_renyi", 1, 0);
    expect("geometric", 2, 1);
}

static void degrees(void **state)
{
    (void)state;
    reef_graph *graph = make_graph("star:centre=4", 9, 0);
    for (ptrdiff_t k = 0; k < 9; k++) {
        assert_int_equal(degree(graph, k), k == 4 ? 8 : 1);
    }
    reef_graph_destroy(&graph);
    graph = make_graph("grid:rows=3,torus=true", 15, 0);
    for (ptrdiff_t k = 0; k < 15; k++) {
        assert_int_equal(degree(graph, k), 4);
    }
    reef_graph_destroy(&graph);
    graph = make_graph("barabasi_albert:m=4", 200, 5);
    ptrdiff_t most = 0;
    for (ptrdiff_t k = 0; k < 200; k++) {
        assert_true(degree(graph, k) >= 4);
        most = degree(graph, k) > most ? degree(graph, k) : most;
    }
    assert_true(most > 20); /* hubs: the mean is 8 */
    reef_graph_destroy(&graph);
    graph = make_graph("watts_strogatz:k=6,p=0", 30, 5);
    reef_graph *ring = make_graph("ring:k=3", 30, 0);
    assert_true(same_links(graph, ring));
    reef_graph_destroy(&graph);
    reef_graph_destroy(&ring);
}

static void regular_graphs_are_regular(void **state)
{
    (void)state;
    for (ptrdiff_t n = 2; n <= 20; n++) {
        for (ptrdiff_t d = 0; d < n; d++) {
            char spec[64];
            (void)snprintf(spec, sizeof spec, "regular:degree=%td,connected=false", d);
            if (n * d % 2 != 0) {
                assert_int_equal(reef_graph_create(NULL, &(reef_graph *){NULL}, spec, n, 0, NULL), REEF_E_RANGE);
                continue;
            }
            for (uint64_t seed = 0; seed < 5; seed++) {
                reef_graph *graph = make_graph(spec, n, seed);
                check_graph_form(graph, spec);
                check_graph_both_ways(graph, spec);
                for (ptrdiff_t k = 0; k < n; k++) {
                    CHECK(degree(graph, k) == d, "%s: agent %td of %td has degree %td", spec, k, n, degree(graph, k));
                }
                reef_graph_destroy(&graph);
            }
        }
    }
    reef_graph *graph = make_graph("regular:degree=50", 401, 1);
    for (ptrdiff_t k = 0; k < 401; k++) {
        assert_int_equal(degree(graph, k), 50);
    }
    reef_graph_destroy(&graph);
}

/* Of all links between 6 agents of degree 3, each is there in 3/5 of the graphs: the drawing prefers nobody. */
static void regular_graphs_are_fair(void **state)
{
    enum { RUNS = 4000 };
    ptrdiff_t seen[6][6] = {{0}};
    (void)state;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        reef_graph *graph = make_graph("regular:degree=3,connected=false", 6, seed);
        reef_csr csr = reef_graph_csr(graph);
        for (ptrdiff_t k = 0; k < 6; k++) {
            for (ptrdiff_t l = 0; l < 6; l++) {
                seen[k][l] += k != l && reef_csr_find(&csr, l, k) >= 0;
            }
        }
        reef_graph_destroy(&graph);
    }
    for (ptrdiff_t k = 0; k < 6; k++) {
        for (ptrdiff_t l = 0; l < k; l++) {
            CHECK_CLOSE((double)seen[k][l] / RUNS, 0.6, 0.05, "share of graphs with a link");
        }
    }
}

static void erdos_renyi_has_its_density(void **state)
{
    static const double p[] = {0.02, 0.3, 0.9};
    (void)state;
    for (int directed = 0; directed < 2; directed++) {
        for (ptrdiff_t i = 0; i < COUNT(p); i++) {
            char spec[100];
            double pairs = 400.0 * 399;
            (void)snprintf(spec, sizeof spec, "erdos_renyi:p=%g,connected=false,loops=no,directed=%d", p[i], directed);
            reef_graph *graph = make_graph(spec, 400, 11);
            double sigma = sqrt((directed ? 1 : 2) * p[i] * (1 - p[i]) / pairs);
            CHECK_CLOSE((double)reef_graph_links(graph) / pairs, p[i], 5 * sigma, spec);
            assert_int_equal(reef_graph_symmetric(graph), !directed);
            /* first and last quarter of the agents are as well linked as the rest */
            reef_csr csr = reef_graph_csr(graph);
            CHECK_CLOSE((double)csr.start[100] * 4 / pairs, p[i], 10 * sigma, spec);
            CHECK_CLOSE((double)(csr.start[400] - csr.start[300]) * 4 / pairs, p[i], 10 * sigma, spec);
            reef_graph_destroy(&graph);
        }
    }
}

/* The cells find exactly what a search over all pairs would: a graph of a larger radius holds all links of a smaller one, the largest
 * has all pairs, and the number grows like the area. */
static void geometric_radii_are_nested(void **state)
{
    (void)state;
    static const char *const radius[] = {"0.03", "0.1", "0.33", "0.34", "0.5", "0.51", "1", "1.5"};
    reef_graph *smaller = NULL;
    for (ptrdiff_t i = 0; i < COUNT(radius); i++) {
        char spec[100];
        (void)snprintf(spec, sizeof spec, "geometric:radius=%s,connected=false", radius[i]);
        reef_graph *graph = make_graph(spec, 300, 2);
        reef_csr csr = reef_graph_csr(graph);
        for (ptrdiff_t k = 0; smaller && k < 300; k++) {
            reef_csr less = reef_graph_csr(smaller);
            for (ptrdiff_t j = less.start[k]; j < less.start[k + 1]; j++) {
                CHECK(reef_csr_find(&csr, less.senders[j], k) >= 0, "radius %s lost a link", radius[i]);
            }
        }
        if (i == 1) {
            /* pi r^2 - 8/3 r^3 + r^4 / 2: chance that two places of the square are within r */
            CHECK_CLOSE((double)(reef_graph_links(graph) - 300) / (300.0 * 299), 0.0287977, 0.004, "density");
        }
        if (i == COUNT(radius) - 1) {
            assert_int_equal(reef_graph_links(graph), 300 * 300);
        }
        reef_graph_destroy(&smaller);
        smaller = graph;
    }
    reef_graph_destroy(&smaller);
}

static void seeds(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        reef_graph *a = make_graph(graph_specs[i], 60, 1);
        reef_graph *b = make_graph(graph_specs[i], 60, 1);
        reef_graph *c = make_graph(graph_specs[i], 60, 2);
        bool random =
            reef_graph_links(a) < 60 * 60 && (strstr(graph_specs[i], "erdos") || strstr(graph_specs[i], "geometric") ||
                                              strstr(graph_specs[i], "regular") || strstr(graph_specs[i], "barabasi") ||
                                              (strstr(graph_specs[i], "watts") && !strstr(graph_specs[i], "p=0")));
        CHECK(same_links(a, b), "%s: the same seed gave another graph", graph_specs[i]);
        CHECK(same_links(a, c) == !random, "%s: another seed and %s graph", graph_specs[i],
              random ? "the same" : "another");
        reef_graph_destroy(&a);
        reef_graph_destroy(&b);
        reef_graph_destroy(&c);
    }
}

/* Values fixed once and for all: the same seed must give the same graph on every machine and in every version. */
static void seeds_are_portable(void **state)
{
    static const struct {
        const char *spec;
        uint64_t sum;
    } known[] = {
        {"erdos_renyi:p=0.2", UINT64_C(0xd9b4ab3cf398c332)},
        {"geometric:radius=0.4", UINT64_C(0x3d78d689edce1346)},
        {"regular:degree=4", UINT64_C(0x7fc5c81d40ab819c)},
        {"watts_strogatz:k=4,p=0.3", UINT64_C(0xaac651088e1ba2bc)},
        {"barabasi_albert:m=2", UINT64_C(0x49ed28e1995af07c)},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        reef_graph *graph = make_graph(known[i].spec, 40, 12345);
        reef_csr csr = reef_graph_csr(graph);
        uint64_t sum = 0;
        for (ptrdiff_t k = 0; k < 40; k++) {
            for (ptrdiff_t j = csr.start[k]; j < csr.start[k + 1]; j++) {
                sum = (sum * 31 + (uint64_t)k) * 37 + (uint64_t)csr.senders[j];
            }
        }
        CHECK(sum == known[i].sum, "%s: %#llx", known[i].spec, (unsigned long long)sum);
        reef_graph_destroy(&graph);
    }
}

static void printing_reads_back(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        char text[800];
        char again[800];
        reef_graph *graph = make_graph(graph_specs[i], 24, 9);
        size_t length = reef_graph_print(graph, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_non_null(strstr(text, "loops=true"));
        reef_graph *copy = make_graph(text, 24, 9);
        (void)reef_graph_print(copy, again, sizeof again);
        assert_string_equal(text, again);
        assert_true(same_links(graph, copy));
        reef_graph_destroy(&graph);
        reef_graph_destroy(&copy);
    }
}

static void catalogue(void **state)
{
    ptrdiff_t count = 0;
    (void)state;
    assert_int_equal(reef_kind_count(NULL, REEF_FAMILY_GRAPH), 12);
    assert_null(reef_kind_at(NULL, REEF_FAMILY_GRAPH, -1));
    assert_null(reef_kind_at(NULL, REEF_FAMILY_GRAPH, reef_kind_count(NULL, REEF_FAMILY_GRAPH)));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_GRAPH, "nothing"));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_GRAPH, NULL));
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_GRAPH); i++) {
        const reef_kind *kind = reef_kind_at(NULL, REEF_FAMILY_GRAPH, i);
        assert_ptr_equal(reef_kind_find(NULL, REEF_FAMILY_GRAPH, kind->name), kind);
        assert_true(kind->summary[0] && kind->citation && (kind->fields || kind->field_count == 0));
    }
    assert_string_equal(reef_kind_common(REEF_FAMILY_GRAPH, reef_kind_at(NULL, REEF_FAMILY_GRAPH, 0), &count)->name,
                        "loops");
    assert_int_equal(count, 1);
}

static void bad_specs(void **state)
{
    static const struct {
        const char *spec;
        ptrdiff_t agents;
        reef_status status;
        const char *says;
    } cases[] = {
        {"rign", 5, REEF_E_NAME, "did you mean 'ring'"},
        {"", 5, REEF_E_SYNTAX, "a graph is missing"},
        {":k=1", 5, REEF_E_SYNTAX, "missing"},
        {"ring:q=1", 5, REEF_E_NAME, "'q'"},
        {"ring:k=1,k=2", 5, REEF_E_SYNTAX, "twice"},
        {"ring:loops=1,loops=1", 5, REEF_E_SYNTAX, "twice"},
        {"ring:k", 5, REEF_E_SYNTAX, "key=value"},
        {"ring:k=0", 5, REEF_E_RANGE, "whole number"},
        {"ring:k=3", 5, REEF_E_RANGE, "at most 2"},
        {"ring", 0, REEF_E_RANGE, "0 agents"},
        {"ring", -3, REEF_E_RANGE, "-3 agents"},
        {"ring", INT32_MAX, REEF_E_RANGE, "agents"},
        {"complete", 1000000, REEF_E_RANGE, "1e+12 links"},
        {"erdos_renyi:p=0.9", 1000000, REEF_E_RANGE, "9e+11 links"},
        {"geometric:radius=1", 1000000, REEF_E_RANGE, "links"},
        {"two_cliques", 1000000, REEF_E_RANGE, "links"},
        {"two_cliques:bridges=4", 7, REEF_E_RANGE, "at most 3"},
        {"star:centre=5", 5, REEF_E_RANGE, "0 to 4"},
        {"grid:rows=4", 10, REEF_E_RANGE, "do not fill 4 rows"},
        {"erdos_renyi:p=1.5", 5, REEF_E_RANGE, "from 0 to 1"},
        {"erdos_renyi:p=0.01", 50, REEF_E_GRAPH, "p = 0.156 would do"},
        {"geometric:radius=0.01", 50, REEF_E_GRAPH, "radius = 0.223 would do"},
        {"regular:degree=1", 50, REEF_E_GRAPH, "degree 3"},
        {"regular:degree=5", 5, REEF_E_RANGE, "below their number"},
        {"regular:degree=3", 5, REEF_E_RANGE, "even"},
        {"watts_strogatz:k=3", 9, REEF_E_RANGE, "even"},
        {"watts_strogatz:k=4", 4, REEF_E_RANGE, "below"},
        {"barabasi_albert:m=5", 5, REEF_E_RANGE, "needs more than 5"},
        {"file", 5, REEF_E_SYNTAX, "path"},
        {"file:path=/nowhere/at/all", 5, REEF_E_FILE, "/nowhere/at/all: cannot open: No such file"},
        {"file:path=/", 5, REEF_E_FILE, "a folder, not a file"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_graph *graph = NULL;
        reef_error error = {REEF_OK, ""};
        reef_status status = reef_graph_create(NULL, &graph, cases[i].spec, cases[i].agents, 0, &error);
        CHECK(status == cases[i].status && error.status == status, "\"%s\": status %d, %s", cases[i].spec, (int)status,
              error.text);
        CHECK(strstr(error.text, cases[i].says), "\"%s\": '%s' does not say '%s'", cases[i].spec, error.text,
              cases[i].says);
        assert_null(graph);
        assert_int_equal(reef_graph_create(NULL, &graph, cases[i].spec, cases[i].agents, 0, NULL), status);
    }
    assert_int_equal(reef_graph_create(NULL, NULL, "ring", 5, 0, NULL), REEF_E_ARG);
    assert_int_equal(reef_graph_create(NULL, &(reef_graph *){NULL}, NULL, 5, 0, NULL), REEF_E_ARG);
    reef_graph_destroy(NULL);
}

static void from_arrays(void **state)
{
    static const int32_t senders[] = {0, 1, 2, 2, 3};
    static const int32_t receivers[] = {1, 2, 0, 0, 3};
    static const double weights[] = {1, 1, 1, 1, 1};
    reef_link_list list = {.count = 5, .senders = senders, .receivers = receivers, .directed = true};
    reef_graph *graph = NULL;
    reef_error error;
    (void)state;
    assert_int_equal(reef_graph_create_links(NULL, &graph, 4, &list, &error), REEF_OK);
    check_graph_form(graph, "arrays");
    assert_int_equal(reef_graph_links(graph), 3 + 4); /* the repeated link counts once */
    assert_false(reef_graph_symmetric(graph));
    assert_int_equal(reef_graph_print(graph, NULL, 0), 0);
    reef_graph_destroy(&graph);
    list.directed = false;
    list.no_loops = true;
    assert_int_equal(reef_graph_create_links(NULL, &graph, 4, &list, &error), REEF_OK);
    assert_int_equal(reef_graph_links(graph), 6);
    assert_true(reef_graph_symmetric(graph));
    reef_graph_destroy(&graph);
    list.directed = true;
    list.weights = weights;
    assert_int_equal(reef_graph_create_links(NULL, &graph, 4, &list, &error), REEF_OK);
    assert_int_equal(reef_graph_links(graph), 4); /* with weights the loop of agent 3 is one, and no other is added */
    reef_graph_destroy(&graph);
    assert_int_equal(reef_graph_create_links(NULL, &graph, 3, &list, &error), REEF_E_RANGE);
    assert_non_null(strstr(error.text, "from 3 to 3"));
    list.senders = NULL;
    assert_int_equal(reef_graph_create_links(NULL, &graph, 3, &list, &error), REEF_E_ARG);
    list.count = 0;
    list.weights = NULL;
    assert_int_equal(reef_graph_create_links(NULL, &graph, 3, &list, &error), REEF_OK);
    reef_graph_destroy(&graph);
    assert_int_equal(reef_graph_create_links(NULL, &graph, 0, &list, &error), REEF_E_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(loops_can_be_left_out),
        cmocka_unit_test(numbers_of_links),
        cmocka_unit_test(degrees),
        cmocka_unit_test(regular_graphs_are_regular),
        cmocka_unit_test(regular_graphs_are_fair),
        cmocka_unit_test(erdos_renyi_has_its_density),
        cmocka_unit_test(geometric_radii_are_nested),
        cmocka_unit_test(seeds),
        cmocka_unit_test(seeds_are_portable),
        cmocka_unit_test(printing_reads_back),
        cmocka_unit_test(catalogue),
        cmocka_unit_test(bad_specs),
        cmocka_unit_test(from_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
