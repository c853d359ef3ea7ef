/* Aggregation through handles and numbers. */
#include "flat/flat.h"

#include "agg/pipeline.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

reef_status rfi_flat_tell(reef_status status, const reef_error *error, char *text, size_t room)
{
    if (status != REEF_OK && text && room > 0) {
        size_t length = strlen(error->text);
        length = length < room ? length : room - 1;
        memcpy(text, error->text, length);
        text[length] = '\0';
    }
    return status;
}

reef_status reef_flat_context(reef_context **place, ptrdiff_t threads, char *text, size_t room)
{
    reef_error error = {0};
    reef_status status = reef_context_create(place, NULL, &error);
    if (status == REEF_OK) {
        status = reef_context_set_threads(*place, threads, &error);
        if (status != REEF_OK) {
            reef_context_destroy(place);
        }
    }
    return rfi_flat_tell(status, &error, text, room);
}

reef_status reef_flat_agg(reef_context *context, reef_agg **place, const char *spec, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_flat_tell(reef_agg_create_in(context, place, spec, &error), &error, text, room);
}

reef_status reef_flat_report(reef_context *context, reef_report **place, ptrdiff_t rows, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_flat_tell(reef_report_create_in(context, place, rows, &error), &error, text, room);
}

static reef_dtype dtype_of(int type)
{
    return type == REEF_FLAT_F64 ? REEF_F64 : REEF_F32;
}

static reef_status check_type(int type, reef_error *error)
{
    return type >= REEF_FLAT_F32 && type <= REEF_FLAT_BF16
               ? REEF_OK
               : rfi_fail(error, REEF_E_ARG, "there is no type of numbers %d", type);
}

reef_status reef_flat_state(const reef_agg *agg, reef_state **place, ptrdiff_t rows, ptrdiff_t segments,
                            const ptrdiff_t *lengths, int type, char *text, size_t room)
{
    reef_error error = {0};
    reef_shape shape = {.rows = rows, .segments = segments, .lengths = lengths, .dtype = dtype_of(type)};
    reef_status status = check_type(type, &error);
    status = status == REEF_OK ? reef_state_create(place, agg, &shape, &error) : status;
    return rfi_flat_tell(status, &error, text, room);
}

reef_status reef_flat_set_centre(reef_state *state, ptrdiff_t segment, const void *centre, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_flat_tell(reef_state_set_centre(state, segment, centre, &error), &error, text, room);
}

/* float32 and float64: the plan does it. */
static reef_status apply_plain(const rfi_halves *job, const reef_input *input, reef_report *report, reef_error *error)
{
    reef_plan *plan = NULL;
    reef_shape shape = {
        .rows = job->rows, .segments = job->segments, .lengths = job->lengths, .dtype = dtype_of(job->type)};
    const void *const **tensors = rfi_allocate_many(job->agg->context, job->segments, sizeof *tensors);
    if (!tensors) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td tensors", job->segments);
    }
    for (ptrdiff_t s = 0; s < job->segments; s++) {
        tensors[s] = job->data + s * job->rows;
    }
    reef_status status = reef_plan_create(&plan, job->agg, &shape, error);
    if (status == REEF_OK) {
        status = reef_plan_apply_segments(plan, input, tensors, job->out, report, error);
    }
    reef_plan_destroy(&plan);
    rfi_release(job->agg->context, (void *)tensors);
    return status;
}

static reef_status check(const rfi_halves *job, reef_error *error)
{
    ptrdiff_t pointers = 0;
    if (!job->agg || !job->data || !job->out || !job->lengths) {
        return rfi_fail(error, REEF_E_ARG, "an aggregation needs a rule, data, lengths and a place for the result");
    }
    if (job->rows < 1 || job->segments < 1 || !rfi_mul(job->rows, job->segments, &pointers)) {
        return rfi_fail(error, REEF_E_ARG, "%td rows of %td tensors; there must be at least one of both", job->rows,
                        job->segments);
    }
    for (ptrdiff_t i = 0; i < pointers; i++) {
        if (!job->data[i] || !job->out[i / job->rows]) {
            return rfi_fail(error, REEF_E_ARG, "tensor %td of row %td, or its result, has no memory", i / job->rows,
                            i % job->rows);
        }
    }
    return check_type(job->type, error);
}

reef_status reef_flat_apply(const reef_agg *agg, ptrdiff_t rows, ptrdiff_t segments, const ptrdiff_t *lengths, int type,
                            const void *const *data, void *const *out, const double *weights, ptrdiff_t self,
                            int64_t round, reef_state *state, reef_report *report, char *text, size_t room)
{
    reef_error error = {0};
    rfi_halves job = {agg, rows, segments, lengths, type, data, out};
    reef_input input = {.weights = weights, .has_self = self >= 0, .self = self, .round = round, .state = state};
    reef_status status = check(&job, &error);
    if (status == REEF_OK) {
        bool plain = type == REEF_FLAT_F32 || type == REEF_FLAT_F64;
        status = plain ? apply_plain(&job, &input, report, &error) : rfi_flat_halves(&job, &input, report, &error);
    }
    return rfi_flat_tell(status, &error, text, room);
}
