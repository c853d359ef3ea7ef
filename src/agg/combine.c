/* Combining: the result of each coordinate, and the effective weights. Ranges are cut into blocks and spans here; a span goes to the rule's kernel, to
 * combine_sum.c or mixed.c, and what is left over to combine_column.c. */
#include "agg/combine.h"
#include "base/error.h"
#include "num/order.h"

#include <assert.h>
#include <string.h>

/* ---- spans: many coordinates at once, what is hard one by one ---- */

/* One coordinate by the scalar rule: the result, or only its report (silent). */
static reef_status finish_one(const rfi_combining *j, ptrdiff_t m, bool silent)
{
    assert(m >= j->m0 && m < j->plan->m.lengths[j->segment]);
    rfi_combining one = *j;
    one.silent = silent;
    return rfi_combine_columns(&one, m, m + 1);
}

/* What a kernel has left: the hard coordinates (~t: only its report), and the report if it gave none. The result does not depend on whether
 * a report is wanted: the scalar rule's may differ in the last bit. */
static reef_status finish_span(const rfi_combining *j, ptrdiff_t from, ptrdiff_t count, ptrdiff_t hard, bool reported)
{
    assert(hard >= 0 && hard <= count && count <= RFI_SPAN_MAX);
    const reef_plan *plan = j->plan;
    bool report_all = plan->report && !reported;
    const int32_t *list = j->worker->hard; /* ascending */
    reef_status status = REEF_OK;
    ptrdiff_t next = 0;
    while (status == REEF_OK && next < hard && !report_all && !plan->keeps_centre) {
        int32_t t = list[next++];
        bool silent = t < 0;
        status = finish_one(j, from + (silent ? ~t : t), silent);
    }
    for (ptrdiff_t t = 0; status == REEF_OK && (report_all || plan->keeps_centre) && t < count; t++) {
        bool is_hard = next < hard && list[next] == t;
        bool untold = next < hard && ~list[next] == t;
        next += is_hard || untold;
        if (!is_hard && plan->keeps_centre) {
            double value = rfi_load(plan->dtype, j->out, from + t - j->m0);
            rfi_state_propose(plan->input.state, j->segment, from + t, value);
        }
        if (is_hard || untold || report_all) {
            status = finish_one(j, from + t, !is_hard);
        }
    }
    return status;
}

/* An elementwise rule with a fast path; returns the number of hard coordinates, or -1. *reported: trust is wanted, and after the call
 * whether it was given. */
static ptrdiff_t span_column(const rfi_combining *j, ptrdiff_t from, ptrdiff_t to, bool *reported)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    /* rows that were not chosen may have entries to count as left out */
    bool possible = !plan->rule->weigh || plan->agg->nan != RFI_NAN_DROP_COORDINATE;
    if (!plan->rule->span || plan->agg->count > 1 || !possible) {
        return -1;
    }
    rfi_rows_used(plan, w, from, j->m0, j->rows);
    reef_span span = {.rows = w->used,
                      .a = plan->m.raw_weights,
                      .equal = plan->equal_raw,
                      .single = plan->dtype == REEF_F32,
                      .n = plan->n_raw,
                      .count = to - from,
                      .f = plan->malicious_count[0],
                      .self = plan->self,
                      .tuned = j->tuned,
                      .floor = j->floor,
                      .half_tol = plan->dtype == REEF_F32 ? RFI_HALF_TOL_F32 : RFI_HALF_TOL_F64,
                      .out = rfi_combining_out(j, from),
                      .hard = w->hard,
                      .scratch = w->scratch,
                      .kernels = w->row_kernels};
    if (*reported) {
        span.share = rfi_treesum_leaf(&w->trust);
        span.rejected = w->rejected;
    }
    unsigned flush = rfi_flush_begin();
    ptrdiff_t hard = j->share ? rfi_span_chosen(plan, w, j->share, &span) : plan->rule->span(plan->params, &span);
    rfi_flush_end(flush);
    for (ptrdiff_t l = 0; *reported && span.fair && hard >= 0 && l < span.n; l++) {
        span.share[l] += (double)(span.count - hard) * span.a[l];
    }
    *reported = *reported && (span.reported || span.fair);
    if (hard >= 0 && (*reported || !plan->report)) {
        w->iterations += span.iterations;
        w->solved += span.count - hard;
        w->max_iterations = span.max_iterations > w->max_iterations ? span.max_iterations : w->max_iterations;
    }
    return hard;
}

/* A rule of single coordinates behind pre-aggregators. */
static ptrdiff_t span_mixed(const rfi_combining *j, ptrdiff_t from, ptrdiff_t to, bool *reported)
{
    rfi_worker *w = j->worker;
    rfi_rows_used(j->plan, w, from, j->m0, j->rows);
    memcpy(w->rows_mixed, w->used, (size_t)j->plan->n_raw * sizeof *w->used);
    return rfi_span_mixed(j->plan, w, w->rows_mixed, to - from, j->share, j->tuned, j->floor,
                          rfi_combining_out(j, from), reported);
}

static reef_status combine_part(const rfi_combining *j, ptrdiff_t from, ptrdiff_t to)
{
    const reef_plan *plan = j->plan;
    ptrdiff_t hard = -1;
    bool reported = plan->report && !rfi_report_wants_shares(plan->report);
    if (plan->mixes && plan->rule->span) {
        hard = span_mixed(j, from, to, &reported);
    } else if (plan->kernels) {
        hard = plan->rule->column ? span_column(j, from, to, &reported) : rfi_combine_sum(j, from, to, &reported);
    }
    return hard < 0 ? rfi_combine_columns(j, from, to) : finish_span(j, from, to - from, hard, reported);
}

/* In chunks where mixed rows are to be made. */
static reef_status combine_span(const rfi_combining *j, ptrdiff_t from, ptrdiff_t to)
{
    assert(from < to && from / RFI_TILE == (to - 1) / RFI_TILE);
    const reef_plan *plan = j->plan;
    bool mixes = plan->mixes && (plan->rule->span || rfi_combine_at_median(j));
    ptrdiff_t chunk = mixes ? plan->mix_chunk : RFI_SPAN_MAX;
    reef_status status = REEF_OK;
    for (ptrdiff_t m = from; status == REEF_OK && m < to; m += chunk) {
        status = combine_part(j, m, to - m < chunk ? to : m + chunk);
    }
    return status;
}

/* Shares of one block, from its own Gram matrix, just before it is combined. */
static reef_status solve_block(rfi_combining *j, ptrdiff_t from, ptrdiff_t to)
{
    reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    w->gram.length = rfi_packed_length(rfi_space_points(plan, &j->space));
    rfi_treesum_start(&w->gram);
    for (ptrdiff_t tile = from; tile < to; tile += RFI_TILE) {
        ptrdiff_t end = to - tile < RFI_TILE ? to : tile + RFI_TILE;
        rfi_gram_tile(plan, w, &j->space, j->segment, tile, end - tile, j->m0, j->rows);
        rfi_treesum_push(&w->gram);
    }
    rfi_treesum_finish(&w->gram, w->packed);
    rfi_unpack(w->packed, rfi_space_points(plan, &j->space), w->block_gram);
    j->share = w->block_share;
    return rfi_weigh(plan, w, &j->space, w->block_gram, (double)(to - from), w->block_share, j->error);
}

static bool has_relative_floor(const reef_plan *plan)
{
    return plan->rule->relative_floor && plan->rule->relative_floor(plan->params) > 0;
}

static ptrdiff_t next_multiple(ptrdiff_t m, ptrdiff_t step, ptrdiff_t end)
{
    return end - m <= step - m % step ? end : m - m % step + step;
}

/* Spans that cross neither a tile nor a block, in order. A block that fails does not keep the others from being read: a row with
 * NaN or Inf further on may be to blame, and will be dropped whatever the order of the ranges. */
static reef_status combine_range(rfi_combining *j, ptrdiff_t m1)
{
    reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    bool local = plan->scope > 0 && plan->rule->weigh;
    ptrdiff_t slot = (ptrdiff_t)RFI_TILE << plan->slot_levels;
    ptrdiff_t length = plan->m.lengths[j->segment];
    reef_status failed = REEF_OK;
    if (j->m0 % slot == 0) { /* otherwise a piece continues the sums of the one before */
        rfi_treesum_start(&w->trust);
    }
    for (ptrdiff_t m = j->m0; m < m1;) {
        reef_status status = REEF_OK;
        ptrdiff_t end = next_multiple(m, RFI_TILE, m1);
        if (local) {
            ptrdiff_t block_end = next_multiple(m, (ptrdiff_t)plan->scope, m1);
            if (m % plan->scope == 0) {
                status = solve_block(j, m, block_end);
            }
            end = block_end < end ? block_end : end;
        }
        if (status == REEF_OK && has_relative_floor(plan) && m % RFI_TILE == 0) {
            rfi_combine_floor(j, m, end);
        }
        if (status == REEF_OK) {
            status = combine_span(j, m, end);
        }
        if (status != REEF_OK && failed == REEF_OK) {
            failed = status;
            j->error = NULL; /* only the first failure is reported */
        }
        if (plan->report && (end % RFI_TILE == 0 || end == length)) {
            rfi_treesum_push(&w->trust);
        }
        if (plan->report && (end % slot == 0 || end == length)) {
            ptrdiff_t place = plan->m.slot_starts[j->segment] + m / slot;
            rfi_treesum_finish(&w->trust, plan->m.trust_slots + place * w->trust.length);
        }
        m = end;
    }
    return failed;
}

bool rfi_combine_hard(reef_plan *plan, const void *const *rows, void *out, ptrdiff_t hard)
{
    rfi_combining j = {.plan = plan, .worker = plan->m.workers, .rows = rows, .out = out, .tuned = plan->tuned};
    return finish_span(&j, 0, plan->total, hard, true) == REEF_OK && !reef_plan_suspect(plan);
}

reef_status reef_plan_combine(reef_plan *plan, ptrdiff_t worker, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1,
                              const void *const *rows, void *out, reef_error *error)
{
    if (!plan) {
        return rfi_fail(error, REEF_E_ARG, "reef_plan_combine: plan is NULL");
    }
    bool aligned = plan->report || plan->scope > 0 || has_relative_floor(plan);
    reef_status status = rfi_check_range(plan, worker, segment, m0, m1, rows, aligned ? plan->piece : 0, error);
    if (status != REEF_OK) {
        return status;
    }
    if (plan->pass < plan->passes) {
        return rfi_fail(error, REEF_E_ORDER, "only %td of %td passes are solved; observe and solve the others first",
                        plan->pass, plan->passes);
    }
    if (!out) {
        return rfi_fail(error, REEF_E_ARG, "out is NULL");
    }
    rfi_combining j = {.plan = plan,
                       .worker = &plan->m.workers[worker],
                       .segment = segment,
                       .m0 = m0,
                       .rows = rows,
                       .out = out,
                       .error = error};
    j.space = (rfi_space){plan->agg->count > 1, plan->needs & REEF_NEED_ORIGIN, plan->needs & REEF_NEED_CENTRE};
    j.worker->open_segment = segment;
    j.worker->open_at = m1;
    if (reef_plan_suspect(plan)) {
        return REEF_OK; /* a row must go first; see reef_plan_suspect */
    }
    if (plan->rule->weigh && plan->scope <= 0) {
        j.space.origin = plan->spaces[plan->passes - 1].origin; /* a pre-aggregator may have asked for it */
        j.share = plan->m.shares + (plan->scope == REEF_SCOPE_SEGMENT ? segment * (plan->rows + 2) : 0);
    }
    if (plan->rule->column) {
        j.tuned = rfi_plan_tune(plan, plan->m.mixed_weights, plan->n_mixed, plan->equal_mixed);
    }
    status = combine_range(&j, m1);
    j.worker->covered += m1 - m0;
    return status;
}
