/* Running an experiment: jobs (a cell, or the oracle of one or more cells) in items (blocks of repetitions), items on all threads.
 *
 * Where problem, attack and rule allow it the repetitions of a block run side by side in vector lanes. Blocks of a job are merged in
 * their order by whoever finishes the last one, so the number of threads changes no bit. A finished job goes to its file at once. */
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/pool.h"
#include "experiment/outcome.h"
#include "experiment/ranks.h"
#include "learn/ranks.h"

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
    const reef_engine *engine; /* or NULL */
    bool together;             /* all ranks run every block */
    pthread_mutex_t lock;      /* everything below, and blocks_done */
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

/* A failure of one rank is one of all, where they work together. */
static reef_status agree(const runner *r, reef_status status, reef_error *error)
{
    return r->together ? r->engine->ops->agree(r->engine, status, error) : status;
}

/* ---- statistics ---- */

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

/* ---- on all ranks together ---- */

/* Checkpoints of a block under way. */
typedef struct saving {
    char path[FOLDER_SIZE]; /* "": none are made */
    int64_t round;          /* of the last one */
    double seconds;
} saving;

static bool is_due(const runner *r, const saving *s, const reef_run *run)
{
    const reef_experiment_options *o = r->options;
    double seconds = o->checkpoint_seconds > 0 ? o->checkpoint_seconds : (o->checkpoint_rounds > 0 ? 1e30 : 300);
    return (o->checkpoint_rounds > 0 && reef_run_round(run) - s->round >= o->checkpoint_rounds) ||
           seconds_since(&r->start) - s->seconds >= seconds;
}

/* Before the next point: whether all stop, and whether a checkpoint is made first. Rank 0's clock decides. */
static reef_status look_up(const runner *r, saving *s, reef_run *run, const block_work *work, const rfi_outcome *part,
                           ptrdiff_t point, bool *stop, reef_error *error)
{
    const reef_engine *e = r->engine;
    unsigned char flags[2] = {must_stop(r), e->rank == 0 && s->path[0] && is_due(r, s, run)};
    reef_status status = e->ops->merge(e, flags, sizeof flags, error);
    *stop = flags[0] != 0;
    if (status == REEF_OK && s->path[0] && point > 0 && (flags[0] || flags[1])) {
        const rfi_progress progress = {point, work->steady_points};
        status = rfi_checkpoint_save(r->experiment->context, e, s->path, run, part, &progress, work->sums,
                                     RFI_METRICS * work->lanes, error);
        s->round = reef_run_round(run);
        s->seconds = seconds_since(&r->start);
    }
    return status;
}

/* Goes on where the last checkpoint was made, if there is one. */
static reef_status take_up(const runner *r, saving *s, reef_run *run, block_work *work, rfi_outcome *part,
                           ptrdiff_t *point, reef_error *error)
{
    rfi_progress progress = {0, 0};
    if (!r->options->resume || !s->path[0]) {
        return REEF_OK;
    }
    reef_status status = rfi_checkpoint_load(r->experiment->context, r->engine, s->path, run, part, &progress,
                                             work->sums, RFI_METRICS * work->lanes, error);
    *point = (ptrdiff_t)progress.point;
    work->steady_points = (ptrdiff_t)progress.steady_points;
    s->round = reef_run_round(run);
    return status == REEF_E_FILE ? REEF_OK : status;
}

/* ---- one block ---- */

/* *whole becomes true unless the run was told to stop. */
static reef_status run_rounds(const runner *r, const job *j, reef_run *run, block_work *work, saving *s,
                              rfi_outcome *part, bool *whole, reef_error *error)
{
    ptrdiff_t first = 0;
    reef_status status = r->together ? take_up(r, s, run, work, part, &first, error) : REEF_OK;
    for (ptrdiff_t p = first; p < part->points && status == REEF_OK; p++) {
        bool stop = must_stop(r);
        status = r->together ? look_up(r, s, run, work, part, p, &stop, error) : REEF_OK;
        if (stop || status != REEF_OK) {
            return status;
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
    rfi_block block = {.oracle = j->oracle,
                       .lanes = j->lanes,
                       .repetition = number * j->lanes,
                       .engine = r->together ? r->engine : NULL};
    rfi_outcome *part = &j->parts[number];
    reef_run *run = NULL;
    if (block.lanes > j->numbers.runs - block.repetition) {
        block.lanes = (ptrdiff_t)j->numbers.runs - block.repetition;
    }
    saving checkpoints = {.path = ""};
    reef_status status = rfi_world_set(world, j->cell, error);
    if (r->together && r->options->folder && status == REEF_OK) {
        status = rfi_checkpoint_path(r->options->folder, j->key, number, checkpoints.path, error);
    }
    status = agree(r, status, error);
    status = status == REEF_OK ? rfi_world_run(world, &block, &run, error) : status;
    if (status != REEF_OK) {
        return status;
    }
    checkpoints.seconds = seconds_since(&r->start);
    block_work work = {.lanes = block.lanes};
    if (!take_work(j, world->context, &work) ||
        !rfi_outcome_init(part, r->experiment->context, &j->numbers, j->wanted, j->agents)) {
        status = rfi_fail(error, REEF_E_NOMEM, "no memory for the results of a cell");
    }
    status = agree(r, status, error);
    if (status == REEF_OK && work.values) {
        part->theory = number == 0 ? rfi_world_theory(world) : (double)NAN;
        status = run_rounds(r, j, run, &work, &checkpoints, part, whole, error);
    }
    if (status == REEF_OK && *whole && number == 0 && !r->together) {
        status = keep_model(r, world, j, run, error);
        *whole = status == REEF_OK;
    }
    if (*whole && checkpoints.path[0]) {
        rfi_ranks_forget(run, checkpoints.path);
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
    return r->folder[0] && !(r->together && r->engine->rank)
               ? rfi_store_write(context, r->folder, j->key, &j->outcome, error)
               : REEF_OK;
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

/* Blocks of a job that may be on different ranks are left in the folder, for rank 0 to merge. */
static bool name_block(const runner *r, const job *j, ptrdiff_t block, char *key)
{
    return r->engine && !r->together && j->blocks > 1 &&
           snprintf(key, RFI_PRINT_SIZE, "%sblock %td\n", j->key, block) < RFI_PRINT_SIZE;
}

/* True if the folder has it from before. */
static bool has_block(const runner *r, const job *j, ptrdiff_t block, char *key)
{
    const reef_context *context = r->experiment->context;
    rfi_outcome *part = &j->parts[block];
    if (!r->options->resume || !name_block(r, j, block, key) ||
        !rfi_outcome_init(part, context, &j->numbers, j->wanted, j->agents)) {
        return false;
    }
    bool there = rfi_store_read(context, r->folder, key, part);
    rfi_outcome_fini(part, context);
    return there;
}

static reef_status leave_block(const runner *r, const job *j, ptrdiff_t block, char *key, reef_error *error)
{
    const reef_context *context = r->experiment->context;
    reef_status status = REEF_OK;
    if (name_block(r, j, block, key)) {
        status = rfi_store_write(context, r->folder, key, &j->parts[block], error);
        rfi_outcome_fini(&j->parts[block], context);
    }
    return status;
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
    bool elsewhere = r->engine && !r->together && j->blocks > 1; /* rank 0 merges them in the end */
    bool last = ++j->blocks_done == j->blocks && !elsewhere;
    pthread_mutex_unlock(&r->lock);
    return last;
}

/* ---- workers ---- */

/* A context with the user's rules and few threads of its own: as many as are left over when there are few items. */
static reef_status make_context(const runner *r, reef_context **context, reef_error *error)
{
    const reef_context *from = r->experiment->context;
    ptrdiff_t items = r->together ? 1 : r->item_count;
    ptrdiff_t threads = items < r->workers ? r->workers / items : 1;
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
    if (must_stop(r) && !r->together) {
        return;
    }
    reef_status status = r->worlds[worker] ? REEF_OK : make_world(r, worker, &error);
    status = agree(r, status, &error);
    if (status == REEF_OK && r->worlds[worker]) {
        status = run_block(r, r->worlds[worker], j, r->items[part].block, &whole, &error);
    }
    bool last = whole && is_last(r, j);
    status = last ? finish_job(r, j, &error) : status;
    status = whole ? agree(r, status, &error) : status;
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
    runner *r = user;
    ptrdiff_t i = part * r->engine->size + r->engine->rank;
    job *j = &r->jobs[r->items[i].job];
    ptrdiff_t block = r->items[i].block;
    reef_error error = {REEF_OK, ""};
    char *key = rfi_allocate(r->experiment->context, RFI_PRINT_SIZE);
    reef_status status = key ? REEF_OK : rfi_fail(&error, REEF_E_NOMEM, "no memory for a cell");
    if (status == REEF_OK && !has_block(r, j, block, key)) {
        run_item(r, i, worker);
        if (j->blocks > 1 && j->parts[block].moments && !must_stop(r)) {
            status = leave_block(r, j, block, key, &error);
        }
    }
    rfi_release(r->experiment->context, key);
    if (status != REEF_OK) {
        keep_error(r, &error);
    }
}

/* All items of this rank, or all items by all ranks. */
static reef_status run_on_ranks(runner *r, reef_error *error)
{
    const reef_engine *e = r->engine;
    reef_status status = REEF_OK;
    if (r->together) {
        for (ptrdiff_t i = 0; i < r->item_count && !atomic_load(&r->failed); i++) {
            bool stop = must_stop(r);
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
static reef_status collect_job(runner *r, job *j, char *key, reef_error *error)
{
    const reef_context *context = r->experiment->context;
    bool there = true;
    if (j->blocks == 1) {
        there = rfi_outcome_init(&j->outcome, context, &j->numbers, j->wanted, j->agents) &&
                rfi_store_read(context, r->folder, j->key, &j->outcome);
        j->done = there;
        return REEF_OK;
    }
    for (ptrdiff_t b = 0; b < j->blocks && there; b++) {
        rfi_outcome_fini(&j->parts[b], context);
        there = name_block(r, j, b, key) &&
                rfi_outcome_init(&j->parts[b], context, &j->numbers, j->wanted, j->agents) &&
                rfi_store_read(context, r->folder, key, &j->parts[b]);
    }
    reef_status status = there ? finish_job(r, j, error) : REEF_OK;
    for (ptrdiff_t b = 0; b < j->blocks && j->done && status == REEF_OK; b++) {
        if (name_block(r, j, b, key)) {
            rfi_store_remove(r->folder, key);
        }
    }
    return status;
}

static reef_status collect(runner *r, reef_error *error)
{
    char *key = rfi_allocate(r->experiment->context, RFI_PRINT_SIZE);
    reef_status status = key ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for the results");
    for (ptrdiff_t i = 0; i < r->job_count && status == REEF_OK && r->engine->rank == 0 && !r->together; i++) {
        if (!r->jobs[i].done) {
            status = collect_job(r, &r->jobs[i], key, error);
        }
    }
    rfi_release(r->experiment->context, key);
    return status;
}

/* What rank 0 has found in the folder is done. */
static reef_status share_done(runner *r, reef_error *error)
{
    unsigned char *done = rfi_allocate_many(r->experiment->context, r->job_count, 1);
    reef_status status = done ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for the cells");
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
    if (r->engine && !r->together) { /* of this rank */
        r->progress.items = (r->item_count - r->engine->rank + r->engine->size - 1) / r->engine->size;
    }
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

/* Where the agents of a cell are spread over ranks nobody has all models, nor what each agent is trusted. */
static reef_status limit_wishes(runner *r, reef_error *error)
{
    for (ptrdiff_t i = 0; r->together && i < r->job_count; i++) {
        r->jobs[i].agents = 0;
    }
    if (r->together && r->options->models) {
        return rfi_fail(error, REEF_E_ARG, "models are kept only of cells that one rank runs (--distribute cells)");
    }
    return REEF_OK;
}

static reef_status prepare(runner *r, reef_experiment_outcome *outcome, reef_error *error)
{
    const reef_engine *e = r->engine;
    reef_status status = make_folders(r, error);
    status = status == REEF_OK ? make_jobs(r, error) : status;
    status = e ? e->ops->agree(e, status, error) : status;
    status = e && status == REEF_OK ? rfi_ranks_choose(r->experiment, r->options, &r->together, error) : status;
    status = status == REEF_OK ? limit_wishes(r, error) : status;
    if (status == REEF_OK && r->folder[0] && r->options->resume && (!e || e->rank == 0)) {
        load_jobs(r, outcome);
    }
    status = e && status == REEF_OK ? share_done(r, error) : status;
    status = status == REEF_OK ? make_items(r, error) : status;
    return e ? e->ops->agree(e, status, error) : status;
}

static reef_status run_all(runner *r, reef_experiment_outcome *outcome, reef_error *error)
{
    const reef_engine *e = r->engine;
    reef_status status = prepare(r, outcome, error);
    if (status != REEF_OK) {
        return status;
    }
    if (e) {
        status = run_on_ranks(r, error);
        status = status == REEF_OK ? e->ops->agree(e, collect(r, error), error) : status;
    } else {
        rfi_pool_run(r->experiment->context, r->workers, r->item_count, run_item, r);
    }
    outcome->seconds = seconds_since(&r->start);
    if (!e && atomic_load(&r->failed)) {
        status = rfi_fail(error, r->error.status, "%s", r->error.text);
    }
    outcome->stopped = !(e && e->rank) && !all_done(r);
    if (status == REEF_OK && e) {
        status = rfi_ranks_any(e, &outcome->stopped, error);
    }
    if (status == REEF_OK && !outcome->stopped && r->options->folder && !(e && e->rank)) {
        status = write_results(r, outcome->seconds, error);
    }
    return e ? e->ops->agree(e, status, error) : status;
}

reef_status reef_experiment_run(const reef_experiment *experiment, const reef_experiment_options *options,
                                reef_experiment_outcome *outcome, reef_error *error)
{
    static const reef_experiment_options plain = {0};
    reef_experiment_outcome own;
    if (!experiment) {
        return rfi_fail(error, REEF_E_ARG, "reef_experiment_run: experiment is NULL");
    }
    if (options && options->engine && !options->folder) {
        return rfi_fail(error, REEF_E_ARG, "an experiment on several ranks needs a folder");
    }
    runner *r = rfi_allocate(experiment->context, sizeof *r);
    if (!r) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a run");
    }
    memset(r, 0, sizeof *r);
    r->experiment = experiment;
    r->options = options ? options : &plain;
    r->engine = r->options->engine;
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
