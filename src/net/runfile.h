/* The run file: what all agents of a run have agreed on, signed by the coordinator.
 *
 * YAML (the plain part that io/yaml.h reads, at most 256 KiB) whose last line is
 *     # signed R<coordinator> <signature, base64url>
 * over RFI_TAG_RUN and the run hash: BLAKE2b-256 of every byte before that line. The run hash is also in every frame, so agents with different files
 * never mix. docs/network.md describes the keys. Every byte may be hostile until the signature has been checked against a coordinator that is
 * known from elsewhere; what is read before that is bounded in size and depth. */
#ifndef RFI_NET_RUNFILE_H
#define RFI_NET_RUNFILE_H

#include "io/yaml.h"
#include "net/frame.h"
#include "net/journal.h"

#include <reef/field.h>

enum { RFI_NAME_SIZE = 33, RFI_BROKERS_MAX = 8, RFI_AGENTS_MAX = 4096, RFI_LEAVES_MAX = 64 };
#define RFI_RUNFILE_MAX ((size_t)256 * 1024)

/* An agent of the run; its number is its place. */
typedef struct rfi_participant {
    char name[RFI_NAME_SIZE];
    bool removed; /* the place stays, nobody has it any more */
    unsigned char identity[RFI_KEY_BYTES];
    unsigned char login[RFI_KEY_BYTES];
    const char *behind;                  /* names of leaves, as they stand in the file; NULL: none */
    int leaves;                          /* so many... */
    unsigned char leaf[RFI_BROKERS_MAX]; /* ...by their places */
} rfi_participant;

/* A server between some of the agents and a broker, its hub. */
typedef struct rfi_leaf {
    char name[RFI_NAME_SIZE];
    unsigned char login[RFI_KEY_BYTES]; /* at the hub */
    const char *url;                    /* where its agents reach it */
} rfi_leaf;

/* What stands in single lines. Texts are specs of the library. */
typedef struct rfi_terms {
    int64_t epoch, from, seed, stale;
    double malicious, largest;
    bool seal;                  /* models are encrypted for those who hear their sender (net/seal.h) */
    char graph[REEF_TEXT_SIZE]; /* "" with links */
    char links[REEF_TEXT_SIZE];
    char weights[REEF_TEXT_SIZE];
    char rule[REEF_TEXT_SIZE];
    char strategy[REEF_TEXT_SIZE]; /* "": models come from the agents' owners, and the rule knows no step size */
} rfi_terms;

/* `test:`, for runs on one machine. */
typedef struct rfi_rehearsal {
    char problem[REEF_TEXT_SIZE];   /* what agents learn; "": models come from outside */
    char attack[REEF_TEXT_SIZE];    /* what malicious ones send; "": what honest ones would */
    char malicious[REEF_TEXT_SIZE]; /* numbers of the malicious ones, "3 7" */
    double two_faced;               /* malicious ones add it to the models they send to every second broker */
    double late;                    /* share of the deadline for which malicious ones hold their models back */
    double drop;                    /* share of the messages that are lost on arrival */
    bool sync;                      /* false: the journal is not flushed to the disk */
    bool wait;                      /* for the models of everybody, until the deadline */
    int64_t rounds;                 /* after which agents end; 0: never */
    int64_t every;                  /* rounds between records of the model, 0: none */
} rfi_rehearsal;

typedef struct rfi_runfile {
    const reef_context *context;
    rfi_yaml yaml;
    unsigned char hash[RFI_HASH_BYTES];
    unsigned char coordinator[RFI_KEY_BYTES];
    char run[RFI_NAME_SIZE];
    unsigned char id[RFI_RUN_ID_BYTES];
    rfi_terms terms;
    double deadline; /* seconds */
    rfi_shape shape;
    bool any_layout; /* the shape's layout is whatever the agent's own models have */
    ptrdiff_t agents;
    rfi_participant *participants;
    ptrdiff_t observers;
    rfi_participant *observer; /* login alone */
    ptrdiff_t brokers;
    const char *broker[RFI_BROKERS_MAX];
    ptrdiff_t leaves;
    rfi_leaf *leaf;
    bool is_test;
    rfi_rehearsal test;
} rfi_runfile;

/* Reads a run file and checks it: format, signature by the coordinator it names, keys, names, ranges. `source` begins messages and
 * must outlive the file. Whether that coordinator is the right one the caller must find out. On failure *file is untouched. */
reef_status rfi_runfile_read(const reef_context *context, const void *bytes, size_t size, const char *source,
                             rfi_runfile *file, reef_error *error);
reef_status rfi_runfile_load(const reef_context *context, const char *path, rfi_runfile *file, reef_error *error);
/* Accepts a cleared one. */
void rfi_runfile_free(rfi_runfile *file);

/* The place of an identity, or -1. */
ptrdiff_t rfi_runfile_find(const rfi_runfile *file, const unsigned char identity[RFI_KEY_BYTES]);
/* The place of a name, or -1. */
ptrdiff_t rfi_runfile_named(const rfi_runfile *file, const char *name);
/* The file is signed by this coordinator, an identity as text. */
reef_status rfi_runfile_signed_by(const rfi_runfile *file, const char *coordinator, reef_error *error);
/* The brokers of the file become those of one agent: the leaves it is behind, if there are any. May be called again. */
void rfi_runfile_stand(rfi_runfile *file, ptrdiff_t place);
/* Whether an agent is behind the leaf with this login; false for agents that are not, or no longer, in the run. */
bool rfi_runfile_behind(const rfi_runfile *file, ptrdiff_t place, const unsigned char login[RFI_KEY_BYTES]);
/* The leaf with this login, or NULL. */
const rfi_leaf *rfi_runfile_leaf(const rfi_runfile *file, const unsigned char login[RFI_KEY_BYTES]);
/* All brokers, leaves included, are on this very machine. */
bool rfi_runfile_local(const rfi_runfile *file);
/* Whether a text is the token of a run: [a-z0-9-]{1,32}. */
bool rfi_is_token(const char *text);
/* Whether a broker's address needs no encryption, since it does not leave the machine. */
bool rfi_is_loopback(const char *url);

/* The line that signs a draft, with its newline; room for RFI_SIGNED_SIZE bytes. The draft must end with a newline. */
enum { RFI_SIGNED_SIZE = 176 };
size_t rfi_runfile_sign(const void *draft, size_t size, const rfi_keys *coordinator, char line[RFI_SIGNED_SIZE]);
/* Whether the bytes end with such a line that verifies: *size becomes what was signed, `by` whose key it is. */
bool rfi_runfile_signed(const char *bytes, size_t *size, unsigned char by[RFI_KEY_BYTES],
                        unsigned char hash[RFI_HASH_BYTES]);

#endif
