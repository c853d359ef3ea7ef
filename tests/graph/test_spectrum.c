/* Perron vectors and spectral gaps, against closed forms and against plain matrix powers. */
#include "support/check.h"
#include "support/graphs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

static reef_spectrum spectrum_of(const reef_graph *graph, const bool *malicious, double *p, const char *what)
{
    reef_csr csr = reef_graph_csr(graph);
    reef_spectrum s;
    reef_error error = {REEF_OK, ""};
    reef_status status = reef_graph_spectrum(NULL, &csr, malicious, NULL, p, &s, &error);
    CHECK(status == REEF_OK, "%s: %s", what, error.text);
    CHECK(s.converged, "%s: p has the residual %g after %td iterations", what, s.residual, s.iterations);
    return s;
}

static void set(reef_graph *graph, const char *rule, const double *data)
{
    reef_weight_data values = {.variance = data, .perron = data};
    assert_int_equal(reef_graph_set_weights(graph, rule, &values, NULL), REEF_OK);
}

static void known_gaps(void **state)
{
    (void)state;
    for (ptrdiff_t n = 3; n <= 101; n += 7) {
        double p[101];
        reef_graph *graph = make_graph("ring", n, 0);
        reef_spectrum s = spectrum_of(graph, NULL, p, "ring");
        /* eigenvalues (1 + 2 cos(2 pi j / n)) / 3 */
        double largest = 0;
        for (ptrdiff_t j = 1; j < n; j++) {
            largest = fmax(largest, fabs(1 + 2 * cos(2 * PI * (double)j / (double)n)) / 3);
        }
        assert_true(s.reversible && s.second_converged);
        CHECK_CLOSE(s.second, largest, 1e-10, "ring");
        CHECK_CLOSE(s.gap, 1 - largest, 1e-10, "ring");
        for (ptrdiff_t k = 0; k < n; k++) {
            CHECK_CLOSE(p[k], 1 / (double)n, 1e-15, "ring");
        }
        reef_graph_destroy(&graph);
        graph = make_graph("complete", n, 0);
        s = spectrum_of(graph, NULL, NULL, "complete");
        assert_true(s.second_converged);
        CHECK_CLOSE(s.second, 0, 1e-12, "complete");
        reef_graph_destroy(&graph);
        graph = make_graph("star", n, 0);
        set(graph, "laplacian", NULL); /* I - L / n; L has 0, 1 and n */
        s = spectrum_of(graph, NULL, NULL, "star");
        CHECK_CLOSE(s.second, 1 - 1 / (double)n, 1e-10, "star");
        reef_graph_destroy(&graph);
    }
    reef_graph *one = make_graph("line", 1, 0);
    reef_spectrum s = spectrum_of(one, NULL, NULL, "one agent");
    assert_true(s.second == 0 && s.second_converged);
    reef_graph_destroy(&one);
}

/* A directed ring with loops: eigenvalues (1 + w) / 2, w the roots of unity; the second is a complex pair. */
static void complex_pairs(void **state)
{
    (void)state;
    for (ptrdiff_t n = 3; n <= 24; n += 3) {
        int32_t from[24];
        int32_t to[24];
        double p[24];
        for (int32_t k = 0; k < n; k++) {
            from[k] = k;
            to[k] = (int32_t)((k + 1) % n);
        }
        reef_link_list list = {.count = n, .senders = from, .receivers = to, .directed = true};
        reef_graph *graph = NULL;
        assert_int_equal(reef_graph_create_links(NULL, &graph, n, &list, NULL), REEF_OK);
        reef_spectrum s = spectrum_of(graph, NULL, p, "directed ring");
        assert_true(!s.reversible && s.second_converged);
        CHECK_CLOSE(s.second, cos(PI / (double)n), 1e-8, "directed ring");
        CHECK_CLOSE(p[n - 1], 1 / (double)n, 1e-10, "directed ring");
        reef_graph_destroy(&graph);
        list.no_loops = true; /* now only a cycle: period n, no gap, and still one fixed point */
        assert_int_equal(reef_graph_create_links(NULL, &graph, n, &list, NULL), REEF_OK);
        s = spectrum_of(graph, NULL, p, "cycle");
        assert_true(s.second == 1 && s.gap == 0 && s.second_converged);
        CHECK_CLOSE(p[0], 1 / (double)n, 1e-10, "cycle");
        reef_graph_destroy(&graph);
    }
}

static void closed_forms_of_p(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < graph_specs_count; i++) {
        reef_graph *graph = make_graph(graph_specs[i], 60, 5);
        reef_csr csr = reef_graph_csr(graph);
        double p[60];
        double wanted[60];
        if (strstr(graph_specs[i], "connected=false") || !reef_graph_symmetric(graph)) {
            reef_graph_destroy(&graph);
            continue;
        }
        (void)spectrum_of(graph, NULL, p, graph_specs[i]); /* uniform: by the size of the neighbourhood */
        for (ptrdiff_t k = 0; k < 60; k++) {
            double share = (double)(csr.start[k + 1] - csr.start[k]) / (double)csr.start[60];
            CHECK_CLOSE(p[k], share, 1e-14, graph_specs[i]);
        }
        set(graph, "metropolis", NULL);
        (void)spectrum_of(graph, NULL, p, graph_specs[i]);
        for (ptrdiff_t k = 0; k < 60; k++) {
            CHECK_CLOSE(p[k], 1.0 / 60, 1e-14, graph_specs[i]);
            wanted[k] = 1 + (double)(k * k % 17);
        }
        set(graph, "hastings", wanted);
        double sum = 0;
        for (ptrdiff_t k = 0; k < 60; k++) {
            sum += wanted[k];
        }
        reef_spectrum s = spectrum_of(graph, NULL, p, graph_specs[i]);
        assert_true(s.reversible);
        for (ptrdiff_t k = 0; k < 60; k++) {
            CHECK_CLOSE(p[k], wanted[k] / sum, 1e-13, graph_specs[i]);
        }
        reef_graph_destroy(&graph);
    }
}

/* Plain power iteration on a dense matrix of the honest agents, written out here. */
static void plain_perron(const reef_csr *csr, const bool *malicious, double *p)
{
    double next[60];
    ptrdiff_t n = csr->agents;
    for (ptrdiff_t k = 0; k < n; k++) {
        p[k] = malicious[k] ? 0 : 1;
    }
    for (int t = 0; t < 20000; t++) {
        double sum = 0;
        memset(next, 0, sizeof next);
        for (ptrdiff_t k = 0; k < n; k++) {
            double mass = 0;
            for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
                mass += malicious[csr->senders[i]] ? 0 : csr->weight[i];
            }
            for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1] && !malicious[k]; i++) {
                next[csr->senders[i]] += malicious[csr->senders[i]] ? 0 : csr->weight[i] / mass * p[k];
            }
        }
        for (ptrdiff_t k = 0; k < n; k++) {
            sum += next[k];
        }
        for (ptrdiff_t k = 0; k < n; k++) {
            p[k] = next[k] / sum;
        }
    }
}

static void honest_subgraphs(void **state)
{
    static const char *const specs[] = {"complete", "erdos_renyi:directed=true,p=0.6", "regular:degree=9", "ring:k=6",
                                        "barabasi_albert:m=5"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        bool malicious[60] = {false};
        double p[60];
        double plain[60];
        reef_graph *graph = make_graph(specs[i], 60, 6);
        for (ptrdiff_t k = 0; k < 60; k += 7) {
            malicious[k] = true;
        }
        reef_csr csr = reef_graph_csr(graph);
        (void)spectrum_of(graph, malicious, p, specs[i]);
        plain_perron(&csr, malicious, plain);
        for (ptrdiff_t k = 0; k < 60; k++) {
            CHECK_CLOSE(p[k], plain[k], 1e-9, specs[i]);
            assert_true(malicious[k] == (p[k] == 0));
        }
        reef_graph_destroy(&graph);
    }
}

/* Effective weights that are not reversible: another array in the same layout. The modulus is checked by the rate at which sums of
 * zero die out. */
static void effective_weights(void **state)
{
    (void)state;
    reef_graph *graph = make_graph("ring:k=3", 40, 0);
    reef_csr csr = reef_graph_csr(graph);
    double *weight = malloc((size_t)csr.start[40] * sizeof *weight);
    double p[40];
    double x[40];
    double y[40];
    bool nobody[60] = {false};
    double plain[60];
    reef_spectrum s;
    assert_non_null(weight);
    for (ptrdiff_t i = 0; i < csr.start[40]; i++) {
        weight[i] = 0.1 + fmod((double)i * 0.618034, 1);
    }
    csr.weight = weight;
    assert_int_equal(reef_graph_spectrum(NULL, &csr, NULL, NULL, p, &s, NULL), REEF_OK);
    assert_true(s.converged && !s.reversible && s.second_converged);
    plain_perron(&csr, nobody, plain);
    for (ptrdiff_t k = 0; k < 40; k++) {
        CHECK_CLOSE(p[k], plain[k], 1e-9, "effective weights");
        x[k] = k == 3 ? 1 : k == 20 ? -1 : 0;
    }
    double at[2] = {0};
    for (int t = 1; t <= 600; t++) { /* |x| after 300 and after 600 rounds */
        double norm = 0;
        memset(y, 0, sizeof y);
        for (ptrdiff_t k = 0; k < 40; k++) {
            double mass = 0;
            for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
                mass += weight[i];
            }
            for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
                y[csr.senders[i]] += weight[i] / mass * x[k];
            }
        }
        double sum = 0;
        for (ptrdiff_t k = 0; k < 40; k++) {
            sum += y[k];
        }
        for (ptrdiff_t k = 0; k < 40; k++) {
            x[k] = y[k] - sum * p[k];
            norm += x[k] * x[k];
        }
        at[t > 300] = t == 300 || t == 600 ? sqrt(norm) : at[t > 300];
    }
    CHECK_CLOSE(s.second, pow(at[1] / at[0], 1.0 / 300), 0.003, "modulus");
    free(weight);
    reef_graph_destroy(&graph);
}

static void limits(void **state)
{
    bool malicious[10] = {false};
    double p[10];
    reef_spectrum s;
    reef_error error = {REEF_OK, ""};
    (void)state;
    reef_graph *graph = make_graph("line", 10, 0);
    reef_csr csr = reef_graph_csr(graph);
    malicious[4] = true; /* cuts the line */
    assert_int_equal(reef_graph_spectrum(NULL, &csr, malicious, NULL, p, &s, &error), REEF_E_GRAPH);
    assert_non_null(strstr(error.text, "2 strongly connected components"));
    memset(malicious, true, sizeof malicious);
    assert_int_equal(reef_graph_spectrum(NULL, &csr, malicious, NULL, p, &s, &error), REEF_E_GRAPH);
    assert_int_equal(reef_graph_spectrum(NULL, NULL, malicious, NULL, p, &s, &error), REEF_E_ARG);
    reef_spectrum_options few = {.max_iterations = 2};
    assert_int_equal(reef_graph_spectrum(NULL, &csr, NULL, &few, NULL, &s, &error), REEF_OK);
    assert_true(s.converged && !s.second_converged && s.second_iterations == 2); /* said, not hidden */
    reef_spectrum_options first = {.no_second = true};
    assert_int_equal(reef_graph_spectrum(NULL, &csr, NULL, &first, NULL, &s, &error), REEF_OK);
    assert_true(isnan(s.second) && isnan(s.gap));
    reef_graph_destroy(&graph);
    /* without loops a line has period 2: p exists, the gap does not */
    graph = make_graph("line:loops=false", 10, 0);
    s = spectrum_of(graph, NULL, p, "line");
    assert_true(s.gap == 0 && s.reversible);
    CHECK_CLOSE(p[0], 1.0 / 18, 1e-15, "line");
    reef_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_gaps),       cmocka_unit_test(complex_pairs),     cmocka_unit_test(closed_forms_of_p),
        cmocka_unit_test(honest_subgraphs), cmocka_unit_test(effective_weights), cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
