#include "agg/across.h"

#include "agg/plan.h"

#include <assert.h>
#include <string.h>

/* Counters of one rank's report, beside the K rejected. */
enum { MASKED, ITERATIONS, SOLVED, UNCONVERGED, MAX_ITERATIONS, COUNTERS };

size_t rfi_across_room(ptrdiff_t rows, ptrdiff_t ranks, bool report)
{
    return report ? (size_t)(ranks * (rows + COUNTERS)) * sizeof(int64_t) : (size_t)rows;
}

/* ---- sums ---- */

static size_t slot_bytes(const reef_plan *plan, ptrdiff_t length)
{
    return (size_t)(plan->m.slot_starts[1] * length) * sizeof(double);
}

static size_t sum_bytes(const reef_plan *plan)
{
    const rfi_space *space = &plan->spaces[plan->pass];
    return slot_bytes(plan, rfi_sum_length(plan, plan->n_raw, rfi_space_points(plan, space)));
}

/* Of a rule that remembers whole residuals: each rank has seen a slice of them. */
static size_t residual_bytes(const reef_plan *plan)
{
    bool whole = plan->recalls && plan->recall.full;
    return whole ? (size_t)(plan->n_raw * plan->recall.numbers) * sizeof(double) : 0;
}

void rfi_across_clear_sums(reef_plan *plan)
{
    size_t residuals = residual_bytes(plan);
    memset(plan->m.gram_slots, 0, sum_bytes(plan));
    if (residuals) {
        memset(plan->recall.residual, 0, residuals);
    }
}

/* The plan counts what it was shown; the rest was shown to others. */
static void cover_all(reef_plan *plan)
{
    assert(plan->segments == 1);
    int64_t covered = 0;
    for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
        covered += plan->m.workers[i].covered;
    }
    plan->m.workers[0].covered += plan->total - covered;
}

reef_status rfi_across_agree(const rfi_across *across, reef_plan *plan, reef_status mine, reef_error *error)
{
    unsigned char any = reef_plan_suspect(plan);
    reef_status status = across->merge(across->user, &any, 1, error);
    atomic_store(&plan->any_suspect, any != 0);
    cover_all(plan);
    if (status == REEF_OK && !any) { /* otherwise the failure may be that row's */
        status = across->agree(across->user, mine, error);
    }
    return status;
}

reef_status rfi_across_sums(const rfi_across *across, reef_plan *plan, reef_status mine, reef_error *error)
{
    size_t residuals = residual_bytes(plan);
    reef_status status = rfi_across_agree(across, plan, mine, error);
    if (status == REEF_OK && !reef_plan_suspect(plan)) {
        status = across->merge(across->user, plan->m.gram_slots, sum_bytes(plan), error);
    }
    if (status == REEF_OK && !reef_plan_suspect(plan) && residuals) {
        status = across->merge(across->user, plan->recall.residual, residuals, error);
    }
    return status;
}

/* ---- rows with NaN or Inf ---- */

reef_status rfi_across_suspects(const rfi_across *across, reef_plan *plan, reef_status mine, reef_error *error)
{
    unsigned char *flags = (unsigned char *)across->room;
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        flags[l] = atomic_load(&plan->m.suspect[l]);
    }
    reef_status status = across->agree(across->user, mine, error);
    if (status == REEF_OK) {
        status = across->merge(across->user, flags, (size_t)plan->rows, error);
    }
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        atomic_store(&plan->m.suspect[l], flags[l] != 0);
    }
    return status;
}

/* ---- report ---- */

void rfi_across_clear_trust(const rfi_across *across, reef_plan *plan)
{
    rfi_worker *w = &plan->m.workers[0];
    if (across->rank != 0) {
        w->iterations = w->solved = w->unconverged = 0;
        w->max_iterations = 0;
    }
    if (plan->report) {
        memset(plan->m.trust_slots, 0, slot_bytes(plan, plan->rows + 1));
    }
}

static void add_workers(const reef_plan *plan, int64_t *rejected)
{
    int64_t *sums = rejected + plan->rows;
    for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
        const rfi_worker *w = &plan->m.workers[i];
        for (ptrdiff_t l = 0; l < plan->rows; l++) {
            rejected[l] += w->rejected[l];
        }
        sums[MASKED] += w->masked;
        sums[ITERATIONS] += w->iterations;
        sums[SOLVED] += w->solved;
        sums[UNCONVERGED] += w->unconverged;
        sums[MAX_ITERATIONS] = w->max_iterations > sums[MAX_ITERATIONS] ? w->max_iterations : sums[MAX_ITERATIONS];
    }
}

/* The counters of all ranks become those of worker 0. */
static void take_effort(reef_plan *plan, const int64_t *efforts, ptrdiff_t ranks)
{
    rfi_worker *w = &plan->m.workers[0];
    rfi_report_begin(plan); /* clears the counters */
    for (ptrdiff_t r = 0; r < ranks; r++) {
        const int64_t *rejected = efforts + r * (plan->rows + COUNTERS);
        const int64_t *sums = rejected + plan->rows;
        for (ptrdiff_t l = 0; l < plan->rows; l++) {
            w->rejected[l] += rejected[l];
        }
        w->masked += sums[MASKED];
        w->iterations += sums[ITERATIONS];
        w->solved += sums[SOLVED];
        w->unconverged += sums[UNCONVERGED];
        w->max_iterations = sums[MAX_ITERATIONS] > w->max_iterations ? (int)sums[MAX_ITERATIONS] : w->max_iterations;
    }
}

reef_status rfi_across_report(const rfi_across *across, reef_plan *plan, reef_error *error)
{
    ptrdiff_t length = plan->rows + COUNTERS;
    size_t bytes = (size_t)(across->ranks * length) * sizeof *across->room;
    memset(across->room, 0, bytes);
    add_workers(plan, across->room + across->rank * length);
    reef_status status = across->merge(across->user, across->room, bytes, error);
    if (status == REEF_OK) {
        status = across->merge(across->user, plan->m.trust_slots, slot_bytes(plan, plan->rows + 1), error);
    }
    take_effort(plan, across->room, across->ranks);
    return status;
}
