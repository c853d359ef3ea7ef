/* One block of repetitions: the rounds, the statistics of their points, checkpoints where ranks share the agents, the model. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/run/runner.h"
#include "learn/ranks.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- statistics ---- */

/* What a block works on. */
typedef struct block_work {
    double *values; /* metric_count x lanes: the metrics of a point */
    double *sums;   /* the same: over the points of the steady state */
    double *
        trust; /* per view and agent with trust: received now, sum and number over the points of the steady state; work */
    ptrdiff_t agents, views;
    ptrdiff_t lanes;
    ptrdiff_t steady_points;
} block_work;

static bool is_steady(const rfi_cell_job *j, int64_t round)
{
    return round > j->numbers.rounds - j->numbers.steady;
}

static void take_point(const rfi_cell_job *j, block_work *work, ptrdiff_t point, rfi_outcome *part)
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
    ptrdiff_t items = work->agents * work->views;
    double *now = work->trust;
    double *sums = now + items;
    double *counts = sums + items;
    reef_status status = reef_run_trust_received(run, now, counts + items, error);
    for (ptrdiff_t v = 1; v < work->views && status == REEF_OK; v++) {
        status = reef_run_factor_received(run, v - 1, now + v * work->agents, counts + items, error);
    }
    for (ptrdiff_t l = 0; l < items && status == REEF_OK; l++) {
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
    ptrdiff_t items = work->agents * work->views;
    for (ptrdiff_t l = 0; l < items; l++) {
        double count = work->trust[2 * items + l];
        double mean = count > 0 ? work->trust[items + l] / count : (double)NAN;
        part->moments[(part->points + 1) * part->metric_count + l] = (rfi_moments){mean, 0};
    }
    part->repetitions = work->lanes;
}

/* ---- on all ranks together ---- */

/* Checkpoints of a block under way. */
typedef struct saving {
    char path[RFI_FOLDER_SIZE]; /* "": none are made */
    ptrdiff_t point;            /* of the curve, from which the block continues */
    int64_t round;              /* of the last one */
    double seconds;
} saving;

static bool is_due(const rfi_runner *r, const saving *s, const reef_run *run)
{
    const reef_experiment_options *o = r->options;
    double seconds = o->checkpoint_seconds > 0 ? o->checkpoint_seconds : (o->checkpoint_rounds > 0 ? 1e30 : 300);
    return (o->checkpoint_rounds > 0 && reef_run_round(run) - s->round >= o->checkpoint_rounds) ||
           rfi_seconds_since(&r->start) - s->seconds >= seconds;
}

/* Numbers from `sums` on with which a block continues: those of metrics, and those of trust except the work. */
static ptrdiff_t kept_of(const block_work *work)
{
    return RFI_METRICS * work->lanes + 3 * work->agents * work->views;
}

/* Before the next point: whether all stop, and whether a checkpoint is made first. Rank 0's clock decides. */
static reef_status look_up(const rfi_runner *r, saving *s, reef_run *run, const block_work *work,
                           const rfi_outcome *part, ptrdiff_t point, bool *stop, reef_error *error)
{
    const reef_engine *e = r->engine;
    unsigned char flags[2] = {rfi_must_stop(r), e->rank == 0 && s->path[0] && is_due(r, s, run)};
    reef_status status = e->ops->merge(e, flags, sizeof flags, error);
    *stop = flags[0] != 0;
    if (status == REEF_OK && s->path[0] && point > 0 && (flags[0] || flags[1])) {
        const rfi_progress progress = {point, work->steady_points};
        status = rfi_checkpoint_save(r->experiment->context, e, s->path, run, part, &progress, work->sums,
                                     kept_of(work), error);
        s->round = reef_run_round(run);
        s->seconds = rfi_seconds_since(&r->start);
    }
    return status;
}

/* Continues from the last complete checkpoint, if there is one. If all are damaged, the block begins again, in a run that has
 * taken nothing of them. */
static reef_status take_up(rfi_runner *r, rfi_world *world, const rfi_repeat_block *block, saving *s, reef_run **run,
                           block_work *work, rfi_outcome *part, reef_error *error)
{
    rfi_progress progress = {0, 0};
    reef_error why = {REEF_OK, ""};
    bool fell_back = false;
    if (!r->options->resume || !s->path[0]) {
        return REEF_OK;
    }
    reef_status status = rfi_checkpoint_load(r->experiment->context, r->engine, s->path, *run, part, &progress,
                                             work->sums, kept_of(work), &fell_back, &why);
    /* a file that is not there is no damage if nothing names it; what was taken of a checkpoint, its round among it, is void */
    bool begun = status == REEF_E_FILE && reef_run_round(*run) > 0;
    bool damaged = status == REEF_E_FORMAT || begun;
    bool lost = status == REEF_E_FILE && access(s->path, F_OK) == 0;
    r->damaged += damaged || lost || fell_back;
    if (damaged) {
        progress = (rfi_progress){0, 0};
        memset(work->sums, 0, (size_t)kept_of(work) * sizeof *work->sums);
        reef_run_destroy(run);
        status = rfi_world_run(world, block, run, &why);
    }
    if (status != REEF_OK && status != REEF_E_FILE) {
        return rfi_fail(error, status, "%s", why.text);
    }
    s->point = (ptrdiff_t)progress.point;
    work->steady_points = (ptrdiff_t)progress.steady_points;
    s->round = reef_run_round(*run);
    return REEF_OK;
}

/* ---- one block ---- */

/* The round is computed here, or played elsewhere. */
static reef_status go_to(const rfi_runner *r, const rfi_cell_job *j, reef_run *run, int64_t round, reef_error *error)
{
    if (r->player && !j->oracle) {
        return r->player->advance(r->player->user, run, round, error);
    }
    return reef_run_step(run, round - reef_run_round(run), error);
}

static void tell_player(const rfi_runner *r, const rfi_cell_job *j, const reef_run *run, const double *values)
{
    int metric = 0;
    while (!j->wanted[metric]) {
        metric++;
    }
    if (r->player && !j->oracle) {
        bool decibels = rfi_metric_decibels((rfi_metric)metric);
        r->player->told(r->player->user, reef_run_round(run), rfi_metric_name((rfi_metric)metric),
                        decibels ? 10 * log10(values[0]) : values[0]);
    }
}

/* *whole becomes true unless the run was told to stop. */
static reef_status run_rounds(const rfi_runner *r, const rfi_cell_job *j, reef_run *run, block_work *work, saving *s,
                              rfi_outcome *part, bool *whole, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t p = s->point; p < part->points && status == REEF_OK; p++) {
        bool stop = rfi_must_stop(r);
        status = r->together ? look_up(r, s, run, work, part, p, &stop, error) : REEF_OK;
        if (stop || status != REEF_OK) {
            return status;
        }
        status = go_to(r, j, run, rfi_outcome_round(part, p), error);
        if (status == REEF_OK) {
            status = rfi_metric_eval(run, j->wanted, work->values, error);
        }
        tell_player(r, j, run, work->values);
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
static bool take_work(const rfi_cell_job *j, const reef_context *context, block_work *work)
{
    ptrdiff_t count = RFI_METRICS * work->lanes;
    ptrdiff_t room = 2 * count + (3 * j->views + 1) * j->agents;
    work->agents = j->agents;
    work->views = j->views;
    work->values = rfi_allocate_many(context, room, sizeof *work->values);
    if (work->values) {
        memset(work->values, 0, (size_t)room * sizeof *work->values);
        work->sums = work->values + count;
        work->trust = work->sums + count;
    }
    return work->values != NULL;
}

/* The first repetition's model, if it is asked for; one of an earlier run would not belong to these results. */
static reef_status keep_model(const rfi_runner *r, const rfi_world *world, const rfi_cell_job *j, const reef_run *run,
                              reef_error *error)
{
    if (!r->folder[0] || j->oracle) {
        return REEF_OK;
    }
    if (!r->options->models) {
        if (!r->together || r->engine->rank == 0) {
            rfi_model_remove(r->folder, j->key);
        }
        return REEF_OK;
    }
    return rfi_model_write(world, run, r->folder, j->key, error);
}

reef_status rfi_run_block(rfi_runner *r, rfi_world *world, const rfi_cell_job *j, ptrdiff_t number, bool *whole,
                          reef_error *error)
{
    rfi_repeat_block block = {.oracle = j->oracle,
                              .lanes = j->lanes,
                              .repetition = number * j->lanes,
                              .engine = r->together ? r->engine : NULL,
                              .played = r->player != NULL};
    rfi_outcome *part = &j->parts[number];
    reef_run *run = NULL;
    if (block.lanes > j->numbers.repetitions - block.repetition) {
        block.lanes = (ptrdiff_t)j->numbers.repetitions - block.repetition;
    }
    saving checkpoints = {.path = ""};
    reef_status status = rfi_world_set(world, j->cell, error);
    if (r->together && r->options->folder && status == REEF_OK) {
        status = rfi_checkpoint_path(r->options->folder, j->key, number, checkpoints.path, error);
    }
    status = rfi_agree(r, status, error);
    if (status == REEF_OK) {
        status = rfi_world_run(world, &block, &run, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    checkpoints.seconds = rfi_seconds_since(&r->start);
    block_work work = {.lanes = block.lanes};
    if (!take_work(j, world->context, &work) ||
        !rfi_outcome_init(part, r->experiment->context, &j->numbers, j->wanted, j->agents, j->views)) {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory for the results of a configuration");
    }
    status = rfi_agree(r, status, error);
    if (status == REEF_OK && work.values) {
        part->theory = number == 0 ? rfi_world_theory(world) : (double)NAN;
        status = r->together ? take_up(r, world, &block, &checkpoints, &run, &work, part, error) : REEF_OK;
    }
    if (status == REEF_OK && work.values) {
        status = run_rounds(r, j, run, &work, &checkpoints, part, whole, error);
    }
    if (status == REEF_OK && *whole && number == 0) {
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
