/* Aggregation of models whose tensors have different types, or 16 or 8 bits, without a wide copy of the rows: the plan reads them as they are if
 * it can, otherwise in pieces that are widened as they come. Widening is exact; the result is rounded once, piece by piece. */
#include "ffi/handles.h"

#include "agg/driver.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/pool.h"
#include "io/precision.h"
#include "num/kernels/halves.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Below this many numbers waking other threads costs more than it saves. */
static const ptrdiff_t parallel_numbers = (ptrdiff_t)1 << 19;

/* What one worker has under way. */
typedef struct widening_room {
    unsigned char *raw;  /* one piece, of the type of the segment under way */
    unsigned char *wide; /* rows x piece, of the plan's type; NULL if the plan reads all rows as they are */
    unsigned char *out;  /* one piece */
} widening_room;

typedef struct widening {
    const rfi_ffi_job *job;
    const reef_plan *plan;
    bool widens; /* some rows are not read as they are */
    ptrdiff_t piece;
    ptrdiff_t workers;
    size_t width;        /* bytes of a number of the plan's type */
    widening_room *room; /* workers */
} widening;

static rfi_type type_of(int type)
{
    static const rfi_type types[] = {
        [REEF_FFI_F32] = RFI_F32,   [REEF_FFI_F64] = RFI_F64,         [REEF_FFI_F16] = RFI_F16,
        [REEF_FFI_BF16] = RFI_BF16, [REEF_FFI_F8_E4M3] = RFI_F8_E4M3, [REEF_FFI_F8_E5M2] = RFI_F8_E5M2};
    assert(type >= REEF_FFI_F32 && type <= REEF_FFI_F8_E5M2); /* the arguments have been checked */
    return types[type];
}

static void widen(const widening *w, rfi_type type, const void *raw, ptrdiff_t count, unsigned char *to)
{
    if (w->job->dtype == REEF_F64) {
        rfi_widen_to_f64(type, raw, count, (double *)(void *)to);
    } else if (!(type == RFI_F16 && rfi_halves_widen(raw, count, (float *)(void *)to)) &&
               !(type == RFI_BF16 && rfi_bf16_widen(raw, count, (float *)(void *)to))) {
        rfi_widen_to_f32(type, raw, count, (float *)(void *)to);
    }
}

static void narrow(const widening *w, rfi_type type, const widening_room *room, ptrdiff_t count, void *to)
{
    if (w->job->dtype == REEF_F64) {
        rfi_narrow_from_f64(type, (const double *)(const void *)room->out, count, to);
    } else if (!(type == RFI_F16 && rfi_halves_narrow((const float *)(const void *)room->out, count, to)) &&
               !(type == RFI_BF16 && rfi_bf16_narrow((const float *)(const void *)room->out, count, to))) {
        rfi_narrow_from_f32(type, (const float *)(const void *)room->out, count, to);
    }
}

/* The caller's memory need not be aligned; what is not is copied. */
static const void *aligned(const widening_room *room, const unsigned char *row, ptrdiff_t count, size_t width)
{
    if ((uintptr_t)row % width == 0) {
        return row;
    }
    memcpy(room->raw, row, (size_t)count * width);
    return room->raw;
}

/* Asks for what comes after a piece, which need not exist: as many bytes, so that they are there when it is their turn. */
static void look_ahead(const unsigned char *row, size_t bytes)
{
    const size_t line = 64;
    for (size_t at = 0; at < bytes; at += line) {
        __builtin_prefetch((const void *)((uintptr_t)row + bytes + at), 0, 2);
    }
}

static reef_status read_piece(void *user, const rfi_stretch *at, const void **rows, reef_error *error)
{
    const widening *w = user;
    const rfi_ffi_job *job = w->job;
    const widening_room *room = &w->room[at->worker];
    rfi_type type = type_of(job->types[at->segment]);
    size_t width = rfi_type_size(type);
    ptrdiff_t count = at->m1 - at->m0;
    (void)error; /* the rows are there */
    assert(count >= 1 && count <= w->piece && width <= w->width && at->m1 <= job->lengths[at->segment]);
    for (ptrdiff_t l = 0; l < job->rows; l++) {
        const unsigned char *row = job->data[at->segment * job->rows + l];
        unsigned char *to = room->wide + (size_t)(l * w->piece) * w->width;
        row += (size_t)at->m0 * width;
        rows[l] = row;
        if (!rfi_plan_reads(w->plan, type)) {
            look_ahead(row, (size_t)count * width);
            widen(w, type, aligned(room, row, count, width), count, to);
            rows[l] = to;
        }
    }
    return REEF_OK;
}

static rfi_type type_read(void *user, const rfi_stretch *at)
{
    const widening *w = user;
    rfi_type type = type_of(w->job->types[at->segment]);
    return rfi_plan_reads(w->plan, type) ? type : (w->job->dtype == REEF_F64 ? RFI_F64 : RFI_F32);
}

static unsigned char *out_at(const widening *w, const rfi_stretch *at)
{
    size_t width = rfi_type_size(type_of(w->job->types[at->segment]));
    return (unsigned char *)w->job->out[at->segment] + (size_t)at->m0 * width;
}

static void *place(void *user, const rfi_stretch *at)
{
    const widening *w = user;
    return rfi_ffi_is_plain(w->job, at->segment) ? out_at(w, at) : w->room[at->worker].out;
}

static reef_status write_piece(void *user, const rfi_stretch *at, reef_error *error)
{
    const widening *w = user;
    rfi_type type = type_of(w->job->types[at->segment]);
    (void)error;
    assert(at->m1 - at->m0 <= w->piece && at->worker < w->workers);
    if (!rfi_ffi_is_plain(w->job, at->segment)) {
        const widening_room *room = &w->room[at->worker];
        unsigned char *out = out_at(w, at);
        bool direct = (uintptr_t)out % rfi_type_size(type) == 0;
        narrow(w, type, room, at->m1 - at->m0, direct ? out : room->raw);
        if (!direct) {
            memcpy(out, room->raw, (size_t)(at->m1 - at->m0) * rfi_type_size(type));
        }
    }
    return REEF_OK;
}

static void lay_out(widening *w, rfi_arena *arena)
{
    w->room = rfi_arena_take(arena, w->workers, 1, sizeof *w->room);
    for (ptrdiff_t i = 0; i < w->workers; i++) {
        widening_room measured = {0};
        widening_room *room = w->room ? &w->room[i] : &measured;
        room->raw = rfi_arena_take(arena, w->piece, 1, w->width);
        room->wide = rfi_arena_take(arena, w->widens ? w->job->rows : 0, w->piece, w->width);
        room->out = rfi_arena_take(arena, w->piece, 1, w->width);
    }
}

/* A result must not overlap a row that is in use: rows may be read once more after some of it was written. */
static reef_status check_places(const widening *w, reef_error *error)
{
    const rfi_ffi_job *job = w->job;
    for (ptrdiff_t s = 0; s < job->segments; s++) {
        uintptr_t bytes = (uintptr_t)job->lengths[s] * rfi_type_size(type_of(job->types[s]));
        uintptr_t out = (uintptr_t)job->out[s];
        for (ptrdiff_t l = 0; l < job->rows; l++) {
            uintptr_t row = (uintptr_t)job->data[s * job->rows + l];
            if (rfi_plan_uses(w->plan, l) && row < out + bytes && out < row + bytes) {
                return rfi_fail(error, REEF_E_ARG, "out overlaps row %td of segment %td", l, s);
            }
        }
    }
    return REEF_OK;
}

static reef_status run(widening *w, reef_plan *plan, const reef_input *input, reef_report *report, reef_error *error)
{
    const reef_context *context = rfi_agg_context(w->job->agg);
    rfi_arena measure = {0};
    for (ptrdiff_t s = 0; s < w->job->segments; s++) { /* no more than the longest tensor needs */
        w->piece = w->job->lengths[s] > w->piece ? w->job->lengths[s] : w->piece;
        w->widens = w->widens || !rfi_plan_reads(plan, type_of(w->job->types[s]));
    }
    w->plan = plan;
    ptrdiff_t step = w->widens ? rfi_plan_step(plan, report != NULL) : rfi_plan_room(plan);
    w->piece = step < w->piece ? step : w->piece;
    lay_out(w, &measure);
    void *memory = measure.overflow ? NULL : rfi_allocate(context, (size_t)measure.used + RFI_ALIGNMENT);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to widen %td rows", w->job->rows);
    }
    lay_out(w, &(rfi_arena){.base = rfi_align(memory)});
    const rfi_drive drive = {.plan = plan,
                             .user = w,
                             .read = read_piece,
                             .type = type_read,
                             .place = place,
                             .write = write_piece,
                             .workers = w->workers,
                             .step = w->piece};
    reef_status status = reef_plan_begin(plan, input, report, error);
    if (status == REEF_OK) {
        status = check_places(w, error);
    }
    if (status == REEF_OK) {
        status = rfi_drive_run(&drive, error);
    }
    rfi_release(context, memory);
    return status;
}

/* All that the context has, unless there is little to do. Whether lengths are sane is for the plan to say. */
static ptrdiff_t workers_for(const rfi_ffi_job *job)
{
    ptrdiff_t workers = rfi_context_workers(rfi_agg_context(job->agg));
    ptrdiff_t numbers = 0;
    for (ptrdiff_t s = 0; s < job->segments; s++) {
        ptrdiff_t product = 0;
        if (!rfi_mul(job->lengths[s], job->rows, &product) || !rfi_add(numbers, product, &numbers)) {
            return 1;
        }
    }
    return numbers < parallel_numbers || workers < 1 ? 1 : (workers > 4096 ? 4096 : workers);
}

reef_status rfi_ffi_widened(const rfi_ffi_job *job, const reef_input *input, reef_report *report, reef_error *error)
{
    reef_plan *plan = NULL;
    assert(job->rows >= 1 && job->segments >= 1);
    widening w = {.job = job, .workers = workers_for(job), .width = rfi_dtype_size(job->dtype)};
    reef_shape shape = {.rows = job->rows,
                        .segments = job->segments,
                        .lengths = job->lengths,
                        .dtype = job->dtype,
                        .workers = w.workers};
    reef_status status = reef_plan_create(&plan, job->agg, &shape, error);
    if (status == REEF_OK) {
        status = run(&w, plan, input, report, error);
    }
    reef_plan_destroy(&plan);
    return status;
}
