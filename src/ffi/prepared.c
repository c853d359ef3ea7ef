/* Many aggregations of one small shape: what every call would make anew is made once. */
#include "ffi/handles.h"

#include "agg/driver.h"
#include "base/error.h"
#include "base/memory.h"

#include <assert.h>

struct reef_ffi_prepared {
    const reef_context *context;
    reef_plan *plan;
    ptrdiff_t count;
    size_t bytes; /* of a row */
    const void *rows[];
};

void reef_ffi_prepared_destroy(reef_ffi_prepared **prepared)
{
    if (!prepared || !*prepared) {
        return;
    }
    reef_ffi_prepared *ended = *prepared;
    *prepared = NULL;
    reef_plan_destroy(&ended->plan);
    rfi_release(ended->context, ended);
}

static reef_status check(const reef_agg *agg, reef_ffi_prepared *const *place, int type, reef_error *error)
{
    if (!agg || !place) {
        return rfi_fail(error, REEF_E_ARG, "reef_ffi_prepare: %s is NULL", agg ? "place" : "the rule");
    }
    if (type != REEF_FFI_F32 && type != REEF_FFI_F64) {
        return rfi_fail(error, REEF_E_ARG, "reef_ffi_prepare: number type %d; float32 and float64 are possible", type);
    }
    return REEF_OK;
}

static reef_status make(const reef_agg *agg, reef_ffi_prepared **place, const reef_shape *shape, reef_error *error)
{
    const reef_context *context = rfi_agg_context(agg);
    reef_plan *plan = NULL;
    reef_status status = reef_plan_create(&plan, agg, shape, error);
    if (status != REEF_OK) {
        return status;
    }
    /* no overflow: the plan has room for more pointers */
    reef_ffi_prepared *made = rfi_allocate(context, sizeof *made + (size_t)shape->rows * sizeof made->rows[0]);
    if (!made) {
        reef_plan_destroy(&plan);
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td rows", shape->rows);
    }
    made->context = context;
    made->plan = plan;
    made->count = shape->rows;
    made->bytes = (size_t)shape->lengths[0] * rfi_dtype_size(shape->dtype);
    *place = made;
    return REEF_OK;
}

reef_status reef_ffi_prepare(const reef_agg *agg, reef_ffi_prepared **place, ptrdiff_t rows, ptrdiff_t length, int type,
                             char *text, size_t room)
{
    reef_error error = {0};
    reef_shape shape = {.rows = rows,
                        .segments = 1,
                        .lengths = &length,
                        .dtype = type == REEF_FFI_F64 ? REEF_F64 : REEF_F32,
                        .workers = 1};
    reef_status status = check(agg, place, type, &error);
    if (status == REEF_OK) {
        status = make(agg, place, &shape, &error);
    }
    return rfi_ffi_tell(status, &error, text, room);
}

reef_status reef_ffi_prepared_apply(reef_ffi_prepared *prepared, const void *data, void *out, int64_t round,
                                    reef_state *state)
{
    if (!prepared || !data) {
        return REEF_E_ARG;
    }
    const char *row = data;
    for (ptrdiff_t l = 0; l < prepared->count; l++) {
        prepared->rows[l] = row;
        row += prepared->bytes;
    }
    reef_input input = {.rows = prepared->rows, .round = round, .state = state};
    return reef_plan_apply(prepared->plan, &input, out, NULL, NULL);
}
