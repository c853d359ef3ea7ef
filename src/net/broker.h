/* The broker of a run: a nats-server of our own, its configuration, and the streams of the run. */
#ifndef RFI_NET_BROKER_H
#define RFI_NET_BROKER_H

#include "net/echo.h"
#include "net/link_nats.h"
#include "net/log.h"
#include "net/roster.h"

#include <reef/net.h>

#include <sys/types.h>

/* The path of nats-server; false: there is none. */
bool rfi_broker_find(char *path, size_t size);
/* Addresses and files of TLS, of which nats-server would complain in its own words, at every start. */
reef_status rfi_broker_check(const reef_broker_options *options, reef_error *error);
/* Bytes in the log of the server, 0 if there is none. */
off_t rfi_broker_log_size(const char *store);
/* "nats-server has ended: ...", with the last error in the log of its store behind the first `from` bytes: what it said before it was started
 * the last time explains nothing. */
reef_status rfi_broker_ended(const char *how, const char *store, off_t from, reef_error *error);

/* What a leaf needs to know of the broker that it is a leaf of. */
typedef struct rfi_hub {
    const char *url;         /* tls://HOST:PORT, or nats:// on this machine: where it listens to leaves */
    const char *authority;   /* certificates that its own is signed with; NULL: the system's */
    const char *credentials; /* file with the login, as nats-server wants it */
    const rfi_keys *login;   /* of the leaf */
} rfi_hub;

typedef struct rfi_broker_setup {
    const char *listen;                    /* HOST:PORT */
    const char *store;                     /* folder of the server's own */
    const char *certificate, *private_key; /* NULL: no encryption */
    const rfi_keys *operator_login;        /* makes the streams */
    const rfi_roster *before;              /* the epoch before, which goes on until the next begins; or NULL */
    const char *leaves;                    /* HOST:PORT for leaves; NULL: there are none */
    const rfi_hub *hub;                    /* of which this is a leaf; NULL: it is none */
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

/* Whom agent k has to do with in an epoch; nobody where it has no place. */
typedef struct rfi_circle {
    rfi_neighbour neighbours[RFI_NEIGHBOURS_MAX];
    ptrdiff_t count;
    uint32_t witnesses[RFI_WITNESSES_MAX];
    ptrdiff_t others;
} rfi_circle;
void rfi_circle_find(const rfi_roster *roster, ptrdiff_t k, rfi_circle *circle);
/* What publishes under an agent's own name, and asks the store about an agent: more of a list of subjects. */
void rfi_allow_own(rfi_page *p, const char *run, unsigned long k);
void rfi_allow_get(rfi_page *p, const char *run, char kind, unsigned long agent);

/* broker_leaf.c. What a hub is told of its leaves: where it listens to them, and a login for each, which may do what the agents behind it may,
 * all of them together, and no more. */
void rfi_broker_add_leaves(rfi_page *page, const rfi_broker_setup *setup);
void rfi_broker_add_leaf_logins(rfi_page *page, const rfi_roster *roster, const rfi_roster *before);
/* Warns if the server that was found does not hold leaves to what they may publish. */
void rfi_hub_tell_version(const rfi_log *log);
/* What a leaf is told of its hub. */
void rfi_broker_add_hub(rfi_page *page, const rfi_hub *hub);
/* Writes the login into a file that nobody else may read, RFI_LEAF_FILE in the store. */
#define RFI_LEAF_FILE "leaf.key"
reef_status rfi_hub_write_credentials(const rfi_hub *hub, reef_error *error);
/* Whether the hub answers, as far as it is known and has been told. nats-server connects to it by itself, again and again. */
typedef struct rfi_hub_watch {
    bool up, told;
    double since, ask_at; /* the server runs; when to ask next */
} rfi_hub_watch;
/* Asks when it is time, which may take 2 s, and tells what has changed. by: the operator of the leaf. */
void rfi_hub_look(rfi_hub_watch *watch, const rfi_log *log, const rfi_runfile *file, const rfi_hub *hub,
                  const rfi_nats_operator *by);

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
