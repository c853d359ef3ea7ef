/* Learning over networks: agents adapt their models to their own data, exchange them, and combine what they hear.
 *
 * A run is K agents, a problem, a strategy and a rule; some agents may be malicious. One round:
 *     adapt      phi_k = w_k - mu_k grad J_k(w_k)       every agent, from its own data
 *     exchange   malicious agents send what the attack says, the others phi_k
 *     combine    w_k = rule(phi_l of those k hears)     or the server for all
 * in the order the strategy says. Runs with the same setup are bit-identical, for any number of threads and after resuming from a saved
 * state. A run never ends because of what a malicious agent sent: an agent without a usable message keeps its own phi, and it is counted.
 *
 * R repetitions with independent data can run side by side in vector lanes (setup.lanes) where problem, attack and rule allow it.
 */
#ifndef REEF_LEARN_H
#define REEF_LEARN_H

#include <reef/agg.h>
#include <reef/attack.h>
#include <reef/engine.h>
#include <reef/graph.h>
#include <reef/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A run, to be used by one thread at a time; a step uses the threads of the context. Different runs may be used by different threads at once, unless
 * they share a problem with REEF_PROBLEM_WHOLE. The context and all objects of the setup must outlive it. */
typedef struct reef_run reef_run;

/* What a run is made of. All objects must outlive the run; arrays are copied. */
typedef struct reef_run_setup {
    size_t size; /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    const reef_problem *problem; /* for K agents */
    const char *strategy;        /* for instance "diffusion:mu=0.01" or "federated:fraction=0.5,steps=5" */
    const reef_agg *rule;        /* NULL where the strategy needs none (local, oracle, rsa, rsa_tv) */
    const reef_links *links;     /* who hears whom; NULL for strategies with a server */
    const reef_attack *attack;   /* NULL: malicious agents, if any, send what honest ones would */
    const bool *malicious;       /* K flags, NULL: none */
    const double *step_factor;   /* K factors for the strategy's step size, NULL: 1 */
    uint64_t seed;               /* of the random draws of strategy and attack; the data has the problem's seed */
    ptrdiff_t lanes;             /* R, 0: 1 */
    ptrdiff_t repetition;        /* number of lane 0's repetition */
    bool trust;                  /* keep the effective weights of every combination */
    /* NULL: all agents in this process. Otherwise agents are spread over the engine's ranks: every rank makes the run from the same
     * setup and calls the same functions; create, step, save, load and the metrics are collective. A server's model is on all ranks; what
     * its agents send is combined by slices of the coordinates (reef/shard.h), so that no rank has all of it. Models and metrics are
     * bit-identical to those of a run in one process. The engine must outlive the run. */
    const reef_engine *engine;
} reef_run_setup;

/* Counts since round 0, the same for all lanes. */
typedef struct reef_run_counts {
    int64_t rounds;    /* done */
    int64_t messages;  /* received, between agents or between agent and server; an agent's own are not counted */
    int64_t bytes;     /* of numbers in these messages, for one repetition */
    int64_t gradients; /* computed */
    int64_t kept;      /* combinations without a usable message: the agent kept its own phi, the server its model */
    int64_t dropped;   /* rows left out by the rule because they held NaN or Inf, at each receiver */
    int64_t silent;    /* expected messages that never came, from silent malicious agents or failed ones */
    int64_t late;      /* messages that came too late to be used */
} reef_run_counts;

/* Makes a run at round 0. */
REEF_API REEF_MUST_CHECK reef_status reef_run_create(reef_context *context, reef_run **run, const reef_run_setup *setup,
                                                     reef_error *error);
/* Accepts NULL, sets the pointer to NULL. Over ranks: collective. */
REEF_API void reef_run_destroy(reef_run **run);
/* Runs more rounds. */
REEF_API REEF_MUST_CHECK reef_status reef_run_step(reef_run *run, int64_t rounds, reef_error *error);

/* Rounds done so far. */
REEF_API int64_t reef_run_round(const reef_run *run);
/* K, over all ranks. */
REEF_API ptrdiff_t reef_run_agents(const reef_run *run);
REEF_API ptrdiff_t reef_run_dimension(const reef_run *run); /* M */
REEF_API ptrdiff_t reef_run_lanes(const reef_run *run);     /* R */
/* Whether the model of an agent is on this rank. */
REEF_API bool reef_run_holds(const reef_run *run, ptrdiff_t agent);
/* w_k, M x R numbers; NULL if it is on another rank or out of range. With a server: the server's model, for all agents it serves. Valid until
 * the next step. */
REEF_API const float *reef_run_model(const reef_run *run, ptrdiff_t agent);
/* The counts of a run; over ranks, those of the receivers on this rank (a server is on rank 0). */
REEF_API reef_run_counts reef_run_counts_of(const reef_run *run);
/* True if the graph's weights were replaced by uniform ones, because the rule cannot use weights. */
REEF_API bool reef_run_uniform(const reef_run *run);
/* The full text of the strategy; returns its length. */
REEF_API size_t reef_run_print(const reef_run *run, char *text, size_t size);

/* How much weight a receiver gave to each sender in the last round (setup.trust): the effective weight abar_lk, averaged over coordinates, that
 * receiver k gave to sender l. Receivers are the agents of this rank or, with a server, 0 on all ranks. Returns the number of senders, at most `room`. */
REEF_API ptrdiff_t reef_run_trust(const reef_run *run, ptrdiff_t receiver, int32_t *senders, double *share,
                                  ptrdiff_t room);

/* Saves the state of a run, to be resumed later; written atomically. Loading needs a run created from the same setup (this is checked), at any
 * round; it fails without changing the run if the file is damaged or belongs to another setup. Trust is not saved: it is available again after
 * the next round. Over ranks, `path` becomes a manifest, each rank has a file beside it, and any number of ranks may load it. The
 * previous checkpoint is kept, too, and used if the newest is damaged (see reef_run_round). Over ranks, a load that fails half-way leaves the
 * run unusable. */
REEF_API REEF_MUST_CHECK reef_status reef_run_save(const reef_run *run, const char *path, reef_error *error);
/* Continues from a saved state (see above). */
REEF_API REEF_MUST_CHECK reef_status reef_run_load(reef_run *run, const char *path, reef_error *error);

/* ---- metrics, over the honest agents ---- */

/* Mean square deviation: mean over honest agents of |w_k - w^o|^2, per lane (R numbers). If agents have different minimisers, w^o is that of
 * the sum of the honest risks with weights p (K numbers, for instance the Perron vector; NULL: equal ones). */
REEF_API REEF_MUST_CHECK reef_status reef_run_msd(const reef_run *run, const double *p, double *msd, reef_error *error);
/* Mean over honest agents of the excess risk, per lane. */
REEF_API REEF_MUST_CHECK reef_status reef_run_excess(const reef_run *run, double *excess, reef_error *error);
/* Mean over honest agents of |w_k - mean w|^2, per lane; NaN if ranks cannot reach each other, which the next step reports. */
REEF_API void reef_run_consensus(const reef_run *run, double *distance);
/* Mean over honest agents of the score of their models; agents with the same model are scored once. R must be 1. */
REEF_API REEF_MUST_CHECK reef_status reef_run_score(const reef_run *run, reef_score *score, reef_error *error);

/* Trust in the last round (setup.trust); 1 is the fair share. */
typedef struct reef_trust_facts {
    double honest;          /* mean effective weight of honest senders over their fair share */
    double malicious_count; /* the same for malicious senders; NaN without any */
    double
        auc; /* probability that an honest sender has more trust than a malicious one heard by the same receiver; ties count half; NaN */
} reef_trust_facts;
/* Summarises the trust of the last round. */
REEF_API REEF_MUST_CHECK reef_status reef_run_trust_facts(const reef_run *run, reef_trust_facts *facts,
                                                          reef_error *error);

/* The trust that each agent received in the last round (setup.trust): its effective weight over its fair share, averaged over the honest
 * receivers that were to hear it, other than itself; NaN if there was none. K numbers, in steps of 2^-30 before the mean; work: room for
 * K numbers. */
REEF_API REEF_MUST_CHECK reef_status reef_run_trust_received(const reef_run *run, double *received, double *work,
                                                             reef_error *error);
/* The reason for it: what a test of the rule (number `factor` of the factors of reef_agg_rule(rule)->memory) left of each agent's weight in the
 * last round, averaged in the same way. */
REEF_API REEF_MUST_CHECK reef_status reef_run_factor_received(const reef_run *run, ptrdiff_t factor, double *received,
                                                              double *work, reef_error *error);

#ifdef __cplusplus
}
#endif
#endif
