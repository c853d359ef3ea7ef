/* STATUS frames: what an agent reports about itself, signed, at most once a second, for observers. Nobody's result depends on them.
 *
 *   offset bytes  field of the payload
 *        0     1  state (rfi_standing)
 *        1     1  brokers it is connected to, one bit each
 *        2     2  neighbours: entries at the end
 *        4     4  zero
 *        8    40  round, rounds combined, alone, skipped, idle, 8 each
 *       48     8  weight of the last combination, f64
 *       56    12  seconds of the last round: adapting, waiting, combining, f32 each
 *       68     4  zero
 *       72     8  resident bytes
 *       80     8  norm of the model, f64
 *       88    96  four user-defined numbers: name (16 bytes, [a-z0-9_], padded with zeros; all zero: none) and value f64
 *      184    16  bytes received from brokers and sent to them, 8 each
 *      200    16  per neighbour, agent numbers ascending:
 *                 agent u32, trust f32 (-1: nothing was combined), age of its model in rounds u8 (255: absent), cause of the last refusal u8,
 *                 test of the rule that lowered its weight most u8 (0: none, otherwise 1 + its number), zero u8, frames refused u32
 *
 * The head has the round, the number of entries, the bytes of the payload and their hash as root. Numbers are finite. */
#ifndef RFI_NET_STATUS_H
#define RFI_NET_STATUS_H

#include "net/window.h"

enum { RFI_NOTES = 4, RFI_NOTE_NAME = 16, RFI_AGE_ABSENT = 255, RFI_STATUS_BASE = 200, RFI_STATUS_ENTRY = 16 };
#define RFI_STATUS_MAX (RFI_STATUS_BASE + RFI_NEIGHBOURS_MAX * RFI_STATUS_ENTRY)
#define RFI_STATUS_FRAME_MAX (RFI_MANIFEST_BYTES + RFI_STATUS_MAX)

typedef enum rfi_standing {
    RFI_STANDING_GATHERING, /* waits for neighbours */
    RFI_STANDING_COMBINED,  /* its last round combined models */
    RFI_STANDING_ALONE,     /* it did not */
    RFI_STANDING_IDLE,      /* it is ahead of its neighbours and signs nothing */
    RFI_STANDING_LEFT,      /* ends */
    RFI_STANDINGS
} rfi_standing;
const char *rfi_standing_text(rfi_standing standing);

/* A number that the agent's owner wants to be seen. */
typedef struct rfi_note {
    char name[RFI_NOTE_NAME + 1]; /* "": none */
    double value;
} rfi_note;

typedef struct rfi_status_entry {
    uint32_t agent;
    float trust;
    unsigned age;
    rfi_cause cause;
    unsigned test;
    uint32_t refused;
} rfi_status_entry;

typedef struct rfi_status {
    rfi_standing standing;
    unsigned links;
    uint64_t round, combined, alone, skipped, idle;
    double weight;
    float adapt, wait, combine;
    uint64_t resident;
    double norm;
    rfi_note notes[RFI_NOTES];
    uint64_t received, sent;
    unsigned count;
    rfi_status_entry entries[RFI_NEIGHBOURS_MAX];
} rfi_status;

/* Whether a text may name a note: [a-z0-9_]{1,16}. */
bool rfi_is_note(const char *name);

/* Lays the payload out; returns its size. */
size_t rfi_status_write(unsigned char payload[RFI_STATUS_MAX], const rfi_status *status);
/* Reads hostile bytes; false unless they are exactly what rfi_status_write makes of *status. */
bool rfi_status_read(const unsigned char *payload, size_t size, rfi_status *status);

/* A whole frame, signed. *head has type, run, key, epoch, agent and boot; the rest is filled in. Returns its size. */
size_t rfi_status_frame(unsigned char frame[RFI_STATUS_FRAME_MAX], rfi_head *head, const rfi_status *status,
                        const rfi_keys *keys, const rfi_signatures *by);

/* What an observer expects of a frame. */
typedef struct rfi_status_sender {
    uint32_t agent; /* of the subject */
    uint32_t epoch;
    const unsigned char *run; /* RFI_HASH_BYTES */
    const unsigned char *key; /* RFI_KEY_BYTES, of that agent */
    const rfi_signatures *by;
} rfi_status_sender;
/* Reads and checks a frame from outside: RFI_GOOD, or the first cause to refuse it. */
rfi_cause rfi_status_take(const rfi_status_sender *from, const unsigned char *bytes, size_t size, rfi_head *head,
                          rfi_status *status);

#endif
