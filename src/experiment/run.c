/* Running an experiment: jobs (a cell, or the oracle of one or more cells) in items (blocks of repetitions), items on all threads.
 *
 * Where problem, attack and rule allow it the repetitions of a block run side by side in vector lanes. Blocks of a job are merged in
 * their order by whoever finishes the last one, so the number of threads changes no bit. A finished job goes to its file at once. */
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/pool.h"
#include "experiment/outcome.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LANES = 16, FOLDER_SIZE = 4096 };

typedef struct job {
    ptrdiff_t cell;
    bool oracle;
    bool done;
    char *key; /* all that determines the results */
    rfi_numbers numbers;
    bool wanted[RFI_METRICS];
    ptrdiff_t agents;   /* whose trust is kept; 0: none */
    ptrdiff_t lanes;    /* repetitions of a block; the last one may have fewer */
    rfi_outcome *parts; /* per block, until they are merged */
    ptrdiff_t blocks, blocks_done;
    rfi_outcome outcome;
} job;

/* A block of a job. */
typedef struct item {
    ptrdiff_t job, block;
} item;

typedef struct runner {
    const reef_experiment *experiment;
    const reef_experiment_options *options;
    char folder[FOLDER_SIZE]; /* of the cells; "" without */
    job *jobs;                /* cells first, then oracles */
    ptrdiff_t job_count;
    ptrdiff_t *oracle_of; /* per cell: its job, or -1 */
    item *items;
    ptrdiff_t item_count;
    reef_context **contexts; /* per worker */
    rfi_world **worlds;
    ptrdiff_t workers;
    pthread_mutex_t lock; /* everything below, and blocks_done */
    atomic_bool failed;
    reef_error error;
    reef_progress progress;
    struct timespec start;
} runner;

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

static bool must_stop(const runner *r)
{
    return atomic_load(&r->failed) || (r->options->stop && *r->options->stop);
}

static void keep_error(runner *r, const reef_error *error)
{
    pthread_mutex_lock(&r->lock);
    if (!atomic_load(&r->failed)) {
        r->error = *error;
        atomic_store(&r->failed, true);
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- one block ---- */

/* What a block works on. */
typedef struct block_work {
    double *values; /* metric_count x lanes: the metrics of a point */
    double *sums;   /* the same: over the points of the steady state */
    double *trust;  /* per agent with trust: received now, sum and number over the points of the steady state, work */
    ptrdiff_t agents;
    ptrdiff_t lanes;
    ptrdiff_t steady_points;
} block_work;

static bool is_steady(const job *j, int64_t round)
{
    return round > j->numbers.iterations - j->numbers.steady;
}

static void take_point(const job *j, block_work *work, ptrdiff_t point, rfi_outcome *part)
{
    bool steady = is_steady(j, rfi_outcome_round(part, point));
    for (ptrdiff_t m = 0; m < part->metric_count; m++) {
        const double *row = work->values + m * work->lanes;
        part->moments[m * (part->points + 1) + point] = rfi_moments_of(row, work->lanes);
        for (ptrdiff_t i = 0; i < work->lanes && steady; i++) {
            work->sums[m * work->lanes + i] += row[i];
        }
    }
    work->steady_points += steady;
}

/* Adds who was trusted in this round; agents that nobody was to hear just now do not count. */
static reef_status take_trust(block_work *work, const reef_run *run, reef_error *error)
{
    double *now = work->trust;
    double *sums = now + work->agents;
    double *counts = sums + work->agents;
    reef_status status = reef_run_trust_received(run, now, counts + work->agents, error);
    for (ptrdiff_t l = 0; l < work->agents && status == REEF_OK; l++) {
        sums[l] += isnan(now[l]) ? 0 : now[l];
        counts[l] += !isnan(now[l]);
    }
    return status;
}

static void take_steady(const block_work *work, rfi_outcome *part)
{
    for (ptrdiff_t m = 0; m < part->metric_count; m++) {
        double *row = work->sums + m * work->lanes;
        for (ptrdiff_t i = 0; i < work->lanes; i++) {
            row[i] /= (double)work->steady_points;
        }
        part->moments[m * (part->points + 1) + part->points] = rfi_moments_of(row, work->lanes);
    }
    for (ptrdiff_t l = 0; l < work->agents; l++) {
        double count = work->trust[2 * work->agents + l];
        double mean = count > 0 ? work->trust[work->agents + l] / count : (double)NAN;
        part->moments[(part->points + 1) * part->metric_count + l] = (rfi_moments){mean, 0};
    }
    part->repetitions = work->lanes;
}

/* *whole becomes true unless the run was told to stop. */
static reef_status run_rounds(const runner *r, const job *j, reef_run *run, block_work *work, rfi_outcome *part,
                              bool *whole, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t p = 0; p < part->points && status == REEF_OK; p++) {
        if (must_stop(r)) {
            return REEF_OK;
        }
        status = reef_run_step(run, rfi_outcome_round(part, p) - reef_run_round(run), error);
        status = status == REEF_OK ? rfi_metric_eval(run, j->wanted, work->values, error) : status;
        take_point(j, work, p, part);
        if (status == REEF_OK && work->agents && is_steady(j, rfi_outcome_round(part, p))) {
            status = take_trust(work, run, error);
        }
    }
    take_steady(work, part);
    *whole = status == REEF_OK;
    return status;
}

/* Room of a block's work; false: no memory. */
static bool take_work(const job *j, const reef_context *context, block_work *work)
{
    ptrdiff_t count = RFI_METRICS * work->lanes;
    work->agents = j->agents;
    work->values = rfi_allocate_many(context, 2 * count + 4 * j->agents, sizeof *work->values);
    if (work->values) {
        memset(work->values, 0, (size_t)(2 * count + 4 * j->agents) * sizeof *work->values);
        work->sums = work->values + count;
        work->trust = work->sums + count;
    }
    return work->values != NULL;
}

/* The first repetition's model, if it is asked for; one of an earlier run would not belong to these results. */
static reef_status keep_model(const runner *r, const rfi_world *world, const job *j, const reef_run *run,
                              reef_error *error)
{
    if (!r->folder[0] || j->oracle) {
        return REEF_OK;
    }
    if (!r->options->models) {
        rfi_model_remove(r->folder, j->key);
        return REEF_OK;
    }
    return rfi_model_write(world, run, r->folder, j->key, error);
}

static reef_status run_block(runner *r, rfi_world *world, const job *j, ptrdiff_t number, bool *whole,
                             reef_error *error)
{
    rfi_block block = {.oracle = j->oracle, .lanes = j->lanes, .repetition = number * j->lanes};
    rfi_outcome *part = &j->parts[number];
    reef_run *run = NULL;
    if (block.lanes > j->numbers.runs - block.repetition) {
        block.lanes = (ptrdiff_t)j->numbers.runs - block.repetition;
    }
    reef_status status = rfi_world_set(world, j->cell, error);
    status = status == REEF_OK ? rfi_world_run(world, &block, &run, error) : status;
    if (status != REEF_OK) {
        return status;
    }
    block_work work = {.lanes = block.lanes};
    if (take_work(j, world->context, &work) &&
        rfi_outcome_init(part, r->experiment->context, &j->numbers, j->wanted, j->agents)) {
        part->theory = number == 0 ? rfi_world_theory(world) : (double)NAN;
        status = run_rounds(r, j, run, &work, part, whole, error);
        if (status == REEF_OK && *whole && number == 0) {
            status = keep_model(r, world, j, run, error);
            *whole = status == REEF_OK;
        }
    } else {
        status = rfi_fail(error, REEF_E_NOMEM, "no memory for the results of a cell");
    }
    rfi_release(world->context, work.values);
    reef_run_destroy(&run);
    return status;
}

/* ---- finishing ---- */

static reef_status finish_job(runner *r, job *j, reef_error *error)
{
    const reef_context *context = r->experiment->context;
    if (!rfi_outcome_init(&j->outcome, context, &j->numbers, j->wanted, j->agents)) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the results of a cell");
    }
    j->outcome.theory = j->parts[0].theory;
    for (ptrdiff_t i = 0; i < j->blocks; i++) {
        rfi_outcome_merge(&j->outcome, &j->parts[i]);
        rfi_outcome_fini(&j->parts[i], context);
    }
    j->done = true;
    return r->folder[0] ? rfi_store_write(context, r->folder, j->key, &j->outcome, error) : REEF_OK;
}

/* The first metric's steady state, in the unit in which it is shown. */
static void show_job(const job *j, reef_progress *progress)
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

static void report(runner *r, const job *j, bool last)
{
    pthread_mutex_lock(&r->lock);
    r->progress.items_done++;
    r->progress.cells_done += last;
    r->progress.finished = -1;
    r->progress.seconds = seconds_since(&r->start);
    if (last) {
        show_job(j, &r->progress);
    }
    if (r->options->progress) {
        r->options->progress(r->options->user, &r->progress);
    }
    pthread_mutex_unlock(&r->lock);
}

static bool is_last(runner *r, job *j)
{
    pthread_mutex_lock(&r->lock);
    bool last = ++j->blocks_done == j->blocks;
    pthread_mutex_unlock(&r->lock);
    return last;
}

/* ---- workers ---- */

/* A context with the user's rules and few threads of its own: as many as are left over when there are few items. */
static reef_status make_context(const runner *r, reef_context **context, reef_error *error)
{
    const reef_context *from = r->experiment->context;
    ptrdiff_t threads = r->item_count < r->workers ? r->workers / r->item_count : 1;
    reef_status status = reef_context_create(context, from ? &from->allocator : NULL, error);
    status = status == REEF_OK ? reef_context_set_threads(*context, threads, error) : status;
    for (ptrdiff_t i = 0; from && i < from->rule_count && status == REEF_OK; i++) {
        status = reef_agg_register(*context, from->rules[i], error);
    }
    return status;
}

static reef_status make_world(runner *r, ptrdiff_t worker, reef_error *error)
{
    if (r->worlds[worker]) {
        return REEF_OK;
    }
    reef_status status = make_context(r, &r->contexts[worker], error);
    if (status == REEF_OK) {
        r->worlds[worker] = rfi_world_create(r->experiment, r->contexts[worker]);
        status = r->worlds[worker] ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for a cell");
    }
    return status;
}

static void run_item(void *user, ptrdiff_t part, ptrdiff_t worker)
{
    runner *r = user;
    job *j = &r->jobs[r->items[part].job];
    reef_error error = {REEF_OK, ""};
    bool whole = false;
    if (must_stop(r)) {
        return;
    }
    reef_status status = r->worlds[worker] ? REEF_OK : make_world(r, worker, &error);
    if (status == REEF_OK) {
        status = run_block(r, r->worlds[worker], j, r->items[part].block, &whole, &error);
    }
    bool last = whole && is_last(r, j);
    status = last ? finish_job(r, j, &error) : status;
    if (status != REEF_OK) {
        keep_error(r, &error);
    } else if (whole) {
        report(r, j, last);
    }
}

/* ---- preparing ---- */

static void *take(const runner *r, ptrdiff_t count, size_t size)
{
    void *memory = rfi_allocate_many(r->experiment->context, count ? count : 1, size);
    if (memory) {
        memset(memory, 0, (size_t)(count ? count : 1) * size);
    }
    return memory;
}

/* Fills in a job for the world's cell; false: no memory. */
static bool fill_job(runner *r, rfi_world *world, job *j, const char *key)
{
    size_t size = strlen(key) + 1;
    j->numbers = world->cell.numbers;
    j->agents = j->numbers.trust && !j->oracle && world->rule ? world->agents : 0;
    j->lanes = rfi_world_lanes(world, j->oracle) ? LANES : 1;
    j->blocks = (ptrdiff_t)((j->numbers.runs + j->lanes - 1) / j->lanes);
    j->key = rfi_allocate(r->experiment->context, size);
    j->parts = take(r, j->blocks, sizeof *j->parts);
    if (j->key) {
        memcpy(j->key, key, size);
    }
    return j->key && j->parts;
}

/* The same oracle serves every cell that differs only in rule or attack. */
static ptrdiff_t find_oracle(const runner *r, const char *key)
{
    for (ptrdiff_t i = r->job_count - 1; i >= r->experiment->cells; i--) {
        if (strcmp(r->jobs[i].key, key) == 0) {
            return i;
        }
    }
    return -1;
}

static reef_status add_job(runner *r, rfi_world *world, ptrdiff_t cell, bool oracle, char *key, reef_error *error)
{
    reef_status status = rfi_world_print(world, oracle, key, RFI_PRINT_SIZE, error);
    if (status != REEF_OK) {
        return status;
    }
    ptrdiff_t known = oracle ? find_oracle(r, key) : -1;
    if (oracle) {
        r->oracle_of[cell] = known >= 0 ? known : r->job_count;
    }
    if (known >= 0) {
        return REEF_OK;
    }
    job *j = &r->jobs[oracle ? r->job_count++ : cell];
    *j = (job){.cell = cell, .oracle = oracle};
    status = rfi_world_metrics(world, j->wanted, error);
    for (int i = RFI_TRUST_HONEST; oracle && i < RFI_METRICS; i++) {
        j->wanted[i] = false;
    }
    return status == REEF_OK && !fill_job(r, world, j, key) ? rfi_fail(error, REEF_E_NOMEM, "no memory for the cells")
                                                            : status;
}

static reef_status make_jobs(runner *r, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    rfi_world *world = rfi_world_create(e, e->context);
    char *key = rfi_allocate(e->context, RFI_PRINT_SIZE);
    r->jobs = take(r, 2 * e->cells, sizeof *r->jobs);
    r->oracle_of = take(r, e->cells, sizeof *r->oracle_of);
    r->job_count = e->cells;
    bool ready = world && key && r->jobs && r->oracle_of;
    reef_status status = ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for %td cells", e->cells);
    for (ptrdiff_t i = 0; ready && i < e->cells && status == REEF_OK; i++) {
        r->oracle_of[i] = -1;
        status = rfi_world_set(world, i, error);
        status = status == REEF_OK ? add_job(r, world, i, false, key, error) : status;
        if (status == REEF_OK && world->cell.numbers.oracle) {
            status = add_job(r, world, i, true, key, error);
        }
    }
    rfi_release(e->context, key);
    rfi_world_destroy(&world);
    return status;
}

/* Takes what the folder has already. */
static void load_jobs(runner *r, reef_experiment_outcome *outcome)
{
    const reef_context *context = r->experiment->context;
    for (ptrdiff_t i = 0; i < r->job_count; i++) {
        job *j = &r->jobs[i];
        if (!rfi_outcome_init(&j->outcome, context, &j->numbers, j->wanted, j->agents)) {
            continue;
        }
        bool lacks_model = r->options->models && !j->oracle && !rfi_model_exists(r->folder, j->key);
        j->done = !lacks_model && rfi_store_read(context, r->folder, j->key, &j->outcome);
        outcome->reused += j->done && !j->oracle;
        if (!j->done) {
            rfi_outcome_fini(&j->outcome, context);
        }
    }
}

static reef_status make_items(runner *r, reef_error *error)
{
    for (ptrdiff_t i = 0; i < r->job_count; i++) {
        r->item_count += r->jobs[i].done ? 0 : r->jobs[i].blocks;
        r->progress.cells += !r->jobs[i].done;
    }
    r->progress.items = r->item_count;
    r->items = take(r, r->item_count, sizeof *r->items);
    r->contexts = take(r, r->workers, sizeof(void *));
    r->worlds = take(r, r->workers, sizeof(void *));
    if (!r->items || !r->contexts || !r->worlds) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td cells", r->experiment->cells);
    }
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < r->job_count; i++) {
        for (ptrdiff_t b = 0; b < r->jobs[i].blocks && !r->jobs[i].done; b++) {
            r->items[count++] = (item){i, b};
        }
    }
    return REEF_OK;
}

static reef_status make_folders(runner *r, reef_error *error)
{
    const char *folder = r->options->folder;
    if (!folder) {
        return REEF_OK;
    }
    if ((size_t)snprintf(r->folder, sizeof r->folder, "%s/cells", folder) >= sizeof r->folder) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results is too long");
    }
    return rfi_make_folder(r->folder, error);
}

/* ---- the end ---- */

static bool all_done(const runner *r)
{
    ptrdiff_t i = 0;
    while (i < r->job_count && r->jobs[i].done) {
        i++;
    }
    return i == r->job_count;
}

static reef_status write_results(runner *r, double seconds, reef_error *error)
{
    ptrdiff_t cells = r->experiment->cells;
    const rfi_outcome **outcomes = take(r, 2 * cells, sizeof(void *));
    const char **keys = take(r, cells, sizeof(void *));
    reef_status status = REEF_OK;
    if (outcomes && keys) {
        for (ptrdiff_t i = 0; i < cells; i++) {
            outcomes[i] = &r->jobs[i].outcome;
            outcomes[cells + i] = r->oracle_of[i] >= 0 ? &r->jobs[r->oracle_of[i]].outcome : NULL;
            keys[i] = r->jobs[i].key;
        }
        const rfi_results results = {r->experiment, outcomes,   outcomes + cells,   keys,
                                     seconds,       r->workers, r->options->arrays, r->options->models};
        status = rfi_results_write(&results, r->options->folder, error);
    } else {
        status = rfi_fail(error, REEF_E_NOMEM, "no memory for the results");
    }
    rfi_release(r->experiment->context, (void *)outcomes);
    rfi_release(r->experiment->context, (void *)keys);
    return status;
}

static void free_runner(runner *r)
{
    const reef_context *context = r->experiment->context;
    for (ptrdiff_t i = 0; r->jobs && i < r->job_count; i++) {
        job *j = &r->jobs[i];
        for (ptrdiff_t b = 0; j->parts && b < j->blocks; b++) {
            rfi_outcome_fini(&j->parts[b], context);
        }
        rfi_outcome_fini(&j->outcome, context);
        rfi_release(context, j->parts);
        rfi_release(context, j->key);
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

static reef_status run_all(runner *r, reef_experiment_outcome *outcome, reef_error *error)
{
    reef_status status = make_folders(r, error);
    status = status == REEF_OK ? make_jobs(r, error) : status;
    if (status == REEF_OK && r->folder[0] && r->options->resume) {
        load_jobs(r, outcome);
    }
    status = status == REEF_OK ? make_items(r, error) : status;
    if (status != REEF_OK) {
        return status;
    }
    rfi_pool_run(r->experiment->context, r->workers, r->item_count, run_item, r);
    outcome->seconds = seconds_since(&r->start);
    if (atomic_load(&r->failed)) {
        return rfi_fail(error, r->error.status, "%s", r->error.text);
    }
    outcome->stopped = !all_done(r);
    return outcome->stopped || !r->options->folder ? REEF_OK : write_results(r, outcome->seconds, error);
}

reef_status reef_experiment_run(const reef_experiment *experiment, const reef_experiment_options *options,
                                reef_experiment_outcome *outcome, reef_error *error)
{
    static const reef_experiment_options plain = {0};
    reef_experiment_outcome own;
    if (!experiment) {
        return rfi_fail(error, REEF_E_ARG, "reef_experiment_run: experiment is NULL");
    }
    runner *r = rfi_allocate(experiment->context, sizeof *r);
    if (!r) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a run");
    }
    memset(r, 0, sizeof *r);
    r->experiment = experiment;
    r->options = options ? options : &plain;
    r->workers = rfi_context_workers(experiment->context);
    r->progress.finished = -1;
    (void)clock_gettime(CLOCK_MONOTONIC, &r->start);
    pthread_mutex_init(&r->lock, NULL);
    atomic_init(&r->failed, false);
    outcome = outcome ? outcome : &own;
    *outcome = (reef_experiment_outcome){0};
    reef_status status = run_all(r, outcome, error);
    free_runner(r);
    return status;
}
