/* What an experiment on several ranks needs besides run.c: the choice of what is distributed, and checkpoints of blocks. */
#include "experiment/run/ranked.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "learn/ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what is spread ---- */

static double memory_bytes(const reef_engine *engine)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? 0.5 * (double)pages * (double)page / engine->sharing : 0;
}

/* Whether some cell is too large for the memory of a rank. */
static bool is_large(const reef_experiment *e, const reef_engine *engine)
{
    bool large = false;
    for (ptrdiff_t i = 0; i < e->cells; i++) {
        large = large || e->records[i].bytes > memory_bytes(engine);
    }
    return large;
}

reef_status rfi_ranks_any(const reef_engine *engine, bool *flag, reef_error *error)
{
    unsigned char byte = *flag;
    reef_status status = engine->ops->merge(engine, &byte, 1, error);
    *flag = byte != 0;
    return status;
}

reef_status rfi_ranks_choose(const reef_experiment *experiment, const reef_experiment_options *options, bool *together,
                             reef_error *error)
{
    const reef_engine *engine = options->engine;
    bool large = options->distribute == REEF_DISTRIBUTE_AUTO && is_large(experiment, engine);
    *together = options->distribute == REEF_DISTRIBUTE_AGENTS || large;
    return rfi_ranks_any(engine, together, error);
}

/* ---- checkpoints ---- */

reef_status rfi_checkpoint_path(const char *folder, const char *key, ptrdiff_t block, char path[4096],
                                reef_error *error)
{
    uint64_t hash = rfi_hash_bytes(RFI_HASH_START, key, strlen(key));
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s/checkpoints", folder) >= (int)sizeof beside ||
        snprintf(path, 4096, "%.4000s/%016" PRIx64 "-%td", beside, hash, block) >= 4096) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results folder is too long");
    }
    return rfi_make_folder(beside, error);
}

/* The statistics end to end, as they go into the checkpoint. */
static size_t pack_size(const rfi_outcome *part, ptrdiff_t count)
{
    return sizeof(rfi_progress) + (size_t)(part->metric_count * (part->points + 1)) * sizeof(rfi_moments) +
           (size_t)count * sizeof(double);
}

reef_status rfi_checkpoint_save(const reef_context *context, const reef_engine *engine, const char *path, reef_run *run,
                                const rfi_outcome *part, const rfi_progress *progress, const double *values,
                                ptrdiff_t count, reef_error *error)
{
    size_t size = pack_size(part, count);
    size_t moments = (size_t)(part->metric_count * (part->points + 1)) * sizeof(rfi_moments);
    unsigned char *bytes = rfi_allocate(context, size);
    if (bytes) {
        memcpy(bytes, progress, sizeof *progress);
        memcpy(bytes + sizeof *progress, part->moments, moments);
        memcpy(bytes + sizeof *progress + moments, values, (size_t)count * sizeof *values);
    }
    reef_status status = bytes ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a checkpoint");
    status = engine->ops->agree(engine, status, error);
    if (status == REEF_OK) {
        status = rfi_run_save_with(run, path, bytes, size, error);
    }
    rfi_release(context, bytes);
    return status;
}

reef_status rfi_checkpoint_load(const reef_context *context, const reef_engine *engine, const char *path, reef_run *run,
                                rfi_outcome *part, rfi_progress *progress, double *values, ptrdiff_t count,
                                bool *fell_back, reef_error *error)
{
    size_t size = pack_size(part, count);
    size_t moments = (size_t)(part->metric_count * (part->points + 1)) * sizeof(rfi_moments);
    unsigned char *bytes = rfi_allocate(context, size);
    reef_status status = bytes ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a checkpoint");
    status = engine->ops->agree(engine, status, error);
    if (status == REEF_OK) {
        status = rfi_run_load_with(run, path, bytes, size, fell_back, error);
    }
    if (status == REEF_OK && bytes) {
        memcpy(progress, bytes, sizeof *progress);
        memcpy(part->moments, bytes + sizeof *progress, moments);
        memcpy(values, bytes + sizeof *progress + moments, (size_t)count * sizeof *values);
        if (progress->point < 0 || progress->point > part->points || progress->steady_points < 0 ||
            progress->steady_points > progress->point ||
            (progress->point > 0 && rfi_outcome_round(part, (ptrdiff_t)progress->point - 1) != reef_run_round(run))) {
            status = rfi_fail(error, REEF_E_FORMAT, "%.200s is an inconsistent checkpoint", path);
        }
    }
    rfi_release(context, bytes);
    return status;
}
