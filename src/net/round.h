/* The machine that takes an agent from round to round. It does no input or output, reads no clock and has no threads: it is asked
 * what to do next, says so, and is told when it is done. Time is what the caller says it is, in seconds that only grow.
 *
 * Guarantees, whatever the network and up to F of the weight do:
 *   - a round is signed at most once, and only after it is in the journal; rounds only grow;
 *   - rows are combined only if their weight exceeds 2 F, each neighbour once, so that honest ones are the majority;
 *   - a round is skipped only towards one some honest neighbour has reached, and nobody signs rounds that are further ahead of the
 *     neighbourhood than the window: within it there is a quorum of rows, however slow some agents are;
 *   - every wait but that for neighbours at the start ends by the deadline.
 * tests/net/round.pml is a model of it that a model checker searches exhaustively. */
#ifndef RFI_NET_ROUND_H
#define RFI_NET_ROUND_H

#include "net/window.h"

typedef enum rfi_phase {
    RFI_PHASE_GATHER,  /* waits until enough neighbours are there */
    RFI_PHASE_ADOPT,   /* the run is under way: waits for models to take over */
    RFI_PHASE_READY,   /* waits for the agent's own model */
    RFI_PHASE_JOURNAL, /* the round is to be recorded */
    RFI_PHASE_PUBLISH, /* the model is to be signed and sent */
    RFI_PHASE_COLLECT, /* waits for the models of neighbours */
    RFI_PHASE_COMBINE, /* they are to be combined, or the round ends alone */
} rfi_phase;

typedef enum rfi_act {
    RFI_ACT_WAIT,    /* nothing until something is heard or `until` has come */
    RFI_ACT_HELLO,   /* say where this agent is */
    RFI_ACT_ASK,     /* ask the store for what is missing of `round` */
    RFI_ACT_ADOPT,   /* combine the rows of `round` without an own one */
    RFI_ACT_JOURNAL, /* record `round`; if that fails, the agent must end */
    RFI_ACT_PUBLISH, /* sign the own model as that of `round` and send it */
    RFI_ACT_COMBINE, /* combine the rows of `round` with the own model */
    RFI_ACT_SELF,    /* go on with the own model */
} rfi_act;

typedef struct rfi_action {
    rfi_act act;
    uint64_t round;
    uint64_t
        around; /* the round whose rows are asked for or combined: `round`, or a later one if the others have gone on */
    double until; /* RFI_ACT_WAIT: INFINITY if only an event ends it */
} rfi_action;

#define RFI_WAITS 16

/* wait_all, for tests: a round waits for its very models until the deadline, and none is skipped before some round ended without somebody. */
typedef struct rfi_rounds_setup {
    double deadline; /* seconds a round waits at most */
    bool wait_all;
} rfi_rounds_setup;

typedef struct rfi_rounds {
    rfi_rounds_setup setup;
    rfi_window *window;
    rfi_phase phase;
    uint64_t round; /* i: the round to come or under way */
    uint64_t next;  /* the first round that may still be signed: the journal's */
    bool outdated;  /* the model is older than what this agent has signed since: it takes the neighbours' instead */
    bool own_known; /* the store has said what it holds of this agent */
    bool idle;      /* nothing is signed in this round */
    bool timed;     /* how long the fresh rows took was noted */
    bool missed;    /* some round ended without somebody's model */
    double began;   /* when the phase began */
    double hello_at;
    double ask_at;
    double waits[RFI_WAITS]; /* from publishing until fresh rows of weight 1 - F were there */
    int wait_count;          /* noted so far */
    uint64_t combined, alone, skipped, idles, joined;
} rfi_rounds;

/* Begins at `round` (of the checkpoint, or 0) with a journal that allows to sign from `next` on. */
void rfi_rounds_init(rfi_rounds *rounds, const rfi_rounds_setup *setup, rfi_window *window, uint64_t round,
                     uint64_t next, double now);
/* What to do now. Ask again after it was done, or when something was heard, or when the time has come. */
rfi_action rfi_rounds_next(rfi_rounds *rounds, double now);
/* The action last asked for (ADOPT, JOURNAL, PUBLISH, COMBINE, SELF) was done; `taken` is false if rows were to be combined but
 * the rule refused them. */
void rfi_rounds_done(rfi_rounds *rounds, double now, bool taken);
/* The round that a model offered now would be signed for. */
uint64_t rfi_rounds_aligned(const rfi_rounds *rounds);
/* The agent's own model is there: only in RFI_PHASE_READY. */
void rfi_rounds_model(rfi_rounds *rounds, double now);
/* The agent sends nothing in this round, and only listens: tests of silent agents. Only in RFI_PHASE_READY. */
void rfi_rounds_pass(rfi_rounds *rounds, double now);
/* A store's answer about this agent's own newest slot: rounds below `next` may not be signed again. all: no other store has yet to answer. */
void rfi_rounds_own(rfi_rounds *rounds, uint64_t next, bool all);
/* Seconds after publishing from which a quorum is enough. */
double rfi_rounds_soft_wait(const rfi_rounds *rounds);

#endif
