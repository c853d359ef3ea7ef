/* Links that change from round to round.
 *
 * Whether a link is up is drawn from counters (round, sender, receiver), never from a running stream: any round can be asked for by
 * anybody at any time. The graph of a round is drawn from the round alone, the senders that gossip keeps from (round, receiver). */
#include "graph/graph.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>

typedef struct common_params {
    int64_t every;
    int order;
    int lost;
} common_params;

enum { IN_TURN, AT_RANDOM };
enum { SHARE, SELF };
static const char *const orders[] = {"turn", "random", NULL};
static const char *const losses[] = {"share", "self", NULL};

static const reef_field common_fields[] = {
    {.name = "every",
     .type = REEF_FIELD_INT,
     .offset = offsetof(common_params, every),
     .preset = "1",
     .min = 1,
     .max = 1e15,
     .unit = "rounds",
     .help = "how long each graph lasts when there are several"},
    {.name = "order",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(common_params, order),
     .preset = "turn",
     .unit = "",
     .help = "which of several graphs is next: in turn, or at random",
     .words = orders},
    {.name = "lost",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(common_params, lost),
     .preset = "share",
     .unit = "",
     .help = "who gets the weight of links that are down: the others in proportion, or the agent itself, which keeps "
             "doubly stochastic weights so",
     .words = losses},
};

struct reef_links {
    reef_context *context;
    uint64_t seed;
    ptrdiff_t largest;
    ptrdiff_t kind;
    void *params; /* of the kind */
    common_params common;
    ptrdiff_t count;
    const reef_graph *graphs[];
};

/* One column in one round. `kept` is for gossip. */
typedef struct asking {
    const reef_links *links;
    int64_t round;
    ptrdiff_t receiver;
    ptrdiff_t size; /* senders beside itself */
    ptrdiff_t left; /* of these still to come */
    int64_t wanted; /* of these still to keep */
    rfi_rng rng;
} asking;

/* Rounds beyond 32 bits move on to other keys. */
static void init_rng(const reef_links *links, int64_t round, ptrdiff_t agent, ptrdiff_t other, uint64_t use,
                     rfi_rng *rng)
{
    uint64_t purpose = RFI_PURPOSE_LINKS + (use << 32) + ((uint64_t)round >> 32 << 40);
    rfi_rng_init(rng, links->seed, purpose, (uint32_t)agent, (uint32_t)other, (uint32_t)round);
}

enum { USE_ORDER, USE_FAILING, USE_GOSSIP };

/* ---- kinds ---- */

typedef struct link_kind {
    reef_kind head;
    void (*begin)(asking *ask);                 /* or NULL */
    bool (*is_up)(asking *ask, int32_t sender); /* asked for every sender but the receiver itself; NULL: always */
} link_kind;

typedef struct failing_params {
    double p;
    bool symmetric;
} failing_params;

static const reef_field failing_fields[] = {
    {.name = "p",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(failing_params, p),
     .preset = "0.1",
     .min = 0,
     .max = 1,
     .unit = "",
     .help = "probability that a link is down in a round"},
    {.name = "symmetric",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(failing_params, symmetric),
     .preset = "true",
     .unit = "",
     .help = "both ways of a link fail together"},
};

static bool failing_is_up(asking *ask, int32_t sender)
{
    const failing_params *p = ask->links->params;
    bool turned = p->symmetric && sender > ask->receiver;
    rfi_rng rng;
    init_rng(ask->links, ask->round, turned ? sender : ask->receiver, turned ? ask->receiver : sender, USE_FAILING,
             &rng);
    return rfi_rng_uniform(&rng) >= p->p;
}

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
     .help = "senders that each agent hears in a round beside itself, drawn anew in every round"},
};

static void gossip_begin(asking *ask)
{
    const gossip_params *p = ask->links->params;
    ask->left = ask->size;
    ask->wanted = p->keep < ask->size ? p->keep : ask->size;
    init_rng(ask->links, ask->round, ask->receiver, 0, USE_GOSSIP, &ask->rng);
}

/* Selection sampling (Fan, Muller, Rezucha 1962): every set of that size is equally likely, and the order is kept. */
static bool gossip_is_up(asking *ask, int32_t sender)
{
    (void)sender;
    bool chosen = (int64_t)rfi_rng_below(&ask->rng, (uint32_t)ask->left) < ask->wanted;
    ask->left--;
    ask->wanted -= chosen;
    return chosen;
}

static const link_kind kinds[] = {
    {.head = {.name = "static", .summary = "every link is always up", .citation = ""}},
    {.head = {.name = "failing",
              .summary = "each link is down in a round with probability p",
              .citation = "",
              .fields = failing_fields,
              .field_count = RFI_COUNT(failing_fields),
              .params_size = sizeof(failing_params)},
     .is_up = failing_is_up},
    {.head = {.name = "gossip",
              .summary = "each agent hears a few of its senders, others in every round",
              .citation = "Boyd, Ghosh, Prabhakar, Shah, Randomized gossip algorithms (2006)",
              .fields = gossip_fields,
              .field_count = RFI_COUNT(gossip_fields),
              .params_size = sizeof(gossip_params)},
     .begin = gossip_begin,
     .is_up = gossip_is_up},
};

ptrdiff_t reef_link_kind_count(void)
{
    return RFI_COUNT(kinds);
}

const reef_kind *reef_link_kind_at(ptrdiff_t index)
{
    return index >= 0 && index < RFI_COUNT(kinds) ? &kinds[index].head : NULL;
}

static const reef_kind *kind_of(const void *user, ptrdiff_t index)
{
    (void)user;
    return reef_link_kind_at(index);
}

static const char *name_of(const void *user, ptrdiff_t index)
{
    return kind_of(user, index)->name;
}

static const rfi_catalogue catalogue = {"kind of links", name_of, kind_of, NULL, RFI_COUNT(kinds)};

const reef_kind *reef_link_kind_find(const char *name)
{
    return name ? reef_link_kind_at(rfi_catalogue_find(&catalogue, (rfi_slice){name, strlen(name)})) : NULL;
}

const reef_field *reef_link_common_fields(ptrdiff_t *count)
{
    *count = RFI_COUNT(common_fields);
    return common_fields;
}

/* ---- making ---- */

static reef_status check_graphs(const reef_graph *const *graphs, ptrdiff_t count, reef_error *error)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        if (!graphs[i] || graphs[i]->agents != graphs[0]->agents) {
            return rfi_fail(error, REEF_E_ARG, "links: graph %td is missing or not of the same agents as the first", i);
        }
    }
    return REEF_OK;
}

reef_status reef_links_create(reef_context *context, reef_links **links, const char *spec,
                              const reef_graph *const *graphs, ptrdiff_t graph_count, uint64_t seed, reef_error *error)
{
    ptrdiff_t bytes = 0;
    if (!links || !spec || !graphs || graph_count < 1 || graph_count > UINT32_MAX) {
        return rfi_fail(error, REEF_E_ARG, "reef_links_create: links, spec or graphs are missing");
    }
    reef_status status = check_graphs(graphs, graph_count, error);
    if (status != REEF_OK) {
        return status;
    }
    bool fits = rfi_mul(graph_count, sizeof(const reef_graph *), &bytes) && rfi_add(bytes, sizeof(reef_links), &bytes);
    reef_links *made = fits ? rfi_allocate(context, (size_t)bytes) : NULL;
    if (!made) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the links of %td graphs", graph_count);
    }
    *made = (reef_links){.context = context, .seed = seed, .count = graph_count};
    for (ptrdiff_t i = 0; i < graph_count; i++) {
        made->graphs[i] = graphs[i];
        made->largest = graphs[i]->largest > made->largest ? graphs[i]->largest : made->largest;
    }
    rfi_target common = {{"links", common_fields, RFI_COUNT(common_fields)}, &made->common, NULL};
    status = rfi_spec_read(context, &catalogue, spec, &common, &made->kind, &made->params, error);
    if (status != REEF_OK) {
        reef_links_destroy(&made);
        return status;
    }
    *links = made;
    return REEF_OK;
}

void reef_links_destroy(reef_links **links)
{
    if (!links || !*links) {
        return;
    }
    const reef_context *context = (*links)->context;
    rfi_release(context, (*links)->params);
    rfi_release(context, *links);
    *links = NULL;
}

/* ---- asking ---- */

const reef_graph *reef_links_graph(const reef_links *links, int64_t round)
{
    int64_t turn = round / links->common.every;
    if (links->count == 1) {
        return links->graphs[0];
    }
    if (links->common.order == AT_RANDOM) {
        rfi_rng rng;
        init_rng(links, turn, 0, 0, USE_ORDER, &rng);
        return links->graphs[rfi_rng_below(&rng, (uint32_t)links->count)];
    }
    return links->graphs[(uint64_t)turn % (uint64_t)links->count];
}

bool reef_links_always_up(const reef_links *links)
{
    return kinds[links->kind].is_up == NULL;
}

ptrdiff_t rfi_links_graphs(const reef_links *links)
{
    return links->count;
}

const reef_graph *rfi_links_graph_at(const reef_links *links, ptrdiff_t index)
{
    return links->graphs[index];
}

bool rfi_links_fixed(const reef_links *links)
{
    return links->count == 1 && reef_links_always_up(links);
}

static uint64_t mark_bytes(uint64_t mark, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < count; i++) { /* FNV-1a */
        mark = (mark ^ p[i]) * 1099511628211U;
    }
    return mark;
}

uint64_t rfi_links_mark(const reef_links *links)
{
    char text[2048] = "";
    size_t used = 0;
    rfi_target common = {
        {"links", common_fields, RFI_COUNT(common_fields)}, (void *)(uintptr_t)&links->common, NULL}; /* only read */
    rfi_spec_print(&kinds[links->kind].head, links->params, &common, text, sizeof text, &used);
    uint64_t mark = mark_bytes(1469598103934665603U, text, strlen(text));
    mark = mark_bytes(mark, &links->seed, sizeof links->seed);
    for (ptrdiff_t i = 0; i < links->count; i++) {
        reef_csr csr = reef_graph_csr(links->graphs[i]);
        size_t count = (size_t)csr.start[csr.agents];
        mark = mark_bytes(mark, csr.start, (size_t)(csr.agents + 1) * sizeof *csr.start);
        mark = mark_bytes(mark, csr.senders, count * sizeof *csr.senders);
        mark = mark_bytes(mark, csr.weight, count * sizeof *csr.weight);
    }
    return mark;
}

ptrdiff_t reef_links_largest(const reef_links *links)
{
    return links->largest;
}

/* Weights to sum one: what is missing goes to the receiver itself (at `own`), or to all in proportion. */
static ptrdiff_t settle(const reef_links *links, ptrdiff_t count, ptrdiff_t own, double sum, double *weight)
{
    if (links->common.lost == SELF && own >= 0) {
        double others = sum - weight[own];
        weight[own] = others < 1 ? 1 - others : 0;
        return count;
    }
    if (!(sum > 0)) {
        return 0;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        weight[i] /= sum;
    }
    return count;
}

ptrdiff_t reef_links_eval(const reef_links *links, int64_t round, ptrdiff_t receiver, int32_t *senders, double *weight)
{
    const reef_graph *graph = reef_links_graph(links, round);
    const link_kind *kind = &kinds[links->kind];
    reef_csr csr = reef_graph_csr(graph);
    asking ask = {.links = links, .round = round, .receiver = receiver};
    ptrdiff_t count = 0;
    ptrdiff_t own = -1;
    double sum = 0;
    bool loop = reef_csr_find(&csr, receiver, receiver) >= 0;
    ask.size = csr.start[receiver + 1] - csr.start[receiver] - loop;
    if (kind->begin) {
        kind->begin(&ask);
    }
    for (ptrdiff_t i = csr.start[receiver]; i < csr.start[receiver + 1]; i++) {
        bool is_own = csr.senders[i] == receiver;
        if (!is_own && kind->is_up && !kind->is_up(&ask, csr.senders[i])) {
            continue;
        }
        own = is_own ? count : own;
        senders[count] = csr.senders[i];
        weight[count] = csr.weight[i];
        sum += csr.weight[i];
        count++;
    }
    if (count == csr.start[receiver + 1] - csr.start[receiver]) {
        return count; /* nothing is lost: the weights are the graph's, bit for bit */
    }
    return settle(links, count, own, sum, weight);
}
