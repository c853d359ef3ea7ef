/* Aggregation spread over ranks: each has all rows of its slice of the coordinates.
 *
 *   transpose   rank s sends columns m0_r..m1_r of its rows to rank r               all-to-all
 *   observe     every rank its slice; Gram sums of whole slots are put side by side  merge
 *   solve       the same K x K work on every rank
 *   combine     every rank its slice
 * The plan's driver does all but the first (agg/driver.h). */
#include "agg/driver.h"
#include "base/error.h"
#include "base/memory.h"
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
    int64_t *room;        /* for what the plan exchanges with other ranks */
    size_t room_bytes;
    unsigned char *out; /* the caller's: where the slice of the result goes */
    bool report;
};

/* ---- create ---- */

static ptrdiff_t own_rows(const reef_shard *s)
{
    return s->starts[s->engine->rank + 1] - s->starts[s->engine->rank];
}

void reef_shard_range(const reef_shard *shard, ptrdiff_t rank, ptrdiff_t *m0, ptrdiff_t *m1)
{
    if (!shard) {
        return;
    }
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
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a shard of %d ranks", (int)s->engine->size);
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
    s->unit = rfi_plan_unit(s->plan, s->report);
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
    s->room_bytes = rfi_across_room(s->rows, size, s->report);
    s->room = rfi_allocate(s->context, s->room_bytes);
    if (!s->slices || !s->pieces || !s->incoming || !s->outgoing || !s->parcels || !s->room) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td of %td coordinates of %td rows", slice,
                        s->length, s->rows);
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
    if (status != REEF_OK) {
        return status;
    }
    status = reef_plan_size(agg, &all, &s->plan_bytes, error);
    if (status != REEF_OK) {
        return status;
    }
    status = reef_plan_create(&s->plan, agg, &all, error);
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
    reef_status fits = rfi_check_size(engine->ops->size, sizeof *engine->ops, "reef_engine_ops", error);
    if (fits == REEF_OK) {
        fits = rfi_check_size(shape->size, sizeof *shape, "reef_shard_shape", error);
    }
    if (fits != REEF_OK) {
        return fits;
    }
    *shard = NULL;
    reef_shard *made = rfi_allocate(rfi_agg_context(agg), sizeof *made);
    reef_status status = made ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a shard");
    if (made) {
        *made = (reef_shard){.context = rfi_agg_context(agg), .engine = engine};
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
    void *memory[] = {s->starts,  s->slices, (void *)s->pieces, (void *)s->incoming, (void *)s->outgoing,
                      s->parcels, s->room};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        rfi_release(s->context, memory[i]);
    }
    rfi_release(s->context, s);
    *shard = NULL;
}

ptrdiff_t reef_shard_rows(const reef_shard *shard)
{
    if (!shard) {
        return 0;
    }
    return shard->rows;
}

ptrdiff_t rfi_shard_dropped(const reef_shard *shard)
{
    return rfi_plan_dropped(shard->plan);
}

size_t reef_shard_size(const reef_shard *shard)
{
    if (!shard) {
        return 0;
    }
    size_t size = (size_t)shard->engine->size;
    size_t rows = (size_t)shard->rows;
    size_t slices = rows * (size_t)(shard->m1 - shard->m0) * shard->number;
    size_t tables = rows * 2 * sizeof(void *) + size * ((size_t)own_rows(shard) * sizeof(void *)) +
                    size * (2 * sizeof(reef_parcel) + sizeof(ptrdiff_t));
    return slices + tables + shard->plan_bytes + shard->room_bytes;
}

/* ---- transpose ---- */

/* Rows without weight stay where they are: nobody looks at them. */
static bool travels(const reef_shard *s, ptrdiff_t row)
{
    return rfi_plan_uses(s->plan, row);
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
    reef_status status =
        to ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a result of %td ranks", size);
    status = s->engine->ops->agree(s->engine, status, error);
    for (ptrdiff_t r = 0; status == REEF_OK && r < size; r++) {
        ptrdiff_t m0 = 0;
        ptrdiff_t m1 = 0;
        reef_shard_range(s, r, &m0, &m1);
        to[r] = (unsigned char *)out + (size_t)m0 * s->number;
        s->parcels[r] = (reef_parcel){&from, s->m1 > s->m0, (size_t)(s->m1 - s->m0) * s->number};
        s->parcels[size + r] = (reef_parcel){&to[r], m1 > m0, (size_t)(m1 - m0) * s->number};
    }
    if (status == REEF_OK) {
        status = s->engine->ops->all_to_all(s->engine, s->parcels, s->parcels + size, error);
    }
    rfi_release(s->context, (void *)to);
    return status;
}

/* ---- this rank's slice ---- */

static reef_status read_slice(void *user, const rfi_stretch *at, const void **rows, reef_error *error)
{
    const reef_shard *s = user;
    (void)error; /* it is there */
    for (ptrdiff_t l = 0; l < s->rows; l++) {
        rows[l] = (const unsigned char *)s->pieces[l] + (size_t)(at->m0 - s->m0) * s->number;
    }
    return REEF_OK;
}

static void *place(void *user, const rfi_stretch *at)
{
    const reef_shard *s = user;
    return s->out + (size_t)(at->m0 - s->m0) * s->number;
}

static reef_status merge(void *user, void *bytes, size_t count, reef_error *error)
{
    const reef_engine *engine = ((const reef_shard *)user)->engine;
    return engine->ops->merge(engine, bytes, count, error);
}

static reef_status agree(void *user, reef_status mine, reef_error *error)
{
    const reef_engine *engine = ((const reef_shard *)user)->engine;
    return engine->ops->agree(engine, mine, error);
}

static reef_status aggregate(reef_shard *s, void *slice, reef_error *error)
{
    const rfi_across across = {.user = s,
                               .rank = s->engine->rank,
                               .ranks = s->engine->size,
                               .m0 = s->m0,
                               .m1 = s->m1,
                               .merge = merge,
                               .agree = agree,
                               .room = s->room};
    const rfi_drive drive = {.plan = s->plan, .user = s, .read = read_slice, .place = place, .across = &across};
    s->out = slice;
    return rfi_drive_run(&drive, error);
}

/* ---- apply ---- */

static reef_status check_apply(const reef_shard *s, const reef_input *input, const void *slice,
                               const reef_report *report, reef_error *error)
{
    reef_status fits = rfi_check_size(input ? input->size : 0, sizeof *input, "reef_input", error);
    if (fits != REEF_OK) {
        return fits;
    }
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

/* Each rank's system has drawn another seed; that of rank 0 counts. */
static reef_status share_seed(const reef_engine *engine, uint64_t *seed, reef_error *error)
{
    *seed = engine->rank == 0 ? *seed : 0;
    return engine->ops->merge(engine, seed, sizeof *seed, error);
}

reef_status reef_shard_apply(reef_shard *shard, const reef_input *input, void *slice, reef_report *report,
                             reef_error *error)
{
    if (!shard) {
        return rfi_fail(error, REEF_E_ARG, "reef_shard_apply: shard is NULL");
    }
    const reef_engine *engine = shard->engine;
    reef_status status = check_apply(shard, input, slice, report, error);
    uint64_t *seed = status == REEF_OK ? rfi_state_first_seed(input->state) : NULL;
    if (seed) {
        status = engine->ops->agree(engine, status, error);
        if (status == REEF_OK) {
            status = share_seed(engine, seed, error);
        }
        if (status != REEF_OK) {
            return status; /* on all ranks: one that has failed before is at its agreement below */
        }
    }
    if (status == REEF_OK) {
        status = reef_plan_begin(shard->plan, input, report, error);
    }
    status = engine->ops->agree(engine, status, error);
    if (status != REEF_OK) {
        return status;
    }
    status = transpose(shard, input->rows, error);
    if (status != REEF_OK) {
        return status;
    }
    return aggregate(shard, slice, error);
}
