/* The loop around observe, solve and combine. */
#include "agg/driver.h"

#include "agg/across.h"
#include "agg/plan.h"

#include <assert.h>

typedef enum tour_kind { OBSERVE, COMBINE, SCAN } tour_kind;

/* One pass over all coordinates on this rank. */
typedef struct tour {
    const rfi_drive *drive;
    tour_kind kind;
} tour;

static reef_status visit(void *user, const rfi_stretch *at, reef_error *error)
{
    const tour *t = user;
    const rfi_drive *d = t->drive;
    reef_plan *plan = d->plan;
    const void **rows = plan->m.workers[at->worker].rows;
    reef_status status = d->read(d->user, at, rows, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_type type = d->type ? d->type(d->user, at) : rfi_plan_type(plan);
    rfi_plan_rows(plan, &plan->m.workers[at->worker], type);
    if (t->kind == OBSERVE) {
        return reef_plan_observe(plan, at->worker, at->segment, at->m0, at->m1, rows, error);
    }
    if (t->kind == SCAN) {
        return rfi_plan_scan(plan, type, at->segment, at->m0, at->m1, rows, error);
    }
    void *out = d->place(d->user, at);
    status = reef_plan_combine(plan, at->worker, at->segment, at->m0, at->m1, rows, out, error);
    if (status != REEF_OK || !d->write || reef_plan_suspect(plan)) {
        return status;
    }
    return d->write(d->user, at, error);
}

static void expect(void *user, const rfi_stretch *part)
{
    const rfi_drive *d = ((const tour *)user)->drive;
    d->expect(d->user, part);
}

/* What is observed or combined beside a suspect row is void. */
static bool is_void(void *user)
{
    const tour *t = user;
    return t->kind != SCAN && reef_plan_suspect(t->drive->plan);
}

/* A model that is a single stretch, as many short ones are: no loop is needed. */
static bool is_one_stretch(const rfi_drive *d)
{
    const reef_plan *plan = d->plan;
    ptrdiff_t length = plan->m.lengths[0];
    return plan->segments == 1 && length <= plan->grain && (d->step == 0 || length <= d->step) && !d->across &&
           !d->expect;
}

/* A failure, unless all may still end well. */
static reef_status tell(tour *t, reef_status status, const reef_error *failure, reef_error *error)
{
    if (status != REEF_OK && error && !is_void(t)) {
        *error = *failure;
    }
    return status;
}

/* Stretches end between tiles where they are observed, and between the rule's blocks where they are combined. */
static ptrdiff_t step_of(const rfi_drive *d, tour_kind kind)
{
    ptrdiff_t unit = kind == COMBINE ? d->plan->piece : RFI_TILE;
    return d->step < unit ? d->step : d->step - d->step % unit;
}

static reef_status go_round(const rfi_drive *d, tour_kind kind, reef_error *error)
{
    const reef_plan *plan = d->plan;
    tour t = {d, kind};
    reef_error failure; /* filling it with zeros would be felt in short calls */
    if (is_one_stretch(d)) {
        return tell(&t, visit(&t, &(rfi_stretch){.m1 = plan->m.lengths[0]}, &failure), &failure, error);
    }
    const rfi_walk walk = {.context = plan->agg->context,
                           .workers = d->workers ? d->workers : plan->worker_count,
                           .segments = plan->segments,
                           .lengths = plan->m.lengths,
                           .parts = plan->m.parts,
                           .grain = plan->grain,
                           .step = step_of(d, kind),
                           .from = d->across ? d->across->m0 : 0,
                           .to = d->across ? d->across->m1 : PTRDIFF_MAX,
                           .user = &t,
                           .enter = d->expect ? expect : NULL,
                           .visit = visit,
                           .over = is_void,
                           .tolerated = REEF_E_FAR}; /* a row with NaN further on may be to blame */
    return tell(&t, rfi_walk_run(&walk, &failure), &failure, error);
}

static reef_status observe(const rfi_drive *d, reef_error *error)
{
    if (d->across) {
        rfi_across_clear_sums(d->plan);
    }
    reef_status status = go_round(d, OBSERVE, error);
    if (d->across) {
        status = rfi_across_sums(d->across, d->plan, status, error);
    }
    if (status != REEF_OK || reef_plan_suspect(d->plan)) {
        return status;
    }
    return reef_plan_solve(d->plan, error);
}

static reef_status combine(const rfi_drive *d, reef_error *error)
{
    if (d->across) {
        rfi_across_clear_trust(d->across, d->plan);
    }
    reef_status status = go_round(d, COMBINE, error);
    return d->across ? rfi_across_agree(d->across, d->plan, status, error) : status;
}

/* Comes back early, whatever the status, once the plan has a suspect. */
static reef_status observe_and_combine(const rfi_drive *d, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t pass = 0; status == REEF_OK && pass < d->plan->passes; pass++) {
        status = observe(d, error);
        if (reef_plan_suspect(d->plan)) {
            return status;
        }
    }
    if (status != REEF_OK) {
        return status;
    }
    return combine(d, error);
}

/* All rows with NaN or Inf, not only those met so far: which ones are left out depends on no order. */
static reef_status drop_bad_rows(const rfi_drive *d, reef_error *error)
{
    reef_status status = go_round(d, SCAN, error);
    if (d->across) {
        status = rfi_across_suspects(d->across, d->plan, status, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return reef_plan_drop(d->plan, error);
}

static reef_status finish(const rfi_drive *d, reef_error *error)
{
    reef_status status = d->across && d->plan->report ? rfi_across_report(d->across, d->plan, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    return reef_plan_end(d->plan, error);
}

#ifndef NDEBUG
/* Slices are whole units, so that every slot of the canonical tree is one rank's. */
static bool is_slice(const reef_plan *plan, const rfi_across *across)
{
    ptrdiff_t unit = rfi_plan_unit(plan, plan->report != NULL);
    ptrdiff_t length = plan->m.lengths[0];
    return across->m0 >= 0 && across->m0 <= across->m1 && across->m1 <= length &&
           (across->m0 % unit == 0 || across->m0 == length) && (across->m1 % unit == 0 || across->m1 == length);
}
#endif

reef_status rfi_drive_run(const rfi_drive *drive, reef_error *error)
{
    reef_plan *plan = drive->plan;
    assert(plan->begun && plan->pass == 0 && !reef_plan_suspect(plan));
    assert(drive->workers >= 0 && drive->workers <= plan->worker_count);
    assert(!drive->across || (plan->segments == 1 && is_slice(plan, drive->across)));
    reef_status status = drive->without ? rfi_plan_exclude(plan, drive->without, error) : REEF_OK;
    while (status == REEF_OK) {
        status = observe_and_combine(drive, error);
        if (!reef_plan_suspect(plan)) {
            break;
        }
        if (drive->suspect) {
            *drive->suspect = true;
            return status;
        }
        /* whatever the status: it may come from the values that stand in for the bad ones */
        status = drop_bad_rows(drive, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return finish(drive, error);
}
