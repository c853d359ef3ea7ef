/* star: all agents and one centre hear each other. K - 1 links both ways. */
#include "graph/graph.h"

#include "base/error.h"

typedef struct star_params {
    int64_t centre;
} star_params;

static const reef_field star_fields[] = {
    {.name = "centre",
     .type = REEF_FIELD_INT,
     .offset = offsetof(star_params, centre),
     .preset = "0",
     .min = 0,
     .max = 2e9,
     .unit = "",
     .help = "number of the agent in the middle, from 0"},
};

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const star_params *p = params;
    if (p->centre >= draft->agents) {
        return rfi_fail(error, REEF_E_RANGE, "star: the centre is agent %lld, and there are agents 0 to %td",
                        (long long)p->centre, draft->agents - 1);
    }
    for (ptrdiff_t k = 0; k < draft->agents; k++) {
        if (k != p->centre) {
            rfi_draft_link(draft, (ptrdiff_t)p->centre, k);
        }
    }
    return REEF_OK;
}

const rfi_graph_kind rfi_graph_star = {
    .kind = {.name = "star",
             .summary = "all agents exchange with one central agent only",
             .citation = "",
             .fields = star_fields,
             .field_count = RFI_COUNT(star_fields),
             .params_size = sizeof(star_params)},
    .generate = generate,
};
