/* Opening models, and reading from them. */
#include "merge/model.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/foreign.h"
#include "io/lines.h"
#include "io/npy.h"
#include "io/npz.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool rfi_type_is_real(rfi_type type)
{
    return type == RFI_F16 || type == RFI_BF16 || type == RFI_F32 || type == RFI_F64 || type == RFI_F8_E4M3 ||
           type == RFI_F8_E5M2;
}

static bool machine_is_big(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

static int by_name(const void *a, const void *b)
{
    return rfi_tensor_compare(*(const rfi_tensor *const *)a, *(const rfi_tensor *const *)b);
}

reef_status rfi_model_sort(const reef_context *context, rfi_model *model, reef_error *error)
{
    model->by_name = rfi_allocate_many(context, model->count, sizeof(void *));
    if (!model->by_name) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for the names of its tensors", rfi_path_show(model->path));
    }
    const rfi_safetensors *table = &model->shards[0].table;
    if (table->by_name && table->tensors == model->tensors) {
        memcpy(model->by_name, table->by_name, (size_t)model->count * sizeof(void *));
        return REEF_OK;
    }
    for (ptrdiff_t i = 0; i < model->count; i++) {
        model->by_name[i] = &model->tensors[i];
    }
    qsort(model->by_name, (size_t)model->count, sizeof(void *), by_name);
    for (ptrdiff_t i = 1; i < model->count; i++) { /* two shards may have a tensor of one name */
        if (rfi_tensor_compare(model->by_name[i - 1], model->by_name[i]) == 0) {
            char shown[RFI_SHOWN_SIZE];
            return rfi_fail(error, REEF_E_FORMAT, "%s: has the tensor '%s' twice", rfi_path_show(model->path),
                            rfi_shown(model->by_name[i]->name, shown));
        }
    }
    return REEF_OK;
}

/* ---- one file ---- */

static reef_status open_npy(const reef_context *context, rfi_model *model, reef_error *error)
{
    rfi_array array;
    const rfi_reader *file = &model->only.file;
    size_t have = file->size < RFI_NPY_LOOK_MAX ? file->size : RFI_NPY_LOOK_MAX;
    unsigned char *bytes = rfi_allocate(context, have);
    if (!bytes) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its header", rfi_path_show(model->path));
    }
    reef_status status = rfi_reader_get(file, 0, bytes, have, error);
    if (status == REEF_OK) {
        status = rfi_npy_look(bytes, have, file->size, model->path, &array, &model->only.data, error);
    }
    rfi_release(context, bytes);
    if (status != REEF_OK) {
        return status;
    }
    memcpy(model->shape, array.shape, sizeof model->shape);
    model->single = (rfi_tensor){.name = {"", 0},
                                 .type = array.type,
                                 .rank = array.rank,
                                 .shape = model->shape,
                                 .count = array.count,
                                 .bytes = (size_t)array.count * rfi_type_size(array.type)};
    model->npy = true;
    model->fortran = array.fortran && array.rank > 1;
    model->swapped = array.big_endian != machine_is_big();
    model->tensors = &model->single;
    model->count = 1;
    return rfi_model_sort(context, model, error);
}

reef_status rfi_model_regular(const char *path, reef_error *error)
{
    struct stat about;
    bool regular = stat(path, &about) != 0 || S_ISREG(about.st_mode); /* opening it tells what else is wrong */
    return regular ? REEF_OK : rfi_fail(error, REEF_E_FORMAT, "%s: is not a regular file", rfi_path_show(path));
}

/* Opens a file and reads its first bytes, which must be none of a format that is known to be another. */
static reef_status look(rfi_shard *shard, const char *path, unsigned char first[RFI_FOREIGN_LOOK], size_t *have,
                        reef_error *error)
{
    reef_status status = rfi_model_regular(path, error);
    if (status == REEF_OK) {
        status = rfi_reader_open(&shard->file, path, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    *have = shard->file.size < RFI_FOREIGN_LOOK ? shard->file.size : RFI_FOREIGN_LOOK;
    status = rfi_reader_get(&shard->file, 0, first, *have, error);
    if (status != REEF_OK) {
        return status;
    }
    const char *foreign = rfi_foreign(first, *have);
    return foreign ? rfi_fail(error, REEF_E_FORMAT, "%s: %s", rfi_path_show(path), foreign) : REEF_OK;
}

reef_status rfi_shard_open(const reef_context *context, rfi_shard *shard, const char *path, reef_error *error)
{
    unsigned char first[RFI_FOREIGN_LOOK] = {0};
    size_t have = 0;
    reef_status status = look(shard, path, first, &have, error);
    if (status != REEF_OK) {
        return status;
    }
    return rfi_header_read(context, shard, first, have, NULL, error);
}

static reef_status open_file(const reef_context *context, rfi_model *model, rfi_model *like, reef_error *error)
{
    unsigned char first[RFI_FOREIGN_LOOK] = {0};
    size_t have = 0;
    reef_status status = look(&model->only, model->path, first, &have, error);
    if (status != REEF_OK) {
        return status;
    }
    if (memcmp(first, "\x93NUMPY", 6) == 0) {
        return open_npy(context, model, error);
    }
    model->npz = rfi_npz_begins(first, have);
    status = model->npz ? rfi_npz_read(context, &model->only.file, &model->only.table, error)
                        : rfi_header_read(context, &model->only, first, have, like ? &like->only : NULL, error);
    model->tensors = model->only.table.tensors;
    model->count = model->only.table.count;
    if (status != REEF_OK) {
        return status;
    }
    return rfi_model_sort(context, model, error);
}

/* ---- a model ---- */

reef_status rfi_model_open(const reef_context *context, rfi_model *model, const char *path, rfi_model *like,
                           reef_error *error)
{
    struct stat about;
    *model = (rfi_model){.path = path, .shard_count = 1};
    model->only.file.descriptor = -1;
    model->shards = &model->only;
    model->swapped = machine_is_big();
    model->folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    reef_status status =
        model->folder ? rfi_model_open_folder(context, model, error) : open_file(context, model, like, error);
    if (status != REEF_OK) {
        rfi_model_close(context, model);
    }
    return status;
}

void rfi_model_close(const reef_context *context, rfi_model *model)
{
    for (ptrdiff_t i = 0; i < model->shard_count; i++) {
        rfi_shard *shard = &model->shards[i];
        rfi_reader_close(&shard->file);
        rfi_header_release(context, shard);
        rfi_release(context, shard->path);
        shard->path = NULL;
    }
    rfi_release(context, model->by_name);
    rfi_release(context, model->memory);
    rfi_release(context, model->list);
    rfi_release(context, model->index);
    model->by_name = NULL;
    model->memory = model->list = NULL;
    model->index = NULL;
    model->tensors = NULL;
    model->count = 0;
    model->shard_count = 0;
}

const rfi_shard *rfi_model_shard(const rfi_model *model, const rfi_tensor *tensor)
{
    assert(tensor >= model->tensors && tensor < model->tensors + model->count);
    return &model->shards[model->shard_of ? model->shard_of[tensor - model->tensors] : 0];
}

reef_status rfi_model_get(const rfi_model *model, const rfi_tensor *tensor, size_t offset, void *bytes, size_t size,
                          reef_error *error)
{
    const rfi_shard *shard = rfi_model_shard(model, tensor);
    assert(offset + size <= tensor->bytes);
    return rfi_reader_get(&shard->file, shard->data + tensor->start + offset, bytes, size, error);
}

reef_status rfi_model_confirm(const rfi_model *model, reef_error *error)
{
    for (ptrdiff_t i = 0; i < model->shard_count; i++) {
        reef_status status = rfi_reader_confirm(&model->shards[i].file, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}
