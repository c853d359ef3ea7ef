/* regular: a random graph in which every agent has the same degree d.
 *
 * Pairing: each agent has d ends, and all ends are paired at random (Bollobas 1980). Pairs that make a loop or a second link between
 * two agents are repaired by swapping ends with a random other pair, without spoiling anything:
 *
 *   (s, s') (t, t')  ->  (s, t) (s', t')      if neither of the new links is a loop or there already
 *
 * For d > (K - 1) / 2 the complement, which is regular of degree K - 1 - d, is drawn instead: there a swap is always easy to find. */
#include "graph/graph.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <string.h>

typedef struct regular_params {
    int64_t degree;
    bool connected;
} regular_params;

static const reef_field regular_fields[] = {
    {.name = "degree",
     .type = REEF_FIELD_INT,
     .offset = offsetof(regular_params, degree),
     .preset = "4",
     .min = 0,
     .max = 1e9,
     .unit = "agents",
     .help = "neighbours of every agent, itself not counted; degree times agents must be even"},
    RFI_FIELD_CONNECTED(regular_params),
};

/* Ends are numbered: agent v owns ends v d .. v d + d - 1. mate[s] is the end that s is paired with. */
typedef struct pairing {
    int32_t degree;
    int32_t ends;
    int32_t *mate;
} pairing;

static int32_t owner(const pairing *p, int32_t end)
{
    return end / p->degree;
}

static bool are_linked(const pairing *p, int32_t u, int32_t v)
{
    for (int32_t s = u * p->degree; s < (u + 1) * p->degree; s++) {
        if (owner(p, p->mate[s]) == v) {
            return true;
        }
    }
    return false;
}

static void join(const pairing *p, int32_t s, int32_t t)
{
    p->mate[s] = t;
    p->mate[t] = s;
}

static bool try_switch(const pairing *p, int32_t s, int32_t t)
{
    int32_t s_mate = p->mate[s];
    int32_t t_mate = p->mate[t];
    int32_t a = owner(p, s);
    int32_t b = owner(p, t);
    int32_t c = owner(p, s_mate);
    int32_t d = owner(p, t_mate);
    if (t == s || t == s_mate || a == b || c == d || (a == c && b == d) || (a == d && b == c) || are_linked(p, a, b) ||
        are_linked(p, c, d)) {
        return false;
    }
    join(p, s, t);
    join(p, s_mate, t_mate);
    return true;
}

/* ends become randomly paired; order has room for them. */
static void pair_ends(const pairing *p, int32_t *order, rfi_rng *rng)
{
    for (int32_t i = 0; i < p->ends; i++) { /* inside-out shuffle */
        int32_t j = (int32_t)rfi_rng_below(rng, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int32_t i = 0; i + 1 < p->ends; i += 2) {
        join(p, order[i], order[i + 1]);
    }
}

/* Repairs the pair of end s; false if a fair number of tries did not: tiny graphs can be stuck. */
static bool repair_one(const pairing *p, int32_t s, rfi_rng *rng)
{
    enum { TRIES = 2000 };
    for (int i = 0; i < TRIES; i++) {
        if (try_switch(p, s, (int32_t)rfi_rng_below(rng, (uint32_t)p->ends))) {
            return true;
        }
    }
    return false;
}

/* seen[v] == u: agent u has met a link with v already. No switch touches a link that is good. */
static bool repair(const pairing *p, int32_t *seen, rfi_rng *rng)
{
    int32_t agents = p->ends / p->degree;
    for (int32_t v = 0; v < agents; v++) {
        seen[v] = -1;
    }
    for (int32_t s = 0; s < p->ends; s++) {
        int32_t u = owner(p, s);
        int32_t v = owner(p, p->mate[s]);
        if ((u == v || seen[v] == u) && !repair_one(p, s, rng)) {
            return false;
        }
        seen[owner(p, p->mate[s])] = u;
    }
    return true;
}

static reef_status draw_pairing(const rfi_draft *draft, const pairing *p, reef_error *error)
{
    enum { RESTARTS = 100 };
    rfi_rng rng;
    bool good = false;
    int32_t *order = rfi_allocate_many(draft->context, p->ends, sizeof *order);
    if (!order) {
        return rfi_fail(error, REEF_E_NOMEM, "regular: not enough memory for %d ends of links", (int)p->ends);
    }
    rfi_draft_rng(draft, 0, &rng);
    for (int i = 0; i < RESTARTS && !good; i++) {
        pair_ends(p, order, &rng);
        good = repair(p, order, &rng); /* order has done its work, and has room for all agents */
    }
    rfi_release(draft->context, order);
    return good ? REEF_OK
                : rfi_fail(error, REEF_E_GRAPH, "regular: %td agents of degree %d could not be paired", draft->agents,
                           (int)p->degree);
}

static void link_pairs(rfi_draft *draft, const pairing *p)
{
    for (int32_t s = 0; s < p->ends; s++) {
        if (s < p->mate[s]) {
            rfi_draft_link(draft, owner(p, s), owner(p, p->mate[s]));
        }
    }
}

/* Links where the pairing has none. */
static reef_status link_complement(rfi_draft *draft, const pairing *p, reef_error *error)
{
    bool *linked = rfi_allocate_many(draft->context, draft->agents, sizeof *linked);
    if (!linked) {
        return rfi_fail(error, REEF_E_NOMEM, "regular: not enough memory for %td agents", draft->agents);
    }
    for (ptrdiff_t u = 0; u < draft->agents; u++) {
        memset(linked, 0, (size_t)draft->agents * sizeof *linked);
        for (ptrdiff_t s = u * p->degree; s < (u + 1) * p->degree; s++) {
            linked[owner(p, p->mate[s])] = true;
        }
        for (ptrdiff_t v = 0; v < u; v++) {
            if (!linked[v]) {
                rfi_draft_link(draft, v, u);
            }
        }
    }
    rfi_release(draft->context, linked);
    return REEF_OK;
}

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const regular_params *p = params;
    ptrdiff_t agents = draft->agents;
    if (p->degree >= agents || (p->degree % 2 != 0 && agents % 2 != 0)) {
        return rfi_fail(error, REEF_E_RANGE,
                        "regular: %td agents cannot all have degree %lld; it must be below their number, and even if "
                        "their number is odd",
                        agents, (long long)p->degree);
    }
    reef_status status = rfi_draft_expect(draft, (double)agents * (double)(p->degree + 1), error);
    if (status != REEF_OK || p->degree == 0) {
        return status;
    }
    bool dense = p->degree > (agents - 1) / 2;
    ptrdiff_t drawn = dense ? agents - 1 - (ptrdiff_t)p->degree : (ptrdiff_t)p->degree;
    pairing pairs = {(int32_t)drawn, (int32_t)(agents * drawn), NULL};
    pairs.mate = rfi_allocate_many(draft->context, pairs.ends, sizeof *pairs.mate);
    if (!pairs.mate) {
        return rfi_fail(error, REEF_E_NOMEM, "regular: not enough memory for %d ends of links", (int)pairs.ends);
    }
    if (drawn > 0) {
        status = draw_pairing(draft, &pairs, error);
    }
    if (status == REEF_OK && dense) {
        status = link_complement(draft, &pairs, error);
    } else if (status == REEF_OK) {
        link_pairs(draft, &pairs);
    }
    rfi_release(draft->context, pairs.mate);
    return status;
}

static bool connected(const void *params)
{
    const regular_params *p = params;
    return p->connected;
}

static void advice(const void *params, ptrdiff_t agents, char *text, size_t size)
{
    size_t used = 0;
    (void)params;
    (void)agents;
    rfi_append(text, size, &used, "degree 3 or more would do");
}

const rfi_graph_kind rfi_graph_regular = {
    .kind = {.name = "regular",
             .summary = "a random graph in which every agent has the same number of neighbours",
             .citation = "Bollobas, A probabilistic proof of an asymptotic formula for the number of labelled regular "
                         "graphs, European Journal of Combinatorics 1 (1980)",
             .fields = regular_fields,
             .field_count = RFI_COUNT(regular_fields),
             .params_size = sizeof(regular_params)},
    .generate = generate,
    .connected = connected,
    .advice = advice,
};
