/* Assembling one large model from chunks that anybody may have sent, against the hashes its sender signed.
 *
 * A chunk message is round u64, number u32, zero u32, then the bytes. The round tells "the ring of chunks has moved on" from "the
 * bytes are wrong". The index (RFI_CHUNK_INDEX) comes first: its hash is the root in the manifest, and it holds the hash of each
 * chunk, and of a sealed model the boxes with its key (net/seal.h). Nothing is written into the model before its hash is right and it has
 * been decrypted, if it is sealed, and nothing is allocated here. */
#ifndef RFI_NET_FETCH_H
#define RFI_NET_FETCH_H

#include "net/seal.h"

#define RFI_CHUNK_HEAD_BYTES 16
/* Rounds whose chunks the store keeps: each round takes the place of the one so many before it. */
#define RFI_RING 4
#define RFI_CHUNK_INDEX UINT32_C(0xFFFFFFFF)
/* Requests under way for one model. */
#define RFI_FLIGHTS 4
/* Seconds after which a request counts as lost, at first and at most: twice as long after each that was, so that a thin line is not filled with
 * what was asked for twice. */
#define RFI_FLIGHT_SECONDS 1.0
#define RFI_FLIGHT_SECONDS_MAX 4.0

typedef struct rfi_flight {
    bool used;
    bool again; /* was lost before: an answer may be that to the first request */
    bool vain;  /* was answered by nothing of use: to be asked for again in time, and no room is kept for it */
    uint32_t number;
    double since;    /* seconds on the caller's clock */
    double patience; /* seconds after which it counts as lost */
} rfi_flight;

typedef struct rfi_fetch {
    unsigned char *model; /* where the chunks go: rfi_shape_bytes */
    unsigned char *index; /* RFI_HASH_BYTES per chunk */
    unsigned char *have;  /* a byte per chunk: 1 if it is there and right */
    size_t bytes;
    uint32_t chunk;
    uint32_t chunks;
    const rfi_opener
        *opener; /* who opens the boxes; NULL: models are not sealed. Set by the caller after rfi_fetch_init */
    rfi_seal seal;
    uint64_t round;
    unsigned char root[RFI_HASH_BYTES];
    bool active;
    bool indexed;
    uint32_t missing; /* chunks not there yet */
    uint32_t next;    /* chunks below it were asked for at least once */
    rfi_flight flights[RFI_FLIGHTS];
    double patience; /* of the requests to come */
    double took;     /* seconds that the answer last taken took; negative: not known */
} rfi_fetch;

/* How a chunk message was taken. */
typedef enum rfi_taken {
    RFI_TAKEN_PART, /* right, and more is missing */
    RFI_TAKEN_DONE, /* right, and the model is complete */
    RFI_TAKEN_NONE, /* not asked for, or there already: ignored */
    RFI_TAKEN_BAD,  /* wrong size or hash; asked for again when the request has timed out */
    RFI_TAKEN_GONE, /* of a later round, in the same place of the ring: there is no more to come, if the sender has signed as much */
    RFI_TAKEN_SHUT, /* as signed, but it cannot be opened: the fetch has ended */
} rfi_taken;

/* Sets up memory for models of a shape that is not inline; the caller keeps owning it. */
void rfi_fetch_init(rfi_fetch *fetch, const rfi_shape *shape, unsigned char *model, unsigned char *index,
                    unsigned char *have);
/* Begins anew with a verified head that fits the shape. */
void rfi_fetch_begin(rfi_fetch *fetch, const rfi_head *head);
void rfi_fetch_stop(rfi_fetch *fetch);
/* The next number to ask for, if any: marks it as under way since `now`. */
bool rfi_fetch_want(rfi_fetch *fetch, double now, uint32_t *number);
/* Requests under way that may still be answered. */
int rfi_fetch_flying(const rfi_fetch *fetch, double now);
/* What was asked for is not there, or is not what was signed. */
void rfi_fetch_vain(rfi_fetch *fetch, uint64_t round, uint32_t number);
/* Takes a hostile chunk message. */
rfi_taken rfi_fetch_take(rfi_fetch *fetch, double now, const unsigned char *message, size_t size);

/* The sender's side. The index of a model as it is sent, RFI_HASH_BYTES x chunks, and the root if nothing is behind it. */
void rfi_fetch_index(const rfi_shape *shape, const unsigned char *model, unsigned char *index,
                     unsigned char root[RFI_HASH_BYTES]);
/* Bytes of chunk `number` of a model, and where they begin. */
size_t rfi_fetch_part(size_t bytes, size_t chunk, uint32_t number, size_t *begin);
void rfi_chunk_head(unsigned char head[RFI_CHUNK_HEAD_BYTES], uint64_t round, uint32_t number);

#endif
