/* What agents learn: problems, by name or your own.
 *
 * A problem gives every agent k a risk J_k(w) over models w of M numbers, and stochastic gradients of it. Models are float32. The
 * data of a gradient is a pure function of (seed, agent, repetition, round, step): any thread or process may compute any
 * gradient, in any order, and the rule, attack and strategy under study do not change it.
 *
 * Lanes: R independent repetitions of an experiment may be run side by side. A model is then M x R numbers, with the R repetitions of a
 * coordinate next to each other: w[m * R + r]. Problems with REEF_PROBLEM_LANES take any R >= 1, the others R = 1.
 */
#ifndef REEF_PROBLEM_H
#define REEF_PROBLEM_H

#include <reef/context.h>
#include <reef/registry.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    REEF_PROBLEM_LANES = 1 << 0,   /* takes R > 1 */
    REEF_PROBLEM_OPTIMUM = 1 << 1, /* knows w^o: has `optimum` */
    REEF_PROBLEM_CLASSES = 1 << 2, /* classifies: score fills accuracies, labels can be flipped */
    /* gradients needs all agents of a step in one call, and is never called by two threads of a run at once */
    REEF_PROBLEM_WHOLE = 1 << 3,
};

/* A request for the gradients of some agents. */
typedef struct reef_batch {
    ptrdiff_t count;            /* agents in this call */
    const int32_t *agents;      /* which, ascending */
    const float *const *models; /* per agent: the M x lanes numbers at which the gradient is taken */
    float *const *gradients;    /* per agent: room for M x lanes numbers; may not overlap the models */
    const bool *flipped;        /* per agent: learns from flipped labels (y -> classes - 1 - y); NULL: none */
    int64_t round;              /* >= 0 */
    int32_t step;               /* local step within the round, >= 0 */
    int32_t size;               /* samples per gradient, >= 1; 0: all of the agent's data (problems with `samples`) */
    int32_t lanes;              /* R */
    int32_t repetition;         /* number of lane 0's repetition */
    void *work;                 /* work_size(size, lanes) bytes, 64-byte aligned, of the calling thread alone */
} reef_batch;

/* How good a model is, on separate test data if there is any. */
typedef struct reef_score {
    double loss;           /* mean over the data */
    double accuracy;       /* 0..1, NaN if the problem does not classify */
    double worst_accuracy; /* of the class with the lowest accuracy; NaN likewise */
} reef_score;

/* What a problem is made for. */
typedef struct reef_problem_setup {
    const reef_context *context;          /* or NULL */
    ptrdiff_t agents;                     /* K >= 1 */
    uint64_t seed;                        /* seed of its data */
    const struct reef_problem_kind *kind; /* what is being made */
} reef_problem_setup;

/* A kind of problem. state: what create returned. Callbacks are called from several threads at once with the same state, which they must
 * not change. Only create may fail; later failures are reported by `failure`. */
typedef struct reef_problem_kind {
    reef_kind kind;  /* name, summary, citation, fields */
    unsigned traits; /* REEF_PROBLEM_ bits */
    /* Makes the state. */
    reef_status (*create)(const void *params, const reef_problem_setup *setup, void **state, reef_error *error);
    /* Frees what create returned. */
    void (*destroy)(void *state);
    /* M. */
    ptrdiff_t (*dimension)(const void *state);
    /* Bytes of scratch for batches of `size` samples and `lanes` repetitions. */
    size_t (*work_size)(const void *state, ptrdiff_t size, ptrdiff_t lanes);
    /* Writes the model from which all agents start (M x lanes); NULL: 0. */
    void (*start)(const void *state, ptrdiff_t lanes, ptrdiff_t repetition, float *model);
    /* Fills in the gradients of a batch. */
    void (*gradients)(const void *state, const reef_batch *batch);
    /* Minimiser of agent k's risk at a time (it may drift) and repetition, M numbers; agent -1: of the sum of all risks with weights p
     * (K numbers, NULL: equal ones), which is the limit point of the theorem. */
    void (*optimum)(const void *state, ptrdiff_t agent, const double *p, int64_t round, ptrdiff_t repetition,
                    double *w);
    /* Expected excess risk of agent k at w (M numbers, one repetition), for excess MSE; NULL: unknown. */
    double (*excess)(const void *state, ptrdiff_t agent, int64_t round, ptrdiff_t repetition, const double *w);
    /* Predicted steady-state MSD of the average over agents with Perron vector p, step sizes mu (K each) and batch size; NULL: unknown. */
    double (*theory)(const void *state, const double *p, const double *mu, ptrdiff_t size);
    /* Score of one model (one repetition); work: work_size(state, 0, 1) bytes. NULL: none. */
    void (*score)(const void *state, const float *model, reef_score *score, void *work);
    /* Training samples of an agent, for sample-count weights; NULL: unlimited data, the same for all. */
    ptrdiff_t (*samples)(const void *state, ptrdiff_t agent);
    /* Noise variance of an agent, for weights by relative variance; NULL: unknown. */
    double (*variance)(const void *state, ptrdiff_t agent);
    /* Why start, gradients or score failed for this state, as a message that stays valid; it returns NULL if none has failed. Called after every
     * round and score; a run whose problem has failed ends with that error. NULL: they cannot fail. */
    const char *(*failure)(const void *state);
} reef_problem_kind;

/* A problem made for K agents. Immutable after create, usable from many threads. The context must outlive it, and so must a kind of your own. */
typedef struct reef_problem reef_problem;

/* spec: kind:key=value,... for instance "lms:dimension=10,noise=0.01" or "softmax:data=digits,partition=dirichlet". */
REEF_API REEF_MUST_CHECK reef_status reef_problem_create(reef_context *context, reef_problem **problem,
                                                         const char *spec, ptrdiff_t agents, uint64_t seed,
                                                         reef_error *error);
/* The same with a kind of your own; params as its field table says, NULL: all defaults. */
REEF_API REEF_MUST_CHECK reef_status reef_problem_create_own(reef_context *context, reef_problem **problem,
                                                             const reef_problem_kind *kind, const void *params,
                                                             ptrdiff_t agents, uint64_t seed, reef_error *error);
/* Runs made from it must be destroyed first. Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_problem_destroy(reef_problem **problem);

/* What kind of problem it is. */
REEF_API const reef_problem_kind *reef_problem_kind_of(const reef_problem *problem);
/* What its kind's `create` has returned. */
REEF_API const void *reef_problem_state(const reef_problem *problem);
/* K. */
REEF_API ptrdiff_t reef_problem_agents(const reef_problem *problem);
/* M. */
REEF_API ptrdiff_t reef_problem_dimension(const reef_problem *problem);
/* The full text with every parameter; returns its length. */
REEF_API size_t reef_problem_print(const reef_problem *problem, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
