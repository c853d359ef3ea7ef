/* Traversals of a graph: components, period, and the reversed graph. None of them is recursive, so that a line of a million agents
 * needs no more stack than a star. */
#include "graph/graph.h"

#include "base/memory.h"

#include <assert.h>

/* ---- strongly connected components (Tarjan 1972) ----
 * index: order of discovery; low: smallest index known to be reachable, DONE once the component is complete. */

enum { UNSEEN = -1, DONE = INT32_MAX };

typedef struct tarjan {
    const reef_csr *csr;
    const bool *skip;
    int32_t *index, *low;
    int32_t *stack;  /* agents whose component is open */
    int32_t *call;   /* agents on the way down */
    ptrdiff_t *next; /* next link of each agent on the way */
    ptrdiff_t stacked, depth;
    int32_t found;
    ptrdiff_t components;
} tarjan;

static void enter(tarjan *t, int32_t v)
{
    t->index[v] = t->low[v] = t->found++;
    t->next[v] = t->csr->start[v];
    t->stack[t->stacked++] = v;
    t->call[t->depth++] = v;
}

static void lower(int32_t *low, int32_t value)
{
    *low = value < *low ? value : *low;
}

/* All links of v are seen: closes its component if v was the first of it. */
static void leave(tarjan *t, int32_t v)
{
    t->depth--;
    if (t->low[v] < t->index[v]) {
        assert(t->depth > 0); /* v is not the root, hence has a caller */
        lower(&t->low[t->call[t->depth - 1]], t->low[v]);
        return;
    }
    int32_t u;
    do {
        assert(t->stacked > 0); /* v itself is below */
        u = t->stack[--t->stacked];
        t->low[u] = DONE;
    } while (u != v);
    t->components++;
}

static void search(tarjan *t, int32_t root)
{
    enter(t, root);
    while (t->depth > 0) {
        int32_t v = t->call[t->depth - 1];
        if (t->next[v] == t->csr->start[v + 1]) {
            leave(t, v);
            continue;
        }
        ptrdiff_t place = t->next[v]++;
        int32_t u = t->csr->senders[place];
        if (!rfi_counts(t->csr, place) || (t->skip && t->skip[u])) {
            continue;
        }
        if (t->index[u] == UNSEEN) {
            enter(t, u);
        } else if (t->low[u] != DONE) {
            lower(&t->low[v], t->index[u]);
        }
    }
}

/* One allocation for all arrays, the widest type first. */
ptrdiff_t rfi_components(const reef_context *context, const reef_csr *csr, const bool *skip)
{
    ptrdiff_t agents = csr->agents;
    tarjan t = {.csr = csr, .skip = skip};
    t.next = rfi_allocate_many(context, agents, sizeof *t.next + 4 * sizeof(int32_t));
    if (!t.next) {
        return -1;
    }
    t.index = (int32_t *)(void *)(t.next + agents);
    t.low = t.index + agents;
    t.stack = t.low + agents;
    t.call = t.stack + agents;
    for (ptrdiff_t k = 0; k < agents; k++) {
        t.index[k] = UNSEEN;
    }
    for (ptrdiff_t k = 0; k < agents; k++) {
        if (t.index[k] == UNSEEN && !(skip && skip[k])) {
            search(&t, (int32_t)k);
        }
    }
    assert(t.stacked == 0 && t.depth == 0 && t.components <= agents); /* each agent is in one component */
    rfi_release(context, t.next);
    return t.components;
}

/* ---- period: the greatest common divisor of level(u) + 1 - level(v) over all links u - v, level by breadth first ---- */

static ptrdiff_t divisor(ptrdiff_t a, ptrdiff_t b)
{
    while (b != 0) {
        ptrdiff_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

static ptrdiff_t walk_levels(const reef_csr *csr, const bool *skip, int32_t root, int32_t *level, int32_t *queue)
{
    ptrdiff_t period = 0;
    ptrdiff_t queued = 0;
    level[root] = 0;
    queue[queued++] = root;
    for (ptrdiff_t i = 0; i < queued; i++) {
        int32_t v = queue[i];
        for (ptrdiff_t place = csr->start[v]; place < csr->start[v + 1]; place++) {
            int32_t u = csr->senders[place];
            if (!rfi_counts(csr, place) || (skip && skip[u])) {
                continue;
            }
            if (level[u] == UNSEEN) {
                level[u] = level[v] + 1;
                queue[queued++] = u;
            } else {
                period = divisor(period, (ptrdiff_t)level[v] + 1 - level[u]);
            }
        }
    }
    return period;
}

ptrdiff_t rfi_period(const reef_context *context, const reef_csr *csr, const bool *skip)
{
    int32_t *level = rfi_allocate_many(context, csr->agents, 2 * sizeof *level);
    int32_t root = -1;
    if (!level) {
        return -1;
    }
    for (ptrdiff_t k = csr->agents - 1; k >= 0; k--) {
        level[k] = UNSEEN;
        root = skip && skip[k] ? root : (int32_t)k;
    }
    ptrdiff_t period = root < 0 ? 0 : walk_levels(csr, skip, root, level, level + csr->agents);
    rfi_release(context, level);
    return period;
}

/* ---- transpose ---- */

bool rfi_transpose_make(const reef_context *context, const reef_csr *csr, rfi_transpose *transpose)
{
    ptrdiff_t links = csr->start[csr->agents];
    transpose->start = rfi_allocate_many(context, csr->agents + 1, sizeof *transpose->start);
    transpose->receivers = rfi_allocate_many(context, links, sizeof *transpose->receivers);
    transpose->places = rfi_allocate_many(context, links, sizeof *transpose->places);
    if (!transpose->start || !transpose->receivers || !transpose->places) {
        rfi_transpose_clear(context, transpose);
        return false;
    }
    ptrdiff_t *start = transpose->start;
    for (ptrdiff_t l = 0; l <= csr->agents; l++) {
        start[l] = 0;
    }
    for (ptrdiff_t place = 0; place < links; place++) {
        start[csr->senders[place]]++;
    }
    for (ptrdiff_t l = 1; l <= csr->agents; l++) { /* now the end of each list; filled from the back */
        start[l] += start[l - 1];
    }
    for (ptrdiff_t k = csr->agents - 1; k >= 0; k--) {
        for (ptrdiff_t place = csr->start[k]; place < csr->start[k + 1]; place++) {
            ptrdiff_t to = --start[csr->senders[place]];
            transpose->receivers[to] = (int32_t)k;
            transpose->places[to] = (int32_t)place;
        }
    }
    assert(start[0] == 0 && start[csr->agents] == links);
    return true;
}

void rfi_transpose_clear(const reef_context *context, rfi_transpose *transpose)
{
    rfi_release(context, transpose->start);
    rfi_release(context, transpose->receivers);
    rfi_release(context, transpose->places);
    *transpose = (rfi_transpose){0};
}
