/* What the files of the link through NATS share. libnats is known to link_nats*.c alone, by this header. */
#ifndef RFI_NET_LINK_NATS_INNER_H
#define RFI_NET_LINK_NATS_INNER_H

#include "net/link_nats.h"
#include "net/link_nats_subject.h"
#include "net/window.h"

#include <nats/nats.h>
#include <pthread.h>

enum { RFI_NATS_QUEUE = RFI_LINK_QUEUE, RFI_NATS_ANSWERS = 64, RFI_NATS_REVIVALS = 10, RFI_NATS_LIVES = 8 };

/* Bytes that messages not yet polled may have together, if they are several: of a sender, as many as fit into its frames at their largest
 * (longer messages are kept empty); of answers, all chunks that may be under way. Larger messages than a broker allows are dropped. */
#define RFI_NATS_SAID_BYTES (RFI_NATS_QUEUE * RFI_FRAME_MAX)
#define RFI_NATS_ANSWER_BYTES ((RFI_FLIGHTS_ALL + 2) * (size_t)1048576)
#define RFI_NATS_MESSAGE_BYTES ((size_t)1048576)

/* Messages not yet polled: a ring. */
typedef struct rfi_nats_queue {
    natsMsg *messages[RFI_NATS_ANSWERS];
    int room; /* places used of the array */
    int first, count;
    size_t bytes, most; /* of all together */
} rfi_nats_queue;

/* What a callback of a subscription is for. */
typedef struct rfi_nats_source {
    struct rfi_nats_link *link;
    uint32_t agent;
    rfi_nats_queue waiting; /* models */
    rfi_nats_queue said;    /* the rest: it must not displace models */
    natsSubscription *slots, *events, *proofs;
} rfi_nats_source;

/* One connection of a link: what libnats says of an earlier one is no news. */
typedef struct rfi_nats_life {
    struct rfi_nats_link *link;
    unsigned number;
} rfi_nats_life;

typedef struct rfi_nats_link {
    rfi_netlink base;
    const reef_context *context;
    rfi_nats_names names;
    uint32_t agent;
    natsConnection *connection;
    natsOptions *options;
    natsSubscription *answers_from;
    rfi_keys login;
    pthread_mutex_t mutex; /* of the queues, the flags, refusals, failures and open */
    pthread_cond_t arrived;
    bool woken;  /* a wait is to end */
    bool up;     /* connected since the last poll */
    bool closed; /* libnats has given up */
    bool
        stalled; /* the broker does not read: to be connected anew. Of the thread that polls, as all below `mutex` are not */
    double wall_ahead;                   /* of the monotonic clock, in seconds, when last looked at; 0: never */
    unsigned life;                       /* connections so far */
    rfi_nats_life lives[RFI_NATS_LIVES]; /* by number modulo that */
    int refusals;                        /* of the login, since it was last connected */
    int failures;                        /* for other reasons, in a row */
    double revive_at;                    /* not before */
    rfi_nats_counts past;                /* of connections that were given up */
    int open;                            /* subscriptions and the connection that may still call back */
    struct rfi_nats_link *leader;
    natsMsg *polled;
    rfi_nats_queue answers;
    int turn; /* whose queue is looked at next */
    ptrdiff_t neighbours;
    ptrdiff_t count;           /* neighbours and others */
    rfi_nats_source sources[]; /* neighbours, others, then the agent itself */
} rfi_nats_link;

/* Of link_nats.c, for opening and closing. */
extern const rfi_netlink_ops rfi_nats_operations;
/* Takes over the message; what does not fit is dropped. Whoever waits is woken if it is urgent or the queue is half full; otherwise it is
 * found when something else wakes them. */
void rfi_nats_push(rfi_nats_link *link, rfi_nats_queue *to, natsMsg *message, bool urgent);
/* NULL if it is empty. */
natsMsg *rfi_nats_pop(rfi_nats_queue *from);
/* Adds what went through a connection; NULL adds nothing. */
void rfi_nats_add_counts(natsConnection *connection, rfi_nats_counts *counts);

/* Of link_nats_open.c, for polling. libnats gives a connection up when a login fails, also where the server had no time for it: begins anew, for
 * ever unless the login is refused RFI_NATS_REVIVALS times. */
void rfi_nats_revive(rfi_nats_link *link);

/* Why a connection could not be made: the broker does not want it, whereas anything else passes. */
bool rfi_nats_refuses(natsStatus s);
/* Seconds on a monotonic clock. */
double rfi_nats_now(void);

/* A connection that is lost, or cannot be made, is tried again for ever, after rfi_nats_delay. */
natsStatus rfi_nats_try_again(natsOptions *o);

/* Encryption and login, as every connection has them. login outlives the options; NULL: none. */
natsStatus rfi_nats_set_trust(natsOptions *o, const char *url, const char *authority, const rfi_keys *login);

#endif
