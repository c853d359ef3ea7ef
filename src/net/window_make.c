/* Making a window: the check of its setup, all of its memory, whom it has to do with, what it takes over from the epoch before. */
#include "net/window.h"

#include "base/error.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

reef_status rfi_window_check(const rfi_window_setup *setup, reef_error *error)
{
    reef_status status = rfi_shape_check(&setup->shape, error);
    if (status != REEF_OK) {
        return status;
    }
    if (setup->count < 1 || setup->count > RFI_NEIGHBOURS_MAX) {
        return rfi_fail(error, REEF_E_GRAPH, "an agent has 1 to %d neighbours, not %td", RFI_NEIGHBOURS_MAX,
                        setup->count);
    }
    if (setup->stale < 0 || setup->stale > RFI_STALE_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "stale is 0 to %d rounds, not %d", RFI_STALE_MAX, setup->stale);
    }
    if (!(setup->malicious >= 0 && setup->malicious < 0.5)) {
        return rfi_fail(error, REEF_E_RANGE, "the weight that may be malicious is at least 0 and below 1/2, not %g",
                        setup->malicious);
    }
    if (setup->shape.sealed && !setup->keys) {
        return rfi_fail(error, REEF_E_ARG, "sealed models take a key to open them");
    }
    double sum = setup->own_weight;
    bool good = setup->own_weight >= 0;
    for (ptrdiff_t l = 0; l < setup->count; l++) {
        good &= setup->neighbours[l].weight > 0;
        sum += setup->neighbours[l].weight;
        if (l > 0 && setup->neighbours[l].agent <= setup->neighbours[l - 1].agent) {
            return rfi_fail(error, REEF_E_ARG, "neighbours must come in order of their numbers, each once");
        }
    }
    if (!good || !(fabs(sum - 1) <= 1e-6)) {
        return rfi_fail(error, REEF_E_WEIGHTS, "the weights of a neighbourhood are positive and sum to 1, not to %g",
                        sum);
    }
    return REEF_OK;
}

/* Lays the window out; measures when the arena has no memory. */
static rfi_window *lay_out(rfi_arena *arena, const rfi_window_setup *setup)
{
    ptrdiff_t bytes = (ptrdiff_t)rfi_shape_bytes(&setup->shape);
    uint32_t chunks = rfi_shape_chunks(&setup->shape);
    rfi_window *window = rfi_arena_take(arena, 1, 1, sizeof *window);
    rfi_peer *peers = rfi_arena_take(arena, setup->count, 1, sizeof *peers);
    if (window) {
        memset(window, 0, sizeof *window);
        memset(peers, 0, (size_t)setup->count * sizeof *peers);
        window->peers = peers;
    }
    for (ptrdiff_t l = 0; l < setup->count; l++) {
        for (int s = 0; s < 2; s++) {
            unsigned char *model = rfi_arena_take(arena, bytes, 1, 1);
            unsigned char *index = rfi_arena_take(arena, chunks, RFI_HASH_BYTES, 1);
            unsigned char *have = rfi_arena_take(arena, chunks, 1, 1);
            if (window) {
                peers[l].slots[s].model = model;
                rfi_fetch_init(&peers[l].slots[s].fetch, &setup->shape, model, index, have);
            }
        }
    }
    return window;
}

size_t rfi_window_bytes(const rfi_window_setup *setup)
{
    rfi_arena arena = {NULL, 0, false};
    (void)lay_out(&arena, setup);
    return arena.overflow ? SIZE_MAX : (size_t)arena.used + RFI_ALIGNMENT;
}

reef_status rfi_window_create(rfi_window **window, const reef_context *context, const rfi_window_setup *setup,
                              reef_error *error)
{
    reef_status status = rfi_window_check(setup, error);
    if (status != REEF_OK) {
        return status;
    }
    size_t bytes = rfi_window_bytes(setup);
    void *memory = bytes == SIZE_MAX ? NULL : rfi_allocate(context, bytes);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the models of %td neighbours (%zu bytes)", setup->count,
                        bytes);
    }
    rfi_arena arena = {rfi_align(memory), 0, false};
    rfi_window *made = lay_out(&arena, setup);
    assert((size_t)arena.used + RFI_ALIGNMENT == bytes); /* the same layout as was measured */
    made->context = context;
    made->memory = memory;
    made->setup = *setup;
    made->setup.neighbours = NULL;
    made->flights = RFI_FLIGHTS_FIRST;
    made->fewer_at = -INFINITY;
    bool opens = !setup->shape.sealed || rfi_opener_make(&made->opener, setup->agent, setup->keys);
    assert(opens); /* an identity that was derived from a seed has an address */
    (void)opens;
    for (ptrdiff_t l = 0; l < setup->count; l++) {
        for (int s = 0; s < 2 && setup->shape.sealed; s++) {
            made->peers[l].slots[s].fetch.opener = &made->opener;
        }
        made->peers[l].who = setup->neighbours[l];
        made->peers[l].claim = -1;
        rfi_allowances_fill(made->peers[l].allowances);
    }
    *window = made;
    return REEF_OK;
}

void rfi_window_destroy(rfi_window **window)
{
    if (*window) {
        rfi_release((*window)->context, (*window)->memory);
    }
    *window = NULL;
}

static int by_agent(const void *key, const void *element)
{
    uint32_t agent = *(const uint32_t *)key;
    uint32_t other = ((const rfi_peer *)element)->who.agent;
    return (agent > other) - (agent < other);
}

ptrdiff_t rfi_window_find(const rfi_window *window, uint32_t agent)
{
    const rfi_peer *found =
        bsearch(&agent, window->peers, (size_t)window->setup.count, sizeof *window->peers, by_agent);
    return found ? found - window->peers : -1;
}

/* ---- the next epoch ---- */

void rfi_window_expect(rfi_window *window, const rfi_edition *after)
{
    window->after = *after;
}

bool rfi_window_is_ours(const rfi_window *window, const unsigned char run[RFI_HASH_BYTES])
{
    static const unsigned char none[RFI_HASH_BYTES];
    const rfi_window_setup *setup = &window->setup;
    return memcmp(run, setup->run, RFI_HASH_BYTES) == 0 ||
           (window->after.known && memcmp(run, window->after.run, RFI_HASH_BYTES) == 0) ||
           (memcmp(run, setup->before, RFI_HASH_BYTES) == 0 && memcmp(run, none, sizeof none) != 0);
}

bool rfi_window_outgrown(const rfi_window *window, uint64_t round)
{
    return window->after.known && round >= window->after.from;
}

/* What somebody who did not know of the next epoch has signed in its rounds is none of its models. */
static void inherit(const rfi_window *window, rfi_peer *to, const rfi_peer *from)
{
    rfi_peer peer = *from;
    uint64_t first = window->setup.from;
    peer.who = to->who;
    for (int i = 0; i < RFI_KEPT; i++) {
        peer.kept[i].held = peer.kept[i].held && peer.kept[i].round < first;
    }
    peer.beyond.held = peer.beyond.held && peer.beyond.round < first;
    for (int s = 0; s < 2; s++) {
        const rfi_slot *slot = &from->slots[s];
        bool whole = slot->state == RFI_SLOT_COMPLETE && slot->round < first; /* what is arriving is asked for anew */
        peer.slots[s] = to->slots[s];
        peer.slots[s].round = slot->round;
        peer.slots[s].state = whole ? RFI_SLOT_COMPLETE : RFI_SLOT_EMPTY;
        if (whole) {
            memcpy(peer.slots[s].model, slot->model, rfi_shape_bytes(&window->setup.shape));
        }
    }
    *to = peer;
}

void rfi_window_inherit(rfi_window *window, const rfi_window *old)
{
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        ptrdiff_t before = rfi_window_find(old, window->peers[l].who.agent);
        if (before >= 0) {
            inherit(window, &window->peers[l], &old->peers[before]);
        }
    }
    window->round = old->round;
    window->flights = old->flights;
    window->strangers = old->strangers;
}
