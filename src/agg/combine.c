/* Combining: the result of each coordinate, and who made it.
 *
 * Effective weights are found on the rule's own rows first and carried back to the caller's rows through the mixing
 * matrix: abar_l = sum_k share_k refill_k C_kl. */
#include "agg/plan.h"
#include "base/error.h"
#include "num/order.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Above this a column is scaled down before the rule sees it, so that sums and differences cannot overflow. */
static const double huge_value = 0x1p1000;
static const double scale_down = 0x1p-60;

/* What combine works on: one range of one segment. */
typedef struct job {
    reef_plan *plan;
    rfi_worker *worker;
    rfi_space space; /* the rule's: mixed rows, origin and centre as it asked */
    ptrdiff_t segment, m0;
    const void *const *rows;
    void *out;
    const double *share; /* solved shares in force, NULL for purely elementwise rules */
    double floor;        /* least scale in force */
    double tuned;        /* the rule's constant for columns without holes */
    bool silent;         /* out is written already; only the report is wanted */
    reef_error *error;
} job;

/* Values the column rule may see: rows with a value here and, after weigh, a share. */
static ptrdiff_t gather(const job *j)
{
    rfi_worker *w = j->worker;
    const double *weights = j->share ? j->share : j->plan->m.mixed_weights;
    ptrdiff_t n = 0;
    double sum = 0;
    for (ptrdiff_t k = 0; k < rfi_space_rows(j->plan, &j->space); k++) {
        if (!w->gap[k] && weights[k] > 0) {
            w->x[n] = w->points[k];
            w->a[n] = weights[k];
            w->where[n] = k;
            sum += weights[k];
            n++;
        }
    }
    bool equal = true;
    for (ptrdiff_t i = 1; i < n; i++) {
        equal = equal && w->a[i] == w->a[0];
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        w->a[i] = equal ? 1 / (double)n : w->a[i] / sum;
    }
    return n;
}

static void find_hull(const double *x, ptrdiff_t n, double *low, double *high)
{
    *low = x[0];
    *high = x[0];
    for (ptrdiff_t i = 1; i < n; i++) {
        *low = x[i] < *low ? x[i] : *low;
        *high = x[i] > *high ? x[i] : *high;
    }
}

static double clamp(double value, double low, double high)
{
    if (!(value >= low)) {
        return low;
    }
    return value > high ? high : value;
}

static void count_effort(rfi_worker *w, const reef_effort *effort)
{
    w->iterations += effort->iterations;
    w->solved++;
    w->unconverged += !effort->converged;
    w->max_iterations = effort->iterations > w->max_iterations ? effort->iterations : w->max_iterations;
}

double rfi_effective_count(const double *a, ptrdiff_t n, bool equal)
{
    double squares = 0;
    for (ptrdiff_t i = 0; !equal && i < n; i++) {
        squares += a[i] * a[i];
    }
    return equal ? (double)n : 1 / squares;
}

double rfi_plan_tune(const reef_plan *plan, const double *a, ptrdiff_t n, bool equal)
{
    return plan->rule->tune ? plan->rule->tune(plan->params, rfi_effective_count(a, n, equal)) : 0;
}

static reef_column column_of(const job *j, ptrdiff_t n)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    ptrdiff_t rows = rfi_space_rows(plan, &j->space);
    reef_column column = {.n = n, .x = w->x, .a = w->a, .self = -1, .work = w->work, .index = w->index};
    column.equal = true;
    for (ptrdiff_t i = 0; i < n; i++) {
        column.equal = column.equal && w->a[i] == w->a[0];
        if (w->where[i] == plan->self) {
            column.self = i;
        }
    }
    column.single = plan->dtype == REEF_F32;
    column.floor = j->floor;
    column.tuned = j->share || n < rows ? rfi_plan_tune(plan, w->a, n, column.equal) : j->tuned;
    ptrdiff_t malicious_count = plan->malicious_count[plan->agg->count - 1];
    if (!j->share && n < rows) { /* holes: each was one of the liars */
        malicious_count = malicious_count > rows - n ? malicious_count - (rows - n) : 0;
        ptrdiff_t most = plan->rule->bound ? plan->rule->bound(plan->params, n) : malicious_count;
        malicious_count = malicious_count < most ? malicious_count : most;
    }
    column.f = malicious_count;
    return column;
}

/* Elementwise rule on the gathered values; fills worker->share. */
static double run_column(const job *j, ptrdiff_t n)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    reef_column column = column_of(j, n);
    double low = 0;
    double high = 0;
    find_hull(w->x, n, &low, &high);
    bool huge = high > huge_value || low < -huge_value;
    for (ptrdiff_t i = 0; huge && i < n; i++) {
        w->x[i] *= scale_down;
    }
    column.floor *= huge ? scale_down : 1;
    reef_effort effort = {0, true};
    double value = plan->rule->column(plan->params, &column, w->x_share, &effort);
    count_effort(w, &effort);
    value = huge ? value / scale_down : value;
    memset(w->share, 0, (size_t)rfi_space_points(plan, &j->space) * sizeof(double));
    for (ptrdiff_t i = 0; i < n; i++) {
        w->share[w->where[i]] = w->x_share[i];
    }
    return plan->rule->traits & REEF_TRAIT_HULL ? clamp(value, low, high) : value;
}

/* Every row the rule believes has a hole here: the median of those that do have a value. */
static double run_median(const job *j, ptrdiff_t rows)
{
    rfi_worker *w = j->worker;
    double median = rfi_points_median(w, rows);
    double nearest = INFINITY;
    double count = 0;
    memset(w->share, 0, (size_t)rfi_space_points(j->plan, &j->space) * sizeof(double));
    for (ptrdiff_t k = 0; k < rows; k++) {
        double away = w->gap[k] ? (double)INFINITY : fabs(w->points[k] - median);
        nearest = away < nearest ? away : nearest;
    }
    for (ptrdiff_t k = 0; k < rows; k++) {
        w->share[k] = !w->gap[k] && fabs(w->points[k] - median) == nearest;
        count += w->share[k];
    }
    double value = 0;
    for (ptrdiff_t k = 0; k < rows; k++) {
        w->share[k] /= count;
        value += w->share[k] * w->points[k];
    }
    return value;
}

/* out = sum share p; rows with a hole hand their share to the other rows. */
static double run_sum(const job *j)
{
    rfi_worker *w = j->worker;
    ptrdiff_t rows = rfi_space_rows(j->plan, &j->space);
    ptrdiff_t points = rfi_space_points(j->plan, &j->space);
    double mass = 0;
    double left = 0;
    for (ptrdiff_t k = 0; k < rows; k++) {
        mass += j->share[k];
        left += w->gap[k] ? 0 : j->share[k];
    }
    if (mass > 0 && left == 0) {
        return run_median(j, rows);
    }
    double factor = left != mass ? mass / left : 1;
    double value = 0;
    double low = INFINITY;
    double high = -INFINITY;
    for (ptrdiff_t p = 0; p < points; p++) {
        bool row = p < rows;
        w->share[p] = row && w->gap[p] ? 0 : j->share[p] * (row ? factor : 1);
        if (w->share[p] > 0) {
            value += w->share[p] * w->points[p];
            low = w->points[p] < low ? w->points[p] : low;
            high = w->points[p] > high ? w->points[p] : high;
        }
    }
    return clamp(value, low, high);
}

/* worker->share on the rule's points -> raw_share on raw rows and, last, on the centre where there is one that is not 0, else on the
 * origin. Where both exist the origin's share goes unsaid: it adds nothing. */
static void trace_back(const job *j)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    ptrdiff_t rows = rfi_space_rows(plan, &j->space);
    ptrdiff_t raw = plan->n_raw;
    double origin = j->space.origin ? w->share[rows] : 0;
    double centre = j->space.centre ? w->share[rfi_space_points(plan, &j->space) - 1] : 0;
    memset(w->raw_share, 0, (size_t)raw * sizeof(double));
    for (ptrdiff_t k = 0; k < rows; k++) {
        if (plan->agg->count == 1) {
            w->raw_share[k] = w->share[k];
            continue;
        }
        const double *c = plan->m.matrix + k * (plan->rows + 1);
        for (ptrdiff_t p = 0; w->share[k] > 0 && p < raw; p++) {
            w->raw_share[p] += w->share[k] * w->refill[k] * c[p];
        }
        origin += w->share[k] * c[raw];
    }
    bool moved = j->space.centre && (plan->centre_known || (plan->needs & REEF_NEED_MEDIAN));
    w->raw_share[raw] = moved ? centre : origin + centre;
}

/* With holes, a raw row without a value has no share, whatever the matrix says. */
static void report_column(const job *j, ptrdiff_t t, ptrdiff_t m)
{
    reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    const bool *hole = w->hole + t * plan->rows;
    double *sum = rfi_treesum_leaf(&w->trust);
    trace_back(j);
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        double share = hole[p] ? 0 : w->raw_share[p];
        w->masked += hole[p];
        w->rejected[p] += share == 0;
        sum[p] += share;
        rfi_report_share(plan, p, j->segment, m, share);
    }
    sum[plan->n_raw] += w->raw_share[plan->n_raw];
    rfi_report_share(plan, -1, j->segment, m, w->raw_share[plan->n_raw]);
}

static reef_status combine_column(const job *j, ptrdiff_t t, ptrdiff_t m)
{
    reef_plan *plan = j->plan;
    ptrdiff_t present = rfi_column_points(plan, j->worker, &j->space, t, j->segment, m);
    if (present == 0) {
        return rfi_fail(j->error, REEF_E_NO_ROWS, "no row has a finite value at coordinate %td of segment %td", m,
                        j->segment);
    }
    double value = 0;
    if (plan->rule->column) {
        ptrdiff_t n = gather(j);
        value = n ? run_column(j, n) : run_median(j, rfi_space_rows(plan, &j->space));
    } else {
        value = run_sum(j);
    }
    if (plan->kernels && fabs(value) < rfi_smallest_normal(plan->dtype)) {
        value = 0; /* denormal numbers, and -0, count as 0 in the kernels */
    }
    if (!j->silent) {
        rfi_store(plan->dtype, j->out, m - j->m0, value);
    }
    if (!j->silent && plan->keeps_centre) {
        rfi_state_propose(plan->input.state, j->segment, m, value);
    }
    if (plan->report) {
        report_column(j, t, m);
    }
    return REEF_OK;
}

static reef_status combine_scalar(const job *j, ptrdiff_t from, ptrdiff_t to)
{
    for (ptrdiff_t m = from; m < to; m += RFI_CHUNK) {
        ptrdiff_t count = to - m < RFI_CHUNK ? to - m : RFI_CHUNK;
        rfi_fetch(j->plan, j->worker, j->rows, m - j->m0, count);
        for (ptrdiff_t t = 0; t < count; t++) {
            reef_status status = combine_column(j, t, m + t);
            if (status != REEF_OK) {
                return status;
            }
        }
    }
    return REEF_OK;
}

/* ---- the fast path: many coordinates at once, what is hard one by one ---- */

/* One coordinate by the scalar rule: the result, or only its report (silent). */
static reef_status finish_one(const job *j, ptrdiff_t m, bool silent)
{
    assert(m >= j->m0 && m < j->plan->m.lengths[j->segment]);
    job one = *j;
    one.silent = silent;
    return combine_scalar(&one, m, m + 1);
}

/* What a kernel has left: the hard coordinates, and the report if it gave none. The result does not depend on whether a report is
 * wanted. */
static reef_status finish_span(const job *j, ptrdiff_t from, ptrdiff_t count, ptrdiff_t hard, bool reported)
{
    assert(hard >= 0 && hard <= count && count <= RFI_SPAN_MAX);
    const reef_plan *plan = j->plan;
    bool report_all = plan->report && !reported;
    const int32_t *list = j->worker->hard; /* ascending */
    reef_status status = REEF_OK;
    ptrdiff_t next = 0;
    while (status == REEF_OK && next < hard && !report_all && !plan->keeps_centre) {
        status = finish_one(j, from + list[next++], false);
    }
    for (ptrdiff_t t = 0; status == REEF_OK && (report_all || plan->keeps_centre) && t < count; t++) {
        bool is_hard = next < hard && list[next] == t;
        next += is_hard;
        if (!is_hard && plan->keeps_centre) {
            double value = rfi_load(plan->dtype, j->out, from + t - j->m0);
            rfi_state_propose(plan->input.state, j->segment, from + t, value);
        }
        if (is_hard || report_all) {
            status = finish_one(j, from + t, !is_hard);
        }
    }
    return status;
}

static void *out_at(const job *j, ptrdiff_t m)
{
    return (char *)j->out + (m - j->m0) * (ptrdiff_t)rfi_dtype_size(j->plan->dtype);
}

/* An elementwise rule with a fast path; returns the number of hard coordinates, or -1. *reported: trust is wanted, and after the call
 * whether it was given. */
static ptrdiff_t span_column(const job *j, ptrdiff_t from, ptrdiff_t to, bool *reported)
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
                      .out = out_at(j, from),
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

/* Whether the rule's centre is the coordinatewise median of the rows here. */
static bool centres_at_median(const job *j)
{
    return j->space.centre && !j->plan->centre_known && (j->plan->needs & REEF_NEED_MEDIAN);
}

static void move_rows(const void **to, const void **from, ptrdiff_t n)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

/* The median of the rule's rows, made of the raw ones in worker->used, in worker->median_row; false: it must be done by the scalar code. */
static bool find_median_row(const job *j, ptrdiff_t count)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    rfi_kernel_report none = {0};
    bool mixed = plan->agg->count > 1;
    if (mixed && !plan->mixes) {
        return false;
    }
    if (mixed) {
        move_rows(w->rows_mixed, w->used, plan->n_raw);
    }
    if (mixed && !rfi_mix_rows(plan, w, w->rows_mixed, count)) {
        return false;
    }
    const rfi_span span = {.rows = w->used,
                           .n = rfi_space_rows(plan, &j->space),
                           .count = count,
                           .out = w->median_row,
                           .scratch = w->scratch,
                           .hard = w->hard};
    ptrdiff_t hard = plan->kernels->median(&span, RFI_MEDIAN_AVERAGE, &none);
    for (ptrdiff_t i = 0; i < hard; i++) { /* hard for the sum too, then */
        rfi_store(plan->dtype, w->median_row, w->hard[i], INFINITY);
    }
    if (mixed) {
        move_rows(w->used, w->rows_mixed, plan->n_raw);
    }
    return true;
}

static double centre_share(const job *j)
{
    return j->space.centre ? j->share[rfi_space_points(j->plan, &j->space) - 1] : 0;
}

/* Shares of the rule on raw rows and centre, as one weighted sum: rows without a share are not even read. */
static ptrdiff_t list_terms(const job *j, ptrdiff_t from)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    double centre = centre_share(j);
    ptrdiff_t terms = 0;
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        /* a row without a share may have entries to count as left out */
        if (w->raw_share[p] > 0 || plan->agg->nan == RFI_NAN_DROP_COORDINATE) {
            w->used[terms] = w->used[p];
            w->used_weights[terms++] = w->raw_share[p];
        }
    }
    if (centre > 0 && (plan->centre_known || centres_at_median(j))) {
        w->used[terms] = plan->centre_known ? rfi_state_place(plan->input.state, j->segment, from) : w->median_row;
        w->used_weights[terms++] = centre;
    }
    return terms;
}

/* The shares as a weighted sum of raw rows, in worker->raw_share. */
static void trace_shares(const job *j)
{
    rfi_worker *w = j->worker;
    memcpy(w->share, j->share, (size_t)rfi_space_points(j->plan, &j->space) * sizeof(double));
    for (ptrdiff_t k = 0; k < rfi_space_rows(j->plan, &j->space); k++) {
        w->refill[k] = 1;
    }
    trace_back(j);
}

static void report_sum(const job *j, ptrdiff_t counted)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    double *sum = rfi_treesum_leaf(&w->trust);
    for (ptrdiff_t p = 0; p <= plan->n_raw; p++) {
        sum[p] += (double)counted * w->raw_share[p];
        if (p < plan->n_raw && w->raw_share[p] == 0) {
            w->rejected[p] += counted;
        }
    }
}

/* The weighted sum of the first `terms` rows listed, from coordinate `from` on. */
static ptrdiff_t sum_terms(const job *j, ptrdiff_t from, ptrdiff_t count, ptrdiff_t terms)
{
    const rfi_worker *w = j->worker;
    double weight = 0;
    for (ptrdiff_t i = 0; i < terms; i++) {
        weight += w->used_weights[i];
    }
    rfi_span span = {.rows = w->used,
                     .weights = w->used_weights,
                     .with_zero = weight < 1 - 1e-9,
                     .n = terms,
                     .count = count,
                     .out = out_at(j, from),
                     .scratch = w->scratch,
                     .hard = w->hard};
    return w->row_kernels->sum(&span);
}

/* A rule of one share per row: the weighted sum. */
static ptrdiff_t span_sum(const job *j, ptrdiff_t from, ptrdiff_t to, const bool *reported)
{
    rfi_worker *w = j->worker;
    if (!j->share) {
        return -1;
    }
    rfi_rows_used(j->plan, w, from, j->m0, j->rows);
    trace_shares(j);
    unsigned flush = rfi_flush_begin();
    bool there = !centres_at_median(j) || centre_share(j) == 0 || find_median_row(j, to - from);
    ptrdiff_t terms = there ? list_terms(j, from) : 0;
    ptrdiff_t hard = terms > 0 ? sum_terms(j, from, to - from, terms) : -1;
    rfi_flush_end(flush);
    if (*reported && hard >= 0) {
        report_sum(j, to - from - hard);
    }
    return hard;
}

/* A rule of single coordinates behind pre-aggregators. */
static ptrdiff_t span_mixed(const job *j, ptrdiff_t from, ptrdiff_t to, bool *reported)
{
    rfi_worker *w = j->worker;
    rfi_rows_used(j->plan, w, from, j->m0, j->rows);
    move_rows(w->rows_mixed, w->used, j->plan->n_raw);
    return rfi_span_mixed(j->plan, w, w->rows_mixed, to - from, j->share, j->tuned, j->floor, out_at(j, from),
                          reported);
}

static reef_status combine_part(const job *j, ptrdiff_t from, ptrdiff_t to)
{
    const reef_plan *plan = j->plan;
    ptrdiff_t hard = -1;
    bool reported = plan->report && !rfi_report_wants_shares(plan->report);
    if (plan->mixes && plan->rule->span) {
        hard = span_mixed(j, from, to, &reported);
    } else if (plan->kernels) {
        hard = plan->rule->column ? span_column(j, from, to, &reported) : span_sum(j, from, to, &reported);
    }
    return hard < 0 ? combine_scalar(j, from, to) : finish_span(j, from, to - from, hard, reported);
}

/* In chunks where mixed rows are to be made. */
static reef_status combine_span(const job *j, ptrdiff_t from, ptrdiff_t to)
{
    assert(from < to && from / RFI_TILE == (to - 1) / RFI_TILE);
    const reef_plan *plan = j->plan;
    bool mixes = plan->mixes && (plan->rule->span || centres_at_median(j));
    ptrdiff_t chunk = mixes ? plan->mix_chunk : RFI_SPAN_MAX;
    reef_status status = REEF_OK;
    for (ptrdiff_t m = from; status == REEF_OK && m < to; m += chunk) {
        status = combine_part(j, m, to - m < chunk ? to : m + chunk);
    }
    return status;
}

/* Shares of one block, from its own Gram matrix, just before it is combined. */
static reef_status solve_block(job *j, ptrdiff_t from, ptrdiff_t to)
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

/* Scale floor relative to the typical (median positive) scale of a tile. */
static void find_floor(job *j, ptrdiff_t from, ptrdiff_t to)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    ptrdiff_t positive = 0;
    j->floor = 0;
    for (ptrdiff_t m = from; m < to; m++) {
        rfi_fetch(j->plan, w, j->rows, m - j->m0, 1);
        (void)rfi_column_points(j->plan, w, &j->space, 0, j->segment, m);
        ptrdiff_t n = gather(j);
        reef_column column = column_of(j, n);
        double scale = n ? plan->rule->scale(plan->params, &column) : 0;
        if (scale > 0) {
            w->scales[positive++] = scale;
        }
    }
    if (positive) {
        j->floor = plan->rule->relative_floor(plan->params) * rfi_median(w->scales, positive, RFI_MEDIAN_AVERAGE);
    }
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
static reef_status combine_range(job *j, ptrdiff_t m1)
{
    reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    bool local = plan->scope > 0 && plan->rule->weigh;
    ptrdiff_t slot = (ptrdiff_t)RFI_TILE << plan->slot_levels;
    ptrdiff_t length = plan->m.lengths[j->segment];
    reef_status failed = REEF_OK;
    if (j->m0 % slot == 0) { /* otherwise a piece goes on with the sums of the one before */
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
            find_floor(j, m, end);
        }
        if (status == REEF_OK) {
            status = combine_span(j, m, end);
        }
        if (status != REEF_OK && failed == REEF_OK) {
            failed = status;
            j->error = NULL; /* the first failure is told */
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
    job j = {.plan = plan, .worker = plan->m.workers, .rows = rows, .out = out, .tuned = plan->tuned};
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
    job j = {.plan = plan,
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
