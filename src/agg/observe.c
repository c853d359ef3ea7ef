/* Observing: what a pass sums, Gram matrices (gram.c) or lengths and sketches of residuals (recall.c), tile by tile along the canonical
 * tree. */
#include "agg/plan.h"
#include "base/error.h"

#include <assert.h>
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

void rfi_rows_used(const reef_plan *plan, rfi_worker *worker, ptrdiff_t m, ptrdiff_t m0, const void *const *rows)
{
    ptrdiff_t skip = (m - m0) * (ptrdiff_t)rfi_type_size(worker->type);
    for (ptrdiff_t i = 0; i < plan->n_raw; i++) {
        worker->used[i] = (const char *)rows[plan->m.active[i]] + skip;
    }
}

static ptrdiff_t slot_of(const reef_plan *plan, ptrdiff_t segment, ptrdiff_t m)
{
    assert(m >= 0 && m < plan->m.lengths[segment]);
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
    reef_status status = rfi_check_range(plan, worker, segment, m0, m1, rows, RFI_TILE, error);
    if (status != REEF_OK) {
        return status;
    }
    if (plan->pass >= plan->passes) {
        return rfi_fail(error, REEF_E_ORDER, "there is nothing left to observe: all %td passes are solved",
                        plan->passes);
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
