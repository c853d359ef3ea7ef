/* The draft: links as a generator adds them, then sorted into compressed columns.
 *
 * Memory while building: 8 bytes per drafted link (16 with weights) and the graph itself. */
#include "graph/graph.h"

#include "base/error.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>

enum { BLOCK_LINKS = 1 << 16 };

struct rfi_draft_block {
    rfi_draft_block *before;
    ptrdiff_t count;
    double *weight; /* behind the links, or NULL */
    rfi_link link[];
};

static rfi_draft_block *new_block(const rfi_draft *draft)
{
    size_t links = sizeof(rfi_draft_block) + BLOCK_LINKS * sizeof(rfi_link);
    rfi_draft_block *block = rfi_allocate(draft->context, links + (draft->weighted ? BLOCK_LINKS * sizeof(double) : 0));
    if (block) {
        block->before = draft->last;
        block->count = 0;
        block->weight = draft->weighted ? (double *)(void *)((char *)block + links) : NULL;
    }
    return block;
}

void rfi_draft_add(rfi_draft *draft, ptrdiff_t sender, ptrdiff_t receiver, double weight)
{
    rfi_draft_block *block = draft->last;
    if (!block || block->count == BLOCK_LINKS) {
        block = draft->broken ? NULL : new_block(draft);
        if (!block) {
            draft->broken = true;
            return;
        }
        draft->last = block;
    }
    block->link[block->count] = (rfi_link){(int32_t)sender, (int32_t)receiver};
    if (block->weight) {
        block->weight[block->count] = weight;
    }
    block->count++;
    draft->count++;
}

reef_status rfi_draft_expect(const rfi_draft *draft, double links, reef_error *error)
{
    if (links > (double)REEF_LINKS_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%s: %td agents would have about %.3g links; at most %.3g are possible",
                        draft->name, draft->agents, links, (double)REEF_LINKS_MAX);
    }
    return REEF_OK;
}

void rfi_draft_clear(rfi_draft *draft)
{
    while (draft->last) {
        rfi_draft_block *before = draft->last->before;
        rfi_release(draft->context, draft->last);
        draft->last = before;
    }
    draft->count = 0;
    draft->broken = false;
}

void rfi_draft_rng(const rfi_draft *draft, uint32_t stream, rfi_rng *rng)
{
    rfi_rng_init(rng, draft->seed, RFI_PURPOSE_GRAPH, stream, draft->attempt, 0);
}

void rfi_graph_clear(reef_graph *graph)
{
    rfi_release(graph->context, graph->start);
    rfi_release(graph->context, graph->senders);
    rfi_release(graph->context, graph->weight);
    graph->start = NULL;
    graph->senders = NULL;
    graph->weight = NULL;
}

/* Loops that were drafted are left out without weights: `loops` decides then. */
static bool is_kept(const rfi_draft *draft, rfi_link link)
{
    return draft->weighted || link.sender != link.receiver;
}

/* True if a link is stored the other way round too. */
static bool has_way_back(const rfi_draft *draft, rfi_link link)
{
    return !draft->directed && link.sender != link.receiver;
}

/* start[k] = where the links of receiver k begin; start[K] = all of them. */
static void count_links(const rfi_draft *draft, ptrdiff_t *start)
{
    for (ptrdiff_t k = 0; k <= draft->agents; k++) {
        start[k] = k > 0 && draft->loops && !draft->weighted;
    }
    for (const rfi_draft_block *block = draft->last; block; block = block->before) {
        for (ptrdiff_t i = 0; i < block->count; i++) {
            rfi_link link = block->link[i];
            assert(link.sender >= 0 && link.sender < draft->agents);
            assert(link.receiver >= 0 && link.receiver < draft->agents);
            start[link.receiver + 1] += is_kept(draft, link);
            start[link.sender + 1] += has_way_back(draft, link);
        }
    }
    for (ptrdiff_t k = 0; k < draft->agents; k++) {
        start[k + 1] += start[k];
    }
}

static void put(reef_graph *graph, ptrdiff_t receiver, int32_t sender, double weight)
{
    ptrdiff_t place = graph->start[receiver]++;
    graph->senders[place] = sender;
    if (graph->weight) {
        graph->weight[place] = weight;
    }
}

/* Each start[k] runs to the end of its column while filling, and is moved back after. */
static void fill_links(const rfi_draft *draft, reef_graph *graph)
{
    for (ptrdiff_t k = 0; k < draft->agents && draft->loops && !draft->weighted; k++) {
        put(graph, k, (int32_t)k, 0);
    }
    for (const rfi_draft_block *block = draft->last; block; block = block->before) {
        for (ptrdiff_t i = 0; i < block->count; i++) {
            rfi_link link = block->link[i];
            double weight = block->weight ? block->weight[i] : 0;
            if (is_kept(draft, link)) {
                put(graph, link.receiver, link.sender, weight);
            }
            if (has_way_back(draft, link)) {
                put(graph, link.sender, link.receiver, weight);
            }
        }
    }
    for (ptrdiff_t k = draft->agents; k > 0; k--) {
        graph->start[k] = graph->start[k - 1];
    }
    graph->start[0] = 0;
}

/* ---- sorting one column, weights carried along ---- */

typedef struct column {
    int32_t *senders;
    double *weight; /* or NULL */
    ptrdiff_t count;
} column;

static void swap(const column *c, ptrdiff_t i, ptrdiff_t j)
{
    int32_t sender = c->senders[i];
    c->senders[i] = c->senders[j];
    c->senders[j] = sender;
    if (c->weight) {
        double weight = c->weight[i];
        c->weight[i] = c->weight[j];
        c->weight[j] = weight;
    }
}

static void sift_down(const column *c, ptrdiff_t root, ptrdiff_t end)
{
    for (ptrdiff_t child = 2 * root + 1; child < end; child = 2 * root + 1) {
        if (child + 1 < end && c->senders[child + 1] > c->senders[child]) {
            child++;
        }
        if (c->senders[root] >= c->senders[child]) {
            return;
        }
        swap(c, root, child);
        root = child;
    }
}

static bool is_sorted(const column *c)
{
    for (ptrdiff_t i = 1; i < c->count; i++) {
        if (c->senders[i - 1] > c->senders[i]) {
            return false;
        }
    }
    return true;
}

/* Short columns, which are the many, by insertion; long ones by heap: no memory, O(n log n) whatever comes. */
static void sort_column(const column *c)
{
    enum { SHORT = 32 };
    if (c->count <= SHORT) {
        for (ptrdiff_t i = 1; i < c->count; i++) {
            for (ptrdiff_t j = i; j > 0 && c->senders[j - 1] > c->senders[j]; j--) {
                swap(c, j - 1, j);
            }
        }
        return;
    }
    if (is_sorted(c)) {
        return;
    }
    for (ptrdiff_t root = c->count / 2 - 1; root >= 0; root--) {
        sift_down(c, root, c->count);
    }
    for (ptrdiff_t end = c->count - 1; end > 0; end--) {
        swap(c, 0, end);
        sift_down(c, 0, end);
    }
}

/* Sorts every column and moves them together where links were drafted twice. */
static reef_status tidy(const rfi_draft *draft, reef_graph *graph, reef_error *error)
{
    ptrdiff_t end = 0;   /* of what is tidy */
    ptrdiff_t begin = 0; /* of the column as filled */
    graph->largest = 0;
    for (ptrdiff_t k = 0; k < draft->agents; k++) {
        ptrdiff_t next = graph->start[k + 1];
        ptrdiff_t first = end;
        column c = {graph->senders + begin, graph->weight ? graph->weight + begin : NULL, next - begin};
        sort_column(&c);
        for (ptrdiff_t i = 0; i < c.count; i++) {
            if (end > first && graph->senders[end - 1] == c.senders[i]) {
                if (c.weight && graph->weight[end - 1] != c.weight[i]) {
                    return rfi_fail(error, REEF_E_WEIGHTS,
                                    "%s: the link %d -> %td is given twice, with weights %g and %g", draft->name,
                                    (int)c.senders[i], k, graph->weight[end - 1], c.weight[i]);
                }
                continue;
            }
            graph->senders[end] = c.senders[i];
            if (c.weight) {
                graph->weight[end] = c.weight[i];
            }
            end++;
        }
        begin = next;
        graph->start[k + 1] = end;
        graph->largest = end - first > graph->largest ? end - first : graph->largest;
    }
    return REEF_OK;
}

#ifndef NDEBUG
/* Columns end to end, each strictly ascending. */
static bool is_csr(const reef_graph *graph)
{
    bool tidy = graph->start[0] == 0;
    for (ptrdiff_t k = 0; k < graph->agents; k++) {
        tidy = tidy && graph->start[k] <= graph->start[k + 1];
        for (ptrdiff_t i = graph->start[k] + 1; i < graph->start[k + 1]; i++) {
            tidy = tidy && graph->senders[i - 1] < graph->senders[i];
        }
    }
    return tidy;
}
#endif

static bool all_have_way_back(const reef_csr *csr)
{
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
            if (reef_csr_find(csr, k, csr->senders[i]) < 0) {
                return false;
            }
        }
    }
    return true;
}

reef_status rfi_draft_build(const rfi_draft *draft, reef_graph *graph, reef_error *error)
{
    ptrdiff_t links = 0;
    ptrdiff_t drafted = draft->directed ? draft->count : 2 * draft->count;
    reef_status status = rfi_draft_expect(draft, (double)drafted + (double)draft->agents, error);
    if (status != REEF_OK) {
        return status;
    }
    graph->agents = draft->agents;
    graph->start = draft->broken ? NULL : rfi_allocate_many(graph->context, draft->agents + 1, sizeof *graph->start);
    if (graph->start) {
        count_links(draft, graph->start);
        links = graph->start[draft->agents];
        graph->senders = rfi_allocate_many(graph->context, links, sizeof *graph->senders);
    }
    if (graph->senders && draft->weighted) {
        graph->weight = rfi_allocate_many(graph->context, links, sizeof *graph->weight);
    }
    if (!graph->start || !graph->senders || (draft->weighted && !graph->weight)) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: not enough memory for %td agents and their links", draft->name,
                        draft->agents);
    }
    fill_links(draft, graph);
    status = tidy(draft, graph, error);
    if (status != REEF_OK) {
        return status;
    }
    assert(is_csr(graph));
    reef_csr csr = reef_graph_csr(graph);
    graph->symmetric = !draft->directed || all_have_way_back(&csr);
    return REEF_OK;
}
