/* Whole aggregations of data in memory: the loop around observe, solve and combine. */
#include "agg/plan.h"
#include "base/error.h"
#include "base/pool.h"

/* Below this many bytes of input waking other threads costs more than it saves. */
static const ptrdiff_t parallel_bytes = (ptrdiff_t)2 << 20;

/* A model in memory: rows[s][l] is row l of segment s. */
typedef struct model {
    reef_plan *plan;
    const void *const *const *rows;
    void *const *out;
    reef_error *error;
    atomic_int status; /* of the parts done so far; the first failure stays */
    reef_error failure;
} model;

/* One range of one segment, between multiples of the grain. */
typedef struct range {
    ptrdiff_t segment, m0, m1;
} range;

static ptrdiff_t parts_of(const reef_plan *plan, ptrdiff_t segment)
{
    return (plan->m.lengths[segment] - 1) / plan->grain + 1;
}

static range range_of(const reef_plan *plan, ptrdiff_t part)
{
    range r = {0, 0, 0};
    for (; part >= parts_of(plan, r.segment); r.segment++) {
        part -= parts_of(plan, r.segment);
    }
    ptrdiff_t length = plan->m.lengths[r.segment];
    r.m0 = part * plan->grain;
    r.m1 = length - r.m0 > plan->grain ? r.m0 + plan->grain : length;
    return r;
}

static void keep_failure(model *d, reef_status status, const reef_error *error)
{
    int none = REEF_OK;
    if (atomic_compare_exchange_strong(&d->status, &none, (int)status)) {
        d->failure = *error;
    }
}

/* Row pointers moved to the start of a range, in the worker's own array. */
static const void *const *rows_at(const model *d, const range *r, ptrdiff_t worker)
{
    const void **moved = d->plan->m.workers[worker].rows;
    size_t skip = (size_t)r->m0 * rfi_dtype_size(d->plan->dtype);
    for (ptrdiff_t i = 0; i < d->plan->n_raw; i++) {
        ptrdiff_t l = d->plan->m.active[i];
        moved[l] = (const char *)d->rows[r->segment][l] + skip;
    }
    return moved;
}

static void observe_part(void *job, ptrdiff_t part, ptrdiff_t worker)
{
    model *d = job;
    reef_error error;
    range r = range_of(d->plan, part);
    if (atomic_load(&d->status) != REEF_OK) {
        return;
    }
    reef_status status = reef_plan_observe(d->plan, worker, r.segment, r.m0, r.m1, rows_at(d, &r, worker), &error);
    if (status != REEF_OK) {
        keep_failure(d, status, &error);
    }
}

static void combine_part(void *job, ptrdiff_t part, ptrdiff_t worker)
{
    model *d = job;
    reef_error error;
    range r = range_of(d->plan, part);
    void *out = (char *)d->out[r.segment] + (size_t)r.m0 * rfi_dtype_size(d->plan->dtype);
    reef_status status = reef_plan_combine(d->plan, worker, r.segment, r.m0, r.m1, rows_at(d, &r, worker), out, &error);
    if (status != REEF_OK) {
        keep_failure(d, status, &error);
    }
}

/* All ranges, on all workers if that pays. */
static reef_status run_parts(model *d, rfi_job run)
{
    const reef_plan *plan = d->plan;
    ptrdiff_t parts = 0;
    for (ptrdiff_t s = 0; s < plan->segments; s++) {
        parts += parts_of(plan, s);
    }
    bool small = plan->total < parallel_bytes / (ptrdiff_t)rfi_dtype_size(plan->dtype) / plan->n_raw;
    atomic_store(&d->status, REEF_OK);
    rfi_pool_run(plan->agg->context, small ? 1 : plan->worker_count, parts, run, d);
    reef_status status = (reef_status)atomic_load(&d->status);
    /* after bad rows were met all is done again without them, and this failure may be theirs */
    if (status != REEF_OK && d->error && !reef_plan_suspect(plan)) {
        *d->error = d->failure;
    }
    return status;
}

static reef_status observe_all(model *d)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t pass = 0; status == REEF_OK && pass < d->plan->passes; pass++) {
        status = run_parts(d, observe_part);
        if (status == REEF_OK) {
            status = reef_plan_solve(d->plan, d->error);
        }
    }
    return status;
}

static reef_status drop_bad_rows(const model *d)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t s = 0; status == REEF_OK && s < d->plan->segments; s++) {
        status = reef_plan_scan(d->plan, s, 0, d->plan->m.lengths[s], d->rows[s], d->error);
    }
    return status == REEF_OK ? reef_plan_drop(d->plan, d->error) : status;
}

/* Rows must be there and out must not overlap them: checked before anything is written. */
static reef_status check_places(const model *d)
{
    reef_plan *plan = d->plan;
    for (ptrdiff_t s = 0; s < plan->segments; s++) {
        if (!d->rows[s] || !d->out[s]) {
            return rfi_fail(d->error, REEF_E_ARG, "%s of segment %td is NULL", d->rows[s] ? "out" : "the array of rows",
                            s);
        }
        size_t bytes = (size_t)plan->m.lengths[s] * rfi_dtype_size(plan->dtype);
        uintptr_t out = (uintptr_t)d->out[s];
        for (ptrdiff_t i = 0; i < plan->n_raw; i++) {
            ptrdiff_t l = plan->m.active[i];
            uintptr_t row = (uintptr_t)d->rows[s][l];
            if (!row) {
                return rfi_fail(d->error, REEF_E_ARG, "row %td of segment %td is NULL", l, s);
            }
            if (row < out + bytes && out < row + bytes) {
                return rfi_fail(d->error, REEF_E_ARG, "out overlaps row %td of segment %td", l, s);
            }
        }
    }
    return REEF_OK;
}

reef_status reef_plan_end(reef_plan *plan, reef_error *error)
{
    if (!plan || !plan->begun || plan->pass < plan->passes) {
        return rfi_fail(error, REEF_E_ORDER, "reef_plan_end: the aggregation is not complete");
    }
    int64_t covered = 0;
    for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
        covered += plan->m.workers[i].covered;
    }
    if (covered != plan->total || reef_plan_suspect(plan)) {
        return rfi_fail(error, REEF_E_ORDER,
                        reef_plan_suspect(plan) ? "rows with NaN or Inf must be dropped first (reef_plan_drop)"
                                                : "%lld of %td coordinates were combined",
                        (long long)covered, plan->total);
    }
    if (plan->report) {
        rfi_report_end(plan);
    }
    if (plan->recalls && plan->input.state) {
        rfi_senders_commit(rfi_state_senders(plan->input.state), &plan->recall);
    } else if (plan->input.state) {
        rfi_state_commit(plan->input.state);
    }
    plan->begun = false;
    return REEF_OK;
}

reef_status reef_plan_apply_segments(reef_plan *plan, const reef_input *input, const void *const *const *rows,
                                     void *const *out, reef_report *report, reef_error *error)
{
    reef_status status = reef_plan_begin(plan, input, report, error);
    if (status != REEF_OK) {
        return status;
    }
    if (!rows || !out) {
        return rfi_fail(error, REEF_E_ARG, "%s is NULL", rows ? "out" : "the array of rows");
    }
    model d = {.plan = plan, .rows = rows, .out = out, .error = error};
    status = check_places(&d);
    while (status == REEF_OK) {
        status = observe_all(&d);
        if (status == REEF_OK && !reef_plan_suspect(plan)) {
            status = run_parts(&d, combine_part);
        }
        if (!reef_plan_suspect(plan)) {
            break;
        }
        /* whatever the status: it may come from the values that stand in for the bad ones */
        status = drop_bad_rows(&d);
    }
    if (status == REEF_OK) {
        status = reef_plan_end(plan, error);
    }
    return status;
}

reef_status reef_plan_apply(reef_plan *plan, const reef_input *input, void *out, reef_report *report, reef_error *error)
{
    if (!plan || !input) {
        return rfi_fail(error, REEF_E_ARG, "reef_plan_apply: %s is NULL", plan ? "input" : "plan");
    }
    if (plan->segments != 1) {
        return rfi_fail(error, REEF_E_ARG, "the plan has %td segments; use reef_plan_apply_segments", plan->segments);
    }
    return reef_plan_apply_segments(plan, input, &input->rows, &out, report, error);
}

reef_status reef_agg_apply(const reef_agg *agg, const reef_input *input, ptrdiff_t rows, ptrdiff_t length,
                           reef_dtype dtype, void *out, reef_report *report, reef_error *error)
{
    reef_plan *plan = NULL;
    reef_shape shape = {.rows = rows, .segments = 1, .lengths = &length, .dtype = dtype};
    reef_status status = reef_plan_create(&plan, agg, &shape, error);
    if (status == REEF_OK) {
        status = reef_plan_apply(plan, input, out, report, error);
    }
    reef_plan_destroy(&plan);
    return status;
}
