/* Combination weights: columns that sum to one, doubly stochastic rules, formulas by hand, files, refusals. */
#include "support/check.h"
#include "support/graphs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const rules[] = {"uniform",    "metropolis",      "laplacian",         "laplacian:beta=0.01",
                                    "max_degree", "relative_degree", "relative_variance", "hastings"};

static double number(ptrdiff_t k)
{
    return 0.5 + fmod(0.37 * (double)k, 1.9);
}

static void set(reef_graph *graph, const char *rule)
{
    double values[100];
    reef_error error = {REEF_OK, ""};
    for (ptrdiff_t k = 0; k < reef_graph_agents(graph); k++) {
        values[k] = number(k);
    }
    reef_weight_data data = {.variance = values, .perron = values};
    reef_status status = reef_graph_set_weights(graph, rule, &data, &error);
    CHECK(status == REEF_OK, "%s: %s", rule, error.text);
}

static bool needs_both_ways(const char *rule)
{
    return strncmp(rule, "uniform", 7) != 0 && strncmp(rule, "relative", 8) != 0;
}

static void columns_sum_to_one(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        for (ptrdiff_t j = 0; j < COUNT(rules); j++) {
            reef_graph *graph = make_graph(graph_specs[i], 60, 4);
            if (!reef_graph_symmetric(graph) && needs_both_ways(rules[j])) {
                reef_error error;
                assert_int_equal(reef_graph_set_weights(graph, rules[j], NULL, &error), REEF_E_WEIGHTS);
                assert_non_null(strstr(error.text, "symmetric graph"));
            } else {
                reef_error error = {REEF_OK, ""};
                set(graph, rules[j]);
                reef_csr csr = reef_graph_csr(graph);
                reef_status status = reef_graph_check_weights(&csr, 1e-14, &error);
                CHECK(status == REEF_OK, "%s on %s: %s", rules[j], graph_specs[i], error.text);
            }
            reef_graph_destroy(&graph);
        }
    }
}

static void rows_sum_to_one(void **state)
{
    static const char *const doubly[] = {"metropolis", "laplacian", "max_degree", "laplacian:beta=0.013"};
    (void)state;
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        reef_graph *graph = make_graph(graph_specs[i], 60, 4);
        for (ptrdiff_t j = 0; j < COUNT(doubly) && reef_graph_symmetric(graph); j++) {
            double row[60] = {0};
            set(graph, doubly[j]);
            reef_csr csr = reef_graph_csr(graph);
            for (ptrdiff_t place = 0; place < csr.start[60]; place++) {
                row[csr.senders[place]] += csr.weight[place];
            }
            for (ptrdiff_t l = 0; l < 60; l++) {
                CHECK_CLOSE(row[l], 1, 1e-13, doubly[j]);
            }
        }
        reef_graph_destroy(&graph);
    }
}

static double weight(const reef_graph *graph, ptrdiff_t l, ptrdiff_t k)
{
    reef_csr csr = reef_graph_csr(graph);
    ptrdiff_t place = reef_csr_find(&csr, l, k);
    assert_true(place >= 0);
    return csr.weight[place];
}

/* The line 0 - 1 - 2: neighbourhoods of 2, 3 and 2 agents. */
static void formulas(void **state)
{
    static const double variance[] = {1, 0.5, 2};
    static const double shares[] = {1, 2, 1}; /* any sum */
    reef_weight_data data = {.variance = variance, .perron = shares};
    reef_graph *graph = make_graph("line", 3, 0);
    (void)state;
    CHECK_CLOSE(weight(graph, 1, 0), 1.0 / 2, 1e-15, "uniform is the default");
    set(graph, "metropolis");
    CHECK_CLOSE(weight(graph, 1, 0), 1.0 / 3, 1e-15, "metropolis");
    CHECK_CLOSE(weight(graph, 0, 0), 2.0 / 3, 1e-15, "metropolis");
    CHECK_CLOSE(weight(graph, 1, 1), 1.0 / 3, 1e-15, "metropolis");
    set(graph, "laplacian:beta=0.25");
    CHECK_CLOSE(weight(graph, 1, 2), 0.25, 1e-15, "laplacian");
    CHECK_CLOSE(weight(graph, 2, 2), 0.75, 1e-15, "laplacian");
    CHECK_CLOSE(weight(graph, 1, 1), 0.5, 1e-15, "laplacian");
    set(graph, "max_degree");
    CHECK_CLOSE(weight(graph, 1, 0), 1.0 / 3, 1e-15, "max_degree");
    set(graph, "relative_degree");
    CHECK_CLOSE(weight(graph, 1, 0), 3.0 / 5, 1e-15, "relative_degree");
    CHECK_CLOSE(weight(graph, 1, 1), 3.0 / 7, 1e-15, "relative_degree");
    assert_int_equal(reef_graph_set_weights(graph, "relative_variance", &data, NULL), REEF_OK);
    CHECK_CLOSE(weight(graph, 1, 0), 2.0 / 3, 1e-15, "relative_variance");
    CHECK_CLOSE(weight(graph, 2, 1), 0.5 / 3.5, 1e-15, "relative_variance");
    assert_int_equal(reef_graph_set_weights(graph, "hastings", &data, NULL), REEF_OK);
    CHECK_CLOSE(weight(graph, 1, 0), 1.0 / 2, 1e-15, "hastings: min(1/2, 2/3)");
    CHECK_CLOSE(weight(graph, 0, 1), 1.0 / 4, 1e-15, "hastings: min(1/3, 1/4)");
    CHECK_CLOSE(weight(graph, 1, 1), 1.0 / 2, 1e-15, "hastings");
    assert_int_equal(reef_graph_set_weights(graph, "hastings", NULL, NULL), REEF_OK);
    CHECK_CLOSE(weight(graph, 1, 0), 1.0 / 3, 1e-15, "hastings with equal shares is metropolis");
    reef_graph_destroy(&graph);
}

static void refusals(void **state)
{
    static double bad[] = {1, 0, 1, 1, 1};
    static const double inf[] = {1, INFINITY, 1, 1, 1};
    static const double nan[] = {1, NAN, 1, 1, 1};
    const reef_weight_data zero = {.variance = bad, .perron = bad};
    const reef_weight_data huge = {.variance = inf, .perron = inf};
    const reef_weight_data none = {.variance = nan, .perron = nan};
    const struct {
        const char *graph, *rule;
        const reef_weight_data *data;
        reef_status status;
        const char *says;
    } cases[] = {
        {"line", "metropolis:beta=1", NULL, REEF_E_NAME, "none"},
        {"line", "metropoli", NULL, REEF_E_NAME, "did you mean 'metropolis'"},
        {"star", "laplacian:beta=0.5", NULL, REEF_E_WEIGHTS, "at most 0.25"},
        {"line:loops=false", "metropolis", NULL, REEF_E_WEIGHTS, "loops=true"},
        {"line", "relative_variance", NULL, REEF_E_WEIGHTS, "noise variance of every agent"},
        {"line", "relative_variance", &zero, REEF_E_WEIGHTS, "agent 1"},
        {"line", "hastings", &huge, REEF_E_WEIGHTS, "agent 1 is inf"},
        {"line", "hastings", &none, REEF_E_WEIGHTS, "agent 1"},
        {"line", "file", NULL, REEF_E_SYNTAX, "path"},
        {"line", "file:path=/nowhere", NULL, REEF_E_FILE, "/nowhere"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_error error = {REEF_OK, ""};
        reef_graph *graph = make_graph(cases[i].graph, 5, 0);
        double before = weight(graph, 1, 0);
        reef_status status = reef_graph_set_weights(graph, cases[i].rule, cases[i].data, &error);
        CHECK(status == cases[i].status && error.status == status, "%s: status %d, %s", cases[i].rule, (int)status,
              error.text);
        CHECK(strstr(error.text, cases[i].says), "%s: '%s' does not say '%s'", cases[i].rule, error.text,
              cases[i].says);
        assert_true(weight(graph, 1, 0) == before); /* the old weights stay */
        reef_graph_destroy(&graph);
    }
    assert_int_equal(reef_graph_set_weights(NULL, "uniform", NULL, NULL), REEF_E_ARG);
}

static void own_weights(void **state)
{
    double own[7] = {0.5, 0.5, 0.25, 0.5, 0.25, 0.1, 0.9};
    reef_graph *graph = make_graph("line", 3, 0);
    reef_error error;
    (void)state;
    assert_int_equal(reef_graph_put_weights(graph, own, NULL), REEF_OK);
    CHECK_CLOSE(weight(graph, 2, 2), 0.9, 1e-15, "put");
    own[6] += 5e-7; /* within what is scaled */
    assert_int_equal(reef_graph_put_weights(graph, own, NULL), REEF_OK);
    CHECK_CLOSE(weight(graph, 1, 2) + weight(graph, 2, 2), 1, 1e-15, "scaled");
    own[6] = 0.8;
    assert_int_equal(reef_graph_put_weights(graph, own, &error), REEF_E_WEIGHTS);
    assert_non_null(strstr(error.text, "agent 2 gives to its senders sum to 0.9"));
    own[5] = 1.1;
    own[6] = -0.1;
    assert_int_equal(reef_graph_put_weights(graph, own, &error), REEF_E_WEIGHTS);
    assert_non_null(strstr(error.text, "negative"));
    own[6] = NAN;
    assert_int_equal(reef_graph_put_weights(graph, own, &error), REEF_E_WEIGHTS);
    own[6] = INFINITY;
    assert_int_equal(reef_graph_put_weights(graph, own, &error), REEF_E_WEIGHTS);
    reef_graph_destroy(&graph);
}

static void from_files(void **state)
{
    static const char *const good =
        "# a weight for each link\n0 0 0.5\n1 0 0.5\n0 1 0.25\n1 1 .5\n2 1 0.25\n1 2 1\n2 2 0\n";
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"0 0 0.5\n1 0 0.5\n0 1 0.25\n1 1 .5\n2 1 0.25\n1 2 1\n", "no weight for the link 2 -> 2, which the graph has"},
        {"0 0 0.5\n1 0 0.4\n2 0 .1\n0 1 0.25\n1 1 .5\n2 1 0.25\n1 2 1\n2 2 0\n", "a weight for the link 2 -> 0"},
        {"0 0 0.5\n1 0 0.4\n0 1 0.25\n1 1 .5\n2 1 0.25\n1 2 1\n2 2 0\n", "agent 0"},
        {"0 0\n", ":1: every line needs a weight"},
    };
    char path[256];
    char spec[400];
    reef_graph *graph = make_graph("line", 3, 0);
    reef_error error = {REEF_OK, ""};
    (void)state;
    write_temporary(good, path);
    (void)snprintf(spec, sizeof spec, "file:path=%s,directed=true", path);
    reef_status status = reef_graph_set_weights(graph, spec, NULL, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    CHECK_CLOSE(weight(graph, 1, 2), 1, 0, "from file");
    CHECK_CLOSE(weight(graph, 2, 1), 0.25, 0, "from file");
    assert_int_equal(remove(path), 0);
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        write_temporary(bad[i].text, path);
        (void)snprintf(spec, sizeof spec, "file:path=%s,directed=true", path);
        assert_int_not_equal(reef_graph_set_weights(graph, spec, NULL, &error), REEF_OK);
        CHECK(strstr(error.text, bad[i].says), "'%s' does not say '%s'", error.text, bad[i].says);
        assert_int_equal(remove(path), 0);
    }
    reef_graph_destroy(&graph);
}

static void catalogue(void **state)
{
    (void)state;
    assert_int_equal(reef_kind_count(NULL, REEF_FAMILY_WEIGHTS), 8);
    assert_null(reef_kind_at(NULL, REEF_FAMILY_WEIGHTS, -1));
    assert_null(reef_kind_at(NULL, REEF_FAMILY_WEIGHTS, 8));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_WEIGHTS, "x"));
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_WEIGHTS); i++) {
        assert_ptr_equal(reef_kind_find(NULL, REEF_FAMILY_WEIGHTS, reef_kind_at(NULL, REEF_FAMILY_WEIGHTS, i)->name),
                         reef_kind_at(NULL, REEF_FAMILY_WEIGHTS, i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_sum_to_one), cmocka_unit_test(rows_sum_to_one), cmocka_unit_test(formulas),
        cmocka_unit_test(refusals),           cmocka_unit_test(own_weights),     cmocka_unit_test(from_files),
        cmocka_unit_test(catalogue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
