/* Aggregation spread over ranks: each has all rows of its slice of the coordinates.
 *
 *   transpose   rank s sends columns m0_r..m1_r of its rows to rank r               all-to-all
 *   observe     every rank its slice; Gram sums of whole slots are put side by side  merge
 *   solve       the same K x K work on every rank
 *   combine     every rank its slice
 * Slices are whole slots of the canonical tree (num/treesum.h): which rank has summed a slot shows nowhere. A rule that needs no sums
 * and keeps no report is cut by tiles instead. */
#include "agg/plan.h"
#include "base/error.h"
#include "base/pool.h"
#include "learn/ranks.h"

#include <reef/shard.h>
#include <string.h>

struct reef_shard {
    const reef_context *context;
    const reef_engine *engine;
    reef_plan *plan;
    size_t plan_bytes, number; /* bytes of the plan, and of one number */
    ptrdiff_t rows, length, unit;
    ptrdiff_t m0, m1;  /* of this rank */
    ptrdiff_t *starts; /* size + 1: number of the first row of each rank */
    unsigned char *slices;
    void **pieces;        /* K: where the rows of this slice are */
    void **incoming;      /* K: those of them that are filled in this time */
    void **outgoing;      /* size x own rows */
    reef_parcel *parcels; /* 2 x size: to send, to receive */
    unsigned char *flags; /* K */
    int64_t *efforts;     /* size x (K + 5) */
    bool report;
};

/* What one pass over the slice does. */
typedef struct pass {
    reef_shard *shard;
    unsigned char *out; /* NULL: observe */
    atomic_int status;
    reef_error failure;
} pass;

/* ---- create ---- */

static ptrdiff_t own_rows(const reef_shard *s)
{
    return s->starts[s->engine->rank + 1] - s->starts[s->engine->rank];
}

void reef_shard_range(const reef_shard *shard, ptrdiff_t rank, ptrdiff_t *m0, ptrdiff_t *m1)
{
    ptrdiff_t units = (shard->length - 1) / shard->unit + 1;
    ptrdiff_t size = shard->engine->size;
    /* units * rank / size without the product */
    ptrdiff_t from = units / size * rank + units % size * rank / size;
    ptrdiff_t to = units / size * (rank + 1) + units % size * (rank + 1) / size;
    *m0 = from < units ? from * shard->unit : shard->length;
    *m1 = to < units ? to * shard->unit : shard->length;
}

static void *take(const reef_shard *s, ptrdiff_t count, size_t size)
{
    void *memory = rfi_allocate_many(s->context, count > 0 ? count : 1, size);
    if (memory) {
        memset(memory, 0, (size_t)(count > 0 ? count : 1) * size);
    }
    return memory;
}

static reef_status number_rows(reef_shard *s, const reef_shard_shape *shape, reef_error *error)
{
    s->starts = take(s, s->engine->size + 1, sizeof *s->starts);
    if (!s->starts) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a shard of %d ranks", (int)s->engine->size);
    }
    for (int32_t r = 0; r < s->engine->size; r++) {
        if (shape->rows[r] < 0 || !rfi_add(s->starts[r], shape->rows[r], &s->starts[r + 1])) {
            return rfi_fail(error, REEF_E_ARG, "rank %d brings %td rows", (int)r, shape->rows[r]);
        }
    }
    s->rows = s->starts[s->engine->size];
    return REEF_OK;
}

static void choose_unit(reef_shard *s)
{
    const reef_plan *plan = s->plan;
    bool free_start = plan->passes == 0 && plan->scope <= 0 && !plan->rule->relative_floor && !s->report;
    s->unit = free_start ? RFI_TILE : plan->grain;
    reef_shard_range(s, s->engine->rank, &s->m0, &s->m1);
}

static reef_status take_buffers(reef_shard *s, reef_error *error)
{
    ptrdiff_t numbers = 0;
    ptrdiff_t size = s->engine->size;
    ptrdiff_t slice = s->m1 - s->m0;
    bool fits = rfi_mul(s->rows, slice, &numbers);
    s->slices = fits ? rfi_allocate_many(s->context, numbers > 0 ? numbers : 1, s->number) : NULL;
    s->pieces = take(s, s->rows, sizeof(void *));
    s->incoming = take(s, s->rows, sizeof(void *));
    s->outgoing = take(s, size * own_rows(s), sizeof(void *));
    s->parcels = take(s, 2 * size, sizeof *s->parcels);
    s->flags = take(s, s->rows, 1);
    s->efforts = s->report ? take(s, size * (s->rows + 5), sizeof *s->efforts) : NULL;
    if (!s->slices || !s->pieces || !s->incoming || !s->outgoing || !s->parcels || !s->flags ||
        (s->report && !s->efforts)) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td of %td coordinates of %td rows", slice, s->length,
                        s->rows);
    }
    for (ptrdiff_t l = 0; l < s->rows; l++) {
        s->pieces[l] = s->slices + (size_t)(l * slice) * s->number;
    }
    return REEF_OK;
}

static reef_status build(reef_shard *s, const reef_agg *agg, const reef_shard_shape *shape, reef_error *error)
{
    reef_status status = number_rows(s, shape, error);
    const reef_shape all = {.rows = s->rows, .segments = 1, .lengths = &shape->length, .dtype = shape->dtype};
    status = status == REEF_OK ? reef_plan_size(agg, &all, &s->plan_bytes, error) : status;
    status = status == REEF_OK ? reef_plan_create(&s->plan, agg, &all, error) : status;
    if (status != REEF_OK) {
        return status;
    }
    s->length = shape->length;
    s->number = rfi_dtype_size(shape->dtype);
    s->report = shape->report;
    choose_unit(s);
    return take_buffers(s, error);
}

reef_status reef_shard_create(reef_shard **shard, const reef_agg *agg, const reef_engine *engine,
                              const reef_shard_shape *shape, reef_error *error)
{
    if (!shard || !agg || !engine || !shape || !shape->rows) {
        return rfi_fail(error, REEF_E_ARG, "reef_shard_create: an argument is NULL");
    }
    *shard = NULL;
    reef_shard *made = rfi_allocate(agg->context, sizeof *made);
    reef_status status = made ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for a shard");
    if (made) {
        *made = (reef_shard){.context = agg->context, .engine = engine};
        status = build(made, agg, shape, error);
    }
    status = engine->ops->agree(engine, status, error);
    if (status != REEF_OK) {
        reef_shard_destroy(&made);
        return status;
    }
    *shard = made;
    return REEF_OK;
}

void reef_shard_destroy(reef_shard **shard)
{
    if (!shard || !*shard) {
        return;
    }
    reef_shard *s = *shard;
    reef_plan_destroy(&s->plan);
    void *memory[] = {s->starts,           s->slices,  (void *)s->pieces, (void *)s->incoming,
                      (void *)s->outgoing, s->parcels, s->flags,          s->efforts};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        rfi_release(s->context, memory[i]);
    }
    rfi_release(s->context, s);
    *shard = NULL;
}

ptrdiff_t reef_shard_rows(const reef_shard *shard)
{
    return shard->rows;
}

ptrdiff_t rfi_shard_dropped(const reef_shard *shard)
{
    return shard->plan->dropped;
}

size_t reef_shard_size(const reef_shard *shard)
{
    size_t size = (size_t)shard->engine->size;
    size_t rows = (size_t)shard->rows;
    size_t slices = rows * (size_t)(shard->m1 - shard->m0) * shard->number;
    size_t tables = rows * (2 * sizeof(void *) + 1) + size * ((size_t)own_rows(shard) * sizeof(void *)) +
                    size * (2 * sizeof(reef_parcel) + sizeof(ptrdiff_t));
    return slices + tables + shard->plan_bytes + (shard->report ? size * (rows + 5) * sizeof(int64_t) : 0);
}

/* ---- transpose ---- */

/* Rows without weight stay where they are: nobody looks at them. */
static bool travels(const reef_shard *s, ptrdiff_t row)
{
    return s->plan->m.reason[row] == REEF_USED;
}

static reef_status transpose(reef_shard *s, const void *const *rows, reef_error *error)
{
    ptrdiff_t size = s->engine->size;
    ptrdiff_t own = own_rows(s);
    ptrdiff_t first = s->starts[s->engine->rank];
    for (ptrdiff_t r = 0; r < size; r++) {
        ptrdiff_t m0 = 0;
        ptrdiff_t m1 = 0;
        ptrdiff_t sends = 0;
        ptrdiff_t receives = 0;
        reef_shard_range(s, r, &m0, &m1);
        for (ptrdiff_t i = 0; i < own && m1 > m0; i++) {
            if (travels(s, first + i)) { /* only read */
                s->outgoing[r * own + sends++] = (unsigned char *)(uintptr_t)rows[i] + (size_t)m0 * s->number;
            }
        }
        for (ptrdiff_t l = s->starts[r]; l < s->starts[r + 1] && s->m1 > s->m0; l++) {
            if (travels(s, l)) {
                s->incoming[s->starts[r] + receives++] = s->pieces[l];
            }
        }
        s->parcels[r] = (reef_parcel){s->outgoing + r * own, sends, (size_t)(m1 - m0) * s->number};
        s->parcels[size + r] = (reef_parcel){s->incoming + s->starts[r], receives, (size_t)(s->m1 - s->m0) * s->number};
    }
    return s->engine->ops->all_to_all(s->engine, s->parcels, s->parcels + size, error);
}

reef_status reef_shard_gather(reef_shard *shard, const void *slice, void *out, reef_error *error)
{
    if (!shard || !out || (!slice && shard->m1 > shard->m0)) {
        return rfi_fail(error, REEF_E_ARG, "reef_shard_gather: an argument is NULL");
    }
    reef_shard *s = shard;
    ptrdiff_t size = s->engine->size;
    void *from = (void *)(uintptr_t)slice; /* only read */
    void **to = take(s, size, sizeof(void *));
    reef_status status = to ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for a result of %td ranks", size);
    status = s->engine->ops->agree(s->engine, status, error);
    for (ptrdiff_t r = 0; status == REEF_OK && r < size; r++) {
        ptrdiff_t m0 = 0;
        ptrdiff_t m1 = 0;
        reef_shard_range(s, r, &m0, &m1);
        to[r] = (unsigned char *)out + (size_t)m0 * s->number;
        s->parcels[r] = (reef_parcel){&from, s->m1 > s->m0, (size_t)(s->m1 - s->m0) * s->number};
        s->parcels[size + r] = (reef_parcel){&to[r], m1 > m0, (size_t)(m1 - m0) * s->number};
    }
    status = status == REEF_OK ? s->engine->ops->all_to_all(s->engine, s->parcels, s->parcels + size, error) : status;
    rfi_release(s->context, (void *)to);
    return status;
}

/* ---- this rank's slice ---- */

static void run_part(void *user, ptrdiff_t part, ptrdiff_t worker)
{
    pass *p = user;
    reef_shard *s = p->shard;
    reef_error error = {REEF_OK, ""};
    ptrdiff_t step = s->plan->grain;
    ptrdiff_t m0 = part == 0 ? s->m0 : (s->m0 / step + part) * step;
    ptrdiff_t end = (s->m0 / step + part + 1) * step;
    ptrdiff_t m1 = end < s->m1 ? end : s->m1;
    const void **rows = s->plan->m.workers[worker].rows;
    for (ptrdiff_t l = 0; l < s->rows; l++) {
        rows[l] = (const unsigned char *)s->pieces[l] + (size_t)(m0 - s->m0) * s->number;
    }
    reef_status status =
        p->out ? reef_plan_combine(s->plan, worker, 0, m0, m1, rows, p->out + (size_t)(m0 - s->m0) * s->number, &error)
               : reef_plan_observe(s->plan, worker, 0, m0, m1, rows, &error);
    int none = REEF_OK;
    if (status != REEF_OK && atomic_compare_exchange_strong(&p->status, &none, (int)status)) {
        p->failure = error;
    }
}

/* Observes (out NULL) or combines the slice; the status is this rank's. */
static reef_status run_slice(reef_shard *s, void *out, reef_error *error)
{
    pass p = {.shard = s, .out = out};
    ptrdiff_t step = s->plan->grain;
    ptrdiff_t parts = s->m1 > s->m0 ? (s->m1 - 1) / step - s->m0 / step + 1 : 0;
    atomic_init(&p.status, REEF_OK);
    rfi_pool_run((reef_context *)(uintptr_t)s->context, s->plan->worker_count, parts, run_part, &p);
    reef_status status = (reef_status)atomic_load(&p.status);
    return status == REEF_OK ? REEF_OK : rfi_fail(error, status, "%s", p.failure.text);
}

/* The plan counts what it was shown; the rest was shown to others. */
static void cover_all(reef_shard *s)
{
    int64_t covered = 0;
    for (ptrdiff_t i = 0; i < s->plan->worker_count; i++) {
        covered += s->plan->m.workers[i].covered;
    }
    s->plan->m.workers[0].covered += s->plan->total - covered;
}

/* Whether any rank has met a value that is not finite. */
static reef_status share_suspicion(reef_shard *s, reef_error *error)
{
    unsigned char any = reef_plan_suspect(s->plan);
    reef_status status = s->engine->ops->merge(s->engine, &any, 1, error);
    atomic_store(&s->plan->any_suspect, any != 0);
    return status;
}

static size_t slot_bytes(const reef_shard *s, ptrdiff_t length)
{
    return (size_t)(s->plan->m.slot_starts[1] * length) * sizeof(double);
}

/* Of a rule that remembers whole residuals: each rank has seen a slice of them. */
static size_t residual_bytes(const reef_plan *plan)
{
    bool whole = plan->recalls && plan->recall.full;
    return whole ? (size_t)(plan->n_raw * plan->recall.numbers) * sizeof(double) : 0;
}

static reef_status observe_pass(reef_shard *s, reef_error *error)
{
    reef_plan *plan = s->plan;
    ptrdiff_t length = rfi_sum_length(plan, plan->n_raw, rfi_space_points(plan, &plan->spaces[plan->pass]));
    size_t residuals = residual_bytes(plan);
    memset(plan->m.gram_slots, 0, slot_bytes(s, length));
    if (residuals) {
        memset(plan->recall.residual, 0, residuals);
    }
    reef_status status = run_slice(s, NULL, error);
    status = s->engine->ops->agree(s->engine, status, error);
    status = status == REEF_OK ? share_suspicion(s, error) : status;
    if (status == REEF_OK && !reef_plan_suspect(plan)) {
        status = s->engine->ops->merge(s->engine, plan->m.gram_slots, slot_bytes(s, length), error);
    }
    if (status == REEF_OK && !reef_plan_suspect(plan) && residuals) {
        status = s->engine->ops->merge(s->engine, plan->recall.residual, residuals, error);
    }
    cover_all(s);
    return status == REEF_OK ? reef_plan_solve(plan, error) : status; /* the same on all ranks */
}

static reef_status combine_slice(reef_shard *s, void *slice, reef_error *error)
{
    unsigned char none = 0;
    if (s->plan->report) {
        memset(s->plan->m.trust_slots, 0, slot_bytes(s, s->rows + 1));
    }
    reef_status mine = run_slice(s, slice ? slice : &none, error);
    reef_status status = share_suspicion(s, error);
    if (status == REEF_OK && !reef_plan_suspect(s->plan)) { /* otherwise the failure may be that row's */
        status = s->engine->ops->agree(s->engine, mine, error);
    }
    cover_all(s);
    return status;
}

/* Rows with values that are not finite, on whatever rank, are left out. */
static reef_status drop_bad_rows(reef_shard *s, reef_error *error)
{
    reef_plan *plan = s->plan;
    reef_status status = REEF_OK;
    if (s->m1 > s->m0) {
        status = reef_plan_scan(plan, 0, s->m0, s->m1, (const void *const *)s->pieces, error);
    }
    for (ptrdiff_t l = 0; l < s->rows; l++) {
        s->flags[l] = atomic_load(&plan->m.suspect[l]);
    }
    status = s->engine->ops->agree(s->engine, status, error);
    status = status == REEF_OK ? s->engine->ops->merge(s->engine, s->flags, (size_t)s->rows, error) : status;
    for (ptrdiff_t l = 0; l < s->rows; l++) {
        atomic_store(&plan->m.suspect[l], s->flags[l] != 0);
    }
    return status == REEF_OK ? reef_plan_drop(plan, error) : status;
}

/* ---- report ---- */

/* All ranks have solved the same; one of them tells. */
static void forget_effort(reef_shard *s)
{
    rfi_worker *w = &s->plan->m.workers[0];
    if (s->engine->rank != 0) {
        w->iterations = w->solved = w->unconverged = 0;
        w->max_iterations = 0;
    }
}

static void add_workers(reef_plan *plan, int64_t *sums)
{
    ptrdiff_t k = plan->rows;
    for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
        const rfi_worker *w = &plan->m.workers[i];
        for (ptrdiff_t l = 0; l < k; l++) {
            sums[l] += w->rejected[l];
        }
        sums[k] += w->masked;
        sums[k + 1] += w->iterations;
        sums[k + 2] += w->solved;
        sums[k + 3] += w->unconverged;
        sums[k + 4] = w->max_iterations > sums[k + 4] ? w->max_iterations : sums[k + 4];
    }
}

/* The counters of all ranks become those of worker 0. */
static void take_effort(reef_plan *plan, const int64_t *efforts, ptrdiff_t ranks)
{
    ptrdiff_t k = plan->rows;
    rfi_worker *w = &plan->m.workers[0];
    rfi_report_begin(plan); /* clears the counters */
    for (ptrdiff_t r = 0; r < ranks; r++) {
        const int64_t *sums = efforts + r * (k + 5);
        for (ptrdiff_t l = 0; l < k; l++) {
            w->rejected[l] += sums[l];
        }
        w->masked += sums[k];
        w->iterations += sums[k + 1];
        w->solved += sums[k + 2];
        w->unconverged += sums[k + 3];
        w->max_iterations = sums[k + 4] > w->max_iterations ? (int)sums[k + 4] : w->max_iterations;
    }
}

static reef_status share_report(reef_shard *s, reef_error *error)
{
    ptrdiff_t size = s->engine->size;
    size_t bytes = (size_t)(size * (s->rows + 5)) * sizeof *s->efforts;
    if (!s->plan->report) {
        return REEF_OK;
    }
    memset(s->efforts, 0, bytes);
    add_workers(s->plan, s->efforts + s->engine->rank * (s->rows + 5));
    reef_status status = s->engine->ops->merge(s->engine, s->efforts, bytes, error);
    if (status == REEF_OK) {
        status = s->engine->ops->merge(s->engine, s->plan->m.trust_slots, slot_bytes(s, s->rows + 1), error);
    }
    take_effort(s->plan, s->efforts, size);
    return status;
}

/* ---- apply ---- */

static reef_status check_apply(const reef_shard *s, const reef_input *input, const void *slice,
                               const reef_report *report, reef_error *error)
{
    if (!input || (!slice && s->m1 > s->m0) || (own_rows(s) > 0 && !input->rows)) {
        return rfi_fail(error, REEF_E_ARG, "reef_shard_apply: %s is NULL",
                        !input ? "input" : (slice ? "the array of rows" : "slice"));
    }
    for (ptrdiff_t i = 0; i < own_rows(s); i++) {
        if (!input->rows[i]) {
            return rfi_fail(error, REEF_E_ARG, "row %td of rank %d is NULL", i, (int)s->engine->rank);
        }
    }
    if (report && (!s->report || rfi_report_wants_shares(report))) {
        return rfi_fail(error, REEF_E_ARG,
                        s->report ? "effective weights of single coordinates are not kept over ranks"
                                  : "the shard was made without a report");
    }
    return REEF_OK;
}

static reef_status aggregate(reef_shard *s, void *slice, reef_error *error)
{
    reef_status status = REEF_OK;
    for (;;) {
        for (ptrdiff_t i = 0; status == REEF_OK && i < s->plan->passes; i++) {
            status = observe_pass(s, error);
        }
        if (status == REEF_OK && !reef_plan_suspect(s->plan)) {
            forget_effort(s);
            status = combine_slice(s, slice, error);
        }
        if (!reef_plan_suspect(s->plan)) {
            break;
        }
        status = drop_bad_rows(s, error); /* whatever the status: it may come from the bad values */
        if (status != REEF_OK) {
            break;
        }
    }
    return status;
}

reef_status reef_shard_apply(reef_shard *shard, const reef_input *input, void *slice, reef_report *report,
                             reef_error *error)
{
    if (!shard) {
        return rfi_fail(error, REEF_E_ARG, "reef_shard_apply: shard is NULL");
    }
    const reef_engine *engine = shard->engine;
    reef_status status = check_apply(shard, input, slice, report, error);
    status = status == REEF_OK ? reef_plan_begin(shard->plan, input, report, error) : status;
    status = engine->ops->agree(engine, status, error);
    status = status == REEF_OK ? transpose(shard, input->rows, error) : status;
    status = status == REEF_OK ? aggregate(shard, slice, error) : status;
    status = status == REEF_OK ? share_report(shard, error) : status;
    return status == REEF_OK ? reef_plan_end(shard->plan, error) : status;
}
