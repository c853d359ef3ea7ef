/* A small HTTP server for what people and Prometheus look at: 127.0.0.1 only, GET only, at most 64 connections, of which
 * 48 may be streams, one thread. A connection that sends no complete request for 5 s is closed, as long as rfi_http_wake is called now and then.
 *
 * Requests whose Host header is not 127.0.0.1 or localhost with the server's port are refused, so that no page of another origin reaches the server
 * under a host name of its own (DNS rebinding). Every answer has a Content-Security-Policy that allows only the server's own files, nosniff,
 * no-referrer and no-store. */
#ifndef RFI_NET_HTTP_H
#define RFI_NET_HTTP_H

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct rfi_http rfi_http;

/* What is at a path. */
typedef struct rfi_http_answer {
    const char *type; /* "text/plain; version=0.0.4" */
    const void *body;
    size_t size;
    bool release; /* body came from malloc and is freed when it was sent; otherwise it outlives the server */
} rfi_http_answer;

/* A stream without end, text/event-stream: read copies what there is and returns how much, 0: nothing yet, the connection sleeps
 * until rfi_http_wake. Called from the server's thread. */
typedef struct rfi_http_stream {
    void *state; /* of one connection */
    size_t (*read)(void *state, char *bytes, size_t size);
    void (*close)(void *state);
} rfi_http_stream;

typedef struct rfi_http_setup {
    int port; /* 0: any that is free */
    void *user;
    /* Fills in the answer; false: nothing is there (404). Called from the server's thread. */
    bool (*get)(void *user, const char *path, rfi_http_answer *answer);
    /* Opens a stream; false: there is none. NULL: no streams at all. */
    bool (*open)(void *user, const char *path, rfi_http_stream *stream);
} rfi_http_setup;

/* REEF_E_ENGINE: the port is taken, or Reef was built without libmicrohttpd; the message says which. */
reef_status rfi_http_start(rfi_http **http, const rfi_http_setup *setup, reef_error *error);
int rfi_http_port(const rfi_http *http);
/* Streams that sleep look again, and who is too slow is closed. From any thread, about once a second. */
void rfi_http_wake(rfi_http *http);
void rfi_http_stop(rfi_http **http);
/* "0.9.75", or "" if it was not there when Reef was built. */
const char *rfi_http_version(void);

#endif
