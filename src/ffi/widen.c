/* Aggregation of models whose tensors have different types, or 16 bits, without a wide copy of the rows: in pieces that are widened as
 * they come. Widening is exact; the result is rounded once. */
#include "ffi/handles.h"

#include "agg/driver.h"
#include "base/error.h"
#include "base/memory.h"
#include "io/precision.h"
#include "num/kernels/halves.h"

#include <assert.h>
#include <string.h>

typedef struct widening {
    const rfi_ffi_job *job;
    ptrdiff_t piece;
    size_t width;        /* bytes of a number of the plan's type */
    unsigned char *raw;  /* one piece, of the type of the segment under way */
    unsigned char *wide; /* rows x piece, of the plan's type */
    unsigned char *out;  /* one piece */
} widening;

static rfi_type type_of(int type)
{
    static const rfi_type types[] = {
        [REEF_FFI_F32] = RFI_F32, [REEF_FFI_F64] = RFI_F64, [REEF_FFI_F16] = RFI_F16, [REEF_FFI_BF16] = RFI_BF16};
    assert(type >= REEF_FFI_F32 && type <= REEF_FFI_BF16); /* the arguments have been checked */
    return types[type];
}

static void widen(const widening *w, rfi_type type, ptrdiff_t count, unsigned char *to)
{
    if (w->job->dtype == REEF_F64) {
        rfi_widen_to_f64(type, w->raw, count, (double *)(void *)to);
    } else if (type != RFI_F16 ||
               !rfi_halves_widen((const uint16_t *)(const void *)w->raw, count, (float *)(void *)to)) {
        rfi_widen_to_f32(type, w->raw, count, (float *)(void *)to);
    }
}

static void narrow(const widening *w, rfi_type type, ptrdiff_t count)
{
    if (w->job->dtype == REEF_F64) {
        rfi_narrow_from_f64(type, (const double *)(const void *)w->out, count, w->raw);
    } else {
        rfi_narrow_from_f32(type, (const float *)(const void *)w->out, count, w->raw);
    }
}

/* Pieces of the plan's own type are read where they are; the caller's memory need not be aligned. */
static reef_status read_piece(void *user, const rfi_stretch *at, const void **rows, reef_error *error)
{
    const widening *w = user;
    const rfi_ffi_job *job = w->job;
    rfi_type type = type_of(job->types[at->segment]);
    size_t width = rfi_type_size(type);
    ptrdiff_t count = at->m1 - at->m0;
    (void)error; /* the rows are there */
    assert(count >= 1 && count <= w->piece && width <= w->width && at->m1 <= job->lengths[at->segment]);
    for (ptrdiff_t l = 0; l < job->rows; l++) {
        const unsigned char *row = job->data[at->segment * job->rows + l];
        unsigned char *to = w->wide + (size_t)(l * w->piece) * w->width;
        rows[l] = row + (size_t)at->m0 * width;
        if (!rfi_ffi_is_plain(job, at->segment)) {
            memcpy(w->raw, rows[l], (size_t)count * width);
            widen(w, type, count, to);
            rows[l] = to;
        }
    }
    return REEF_OK;
}

static unsigned char *out_at(const widening *w, const rfi_stretch *at)
{
    size_t width = rfi_type_size(type_of(w->job->types[at->segment]));
    return (unsigned char *)w->job->out[at->segment] + (size_t)at->m0 * width;
}

static void *place(void *user, const rfi_stretch *at)
{
    const widening *w = user;
    return rfi_ffi_is_plain(w->job, at->segment) ? out_at(w, at) : w->out;
}

static reef_status write_piece(void *user, const rfi_stretch *at, reef_error *error)
{
    const widening *w = user;
    rfi_type type = type_of(w->job->types[at->segment]);
    (void)error;
    assert(at->m1 - at->m0 <= w->piece && at->worker == 0); /* one piece at a time */
    if (!rfi_ffi_is_plain(w->job, at->segment)) {
        narrow(w, type, at->m1 - at->m0);
        memcpy(out_at(w, at), w->raw, (size_t)(at->m1 - at->m0) * rfi_type_size(type));
    }
    return REEF_OK;
}

static void lay_out(widening *w, rfi_arena *arena)
{
    w->raw = rfi_arena_take(arena, w->piece, 1, w->width);
    w->wide = rfi_arena_take(arena, w->job->rows, w->piece, w->width);
    w->out = rfi_arena_take(arena, w->piece, 1, w->width);
}

static reef_status run(widening *w, reef_plan *plan, const reef_input *input, reef_report *report, reef_error *error)
{
    const reef_context *context = rfi_agg_context(w->job->agg);
    rfi_arena measure = {0};
    for (ptrdiff_t s = 0; s < w->job->segments; s++) { /* no more than the longest tensor needs */
        w->piece = w->job->lengths[s] > w->piece ? w->job->lengths[s] : w->piece;
    }
    w->piece = reef_plan_piece(plan) < w->piece ? reef_plan_piece(plan) : w->piece;
    lay_out(w, &measure);
    void *memory = measure.overflow ? NULL : rfi_allocate(context, (size_t)measure.used + RFI_ALIGNMENT);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to widen %td rows", w->job->rows);
    }
    lay_out(w, &(rfi_arena){.base = rfi_align(memory)});
    const rfi_drive drive = {
        .plan = plan, .user = w, .read = read_piece, .place = place, .write = write_piece, .step = w->piece};
    reef_status status = reef_plan_begin(plan, input, report, error);
    if (status == REEF_OK) {
        status = rfi_drive_run(&drive, error);
    }
    rfi_release(context, memory);
    return status;
}

reef_status rfi_ffi_widened(const rfi_ffi_job *job, const reef_input *input, reef_report *report, reef_error *error)
{
    reef_plan *plan = NULL;
    assert(job->rows >= 1 && job->segments >= 1);
    widening w = {.job = job, .width = rfi_dtype_size(job->dtype)};
    reef_shape shape = {
        .rows = job->rows, .segments = job->segments, .lengths = job->lengths, .dtype = job->dtype, .workers = 1};
    reef_status status = reef_plan_create(&plan, job->agg, &shape, error);
    if (status == REEF_OK) {
        status = run(&w, plan, input, report, error);
    }
    reef_plan_destroy(&plan);
    return status;
}
