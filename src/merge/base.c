/* The model that the files were trained from: what is aggregated are differences from it. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/lines.h"

#include <assert.h>
#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
    return rfi_tensor_compare(*(const rfi_tensor *const *)a, *(const rfi_tensor *const *)b);
}

/* The base may have its numbers in any type, and more tensors than are merged. */
static reef_status find_tensor(rfi_merge *merge, ptrdiff_t tensor, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    const rfi_tensor *wanted = &merge->list[tensor];
    const rfi_model *base = &merge->base;
    const rfi_tensor *const *found = bsearch(&wanted, base->by_name, (size_t)base->count, sizeof(void *), by_name);
    if (!found) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: lacks the tensor '%s', so it cannot be the base of these models",
                        rfi_path_show(base->path), rfi_shown(wanted->name, shown));
    }
    assert(merge->pair_of[tensor] < 0);
    merge->base_of[tensor] = *found;
    merge->dtype = (*found)->type == RFI_F64 ? REEF_F64 : merge->dtype;
    return rfi_tensor_match(base, *found, &merge->result, wanted, (rfi_lenience){.types = true}, error);
}

reef_status rfi_merge_open_base(rfi_merge *merge, reef_error *error)
{
    if (!merge->options->base) {
        return REEF_OK;
    }
    if (merge->pair_count > 0) {
        return rfi_fail(error, REEF_E_ARG, "LoRA adapters are differences already; they are merged without a base");
    }
    merge->base_of = rfi_allocate_many(merge->context, merge->result.count + 1, sizeof(void *));
    if (!merge->base_of) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the tensors of the base");
    }
    reef_status status = rfi_model_open(merge->context, &merge->base, merge->options->base, NULL, error);
    if (status == REEF_OK && (merge->base.npy != merge->result.npy || merge->base.fortran != merge->result.fortran)) {
        status =
            rfi_fail(error, REEF_E_FORMAT, "%s: is of another format than the models", rfi_path_show(merge->base.path));
    }
    if (status == REEF_OK) {
        status = rfi_merge_check_result(merge, &merge->base, error);
    }
    for (ptrdiff_t t = 0; status == REEF_OK && t < merge->result.count; t++) {
        status = rfi_type_is_real(merge->list[t].type) ? find_tensor(merge, t, error) : REEF_OK;
    }
    return status;
}

void rfi_merge_close_base(rfi_merge *merge)
{
    if (merge->options->base) {
        rfi_model_close(merge->context, &merge->base);
        rfi_release(merge->context, merge->base_of);
    }
}
