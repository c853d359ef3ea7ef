/* What an agent holds of its neighbours: manifests of the rounds around its own, the newest beyond them, two models each, how far
 * each neighbour claims to be, and a counter for every way in which a frame can be refused.
 *
 * Every byte comes from outside. Until a signature has been verified nothing changes but counters and the allowance of the sender
 * named in the subject; after it a frame can only change what is held of its own sender. All memory is taken at the start. */
#ifndef RFI_NET_WINDOW_H
#define RFI_NET_WINDOW_H

#include "net/allowance.h"
#include "net/fetch.h"

#include <reef/context.h>

/* Rounds beyond the present one that are held one by one; of those further ahead only the newest. */
#define RFI_AHEAD 2
#define RFI_STALE_MAX 2
#define RFI_NEIGHBOURS_MAX 256
/* Chunks under way for all neighbours together, at most and at the start. */
#define RFI_FLIGHTS_ALL 16
#define RFI_FLIGHTS_FIRST 4
/* Slack for sums of weights that were rounded. */
#define RFI_WEIGHT_SLACK 1e-9

typedef struct rfi_neighbour {
    uint32_t agent;
    double weight; /* of its row in this agent's combination */
    unsigned char key[RFI_KEY_BYTES];
} rfi_neighbour;

typedef struct rfi_window_setup {
    rfi_shape shape;
    unsigned char run[RFI_HASH_BYTES];
    uint32_t epoch;
    uint64_t from;                        /* first round of the epoch */
    unsigned char before[RFI_HASH_BYTES]; /* the run file of the epoch before, whose proofs count; zero: none */
    ptrdiff_t count;
    const rfi_neighbour *neighbours; /* by ascending agent number, without the agent itself */
    double own_weight;
    double malicious; /* F: the most weight that may be malicious */
    int stale;        /* rounds a row may be old: 0 to RFI_STALE_MAX */
    const rfi_signatures *by;
    uint32_t agent;       /* whose window it is, and... */
    const rfi_keys *keys; /* ...its identity, which opens models that are sealed; must outlive the window */
} rfi_window_setup;

/* A run file to come: frames of rounds from `from` on carry its hash. */
typedef struct rfi_edition {
    bool known;
    unsigned char run[RFI_HASH_BYTES];
    uint32_t epoch;
    uint64_t from;
} rfi_edition;

typedef struct rfi_held {
    bool held;
    bool refused; /* verified, but its model is not usable */
    bool echoed;  /* said to others that it is held */
    bool shown;   /* shown to others, who hold another */
    uint64_t round;
    unsigned char manifest[RFI_MANIFEST_BYTES];
    unsigned char mark[RFI_HASH_BYTES];
} rfi_held;

typedef enum rfi_slot_state { RFI_SLOT_EMPTY, RFI_SLOT_ARRIVING, RFI_SLOT_COMPLETE } rfi_slot_state;

typedef struct rfi_slot {
    rfi_slot_state state;
    uint64_t round;
    unsigned char *model;
    rfi_fetch fetch;
} rfi_slot;

/* Manifests are kept at round modulo this, which is more than RFI_STALE_MAX + 1 + RFI_AHEAD. */
#define RFI_KEPT 8

typedef struct rfi_peer {
    rfi_neighbour who;
    bool heard;                         /* a frame of it was verified since the start */
    bool left;                          /* said good-bye, and was not heard of since */
    bool excluded;                      /* proof says that it is two-faced */
    int64_t claim;                      /* the highest round it has signed or says to have signed; -1: none */
    rfi_allowance allowances[RFI_WAYS]; /* frames that may be verified, by the broker they come by */
    rfi_held kept[RFI_KEPT];
    rfi_held beyond; /* the newest further ahead */
    rfi_slot slots[2];
    unsigned char proof[2][RFI_MANIFEST_BYTES]; /* if excluded */
    uint64_t counts[RFI_CAUSES];
} rfi_peer;

typedef struct rfi_window {
    const reef_context *context;
    void *memory;
    rfi_window_setup setup; /* neighbours NULL: they are copied to peers */
    rfi_opener opener;      /* if models are sealed */
    rfi_peer *peers;
    uint64_t round;     /* the round the window is around */
    rfi_edition after;  /* the epoch to come */
    uint64_t strangers; /* messages of agents that are no neighbours */
    double flights;     /* chunks that may be under way now: as many as come soon */
    double fewer_at;    /* when that was made less */
    unsigned way;       /* set by the caller: the broker by which comes what is taken next */
} rfi_window;

/* A row for a combination. */
typedef struct rfi_row {
    const void *model; /* NULL: absent */
    int64_t age;       /* rounds before the round asked for; negative: ahead of it */
} rfi_row;

/* Whether a cause is one that an honest neighbour on a bad network does not give. */
bool rfi_is_offence(rfi_cause cause);
/* How many frames of a peer were refused as such. */
uint64_t rfi_offences(const rfi_peer *peer);

/* What a frame was published as. */
typedef enum rfi_frame_place { RFI_PLACE_SLOT, RFI_PLACE_EVENT } rfi_frame_place;

reef_status rfi_window_check(const rfi_window_setup *setup, reef_error *error);
/* Bytes rfi_window_create takes for a setup that passes the check. */
size_t rfi_window_bytes(const rfi_window_setup *setup);
reef_status rfi_window_create(rfi_window **window, const reef_context *context, const rfi_window_setup *setup,
                              reef_error *error);
void rfi_window_destroy(rfi_window **window);

/* Frames of the epoch to come say how far its neighbours are, and offend nobody; their models wait until the agent goes over itself. */
void rfi_window_expect(rfi_window *window, const rfi_edition *after);
/* The hash is that of a file of this run: of this epoch, the one before or the one to come. */
bool rfi_window_is_ours(const rfi_window *window, const unsigned char run[RFI_HASH_BYTES]);
/* A round that is of the epoch to come. */
bool rfi_window_outgrown(const rfi_window *window, uint64_t round);
/* A new window of the next epoch takes over what the old one holds of those who are neighbours in both: models of rounds before the epoch,
 * claims, allowances, counters, proofs. */
void rfi_window_inherit(rfi_window *window, const rfi_window *old);

/* The place of an agent among the peers, or -1. */
ptrdiff_t rfi_window_find(const rfi_window *window, uint32_t agent);

/* Where the model of a peer's round is or arrives, or NULL. */
rfi_slot *rfi_peer_slot(rfi_peer *peer, uint64_t round);
/* What is held of a peer's round, or NULL. */
rfi_held *rfi_window_held(const rfi_window *window, ptrdiff_t peer, uint64_t round);
/* No model of the peer is used any more: these two manifests of one round are the proof. */
void rfi_window_exclude(rfi_window *window, ptrdiff_t peer, const unsigned char one[RFI_MANIFEST_BYTES],
                        const unsigned char other[RFI_MANIFEST_BYTES]);

/* Takes a frame that came for `agent` (from the subject), for round `round` of it if `place` is a slot. `now` is in seconds on a
 * monotonic clock. The result is counted for the sender. */
rfi_cause rfi_window_frame(rfi_window *window, double now, rfi_frame_place place, uint32_t agent, uint64_t round,
                           const unsigned char *bytes, size_t size);
/* Takes a chunk of one of the agent's models. */
rfi_cause rfi_window_chunk(rfi_window *window, double now, uint32_t agent, const unsigned char *bytes, size_t size);
/* A chunk that was asked for is not there, or is not what was signed: a neighbour that announces models and has none takes no room from
 * others'. */
void rfi_window_vain(rfi_window *window, uint32_t agent, uint64_t round, uint32_t number);
/* The next chunk to ask for, if any. */
bool rfi_window_want(rfi_window *window, double now, ptrdiff_t *peer, uint64_t *round, uint32_t *number);

/* Some chunk is under way or to be asked for. */
bool rfi_window_fetching(const rfi_window *window);

/* Moves to a later round (an earlier one changes nothing) and refills allowances. */
void rfi_window_advance(rfi_window *window, uint64_t round);
/* Gives up fetches for rounds up to `round`, counting them as timed out. */
void rfi_window_give_up(rfi_window *window, uint64_t round);

/* How far the neighbourhood is: the largest round r that so many claim to have reached, none of them excluded, that those of them who
 * are honest make a quorum with this agent; -1: none. At least more weight than F, so that some honest neighbour has been there. Who
 * stays near it, ahead or behind, finds rows enough to combine; who went by the fastest could be drawn away from the others by one
 * fast neighbour and a malicious one. */
int64_t rfi_window_claimed(const rfi_window *window);
/* Weight of the neighbours that were heard from or are excluded, the agent's own included. */
double rfi_window_heard(const rfi_window *window);
/* The row of a peer for round `round`: the model of that round, otherwise the newest one that is not too old. Models of later rounds
 * serve as well: a neighbour that is ahead has seen more, not less. */
rfi_row rfi_window_row(const rfi_window *window, ptrdiff_t peer, uint64_t round);
/* Nothing more is to be expected of the peer for this round; exact: nothing but its model of this very round will do. */
bool rfi_window_settled(const rfi_window *window, ptrdiff_t peer, uint64_t round, bool exact);
/* Weight of the rows of a round; without_old: of those of that very round or a later one. Without the agent's own. */
double rfi_window_weight(const rfi_window *window, uint64_t round, bool without_old);

#endif
