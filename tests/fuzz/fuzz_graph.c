/* Graph files and specs: any bytes either make a sound graph or a clear error.
 *
 * Input: a spec up to the first newline; behind it, for specs of files, the file. Agents: 0 for files, else 12. A spec that would read a
 * file of this machine reads the bytes instead. */
#include "check.h"
#include "graph/graph.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_form(const reef_graph *graph)
{
    reef_csr csr = reef_graph_csr(graph);
    reef_error error;
    CHECK(csr.agents >= 1 && csr.start[0] == 0);
    for (ptrdiff_t k = 0; k < csr.agents; k++) {
        CHECK(csr.start[k] <= csr.start[k + 1]);
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
            CHECK(csr.senders[i] >= 0 && csr.senders[i] < csr.agents);
            CHECK(i == csr.start[k] || csr.senders[i - 1] < csr.senders[i]);
            CHECK(!reef_graph_symmetric(graph) || reef_csr_find(&csr, k, csr.senders[i]) >= 0);
        }
    }
    CHECK(reef_graph_check_weights(&csr, 1e-9, &error) == REEF_OK);
}

/* The other questions must answer something, whatever the graph. */
static void check_questions(const reef_graph *graph)
{
    reef_csr csr = reef_graph_csr(graph);
    reef_graph_facts facts;
    reef_spectrum spectrum = {.second = 0};
    reef_spectrum_options few = {.max_iterations = 50};
    bool *malicious = calloc((size_t)csr.agents, sizeof *malicious);
    double *p = calloc((size_t)csr.agents, sizeof *p);
    CHECK(malicious && p);
    reef_placement most = {.how = REEF_PLACE_WORST, .malicious_count = {REEF_MALICIOUS_MAX, 0}, .keep_majority = true};
    if (csr.start[csr.agents] < 5000) {
        CHECK(reef_graph_place_malicious(NULL, &csr, &most, malicious, NULL, NULL) == REEF_OK);
    }
    CHECK(reef_graph_check(NULL, &csr, malicious, &facts, NULL) == REEF_OK);
    CHECK(facts.by_count.holds);
    reef_status status = reef_graph_spectrum(NULL, &csr, NULL, &few, p, &spectrum, NULL);
    CHECK(status == REEF_OK || status == REEF_E_GRAPH);
    double sum = 0;
    for (ptrdiff_t k = 0; k < csr.agents && status == REEF_OK; k++) {
        CHECK(p[k] >= 0);
        sum += p[k];
    }
    CHECK(status != REEF_OK || (fabs(sum - 1) < 1e-9 && spectrum.second >= 0 && spectrum.second <= 1));
    free(malicious);
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t length = end ? (size_t)(end - data) : size;
    const char *file = end ? (const char *)end + 1 : "";
    rfi_numbers input;
    reef_graph *graph = NULL;
    reef_error error;
    char *spec = malloc(length + 1);
    CHECK(spec);
    if (length) {
        memcpy(spec, data, length);
    }
    spec[length] = '\0';
    ptrdiff_t agents = strstr(spec, "file") ? 0 : 12;
    rfi_numbers_memory(&input, "input", file, end ? size - length - 1 : 0);
    memset(&error, 0x5a, sizeof error);
    reef_status status = rfi_graph_make(NULL, &graph, spec, agents, 1, &input, &error);
    if (status == REEF_OK) {
        check_form(graph);
        check_questions(graph);
    } else {
        CHECK(!graph && error.status == status && error.text[0] != '\0');
        CHECK(memchr(error.text, '\0', sizeof error.text));
    }
    reef_graph_destroy(&graph);
    free(spec);
    return 0;
}
