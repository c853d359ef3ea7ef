/* Graphs from text files: both formats, and messages with file and line for whatever is wrong. */
#include "support/check.h"
#include "support/graphs.h"

#include <stdio.h>
#include <string.h>

static reef_status read_text(const char *text, const char *options, ptrdiff_t agents, reef_graph **graph,
                             reef_error *error)
{
    char path[256];
    char spec[400];
    write_temporary(text, path);
    (void)snprintf(spec, sizeof spec, "file:path=%s%s", path, options);
    reef_status status = reef_graph_create(NULL, graph, spec, agents, 0, error);
    assert_int_equal(remove(path), 0);
    return status;
}

static reef_graph *read_good(const char *text, const char *options, ptrdiff_t agents)
{
    reef_graph *graph = NULL;
    reef_error error = {REEF_OK, ""};
    reef_status status = read_text(text, options, agents, &graph, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    check_graph_form(graph, text);
    return graph;
}

static double weight(const reef_graph *graph, ptrdiff_t l, ptrdiff_t k)
{
    reef_csr csr = reef_graph_csr(graph);
    ptrdiff_t place = reef_csr_find(&csr, l, k);
    return place < 0 ? -1 : csr.weight[place];
}

static void edges(void **state)
{
    (void)state;
    reef_graph *graph = read_good("# a comment\n0 1\n\n  1\t2 # another\r\n2,0\n0 2\n3;2", "", 0);
    assert_int_equal(reef_graph_agents(graph), 4);
    assert_int_equal(reef_graph_links(graph), 4 + 2 * 4);
    assert_true(reef_graph_symmetric(graph));
    reef_graph_destroy(&graph);
    graph = read_good("0 1\n1 2\n", ",directed=true,loops=false", 5);
    assert_int_equal(reef_graph_agents(graph), 5);
    assert_int_equal(reef_graph_links(graph), 2);
    assert_false(reef_graph_symmetric(graph));
    assert_true(weight(graph, 0, 1) == 1 && weight(graph, 1, 0) < 0);
    reef_graph_destroy(&graph);
    graph = read_good("0 0\n0 1\n", ",loops=false", 0); /* without weights `loops` decides */
    assert_true(weight(graph, 0, 0) < 0);
    reef_graph_destroy(&graph);
    graph = read_good("", "", 3);
    assert_int_equal(reef_graph_links(graph), 3);
    reef_graph_destroy(&graph);
}

static void weighted_edges(void **state)
{
    static const char *const text = "0 0 0.5\n1 0 0.5000004\n0 1 1\n";
    (void)state;
    reef_graph *graph = read_good(text, ",directed=true", 0);
    assert_int_equal(reef_graph_links(graph), 3); /* agent 1 does not hear itself, and is not made to */
    CHECK_CLOSE(weight(graph, 1, 0), 0.5000004 / 1.0000004, 1e-16, "scaled");
    reef_graph_destroy(&graph);
    graph = read_good(text, ",directed=true,values=links", 0);
    assert_int_equal(reef_graph_links(graph), 4);
    CHECK_CLOSE(weight(graph, 1, 1), 0.5, 0, "uniform");
    reef_graph_destroy(&graph);
    graph = read_good("0 0 .75\n0 1 .25\n1 1 .75", "", 0);
    CHECK_CLOSE(weight(graph, 1, 0), 0.25, 0, "both ways");
    CHECK_CLOSE(weight(graph, 0, 1), 0.25, 0, "both ways");
    reef_graph_destroy(&graph);
}

static void matrices(void **state)
{
    (void)state;
    reef_graph *graph = read_good("0 1 0\n0,0,1\n1;0;0\n", ",format=matrix", 0);
    assert_int_equal(reef_graph_links(graph), 6); /* a directed ring and loops */
    assert_true(weight(graph, 0, 1) == 0.5 && weight(graph, 1, 0) < 0);
    reef_graph_destroy(&graph);
    graph = read_good("0 1\n1 0\n", ",format=matrix,values=weights", 2);
    assert_int_equal(reef_graph_links(graph), 2); /* as they are: each hears only the other */
    reef_graph_destroy(&graph);
    graph = read_good("# weights\n0.9 0.2\n0.1 0.8", ",format=matrix", 2);
    CHECK_CLOSE(weight(graph, 1, 0), 0.1, 1e-16, "row is sender");
    CHECK_CLOSE(weight(graph, 0, 1), 0.2, 1e-16, "row is sender");
    reef_graph_destroy(&graph);
    graph = read_good("3", ",format=matrix,values=links", 0);
    assert_int_equal(reef_graph_links(graph), 1);
    reef_graph_destroy(&graph);
}

static void bad_files(void **state)
{
    static const struct {
        const char *text, *options;
        ptrdiff_t agents;
        reef_status status;
        const char *says;
    } cases[] = {
        {"0 1\n1\n", "", 0, REEF_E_FORMAT, ":2: a line of an edge list reads"},
        {"0 1 1 1\n", "", 0, REEF_E_FORMAT, ":1: a line"},
        {"0 1\nx 2\n", "", 0, REEF_E_FORMAT, ":2: this is not a list of finite decimal numbers"},
        {"0 1\n\n#\n0 nan\n", "", 0, REEF_E_FORMAT, ":4: this is not a list of finite"},
        {"0 1e999\n", "", 0, REEF_E_FORMAT, ":1: this is not a list"},
        {"0 0x1\n", "", 0, REEF_E_FORMAT, ":1: this is not a list"},
        {"0 1.5\n", "", 0, REEF_E_FORMAT, ":1: agents are whole numbers"},
        {"0 -1\n", "", 0, REEF_E_FORMAT, ":1: agents are whole numbers"},
        {"0 3000000000\n", "", 0, REEF_E_FORMAT, ":1: agents"},
        {"0 2000000000\n", "", 0, REEF_E_FORMAT, "the file mentions agent 2000000000, but has only 1 links"},
        {"0 3\n", "", 3, REEF_E_FORMAT, ":1: agent 3, but agents are numbered 0 to 2"},
        {"", "", 0, REEF_E_FORMAT, "no link"},
        {"# nothing\n\n", "", 0, REEF_E_FORMAT, "no link"},
        {"0 1 .5\n1 0\n", "", 0, REEF_E_FORMAT, ":2: every line needs a weight"},
        {"0 1 -.5\n", "", 0, REEF_E_FORMAT, ":1: every line needs a weight >= 0"},
        {"0 1 .5\n0 1 .6\n", ",directed=true", 0, REEF_E_WEIGHTS, "0 -> 1 is given twice, with weights"},
        {"0 1 .5\n", ",directed=true", 0, REEF_E_WEIGHTS, "agent 1 gives to its senders sum to 0.5"},
        {"0 1 1e300\n0 0 1e300\n1 1 1e301", "", 0, REEF_E_WEIGHTS, "agent"},
        {"0 1\n1\n", ",format=matrix", 0, REEF_E_FORMAT, ":2: the row has 1 entries, the first one has 2"},
        {"0 1\n1 0\n0 1\n", ",format=matrix", 0, REEF_E_FORMAT, ":3: the matrix has more rows"},
        {"0 1\n1 0 1\n", ",format=matrix", 0, REEF_E_FORMAT, ":2: the matrix has more rows or entries"},
        {"0 1 0\n1 0 1\n", ",format=matrix", 0, REEF_E_FORMAT, "2 rows and 3 columns"},
        {"0 1\n1 0\n", ",format=matrix", 3, REEF_E_FORMAT, "for 2 agents, but 3 were requested"},
        {"0 1\n-1 0\n", ",format=matrix", 0, REEF_E_FORMAT, ":2: the entry -1 is negative"},
        {"", ",format=matrix", 0, REEF_E_FORMAT, "0 rows"},
        {".5 0\n0 .5\n", ",format=matrix", 0, REEF_E_WEIGHTS, "agent 0"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_graph *graph = NULL;
        reef_error error = {REEF_OK, ""};
        reef_status status = read_text(cases[i].text, cases[i].options, cases[i].agents, &graph, &error);
        CHECK(status == cases[i].status && error.status == status, "\"%s\": status %d, %s", cases[i].text, (int)status,
              error.text);
        CHECK(strstr(error.text, cases[i].says), "\"%s\": '%s' does not say '%s'", cases[i].text, error.text,
              cases[i].says);
        assert_null(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),
        cmocka_unit_test(weighted_edges),
        cmocka_unit_test(matrices),
        cmocka_unit_test(bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
