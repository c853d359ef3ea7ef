/* two_cliques: two complete halves, agents 0..h-1 and h..K-1 with h = ceil(K / 2), and a few links between them: agent i and agent
 * h + i for i < bridges. The hard case for anything that must cross. */
#include "graph/graph.h"

#include "base/error.h"

typedef struct cliques_params {
    int64_t bridges;
} cliques_params;

static const reef_field cliques_fields[] = {
    {.name = "bridges",
     .type = REEF_FIELD_INT,
     .offset = offsetof(cliques_params, bridges),
     .preset = "1",
     .min = 0,
     .max = 1e9,
     .unit = "links",
     .help = "number of links between the halves; 0 leaves them disconnected"},
};

static void add_clique(rfi_draft *draft, ptrdiff_t first, ptrdiff_t end)
{
    for (ptrdiff_t k = first; k < end; k++) {
        for (ptrdiff_t l = first; l < k; l++) {
            rfi_draft_link(draft, l, k);
        }
    }
}

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const cliques_params *p = params;
    ptrdiff_t half = (draft->agents + 1) / 2;
    if (p->bridges > draft->agents - half) {
        return rfi_fail(error, REEF_E_RANGE, "two_cliques: %lld bridges are too many for %td agents; at most %td",
                        (long long)p->bridges, draft->agents, draft->agents - half);
    }
    reef_status status = rfi_draft_expect(draft, 2.0 * (double)half * (double)half, error);
    if (status != REEF_OK) {
        return status;
    }
    add_clique(draft, 0, half);
    add_clique(draft, half, draft->agents);
    for (ptrdiff_t i = 0; i < p->bridges; i++) {
        rfi_draft_link(draft, i, half + i);
    }
    return REEF_OK;
}

const rfi_graph_kind rfi_graph_two_cliques = {
    .kind = {.name = "two_cliques",
             .summary = "two complete halves with a few links between them",
             .citation = "",
             .fields = cliques_fields,
             .field_count = RFI_COUNT(cliques_fields),
             .params_size = sizeof(cliques_params)},
    .generate = generate,
};
