/* Whole aggregations of data in memory. */
#include "agg/plan.h"
#include "base/error.h"
#include "num/order.h"

/* Below this many bytes of input waking other threads costs more than it saves. */
static const ptrdiff_t parallel_bytes = (ptrdiff_t)2 << 20;

/* A model in memory: rows[s][l] is row l of segment s. */
typedef struct model {
    const reef_plan *plan;
    const void *const *const *rows;
    void *const *out;
} model;

static reef_status read_rows(void *user, const rfi_stretch *at, const void **rows, reef_error *error)
{
    const model *d = user;
    const reef_plan *plan = d->plan;
    size_t skip = (size_t)at->m0 * rfi_dtype_size(plan->dtype);
    (void)error; /* they are there */
    for (ptrdiff_t i = 0; i < plan->n_raw; i++) {
        ptrdiff_t l = plan->m.active[i];
        rows[l] = (const char *)d->rows[at->segment][l] + skip;
    }
    return REEF_OK;
}

static void *place(void *user, const rfi_stretch *at)
{
    const model *d = user;
    return (char *)d->out[at->segment] + (size_t)at->m0 * rfi_dtype_size(d->plan->dtype);
}

/* Rows must be there and out must not overlap them: checked before anything is written. */
static reef_status check_places(const model *d, reef_error *error)
{
    const reef_plan *plan = d->plan;
    for (ptrdiff_t s = 0; s < plan->segments; s++) {
        if (!d->rows[s] || !d->out[s]) {
            return rfi_fail(error, REEF_E_ARG, "%s of segment %td is NULL", d->rows[s] ? "out" : "the array of rows",
                            s);
        }
        size_t bytes = (size_t)plan->m.lengths[s] * rfi_dtype_size(plan->dtype);
        uintptr_t out = (uintptr_t)d->out[s];
        for (ptrdiff_t i = 0; i < plan->n_raw; i++) {
            ptrdiff_t l = plan->m.active[i];
            uintptr_t row = (uintptr_t)d->rows[s][l];
            if (!row) {
                return rfi_fail(error, REEF_E_ARG, "row %td of segment %td is NULL", l, s);
            }
            if (row < out + bytes && out < row + bytes) {
                return rfi_fail(error, REEF_E_ARG, "out overlaps row %td of segment %td", l, s);
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
                        reef_plan_suspect(plan) ? "rows with NaN or Inf must be dropped first; call reef_plan_drop"
                                                : "%lld of %td coordinates were combined",
                        (long long)covered, plan->total);
    }
    if (plan->report) {
        rfi_report_end(plan);
    }
    if (plan->recalls && plan->input.state) {
        rfi_recall_commit(plan);
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
    model d = {plan, rows, out};
    status = check_places(&d, error);
    if (status != REEF_OK) {
        return status;
    }
    bool small = plan->total < parallel_bytes / (ptrdiff_t)rfi_dtype_size(plan->dtype) / plan->n_raw;
    const rfi_drive drive = {
        .plan = plan, .user = &d, .read = read_rows, .place = place, .workers = small ? 1 : plan->worker_count};
    return rfi_drive_run(&drive, error);
}

/* ---- the short way, where a call is hardly more than its arithmetic ---- */

/* Whether begin.c would find out nothing new: what it found for an earlier call holds, and the input has little but rows. */
static bool is_plain(const reef_plan *plan, const reef_input *input, const reef_report *report)
{
    bool self_fits = !input->has_self || (input->self >= 0 && input->self < plan->rows);
    return plan->settled && !report && (input->size == 0 || input->size == sizeof *input) && input->rows &&
           !input->state && self_fits && input->step == 0 &&
           !atomic_load_explicit(&plan->any_suspect, memory_order_relaxed) && rfi_weights_equal(plan, input->weights);
}

/* As check_places, but without telling what is wrong: no row may begin less than its length before or behind the result. */
static bool are_apart(const reef_plan *plan, const void *const *rows, const void *out)
{
    uintptr_t bytes = (uintptr_t)plan->total * (plan->dtype == REEF_F32 ? sizeof(float) : sizeof(double));
    uintptr_t nearest = (uintptr_t)out - bytes + 1;
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        if (!rows[l] || (uintptr_t)rows[l] - nearest < 2 * bytes - 1) {
            return false;
        }
    }
    return out;
}

void rfi_short_begin(reef_plan *plan)
{
    const rfi_worker *w = plan->m.workers;
    plan->tuned = rfi_plan_tune(plan, plan->m.raw_weights, plan->n_raw, plan->equal_raw);
    plan->span = (reef_span){.a = plan->m.raw_weights,
                             .equal = true,
                             .single = plan->dtype == REEF_F32,
                             .n = plan->rows,
                             .count = plan->total,
                             .f = plan->malicious_count[0],
                             .tuned = plan->tuned,
                             .half_tol = plan->dtype == REEF_F32 ? RFI_HALF_TOL_F32 : RFI_HALF_TOL_F64,
                             .hard = w->hard,
                             .scratch = w->scratch,
                             .kernels = plan->kernels};
}

/* One call of the rule's kernel on all there is, and the scalar rule where the kernel leaves a coordinate to it. False: something is out of
 * the ordinary (a pointer, a number that is not finite), and all must be done the long way, which starts again and reports what is wrong. */
static bool apply_short(reef_plan *plan, const reef_input *input, void *out)
{
    if (!are_apart(plan, input->rows, out)) {
        return false;
    }
    plan->begun = false; /* whatever was under way is over */
    reef_span span = plan->span;
    span.rows = input->rows;
    span.self = input->has_self ? input->self : -1;
    span.out = out;
    unsigned flush = rfi_flush_begin();
    ptrdiff_t hard = plan->rule->span(plan->params, &span);
    rfi_flush_end(flush);
    if (hard > 0) {
        plan->input = *input;
        plan->report = NULL;
        plan->keeps_centre = false;
        plan->self = span.self;
        return rfi_combine_hard(plan, input->rows, out, hard);
    }
    return hard == 0;
}

reef_status reef_plan_apply(reef_plan *plan, const reef_input *input, void *out, reef_report *report, reef_error *error)
{
    if (!plan || !input) {
        return rfi_fail(error, REEF_E_ARG, "reef_plan_apply: %s is NULL", plan ? "input" : "plan");
    }
    if (plan->brief && is_plain(plan, input, report) && apply_short(plan, input, out)) {
        return REEF_OK;
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
