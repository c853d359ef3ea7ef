/* An agent for programs in any language: one client at a time on a Unix socket of this machine, requests answered in order.
 *
 * Requests and answers have a head of 32 bytes, little endian, then the payload:
 *
 *    0  4  "RLOC"
 *    4  4  op
 *    8  8  round: 0 in requests; in answers the round that is to come, of EXCHANGE the one that has ended
 *   16  8  bytes of the payload
 *   24  4  status: 0 in requests; in answers 0, 1 the agent has failed, 2 the request is refused
 *   28  4  0
 *
 *   op          request                                        answer
 *   1 HELLO     layout of the models, 32 bytes, or zeros       M u64, type u32 (1 float32, 2 float64), joined u32, round u64; if
 *                                                              joined, the model to continue from
 *   2 EXCHANGE  M numbers                                      M numbers, then a report as JSON, at most 64 KiB
 *   3 NOTE      name, 16 bytes of [a-z0-9_] and zeros, f64     -
 *   4 LEAVE     -                                              -
 *
 * HELLO comes first and once. Anything that is not in the table is answered with status 2 and an error message, and the connection is
 * closed; the agent continues and takes the next client. After LEAVE, and after status 1, the agent ends.
 *
 * The session below knows neither sockets nor agents. Every byte of the client may be anything. */
#ifndef RFI_NET_LOCAL_H
#define RFI_NET_LOCAL_H

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RFI_LOCAL_HEAD = 32,
    RFI_LOCAL_HELLO_BYTES = 32,
    RFI_LOCAL_WELCOME_BYTES = 24,
    RFI_LOCAL_NAME_BYTES = 16,
    RFI_LOCAL_NOTE_BYTES = 24,
    RFI_LOCAL_REPORT_MAX = 65536,
};
typedef enum rfi_local_op { RFI_LOCAL_HELLO = 1, RFI_LOCAL_EXCHANGE, RFI_LOCAL_NOTE, RFI_LOCAL_LEAVE } rfi_local_op;
enum { RFI_LOCAL_FAILED = 1, RFI_LOCAL_REFUSED = 2 };

/* The agent as a session sees it. hello and exchange return REEF_E_ARG for what the client did wrong; every other failure is the
 * agent's own, and ends it. */
typedef struct rfi_local_host {
    void *user;
    size_t bytes;        /* of a model */
    uint64_t count;      /* numbers in it */
    uint32_t numbers;    /* 1 float32, 2 float64 */
    unsigned char *room; /* bytes + RFI_LOCAL_REPORT_MAX */
    /* All of it, or false: the client has gone, or the agent is to end. */
    bool (*read)(void *user, void *bytes, size_t size);
    bool (*write)(void *user, const void *bytes, size_t size);
    /* *joined: the model is in `room`. */
    reef_status (*hello)(void *user, const unsigned char *layout, bool *joined, uint64_t *round, reef_error *error);
    /* `room` has the client's model and receives the combined one; the report behind it is text of *report bytes. */
    reef_status (*exchange)(void *user, uint64_t *round, size_t *report, reef_error *error);
    void (*note)(void *user, const char *name, double value);
    uint64_t (*round)(void *user);
} rfi_local_host;

typedef enum rfi_local_end {
    RFI_LOCAL_END_GONE, /* the next client may come */
    RFI_LOCAL_END_LEFT, /* the client said LEAVE */
    RFI_LOCAL_END_FAILED,
} rfi_local_end;

/* Answers requests until the connection is to be closed. error: why the agent has failed. */
rfi_local_end rfi_local_serve(const rfi_local_host *host, reef_error *error);

#endif
