/* A link through a NATS server. A thread of libnats puts messages into bounded queues: two for each sender (one for models, one for everything else)
 * and one for answers, so that a flood from one sender cannot starve the others. What does not fit is dropped, as a network may do. */
#ifndef RFI_NET_LINK_NATS_H
#define RFI_NET_LINK_NATS_H

#include "net/crypto.h"
#include "net/link.h"

#include <reef/context.h>

typedef struct rfi_nats_setup {
    const char *url;        /* "tls://host:port", or "nats://" on this very machine */
    const char *run;        /* token of the run: [a-z0-9-]{1,32} */
    uint32_t agent;         /* this agent */
    ptrdiff_t count;        /* neighbours... */
    const uint32_t *agents; /* ...by number */
    ptrdiff_t other_count;  /* agents of which only what they say is heard, not their models... */
    const uint32_t *others; /* ...by number */
    const rfi_keys *login;  /* NULL: the server asks for none */
    const char *authority;  /* file with the certificates to trust; NULL: those of the system */
    rfi_netlink *leader; /* another connection: who waits at it is woken by messages here; it is closed later. NULL */
} rfi_nats_setup;

/* Connects in the background and again whenever the connection is lost; succeeds although no server is there yet. */
reef_status rfi_nats_open(rfi_netlink **link, const reef_context *context, const rfi_nats_setup *setup,
                          reef_error *error);
/* Milliseconds before the attempt so many after the connection was lost (from 1): 200 and up to half as much again as `chance` has it, of all
 * of its range; each time twice as many, never more than 5000. */
int64_t rfi_nats_delay(int attempt, uint32_t chance);
/* Accepts NULL, sets the pointer to NULL. */
void rfi_nats_close(rfi_netlink **base);
/* Waits until there is a message, at most so long. */
void rfi_nats_wait(rfi_netlink *base, double seconds);
/* Ends a wait, or the next one. */
void rfi_nats_wake(rfi_netlink *base);
/* The broker has refused this agent's login, and there will be no connection any more. */
bool rfi_nats_refused(rfi_netlink *base);

/* What went through it. */
typedef struct rfi_nats_counts {
    bool up;          /* connected now */
    uint64_t in, out; /* bytes */
    uint64_t reconnects;
} rfi_nats_counts;
void rfi_nats_count(rfi_netlink *base, rfi_nats_counts *counts);

/* Somebody who only listens, on a thread of libnats: to what observers may hear of a run, or to the run files that its agents hand out. */
typedef void rfi_nats_hear(void *user, const char *subject, const unsigned char *bytes, size_t size);
typedef struct rfi_nats_ear rfi_nats_ear;
typedef struct rfi_nats_ear_setup {
    const char *url; /* as above */
    const char *run;
    const rfi_keys *login;
    const char *authority;
    const char *what;    /* subjects of run files, as a broker hears them, "c.*"; NULL: what observers hear */
    rfi_nats_hear *hear; /* one call at a time */
    void *user;
} rfi_nats_ear_setup;
/* Connects in the background, as rfi_nats_open does. */
reef_status rfi_nats_listen(rfi_nats_ear **ear, const rfi_nats_ear_setup *setup, reef_error *error);
/* Begins anew where libnats has given the connection up; about once a second, on the thread that opens and closes it. May take some seconds. */
void rfi_nats_ear_tend(rfi_nats_ear *ear);
/* The broker has refused the login, again and again. */
bool rfi_nats_ear_refused(rfi_nats_ear *ear);
/* Nothing is heard any more. Accepts NULL, sets the pointer to NULL. */
void rfi_nats_ear_close(rfi_nats_ear **handle);

/* Somebody who may make streams. */
typedef struct rfi_nats_operator {
    const char *url;
    const rfi_keys *login;
    const char *authority; /* as above */
} rfi_nats_operator;
/* Makes streams, one after the other, until request is false; those that are there already stay, with the settings asked for. REEF_E_ENGINE: the server cannot be
 * reached; REEF_E_FILE: it refuses. name has room for 64 bytes, body for 1024. */
typedef bool rfi_next_stream(void *user, ptrdiff_t index, char *name, char *body);
reef_status rfi_nats_make_streams(const rfi_nats_operator *by, rfi_next_stream *request, void *user, reef_error *error);

/* Stores bytes under a subject, which a stream must be there for; waits until the server has them, at most so long. */
reef_status rfi_nats_store(const rfi_nats_operator *by, const char *subject, const void *bytes, size_t size,
                           double seconds, reef_error *error);

/* Whether anybody answers a request, at most so long; what the answer is does not matter. inbox: begins the subject of the answer. */
bool rfi_nats_answers(const rfi_nats_operator *by, const char *inbox, const char *subject, const char *body,
                      double seconds);

/* Connects once and ends the connection again, to learn what stands in the way: a connection that is tried again and again does not
 * tell. REEF_E_ENGINE, and the sentence says what; waits a few seconds at most. */
reef_status rfi_nats_try(const rfi_nats_operator *by, reef_error *error);

/* The version of libnats. */
const char *rfi_nats_version(void);

#endif
