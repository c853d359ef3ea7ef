/* The aggregation of the floating-point tensors, streamed: the loop of reef/agg.h over blocks.
 *
 * One plan for all tensors, or one per tensor. If a block holds NaN or Inf and the policy is to drop the row, all files are searched for
 * such values, and everything starts again without the files that hold any: a file counts as a whole or not at all, for every tensor. */
#include "merge/merge.h"

#include "agg/pipeline.h"
#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/lines.h"
#include "num/treesum.h"

#include <math.h>
#include <string.h>

typedef enum pass_kind { OBSERVE, COMBINE, SEARCH } pass_kind;

/* One pass over the segments [first, first + count) of the model, which are the plan's segments 0, 1, ... */
typedef struct pass {
    rfi_task task;
    pass_kind kind;
    reef_plan *plan; /* NULL in a search */
    ptrdiff_t first, count;
    ptrdiff_t grain, unit; /* coordinates of a part; of a piece */
    ptrdiff_t *parts;      /* count + 1: number of each segment's first part */
} pass;

static ptrdiff_t parts_of(const pass *p, ptrdiff_t segment)
{
    return (p->task.merge->lengths[p->first + segment] - 1) / p->grain + 1;
}

/* The segment that a part belongs to. */
static ptrdiff_t segment_of(const pass *p, ptrdiff_t part)
{
    ptrdiff_t low = 0;
    ptrdiff_t high = p->count;
    while (high - low > 1) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (p->parts[middle] <= part) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Marks the rows with NaN or Inf. */
static void search_block(rfi_merge *merge, const rfi_block *block, ptrdiff_t count)
{
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const float *single = block->rows[l];
        const double *number = block->rows[l];
        for (ptrdiff_t m = 0; block->rows[l] && m < count; m++) {
            if (!(merge->dtype == REEF_F64 ? isfinite(number[m]) : isfinite(single[m]))) {
                atomic_store(&merge->spoilt[l], true);
                break;
            }
        }
    }
}

static reef_status handle(pass *p, ptrdiff_t worker, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1, reef_error *error)
{
    rfi_merge *merge = p->task.merge;
    rfi_block *block = &merge->blocks[worker];
    ptrdiff_t tensor = merge->segment[p->first + segment];
    reef_status status = rfi_block_read(merge, block, tensor, m0, m1 - m0, true, error);
    if (status != REEF_OK) {
        return status;
    }
    if (p->kind == SEARCH) {
        search_block(merge, block, m1 - m0);
        return REEF_OK;
    }
    if (p->kind == OBSERVE) {
        return reef_plan_observe(p->plan, worker, segment, m0, m1, block->rows, error);
    }
    status = reef_plan_combine(p->plan, worker, segment, m0, m1, block->rows, block->out, error);
    if (status != REEF_OK || reef_plan_suspect(p->plan)) {
        return status;
    }
    return rfi_block_write(merge, block, tensor, m0, m1 - m0, true, error);
}

/* After a failure nothing more is read, except that squared distances may overflow because of a row with NaN further on. */
static bool is_over(pass *p)
{
    int status = atomic_load(&p->task.status);
    return (status != REEF_OK && status != REEF_E_FAR) || (p->plan && reef_plan_suspect(p->plan));
}

static void run_part(void *job, ptrdiff_t part, ptrdiff_t worker)
{
    pass *p = job;
    rfi_merge *merge = p->task.merge;
    ptrdiff_t segment = segment_of(p, part);
    ptrdiff_t length = merge->lengths[p->first + segment];
    ptrdiff_t from = (part - p->parts[segment]) * p->grain;
    ptrdiff_t to = length - from > p->grain ? from + p->grain : length;
    ptrdiff_t width = merge->dtype == REEF_F64 ? (ptrdiff_t)sizeof(double) : (ptrdiff_t)sizeof(float);
    ptrdiff_t step = merge->row_bytes / width / p->unit * p->unit;
    reef_error error;
    if (is_over(p)) {
        return;
    }
    rfi_block_expect(merge, merge->segment[p->first + segment], from, to - from);
    for (ptrdiff_t m = from; m < to && !is_over(p);) {
        ptrdiff_t end = step > 0 && to - m > step ? m + step : to;
        reef_status status = handle(p, worker, segment, m, end, &error);
        if (status != REEF_OK) {
            rfi_task_fail(&p->task, status, &error);
        }
        m = end;
        if (worker == 0) {
            rfi_merge_tell(merge);
        }
    }
}

static reef_status run_pass(pass *p, pass_kind kind, reef_error *error)
{
    p->kind = kind;
    p->parts[0] = 0;
    for (ptrdiff_t s = 0; s < p->count; s++) {
        p->parts[s + 1] = p->parts[s] + parts_of(p, s);
    }
    return rfi_task_run(&p->task, p->parts[p->count], run_part, error);
}

/* ---- one plan ---- */

/* Leaves out the files that are known to hold NaN or Inf, the way the plan does it: they are shown to it once more. */
static reef_status drop_known(pass *p, reef_error *error)
{
    rfi_merge *merge = p->task.merge;
    static const double zero = 0;
    static const double not_finite = NAN;
    static const float single_not_finite = NAN;
    const void **rows = merge->blocks[0].rows;
    bool any = false;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        bool spoilt = atomic_load(&merge->spoilt[l]);
        any = any || spoilt;
        rows[l] = &zero;
        if (spoilt) {
            rows[l] = merge->dtype == REEF_F64 ? (const void *)&not_finite : (const void *)&single_not_finite;
        }
    }
    if (!any) {
        return REEF_OK;
    }
    reef_status status = reef_plan_scan(p->plan, 0, 0, 1, rows, error);
    return status == REEF_OK ? reef_plan_drop(p->plan, error) : status;
}

/* Observe, solve and combine. Comes back early, whatever the status, once the plan has a suspect. */
static reef_status run_plan(pass *p, reef_report *report, reef_error *error)
{
    reef_input input = {.weights = p->task.merge->weights};
    reef_status status = reef_plan_begin(p->plan, &input, report, error);
    if (status == REEF_OK) {
        status = drop_known(p, error);
    }
    for (ptrdiff_t i = 0; status == REEF_OK && i < reef_plan_passes(p->plan); i++) {
        status = run_pass(p, OBSERVE, error);
        if (status == REEF_OK && !reef_plan_suspect(p->plan)) {
            status = reef_plan_solve(p->plan, error);
        }
        if (reef_plan_suspect(p->plan)) {
            return status;
        }
    }
    if (status == REEF_OK) {
        status = run_pass(p, COMBINE, error);
    }
    if (status == REEF_OK && !reef_plan_suspect(p->plan)) {
        status = reef_plan_end(p->plan, error);
    }
    return status;
}

/* Adds a plan's report to that of the merge, by the number of its coordinates. */
static void add_report(rfi_merge *merge, const reef_report *report, double numbers)
{
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        merge->trust[l] += numbers * reef_report_trust(report)[l];
        merge->rejected[l] += numbers * reef_report_rejected(report)[l];
    }
    merge->report.centre_share += numbers * reef_report_centre_share(report);
    merge->report.masked += reef_report_masked(report);
    merge->report.unconverged += reef_report_unconverged(report);
}

/* One plan over some segments; *suspect: it has met NaN or Inf, and its result is void. */
static reef_status aggregate(pass *p, reef_report *report, bool *suspect, reef_error *error)
{
    rfi_merge *merge = p->task.merge;
    double numbers = 0;
    reef_shape shape = {.rows = merge->rows,
                        .segments = p->count,
                        .lengths = merge->lengths + p->first,
                        .dtype = merge->dtype,
                        .workers = merge->workers};
    reef_status status = reef_plan_create(&p->plan, merge->agg, &shape, error);
    if (status == REEF_OK) {
        status = rfi_blocks_create(merge, reef_plan_piece(p->plan), error);
    }
    if (status == REEF_OK) {
        p->grain = reef_plan_grain(p->plan);
        p->unit = reef_plan_piece(p->plan);
        merge->total += p->first == 0 ? (double)(reef_plan_passes(p->plan) + 1) * merge->bytes : 0;
        status = run_plan(p, report, error);
        *suspect = reef_plan_suspect(p->plan);
    }
    for (ptrdiff_t s = 0; s < p->count; s++) {
        numbers += (double)shape.lengths[s];
    }
    if (report && status == REEF_OK && !*suspect) {
        add_report(merge, report, numbers);
    }
    reef_plan_destroy(&p->plan);
    return status;
}

/* ---- all of it ---- */

static void forget_report(rfi_merge *merge)
{
    memset(merge->trust, 0, (size_t)merge->rows * sizeof *merge->trust);
    memset(merge->rejected, 0, (size_t)merge->rows * sizeof *merge->rejected);
    merge->report.centre_share = 0;
    merge->report.masked = 0;
    merge->report.unconverged = 0;
}

static reef_status attempt(rfi_merge *merge, pass *p, reef_report *report, bool *suspect, reef_error *error)
{
    ptrdiff_t step = merge->options->per_tensor ? 1 : merge->segments;
    reef_status status = REEF_OK;
    forget_report(merge);
    *suspect = false;
    for (p->first = 0; status == REEF_OK && !*suspect && p->first < merge->segments; p->first += step) {
        p->count = step;
        status = aggregate(p, report, suspect, error);
    }
    return status;
}

/* Which files hold NaN or Inf, and what that means. */
static reef_status find_spoilt(rfi_merge *merge, pass *p, reef_error *error)
{
    p->first = 0;
    p->count = merge->segments;
    p->grain = (ptrdiff_t)RFI_TILE * 64;
    p->unit = 1;
    merge->total += merge->bytes;
    reef_status status = run_pass(p, SEARCH, error);
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        if (!atomic_load(&merge->spoilt[l])) {
            continue;
        }
        reef_merge_file *fate = &merge->fates[merge->file_of[l]];
        reef_error sentence;
        (void)rfi_fail(&sentence, REEF_E_NONFINITE, "%s: holds NaN or Inf",
                       rfi_path_show(merge->models[merge->file_of[l]].file.path));
        fate->reason = REEF_MERGE_NONFINITE;
        memcpy(fate->why, sentence.text, sizeof fate->why);
        if (merge->agg->nan == RFI_NAN_ERROR) {
            return rfi_fail(error, REEF_E_NONFINITE, "%s, and the policy is nan=error", sentence.text);
        }
    }
    return status;
}

static reef_status run_attempts(rfi_merge *merge, pass *p, reef_report *report, reef_error *error)
{
    bool suspect = false;
    reef_status status = attempt(merge, p, report, &suspect, error);
    if (suspect) { /* whatever the status: it may come from the bad values */
        status = find_spoilt(merge, p, error);
        if (status == REEF_OK) {
            status = attempt(merge, p, report, &suspect, error);
        }
        if (status == REEF_OK && suspect) {
            return rfi_fail(error, REEF_E_FILE, "a file has changed while it was read");
        }
    }
    double numbers = (double)merge->report.numbers;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        merge->trust[l] /= numbers;
        merge->rejected[l] /= numbers;
    }
    merge->report.centre_share /= numbers;
    return status;
}

reef_status rfi_merge_floats(rfi_merge *merge, reef_error *error)
{
    reef_report *report = NULL;
    pass p = {.task = {.merge = merge}};
    if (merge->segments == 0) {
        return REEF_OK;
    }
    p.parts = rfi_allocate_many(merge->context, merge->segments + 1, sizeof *p.parts);
    reef_status status =
        p.parts ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for %td tensors", merge->segments);
    if (status == REEF_OK && !merge->options->no_trust) {
        status = reef_report_create_in(merge->context, &report, merge->rows, error);
    }
    if (status == REEF_OK) {
        status = run_attempts(merge, &p, report, error);
    }
    reef_report_destroy(&report);
    rfi_release(merge->context, p.parts);
    return status;
}
