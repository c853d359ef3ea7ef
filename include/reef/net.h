/* Agents on an untrusted network: the library libreef_net, separate from libreef, which knows nothing about networks. Not included
 * by <reef/reef.h>. It contains a copy of libreef, so no handle is passed from one library to the other; all arguments are numbers and
 * texts.
 *
 * docs/network.md describes the protocol and the run file.
 */
#ifndef REEF_NET_H
#define REEF_NET_H

#include <reef/status.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One line that names the libraries with which it was built. */
REEF_API const char *reef_net_describe(void);

/* Where nats-server is: $REEF_NATS_SERVER, on the PATH, or where Debian puts it; and the version it reports. False: not found. */
REEF_API bool reef_net_server(char *path, size_t size, int *major, int *minor);

/* Called with a line of text, without the newline. */
typedef void reef_tell(void *user, const char *line);

/* How events are written: "ready: run=demo", with time and level as logfmt, or as a JSON object. */
typedef enum reef_log_format { REEF_LOG_PLAIN, REEF_LOG_LOGFMT, REEF_LOG_JSON } reef_log_format;
/* Which events are written. */
typedef enum reef_log_level { REEF_LOG_DEBUG = -1, REEF_LOG_INFO, REEF_LOG_WARNING, REEF_LOG_ERROR } reef_log_level;

/* Reports why something failed, as the event "failed" of such a log. */
REEF_API void reef_net_tell_failure(reef_log_format format, const char *text, reef_tell *tell, void *user);

/* ---- keys and run files ---- */

/* Room for the public half of a key: an identity and a login, "R... U...". */
#define REEF_NET_KEYS_SIZE 128

/* Draws a key and writes it to a file that only its owner may read; a file that exists is never touched. keys receives its public half:
 * what the coordinator of a run needs to know. */
REEF_API REEF_MUST_CHECK reef_status reef_net_key_make(const char *path, char keys[REEF_NET_KEYS_SIZE],
                                                       reef_error *error);
/* The public half of a key file. */
REEF_API REEF_MUST_CHECK reef_status reef_net_key_show(const char *path, char keys[REEF_NET_KEYS_SIZE],
                                                       reef_error *error);
/* Signs a draft of a run file with the coordinator's key file and writes it to `to`, if the result is a valid run file. */
REEF_API REEF_MUST_CHECK reef_status reef_net_sign(const char *draft, const char *key, const char *to,
                                                   reef_error *error);
/* The same for a later epoch of a run, which follows the run file `after`: agents added at the end or removed, another graph, another F. It
 * begins in round `from` of the draft, at least 10 rounds after `current`, the round that the run is in. */
REEF_API REEF_MUST_CHECK reef_status reef_net_sign_after(const char *draft, const char *key, const char *after,
                                                         int64_t current, const char *to, reef_error *error);
/* Reads and checks a run file, and reports what it means: for each agent, how many malicious and absent neighbours are tolerated, and its memory
 * and traffic. coordinator: the identity that must have signed it; NULL: any. *warnings (or NULL): lines that begin with WARNING. */
REEF_API REEF_MUST_CHECK reef_status reef_net_check(const char *path, const char *coordinator, reef_tell *tell,
                                                    void *user, ptrdiff_t *warnings, reef_error *error);

/* Checks a proof that an agent has signed two models for one round (docs/network.md), and reports what it says. run_file: to look up whose key it is;
 * NULL: not wanted. *proven: it is valid. REEF_E_FORMAT: the file is not a proof; REEF_E_ARG: the key is not of this run. */
REEF_API REEF_MUST_CHECK reef_status reef_net_proof(const char *path, const char *run_file, reef_tell *tell, void *user,
                                                    bool *proven, reef_error *error);

/* ---- agents on built-in problems, their broker, and both together ---- */

/* One agent of a run: on the built-in problem of its file, or for a program that talks to it through a socket. */
typedef struct reef_agent_options {
    size_t size;               /* sizeof of this struct, so that later versions can add members */
    const char *run_file;      /* path */
    const char *key;           /* path of the key file */
    const char *coordinator;   /* the identity that must have signed the run file; NULL: as at the first start */
    const char *state;         /* folder of journal and checkpoints, made if need be */
    const char *authority;     /* file of certificates to trust; NULL: the system's */
    size_t memory;             /* most bytes for models, 0: no limit */
    double malicious_at_least; /* run files that allow for less malicious weight are refused */
    int64_t rounds;            /* after which it ends; 0: as the run file says */
    const char *record;        /* file for models and trust, NULL: none */
    const char *socket; /* path: models come from a client on this Unix socket, see docs/network.md; NULL: none do */
    reef_tell *tell;    /* what happens; NULL: not wanted */
    void *user;         /* handed to tell */
    const volatile sig_atomic_t *stop; /* when it becomes non-zero the agent ends soon, cleanly; NULL: never */
    reef_log_format log;               /* of what is told */
    reef_log_level level;              /* events below it are not written */
    int metrics;                       /* port of Prometheus metrics on 127.0.0.1; 0: none */
} reef_agent_options;
/* Runs the agent until its rounds are done or it is asked to stop. REEF_E_ORDER: another process uses its key or folder. */
REEF_API REEF_MUST_CHECK reef_status reef_net_agent(const reef_agent_options *options, reef_error *error);

/* The broker of a run. */
typedef struct reef_broker_options {
    size_t size;                           /* sizeof of this struct */
    const char *run_file;                  /* path */
    const char *listen;                    /* "HOST:PORT"; NULL: as the run file says */
    const char *store;                     /* folder for configuration, log and stored models */
    const char *certificate, *private_key; /* files; NULL: only for agents on this machine */
    const char *authority;                 /* certificates that sign its own; NULL: the system's */
    bool print;                            /* only tells the configuration */
    reef_tell *tell;                       /* what happens; must be given */
    void *user;                            /* handed to tell */
    const volatile sig_atomic_t *stop;     /* when it becomes non-zero the server is ended; NULL: never */
    reef_log_format log;                   /* of what is told */
    reef_log_level level;                  /* events below it are not written */
    const char *leaves;                    /* "HOST:PORT" for leaves; NULL: there are none */
    const char *hub;                       /* this broker is a leaf of the one there; NULL: it is none */
    const char *key;                       /* key file of the leaf */
} reef_broker_options;
/* Runs a nats-server for the agents of a run, or for those behind a leaf, until it is asked to stop, and restarts it if it ends. Reports
 * "ready: ..." each time agents can connect. */
REEF_API REEF_MUST_CHECK reef_status reef_net_broker(const reef_broker_options *options, reef_error *error);

/* An experiment run as processes on this machine. */
typedef struct reef_swarm_options {
    size_t size;                  /* sizeof of this struct */
    const char *file;             /* experiment with one configuration */
    const char *const *overrides; /* "path=value", at most 64 */
    ptrdiff_t override_count;     /* of them */
    const char *results;          /* folder, as of reef_experiment_run */
    const char *keep;             /* new folder for keys, run file, logs and states; NULL: a temporary one */
    const char *program;          /* path of the command reef */
    bool force;                   /* replaces other results */
    bool patient;      /* rounds wait for all agents until the deadline; set this unless faults are injected */
    double malicious;  /* F; 0: 1/3, or what the placement needs */
    double deadline;   /* of a round, seconds; 0: long enough */
    double drop;       /* share of messages that are lost */
    ptrdiff_t brokers; /* independent ones, 1 to 8; 0: one */
    double two_faced;  /* malicious agents add it to the models they send to every second broker; 0: they do not */
    double late;       /* share of the deadline for which malicious agents hold their models back */
    int stale;         /* how many rounds old a model may be; -1: 1 */
    bool seal;         /* models are encrypted for the neighbours; brokers see only sizes and times */
    ptrdiff_t kills;   /* how often an agent is killed, as by kill -9, and started again */
    reef_tell *tell;   /* called with a line per second; NULL: not wanted */
    void *user;        /* handed to tell */
    const volatile sig_atomic_t *stop; /* when it becomes non-zero everything is ended; NULL: never */
    bool dash;                         /* a live page on 127.0.0.1, at... */
    int dash_port;                     /* ...this port; 0: any that is free */
    const char *record;                /* new file for the lines of the live page; NULL: none */
    reef_tell *tell_page;              /* gets a line with the page's address; may be NULL */
} reef_swarm_options;

/* The outcome of a swarm; rounds are summed over agents, and count from the last start of agents that were killed. */
typedef struct reef_swarm_outcome {
    ptrdiff_t agents; /* in it */
    int64_t combined; /* rounds in which models were combined */
    int64_t alone;    /* rounds without a quorum */
    int64_t refused;  /* frames that only malicious senders send */
    double seconds;   /* duration */
} reef_swarm_outcome;
/* Starts the brokers and the agents, 24 at a time, and measures the run as reef_experiment_run does. */
REEF_API REEF_MUST_CHECK reef_status reef_net_swarm(const reef_swarm_options *options, reef_swarm_outcome *outcome,
                                                    reef_error *error);

/* The live page: a network of agents, seen in a browser on this machine. */
typedef struct reef_dash_options {
    size_t size;        /* sizeof of this struct */
    const char *replay; /* file of recorded lines (docs/dash.md); "-": lines on standard input, as they come */
    int port;           /* on 127.0.0.1; 0: any that is free */
    reef_tell *tell;    /* the page's address, and what is wrong with the file; NULL: not wanted */
    void *user;         /* handed to tell */
    const volatile sig_atomic_t *stop; /* when it becomes non-zero the server is ended; NULL: never */
    const char *run_file;              /* instead of replay: a run under way... */
    const char *key;                   /* ...and the key file of one of its observers */
    const char *coordinator;           /* the identity that must have signed the run file; NULL: anyone */
    const char *authority;             /* file of certificates to trust; NULL: the system's */
    const char *record;                /* with run_file: new file for all lines; NULL: none */
} reef_dash_options;
/* Serves the page until it is asked to stop. */
REEF_API REEF_MUST_CHECK reef_status reef_net_dash(const reef_dash_options *options, reef_error *error);
/* What the live page needs and this build lacks, as a message; NULL: nothing, it works. */
REEF_API const char *reef_net_dash_lacks(void);

/* ---- an agent in your own program ---- */

/* One agent, which runs in a thread of its own; its functions are called by one thread at a time. Nothing needs to outlive it. */
typedef struct reef_agent reef_agent;

/* Opens key, run file and state folder, and connects in the background. coordinator: the identity that must have signed the run file; NULL:
 * as at the first start. layout: 32 bytes that name tensors, shapes and types of the models; NULL: a plain vector. REEF_E_ORDER: another process uses the key
 * or the folder. */
REEF_API REEF_MUST_CHECK reef_status reef_agent_create(reef_agent **agent, const char *run_file, const char *key,
                                                       const char *coordinator, const char *state,
                                                       const unsigned char *layout, reef_error *error);
/* Saves the state, tells the neighbours that it leaves, and ends the agent. Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_agent_destroy(reef_agent **agent);
/* Numbers in a model. */
REEF_API int64_t reef_agent_dimension(const reef_agent *agent);
/* Whether they are float64; otherwise float32. */
REEF_API int reef_agent_double(const reef_agent *agent);
/* The current or next round. */
REEF_API int64_t reef_agent_round(reef_agent *agent);

/* Waits, at most so many seconds, until enough neighbours are present. *ready: they are; *joined: the run had
 * already started, and its model, made from those of the neighbours, is in `model`. */
REEF_API REEF_MUST_CHECK reef_status reef_agent_join(reef_agent *agent, double seconds, void *model, int *ready,
                                                     int *joined, reef_error *error);
/* Why the agent has not begun, for people: the error of its first broker, which takes up to 2 s to find, or what it lacks of its neighbours.
 * "": it has begun. */
REEF_API void reef_agent_waits_for(reef_agent *agent, char *text, size_t size);
/* Passes the agent its own model (copied) and returns. A failure of the agent, for instance of its disk or its key, is reported here or by wait.
 * REEF_E_ORDER: the result of the previous exchange has not been fetched. */
REEF_API REEF_MUST_CHECK reef_status reef_agent_begin(reef_agent *agent, const void *model, reef_error *error);
/* Waits, at most so many seconds, for the end of the round: *done says whether `model` is the result. Network problems are not a failure:
 * without a quorum the result is the agent's own model. */
REEF_API REEF_MUST_CHECK reef_status reef_agent_wait(reef_agent *agent, double seconds, void *model, int *done,
                                                     reef_error *error);

/* Reports a number, for instance a loss, to observers and metrics, under a name of 1 to 16 characters [a-z0-9_]; an agent has room for four names.
 * REEF_E_ARG: an invalid name, a number that is not finite, or a fifth name. */
REEF_API REEF_MUST_CHECK reef_status reef_agent_note(reef_agent *agent, const char *name, double value,
                                                     reef_error *error);

/* The functions below describe the last round; they are to be called between wait and the next begin. */

/* Whether models were combined; otherwise there was no quorum. */
REEF_API int reef_agent_combined(const reef_agent *agent);
/* Weight of the models that were combined, including the agent's own. */
REEF_API double reef_agent_weight(const reef_agent *agent);
/* Neighbours, numbered from 0. */
REEF_API ptrdiff_t reef_agent_neighbours(const reef_agent *agent);
/* The name that the run file gives a neighbour. */
REEF_API const char *reef_agent_name(const reef_agent *agent, ptrdiff_t neighbour);
/* Its effective weight over its fair share; NaN if nothing was combined. */
REEF_API double reef_agent_trust(const reef_agent *agent, ptrdiff_t neighbour);
/* Which model of a neighbour was used. */
typedef enum reef_presence {
    REEF_MISSING, /* none */
    REEF_FRESH,   /* that of this round */
    REEF_OLD,     /* one of another round */
} reef_presence;
/* Which of these it was. */
REEF_API reef_presence reef_agent_presence(const reef_agent *agent, ptrdiff_t neighbour);
/* Why frames of it were refused, if some were since the previous round; otherwise "". */
REEF_API const char *reef_agent_refused(const reef_agent *agent, ptrdiff_t neighbour);
/* Why the rule gave it this weight; "" if the rule does not say. */
REEF_API const char *reef_agent_explain(const reef_agent *agent, ptrdiff_t neighbour);

#ifdef __cplusplus
}
#endif
#endif
