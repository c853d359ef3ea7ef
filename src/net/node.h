/* One agent's part in the protocol: the round machine, what is held of the neighbours, the journal and a link, put together
 * without threads or a clock. The caller waits for messages and time, supplies the agent's model and combines rows. */
#ifndef RFI_NET_NODE_H
#define RFI_NET_NODE_H

#include "net/echo.h"
#include "net/link.h"
#include "net/round.h"

/* Records durably that a round is about to be signed; anything but REEF_OK ends the agent. */
typedef reef_status (*rfi_record)(void *user, uint64_t round, const unsigned char mark[RFI_HASH_BYTES],
                                  reef_error *error);
/* out = the rule applied to the rows of the neighbours (by their order; model NULL: absent) and the agent's own model (NULL: it
 * has none). False if the rule refuses; out is then not used. */
typedef bool (*rfi_combine)(void *user, uint64_t round, const rfi_row *rows, const void *own, void *out);

/* A run file has come, of which nothing is known yet (net/handout.h). */
typedef void (*rfi_take_file)(void *user, const unsigned char *bytes, size_t size, double now);

typedef struct rfi_node_setup {
    rfi_window_setup window;
    rfi_rounds_setup rounds;
    uint32_t agent;
    const rfi_keys *keys; /* identity; must outlive the node */
    const rfi_hearer
        *hearers; /* who is given the keys of this agent's models, if they are sealed: by ascending number; copied */
    ptrdiff_t hearer_count; /* of them, at most RFI_HEARERS_MAX */
    uint64_t boot;          /* random */
    uint64_t round;         /* of the checkpoint, or 0 */
    uint64_t next;          /* of the journal */
    const void *model;      /* to start with */
    rfi_netlink *link;      /* must outlive the node */
    rfi_record record;
    rfi_combine combine;
    rfi_take_file file;  /* NULL: they are not wanted */
    void *user;          /* of record, combine and file */
    rfi_echo_setup echo; /* agents 0: none, and what others echo is not understood */
} rfi_node_setup;

typedef enum rfi_node_state {
    RFI_NODE_WAITING, /* for messages or time */
    RFI_NODE_READY,   /* for the agent's own model */
    RFI_NODE_FAILED,  /* must end: the error says why */
} rfi_node_state;

typedef struct rfi_node rfi_node;

/* Bytes rfi_node_create takes, those of the window included. */
size_t rfi_node_bytes(const rfi_node_setup *setup);
reef_status rfi_node_create(rfi_node **node, const reef_context *context, const rfi_node_setup *setup, double now,
                            reef_error *error);
void rfi_node_destroy(rfi_node **node);

/* Between rounds, or while it gathers, a new node of the next epoch goes on where the old one is: round, what is held of those who are
 * neighbours in both. The old one is of no use afterwards but to be destroyed; its link may be gone. */
void rfi_node_succeed(rfi_node *node, const rfi_node *old);
/* The run file of the next epoch is known. */
void rfi_node_expect(rfi_node *node, const rfi_edition *after);

/* Takes all messages the link has and does what is due. *until is when to come again if no message comes before. Once it has
 * failed it stays so: REEF_E_FILE, the journal cannot be written; REEF_E_ORDER, another process uses the same key. */
rfi_node_state rfi_node_step(rfi_node *node, double now, double *until, reef_error *error);
/* Hands over the agent's own model (copied) when the node is ready for it. */
void rfi_node_offer(rfi_node *node, const void *model, double now);
/* Instead: this agent sends nothing in this round (tests). `model` (copied) is what it goes on with if the round ends alone. */
void rfi_node_pass(rfi_node *node, const void *model, double now);
/* Takes a proof that was kept from an earlier process; false: it proves nothing. */
bool rfi_node_accuse(rfi_node *node, const unsigned char proof[RFI_PROOF_BYTES]);
/* Whether the model that was published last has come back, so that a broker has it to give to others, or none was. */
bool rfi_node_delivered(const rfi_node *node);
/* Asks the store for this agent's own newest model. */
void rfi_node_look(rfi_node *node);
/* Says good-bye, so that nobody waits for this agent. */
void rfi_node_leave(rfi_node *node);

/* The model as the last round left it. */
const void *rfi_node_model(const rfi_node *node);
/* What this agent was offered last, and sends. */
const void *rfi_node_own(const rfi_node *node);
const rfi_rounds *rfi_node_rounds(const rfi_node *node);
const rfi_window *rfi_node_window(const rfi_node *node);
const rfi_echo *rfi_node_echo(const rfi_node *node); /* NULL: none */
/* Weight of the rows of the last combination, the own one included; 0 after a round alone. */
double rfi_node_weight(const rfi_node *node);

#endif
