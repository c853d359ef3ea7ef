/* Helpers for tests of graphs. */
#include "support/graphs.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const graph_specs[] = {
    "complete",
    "ring",
    "ring:k=3",
    "ring:k=6",
    "line",
    "star",
    "star:centre=5",
    "grid",
    "grid:rows=2",
    "grid:torus=true",
    "grid:rows=1,torus=true",
    "two_cliques",
    "two_cliques:bridges=3",
    "erdos_renyi",
    "erdos_renyi:p=0.5",
    "erdos_renyi:p=1",
    "erdos_renyi:directed=true,p=0.6",
    "erdos_renyi:p=0.05,connected=false",
    "geometric",
    "geometric:radius=0.6",
    "geometric:radius=2",
    "geometric:radius=0.1,connected=false",
    "regular",
    "regular:degree=3",
    "regular:degree=9",
    "regular:degree=2,connected=false",
    "watts_strogatz",
    "watts_strogatz:k=6,p=1",
    "watts_strogatz:k=2,p=0",
    "barabasi_albert",
    "barabasi_albert:m=1",
    "barabasi_albert:m=5",
};
const ptrdiff_t graph_specs_count = COUNT(graph_specs);

reef_graph *make_graph(const char *spec, ptrdiff_t agents, uint64_t seed)
{
    reef_graph *graph = NULL;
    reef_error error = {REEF_OK, ""};
    reef_status status = reef_graph_create(NULL, &graph, spec, agents, seed, &error);
    CHECK(status == REEF_OK, "%s with %td agents: %s", spec, agents, error.text);
    return graph;
}

void check_graph_form(const reef_graph *graph, const char *what)
{
    reef_csr csr = reef_graph_csr(graph);
    ptrdiff_t largest = 0;
    assert_int_equal(csr.start[0], 0);
    assert_int_equal(csr.start[csr.agents], reef_graph_links(graph));
    for (ptrdiff_t k = 0; k < csr.agents; k++) {
        ptrdiff_t size = csr.start[k + 1] - csr.start[k];
        CHECK(size >= 0, "%s: list of agent %td", what, k);
        largest = size > largest ? size : largest;
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
            int32_t l = csr.senders[i];
            CHECK(l >= 0 && l < csr.agents, "%s: agent %td hears %d", what, k, (int)l);
            CHECK(i == csr.start[k] || csr.senders[i - 1] < l, "%s: senders of agent %td are not ascending", what, k);
            CHECK(reef_csr_find(&csr, l, k) == i, "%s: link %d -> %td is not found", what, (int)l, k);
        }
    }
    assert_int_equal(largest, reef_graph_largest(graph));
}

void check_graph_both_ways(const reef_graph *graph, const char *what)
{
    reef_csr csr = reef_graph_csr(graph);
    CHECK(reef_graph_symmetric(graph), "%s says that it is not symmetric", what);
    for (ptrdiff_t k = 0; k < csr.agents; k++) {
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
            CHECK(reef_csr_find(&csr, k, csr.senders[i]) >= 0, "%s: %d -> %td has no way back", what,
                  (int)csr.senders[i], k);
        }
    }
}

bool same_links(const reef_graph *a, const reef_graph *b)
{
    reef_csr x = reef_graph_csr(a);
    reef_csr y = reef_graph_csr(b);
    ptrdiff_t links = reef_graph_links(a);
    return x.agents == y.agents && links == reef_graph_links(b) &&
           memcmp(x.start, y.start, (size_t)(x.agents + 1) * sizeof *x.start) == 0 &&
           memcmp(x.senders, y.senders, (size_t)links * sizeof *x.senders) == 0;
}

/* Spreads along all links until nothing changes: slow and plain. */
static bool reaches_all(const reef_csr *csr, bool backwards)
{
    bool *seen = calloc((size_t)csr->agents, sizeof *seen);
    bool changed = true;
    ptrdiff_t count = 1;
    assert_non_null(seen);
    seen[0] = true;
    while (changed) {
        changed = false;
        for (ptrdiff_t k = 0; k < csr->agents; k++) {
            for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
                ptrdiff_t from = backwards ? k : csr->senders[i];
                ptrdiff_t to = backwards ? csr->senders[i] : k;
                if (seen[from] && !seen[to]) {
                    seen[to] = true;
                    count++;
                    changed = true;
                }
            }
        }
    }
    free(seen);
    return count == csr->agents;
}

bool is_strongly_connected(const reef_graph *graph)
{
    reef_csr csr = reef_graph_csr(graph);
    return reaches_all(&csr, false) && reaches_all(&csr, true);
}

void write_temporary(const char *text, char *path)
{
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, 256, "%s/reef-test-XXXXXX", folder ? folder : "/tmp");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    assert_int_equal(close(file), 0);
}
