/* What comes from neighbours: the checks of frames and chunks, and what is kept of them from round to round. */
#include "net/window.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* --- Models --- */

/* How much a model of round `round` is wanted: that of the present round most, then the next ones, then the newest further ahead, then
 * the newest old one. */
static int64_t worth(const rfi_window *window, uint64_t round)
{
    enum { NEAR = 3, FAR = 2, OLD = 1 };
    const int64_t rank = INT64_C(1) << 50; /* above all rounds */
    int64_t ahead = (int64_t)round - (int64_t)window->round;
    if (ahead < 0) {
        return OLD * rank + ahead;
    }
    return ahead <= RFI_AHEAD ? NEAR * rank - ahead : FAR * rank + ahead;
}

static bool in_window(const rfi_window *window, uint64_t round)
{
    return round + (uint64_t)window->setup.stale >= window->round && round <= window->round + RFI_AHEAD;
}

rfi_slot *rfi_peer_slot(rfi_peer *peer, uint64_t round)
{
    for (int s = 0; s < 2; s++) {
        if (peer->slots[s].state != RFI_SLOT_EMPTY && peer->slots[s].round == round) {
            return &peer->slots[s];
        }
    }
    return NULL;
}

/* A place for a model of `round`, or NULL if both places hold something that is wanted more. */
static rfi_slot *make_room(const rfi_window *window, rfi_peer *peer, uint64_t round)
{
    rfi_slot *least = NULL;
    for (int s = 0; s < 2; s++) {
        rfi_slot *slot = &peer->slots[s];
        if (slot->state == RFI_SLOT_EMPTY) {
            return slot;
        }
        if (!least || worth(window, slot->round) < worth(window, least->round)) {
            least = slot;
        }
    }
    if (worth(window, least->round) >= worth(window, round)) {
        return NULL;
    }
    rfi_fetch_stop(&least->fetch);
    least->state = RFI_SLOT_EMPTY;
    return least;
}

static rfi_held *held_of(rfi_peer *peer, uint64_t round)
{
    rfi_held *held = &peer->kept[round % RFI_KEPT];
    held = held->held && held->round == round ? held : &peer->beyond;
    return held->held && held->round == round ? held : NULL;
}

/* What was signed is of no use, and is not asked for again. */
static rfi_cause refuse(rfi_peer *peer, rfi_slot *slot, rfi_cause cause)
{
    rfi_held *held = held_of(peer, slot->round);
    if (held) {
        held->refused = true;
    }
    slot->state = RFI_SLOT_EMPTY;
    return cause;
}

static rfi_cause finish(const rfi_window *window, rfi_peer *peer, rfi_slot *slot)
{
    if (!rfi_shape_values(&window->setup.shape, slot->model)) {
        return refuse(peer, slot, RFI_VALUE);
    }
    slot->state = RFI_SLOT_COMPLETE;
    return RFI_GOOD;
}

/* Starts to fetch the model of a manifest that is held, if there is room. */
static void fetch_held(const rfi_window *window, rfi_peer *peer, const rfi_held *held)
{
    if (!held || held->refused || rfi_peer_slot(peer, held->round) ||
        held->round + (uint64_t)window->setup.stale < window->round) {
        return;
    }
    rfi_head head;
    rfi_slot *slot = make_room(window, peer, held->round);
    if (slot && rfi_frame_read(held->manifest, sizeof held->manifest, &head) == RFI_GOOD) {
        slot->state = RFI_SLOT_ARRIVING;
        slot->round = held->round;
        rfi_fetch_begin(&slot->fetch, &head);
    }
}

/* A small model that is sealed, with the boxes behind it. */
static bool open_inline(const rfi_window *window, const rfi_head *head, const unsigned char *bytes,
                        unsigned char *model)
{
    rfi_seal seal;
    size_t parts = rfi_shape_payload(&window->setup.shape);
    rfi_seal_begin(&seal, head);
    bool opened = rfi_seal_find(&seal, &window->opener, bytes + parts, (size_t)head->payload - parts) &&
                  rfi_seal_open(&seal, 0, model, bytes, parts);
    rfi_wipe(&seal, sizeof seal);
    return opened;
}

/* The payload of a small model: checked against the root of its verified head. */
static rfi_cause take_inline(const rfi_window *window, rfi_peer *peer, const rfi_head *head, const unsigned char *bytes)
{
    unsigned char hash[RFI_HASH_BYTES];
    rfi_hash(hash, bytes, (size_t)head->payload);
    if (memcmp(hash, head->root, sizeof hash) != 0) {
        return RFI_CHUNK;
    }
    rfi_slot *slot = make_room(window, peer, head->round);
    if (!slot) {
        return RFI_GOOD;
    }
    slot->round = head->round;
    if (!window->setup.shape.sealed) {
        memcpy(slot->model, bytes, (size_t)head->payload);
    } else if (!open_inline(window, head, bytes, slot->model)) {
        return refuse(peer, slot, RFI_SEAL);
    }
    return finish(window, peer, slot);
}

/* --- Frames --- */

static void hold(rfi_held *held, uint64_t round, const unsigned char *bytes, const unsigned char *mark)
{
    assert(!held->held || held->round != round); /* what was signed once is never replaced by another */
    *held = (rfi_held){.held = true, .round = round};
    memcpy(held->manifest, bytes, sizeof held->manifest);
    memcpy(held->mark, mark, sizeof held->mark);
}

static void exclude(rfi_peer *peer, const unsigned char *one, const unsigned char *other)
{
    peer->excluded = true;
    memcpy(peer->proof[0], one, RFI_MANIFEST_BYTES);
    memcpy(peer->proof[1], other, RFI_MANIFEST_BYTES);
    for (int s = 0; s < 2; s++) {
        rfi_fetch_stop(&peer->slots[s].fetch);
        peer->slots[s].state = RFI_SLOT_EMPTY;
    }
}

rfi_held *rfi_window_held(const rfi_window *window, ptrdiff_t peer, uint64_t round)
{
    return held_of(&window->peers[peer], round);
}

void rfi_window_exclude(rfi_window *window, ptrdiff_t peer, const unsigned char one[RFI_MANIFEST_BYTES],
                        const unsigned char other[RFI_MANIFEST_BYTES])
{
    exclude(&window->peers[peer], one, other);
}

static bool spend(const rfi_window *window, rfi_peer *peer, double now)
{
    assert(window->way < RFI_WAYS);
    return rfi_allowance_spend(&peer->allowances[window->way], now);
}

static void claim(rfi_peer *peer, int64_t round)
{
    peer->heard = true;
    if (round > peer->claim) {
        peer->claim = round;
        peer->left = false;
    }
}

/* A verified manifest of a new mark finds its place. False: of those further ahead a newer one is held. */
static bool keep(const rfi_window *window, rfi_peer *peer, uint64_t round, const unsigned char *bytes,
                 const unsigned char *mark)
{
    bool near = round <= window->round + RFI_AHEAD;
    assert(round + (uint64_t)window->setup.stale >= window->round); /* older ones were refused before */
    if (!near && peer->beyond.held && peer->beyond.round > round) {
        return false;
    }
    hold(near ? &peer->kept[round % RFI_KEPT] : &peer->beyond, round, bytes, mark);
    return true;
}

/* What comes after the signature. */
static rfi_cause take_verified(rfi_window *window, rfi_peer *peer, const rfi_head *head, const unsigned char *bytes,
                               const unsigned char *mark)
{
    rfi_cause cause = RFI_GOOD;
    rfi_held *held = held_of(peer, head->round);
    claim(peer, (int64_t)head->round);
    if (held && memcmp(held->mark, mark, sizeof held->mark) != 0) {
        exclude(peer, held->manifest, bytes);
        return RFI_TWO_FACED;
    }
    if (!held && !keep(window, peer, head->round, bytes, mark)) {
        return RFI_FUTURE;
    }
    if (head->flags & RFI_FLAG_INLINE) {
        cause = take_inline(window, peer, head, bytes + RFI_MANIFEST_BYTES);
    } else {
        fetch_held(window, peer, held_of(peer, head->round));
    }
    return cause == RFI_GOOD && head->round > window->round + RFI_AHEAD ? RFI_FUTURE : cause;
}

static rfi_cause take_model(rfi_window *window, rfi_peer *peer, double now, const rfi_head *head,
                            const unsigned char *bytes)
{
    unsigned char mark[RFI_HASH_BYTES];
    if (head->round + (uint64_t)window->setup.stale < window->round) {
        return RFI_OLD;
    }
    rfi_frame_mark(mark, bytes);
    const rfi_held *held = held_of(peer, head->round);
    bool known = held && memcmp(held->mark, mark, sizeof mark) == 0;
    bool within = head->flags & RFI_FLAG_INLINE;
    if (known && (held->refused || !within || rfi_peer_slot(peer, head->round))) {
        return RFI_REPEAT;
    }
    if (!rfi_shape_fits(&window->setup.shape, head)) {
        return RFI_SHAPE;
    }
    if (!spend(window, peer, now)) {
        return RFI_RATE;
    }
    /* What is known was verified; only its payload is wanted. */
    if (!known && !rfi_frame_verify(bytes, window->setup.by)) {
        return RFI_SIGNATURE;
    }
    return take_verified(window, peer, head, bytes, mark);
}

static rfi_cause take_event(const rfi_window *window, rfi_peer *peer, double now, const rfi_head *head,
                            const unsigned char *bytes)
{
    if (!spend(window, peer, now)) {
        return RFI_RATE;
    }
    if (!rfi_frame_verify(bytes, window->setup.by)) {
        return RFI_SIGNATURE;
    }
    /* The round field of both is the last round signed plus 1. */
    int64_t last = (int64_t)head->round - 1;
    claim(peer, last);
    if (head->type == RFI_FRAME_HELLO) {
        peer->left = false;
    } else if (last >= peer->claim) {
        peer->left = true;
    }
    return RFI_GOOD;
}

/* A frame of another run file. Those of earlier epochs come late, or from a neighbour that has not got the new file; those of the next one
 * tell how far their senders are, which is how an agent that was left behind finds the round from which the next file holds. Nothing of
 * them is kept: who goes over asks the store. */
static rfi_cause other_epoch(const rfi_window *window, rfi_peer *peer, double now, const rfi_head *head,
                             const unsigned char *bytes)
{
    const rfi_edition *after = &window->after;
    bool model = head->type == RFI_FRAME_MODEL;
    if (head->epoch < window->setup.epoch) {
        return RFI_OLD;
    }
    if (!after->known || head->epoch != after->epoch || memcmp(head->run, after->run, sizeof head->run) != 0 ||
        (model && head->round < after->from)) {
        return RFI_CONFIG;
    }
    if (!spend(window, peer, now)) {
        return RFI_RATE;
    }
    if (!rfi_frame_verify(bytes, window->setup.by)) {
        return RFI_SIGNATURE;
    }
    claim(peer, (int64_t)head->round - !model);
    return RFI_FUTURE;
}

static rfi_cause check_frame(rfi_window *window, rfi_peer *peer, double now, rfi_frame_place place, uint64_t round,
                             const unsigned char *bytes, size_t size)
{
    rfi_head head;
    rfi_cause cause = rfi_frame_read(bytes, size, &head);
    if (cause != RFI_GOOD) {
        return cause;
    }
    bool model = head.type == RFI_FRAME_MODEL;
    bool event = head.type == RFI_FRAME_HELLO || head.type == RFI_FRAME_BYE;
    if (place == RFI_PLACE_SLOT ? !model : !event) {
        return RFI_FORMAT;
    }
    if (head.agent != peer->who.agent || memcmp(head.key, peer->who.key, sizeof head.key) != 0) {
        return RFI_SENDER;
    }
    if (peer->excluded) {
        return RFI_EXCLUDED;
    }
    if (head.epoch != window->setup.epoch || memcmp(head.run, window->setup.run, sizeof head.run) != 0) {
        return other_epoch(window, peer, now, &head, bytes);
    }
    if (model && head.round < window->setup.from) {
        return RFI_CONFIG;
    }
    if (model && head.round != round) {
        return RFI_SUBJECT;
    }
    return model ? take_model(window, peer, now, &head, bytes) : take_event(window, peer, now, &head, bytes);
}

rfi_cause rfi_window_frame(rfi_window *window, double now, rfi_frame_place place, uint32_t agent, uint64_t round,
                           const unsigned char *bytes, size_t size)
{
    ptrdiff_t l = rfi_window_find(window, agent);
    if (l < 0) {
        window->strangers++;
        return RFI_SENDER;
    }
    rfi_cause cause = check_frame(window, &window->peers[l], now, place, round, bytes, size);
    window->peers[l].counts[cause]++;
    return cause;
}

/* --- Chunks --- */

/* As many chunks are asked for at once as the line brings soon: a broker cuts off who takes too long to read what it holds for them. Those that
 * never come tell nothing, so that a neighbour without chunks slows down no other. */
static void note_pace(rfi_window *window, double now, double took)
{
    static const double soon = 0.5;
    static const double late = 1;
    if (took >= 0 && took < soon) {
        window->flights = fmin(window->flights + 1, RFI_FLIGHTS_ALL);
    } else if (took > late && now - window->fewer_at > took) { /* once for all that were under way together */
        window->flights = fmax(window->flights / 2, 1);
        window->fewer_at = now;
    }
}

/* A chunk of a later round came instead of one asked for. That the ring has moved on is believed only of a sender that has signed so late a
 * round: chunks are not signed themselves, and one broker must not end what another one would bring. */
static void give_up_gone(rfi_peer *peer, rfi_slot *slot)
{
    if (peer->claim >= (int64_t)slot->round + RFI_RING) {
        rfi_fetch_stop(&slot->fetch);
        slot->state = RFI_SLOT_EMPTY;
        peer->counts[RFI_GONE]++;
    }
}

rfi_cause rfi_window_chunk(rfi_window *window, double now, uint32_t agent, const unsigned char *bytes, size_t size)
{
    ptrdiff_t l = rfi_window_find(window, agent);
    if (l < 0) {
        window->strangers++;
        return RFI_SENDER;
    }
    rfi_peer *peer = &window->peers[l];
    rfi_cause cause = RFI_REPEAT;
    for (int s = 0; s < 2 && cause == RFI_REPEAT; s++) {
        rfi_slot *slot = &peer->slots[s];
        switch (slot->state == RFI_SLOT_ARRIVING ? rfi_fetch_take(&slot->fetch, now, bytes, size) : RFI_TAKEN_NONE) {
        case RFI_TAKEN_PART:
            note_pace(window, now, slot->fetch.took);
            cause = RFI_GOOD;
            break;
        case RFI_TAKEN_DONE:
            note_pace(window, now, slot->fetch.took);
            cause = finish(window, peer, slot);
            break;
        case RFI_TAKEN_BAD:
            cause = RFI_CHUNK;
            break;
        case RFI_TAKEN_GONE:
            give_up_gone(peer, slot);
            break; /* the message may be what the other slot waits for */
        case RFI_TAKEN_SHUT:
            cause = refuse(peer, slot, RFI_SEAL);
            break;
        case RFI_TAKEN_NONE:
            break;
        }
    }
    peer->counts[cause]++;
    return cause;
}

void rfi_window_vain(rfi_window *window, uint32_t agent, uint64_t round, uint32_t number)
{
    ptrdiff_t l = rfi_window_find(window, agent);
    for (int s = 0; l >= 0 && s < 2; s++) {
        rfi_fetch_vain(&window->peers[l].slots[s].fetch, round, number);
    }
}

bool rfi_window_want(rfi_window *window, double now, ptrdiff_t *peer, uint64_t *round, uint32_t *number)
{
    int flying = 0;
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        for (int s = 0; s < 2; s++) {
            flying += rfi_fetch_flying(&window->peers[l].slots[s].fetch, now);
        }
    }
    for (ptrdiff_t l = 0; l < window->setup.count && flying < (int)window->flights; l++) {
        for (int s = 0; s < 2; s++) {
            rfi_slot *slot = &window->peers[l].slots[s];
            if (slot->state == RFI_SLOT_ARRIVING && rfi_fetch_want(&slot->fetch, now, number)) {
                *peer = l;
                *round = slot->round;
                return true;
            }
        }
    }
    return false;
}

bool rfi_window_fetching(const rfi_window *window)
{
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        for (int s = 0; s < 2; s++) {
            if (window->peers[l].slots[s].state == RFI_SLOT_ARRIVING) {
                return true;
            }
        }
    }
    return false;
}

/* --- Rounds --- */

static void empty_old(rfi_window *window, rfi_peer *peer)
{
    for (int s = 0; s < 2; s++) {
        rfi_slot *slot = &peer->slots[s];
        if (slot->state != RFI_SLOT_EMPTY && slot->round + (uint64_t)window->setup.stale < window->round) {
            rfi_fetch_stop(&slot->fetch);
            slot->state = RFI_SLOT_EMPTY;
        }
    }
}

void rfi_window_advance(rfi_window *window, uint64_t round)
{
    if (round <= window->round) {
        return;
    }
    window->round = round;
    bool chunked = rfi_shape_chunks(&window->setup.shape) > 0;
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        rfi_peer *peer = &window->peers[l];
        for (int way = 0; way < RFI_WAYS; way++) {
            rfi_allowance_round(&peer->allowances[way]);
        }
        empty_old(window, peer);
        if (peer->beyond.held && peer->beyond.round <= round + RFI_AHEAD) {
            if (in_window(window, peer->beyond.round)) {
                peer->kept[peer->beyond.round % RFI_KEPT] = peer->beyond;
            }
            peer->beyond.held = false;
        }
        for (uint64_t ahead = 0; chunked && !peer->excluded && ahead <= RFI_AHEAD; ahead++) {
            fetch_held(window, peer, held_of(peer, round + ahead));
        }
        if (chunked && !peer->excluded && peer->beyond.held) {
            fetch_held(window, peer, &peer->beyond);
        }
    }
}

void rfi_window_give_up(rfi_window *window, uint64_t round)
{
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        for (int s = 0; s < 2; s++) {
            rfi_slot *slot = &window->peers[l].slots[s];
            if (slot->state == RFI_SLOT_ARRIVING && slot->round <= round) {
                rfi_fetch_stop(&slot->fetch);
                slot->state = RFI_SLOT_EMPTY;
                window->peers[l].counts[RFI_TIMEOUT]++;
            }
        }
    }
}
