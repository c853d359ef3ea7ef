/* Each agent hears a few of its senders, different ones in every round. */
#include "graph/links/links.h"

typedef struct gossip_params {
    int64_t keep;
} gossip_params;

static const reef_field gossip_fields[] = {
    {.name = "keep",
     .type = REEF_FIELD_INT,
     .offset = offsetof(gossip_params, keep),
     .preset = "1",
     .min = 0,
     .max = 1e9,
     .unit = "agents",
     .help = "senders that each agent hears in a round besides itself, drawn anew in every round"},
};

static void gossip_begin(rfi_asking *ask)
{
    const gossip_params *p = ask->params;
    ask->left = ask->size;
    ask->wanted = p->keep < ask->size ? p->keep : ask->size;
    rfi_links_rng(ask->seed, ask->round, ask->receiver, 0, RFI_USE_GOSSIP, &ask->rng);
}

/* Selection sampling (Fan, Muller, Rezucha 1962): every set of that size is equally likely, and the order is kept. */
static bool gossip_is_up(rfi_asking *ask, int32_t sender)
{
    (void)sender;
    bool chosen = (int64_t)rfi_rng_below(&ask->rng, (uint32_t)ask->left) < ask->wanted;
    ask->left--;
    ask->wanted -= chosen;
    return chosen;
}

const rfi_link_kind rfi_links_gossip = {
    .kind = {.name = "gossip",
             .summary = "each agent hears a few of its senders, drawn anew in every round",
             .citation = "Boyd, Ghosh, Prabhakar, Shah, Randomized gossip algorithms (2006)",
             .fields = gossip_fields,
             .field_count = RFI_COUNT(gossip_fields),
             .params_size = sizeof(gossip_params)},
    .begin = gossip_begin,
    .is_up = gossip_is_up};
