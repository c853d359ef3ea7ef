/* Combining one coordinate at a time: the scalar rules, which are the definition.
 *
 * Effective weights are computed for the rule's own rows first and traced back to the caller's rows through the mixing
 * matrix: abar_l = sum_k share_k refill_k C_kl. */
#include "agg/combine.h"
#include "base/error.h"
#include "num/order.h"

#include <math.h>
#include <string.h>

/* Above this a column is scaled down before the rule sees it, so that sums and differences cannot overflow. */
static const double huge_value = 0x1p1000;
static const double scale_down = 0x1p-60;

/* Values the column rule may see: rows with a value here and, after weigh, a share. */
static ptrdiff_t gather(const rfi_combining *j)
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

static reef_column column_of(const rfi_combining *j, ptrdiff_t n)
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
    if (!j->share && n < rows) { /* holes: each counted as one of the malicious rows */
        malicious_count = malicious_count > rows - n ? malicious_count - (rows - n) : 0;
        ptrdiff_t most = plan->rule->bound ? plan->rule->bound(plan->params, n) : malicious_count;
        malicious_count = malicious_count < most ? malicious_count : most;
    }
    column.f = malicious_count;
    return column;
}

/* Elementwise rule on the gathered values; fills worker->share. */
static double run_column(const rfi_combining *j, ptrdiff_t n)
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

/* Every row to which the rule gives weight has a hole here: the result is the median of those that have a value. */
static double run_median(const rfi_combining *j, ptrdiff_t rows)
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
static double run_sum(const rfi_combining *j)
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

void rfi_combine_trace(const rfi_combining *j)
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
static void report_column(const rfi_combining *j, ptrdiff_t t, ptrdiff_t m)
{
    reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    const bool *hole = w->hole + t * plan->rows;
    double *sum = rfi_treesum_leaf(&w->trust);
    rfi_combine_trace(j);
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

static reef_status combine_column(const rfi_combining *j, ptrdiff_t t, ptrdiff_t m)
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

reef_status rfi_combine_columns(const rfi_combining *j, ptrdiff_t from, ptrdiff_t to)
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

void rfi_combine_floor(rfi_combining *j, ptrdiff_t from, ptrdiff_t to)
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
