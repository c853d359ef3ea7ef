/* Observing: the Gram matrix of the points of a pass, summed tile by tile.
 *
 *   G_pq = sum over m of (p(m) - mu(m)) (q(m) - mu(m)),   mu(m) = median of the rows at m
 *
 * Centring makes the differences of nearly equal models exact before they are squared, and the median as the centre
 * cannot be moved far by a minority. Products are summed in double, along the canonical tree. */
#include "agg/plan.h"
#include "base/error.h"

#include <string.h>

ptrdiff_t rfi_packed_length(ptrdiff_t points)
{
    ptrdiff_t length = 0;
    /* an overflow here is reported by the arena, which multiplies with a negative number */
    return rfi_mul(points, points + 1, &length) ? length / 2 : -1;
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

/* One slot: its tiles in order, then the result into its place. */
static void observe_slot(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t from, ptrdiff_t to,
                         ptrdiff_t m0, const void *const *rows)
{
    const rfi_space *space = &plan->spaces[plan->pass];
    worker->gram.length = rfi_packed_length(rfi_space_points(plan, space));
    rfi_treesum_start(&worker->gram);
    for (ptrdiff_t tile = from; tile < to; tile += RFI_TILE) {
        ptrdiff_t end = tile + RFI_TILE < to ? tile + RFI_TILE : to;
        for (ptrdiff_t m = tile; m < end; m += RFI_CHUNK) {
            ptrdiff_t count = end - m < RFI_CHUNK ? end - m : RFI_CHUNK;
            rfi_fetch(plan, worker, rows, m - m0, count);
            rfi_gram_chunk(plan, worker, space, segment, m, count);
        }
        rfi_treesum_push(&worker->gram);
    }
    ptrdiff_t slot = plan->m.slot_starts[segment] + from / ((ptrdiff_t)RFI_TILE << plan->slot_levels);
    rfi_treesum_finish(&worker->gram, plan->m.gram_slots + slot * worker->gram.length);
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
    ptrdiff_t slot = (ptrdiff_t)RFI_TILE << plan->slot_levels;
    for (ptrdiff_t from = m0; from < m1; from += slot) {
        ptrdiff_t to = m1 - from < slot ? m1 : from + slot;
        observe_slot(plan, &plan->m.workers[worker], segment, from, to, m0, rows);
    }
    plan->m.workers[worker].covered += m1 - m0;
    return REEF_OK;
}
