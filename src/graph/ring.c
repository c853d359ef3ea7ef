/* ring: each agent hears the k nearest on either side. K k links both ways (fewer if 2 k = K: the far one is met from both sides). */
#include "graph/graph.h"

#include "base/error.h"

typedef struct ring_params {
    int64_t k;
} ring_params;

static const reef_field ring_fields[] = {
    {.name = "k",
     .type = REEF_FIELD_INT,
     .offset = offsetof(ring_params, k),
     .preset = "1",
     .min = 1,
     .max = 1e9,
     .unit = "agents",
     .help = "number of neighbours on either side"},
};

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const ring_params *p = params;
    ptrdiff_t agents = draft->agents;
    if (agents > 1 && p->k > agents / 2) {
        return rfi_fail(error, REEF_E_RANGE, "ring: k = %lld is too much for %td agents; at most %td", (long long)p->k,
                        agents, agents / 2);
    }
    reef_status status = rfi_draft_expect(draft, (2 * (double)p->k + 1) * (double)agents, error);
    for (ptrdiff_t i = 0; i < agents && agents > 1 && status == REEF_OK; i++) {
        for (ptrdiff_t d = 1; d <= p->k; d++) {
            if (2 * d != agents || i < d) {
                rfi_draft_link(draft, i, (i + d) % agents);
            }
        }
    }
    return status;
}

const rfi_graph_kind rfi_graph_ring = {
    .kind = {.name = "ring",
             .summary = "each agent hears the k nearest on either side of a circle",
             .citation = "",
             .fields = ring_fields,
             .field_count = RFI_COUNT(ring_fields),
             .params_size = sizeof(ring_params)},
    .generate = generate,
};
