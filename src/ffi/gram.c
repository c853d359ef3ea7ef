/* How rows lie to each other: inner products as the rules see them. */
#include "ffi/handles.h"

#include "agg/driver.h"
#include "base/error.h"
#include "base/memory.h"

#include <assert.h>

/* The Gram matrix is a by-product of krum, which does little beyond. `out`: its choice, which nobody needs. */
static reef_status measure(const reef_agg *krum, const reef_shape *shape, const void *const *data, void *out,
                           double *gram, reef_error *error)
{
    reef_plan *plan = NULL;
    reef_status status = reef_plan_create(&plan, krum, shape, error);
    if (status == REEF_OK) {
        status = reef_plan_apply(plan, &(reef_input){.rows = data}, out, NULL, error);
    }
    if (status == REEF_OK) {
        rfi_plan_gram(plan, gram);
    }
    reef_plan_destroy(&plan);
    return status;
}

static reef_status run(reef_context *context, const reef_shape *shape, const void *const *data, double *gram,
                       reef_error *error)
{
    reef_agg *krum = NULL;
    assert(shape->segments == 1 && shape->lengths[0] >= 1);
    void *out = rfi_allocate_many(context, shape->lengths[0], rfi_dtype_size(shape->dtype));
    reef_status status =
        out ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a row of %td numbers", shape->lengths[0]);
    if (status == REEF_OK) {
        status = reef_agg_create(context, &krum, "krum:f=0", error);
    }
    if (status == REEF_OK) {
        status = measure(krum, shape, data, out, gram, error);
    }
    reef_agg_destroy(&krum);
    rfi_release(context, out);
    return status;
}

reef_status reef_ffi_gram(reef_context *context, ptrdiff_t rows, ptrdiff_t length, int type, const void *const *data,
                          double *gram, char *text, size_t room)
{
    reef_error error = {0};
    reef_shape shape = {
        .rows = rows, .segments = 1, .lengths = &length, .dtype = type == REEF_FFI_F64 ? REEF_F64 : REEF_F32};
    if (rows < 1 || length < 1 || !data || !gram || (type != REEF_FFI_F32 && type != REEF_FFI_F64)) {
        return rfi_ffi_tell(rfi_fail(&error, REEF_E_ARG, "a Gram matrix needs rows of float32 or float64, and a place"),
                            &error, text, room);
    }
    return rfi_ffi_tell(run(context, &shape, data, gram, &error), &error, text, room);
}
