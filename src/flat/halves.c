/* Aggregation of float16 and bfloat16 without a float32 copy of the rows: the streaming calls of a plan, in pieces that are widened
 * as they come. Widening is exact; the result is rounded once. */
#include "flat/flat.h"

#include "agg/pipeline.h"
#include "base/error.h"
#include "base/memory.h"
#include "io/half.h"

#include <string.h>

typedef enum visit_kind { OBSERVE, COMBINE, SCAN } visit_kind;

typedef struct walk {
    const rfi_halves *job;
    reef_plan *plan;
    ptrdiff_t piece;
    uint16_t *raw;     /* one piece */
    float *wide;       /* rows x piece */
    const void **rows; /* pointers into wide */
    float *out;        /* one piece */
} walk;

static void widen(int type, const uint16_t *raw, ptrdiff_t count, float *wide)
{
    if (type == REEF_FLAT_F16) {
        rfi_widen_f16(raw, count, wide);
    } else {
        rfi_widen_bf16(raw, count, wide);
    }
}

static void narrow(int type, const float *wide, ptrdiff_t count, uint16_t *raw)
{
    if (type == REEF_FLAT_F16) {
        rfi_narrow_f16(wide, count, raw);
    } else {
        rfi_narrow_bf16(wide, count, raw);
    }
}

/* Coordinates m0..m1 of all rows; the caller's memory need not be aligned. */
static void read_piece(walk *w, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1)
{
    const rfi_halves *job = w->job;
    for (ptrdiff_t l = 0; l < job->rows; l++) {
        const unsigned char *row = job->data[segment * job->rows + l];
        memcpy(w->raw, row + (size_t)m0 * sizeof *w->raw, (size_t)(m1 - m0) * sizeof *w->raw);
        widen(job->type, w->raw, m1 - m0, w->wide + l * w->piece);
    }
}

static reef_status visit(walk *w, visit_kind kind, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1, reef_error *error)
{
    read_piece(w, segment, m0, m1);
    if (kind == OBSERVE) {
        return reef_plan_observe(w->plan, 0, segment, m0, m1, w->rows, error);
    }
    if (kind == SCAN) {
        return reef_plan_scan(w->plan, segment, m0, m1, w->rows, error);
    }
    reef_status status = reef_plan_combine(w->plan, 0, segment, m0, m1, w->rows, w->out, error);
    if (status == REEF_OK) {
        unsigned char *out = w->job->out[segment];
        narrow(w->job->type, w->out, m1 - m0, w->raw);
        memcpy(out + (size_t)m0 * sizeof *w->raw, w->raw, (size_t)(m1 - m0) * sizeof *w->raw);
    }
    return status;
}

/* All pieces in order. Distances that overflow may be the fault of a row with NaN further on: only then the walk goes on. */
static reef_status visit_all(walk *w, visit_kind kind, reef_error *error)
{
    reef_status first = REEF_OK;
    reef_error ignored = {0};
    for (ptrdiff_t s = 0; s < w->job->segments; s++) {
        ptrdiff_t length = w->job->lengths[s];
        for (ptrdiff_t m0 = 0; m0 < length; m0 += w->piece) {
            ptrdiff_t m1 = length - m0 < w->piece ? length : m0 + w->piece;
            reef_status status = visit(w, kind, s, m0, m1, first == REEF_OK ? error : &ignored);
            first = first == REEF_OK ? status : first;
            if (first != REEF_OK && first != REEF_E_FAR) {
                return first;
            }
        }
    }
    return first;
}

static reef_status observe_and_combine(walk *w, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t pass = 0; status == REEF_OK && pass < reef_plan_passes(w->plan); pass++) {
        status = visit_all(w, OBSERVE, error);
        if (status == REEF_OK && !reef_plan_suspect(w->plan)) {
            status = reef_plan_solve(w->plan, error);
        }
        if (reef_plan_suspect(w->plan)) {
            return status;
        }
    }
    return status == REEF_OK ? visit_all(w, COMBINE, error) : status;
}

static reef_status stream(walk *w, const reef_input *input, reef_report *report, reef_error *error)
{
    reef_status status = reef_plan_begin(w->plan, input, report, error);
    if (status != REEF_OK) {
        return status;
    }
    status = observe_and_combine(w, error);
    if (reef_plan_suspect(w->plan)) {
        status = visit_all(w, SCAN, error);
        status = status == REEF_OK ? reef_plan_drop(w->plan, error) : status;
        status = status == REEF_OK ? observe_and_combine(w, error) : status;
    }
    return status == REEF_OK ? reef_plan_end(w->plan, error) : status;
}

static void lay_out(walk *w, rfi_arena *arena)
{
    w->raw = rfi_arena_take(arena, w->piece, 1, sizeof *w->raw);
    w->wide = rfi_arena_take(arena, w->job->rows, w->piece, sizeof *w->wide);
    w->rows = rfi_arena_take(arena, w->job->rows, 1, sizeof *w->rows);
    w->out = rfi_arena_take(arena, w->piece, 1, sizeof *w->out);
}

static reef_status run(walk *w, const reef_input *input, reef_report *report, reef_error *error)
{
    const reef_context *context = w->job->agg->context;
    rfi_arena measure = {0};
    for (ptrdiff_t s = 0; s < w->job->segments; s++) { /* no more than the longest tensor needs */
        w->piece = w->job->lengths[s] > w->piece ? w->job->lengths[s] : w->piece;
    }
    w->piece = reef_plan_piece(w->plan) < w->piece ? reef_plan_piece(w->plan) : w->piece;
    lay_out(w, &measure);
    void *memory = measure.overflow ? NULL : rfi_allocate(context, (size_t)measure.used + RFI_ALIGNMENT);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory to widen %td rows", w->job->rows);
    }
    lay_out(w, &(rfi_arena){.base = rfi_align(memory)});
    for (ptrdiff_t l = 0; l < w->job->rows; l++) {
        w->rows[l] = w->wide + l * w->piece;
    }
    reef_status status = stream(w, input, report, error);
    rfi_release(context, memory);
    return status;
}

reef_status rfi_flat_halves(const rfi_halves *halves, const reef_input *input, reef_report *report, reef_error *error)
{
    walk w = {.job = halves};
    reef_shape shape = {.rows = halves->rows,
                        .segments = halves->segments,
                        .lengths = halves->lengths,
                        .dtype = REEF_F32,
                        .workers = 1};
    reef_status status = reef_plan_create(&w.plan, halves->agg, &shape, error);
    if (status == REEF_OK) {
        status = run(&w, input, report, error);
    }
    reef_plan_destroy(&w.plan);
    return status;
}
