/* The plan's side of rules that remember senders: observing residuals, handing them to the rule. */
#include "agg/recall.h"

#include "agg/mref.h"
#include "agg/plan.h"

#include <math.h>
#include <string.h>

/* Bytes of residuals at a time: they should stay in the second cache. */
enum { CHUNK_BYTES = 1 << 18 };

void rfi_recall_describe(reef_plan *plan)
{
    rfi_recall *recall = &plan->recall;
    recall->numbers = rfi_mref_numbers(plan->params, plan->total);
    recall->full = recall->numbers == plan->total;
    recall->sketches = plan->kernels && !recall->full && recall->numbers == RFI_SKETCH_GROUP;
    recall->key = rfi_mref_key(plan->params);
    recall->chunk = RFI_GRAM_CHUNK;
    while (recall->chunk > RFI_CHUNK && recall->chunk * plan->rows > CHUNK_BYTES / (ptrdiff_t)sizeof(double)) {
        recall->chunk /= 2;
    }
}

void rfi_recall_lay_out(reef_plan *plan, rfi_arena *arena)
{
    rfi_recall *recall = &plan->recall;
    ptrdiff_t k = plan->rows;
    ptrdiff_t sample = k < RFI_RECALL_SAMPLE ? k : RFI_RECALL_SAMPLE;
    recall->residual = rfi_arena_take(arena, k, recall->numbers, sizeof(double));
    recall->average = rfi_arena_take(arena, k, recall->numbers, sizeof(double));
    recall->norm = rfi_arena_take(arena, k, 1, sizeof(double));
    recall->clip = rfi_arena_take(arena, k, 1, sizeof(double));
    recall->gate = rfi_arena_take(arena, k, 1, sizeof(double));
    recall->weight = rfi_arena_take(arena, k, 1, sizeof(double));
    recall->by_energy = rfi_arena_take(arena, k, 1, sizeof(double));
    recall->by_copies = rfi_arena_take(arena, k, 1, sizeof(double));
    recall->work = rfi_arena_take(arena, k, RFI_RECALL_WORK, sizeof(double));
    recall->matrix = rfi_arena_take(arena, 2 * sample, sample, sizeof(double));
    recall->line = rfi_arena_take(arena, 3, recall->numbers, sizeof(double));
    recall->index = rfi_arena_take(arena, k, 3, sizeof(ptrdiff_t));
    recall->place = rfi_arena_take(arena, k, 1, sizeof(ptrdiff_t));
    recall->traces = rfi_arena_take(arena, k, 1, sizeof(rfi_trace));
}

/* Residuals of a chunk by the kernels; false if the scalar code must do it. */
static bool centre_fast(reef_plan *plan, rfi_worker *worker, ptrdiff_t m, ptrdiff_t count, ptrdiff_t m0,
                        const void *const *rows)
{
    double largest = 0;
    if (!plan->kernels) {
        return false;
    }
    rfi_rows_used(plan, worker, m, m0, rows);
    rfi_span span = {.rows = worker->used, .n = plan->n_raw, .count = count, .scratch = worker->scratch};
    unsigned flush = rfi_flush_begin();
    bool done = plan->kernels->centre(&span, worker->centred_rows, plan->recall.chunk, worker->medians, &largest);
    rfi_flush_end(flush);
    return done;
}

/* Residuals of at most RFI_CHUNK coordinates; entries that are left out have none. */
static void centre_scalar(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t m, ptrdiff_t count,
                          ptrdiff_t m0, const void *const *rows)
{
    const rfi_space *space = &plan->spaces[plan->pass];
    rfi_fetch(plan, worker, rows, m - m0, count);
    for (ptrdiff_t t = 0; t < count; t++) {
        (void)rfi_column_points(plan, worker, space, t, segment, m + t);
        double mu = rfi_points_median(worker, plan->n_raw);
        for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
            worker->centred[p * RFI_CHUNK + t] = worker->gap[p] ? 0 : worker->points[p] - mu;
        }
    }
}

static uint64_t segment_key(const rfi_recall *recall, ptrdiff_t segment)
{
    return recall->key + (uint64_t)segment * UINT64_C(0x9E3779B97F4A7C15);
}

/* Lengths and sketches, or the residuals themselves, from coordinate m on. */
static void take_residuals(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t m, const double *centred,
                           ptrdiff_t stride, ptrdiff_t count)
{
    rfi_recall *recall = &plan->recall;
    double *sum = rfi_treesum_leaf(&worker->gram);
    ptrdiff_t n = plan->n_raw;
    rfi_squares_add(centred, stride, n, count, sum);
    if (!recall->full) {
        rfi_sketch_add(segment_key(recall, segment), recall->numbers, centred, stride, n, m, count, sum + n);
        return;
    }
    for (ptrdiff_t p = 0; p < n; p++) {
        memcpy(recall->residual + p * recall->numbers + plan->m.offsets[segment] + m, centred + p * stride,
               (size_t)count * sizeof(double));
    }
}

/* Squares that are exact enough in float32, too. */
static bool in_range(const double *squares, ptrdiff_t n)
{
    for (ptrdiff_t l = 0; l < n; l++) {
        if (!(squares[l] < 1e30 && squares[l] > 1e-24)) {
            return false;
        }
    }
    return true;
}

/* A whole tile by the kernel for sketches of 64 numbers; false if it must be done step by step. */
static bool sketch_fast(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t m, ptrdiff_t count,
                        ptrdiff_t m0, const void *const *rows)
{
    ptrdiff_t n = plan->n_raw;
    unsigned char shift[RFI_SPAN_MAX / RFI_SKETCH_GROUP];
    if (!plan->recall.sketches) {
        return false;
    }
    double *sums = worker->room + RFI_RESIDUAL_ROOM(n);
    rfi_rows_used(plan, worker, m, m0, rows);
    rfi_sketch_turns(segment_key(&plan->recall, segment), m, count, plan->dtype == REEF_F32, worker->signs, shift);
    rfi_span span = {.rows = worker->used, .n = n, .count = count, .scratch = worker->scratch};
    rfi_turns turns = {worker->signs, shift};
    unsigned flush = rfi_flush_begin();
    bool done = plan->kernels->residual(&span, &turns, worker->room, sums, sums + n);
    rfi_flush_end(flush);
    if (!done || !in_range(sums, n)) {
        return false;
    }
    double *leaf = rfi_treesum_leaf(&worker->gram);
    for (ptrdiff_t i = 0; i < n * (1 + RFI_SKETCH_GROUP); i++) {
        leaf[i] += sums[i];
    }
    return true;
}

void rfi_recall_tile(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t m, ptrdiff_t count, ptrdiff_t m0,
                     const void *const *rows)
{
    if (sketch_fast(plan, worker, segment, m, count, m0, rows)) {
        return;
    }
    ptrdiff_t chunk = plan->recall.chunk;
    for (ptrdiff_t at = m; at < m + count; at += chunk) {
        ptrdiff_t end = m + count - at < chunk ? m + count : at + chunk;
        if (centre_fast(plan, worker, at, end - at, m0, rows)) {
            take_residuals(plan, worker, segment, at, worker->centred_rows, chunk, end - at);
            continue;
        }
        for (ptrdiff_t from = at; from < end; from += RFI_CHUNK) {
            ptrdiff_t part = end - from < RFI_CHUNK ? end - from : RFI_CHUNK;
            centre_scalar(plan, worker, segment, from, part, m0, rows);
            take_residuals(plan, worker, segment, from, worker->centred, RFI_CHUNK, part);
        }
    }
}

/* ---- solving ---- */

/* A sender that is heard for the first time, or again after so long that the old averages say nothing. */
static rfi_trace new_trace(int64_t id)
{
    rfi_trace trace = {.id = id, .tail = RFI_MREF_TAIL_START};
    for (int j = 0; j < RFI_WINDOWS; j++) {
        for (int i = 0; i < RFI_BY_COUNT; i++) {
            trace.factor[j][i] = 1;
        }
    }
    return trace;
}

static void remember(reef_plan *plan)
{
    rfi_recall *recall = &plan->recall;
    const rfi_senders *senders = plan->input.state ? rfi_state_senders(plan->input.state) : NULL;
    int64_t forget = ((const rfi_mref_params *)plan->params)->forget;
    recall->senders = senders;
    recall->rounds = (senders ? senders->rounds : 0) + 1;
    for (int j = 0; j < RFI_WINDOWS; j++) {
        recall->spread[j] = senders ? senders->spread[j] : 0;
        recall->separation[j] = senders ? senders->separation[j] : 0;
    }
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        ptrdiff_t row = plan->m.active[l];
        int64_t id = plan->input.ids ? plan->input.ids[row] : row;
        ptrdiff_t place = senders ? rfi_senders_find(senders, id) : -1;
        bool known = place >= 0 && recall->rounds - senders->traces[place].seen <= forget;
        recall->place[l] = place;
        recall->traces[l] = known ? senders->traces[place] : new_trace(id);
        recall->traces[l].age++;
        recall->traces[l].seen = recall->rounds;
    }
}

/* Lengths, and sketches where the sums hold them. A row out of reach has no direction: what it did is left to its length. */
static void read_sums(rfi_recall *recall, const double *sums)
{
    size_t width = (size_t)recall->numbers * sizeof(double);
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        double *residual = recall->residual + l * recall->numbers;
        recall->norm[l] = sqrt(sums[l]);
        if (!isfinite(recall->norm[l])) {
            recall->norm[l] = INFINITY;
            memset(residual, 0, width);
        } else if (!recall->full) {
            memcpy(residual, sums + recall->n + l * recall->numbers, width);
        }
    }
}

reef_status rfi_recall_weigh(reef_plan *plan, const double *sums, double *share, reef_error *error)
{
    rfi_recall *recall = &plan->recall;
    rfi_worker *worker = &plan->m.workers[0];
    recall->n = plan->n_raw;
    recall->self = plan->self;
    recall->step = plan->input.step;
    read_sums(recall, sums);
    remember(plan);
    const reef_points points = {.n = recall->n,
                                .count = recall->n,
                                .origin = -1,
                                .centre = -1,
                                .a = plan->m.raw_weights,
                                .equal = plan->equal_raw,
                                .size = (double)plan->total,
                                .round = plan->input.round,
                                .recall = recall};
    reef_effort effort = {0, true};
    worker->solved++;
    return plan->rule->weigh(plan->params, &points, share, &effort, error);
}
