/* Running an experiment: what block.c, jobs.c and run.c share. */
#ifndef RFI_EXPERIMENT_RUN_RUNNER_H
#define RFI_EXPERIMENT_RUN_RUNNER_H

#include "experiment/run/outcome.h"
#include "experiment/run/player.h"
#include "experiment/run/ranked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { RFI_FOLDER_SIZE = 4096 };

/* A cell, or the oracle of one or more cells. */
typedef struct rfi_cell_job {
    ptrdiff_t cell;
    bool oracle;
    bool done;
    const char *key; /* all that determines the results; the experiment's */
    uint64_t hash;   /* of the key */
    rfi_cell_numbers numbers;
    bool wanted[RFI_METRICS];
    ptrdiff_t agents;   /* whose trust is kept; 0: none */
    ptrdiff_t views;    /* numbers kept per agent (rfi_outcome) */
    ptrdiff_t lanes;    /* repetitions of a block; the last one may have fewer */
    rfi_outcome *parts; /* per block, until they are merged */
    ptrdiff_t blocks, blocks_done;
    rfi_outcome outcome;
} rfi_cell_job;

/* A block of repetitions of a task. */
typedef struct rfi_item {
    ptrdiff_t job, block;
} rfi_item;

typedef struct rfi_runner {
    const reef_experiment *experiment;
    const reef_experiment_options *options;
    char folder[RFI_FOLDER_SIZE]; /* of the cells; "" without */
    rfi_cell_job *jobs;           /* cells first, then oracles */
    ptrdiff_t job_count;
    ptrdiff_t *oracle_of; /* per cell: its job, or -1 */
    rfi_item *items;
    ptrdiff_t item_count;
    reef_context **contexts; /* per worker */
    rfi_world **worlds;
    ptrdiff_t workers;
    const reef_engine *engine; /* or NULL */
    const rfi_player *player;  /* of all runs but those of oracles; or NULL */
    bool together;             /* all ranks run every block */
    ptrdiff_t damaged;         /* checkpoints, seen by all ranks together */
    int lock_file;             /* of the folder, or -1 */
    pthread_mutex_t lock;      /* everything below, and blocks_done */
    atomic_bool failed;
    reef_error error;
    reef_progress progress;
    struct timespec start;
} rfi_runner;

double rfi_seconds_since(const struct timespec *start);
bool rfi_must_stop(const rfi_runner *r);
/* A failure of one rank is one of all, where they work together. */
reef_status rfi_agree(const rfi_runner *r, reef_status status, reef_error *error);

/* run.c. options must outlive the runner; NULL without memory. */
rfi_runner *rfi_runner_create(const reef_experiment *experiment, const reef_experiment_options *options,
                              reef_error *error);
void rfi_runner_destroy(rfi_runner *r);
bool rfi_all_done(const rfi_runner *r);
/* Hands the results of all jobs, which are done, to `write`. */
typedef reef_status rfi_results_writer(const rfi_results *results, const char *folder, reef_error *error);
reef_status rfi_runner_write(rfi_runner *r, double seconds, rfi_results_writer *write, reef_error *error);

/* block.c: one block of j in the worker's world, its statistics in j->parts. *whole becomes true unless the run was told to stop. */
reef_status rfi_run_block(rfi_runner *r, rfi_world *world, const rfi_cell_job *j, ptrdiff_t number, bool *whole,
                          reef_error *error);

/* folder.c: makes the folder of results, takes its lock, and clears away what is left of other runs. Nothing is changed in a folder that
 * is in use, or of another configuration. */
reef_status rfi_folder_enter(rfi_runner *r, reef_error *error);
/* The same to look at finished results: the lock alone. */
reef_status rfi_folder_visit(rfi_runner *r, reef_error *error);
void rfi_folder_leave(rfi_runner *r);

/* jobs.c: cleared memory of the experiment's context, or NULL. */
void *rfi_runner_take(const rfi_runner *r, ptrdiff_t count, size_t size);
/* The steps before a run, after rfi_folder_enter, in this order. */
reef_status rfi_make_jobs(rfi_runner *r, reef_error *error);
/* The results of a job, and its model if models are asked for, as the folder has them: into j->outcome if they are whole. */
rfi_stored rfi_load_job(const rfi_runner *r, rfi_cell_job *j);
/* Takes what an earlier run has left. */
void rfi_load_jobs(rfi_runner *r, reef_experiment_outcome *outcome);
reef_status rfi_make_items(rfi_runner *r, reef_error *error);

#endif
