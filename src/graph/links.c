/* Links that change from round to round.
 *
 * Whether a link is up is drawn from counters (round, sender, receiver), never from a running stream: any round can be evaluated
 * by any thread or process at any time. The graph of a round is drawn from the round alone, the senders that gossip keeps from (round, receiver). */
#include "graph/links/links.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>
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
             "weights doubly stochastic",
     .words = losses},
};

struct reef_links {
    reef_context *context;
    uint64_t seed;
    ptrdiff_t largest;
    const rfi_link_kind *kind;
    void *params; /* of the kind */
    common_params common;
    ptrdiff_t count;
    const reef_graph *graphs[];
};

/* Rounds beyond 32 bits move on to other keys. */
void rfi_links_rng(uint64_t seed, int64_t round, ptrdiff_t agent, ptrdiff_t other, rfi_links_use use, rfi_rng *rng)
{
    uint64_t purpose = RFI_PURPOSE_LINKS + ((uint64_t)use << 32) + ((uint64_t)round >> 32 << 40);
    rfi_rng_init(rng, seed, purpose, (uint32_t)agent, (uint32_t)other, (uint32_t)round);
}

static const reef_kind *const kinds[] = {
#define RFI_LINKS(name) &rfi_links_##name.kind,
#include "graph/links/links_list.h"
#undef RFI_LINKS
};

const rfi_family rfi_family_links = {.number = REEF_FAMILY_LINKS,
                                     .name = "links",
                                     .what = "kind of links",
                                     .builtin = kinds,
                                     .builtin_count = RFI_COUNT(kinds),
                                     .common = {"links", common_fields, RFI_COUNT(common_fields)}};

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
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the links of %td graphs", graph_count);
    }
    *made = (reef_links){.context = context, .seed = seed, .count = graph_count};
    for (ptrdiff_t i = 0; i < graph_count; i++) {
        made->graphs[i] = graphs[i];
        made->largest = graphs[i]->largest > made->largest ? graphs[i]->largest : made->largest;
    }
    const reef_kind *kind = NULL;
    status = rfi_spec_read(context, &rfi_family_links, spec, &made->common, &kind, &made->params, error);
    if (status != REEF_OK) {
        reef_links_destroy(&made);
        return status;
    }
    made->kind = (const void *)kind;
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
    if (!links) {
        return NULL;
    }
    assert(links->common.every >= 1 && links->count >= 1);
    int64_t turn = round / links->common.every;
    if (links->count == 1) {
        return links->graphs[0];
    }
    if (links->common.order == AT_RANDOM) {
        rfi_rng rng;
        rfi_links_rng(links->seed, turn, 0, 0, RFI_USE_ORDER, &rng);
        return links->graphs[rfi_rng_below(&rng, (uint32_t)links->count)];
    }
    return links->graphs[(uint64_t)turn % (uint64_t)links->count];
}

bool reef_links_always_up(const reef_links *links)
{
    if (!links) {
        return false;
    }
    return links->kind->is_up == NULL;
}

ptrdiff_t rfi_links_graphs(const reef_links *links)
{
    return links->count;
}

const reef_graph *rfi_links_graph_at(const reef_links *links, ptrdiff_t index)
{
    assert(index >= 0 && index < links->count);
    return links->graphs[index];
}

bool rfi_links_fixed(const reef_links *links)
{
    return links->count == 1 && reef_links_always_up(links);
}

uint64_t rfi_links_mark(const reef_links *links)
{
    char text[2048] = "";
    size_t used = 0;
    rfi_spec_print(&rfi_family_links, &links->kind->kind, links->params, &links->common, text, sizeof text, &used);
    uint64_t mark = rfi_hash_bytes(RFI_HASH_START, text, strlen(text));
    mark = rfi_hash_bytes(mark, &links->seed, sizeof links->seed);
    for (ptrdiff_t i = 0; i < links->count; i++) {
        reef_csr csr = reef_graph_csr(links->graphs[i]);
        size_t count = (size_t)csr.start[csr.agents];
        mark = rfi_hash_bytes(mark, csr.start, (size_t)(csr.agents + 1) * sizeof *csr.start);
        mark = rfi_hash_bytes(mark, csr.senders, count * sizeof *csr.senders);
        mark = rfi_hash_bytes(mark, csr.weight, count * sizeof *csr.weight);
    }
    return mark;
}

ptrdiff_t reef_links_largest(const reef_links *links)
{
    if (!links) {
        return 0;
    }
    return links->largest;
}

/* Weights to sum one: what is missing goes to the receiver itself (at `own`), or to all in proportion. */
static ptrdiff_t settle(const reef_links *links, ptrdiff_t count, ptrdiff_t own, double sum, double *weight)
{
    assert(own < count && sum >= 0 && sum <= 1 + RFI_COLUMN_TOLERANCE);
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
    if (!links) {
        return 0;
    }
    const reef_graph *graph = reef_links_graph(links, round);
    const rfi_link_kind *kind = links->kind;
    reef_csr csr = reef_graph_csr(graph);
    rfi_asking ask = {.params = links->params, .seed = links->seed, .round = round, .receiver = receiver};
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
    assert(count <= links->largest); /* the room that callers have */
    if (count == csr.start[receiver + 1] - csr.start[receiver]) {
        return count; /* nothing is lost: the weights are the graph's, bit for bit */
    }
    return settle(links, count, own, sum, weight);
}
