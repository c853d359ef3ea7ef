/* Opening model files and comparing them. */
#include "merge/model.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/lines.h"
#include "io/npy.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool rfi_type_is_real(rfi_type type)
{
    return type == RFI_F16 || type == RFI_BF16 || type == RFI_F32 || type == RFI_F64;
}

static bool machine_is_big(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* ---- opening ---- */

static reef_status open_npy(const reef_context *context, rfi_model *model, reef_error *error)
{
    rfi_array array;
    size_t have = model->file.size < RFI_NPY_LOOK_MAX ? model->file.size : RFI_NPY_LOOK_MAX;
    unsigned char *bytes = rfi_allocate(context, have);
    if (!bytes) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its header", rfi_path_show(model->file.path));
    }
    reef_status status = rfi_reader_get(&model->file, 0, bytes, have, error);
    if (status == REEF_OK) {
        status = rfi_npy_look(bytes, have, model->file.size, model->file.path, &array, &model->data, error);
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
    return REEF_OK;
}

static reef_status open_safetensors(const reef_context *context, rfi_model *model, const void *first, size_t have,
                                    reef_error *error)
{
    size_t length = 0;
    const char *path = model->file.path;
    reef_status status = rfi_safetensors_length(first, have, model->file.size, path, &length, error);
    if (status != REEF_OK) {
        return status;
    }
    char *header = rfi_allocate(context, length + 1);
    if (!header) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its header of %zu bytes", rfi_path_show(path), length);
    }
    model->data = RFI_SAFETENSORS_START + length;
    status = rfi_reader_get(&model->file, RFI_SAFETENSORS_START, header, length, error);
    if (status == REEF_OK) {
        status =
            rfi_safetensors_read(context, header, length, model->file.size - model->data, path, &model->table, error);
    }
    rfi_release(context, header);
    model->tensors = model->table.tensors;
    model->count = model->table.count;
    model->swapped = machine_is_big();
    return status;
}

static int by_name(const void *a, const void *b)
{
    return rfi_tensor_compare(*(const rfi_tensor *const *)a, *(const rfi_tensor *const *)b);
}

static reef_status sort_names(const reef_context *context, rfi_model *model, reef_error *error)
{
    model->by_name = rfi_allocate_many(context, model->count, sizeof(void *));
    if (!model->by_name) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for the names of its tensors",
                        rfi_path_show(model->file.path));
    }
    for (ptrdiff_t i = 0; i < model->count; i++) {
        model->by_name[i] = &model->tensors[i];
    }
    qsort(model->by_name, (size_t)model->count, sizeof(void *), by_name);
    return REEF_OK;
}

static reef_status open_any(const reef_context *context, rfi_model *model, reef_error *error)
{
    unsigned char first[8] = {0};
    size_t have = model->file.size < sizeof first ? model->file.size : sizeof first;
    reef_status status = rfi_reader_get(&model->file, 0, first, have, error);
    if (status != REEF_OK) {
        return status;
    }
    if (have >= 4 && memcmp(first, "PK\3\4", 4) == 0) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "%s: is a zip archive, such as .npz or PyTorch's .pt; save the model as safetensors or npy",
                        rfi_path_show(model->file.path));
    }
    status = memcmp(first, "\x93NUMPY", 6) == 0 ? open_npy(context, model, error)
                                                : open_safetensors(context, model, first, have, error);
    return status == REEF_OK ? sort_names(context, model, error) : status;
}

reef_status rfi_model_open(const reef_context *context, rfi_model *model, const char *path, reef_error *error)
{
    *model = (rfi_model){.file = {.descriptor = -1}};
    reef_status status = rfi_reader_open(&model->file, path, error);
    if (status == REEF_OK) {
        status = open_any(context, model, error);
    }
    if (status != REEF_OK) {
        rfi_model_close(context, model);
    }
    return status;
}

void rfi_model_close(const reef_context *context, rfi_model *model)
{
    rfi_reader_close(&model->file);
    rfi_safetensors_free(context, &model->table);
    rfi_release(context, model->by_name);
    model->by_name = NULL;
    model->tensors = NULL;
    model->count = 0;
}

/* ---- comparing ---- */

static bool same_shape(const rfi_tensor *a, const rfi_tensor *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0);
}

enum { SHAPE_TEXT = 64 };

static const char *show_shape(const rfi_tensor *tensor, char text[SHAPE_TEXT])
{
    size_t used = 0;
    rfi_append(text, SHAPE_TEXT - 4, &used, "[");
    for (ptrdiff_t i = 0; i < tensor->rank && used < SHAPE_TEXT - 4; i++) {
        rfi_append(text, SHAPE_TEXT - 4, &used, i ? ", %td" : "%td", tensor->shape[i]);
    }
    used = used < SHAPE_TEXT - 4 ? used : SHAPE_TEXT - 5;
    rfi_append(text, SHAPE_TEXT, &used, used == SHAPE_TEXT - 5 ? "..]" : "]");
    return text;
}

/* Two tensors of one name, or two npy files. */
static reef_status compare_tensors(const rfi_model *model, const rfi_model *reference, ptrdiff_t i, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    char mine[SHAPE_TEXT];
    char theirs[SHAPE_TEXT];
    const rfi_tensor *a = model->by_name[i];
    const rfi_tensor *b = reference->by_name[i];
    const char *path = rfi_path_show(model->file.path);
    const char *other = rfi_path_show(reference->file.path);
    if (a->type != b->type) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: tensor '%s' has type %s; in %s it has %s", path,
                        rfi_shown(a->name, shown), rfi_safetensors_type(a->type), other, rfi_safetensors_type(b->type));
    }
    if (!same_shape(a, b)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: tensor '%s' has shape %s; in %s it has %s", path,
                        rfi_shown(a->name, shown), show_shape(a, mine), other, show_shape(b, theirs));
    }
    return REEF_OK;
}

reef_status rfi_model_compare(const rfi_model *model, const rfi_model *reference, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    const char *path = rfi_path_show(model->file.path);
    const char *other = rfi_path_show(reference->file.path);
    if (model->npy != reference->npy) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: is a %s file; %s is not", path, model->npy ? "npy" : "safetensors",
                        other);
    }
    if (model->fortran != reference->fortran) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: is in %s order; %s is not", path, model->fortran ? "Fortran" : "C",
                        other);
    }
    for (ptrdiff_t i = 0; i < model->count || i < reference->count; i++) {
        bool mine = i < model->count;
        bool theirs = i < reference->count;
        int order = mine && theirs ? rfi_tensor_compare(model->by_name[i], reference->by_name[i]) : mine ? -1 : 1;
        if (order != 0) { /* the earlier name is the one that the other file lacks */
            const rfi_tensor *alone = order < 0 ? model->by_name[i] : reference->by_name[i];
            return rfi_fail(error, REEF_E_FORMAT, "%s: %s the tensor '%s'; %s %s", path, order < 0 ? "has" : "lacks",
                            rfi_shown(alone->name, shown), other, order < 0 ? "lacks it" : "has it");
        }
        reef_status status = compare_tensors(model, reference, i, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}
