/* Echoes: how senders that sign two models for one round are detected, and proofs against them.
 *
 * After each round an agent publishes an ECHO: for every manifest it has received, the sender, the round and the first half of the mark.
 * Its witnesses (agents that hear a common sender, at most RFI_WITNESSES_MAX) compare that with what they hold themselves. An echo
 * that agrees costs a comparison, and every second round, at most once a second, a verification. One that differs is verified and answered
 * by a SHOW with the witness's own copy of the manifest. Whoever then has two manifests of one key, run and round holds a PROOF, which is
 * kept, published, and passed on once by everybody. The sender is excluded permanently: no model of it is used again, while its weight still
 * counts towards what may be malicious.
 *
 *   ECHO   entries of agent u32, age u32 (rounds before that of the head), 16 bytes of the mark; at most RFI_ECHO_ENTRIES
 *   SHOW   a manifest
 *   PROOF  two manifests
 *
 * An honest agent cannot be accused, since it signs one model per round (net/round.h). A witness that lies in its echoes causes
 * verifications within its allowance and at most RFI_SHOWS messages a round. Each witness has limits of its own, so that the lies of one do not
 * keep what another finds from being shown. Nothing depends on a message that is sent only once: a sender that continues is detected in the
 * next round, and a witness whose echo still has an excluded sender is sent the proof again. */
#ifndef RFI_NET_ECHO_H
#define RFI_NET_ECHO_H

#include "net/link.h"
#include "net/window.h"

#define RFI_WITNESSES_MAX 32
#define RFI_ECHO_ENTRIES 256
#define RFI_ECHO_ENTRY_BYTES 24
#define RFI_SHOWS 8
#define RFI_PROOF_BYTES (2 * RFI_MANIFEST_BYTES)

/* A proof against `agent` is new: to be kept. */
typedef void rfi_proved(void *user, uint32_t agent, const unsigned char proof[RFI_PROOF_BYTES]);

typedef struct rfi_echo_setup {
    ptrdiff_t agents; /* of the run; 0: no echoes */
    ptrdiff_t ways;   /* values of a topic's way; 0: one */
    const unsigned char *(*key)(void *user,
                                uint32_t agent); /* its identity, zero where nobody is; asked at the start */
    ptrdiff_t count;                             /* witnesses... */
    const uint32_t *witnesses;                   /* ...by number; copied */
    rfi_proved *proved;                          /* or NULL */
    void *user;                                  /* of key and proved */
} rfi_echo_setup;

/* What echoes need of the agent they belong to; all must outlive them. */
typedef struct rfi_echo_parts {
    rfi_window *window;
    rfi_netlink *link;
    const rfi_keys *keys;
} rfi_echo_parts;

typedef struct rfi_echo rfi_echo;

/* Bytes rfi_echo_create takes. */
size_t rfi_echo_bytes(const rfi_echo_setup *setup);
reef_status rfi_echo_create(rfi_echo **echo, const reef_context *context, const rfi_echo_setup *setup,
                            const rfi_echo_parts *parts, reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
void rfi_echo_destroy(rfi_echo **echo);

/* Whether a message is for rfi_echo_frame rather than for the window. `echo` may be NULL. */
bool rfi_echo_wants(const rfi_echo *echo, const rfi_topic *topic, const unsigned char *bytes, size_t size);

/* In the following `blank` is a head of this agent with epoch, number, run, key, round and boot filled in. */

/* Takes a frame of `topic->agent`. The result is counted by the caller. */
rfi_cause rfi_echo_frame(rfi_echo *echo, double now, const rfi_topic *topic, const unsigned char *bytes, size_t size,
                         const rfi_head *blank);
/* The round of `blank` has ended: says what is held. */
void rfi_echo_round(rfi_echo *echo, double now, const rfi_head *blank);
/* The window itself has found two frames of a peer. */
void rfi_echo_found(rfi_echo *echo, ptrdiff_t peer, const rfi_head *blank);
/* Takes a proof that was kept: checks it, excludes its sender, and publishes it again. False: it proves nothing. */
bool rfi_echo_accuse(rfi_echo *echo, const unsigned char proof[RFI_PROOF_BYTES], const rfi_head *blank);
/* A proof against the agent is held. */
bool rfi_echo_proven(const rfi_echo *echo, uint32_t agent);

/* Witnesses of which no echo has come for four rounds and three seconds: silent ones, or a broker hides what they say. */
ptrdiff_t rfi_echo_missing(const rfi_echo *echo);

/* The agent that a proof is about, if both manifests verify and contradict each other; otherwise false. */
bool rfi_proof_read(const unsigned char proof[RFI_PROOF_BYTES], const rfi_signatures *by, rfi_head *head);

#endif
