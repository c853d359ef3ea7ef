/* complete: every agent hears every other. K (K - 1) / 2 links both ways. */
#include "graph/graph.h"

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    (void)params;
    double agents = (double)draft->agents;
    reef_status status = rfi_draft_expect(draft, agents * agents, error);
    for (ptrdiff_t k = 0; k < draft->agents && status == REEF_OK; k++) {
        for (ptrdiff_t l = 0; l < k; l++) {
            rfi_draft_link(draft, l, k);
        }
    }
    return status;
}

const rfi_graph_kind rfi_graph_complete = {
    .kind = {.name = "complete", .summary = "every agent hears every other", .citation = ""},
    .generate = generate,
};
