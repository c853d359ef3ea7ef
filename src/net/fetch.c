/* Chunks of a model, checked one by one. */
#include "net/fetch.h"

#include "net/bytes.h"

#include <math.h>
#include <string.h>

void rfi_fetch_init(rfi_fetch *fetch, const rfi_shape *shape, unsigned char *model, unsigned char *index,
                    unsigned char *have)
{
    *fetch = (rfi_fetch){.model = model,
                         .index = index,
                         .have = have,
                         .bytes = rfi_shape_bytes(shape),
                         .chunk = shape->chunk,
                         .chunks = rfi_shape_chunks(shape),
                         .patience = RFI_FLIGHT_SECONDS};
}

void rfi_fetch_begin(rfi_fetch *fetch, const rfi_head *head)
{
    rfi_fetch_stop(fetch);
    fetch->active = true;
    fetch->indexed = false;
    fetch->round = head->round;
    fetch->missing = fetch->chunks;
    fetch->next = 0;
    memcpy(fetch->root, head->root, sizeof fetch->root);
    memset(fetch->have, 0, fetch->chunks);
    rfi_seal_begin(&fetch->seal, head);
}

void rfi_fetch_stop(rfi_fetch *fetch)
{
    fetch->active = false;
    rfi_wipe(&fetch->seal, sizeof fetch->seal);
    memset(fetch->flights, 0, sizeof fetch->flights);
}

static bool lost(const rfi_flight *flight, double now)
{
    return now - flight->since >= flight->patience;
}

static bool take_off(rfi_fetch *fetch, rfi_flight *flight, uint32_t number, double now, uint32_t *asked)
{
    bool again = flight->used;
    if (again) { /* those that took off together are lost together, and together it takes twice as long */
        fetch->patience = fmin(fmax(fetch->patience, 2 * flight->patience), RFI_FLIGHT_SECONDS_MAX);
    }
    *flight = (rfi_flight){.used = true, .again = again, .number = number, .since = now, .patience = fetch->patience};
    *asked = number;
    return true;
}

bool rfi_fetch_want(rfi_fetch *fetch, double now, uint32_t *number)
{
    if (!fetch->active) {
        return false;
    }
    rfi_flight *room = NULL;
    for (int i = 0; i < RFI_FLIGHTS; i++) {
        rfi_flight *flight = &fetch->flights[i];
        if (flight->used && lost(flight, now)) {
            return take_off(fetch, flight, flight->number, now, number);
        }
        room = room || flight->used ? room : flight;
    }
    if (!room) {
        return false;
    }
    if (!fetch->indexed) {
        bool asked = false;
        for (int i = 0; i < RFI_FLIGHTS; i++) {
            asked |= fetch->flights[i].used;
        }
        return !asked && take_off(fetch, room, RFI_CHUNK_INDEX, now, number);
    }
    return fetch->next < fetch->chunks && take_off(fetch, room, fetch->next++, now, number);
}

int rfi_fetch_flying(const rfi_fetch *fetch, double now)
{
    int flying = 0;
    for (int i = 0; fetch->active && i < RFI_FLIGHTS; i++) {
        const rfi_flight *flight = &fetch->flights[i];
        flying += flight->used && !flight->vain && !lost(flight, now);
    }
    return flying;
}

void rfi_fetch_vain(rfi_fetch *fetch, uint64_t round, uint32_t number)
{
    for (int i = 0; fetch->active && fetch->round == round && i < RFI_FLIGHTS; i++) {
        fetch->flights[i].vain = fetch->flights[i].vain || fetch->flights[i].number == number;
    }
}

/* An answer to what was asked twice may be one to the first request, and tells nothing about time. */
static void land(rfi_fetch *fetch, double now, uint32_t number)
{
    fetch->took = -1;
    for (int i = 0; i < RFI_FLIGHTS; i++) {
        rfi_flight *flight = &fetch->flights[i];
        if (flight->used && flight->number == number) {
            flight->used = false;
            fetch->took = flight->again ? -1 : now - flight->since;
        }
    }
    if (fetch->took >= 0) {
        fetch->patience = fmin(fmax(2 * fetch->took, RFI_FLIGHT_SECONDS), RFI_FLIGHT_SECONDS_MAX);
    }
}

static rfi_taken shut(rfi_fetch *fetch)
{
    rfi_fetch_stop(fetch);
    return RFI_TAKEN_SHUT;
}

static rfi_taken take_index(rfi_fetch *fetch, double now, const unsigned char *bytes, size_t size)
{
    unsigned char hash[RFI_HASH_BYTES];
    size_t hashes = (size_t)fetch->chunks * RFI_HASH_BYTES;
    if (fetch->indexed) {
        return RFI_TAKEN_NONE;
    }
    if (size < hashes || size - hashes > (fetch->opener ? RFI_BOXES_MAX : 0)) {
        return RFI_TAKEN_BAD;
    }
    rfi_hash(hash, bytes, size);
    if (memcmp(hash, fetch->root, sizeof hash) != 0) {
        return RFI_TAKEN_BAD;
    }
    if (fetch->opener && !rfi_seal_find(&fetch->seal, fetch->opener, bytes + hashes, size - hashes)) {
        return shut(fetch);
    }
    memcpy(fetch->index, bytes, hashes);
    fetch->indexed = true;
    land(fetch, now, RFI_CHUNK_INDEX);
    return RFI_TAKEN_PART;
}

/* A chunk whose number is known and which is missing. */
static rfi_taken take_chunk(rfi_fetch *fetch, double now, uint32_t number, const unsigned char *bytes, size_t size)
{
    size_t begin;
    unsigned char hash[RFI_HASH_BYTES];
    size_t more = fetch->opener ? RFI_SEAL_BYTES : 0;
    if (size != rfi_fetch_part(fetch->bytes, fetch->chunk, number, &begin) + more) {
        return RFI_TAKEN_BAD;
    }
    rfi_hash(hash, bytes, size);
    if (memcmp(hash, fetch->index + (size_t)number * RFI_HASH_BYTES, sizeof hash) != 0) {
        return RFI_TAKEN_BAD;
    }
    if (!fetch->opener) {
        memcpy(fetch->model + begin, bytes, size);
    } else if (!rfi_seal_open(&fetch->seal, number, fetch->model + begin, bytes, size)) {
        return shut(fetch);
    }
    fetch->have[number] = 1;
    land(fetch, now, number);
    if (--fetch->missing > 0) {
        return RFI_TAKEN_PART;
    }
    rfi_fetch_stop(fetch);
    return RFI_TAKEN_DONE;
}

rfi_taken rfi_fetch_take(rfi_fetch *fetch, double now, const unsigned char *message, size_t size)
{
    if (!fetch->active) {
        return RFI_TAKEN_NONE;
    }
    if (size < RFI_CHUNK_HEAD_BYTES || rfi_take(message + 12, 4) != 0) {
        return RFI_TAKEN_BAD;
    }
    uint64_t round = rfi_take(message, 8);
    if (round != fetch->round) {
        /* A later round that has taken the place in the ring; any other is of somebody else's fetch, or was there before ours. Nothing
         * is stopped for it: so far it is the word of whoever sent the message. */
        bool gone = round > fetch->round && (round - fetch->round) % RFI_RING == 0;
        return gone ? RFI_TAKEN_GONE : RFI_TAKEN_NONE;
    }
    uint32_t number = (uint32_t)rfi_take(message + 8, 4);
    const unsigned char *bytes = message + RFI_CHUNK_HEAD_BYTES;
    size -= RFI_CHUNK_HEAD_BYTES;
    if (number == RFI_CHUNK_INDEX) {
        return take_index(fetch, now, bytes, size);
    }
    if (!fetch->indexed || number >= fetch->chunks || fetch->have[number]) {
        return RFI_TAKEN_NONE;
    }
    return take_chunk(fetch, now, number, bytes, size);
}

void rfi_fetch_index(const rfi_shape *shape, const unsigned char *model, unsigned char *index,
                     unsigned char root[RFI_HASH_BYTES])
{
    uint32_t chunks = rfi_shape_chunks(shape);
    for (uint32_t number = 0; number < chunks; number++) {
        size_t begin;
        size_t size = rfi_fetch_part(rfi_shape_payload(shape), rfi_shape_part(shape), number, &begin);
        rfi_hash(index + (size_t)number * RFI_HASH_BYTES, model + begin, size);
    }
    rfi_hash(root, index, (size_t)chunks * RFI_HASH_BYTES);
}

size_t rfi_fetch_part(size_t bytes, size_t chunk, uint32_t number, size_t *begin)
{
    *begin = (size_t)number * chunk;
    size_t left = bytes - *begin;
    return left < chunk ? left : chunk;
}

void rfi_chunk_head(unsigned char head[RFI_CHUNK_HEAD_BYTES], uint64_t round, uint32_t number)
{
    rfi_put(head, round, 8);
    rfi_put(head + 8, number, 4);
    rfi_put(head + 12, 0, 4);
}
