/* The broker of a run: a nats-server of our own, its configuration, and the streams of the run. */
#ifndef RFI_NET_BROKER_H
#define RFI_NET_BROKER_H

#include "net/roster.h"

/* The path of nats-server; false: there is none. */
bool rfi_broker_find(char *path, size_t size);

typedef struct rfi_broker_setup {
    const char *listen;                    /* HOST:PORT */
    const char *store;                     /* folder of the server's own */
    const char *certificate, *private_key; /* NULL: no encryption */
    const rfi_keys *operator_login;        /* makes the streams */
    const rfi_roster *before;              /* the epoch before, which goes on until the next begins; or NULL */
} rfi_broker_setup;

/* A text that is written piece by piece. */
typedef struct rfi_page {
    char *text;
    size_t size, room;
    bool failed;
} rfi_page;
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void rfi_page_add(rfi_page *page, const char *format, ...);
void rfi_page_free(rfi_page *page);

/* The server's configuration: one login per agent, allowed to publish under its own name and to hear its neighbours, those of the epoch before
 * included if there is one. */
reef_status rfi_broker_config(const rfi_roster *roster, const rfi_broker_setup *setup, rfi_page *page,
                              reef_error *error);

/* The streams of a run, one after the other: the request that makes stream `index`, or false behind the last. */
enum { RFI_STREAM_NAME = 64, RFI_STREAM_BODY = 1024 };
bool rfi_stream_request(const rfi_roster *roster, ptrdiff_t index, char name[RFI_STREAM_NAME],
                        char body[RFI_STREAM_BODY]);
/* Bytes that the stream of run files may take, on the disk. */
size_t rfi_stream_files(const rfi_roster *roster);
/* Bytes that the streams of an agent may take: on the disk, in memory. */
size_t rfi_stream_slots(const rfi_roster *roster);
size_t rfi_stream_chunks(const rfi_roster *roster);

#endif
