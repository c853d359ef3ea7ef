/* Placing malicious agents: at random, where they do the most harm, or as listed; if wanted, only so many that every honest agent keeps a
 * strict majority of honest senders (Assumption 1 by count).
 *
 * Worst: greedy. spare_r is how many more malicious senders receiver r tolerates. The harm of making c malicious is
 *
 *   sum over honest r != c that hear c, spare_r >= 0, of a_cr / (1 + spare_r)
 *
 * so that receivers near their limit, and the weight c has with them, count most; one whose majority is lost no longer counts. After
 * each choice only the two-hop neighbourhood of c changes, which a heap follows. Ties go to the smaller number. */
#include "graph/graph.h"

#include "base/error.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>

typedef struct placing {
    const reef_context *context;
    const reef_csr *csr;
    bool keep;
    bool *malicious;
    ptrdiff_t wanted, placed;
    rfi_transpose out; /* who hears whom */
    int32_t *spare;    /* K */
    int32_t *order;    /* K: random order, or the heap of candidates by harm */
    int32_t *position; /* K: place in the heap, -1 if not in it */
    double *harm;      /* K */
    ptrdiff_t size;    /* of the heap */
} placing;

/* False if some honest receiver would lose its majority. c itself is no longer honest then. */
static bool is_allowed(const placing *p, ptrdiff_t c)
{
    for (ptrdiff_t i = p->out.start[c]; p->keep && i < p->out.start[c + 1]; i++) {
        int32_t r = p->out.receivers[i];
        if (r != c && !p->malicious[r] && rfi_counts(p->csr, p->out.places[i]) && p->spare[r] <= 0) {
            return false;
        }
    }
    return true;
}

static void place(placing *p, ptrdiff_t c)
{
    assert(!p->malicious[c]);
    p->malicious[c] = true;
    p->placed++;
    for (ptrdiff_t i = p->out.start[c]; i < p->out.start[c + 1]; i++) {
        if (rfi_counts(p->csr, p->out.places[i])) {
            p->spare[p->out.receivers[i]]--;
        }
    }
}

/* ---- random ---- */

/* Passes over a random order until nothing more fits: a candidate refused once may fit after its receivers have become malicious. */
static void place_random(placing *p, uint64_t seed)
{
    rfi_rng rng;
    ptrdiff_t before = -1;
    rfi_rng_init(&rng, seed, RFI_PURPOSE_MALICIOUS, 0, 0, 0);
    for (ptrdiff_t i = 0; i < p->csr->agents; i++) {
        ptrdiff_t j = (ptrdiff_t)rfi_rng_below(&rng, (uint32_t)i + 1);
        p->order[i] = p->order[j];
        p->order[j] = (int32_t)i;
    }
    while (p->placed < p->wanted && p->placed > before) {
        before = p->placed;
        for (ptrdiff_t i = 0; i < p->csr->agents && p->placed < p->wanted; i++) {
            ptrdiff_t c = p->order[i];
            if (!p->malicious[c] && is_allowed(p, c)) {
                place(p, c);
            }
        }
    }
}

/* ---- worst ---- */

static bool is_worse(const placing *p, int32_t a, int32_t b)
{
    return a < b ? p->harm[a] >= p->harm[b] : p->harm[a] > p->harm[b];
}

static void put(placing *p, ptrdiff_t at, int32_t c)
{
    assert(at >= 0 && at < p->csr->agents);
    p->order[at] = c;
    p->position[c] = (int32_t)at;
}

static void sift_up(placing *p, ptrdiff_t at)
{
    int32_t c = p->order[at];
    while (at > 0 && is_worse(p, c, p->order[(at - 1) / 2])) {
        put(p, at, p->order[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(p, at, c);
}

static void sift_down(placing *p, ptrdiff_t at)
{
    int32_t c = p->order[at];
    for (;;) {
        ptrdiff_t child = 2 * at + 1;
        if (child + 1 < p->size && is_worse(p, p->order[child + 1], p->order[child])) {
            child++;
        }
        if (child >= p->size || !is_worse(p, p->order[child], c)) {
            break;
        }
        put(p, at, p->order[child]);
        at = child;
    }
    put(p, at, c);
}

static void push(placing *p, int32_t c)
{
    put(p, p->size++, c);
    sift_up(p, p->size - 1);
}

static int32_t pop(placing *p)
{
    int32_t top = p->order[0];
    p->position[top] = -1;
    p->size--;
    if (p->size > 0) {
        put(p, 0, p->order[p->size]);
        sift_down(p, 0);
    }
    return top;
}

static double harm_of(const placing *p, ptrdiff_t c)
{
    double harm = 0;
    for (ptrdiff_t i = p->out.start[c]; i < p->out.start[c + 1]; i++) {
        int32_t r = p->out.receivers[i];
        if (r != c && !p->malicious[r] && p->spare[r] >= 0) {
            harm += p->csr->weight[p->out.places[i]] / (1 + (double)p->spare[r]);
        }
    }
    return harm;
}

static void refresh(placing *p, int32_t c)
{
    p->harm[c] = harm_of(p, c);
    if (p->position[c] >= 0) {
        sift_up(p, p->position[c]);
        sift_down(p, p->position[c]);
    }
}

/* All agents whose harm depends on receiver r. When r has become malicious, those that it ruled out are candidates again. */
static void refresh_senders(placing *p, ptrdiff_t r)
{
    for (ptrdiff_t i = p->csr->start[r]; i < p->csr->start[r + 1]; i++) {
        int32_t c = p->csr->senders[i];
        if (p->malicious[c]) {
            continue;
        }
        refresh(p, c);
        if (p->malicious[r] && p->position[c] < 0) {
            push(p, c);
        }
    }
}

static void place_worst(placing *p)
{
    for (ptrdiff_t k = 0; k < p->csr->agents; k++) {
        p->harm[k] = harm_of(p, k);
        push(p, (int32_t)k);
    }
    while (p->placed < p->wanted && p->size > 0) {
        int32_t c = pop(p);
        if (!is_allowed(p, c)) {
            continue;
        }
        place(p, c);
        refresh_senders(p, c);
        for (ptrdiff_t i = p->out.start[c]; i < p->out.start[c + 1]; i++) {
            int32_t r = p->out.receivers[i];
            if (r != c && !p->malicious[r]) {
                refresh_senders(p, r);
            }
        }
    }
}

/* ---- as told ---- */

static reef_status place_list(placing *p, const reef_placement *placement, reef_error *error)
{
    for (ptrdiff_t i = 0; i < placement->list_count; i++) {
        int32_t c = placement->list[i];
        if (c < 0 || c >= p->csr->agents || p->malicious[c]) {
            return rfi_fail(error, REEF_E_ARG, "agent %d cannot be malicious: %s", (int)c,
                            c < 0 || c >= p->csr->agents ? "there is no such agent" : "it is listed twice");
        }
        place(p, c);
    }
    for (ptrdiff_t k = 0; k < p->csr->agents; k++) {
        if (p->keep && !p->malicious[k] && p->spare[k] < 0) {
            return rfi_fail(error, REEF_E_MALICIOUS,
                            "with these malicious agents, agent %td has no honest majority among its senders", k);
        }
    }
    return REEF_OK;
}

static reef_status count_wanted(placing *p, const reef_placement *placement, reef_error *error)
{
    double agents = (double)p->csr->agents;
    double value = placement->malicious_count.value;
    bool fraction = placement->malicious_count.kind == REEF_MALICIOUS_FRACTION;
    if (placement->malicious_count.kind == REEF_MALICIOUS_MAX) {
        p->wanted = p->csr->agents;
        return p->keep ? REEF_OK
                       : rfi_fail(error, REEF_E_ARG,
                                  "malicious: max needs keep_majority=true; otherwise all agents would be malicious");
    }
    if (!(value >= 0 && value <= (fraction ? 1 : agents))) {
        return fraction ? rfi_fail(error, REEF_E_MALICIOUS, "malicious: the fraction %g is not from 0 to 1", value)
                        : rfi_fail(error, REEF_E_MALICIOUS, "malicious: %g of %td agents cannot be malicious", value,
                                   p->csr->agents);
    }
    /* 0.3 of 10 is 3, though 0.3 is a little less */
    p->wanted = (ptrdiff_t)floor(fraction ? value * agents * (1 + 1e-12) : value);
    p->wanted = p->wanted < p->csr->agents ? p->wanted : p->csr->agents;
    return REEF_OK;
}

#ifndef NDEBUG
/* What `keep` promises of every honest agent. */
static bool keeps_majority(const placing *p)
{
    bool all = true;
    for (ptrdiff_t k = 0; k < p->csr->agents; k++) {
        all = all && (!p->keep || p->malicious[k] || p->spare[k] >= 0);
    }
    return all;
}
#endif

static reef_status run(placing *p, const reef_placement *placement, reef_error *error)
{
    if (placement->how == REEF_PLACE_LIST) {
        return place_list(p, placement, error);
    }
    reef_status status = count_wanted(p, placement, error);
    if (status != REEF_OK) {
        return status;
    }
    if (placement->how == REEF_PLACE_WORST) {
        place_worst(p);
    } else {
        place_random(p, placement->seed);
    }
    assert(p->placed <= p->wanted && keeps_majority(p));
    if (p->placed < p->wanted && placement->malicious_count.kind != REEF_MALICIOUS_MAX) {
        return rfi_fail(
            error, REEF_E_MALICIOUS,
            "only %td of %td malicious agents could be placed such that every honest agent keeps an honest majority",
            p->placed, p->wanted);
    }
    return REEF_OK;
}

static void begin(placing *p)
{
    for (ptrdiff_t k = 0; k < p->csr->agents; k++) {
        ptrdiff_t senders = 0;
        for (ptrdiff_t i = p->csr->start[k]; i < p->csr->start[k + 1]; i++) {
            senders += rfi_counts(p->csr, i);
        }
        p->spare[k] = senders > 0 ? (int32_t)((senders - 1) / 2) : 0;
        p->position[k] = -1;
        p->malicious[k] = false;
    }
}

reef_status reef_graph_place_malicious(const reef_context *context, const reef_csr *csr,
                                       const reef_placement *placement, bool *malicious, ptrdiff_t *placed,
                                       reef_error *error)
{
    if (!csr || !csr->start || !csr->senders || !csr->weight || !placement || !malicious ||
        (placement->list_count > 0 && !placement->list)) {
        return rfi_fail(error, REEF_E_ARG,
                        "reef_graph_place_malicious: the graph, the placement or the flags are missing");
    }
    reef_status fits = rfi_check_size(placement->size, sizeof *placement, "reef_placement", error);
    if (fits != REEF_OK) {
        return fits;
    }
    ptrdiff_t agents = csr->agents;
    placing p = {.context = context, .csr = csr, .keep = placement->keep_majority, .malicious = malicious};
    p.harm = rfi_allocate_many(context, agents, sizeof(double) + 3 * sizeof(int32_t));
    if (!p.harm || !rfi_transpose_make(context, csr, &p.out)) {
        rfi_release(context, p.harm);
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to place malicious agents among %td", agents);
    }
    p.spare = (int32_t *)(void *)(p.harm + agents);
    p.order = p.spare + agents;
    p.position = p.order + agents;
    begin(&p);
    reef_status status = run(&p, placement, error);
    if (placed) {
        *placed = p.placed;
    }
    rfi_transpose_clear(context, &p.out);
    rfi_release(context, p.harm);
    return status;
}
