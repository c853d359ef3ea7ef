/* Aggregation through handles and numbers. */
#include "ffi/handles.h"

#include "agg/driver.h"
#include "base/error.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

reef_status rfi_ffi_tell(reef_status status, const reef_error *error, char *text, size_t room)
{
    if (status != REEF_OK && text && room > 0) {
        size_t length = strlen(error->text);
        length = length < room ? length : room - 1;
        memcpy(text, error->text, length);
        text[length] = '\0';
    }
    return status;
}

reef_status reef_ffi_context(reef_context **place, ptrdiff_t threads, char *text, size_t room)
{
    reef_error error = {0};
    reef_status status = reef_context_create(place, NULL, &error);
    if (status == REEF_OK) {
        status = reef_context_set_threads(*place, threads, &error);
        if (status != REEF_OK) {
            reef_context_destroy(place);
        }
    }
    return rfi_ffi_tell(status, &error, text, room);
}

reef_status reef_ffi_plugin(reef_context *context, const char *path, char *text, size_t room)
{
    reef_error error = {0};
    reef_status status = reef_plugin_load(context, path, &error);
    return rfi_ffi_tell(status, &error, text, room);
}

reef_status reef_ffi_agg(reef_context *context, reef_agg **place, const char *spec, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_ffi_tell(reef_agg_create(context, place, spec, &error), &error, text, room);
}

reef_status reef_ffi_report(reef_context *context, reef_report **place, ptrdiff_t rows, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_ffi_tell(reef_report_create(context, place, rows, &error), &error, text, room);
}

static reef_dtype dtype_of(int type)
{
    return type == REEF_FFI_F64 ? REEF_F64 : REEF_F32;
}

static reef_status check_type(int type, reef_error *error)
{
    return type >= REEF_FFI_F32 && type <= REEF_FFI_F8_E5M2
               ? REEF_OK
               : rfi_fail(error, REEF_E_ARG, "unknown number type %d", type);
}

reef_status reef_ffi_state(const reef_agg *agg, reef_state **place, ptrdiff_t rows, ptrdiff_t segments,
                           const ptrdiff_t *lengths, int type, char *text, size_t room)
{
    reef_error error = {0};
    reef_shape shape = {.rows = rows, .segments = segments, .lengths = lengths, .dtype = dtype_of(type)};
    reef_status status = check_type(type, &error);
    if (status == REEF_OK) {
        status = reef_state_create(place, agg, &shape, &error);
    }
    return rfi_ffi_tell(status, &error, text, room);
}

reef_status reef_ffi_state_save(const reef_state *state, void *bytes, size_t size, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_ffi_tell(reef_state_save(state, bytes, size, &error), &error, text, room);
}

reef_status reef_ffi_state_load(reef_state *state, const void *bytes, size_t size, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_ffi_tell(reef_state_load(state, bytes, size, &error), &error, text, room);
}

reef_status reef_ffi_set_centre(reef_state *state, ptrdiff_t segment, const void *centre, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_ffi_tell(reef_state_set_centre(state, segment, centre, &error), &error, text, room);
}

bool rfi_ffi_is_plain(const rfi_ffi_job *job, ptrdiff_t segment)
{
    assert(segment >= 0 && segment < job->segments);
    return job->types[segment] == (job->dtype == REEF_F64 ? REEF_FFI_F64 : REEF_FFI_F32);
}

/* One type, float or double: the plan does it. */
static reef_status apply_plain(const rfi_ffi_job *job, const reef_input *input, reef_report *report, reef_error *error)
{
    reef_plan *plan = NULL;
    reef_shape shape = {.rows = job->rows, .segments = job->segments, .lengths = job->lengths, .dtype = job->dtype};
    const void *const **tensors = rfi_allocate_many(rfi_agg_context(job->agg), job->segments, sizeof *tensors);
    if (!tensors) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td tensors", job->segments);
    }
    for (ptrdiff_t s = 0; s < job->segments; s++) {
        tensors[s] = job->data + s * job->rows;
    }
    reef_status status = reef_plan_create(&plan, job->agg, &shape, error);
    if (status == REEF_OK) {
        status = reef_plan_apply_segments(plan, input, tensors, job->out, report, error);
    }
    reef_plan_destroy(&plan);
    rfi_release(rfi_agg_context(job->agg), (void *)tensors);
    return status;
}

static reef_status check(const rfi_ffi_job *job, reef_error *error)
{
    ptrdiff_t pointers = 0;
    reef_status status = REEF_OK;
    if (!job->agg || !job->data || !job->out || !job->lengths || !job->types) {
        return rfi_fail(error, REEF_E_ARG,
                        "an aggregation needs a rule, data, lengths, types and a place for the result");
    }
    if (job->rows < 1 || job->segments < 1 || !rfi_mul(job->rows, job->segments, &pointers)) {
        return rfi_fail(error, REEF_E_ARG, "%td rows of %td tensors; there must be at least one of both", job->rows,
                        job->segments);
    }
    for (ptrdiff_t i = 0; i < pointers; i++) {
        if (!job->data[i] || !job->out[i / job->rows]) {
            return rfi_fail(error, REEF_E_ARG, "tensor %td of row %td, or its result, is NULL", i / job->rows,
                            i % job->rows);
        }
    }
    for (ptrdiff_t s = 0; status == REEF_OK && s < job->segments; s++) {
        status = check_type(job->types[s], error);
    }
    return status;
}

reef_status reef_ffi_apply(const reef_agg *agg, ptrdiff_t rows, ptrdiff_t segments, const ptrdiff_t *lengths,
                           const int *types, const void *const *data, void *const *out, const double *weights,
                           ptrdiff_t self, int64_t round, reef_state *state, reef_report *report, char *text,
                           size_t room)
{
    return reef_ffi_apply_senders(agg, rows, segments, lengths, types, data, out, weights, self, round, NULL, 0, state,
                                  report, text, room);
}

reef_status reef_ffi_apply_senders(const reef_agg *agg, ptrdiff_t rows, ptrdiff_t segments, const ptrdiff_t *lengths,
                                   const int *types, const void *const *data, void *const *out, const double *weights,
                                   ptrdiff_t self, int64_t round, const int64_t *ids, double step, reef_state *state,
                                   reef_report *report, char *text, size_t room)
{
    reef_error error = {0};
    rfi_ffi_job job = {
        .agg = agg, .rows = rows, .segments = segments, .lengths = lengths, .types = types, .data = data, .out = out};
    reef_input input = {.weights = weights,
                        .ids = ids,
                        .has_self = self >= 0,
                        .self = self,
                        .round = round,
                        .step = step,
                        .state = state};
    reef_status status = check(&job, &error);
    if (status == REEF_OK) {
        bool plain = true;
        for (ptrdiff_t s = 0; s < segments; s++) {
            job.dtype = types[s] == REEF_FFI_F64 ? REEF_F64 : job.dtype;
        }
        for (ptrdiff_t s = 0; s < segments; s++) {
            plain = plain && rfi_ffi_is_plain(&job, s);
        }
        status = plain ? apply_plain(&job, &input, report, &error) : rfi_ffi_widened(&job, &input, report, &error);
    }
    return rfi_ffi_tell(status, &error, text, room);
}
