/* Learning from a finite data set spread over agents: the data, which agent has which samples, and which samples are in a mini-batch. */
#ifndef RFI_PROBLEM_FINITE_H
#define RFI_PROBLEM_FINITE_H

#include "problem/dataset.h"
#include "problem/partition.h"

#include <reef/problem.h>

enum { RFI_SAMPLE_REPLACE, RFI_SAMPLE_EPOCHS };

/* What all these problems take; first in the parameters of each. */
typedef struct rfi_finite_params {
    char data[REEF_TEXT_SIZE];
    char partition[REEF_TEXT_SIZE];
    double l2;
    int sampling;
    int64_t steps;
} rfi_finite_params;

extern const char *const rfi_sampling_words[];

/* Their fields; `set` is the preset of data. */
#define RFI_FINITE_FIELDS(set)                                                                                         \
    {.name = "data",                                                                                                   \
     .type = REEF_FIELD_TEXT,                                                                                          \
     .offset = offsetof(rfi_finite_params, data),                                                                      \
     .preset = (set),                                                                                                  \
     .unit = "",                                                                                                       \
     .help = "spec of the data set, in parentheses if it has commas"},                                                 \
        {.name = "partition",                                                                                          \
         .type = REEF_FIELD_TEXT,                                                                                      \
         .offset = offsetof(rfi_finite_params, partition),                                                             \
         .preset = "iid",                                                                                              \
         .unit = "",                                                                                                   \
         .help = "spec of the partition of the training samples over the agents"},                                     \
        {.name = "l2",                                                                                                 \
         .type = REEF_FIELD_REAL,                                                                                      \
         .offset = offsetof(rfi_finite_params, l2),                                                                    \
         .preset = "0",                                                                                                \
         .min = 0,                                                                                                     \
         .max = 1e6,                                                                                                   \
         .unit = "",                                                                                                   \
         .help = "adds l2/2 times the squared length of the model to every risk"},                                     \
        {.name = "sampling",                                                                                           \
         .type = REEF_FIELD_WORD,                                                                                      \
         .offset = offsetof(rfi_finite_params, sampling),                                                              \
         .preset = "replace",                                                                                          \
         .unit = "",                                                                                                   \
         .help = "mini-batches: drawn with replacement, or by epochs (every sample once, in random order)",            \
         .words = rfi_sampling_words},                                                                                 \
    {                                                                                                                  \
        .name = "steps", .type = REEF_FIELD_INT, .offset = offsetof(rfi_finite_params, steps), .preset = "1",          \
        .min = 1, .max = 1e6, .unit = "", .help = "epochs: local steps that a round has"                               \
    }

typedef struct rfi_finite {
    const reef_context *context;
    rfi_dataset *data; /* labelled with classes */
    rfi_partition *partition;
    double l2;
    int sampling;
    int64_t steps;
    uint64_t key; /* of the mini-batches */
} rfi_finite;

/* Loads and spreads; `name` is the problem's, for messages. On failure *finite is cleared. */
reef_status rfi_finite_init(rfi_finite *finite, const char *name, const rfi_finite_params *params,
                            const reef_problem_setup *setup, reef_error *error);
void rfi_finite_clear(rfi_finite *finite);

/* A mini-batch: where it is in the run and how many samples it has. */
typedef struct rfi_minibatch {
    ptrdiff_t agent;
    int64_t round;
    int32_t step;
    int32_t repetition;
    int32_t size; /* 0: all samples of the agent */
} rfi_minibatch;

/* Samples in it. */
ptrdiff_t rfi_minibatch_count(const rfi_finite *finite, const rfi_minibatch *batch);
/* Numbers in the data set of samples from..from+count-1 of the mini-batch: a pure function of the seed and *batch. */
void rfi_minibatch_draw(const rfi_finite *finite, const rfi_minibatch *batch, ptrdiff_t from, ptrdiff_t count,
                        ptrdiff_t *index);

#endif
