/* Internals of runs. In names, a "lie" is what a malicious agent sends.
 *
 * Notation: K agents, M coordinates, R lanes; a row is M x R float32 and starts at a cache line.
 *   w_k    model of agent k             phi_k   what it has adapted, and sends
 *   g_k    stochastic gradient          sent_l  what others receive from l: phi_l, or an attack's row
 *
 * Who writes what, in one round of a strategy (run->strategy->step):
 *   adapt.c     rows of phi (or w) from gradients       parallel over agents
 *   lie.c       malicious rows, pointers `sent`         parallel over malicious agents
 *   combine.c   rows of w from neighbourhoods           parallel over receivers or classes of them
 * Every row has one writer and every random draw a counter of its own, so the number of threads changes no bit.
 */
#ifndef RFI_LEARN_RUN_H
#define RFI_LEARN_RUN_H

#include "base/fields.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/spec.h"

#include "learn/ranks.h"
#include "learn/step.h"

#include <reef/learn.h>

/* Purposes of random streams (see num/rng.h). */
enum { RFI_PURPOSE_SAMPLING = 0x73616D70, RFI_PURPOSE_STEPS = 0x73746570, RFI_PURPOSE_CLOCK = 0x636C6F63 };

/* Agents per gradient call and per part of a parallel job. */
enum { RFI_CHUNK_AGENTS = 64 };

/* A rule applied again and again to at most `rows` rows by one worker. */
typedef struct rfi_applier {
    reef_plan *plan;
    reef_report *report; /* of as many rows; NULL: none is kept */
    ptrdiff_t rows;
} rfi_applier;

/* What one thread needs. */
typedef struct rfi_learner {
    void *batch_work; /* of the problem */
    int32_t *agents;  /* run->chunk of each: a batch */
    int32_t *numbers; /* theirs in the network, with run->ids */
    const float **models;
    float **gradients;
    bool *flipped;
    float *attack_work; /* of the attack */
    float *lies;        /* rows for messages that differ from receiver to receiver */
    const void **rows;  /* largest neighbourhood: row pointers */
    int32_t *senders;
    int64_t *ids;     /* largest: who the rows are from, for rules with memory; or NULL */
    double *weights;  /* largest: as used, 0 for those who sent nothing */
    double *expected; /* largest: as they should be */
    double *live;     /* largest: of the links that are up */
    const float *
        *known; /* largest: rows known to a malicious agent that knows those that the receiver hears; or NULL */
    rfi_applier *appliers;   /* run->sizes of them */
    rfi_applier trial;       /* the rule in use, for attacks that try it out; up to K rows; or none */
    const void **trial_rows; /* K, with it */
    double *trial_weights;
    reef_run_counts counts; /* of the current round, added up afterwards */
    float *spare;           /* one row */
} rfi_learner;

typedef struct rfi_strategy rfi_strategy;

struct reef_run {
    reef_context *context;
    reef_run_setup setup; /* pointers to arrays are the run's own copies */
    const rfi_strategy *strategy;
    void *params;
    const rfi_adapt *adapt;                     /* in params */
    ptrdiff_t agents, dimension, lanes, length; /* length = M x R */
    ptrdiff_t all, own;                         /* agents of the network; those with models here: the first ones */
    ptrdiff_t all_malicious;
    ptrdiff_t models; /* rows of w: one per agent, or one where a server's model is everybody's */
    bool played;      /* its rounds are played elsewhere (played.h): never stepped */
    bool dry;         /* only to be asked about itself, never stepped: no room for models */
    int32_t *ids;     /* agents: their numbers in the network; NULL: the same */
    rfi_ranks *ranks; /* NULL: all agents are here */
    ptrdiff_t stride; /* floats from row to row */
    ptrdiff_t workers;
    ptrdiff_t chunk; /* agents per gradient call: RFI_CHUNK_AGENTS, or all where the problem wants it */
    ptrdiff_t malicious_count, own_malicious; /* the own ones come first in malicious_list */
    bool *malicious;
    int32_t *malicious_list, *honest_list;
    double *step_factor; /* or NULL */

    float *w, *phi;  /* `models` rows, K rows */
    float *zeros;    /* one row */
    float *gradient; /* K rows, for orders that need them besides phi; or NULL */
    float *velocity; /* K rows, with momentum; or NULL */
    float *lies;     /* one row per malicious agent, by its place in malicious_list */
    float *
        before; /* one row per malicious agent: its model before the adaptation that led to what it sends now; NULL: that is its w */
    bool sends_old;           /* agents send what they adapted a round ago: malicious ones have `before` */
    float *past;              /* late malicious messages: depth x malicious agents rows, a ring by round */
    unsigned char *past_sent; /* 1: that row of the ring was sent */
    int64_t depth;
    const float **known; /* rows that malicious agents know, the same for all, in this round; or NULL */
    ptrdiff_t known_count;
    ptrdiff_t honest_present, malicious_present; /* in this round */
    int32_t *home;      /* row of w that holds the model of agent k: agents with equal neighbourhoods share one */
    const float **sent; /* K: what others receive; NULL: nothing */
    const float *plain; /* if not NULL: no agent attacks or is absent in this round, and the rows sent are here */
    bool *present;      /* by number in the network: takes part in this round; NULL: all do */
    const float
        *origin; /* what messages are measured from, if not the sender's model: the server's model, or 0 for updates */

    /* neighbourhoods */
    bool uses_rule, uniform, keeps_self, shares_classes;
    ptrdiff_t largest; /* senders of any receiver */
    ptrdiff_t *sizes;  /* rows of the appliers, ascending */
    ptrdiff_t size_count;
    int32_t *class_of;    /* K: class of equal neighbourhoods */
    int32_t *class_first; /* one receiver of each */
    int32_t *class_size;  /* how many receivers */
    bool *class_failed;   /* in the current round */
    int32_t *heard;       /* the senders of a server in this round; or NULL */
    ptrdiff_t classes;
    reef_state **states;     /* per class (or receiver), for rules with memory; or NULL */
    double step_scale;       /* steps of size mu that one round is worth, 0: one */
    double *trust;           /* classes x largest: effective weights of the last combine; or NULL */
    double *fair;            /* likewise: the weights as they should be */
    double *factors;         /* classes x largest x factor_count: what the rule's tests left of them */
    ptrdiff_t factor_count;  /* 0: the rule has no tests, or nothing is kept */
    int32_t *trust_senders;  /* whose; at a server by their numbers in the network */
    ptrdiff_t *trust_counts; /* classes */
    double *received;        /* 2 all, for the trust that the attack watches; NULL: it does not */
    double watched;          /* that trust, after the last round */

    /* server */
    bool serves_all;        /* the server's model is everybody's */
    bool keeps_phi;         /* phi belongs to the state: messages under way */
    ptrdiff_t wanted;       /* rows that the server's rule will have to do with */
    float *server;          /* its model, and behind it velocity and output: 3 rows; NULL without one */
    double *server_weights; /* 2 K; or NULL */
    void *extra;            /* what the strategy keeps beside */
    size_t extra_size;      /* bytes of it that belong to the state */

    rfi_learner *learners; /* workers of them */
    int32_t *members;      /* K, for metrics */
    double *numbers;       /* K max(R, 6) + M R + M, for metrics */
    int64_t round;
    reef_run_counts counts;
};

/* A strategy. */
struct rfi_strategy {
    reef_kind kind;
    bool needs_links, needs_rule, has_server;
    bool serves_all;     /* the server's model is everybody's */
    size_t adapt_offset; /* of the rfi_adapt in the parameters */
    /* What to allocate beside the common things; may refuse a setup. */
    reef_status (*prepare)(reef_run *run, reef_error *error);
    void (*step)(reef_run *run);
    /* Whether `extra`, as read from a file, can be true; NULL: whatever it is. */
    bool (*is_sane)(const reef_run *run);
    /* Whether with these parameters an agent sends what it has just adapted and then combines, so that it can do its part alone
     * (reef/member.h); NULL: never. */
    bool (*sends_adapted)(const void *params);
};

extern const rfi_family rfi_family_strategy;

/* The fields of rfi_adapt for a strategy's table; `params_type` has a member `adapt`. */
#define RFI_ADAPT_FIELDS(params_type)                                                                                  \
    {.name = "mu",                                                                                                     \
     .type = REEF_FIELD_REAL,                                                                                          \
     .offset = offsetof(params_type, adapt.mu),                                                                        \
     .preset = "0.01",                                                                                                 \
     .min = 0,                                                                                                         \
     .max = 1e6,                                                                                                       \
     .unit = "",                                                                                                       \
     .help = "step size"},                                                                                             \
        {.name = "schedule",                                                                                           \
         .type = REEF_FIELD_WORD,                                                                                      \
         .offset = offsetof(params_type, adapt.schedule),                                                              \
         .preset = "constant",                                                                                         \
         .words = rfi_schedule_words,                                                                                  \
         .unit = "",                                                                                                   \
         .help = "mu; mu / (1 + i / decay); mu / sqrt(1 + i / decay); mu factor^(i / every)"},                         \
        {.name = "decay",                                                                                              \
         .type = REEF_FIELD_REAL,                                                                                      \
         .offset = offsetof(params_type, adapt.decay),                                                                 \
         .preset = "100",                                                                                              \
         .min = 1e-3,                                                                                                  \
         .max = 1e12,                                                                                                  \
         .unit = "rounds",                                                                                             \
         .help = "D of the schedules inverse and sqrt, in rounds"},                                                    \
        {.name = "factor",                                                                                             \
         .type = REEF_FIELD_REAL,                                                                                      \
         .offset = offsetof(params_type, adapt.factor),                                                                \
         .preset = "0.5",                                                                                              \
         .min = 0,                                                                                                     \
         .max = 1,                                                                                                     \
         .unit = "",                                                                                                   \
         .help = "factor of the schedule piecewise"},                                                                  \
        {.name = "every",                                                                                              \
         .type = REEF_FIELD_INT,                                                                                       \
         .offset = offsetof(params_type, adapt.every),                                                                 \
         .preset = "1000",                                                                                             \
         .min = 1,                                                                                                     \
         .max = 1e12,                                                                                                  \
         .unit = "rounds",                                                                                             \
         .help = "rounds between steps of the schedule piecewise"},                                                    \
        {.name = "batch",                                                                                              \
         .type = REEF_FIELD_INT,                                                                                       \
         .offset = offsetof(params_type, adapt.batch),                                                                 \
         .preset = "1",                                                                                                \
         .min = 0,                                                                                                     \
         .max = 1e6,                                                                                                   \
         .unit = "samples",                                                                                            \
         .help = "samples per gradient; 0: all of the agent's data"},                                                  \
    {                                                                                                                  \
        .name = "momentum", .type = REEF_FIELD_REAL, .offset = offsetof(params_type, adapt.momentum), .preset = "0",   \
        .min = 0, .max = 0.9999, .unit = "", .help = "beta in v = beta v + (1 - beta) g; steps go along v"             \
    }
extern const char *const rfi_schedule_words[];

/* ---- rows ---- */

static inline float *rfi_row(const reef_run *run, float *rows, ptrdiff_t k)
{
    return rows + k * run->stride;
}

/* The number of an agent in the network. */
static inline ptrdiff_t rfi_id(const reef_run *run, ptrdiff_t k)
{
    return run->ids ? run->ids[k] : k;
}

/* Whether an agent, by its number in the network, is malicious. */
static inline bool rfi_is_malicious(const reef_run *run, ptrdiff_t id)
{
    return run->ranks ? run->ranks->malicious[id] : run->malicious[id];
}

/* The id under which receivers hear the agent of that number: malicious ones may have another one now and then. */
static inline int64_t rfi_sender_id(const reef_run *run, ptrdiff_t id)
{
    return rfi_is_malicious(run, id) ? reef_attack_identity(run->setup.attack, id, run->all, run->round) : (int64_t)id;
}

static inline const float *rfi_model(const reef_run *run, ptrdiff_t k)
{
    return run->w + run->home[k] * run->stride;
}

/* What others receive from agent k; NULL: nothing. */
static inline const float *rfi_sent(const reef_run *run, ptrdiff_t k)
{
    return run->plain ? run->plain + k * run->stride : run->sent[k];
}

/* A run that knows all about itself but has no room for models: for checks, and to ask for its parameters. setup.engine is ignored. */
reef_status rfi_run_describe(reef_context *context, reef_run **run, const reef_run_setup *setup, reef_error *error);

/* ---- allocate.c ---- */

/* Agents and rows; then, when it is known who hears how many, what threads work with. free accepts a run that is not complete. */
reef_status rfi_run_allocate(reef_run *run, reef_error *error);
reef_status rfi_run_allocate_work(reef_run *run, reef_error *error);
void rfi_run_free(reef_run *run);
/* Memory from the run's context, cleared; NULL if there is none or the product overflows. */
void *rfi_run_take(const reef_run *run, ptrdiff_t count, size_t size);
/* `count` rows at a cache line, cleared. */
float *rfi_run_rows(const reef_run *run, ptrdiff_t count);

/* Runs parts of about RFI_CHUNK_AGENTS of `count` things on all workers. The callback gets the range [from, to). */
typedef void (*rfi_range_job)(reef_run *run, void *job, ptrdiff_t from, ptrdiff_t to, rfi_learner *learner);
void rfi_run_ranges(reef_run *run, ptrdiff_t count, ptrdiff_t grain, rfi_range_job work, void *job);

/* ---- adapt.c ---- */

/* Step size of agent k in a round; k = -1: of the server. */
double rfi_step_size(const reef_run *run, ptrdiff_t k, int64_t round);
/* run.c: the error of a problem that has failed (reef_problem_kind.failure). Over ranks: collective. */
reef_status rfi_run_check_problem(const reef_run *run, reef_error *error);

/* to_k = base_k - mu v_k, with gradients taken at at_k. */
typedef struct rfi_adaption {
    bool at_models;   /* at (and base) is the agents' own model, through home; else rows of `at` and `base` */
    float *at, *base; /* K rows */
    float *to;        /* K rows; receives the gradients first */
    int64_t step;     /* local step within the round */
} rfi_adaption;
void rfi_adapt_all(reef_run *run, const rfi_adaption *how);
/* A local gradient step of the `count` <= chunk agents in learner->agents on rows of their own: model <- model - mu v. The models
 * are rows of `models`, the gradients go to `rows` by place in the batch. */
void rfi_adapt_some(reef_run *run, rfi_learner *learner, ptrdiff_t count, int64_t step, float *models, float *rows);

/* ---- lie.c ---- */

/* Sets run->sent from what all would send honestly (K rows); attacking agents send the attack's rows, unless those depend on the receiver. */
void rfi_lie(reef_run *run, float *honest);
/* Writes the message of malicious sender l to receiver k to `out`; false: silent. `honest` as above; known rows are those the receiver hears. */
bool rfi_lie_to(reef_run *run, rfi_learner *learner, float *honest, ptrdiff_t l, ptrdiff_t k, const int32_t *senders,
                ptrdiff_t count, float *out);
/* Whether malicious messages depend on the receiver in some round, and in this one. */
bool rfi_lies_can_differ(const reef_run *run);
bool rfi_lies_by_receiver(const reef_run *run);
/* Whether malicious agents make messages of their own in this round. */
bool rfi_attacks_now(const reef_run *run);
/* The model that a malicious agent has adapted from, and the row that holds its message. */
const float *rfi_previous_of(const reef_run *run, ptrdiff_t l);
float *rfi_lie_row(const reef_run *run, ptrdiff_t l);
/* Its place among the rows kept per malicious agent. */
ptrdiff_t rfi_malicious_place(const reef_run *run, ptrdiff_t l);
/* For orders in which agents send what they adapted a round ago: keeps what malicious agents adapted from (rows of K agents). */
reef_status rfi_before_prepare(reef_run *run, reef_error *error);
void rfi_before_keep(reef_run *run, float *rows);

/* ---- memory.c ---- */

/* Whether the rule remembers, and some neighbourhood is so small that the receiver's own row decides. */
bool rfi_memory_by_receiver(const reef_run *run);
reef_status rfi_memory_prepare(reef_run *run, reef_error *error);
void rfi_memory_free(reef_run *run);
/* Step size of the recursion in this round. */
double rfi_memory_step(const reef_run *run);
/* Bytes of one state in a checkpoint, and these: a length, then what reef_state_save gives. */
size_t rfi_memory_room(const reef_state *state);
void rfi_memory_put(const reef_state *state, unsigned char *bytes);
/* From `room` bytes, of which it uses the first. */
reef_status rfi_memory_take(reef_state *state, const unsigned char *bytes, size_t room, size_t *used,
                            reef_error *error);
/* Bytes of all states as they are now, and the most they can ever be; 0 without any. */
size_t rfi_memory_size(const reef_run *run);
size_t rfi_memory_most(const reef_run *run);
void rfi_memory_save(const reef_run *run, unsigned char *bytes);
reef_status rfi_memory_load(reef_run *run, const unsigned char *bytes, size_t size, reef_error *error);

/* ---- combine.c ---- */

/* classes.c: the plan for so many rows, or more. */
const rfi_applier *rfi_applier_for(const reef_run *run, const rfi_learner *learner, ptrdiff_t rows);

reef_status rfi_combine_prepare(reef_run *run, reef_error *error);
/* Whether the rule can work on neighbourhoods of these sizes at all: a clear refusal now instead of none ever combined. */
reef_status rfi_combine_try(reef_run *run, reef_error *error);
/* The same for the rows that a server hears (run->wanted). Over ranks: collective; `status` of what came before counts. */
reef_status rfi_combine_try_server(reef_run *run, reef_status status, reef_error *error);
void rfi_combine_free(reef_run *run);
/* to_k = rule(sent_l, l heard by k); where that fails to_k = own_k. The rows `to` become the models if `to` is run->w. */
void rfi_combine_all(reef_run *run, float *own, float *to);
/* One receiver's neighbourhood in this round. */
typedef struct rfi_hearing {
    const int32_t *senders;
    const double *weights;
    ptrdiff_t count;
} rfi_hearing;
rfi_hearing rfi_hear(const reef_run *run, rfi_learner *learner, ptrdiff_t k);
/* Everybody gets the row that was made for its class; without one (class_failed) its own. */
void rfi_hand_out(reef_run *run, float *own, float *to);
/* Receivers of a class other than the sender l itself: so many messages of l they should get. */
static inline int64_t rfi_others(const reef_run *run, ptrdiff_t class, ptrdiff_t l)
{
    const int64_t size = run->class_size[class];
    /* a class of one is its first: no look into class_of, which in a large network is anywhere in memory */
    return size - (size == 1 ? run->class_first[class] == l : run->class_of[l] == class);
}
/* What an attack that watches its trust will see of this round. */
void rfi_watch_trust(reef_run *run);
/* Keeps the trust: `given` is the trust of these senders in the rule's report, their weights are the learner's; NULL: nothing. */
void rfi_keep_trust(reef_run *run, const rfi_learner *learner, ptrdiff_t class_number, const int32_t *senders,
                    ptrdiff_t count, const double *given);
/* And the reasons, if the rule reports them. rows: the row of each sender in the report; NULL: in their order. report NULL: nothing was made. */
void rfi_keep_factors(reef_run *run, ptrdiff_t class_number, ptrdiff_t count, const reef_report *report,
                      const int32_t *rows);
/* One aggregation by the server of what those present sent, with weights (K) > 0; trust if wanted. False: no usable message. */
bool rfi_combine_server(reef_run *run, const double *weights, float *out);

#endif
