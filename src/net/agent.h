/* One agent: run file, key, state folder, the learning member, the node and its link, without threads. agent_thread.c puts a thread
 * around it for programs with models of their own; rehearse.c runs it on a built-in problem.
 *
 * State folder, mode 0700: `lock`, `coordinator` (the key that must have signed the run file), `run.yaml` (in force), `run.before.yaml`,
 * `run.next.yaml`, `journal`, `checkpoint.1` and `.2`, `audit.log` (audit.h; one line per refusal cause and neighbour, at most one a minute
 * each). A checkpoint is "REEFAGT1", run id 16, identity 32, round u64, bytes u64, what reef_member_save gives, and BLAKE2b-256 of all that. */
#ifndef RFI_NET_AGENT_H
#define RFI_NET_AGENT_H

#include "io/file.h"
#include "net/handout.h"
#include "net/keys.h"
#include "net/link_nats.h"
#include "net/log.h"
#include "net/metrics.h"
#include "net/node.h"
#include "net/roster.h"
#include "net/telemetry.h"

#include <reef/member.h>
#include <reef/net.h>

#include <signal.h>
#include <sys/stat.h>

enum { RFI_PATH_SIZE = 4096 };

typedef struct rfi_agent_setup {
    const char *run_file;
    const char *key;
    const char
        *coordinator;  /* identity as text; NULL: the one kept in the state folder, or on this machine the file's own */
    const char *state; /* folder, made if need be */
    const char *authority;       /* certificates that brokers' are signed with; NULL: the system's */
    size_t memory;               /* most bytes, as rfi_roster_memory counts them; 0: no limit */
    double malicious_at_least;   /* a run file with a smaller F is refused */
    const unsigned char *layout; /* of the caller's models, RFI_HASH_BYTES; NULL: a plain vector */
    rfi_log log;
    int metrics; /* port on 127.0.0.1; 0: none */
} rfi_agent_setup;

typedef struct rfi_agent {
    rfi_runfile file;
    rfi_roster roster;
    rfi_secret secret;
    reef_attack *attack;
    ptrdiff_t place; /* this agent's */
    char folder[RFI_PATH_SIZE];
    int lock;
    rfi_journal journal;
    reef_member *member;
    ptrdiff_t self;                        /* place among the senders */
    const void **rows;                     /* by sender */
    rfi_netlink *brokers[RFI_BROKERS_MAX]; /* connections */
    rfi_netlink *ways[RFI_BROKERS_MAX];    /* the same, or in tests what changes models on the way there */
    rfi_netlink *nats;                     /* the first of the connections: where messages of all are waited for */
    rfi_netlink *many;                     /* all as one */
    rfi_netlink *link;                     /* that, or in tests what loses messages on the way from it */
    bool restoring;                        /* proofs are being read from the state folder */
    rfi_node *node;
    uint64_t rounds_done; /* ended when last looked at */
    uint64_t alone_done;
    const void *phi; /* what a round that ends alone goes on with */
    double saved_at;
    int generation; /* of the last checkpoint: 0 or 1 */
    double audited_at;
    uint64_t *audited; /* count x RFI_CAUSES */
    rfi_log log;
    rfi_telemetry telemetry;
    double *shares; /* 2 x senders, room for reef_member_trust */
    uint64_t *told; /* count x RFI_CAUSES: refusals when last told */
    double told_at; /* when STATUS and metrics were last told */
    uint64_t told_alone;
    bool told_up;
    uint64_t boot;
    rfi_metrics *metrics; /* or NULL */
    char run_file[RFI_PATH_SIZE];
    char authority[RFI_PATH_SIZE]; /* "": the system's */
    size_t memory;
    size_t needs; /* rfi_roster_memory */
    double malicious_at_least;
    char kept_file[RFI_PATH_SIZE]; /* run.yaml in the state folder */
    char past_file[RFI_PATH_SIZE]; /* run.before.yaml there */
    char next_file[RFI_PATH_SIZE]; /* run.next.yaml there */
    unsigned char before[RFI_HASH_BYTES];
    rfi_runfile next; /* of the epoch to come, if has_next */
    rfi_file next_bytes;
    bool has_next;
    bool by_hand; /* it came in place of the run file, not through the network */
    double passed_on_at;
    rfi_handout handout;
    uint64_t complained[RFI_HANDED_RESULTS]; /* counts when last told */
    double complained_at[RFI_HANDED_RESULTS];
    bool held;        /* set by the caller: no time to go over to the next epoch */
    bool removed;     /* from the run: the agent ends */
    int epochs;       /* that it has gone over: the neighbours are others */
    struct stat seen; /* the run file when last looked at */
    double looked_at;
} rfi_agent;

double rfi_now(void);

/* Opens everything; on failure nothing is left. REEF_E_ORDER: another process has the state folder. */
reef_status rfi_agent_open(rfi_agent *agent, const rfi_agent_setup *setup, reef_error *error);
/* Opens no more than files and state folder, to know at once whether they are good. */
reef_status rfi_agent_probe(rfi_agent *agent, const rfi_agent_setup *setup, reef_error *error);
/* Saves a checkpoint if it can, says good-bye if wanted, and releases all. Accepts one that failed to open. */
void rfi_agent_close(rfi_agent *agent, bool goodbye);

/* One step of the node; after a round has ended, the member has its result, and checkpoint and audit log are kept up. */
rfi_node_state rfi_agent_step(rfi_agent *agent, double now, double *until, bool *ended, reef_error *error);
/* Hands over what the agent sends in this round; NULL: nothing, it only listens. phi: what it goes on with if the round ends alone. */
void rfi_agent_offer(rfi_agent *agent, const void *message, const void *phi, double now);
/* Before an agent is closed: waits until a broker has what it published last, at most so long, or until *stop (NULL: never). */
void rfi_agent_deliver(rfi_agent *agent, double seconds, const volatile sig_atomic_t *stop);
/* Models of this very round that have come so far, by sender; NULL where none has. All honest ones there (test runs): true. */
bool rfi_agent_heard(const rfi_agent *agent, const void **rows);

/* Between opening and closing, agent_epoch.c makes these anew. */
reef_status rfi_agent_make_member(rfi_agent *agent, reef_error *error);
void rfi_agent_free_member(rfi_agent *agent);
/* On failure the node is what it was. */
reef_status rfi_agent_make_node(rfi_agent *agent, uint64_t round, reef_error *error);

/* agent_epoch.c. At the start: which file is in force, and which is to come. */
reef_status rfi_epoch_resume(rfi_agent *agent, reef_error *error);
void rfi_epoch_begin(rfi_agent *agent);
/* Looks for a new run file in place of the old one and asks the network for it, at most once a second. */
void rfi_epoch_look(rfi_agent *agent, double now);
/* A run file has come through the network; user: the agent. */
void rfi_epoch_offered(void *user, const unsigned char *bytes, size_t size, double now);
/* The next model is one of the next epoch. */
bool rfi_epoch_due(const rfi_agent *agent);
/* Goes over; failing ends the agent. `removed`: it has no place in the next epoch. */
reef_status rfi_epoch_turn(rfi_agent *agent, reef_error *error);

/* agent_state.c: the state folder. */
reef_status rfi_state_enter(rfi_agent *agent, const rfi_agent_setup *setup, reef_error *error);
reef_status rfi_checkpoint_take(rfi_agent *agent, uint64_t *round, reef_error *error);
reef_status rfi_checkpoint_put(rfi_agent *agent, reef_error *error);
/* Writes down refusals since the last call: net/audit.h. */
void rfi_audit(rfi_agent *agent);

/* agent_tell.c: what an agent tells about itself. A round has ended; the time has come, at most once a second unless it is the last time. */
void rfi_tell_round(rfi_agent *agent, double now);
void rfi_tell(rfi_agent *agent, double now, bool last);
void rfi_tell_refusals(const rfi_agent *agent, const rfi_peer *peer, rfi_cause cause, uint64_t count);
/* The present figures, as STATUS has them. */
void rfi_tell_status(rfi_agent *agent, rfi_status *status);
/* What an agent waits for that cannot begin although its broker can be reached. */
const char *rfi_agent_lacks(double heard, double above);
/* Logs what an agent waits for that cannot begin: the error of the broker `by`, which takes up to 2 s to find, or neighbours, of which more
 * than the weight `above` is wanted. */
void rfi_agent_explain(const rfi_log *log, const char *name, const rfi_nats_operator *by, double heard, double above);

/* agent_thread.c: reef_agent_create with everything that can be set. */
reef_status rfi_agent_start(reef_agent **agent, const rfi_agent_setup *setup, reef_error *error);
/* rfi_agent_explain, for an agent that reef_agent_join waits for; nothing once it has begun. */
void rfi_agent_tell_waiting(reef_agent *agent, const char *authority);
/* The agent has ended because the run goes on without it. */
bool rfi_agent_removed(const reef_agent *agent);
/* agent_report.c: the last round as JSON, without its end; returns its bytes, at most `room`. */
size_t rfi_agent_report(const reef_agent *agent, uint64_t round, double seconds, char *to, size_t room);
/* agent_local.c: the agent of a client on a socket. */
reef_status rfi_agent_local(const reef_agent_options *options, reef_error *error);

/* agent_links.c: connections to all brokers. */
reef_status rfi_links_open(rfi_agent *agent, const char *authority, const rfi_neighbour *neighbours, ptrdiff_t count,
                           reef_error *error);
void rfi_links_close(rfi_agent *agent);
/* All brokers have refused this agent's login. */
bool rfi_links_refused(const rfi_agent *agent);

/* agent_proofs.c: proofs that outlive the process. user: the agent. */
void rfi_proof_keep(void *user, uint32_t agent, const unsigned char proof[RFI_PROOF_BYTES]);
void rfi_proofs_take(rfi_agent *agent);

/* link_faces.c: a link that adds delta to the agent's models on their way and signs them anew. Does not own `to`. */
reef_status rfi_faces_open(rfi_netlink **link, const rfi_agent *agent, rfi_netlink *to, double delta,
                           reef_error *error);
void rfi_faces_close(rfi_netlink **link);

/* link_drop.c: a link that loses a share of what arrives, drawn from the seed. Does not own `from`. */
reef_status rfi_drop_open(rfi_netlink **link, const reef_context *context, rfi_netlink *from, double share,
                          uint64_t seed, reef_error *error);
void rfi_drop_close(rfi_netlink **link);

#endif
