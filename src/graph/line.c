/* line: each agent hears the one before and the one after. K - 1 links both ways. */
#include "graph/graph.h"

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    (void)params;
    (void)error;
    for (ptrdiff_t k = 1; k < draft->agents; k++) {
        rfi_draft_link(draft, k - 1, k);
    }
    return REEF_OK;
}

const rfi_graph_kind rfi_graph_line = {
    .kind = {.name = "line", .summary = "each agent hears the one before and the one after", .citation = ""},
    .generate = generate,
};
