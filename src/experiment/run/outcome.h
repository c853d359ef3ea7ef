/* Results of a job: for every metric and every point of the curve, and for the steady state, mean and spread over repetitions.
 *
 * Statistics are kept as count, mean and sum of squared deviations, and blocks of repetitions are merged in their order (Chan, Golub and
 * LeVeque 1979), so that the bits do not depend on who has computed which block. */
#ifndef RFI_EXPERIMENT_RUN_OUTCOME_H
#define RFI_EXPERIMENT_RUN_OUTCOME_H

#include "experiment/config/experiment.h"

typedef struct rfi_moments {
    double mean;
    double squares; /* sum of squared deviations from the mean */
} rfi_moments;

typedef struct rfi_outcome {
    ptrdiff_t points;       /* of the curve */
    ptrdiff_t metric_count; /* wanted ones */
    bool wanted[RFI_METRICS];
    ptrdiff_t repetitions;
    int64_t rounds, every;
    ptrdiff_t agents; /* whose received trust is kept; 0: none */
    ptrdiff_t views;  /* numbers per agent: trust, and for rules that remember senders the factors of their tests */
    double theory;    /* NaN: unknown */
    bool has_model;   /* the model of the first repetition is kept beside the results, with this checksum */
    uint64_t model_sum;
    rfi_moments *
        moments; /* metric_count x (points + 1), the last of each row is the steady state; then `views` times one per agent */
} rfi_outcome;

/* Sizes it; agents, views: 0 without trust. False: no memory. */
bool rfi_outcome_init(rfi_outcome *outcome, const reef_context *context, const rfi_cell_numbers *numbers,
                      const bool wanted[RFI_METRICS], ptrdiff_t agents, ptrdiff_t views);
/* Statistics there are in all. */
ptrdiff_t rfi_outcome_count(const rfi_outcome *outcome);
void rfi_outcome_fini(rfi_outcome *outcome, const reef_context *context);
/* Round of a point. */
int64_t rfi_outcome_round(const rfi_outcome *outcome, ptrdiff_t point);
/* Statistics of `lanes` values. */
rfi_moments rfi_moments_of(const double *values, ptrdiff_t lanes);
/* Adds the statistics of more repetitions of the same job. */
void rfi_outcome_merge(rfi_outcome *outcome, const rfi_outcome *more);
/* Statistics of the trust that an agent received in the steady state. */
rfi_moments rfi_outcome_trust(const rfi_outcome *outcome, ptrdiff_t agent);
/* The same of what a test left of its weight; views must be more than one. */
rfi_moments rfi_outcome_factor(const rfi_outcome *outcome, ptrdiff_t agent, ptrdiff_t test);
/* Statistics of the m-th wanted metric at a point; point = points: the steady state. */
rfi_moments rfi_outcome_at(const rfi_outcome *outcome, ptrdiff_t m, ptrdiff_t point);
/* Standard error of a mean; NaN with one repetition. */
double rfi_outcome_error(const rfi_outcome *outcome, rfi_moments moments);

/* ---- store.c: one file per job ---- */

enum { RFI_STORE_NAME = 40 };
/* The name of a job's file with an ending; `key` is from rfi_world_print. */
void rfi_store_name(const char *key, const char *ending, char name[RFI_STORE_NAME]);
reef_status rfi_store_write(const reef_context *context, const char *folder, const char *key,
                            const rfi_outcome *outcome, reef_error *error);
/* What the folder has of exactly this job; the outcome must have been sized for it, and is filled in if it is there. */
typedef enum rfi_stored {
    RFI_STORED_NOT, /* nothing, or of another version */
    RFI_STORED_DAMAGED,
    RFI_STORED
} rfi_stored;
rfi_stored rfi_store_read(const reef_context *context, const char *folder, const char *key, rfi_outcome *outcome);

/* Removes the file of a job. */
void rfi_store_remove(const char *folder, const char *key);

/* ---- results.c ---- */

/* What the tables are made of. */
typedef struct rfi_results {
    const reef_experiment *experiment;
    const rfi_outcome *const *cells;   /* per cell */
    const rfi_outcome *const *oracles; /* per cell, entries NULL without one */
    const char *const *keys;           /* per cell: rfi_world_print */
    double seconds;
    ptrdiff_t threads;
    bool arrays, models; /* asked for */
} rfi_results;

reef_status rfi_results_write(const rfi_results *results, const char *folder, reef_error *error);

/* steady.c: what the steady state of the metric in this row of the outcome must be taken with a grain of salt for: "diverged",
 * "not steady: still falling 3 dB per 100 rounds", or "". steady: the rounds that it is the mean of. */
enum { RFI_NOTE_SIZE = 80 };
void rfi_steady_note(const rfi_outcome *outcome, ptrdiff_t row, rfi_metric metric, int64_t steady, char *text,
                     size_t size);

/* trust.c: trust.csv, and the figure of the network. */
reef_status rfi_trust_write(const rfi_results *results, const char *folder, reef_error *error);
/* arrays.c: the curves in folder/arrays. */
reef_status rfi_arrays_write(const rfi_results *results, const char *folder, reef_error *error);
/* model.c: the model of a run, into the file of its job in `folder`; and from there to folder/models. */
reef_status rfi_model_write(const rfi_world *world, const reef_run *run, const char *folder, const char *key,
                            reef_error *error);
reef_status rfi_models_write(const rfi_results *results, const char *folder, reef_error *error);
/* The checksum of the model of a job: REEF_E_FILE if there is none. And away with it. */
reef_status rfi_model_sum(const reef_context *context, const char *folder, const char *key, uint64_t *sum,
                          reef_error *error);
void rfi_model_remove(const char *folder, const char *key);

/* check.c: what is known of every cell beforehand, in folder/check.txt. */
reef_status rfi_check_write(const rfi_results *results, const char *folder, reef_error *error);

/* figures.c: scripts and data in folder/figures. */
reef_status rfi_figures_write(const rfi_results *results, const char *folder, reef_error *error);

/* Makes a folder and those above it. */
reef_status rfi_make_folder(const char *path, reef_error *error);

/* A text that grows. */
typedef struct rfi_text {
    const reef_context *context;
    char *bytes;
    size_t size, room;
    bool failed; /* no memory; everything after is dropped */
} rfi_text;
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void rfi_text_add(rfi_text *text, const char *format, ...);
/* A number: as short as can be read back exactly; nan and inf as such words. */
void rfi_text_number(rfi_text *text, double number);
/* A field of a csv file: in quotes if it has to be. */
void rfi_text_field(rfi_text *text, const char *value);
void rfi_text_bytes(rfi_text *text, const char *bytes, size_t size);
/* Text within HTML, also within quoted attributes. */
void rfi_text_html(rfi_text *text, const char *words, size_t length);
void rfi_text_free(rfi_text *text);
/* folder/name becomes the text, atomically. */
reef_status rfi_text_write(const rfi_text *text, const char *folder, const char *name, reef_error *error);

#endif
