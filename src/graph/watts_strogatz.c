/* watts_strogatz: a ring in which each agent hears k others, k / 2 on either side; then each link keeps one end and, with probability
 * p, moves the other to a random agent that it is not linked with. K k / 2 links both ways for any p. */
#include "graph/graph.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

typedef struct ws_params {
    int64_t k;
    double p;
    bool connected;
} ws_params;

static const reef_field ws_fields[] = {
    {.name = "k",
     .type = REEF_FIELD_INT,
     .offset = offsetof(ws_params, k),
     .preset = "4",
     .min = 2,
     .max = 1e9,
     .unit = "agents",
     .help = "number of neighbours on the ring, both sides together: even, below the number of agents"},
    {.name = "p",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(ws_params, p),
     .preset = "0.1",
     .min = 0,
     .max = 1,
     .unit = "",
     .help = "probability that a link is moved"},
    RFI_FIELD_CONNECTED(ws_params),
};

/* Link d of agent i goes to far[i half + d], so that i and j are linked if either has the other. */
typedef struct small_world {
    ptrdiff_t agents, half;
    int32_t *far;
} small_world;

static bool has(const small_world *w, ptrdiff_t i, ptrdiff_t j)
{
    for (ptrdiff_t d = 0; d < w->half; d++) {
        if (w->far[i * w->half + d] == j) {
            return true;
        }
    }
    return false;
}

/* Moves the far end of one link; an agent that is linked with nearly all others may keep it. */
static void move_link(const small_world *w, ptrdiff_t i, ptrdiff_t d, rfi_rng *rng)
{
    enum { TRIES = 100 };
    for (int t = 0; t < TRIES; t++) {
        ptrdiff_t j = (ptrdiff_t)rfi_rng_below(rng, (uint32_t)w->agents);
        if (j != i && !has(w, i, j) && !has(w, j, i)) {
            w->far[i * w->half + d] = (int32_t)j;
            return;
        }
    }
}

static void draw_world(rfi_draft *draft, const small_world *w, double p)
{
    rfi_rng rng;
    rfi_draft_rng(draft, 0, &rng);
    for (ptrdiff_t i = 0; i < w->agents; i++) {
        for (ptrdiff_t d = 0; d < w->half; d++) {
            w->far[i * w->half + d] = (int32_t)((i + d + 1) % w->agents);
        }
    }
    for (ptrdiff_t d = 0; d < w->half; d++) { /* the nearest of all agents first, as in the paper */
        for (ptrdiff_t i = 0; i < w->agents; i++) {
            if (rfi_rng_uniform(&rng) < p) {
                move_link(w, i, d, &rng);
            }
        }
    }
    for (ptrdiff_t i = 0; i < w->agents; i++) {
        for (ptrdiff_t d = 0; d < w->half; d++) {
            rfi_draft_link(draft, i, w->far[i * w->half + d]);
        }
    }
}

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const ws_params *p = params;
    if (p->k % 2 != 0 || p->k >= draft->agents) {
        return rfi_fail(error, REEF_E_RANGE,
                        "watts_strogatz: k = %lld must be even and below the number of agents, %td", (long long)p->k,
                        draft->agents);
    }
    reef_status status = rfi_draft_expect(draft, (double)draft->agents * (double)(p->k + 1), error);
    if (status != REEF_OK) {
        return status;
    }
    small_world world = {draft->agents, (ptrdiff_t)(p->k / 2), NULL};
    world.far = rfi_allocate_many(draft->context, world.agents * world.half, sizeof *world.far);
    if (!world.far) {
        return rfi_fail(error, REEF_E_NOMEM, "watts_strogatz: not enough memory for the links of %td agents",
                        draft->agents);
    }
    draw_world(draft, &world, p->p);
    rfi_release(draft->context, world.far);
    return REEF_OK;
}

static bool connected(const void *params)
{
    const ws_params *p = params;
    return p->connected;
}

static void advice(const void *params, ptrdiff_t agents, char *text, size_t size)
{
    size_t used = 0;
    (void)params;
    (void)agents;
    rfi_append(text, size, &used, "a larger k or a smaller p would do");
}

const rfi_graph_kind rfi_graph_watts_strogatz = {
    .kind = {.name = "watts_strogatz",
             .summary = "small world: a ring of k neighbours, each link moved at random with probability p",
             .citation = "Watts, Strogatz, Collective dynamics of 'small-world' networks, Nature 393 (1998)",
             .fields = ws_fields,
             .field_count = RFI_COUNT(ws_fields),
             .params_size = sizeof(ws_params)},
    .generate = generate,
    .connected = connected,
    .advice = advice,
};
