/* Running an experiment: tasks (a cell, or the oracle of one or more cells) in items (blocks of repetitions), items on all threads.
 *
 * Where problem, attack and rule allow it the repetitions of a block run side by side in vector lanes. Blocks of a task are merged in
 * their order by whoever finishes the last one, so the number of threads changes no bit. A finished task goes to its file at once. */
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/pool.h"
#include "experiment/run/runner.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

double rfi_seconds_since(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

bool rfi_must_stop(const rfi_runner *r)
{
    return atomic_load(&r->failed) || (r->options->stop && *r->options->stop);
}

static void keep_error(rfi_runner *r, const reef_error *error)
{
    pthread_mutex_lock(&r->lock);
    if (!atomic_load(&r->failed)) {
        r->error = *error;
        atomic_store(&r->failed, true);
    }
    pthread_mutex_unlock(&r->lock);
}

reef_status rfi_agree(const rfi_runner *r, reef_status status, reef_error *error)
{
    return r->together ? r->engine->ops->agree(r->engine, status, error) : status;
}

/* ---- finishing ---- */

static reef_status finish_job(rfi_runner *r, rfi_cell_job *j, reef_error *error)
{
    const reef_context *context = r->experiment->context;
    if (!rfi_outcome_init(&j->outcome, context, &j->numbers, j->wanted, j->agents, j->views)) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the results of a configuration");
    }
    j->outcome.theory = j->parts[0].theory;
    for (ptrdiff_t i = 0; i < j->blocks; i++) {
        rfi_outcome_merge(&j->outcome, &j->parts[i]);
        rfi_outcome_fini(&j->parts[i], context);
    }
    j->done = true;
    if (!r->folder[0] || (r->together && r->engine->rank)) {
        return REEF_OK;
    }
    reef_status status = REEF_OK;
    if (r->options->models && !j->oracle) {
        j->outcome.has_model = true;
        status = rfi_model_sum(context, r->folder, j->key, &j->outcome.model_sum, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return rfi_store_write(context, r->folder, j->key, &j->outcome, error);
}

/* The first metric's steady state, in the unit in which it is shown. */
static void show_job(const rfi_cell_job *j, reef_progress *progress)
{
    int metric = 0;
    while (!j->wanted[metric]) {
        metric++;
    }
    double mean = rfi_outcome_at(&j->outcome, 0, j->outcome.points).mean;
    bool decibels = rfi_metric_decibels((rfi_metric)metric);
    progress->finished = j->oracle ? -1 : j->cell;
    progress->metric = rfi_metric_name((rfi_metric)metric);
    progress->value = decibels ? 10 * log10(mean) : mean;
}

/* Blocks of a job that may be on different ranks are left in the folder, for rank 0 to merge. */
static bool name_block(const rfi_runner *r, const rfi_cell_job *j, ptrdiff_t block, char *key)
{
    return r->engine && !r->together && j->blocks > 1 &&
           snprintf(key, RFI_PRINT_SIZE, "%sblock %td\n", j->key, block) < RFI_PRINT_SIZE;
}

/* True if the folder has it from before. */
static bool has_block(const rfi_runner *r, const rfi_cell_job *j, ptrdiff_t block, char *key)
{
    const reef_context *context = r->experiment->context;
    rfi_outcome *part = &j->parts[block];
    if (!r->options->resume || !name_block(r, j, block, key) ||
        !rfi_outcome_init(part, context, &j->numbers, j->wanted, j->agents, j->views)) {
        return false;
    }
    bool there = rfi_store_read(context, r->folder, key, part) == RFI_STORED;
    rfi_outcome_fini(part, context);
    return there;
}

static reef_status leave_block(const rfi_runner *r, const rfi_cell_job *j, ptrdiff_t block, char *key,
                               reef_error *error)
{
    const reef_context *context = r->experiment->context;
    reef_status status = REEF_OK;
    if (name_block(r, j, block, key)) {
        status = rfi_store_write(context, r->folder, key, &j->parts[block], error);
        rfi_outcome_fini(&j->parts[block], context);
    }
    return status;
}

static void report(rfi_runner *r, const rfi_cell_job *j, bool last)
{
    pthread_mutex_lock(&r->lock);
    r->progress.items_done++;
    r->progress.cells_done += last;
    r->progress.finished = -1;
    r->progress.seconds = rfi_seconds_since(&r->start);
    if (last) {
        show_job(j, &r->progress);
    }
    if (r->options->progress) {
        r->options->progress(r->options->user, &r->progress);
    }
    pthread_mutex_unlock(&r->lock);
}

static bool is_last(rfi_runner *r, rfi_cell_job *j)
{
    pthread_mutex_lock(&r->lock);
    bool elsewhere = r->engine && !r->together && j->blocks > 1; /* rank 0 merges them in the end */
    bool last = ++j->blocks_done == j->blocks && !elsewhere;
    pthread_mutex_unlock(&r->lock);
    return last;
}

/* ---- workers ---- */

/* A context with what was added to the experiment's, and few threads of its own: as many as are left over when there are few items. */
static reef_status make_context(const rfi_runner *r, reef_context **context, reef_error *error)
{
    const reef_context *from = r->experiment->context;
    ptrdiff_t items = r->together ? 1 : r->item_count;
    ptrdiff_t threads = items < r->workers ? r->workers / items : 1;
    reef_status status = reef_context_create(context, from ? &from->allocator : NULL, error);
    if (status != REEF_OK) {
        return status;
    }
    status = reef_context_set_threads(*context, threads, error);
    if (status != REEF_OK) {
        return status;
    }
    return rfi_kinds_copy(*context, from, error);
}

static reef_status make_world(rfi_runner *r, ptrdiff_t worker, reef_error *error)
{
    if (r->worlds[worker]) {
        return REEF_OK;
    }
    reef_status status = make_context(r, &r->contexts[worker], error);
    if (status == REEF_OK) {
        r->worlds[worker] = rfi_world_create(r->experiment, r->contexts[worker]);
        status = r->worlds[worker] ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a configuration");
    }
    return status;
}

static void run_item(void *user, ptrdiff_t part, ptrdiff_t worker)
{
    rfi_runner *r = user;
    rfi_cell_job *j = &r->jobs[r->items[part].job];
    reef_error error = {REEF_OK, ""};
    bool whole = false;
    if (rfi_must_stop(r) && !r->together) {
        return;
    }
    reef_status status = r->worlds[worker] ? REEF_OK : make_world(r, worker, &error);
    status = rfi_agree(r, status, &error);
    if (status == REEF_OK && r->worlds[worker]) {
        status = rfi_run_block(r, r->worlds[worker], j, r->items[part].block, &whole, &error);
    }
    bool last = whole && is_last(r, j);
    if (last) {
        status = finish_job(r, j, &error);
    }
    if (whole) {
        status = rfi_agree(r, status, &error);
    }
    if (status != REEF_OK) {
        keep_error(r, &error);
    } else if (whole) {
        report(r, j, last);
    }
}

/* ---- ranks ---- */

/* An item of this rank. */
static void run_own_item(void *user, ptrdiff_t part, ptrdiff_t worker)
{
    rfi_runner *r = user;
    ptrdiff_t i = part * r->engine->size + r->engine->rank;
    rfi_cell_job *j = &r->jobs[r->items[i].job];
    ptrdiff_t block = r->items[i].block;
    reef_error error = {REEF_OK, ""};
    char *key = rfi_allocate(r->experiment->context, RFI_PRINT_SIZE);
    reef_status status = key ? REEF_OK : rfi_fail(&error, REEF_E_NOMEM, "not enough memory for a configuration");
    if (status == REEF_OK && !has_block(r, j, block, key)) {
        run_item(r, i, worker);
        if (j->blocks > 1 && j->parts[block].moments && !rfi_must_stop(r)) {
            status = leave_block(r, j, block, key, &error);
        }
    }
    rfi_release(r->experiment->context, key);
    if (status != REEF_OK) {
        keep_error(r, &error);
    }
}

/* All items of this rank, or all items by all ranks. */
static reef_status run_on_ranks(rfi_runner *r, reef_error *error)
{
    const reef_engine *e = r->engine;
    reef_status status = REEF_OK;
    if (r->together) {
        for (ptrdiff_t i = 0; i < r->item_count && !atomic_load(&r->failed); i++) {
            bool stop = rfi_must_stop(r);
            status = rfi_ranks_any(e, &stop, error);
            if (stop || status != REEF_OK) {
                break;
            }
            run_item(r, i, 0);
        }
    } else {
        ptrdiff_t own = (r->item_count - e->rank + e->size - 1) / e->size;
        rfi_pool_run(r->experiment->context, r->workers, own > 0 ? own : 0, run_own_item, r);
    }
    if (status == REEF_OK && atomic_load(&r->failed)) {
        status = rfi_fail(error, r->error.status, "%s", r->error.text);
    }
    return e->ops->agree(e, status, error);
}

/* Rank 0 takes what the others have left; the others have nothing more to do. */
static reef_status collect_job(rfi_runner *r, rfi_cell_job *j, char *key, reef_error *error)
{
    const reef_context *context = r->experiment->context;
    bool there = true;
    if (j->blocks == 1) {
        j->done = rfi_load_job(r, j) == RFI_STORED;
        return REEF_OK;
    }
    for (ptrdiff_t b = 0; b < j->blocks && there; b++) {
        rfi_outcome_fini(&j->parts[b], context);
        there = name_block(r, j, b, key) &&
                rfi_outcome_init(&j->parts[b], context, &j->numbers, j->wanted, j->agents, j->views) &&
                rfi_store_read(context, r->folder, key, &j->parts[b]) == RFI_STORED;
    }
    reef_status status = there ? finish_job(r, j, error) : REEF_OK;
    for (ptrdiff_t b = 0; b < j->blocks && j->done && status == REEF_OK; b++) {
        if (name_block(r, j, b, key)) {
            rfi_store_remove(r->folder, key);
        }
    }
    return status;
}

static reef_status collect(rfi_runner *r, reef_error *error)
{
    char *key = rfi_allocate(r->experiment->context, RFI_PRINT_SIZE);
    reef_status status = key ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for the results");
    for (ptrdiff_t i = 0; i < r->job_count && status == REEF_OK && r->engine->rank == 0 && !r->together; i++) {
        if (!r->jobs[i].done) {
            status = collect_job(r, &r->jobs[i], key, error);
        }
    }
    rfi_release(r->experiment->context, key);
    return status;
}

/* What rank 0 has found in the folder is done. */
static reef_status share_done(rfi_runner *r, reef_error *error)
{
    unsigned char *done = rfi_allocate_many(r->experiment->context, r->job_count, 1);
    reef_status status = done ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for the configurations");
    status = r->engine->ops->agree(r->engine, status, error);
    for (ptrdiff_t i = 0; status == REEF_OK && done && i < r->job_count; i++) {
        done[i] = r->engine->rank == 0 && r->jobs[i].done;
    }
    if (status == REEF_OK) {
        status = r->engine->ops->merge(r->engine, done, (size_t)r->job_count, error);
    }
    for (ptrdiff_t i = 0; status == REEF_OK && done && i < r->job_count; i++) {
        r->jobs[i].done = done[i];
    }
    rfi_release(r->experiment->context, done);
    return status;
}

/* ---- the end ---- */

bool rfi_all_done(const rfi_runner *r)
{
    ptrdiff_t i = 0;
    while (i < r->job_count && r->jobs[i].done) {
        i++;
    }
    return i == r->job_count;
}

reef_status rfi_runner_write(rfi_runner *r, double seconds, rfi_results_writer *write, reef_error *error)
{
    ptrdiff_t cells = r->experiment->cells;
    assert(rfi_all_done(r)); /* tables are of whole runs */
    const rfi_outcome **outcomes = rfi_runner_take(r, 2 * cells, sizeof(void *));
    const char **keys = rfi_runner_take(r, cells, sizeof(void *));
    reef_status status = REEF_OK;
    if (outcomes && keys) {
        for (ptrdiff_t i = 0; i < cells; i++) {
            outcomes[i] = &r->jobs[i].outcome;
            outcomes[cells + i] = r->oracle_of[i] >= 0 ? &r->jobs[r->oracle_of[i]].outcome : NULL;
            keys[i] = r->jobs[i].key;
        }
        const rfi_results results = {r->experiment, outcomes,   outcomes + cells,   keys,
                                     seconds,       r->workers, r->options->arrays, r->options->models};
        status = write(&results, r->options->folder, error);
    } else {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory for the results");
    }
    rfi_release(r->experiment->context, (void *)outcomes);
    rfi_release(r->experiment->context, (void *)keys);
    return status;
}

void rfi_runner_destroy(rfi_runner *r)
{
    rfi_folder_leave(r);
    const reef_context *context = r->experiment->context;
    for (ptrdiff_t i = 0; r->jobs && i < r->job_count; i++) {
        rfi_cell_job *j = &r->jobs[i];
        for (ptrdiff_t b = 0; j->parts && b < j->blocks; b++) {
            rfi_outcome_fini(&j->parts[b], context);
        }
        rfi_outcome_fini(&j->outcome, context);
        rfi_release(context, j->parts);
    }
    for (ptrdiff_t i = 0; r->worlds && r->contexts && i < r->workers; i++) {
        rfi_world_destroy(&r->worlds[i]);
        reef_context_destroy(&r->contexts[i]);
    }
    rfi_release(context, (void *)r->worlds);
    rfi_release(context, (void *)r->contexts);
    rfi_release(context, r->jobs);
    rfi_release(context, r->oracle_of);
    rfi_release(context, r->items);
    pthread_mutex_destroy(&r->lock);
    rfi_release(context, r);
}

static reef_status prepare(rfi_runner *r, reef_experiment_outcome *outcome, reef_error *error)
{
    const reef_engine *e = r->engine;
    reef_status status = rfi_folder_enter(r, error);
    if (status == REEF_OK) {
        status = rfi_make_jobs(r, error);
    }
    if (e) {
        status = e->ops->agree(e, status, error);
    }
    if (e && status == REEF_OK) {
        status = rfi_ranks_choose(r->experiment, r->options, &r->together, error);
    }
    if (status == REEF_OK && r->folder[0] && r->options->resume && (!e || e->rank == 0)) {
        rfi_load_jobs(r, outcome);
    }
    if (e && status == REEF_OK) {
        status = share_done(r, error);
    }
    if (status == REEF_OK) {
        status = rfi_make_items(r, error);
    }
    return e ? e->ops->agree(e, status, error) : status;
}

static reef_status run_all(rfi_runner *r, reef_experiment_outcome *outcome, reef_error *error)
{
    const reef_engine *e = r->engine;
    reef_status status = prepare(r, outcome, error);
    if (status != REEF_OK) {
        return status;
    }
    if (e) {
        status = run_on_ranks(r, error);
        if (status == REEF_OK) {
            status = e->ops->agree(e, collect(r, error), error);
        }
    } else {
        rfi_pool_run(r->experiment->context, r->workers, r->item_count, run_item, r);
    }
    outcome->seconds = rfi_seconds_since(&r->start);
    outcome->damaged += r->damaged;
    if (!e && atomic_load(&r->failed)) {
        status = rfi_fail(error, r->error.status, "%s", r->error.text);
    }
    outcome->stopped = !(e && e->rank) && !rfi_all_done(r);
    if (status == REEF_OK && e) {
        status = rfi_ranks_any(e, &outcome->stopped, error);
    }
    if (status == REEF_OK && !outcome->stopped && r->options->folder && !(e && e->rank)) {
        status = rfi_runner_write(r, outcome->seconds, rfi_results_write, error);
    }
    return e ? e->ops->agree(e, status, error) : status;
}

rfi_runner *rfi_runner_create(const reef_experiment *experiment, const reef_experiment_options *options,
                              reef_error *error)
{
    rfi_runner *r = rfi_allocate(experiment->context, sizeof *r);
    if (!r) {
        (void)rfi_fail(error, REEF_E_NOMEM, "not enough memory for a run");
        return NULL;
    }
    memset(r, 0, sizeof *r);
    r->experiment = experiment;
    r->options = options;
    r->engine = options->engine;
    r->workers = rfi_context_workers(experiment->context);
    r->progress.finished = -1;
    r->lock_file = -1;
    (void)clock_gettime(CLOCK_MONOTONIC, &r->start);
    pthread_mutex_init(&r->lock, NULL);
    atomic_init(&r->failed, false);
    return r;
}

static reef_status run_with(const reef_experiment *experiment, const reef_experiment_options *options,
                            const rfi_player *player, reef_experiment_outcome *outcome, reef_error *error)
{
    static const reef_experiment_options plain = {0};
    reef_experiment_outcome own;
    if (!experiment) {
        return rfi_fail(error, REEF_E_ARG, "reef_experiment_run: experiment is NULL");
    }
    if (options && options->engine && !options->folder) {
        return rfi_fail(error, REEF_E_ARG, "an experiment on several ranks needs a folder");
    }
    reef_status fits = rfi_check_size(options ? options->size : 0, sizeof *options, "reef_experiment_options", error);
    if (fits != REEF_OK) {
        return fits;
    }
    rfi_runner *r = rfi_runner_create(experiment, options ? options : &plain, error);
    if (!r) {
        return REEF_E_NOMEM;
    }
    r->player = player;
    outcome = outcome ? outcome : &own;
    *outcome = (reef_experiment_outcome){0};
    reef_status status = run_all(r, outcome, error);
    rfi_runner_destroy(r);
    return status;
}

reef_status reef_experiment_run(const reef_experiment *experiment, const reef_experiment_options *options,
                                reef_experiment_outcome *outcome, reef_error *error)
{
    return run_with(experiment, options, NULL, outcome, error);
}

reef_status rfi_experiment_play(const reef_experiment *experiment, const reef_experiment_options *options,
                                const rfi_player *player, reef_experiment_outcome *outcome, reef_error *error)
{
    assert(experiment->cells == 1 && experiment->records[0].numbers.repetitions == 1);
    return run_with(experiment, options, player, outcome, error);
}
