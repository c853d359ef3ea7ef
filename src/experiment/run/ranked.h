/* Experiments on several ranks (options.engine).
 *
 *   cells    every rank runs some blocks of repetitions by itself and leaves the results in the folder; rank 0 collects them
 *   agents   all ranks run every block together, its agents spread over them; with checkpoints on the way */
#ifndef RFI_EXPERIMENT_RUN_RANKED_H
#define RFI_EXPERIMENT_RUN_RANKED_H

#include "experiment/run/outcome.h"

/* Sizes and steps of a block that runs on all ranks. */
typedef struct rfi_progress {
    int64_t point;         /* points of the curve that are done */
    int64_t steady_points; /* of them in the steady state */
} rfi_progress;

/* Whether cells are run together (agents) or apart: as asked, or by whether the largest fits. The same on all ranks. */
reef_status rfi_ranks_choose(const reef_experiment *experiment, const reef_experiment_options *options, bool *together,
                             reef_error *error);

/* Ors a flag of all ranks. */
reef_status rfi_ranks_any(const reef_engine *engine, bool *flag, reef_error *error);

/* Where the checkpoint of a block is; the folder is made. */
reef_status rfi_checkpoint_path(const char *folder, const char *key, ptrdiff_t block, char path[4096],
                                reef_error *error);
/* Saves or loads a run with the statistics so far. values: `count` numbers beside the moments. load: REEF_E_FILE if there is none; *fell_back: the
 * newest was damaged, and this is the one before. */
reef_status rfi_checkpoint_save(const reef_context *context, const reef_engine *engine, const char *path, reef_run *run,
                                const rfi_outcome *part, const rfi_progress *progress, const double *values,
                                ptrdiff_t count, reef_error *error);
reef_status rfi_checkpoint_load(const reef_context *context, const reef_engine *engine, const char *path, reef_run *run,
                                rfi_outcome *part, rfi_progress *progress, double *values, ptrdiff_t count,
                                bool *fell_back, reef_error *error);

#endif
