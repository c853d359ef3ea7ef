/* barabasi_albert: agents arrive one by one, and each links with m earlier ones, chosen with probability proportional to the
 * links they have. The first m + 1 agents are all linked. m (m + 1) / 2 + (K - m - 1) m links both ways.
 *
 * Both ends of every link are kept in one list: a random entry of it is an agent drawn in proportion to its degree. */
#include "graph/graph.h"

#include "base/error.h"
#include "base/memory.h"

typedef struct ba_params {
    int64_t m;
} ba_params;

static const reef_field ba_fields[] = {
    {.name = "m",
     .type = REEF_FIELD_INT,
     .offset = offsetof(ba_params, m),
     .preset = "2",
     .min = 1,
     .max = 1e6,
     .unit = "agents",
     .help = "earlier agents that each new one links with"},
};

/* Links agent k with m others; ends[0..count) are the ends so far. Link number i of k is at count + 2 i. */
static void attach(int32_t *ends, ptrdiff_t count, ptrdiff_t k, ptrdiff_t m, rfi_rng *rng)
{
    for (ptrdiff_t i = 0; i < m;) {
        int32_t other = ends[rfi_rng_below(rng, (uint32_t)count)];
        bool fresh = true;
        for (ptrdiff_t j = 0; j < i; j++) {
            fresh = fresh && ends[count + 2 * j] != other;
        }
        if (fresh) { /* there are m + 1 or more to find */
            ends[count + 2 * i] = other;
            ends[count + 2 * i + 1] = (int32_t)k;
            i++;
        }
    }
}

static ptrdiff_t link_first(int32_t *ends, ptrdiff_t m)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t k = 0; k <= m; k++) {
        for (ptrdiff_t l = 0; l < k; l++) {
            ends[count++] = (int32_t)l;
            ends[count++] = (int32_t)k;
        }
    }
    return count;
}

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const ba_params *p = params;
    ptrdiff_t m = (ptrdiff_t)p->m;
    ptrdiff_t agents = draft->agents;
    if (agents <= m) {
        return rfi_fail(error, REEF_E_RANGE, "barabasi_albert: m = %td needs more than %td agents", m, agents);
    }
    ptrdiff_t room = m * (m + 1) + 2 * m * (agents - m - 1); /* < 2^52: no overflow */
    reef_status status = rfi_draft_expect(draft, (double)room + (double)agents, error);
    if (status != REEF_OK) {
        return status;
    }
    int32_t *ends = rfi_allocate_many(draft->context, room, sizeof *ends);
    if (!ends) {
        return rfi_fail(error, REEF_E_NOMEM, "barabasi_albert: not enough memory for the links of %td agents", agents);
    }
    rfi_rng rng;
    rfi_draft_rng(draft, 0, &rng);
    ptrdiff_t count = link_first(ends, m);
    for (ptrdiff_t k = m + 1; k < agents; k++, count += 2 * m) {
        attach(ends, count, k, m, &rng);
    }
    for (ptrdiff_t i = 0; i < count; i += 2) {
        rfi_draft_link(draft, ends[i], ends[i + 1]);
    }
    rfi_release(draft->context, ends);
    return REEF_OK;
}

const rfi_graph_kind rfi_graph_barabasi_albert = {
    .kind = {.name = "barabasi_albert",
             .summary = "scale-free: each new agent links with m earlier ones, the well-linked ones first",
             .citation = "Barabasi, Albert, Emergence of scaling in random networks, Science 286 (1999)",
             .fields = ba_fields,
             .field_count = RFI_COUNT(ba_fields),
             .params_size = sizeof(ba_params)},
    .generate = generate,
};
