/* Solving: from Gram sums to the mixing matrix of the pre-aggregators and the shares of the rule. K x K work only. */
#include "agg/plan.h"
#include "agg/rules/rules.h"
#include "base/error.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static double residuals_apart(const reef_recall *recall, ptrdiff_t i, ptrdiff_t j)
{
    const double *x = recall->residual + i * recall->numbers;
    const double *y = recall->residual + j * recall->numbers;
    double squared = isfinite(recall->norm[i]) && isfinite(recall->norm[j]) ? 0 : (double)INFINITY;
    for (ptrdiff_t m = 0; m < recall->numbers; m++) {
        squared += (x[m] - y[m]) * (x[m] - y[m]);
    }
    return squared;
}

static inline double apart(const reef_points *points, ptrdiff_t i, ptrdiff_t j)
{
    if (points->far[i] || points->far[j]) {
        return INFINITY;
    }
    const double *g = points->gram;
    ptrdiff_t count = points->count;
    double squared = g[i * count + i] + g[j * count + j] - 2 * g[i * count + j];
    return squared > 0 ? squared : 0;
}

double reef_points_distance2(const reef_points *points, ptrdiff_t i, ptrdiff_t j)
{
    assert(points);
    if (i == j) {
        return 0;
    }
    return points->recall ? residuals_apart(points->recall, i, j) : apart(points, i, j);
}

void rfi_points_apart(const reef_points *points, double *distance)
{
    ptrdiff_t n = points->n;
    assert(!points->recall);
    for (ptrdiff_t i = 0; i < n; i++) {
        distance[i * n + i] = 0;
        for (ptrdiff_t j = 0; j < i; j++) {
            distance[i * n + j] = distance[j * n + i] = apart(points, i, j);
        }
    }
}

void rfi_unpack(const double *packed, ptrdiff_t points, double *gram)
{
    for (ptrdiff_t p = 0; p < points; p++) {
        for (ptrdiff_t q = 0; q <= p; q++) {
            gram[p * points + q] = *packed;
            gram[q * points + p] = *packed;
            packed++;
        }
    }
}

/* Marks points whose squared distance from the median overflows; most rows must not be among them. */
static reef_status mark_far(const double *gram, ptrdiff_t rows, ptrdiff_t points, bool *far, reef_error *error)
{
    ptrdiff_t far_rows = 0;
    for (ptrdiff_t p = 0; p < points; p++) {
        far[p] = !isfinite(gram[p * points + p]);
        far_rows += p < rows && far[p];
    }
    for (ptrdiff_t p = rows; p < points; p++) {
        if (far[p]) {
            return rfi_fail(error, REEF_E_FAR,
                            "the inputs are so far from the origin or the remembered centre that squared distances "
                            "overflow; scale the data down");
        }
    }
    if (2 * far_rows > rows) {
        return rfi_fail(error, REEF_E_FAR,
                        "%td of %td inputs are so far apart that squared distances overflow; scale the data down",
                        far_rows, rows);
    }
    return REEF_OK;
}

static reef_points points_of(const reef_plan *plan, rfi_worker *worker, const rfi_space *space, const double *gram)
{
    ptrdiff_t rows = rfi_space_rows(plan, space);
    ptrdiff_t count = rfi_space_points(plan, space);
    return (reef_points){
        .n = rows,
        .count = count,
        .origin = space->origin ? rows : -1,
        .centre = space->centre ? count - 1 : -1,
        .gram = gram,
        .far = worker->far,
        .round = plan->input.round,
        .work = worker->solve_work,
        .index = worker->solve_index,
    };
}

/* The rule's constant for a size, remembered. */
static double constant_for(const reef_plan *plan, rfi_worker *worker, double size)
{
    if (!plan->rule->constant) {
        return 0;
    }
    if (worker->sizes[0] != size) {
        bool known = worker->sizes[1] == size;
        double constant = known ? worker->constants[1] : plan->rule->constant(plan->params, size);
        worker->sizes[1] = worker->sizes[0];
        worker->constants[1] = worker->constants[0];
        worker->sizes[0] = size;
        worker->constants[0] = constant;
    }
    return worker->constants[0];
}

reef_status rfi_weigh(reef_plan *plan, rfi_worker *worker, const rfi_space *space, const double *gram, double size,
                      double *share, reef_error *error)
{
    reef_points points = points_of(plan, worker, space, gram);
    points.a = plan->m.mixed_weights;
    points.equal = plan->equal_mixed;
    points.f = plan->malicious_count[plan->agg->count - 1];
    points.size = size;
    points.constant = constant_for(plan, worker, size);
    reef_effort effort = {0, true};
    reef_status status = mark_far(gram, points.n, points.count, worker->far, error);
    if (status == REEF_OK) {
        status = plan->rule->weigh(plan->params, &points, share, &effort, error);
    }
    worker->iterations += effort.iterations;
    worker->solved++;
    worker->unconverged += !effort.converged;
    worker->max_iterations = effort.iterations > worker->max_iterations ? effort.iterations : worker->max_iterations;
    return status;
}

/* next = stage C: rows of the stage as combinations of raw rows and origin. The first stage is copied. */
static void compose(reef_plan *plan, ptrdiff_t rows_in, ptrdiff_t rows_out, ptrdiff_t points, bool first)
{
    rfi_memory *m = &plan->m;
    ptrdiff_t width = plan->rows + 1;
    ptrdiff_t raw = plan->n_raw; /* column `raw` of C is the origin */
    for (ptrdiff_t k = 0; k < rows_out; k++) {
        const double *mix = m->stage_matrix + k * points;
        double *to = m->next_matrix + k * width;
        memset(to, 0, (size_t)width * sizeof *to);
        to[raw] = points > rows_in ? mix[rows_in] : 0;
        for (ptrdiff_t j = 0; j < rows_in; j++) {
            if (first) {
                to[j] += mix[j];
                continue;
            }
            const double *from = m->matrix + j * width;
            for (ptrdiff_t p = 0; mix[j] > 0 && p <= raw; p++) {
                to[p] += mix[j] * from[p];
            }
        }
    }
    double *spare = m->matrix;
    m->matrix = m->next_matrix;
    m->next_matrix = spare;
}

/* Row k of the new space seen from the old points: a mixed row, or origin and centre themselves. */
static double coefficient(const reef_plan *plan, ptrdiff_t k, ptrdiff_t p, ptrdiff_t rows_out, ptrdiff_t rows_in,
                          ptrdiff_t points)
{
    return k < rows_out ? plan->m.stage_matrix[k * points + p] : (double)(p - rows_in == k - rows_out);
}

/* gram = B gram B' with B the stage's matrix (origin and centre as they are). A row that touches a far point is far. */
static void transform_gram(reef_plan *plan, rfi_worker *worker, ptrdiff_t rows_in, ptrdiff_t rows_out, ptrdiff_t points)
{
    double *g = plan->m.gram;
    double *next = plan->m.next_gram;
    double *half = worker->solve_work; /* one row of B gram */
    ptrdiff_t extra = points - rows_in;
    ptrdiff_t out = rows_out + extra;
    for (ptrdiff_t k = 0; k < out; k++) {
        memset(half, 0, (size_t)points * sizeof *half);
        for (ptrdiff_t p = 0; p < points; p++) {
            double b = coefficient(plan, k, p, rows_out, rows_in, points);
            for (ptrdiff_t q = 0; b > 0 && q < points; q++) {
                half[q] += b * g[p * points + q];
            }
        }
        for (ptrdiff_t j = 0; j < out; j++) {
            double sum = 0;
            for (ptrdiff_t q = 0; q < points; q++) {
                double b = coefficient(plan, j, q, rows_out, rows_in, points);
                sum += b > 0 ? b * half[q] : 0;
            }
            next[k * out + j] = sum;
        }
    }
    plan->m.gram = next;
    plan->m.next_gram = g;
}

static reef_status mix_stage(reef_plan *plan, ptrdiff_t i, ptrdiff_t *rows, bool gram, reef_error *error)
{
    rfi_memory *m = &plan->m;
    rfi_worker *worker = &m->workers[0];
    const rfi_stage *stage = &plan->agg->stages[i];
    rfi_space space = {.origin = gram && plan->spaces[0].origin, .centre = gram && plan->spaces[0].centre};
    ptrdiff_t points_count = *rows + space.origin + space.centre;
    reef_status status = gram ? mark_far(m->gram, *rows, points_count, worker->far, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    reef_points points = points_of(plan, worker, &space, m->gram);
    points.n = *rows;
    points.count = points_count;
    points.origin = space.origin ? *rows : -1;
    points.centre = space.centre ? points_count - 1 : -1;
    points.a = m->mixed_weights;
    points.equal = plan->equal_mixed;
    points.f = plan->malicious_count[i];
    points.size = (double)plan->total;
    ptrdiff_t out = stage->rule->mixed(stage->params, *rows);
    memset(m->stage_matrix, 0, (size_t)(out * points_count) * sizeof(double));
    status = stage->rule->mix(stage->params, &points, m->stage_matrix, m->stage_weights, error);
    if (status != REEF_OK) {
        return status;
    }
    plan->equal_mixed = true;
    for (ptrdiff_t k = 0; k < out; k++) {
        m->mixed_weights[k] = m->stage_weights[k];
        plan->equal_mixed = plan->equal_mixed && m->stage_weights[k] == m->stage_weights[0];
    }
    compose(plan, *rows, out, points_count, i == 0);
    if (gram) {
        transform_gram(plan, worker, *rows, out, points_count);
    }
    *rows = out;
    return REEF_OK;
}

reef_status rfi_mix_all(reef_plan *plan, bool gram, reef_error *error)
{
    ptrdiff_t rows = plan->n_raw;
    plan->self = -1; /* after mixing no row is the receiver's own */
    for (ptrdiff_t i = 0; i + 1 < plan->agg->count; i++) {
        reef_status status = mix_stage(plan, i, &rows, gram, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    if (plan->mixes) {
        rfi_mix_prepare(plan);
    }
    return REEF_OK;
}

/* Sums the slots of each segment; slot_starts[s] then holds the sum of segment s. */
static void sum_segments(reef_plan *plan, ptrdiff_t length)
{
    for (ptrdiff_t s = 0; s < plan->segments; s++) {
        ptrdiff_t first = plan->m.slot_starts[s];
        rfi_treesum_slots(plan->m.gram_slots + first * length, plan->m.slot_starts[s + 1] - first, length);
    }
}

/* All segments together: their sums side by side, then the same tree over the segments. */
static const double *sum_whole(reef_plan *plan, ptrdiff_t length)
{
    double *slots = plan->m.gram_slots;
    for (ptrdiff_t s = 1; s < plan->segments; s++) {
        memmove(slots + s * length, slots + plan->m.slot_starts[s] * length, (size_t)length * sizeof *slots);
    }
    rfi_treesum_slots(slots, plan->segments, length);
    return slots;
}

static reef_status weigh_segments(reef_plan *plan, const rfi_space *space, ptrdiff_t length, reef_error *error)
{
    ptrdiff_t points = rfi_space_points(plan, space);
    for (ptrdiff_t s = 0; s < plan->segments; s++) {
        rfi_unpack(plan->m.gram_slots + plan->m.slot_starts[s] * length, points, plan->m.gram);
        reef_status status = rfi_weigh(plan, &plan->m.workers[0], space, plan->m.gram, (double)plan->m.lengths[s],
                                       plan->m.shares + s * (plan->rows + 2), error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

/* The whole-model part: pre-aggregators after the first pass, the rule after the pass it listens to. */
static reef_status solve_whole(reef_plan *plan, const rfi_space *space, ptrdiff_t length, reef_error *error)
{
    bool last_pass = plan->pass + 1 == plan->passes;
    rfi_space rule_space = *space;
    rfi_unpack(sum_whole(plan, length), rfi_space_points(plan, space), plan->m.gram);
    if (plan->pass == 0 && plan->agg->count > 1 && !plan->mix_early) {
        reef_status status = rfi_mix_all(plan, true, error);
        if (status != REEF_OK) {
            return status;
        }
        rule_space.mixed = true;
    }
    bool weighs = plan->rule->weigh && plan->scope == REEF_SCOPE_WHOLE && last_pass;
    return weighs ? rfi_weigh(plan, &plan->m.workers[0], &rule_space, plan->m.gram, (double)plan->total, plan->m.shares,
                              error)
                  : REEF_OK;
}

static reef_status check_covered(reef_plan *plan, reef_error *error)
{
    int64_t covered = 0;
    for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
        covered += plan->m.workers[i].covered;
    }
    rfi_plan_unsee(plan);
    if (covered != plan->total) {
        return rfi_fail(error, REEF_E_ORDER, "%lld coordinates were observed in this pass; there are %td",
                        (long long)covered, plan->total);
    }
    return REEF_OK;
}

reef_status reef_plan_solve(reef_plan *plan, reef_error *error)
{
    if (!plan || !plan->begun || plan->pass >= plan->passes) {
        return rfi_fail(error, REEF_E_ORDER, "reef_plan_solve: no pass is in progress");
    }
    reef_status status = check_covered(plan, error);
    if (status != REEF_OK) {
        return status;
    }
    if (reef_plan_suspect(plan)) { /* the sums are void; let the caller come to suspect() quickly */
        plan->pass++;
        return REEF_OK;
    }
    const rfi_space *space = &plan->spaces[plan->pass];
    ptrdiff_t length = rfi_sum_length(plan, plan->n_raw, rfi_space_points(plan, space));
    sum_segments(plan, length);
    if (plan->recalls) {
        plan->pass++;
        return rfi_recall_weigh(plan, sum_whole(plan, length), plan->m.shares, error);
    }
    bool by_segment = plan->scope == REEF_SCOPE_SEGMENT && plan->pass + 1 == plan->passes;
    status = by_segment ? weigh_segments(plan, space, length, error) : solve_whole(plan, space, length, error);
    plan->pass++;
    return status;
}

void rfi_plan_gram(const reef_plan *plan, double *gram)
{
    ptrdiff_t points = rfi_space_points(plan, &plan->spaces[0]);
    for (ptrdiff_t i = 0; i < plan->rows * plan->rows; i++) {
        gram[i] = (double)NAN;
    }
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        for (ptrdiff_t q = 0; q < plan->n_raw; q++) {
            gram[plan->m.active[p] * plan->rows + plan->m.active[q]] = plan->m.gram[p * points + q];
        }
    }
}
