/* Observing: the Gram matrix of the points of a pass, summed tile by tile.
 *
 *   G_pq = sum over m of (p(m) - mu(m)) (q(m) - mu(m)),   mu(m) = median of the rows at m
 *
 * Centring makes the differences of nearly equal models exact before they are squared, and the median as the centre
 * cannot be moved far by a minority. Products are summed in double, along the canonical tree. */
#include "agg/plan.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

ptrdiff_t rfi_packed_length(ptrdiff_t points)
{
    ptrdiff_t length = 0;
    /* an overflow here is reported by the arena, which multiplies with a negative number */
    return rfi_mul(points, points + 1, &length) ? length / 2 : -1;
}

ptrdiff_t rfi_sum_length(const reef_plan *plan, ptrdiff_t rows, ptrdiff_t points)
{
    ptrdiff_t length = 0;
    if (!plan->recalls) {
        return rfi_packed_length(points);
    }
    return rfi_mul(rows, plan->recall.full ? 1 : 1 + plan->recall.numbers, &length) ? length : -1;
}

void rfi_gram_chunk(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t segment, ptrdiff_t m,
                    ptrdiff_t count)
{
    ptrdiff_t rows = rfi_space_rows(plan, space);
    ptrdiff_t points = rfi_space_points(plan, space);
    for (ptrdiff_t t = 0; t < count; t++) {
        (void)rfi_column_points(plan, worker, space, t, segment, m + t);
        double mu = rfi_points_median(worker, rows);
        for (ptrdiff_t p = 0; p < points; p++) {
            bool absent = p < rows && worker->gap[p];
            worker->centred[p * RFI_CHUNK + t] = absent ? 0 : worker->points[p] - mu;
        }
    }
    double *sum = rfi_treesum_leaf(&worker->gram);
    for (ptrdiff_t p = 0; p < points; p++) {
        const double *x = worker->centred + p * RFI_CHUNK;
        for (ptrdiff_t q = 0; q <= p; q++) {
            const double *y = worker->centred + q * RFI_CHUNK;
            double dot = 0;
            for (ptrdiff_t t = 0; t < count; t++) {
                dot += x[t] * y[t];
            }
            *sum++ += dot;
        }
    }
}

void rfi_rows_used(const reef_plan *plan, rfi_worker *worker, ptrdiff_t m, ptrdiff_t m0, const void *const *rows)
{
    ptrdiff_t skip = (m - m0) * (ptrdiff_t)rfi_dtype_size(plan->dtype);
    for (ptrdiff_t i = 0; i < plan->n_raw; i++) {
        worker->used[i] = (const char *)rows[plan->m.active[i]] + skip;
    }
}

/* Magnitudes whose squares neither overflow nor vanish when added up: all of float32, most of float64. */
static bool in_gram_range(double largest)
{
    return largest == 0 || (largest < 0x1p+500 && largest > 0x1p-400);
}

/* Points beside the rows, as seen from the medians: the origin is -mu, the remembered centre v - mu. False if one is out of range. */
static bool centre_extra_points(const reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t segment,
                                ptrdiff_t m, ptrdiff_t count)
{
    double *next = worker->centred_rows + plan->n_raw * RFI_GRAM_STRIDE;
    for (int extra = 0; extra < 2; extra++) {
        if (!(extra ? space->centre : space->origin)) {
            continue;
        }
        for (ptrdiff_t t = 0; t < count; t++) {
            double value = 0;
            if (extra && plan->centre_known) {
                value = rfi_state_value(plan->input.state, segment, m + t);
            } else if (extra && (plan->needs & REEF_NEED_MEDIAN)) {
                value = worker->medians[t];
            }
            next[t] = value - worker->medians[t];
            if (fabs(next[t]) > 0x1p+500) {
                return false;
            }
        }
        next += RFI_GRAM_STRIDE;
    }
    return true;
}

/* Zeros behind a short chunk, up to whole vectors. */
static void pad_chunk(rfi_worker *worker, ptrdiff_t points, ptrdiff_t count, ptrdiff_t padded)
{
    for (ptrdiff_t p = 0; p < points; p++) {
        for (ptrdiff_t t = count; t < padded; t++) {
            worker->centred_rows[p * RFI_GRAM_STRIDE + t] = 0;
        }
    }
}

/* One chunk by the kernels; false if it must be done by the scalar code (non-finite or extreme values). */
static bool gram_chunk(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t segment, ptrdiff_t m,
                       ptrdiff_t count, ptrdiff_t m0, const void *const *rows)
{
    rfi_rows_used(plan, worker, m, m0, rows);
    double largest = 0;
    ptrdiff_t points = rfi_space_points(plan, space);
    ptrdiff_t padded = (count + 15) / 16 * 16;
    rfi_span span = {.rows = worker->used, .n = plan->n_raw, .count = count, .scratch = worker->scratch};
    if (!plan->kernels->centre(&span, worker->centred_rows, RFI_GRAM_STRIDE, worker->medians, &largest) ||
        !in_gram_range(largest) || !centre_extra_points(plan, worker, space, segment, m, count)) {
        return false;
    }
    pad_chunk(worker, points, count, padded);
    plan->kernels->gram(worker->centred_rows, RFI_GRAM_STRIDE, points, padded, rfi_treesum_leaf(&worker->gram));
    return true;
}

static bool gram_fast(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t segment, ptrdiff_t m,
                      ptrdiff_t count, ptrdiff_t m0, const void *const *rows)
{
    bool raw = !space->mixed || plan->agg->count == 1;
    if (!plan->kernels || !raw) {
        return false;
    }
    unsigned flush = rfi_flush_begin();
    bool done = gram_chunk(plan, worker, space, segment, m, count, m0, rows);
    rfi_flush_end(flush);
    return done;
}

void rfi_gram_tile(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t segment, ptrdiff_t m,
                   ptrdiff_t count, ptrdiff_t m0, const void *const *rows)
{
    for (ptrdiff_t at = m; at < m + count; at += RFI_GRAM_CHUNK) {
        ptrdiff_t end = m + count - at < RFI_GRAM_CHUNK ? m + count : at + RFI_GRAM_CHUNK;
        if (gram_fast(plan, worker, space, segment, at, end - at, m0, rows)) {
            continue;
        }
        for (ptrdiff_t from = at; from < end; from += RFI_CHUNK) {
            ptrdiff_t part = end - from < RFI_CHUNK ? end - from : RFI_CHUNK;
            rfi_fetch(plan, worker, rows, from - m0, part);
            rfi_gram_chunk(plan, worker, space, segment, from, part);
        }
    }
}

static ptrdiff_t slot_of(const reef_plan *plan, ptrdiff_t segment, ptrdiff_t m)
{
    return plan->m.slot_starts[segment] + m / ((ptrdiff_t)RFI_TILE << plan->slot_levels);
}

/* A slot or a part of it: its tiles in order, then, with the last of them, the result into its place. */
static void observe_slot(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t from, ptrdiff_t to,
                         ptrdiff_t m0, const void *const *rows)
{
    const rfi_space *space = &plan->spaces[plan->pass];
    ptrdiff_t slot = (ptrdiff_t)RFI_TILE << plan->slot_levels;
    worker->gram.length = rfi_sum_length(plan, plan->n_raw, rfi_space_points(plan, space));
    if (from % slot == 0) {
        rfi_treesum_start(&worker->gram);
    }
    for (ptrdiff_t tile = from; tile < to; tile += RFI_TILE) {
        ptrdiff_t end = tile + RFI_TILE < to ? tile + RFI_TILE : to;
        if (plan->recalls) {
            rfi_recall_tile(plan, worker, segment, tile, end - tile, m0, rows);
        } else {
            rfi_gram_tile(plan, worker, space, segment, tile, end - tile, m0, rows);
        }
        rfi_treesum_push(&worker->gram);
    }
    if (to % slot == 0 || to == plan->m.lengths[segment]) {
        rfi_treesum_finish(&worker->gram, plan->m.gram_slots + slot_of(plan, segment, from) * worker->gram.length);
    }
}

reef_status reef_plan_observe(reef_plan *plan, ptrdiff_t worker, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1,
                              const void *const *rows, reef_error *error)
{
    reef_status status = rfi_check_range(plan, worker, segment, m0, m1, rows, true, error);
    if (status != REEF_OK) {
        return status;
    }
    if (plan->pass >= plan->passes) {
        return rfi_fail(error, REEF_E_ORDER, "nothing is left to observe: all %td passes are solved", plan->passes);
    }
    rfi_worker *w = &plan->m.workers[worker];
    ptrdiff_t slot = (ptrdiff_t)RFI_TILE << plan->slot_levels;
    for (ptrdiff_t from = m0; from < m1; from += slot - from % slot) {
        if (from % slot == 0 && atomic_exchange(&plan->m.seen[slot_of(plan, segment, from)], true)) {
            return rfi_fail(error, REEF_E_ORDER,
                            "coordinates from %td of segment %td were observed already in this pass", from, segment);
        }
    }
    for (ptrdiff_t from = m0; from < m1; from += slot - from % slot) {
        ptrdiff_t left = slot - from % slot;
        observe_slot(plan, w, segment, from, m1 - from < left ? m1 : from + left, m0, rows);
    }
    w->open_segment = segment;
    w->open_at = m1;
    w->covered += m1 - m0;
    return REEF_OK;
}
