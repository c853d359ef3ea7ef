/* What data sources share. */
#include "problem/source.h"

#include "base/error.h"
#include "base/memory.h"

reef_status rfi_samples_create(const reef_context *context, ptrdiff_t count, ptrdiff_t width, const char *name,
                               rfi_samples *samples, reef_error *error)
{
    ptrdiff_t values = 0;
    *samples = (rfi_samples){0};
    if (count < 1 || width < 1) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: %td samples of %td features; at least one of each is needed",
                        rfi_path_show(name), count, width);
    }
    if (!rfi_mul(count, width, &values) || values > RFI_DATA_VALUES_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%s: %td samples of %td features; at most %td values are possible",
                        rfi_path_show(name), count, width, RFI_DATA_VALUES_MAX);
    }
    *samples = (rfi_samples){count, width, rfi_allocate(context, (size_t)values * sizeof(float)),
                             rfi_allocate(context, (size_t)count * sizeof(double))};
    if (!samples->features || !samples->labels) {
        rfi_samples_free(context, samples);
        return rfi_fail(error, REEF_E_NOMEM, "%s: not enough memory for its samples", rfi_path_show(name));
    }
    return REEF_OK;
}

void rfi_samples_free(const reef_context *context, rfi_samples *samples)
{
    rfi_release(context, samples->features);
    rfi_release(context, samples->labels);
    *samples = (rfi_samples){0};
}

reef_status rfi_need_path(const char *owner, const char *key, const char *path, reef_error *error)
{
    return path[0] ? REEF_OK : rfi_fail(error, REEF_E_ARG, "%s needs %s=FILE", owner, key);
}

/* Opens a file and looks at its array; the caller frees *file. */
static reef_status open_array(const reef_context *context, const char *path, rfi_array_reader *read, rfi_file *file,
                              rfi_array *array, reef_error *error)
{
    reef_status status = rfi_file_read(context, path, RFI_DATA_BYTES_MAX, file, error);
    if (status != REEF_OK) {
        return status;
    }
    return read(file->bytes, file->size, path, array, error);
}

static reef_status make(const reef_context *context, const char *paths[2], const rfi_array arrays[2],
                        rfi_samples *samples, reef_error *error)
{
    const rfi_array *features = &arrays[0];
    const rfi_array *labels = &arrays[1];
    if (features->rank < 1 || features->shape[0] < 1) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: the file has no samples", rfi_path_show(paths[0]));
    }
    ptrdiff_t count = features->shape[0];
    if (labels->rank < 1 || labels->shape[0] != labels->count || labels->count != count) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: expected one label for each of the %td samples, found %td numbers",
                        rfi_path_show(paths[1]), count, labels->count);
    }
    reef_status status = rfi_samples_create(context, count, features->count / count, paths[0], samples, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_array_get_f32(features, samples->features);
    rfi_array_get_f64(labels, samples->labels);
    return REEF_OK;
}

reef_status rfi_samples_from_arrays(const reef_context *context, const char *features, const char *labels,
                                    rfi_array_reader *read, rfi_type *type, rfi_samples *samples, reef_error *error)
{
    const char *paths[2] = {features, labels};
    rfi_file files[2] = {{0}};
    rfi_array arrays[2] = {{0}};
    reef_status status = REEF_OK;
    for (int i = 0; i < 2 && status == REEF_OK; i++) {
        status = open_array(context, paths[i], read, &files[i], &arrays[i], error);
    }
    if (status == REEF_OK) {
        status = make(context, paths, arrays, samples, error);
    }
    if (status == REEF_OK && type) {
        *type = arrays[0].type;
    }
    rfi_file_free(context, &files[0]);
    rfi_file_free(context, &files[1]);
    return status;
}

reef_status rfi_load_arrays(const reef_context *context, const reef_kind *kind, const rfi_array_files *files,
                            rfi_array_reader *read, rfi_type *type, rfi_loaded *loaded, reef_error *error)
{
    bool test = files->path[2][0] || files->path[3][0];
    for (int i = 0; i < (test ? 4 : 2); i++) {
        reef_status status = rfi_need_path(kind->name, kind->fields[i].name, files->path[i], error);
        if (status != REEF_OK) {
            return status;
        }
    }
    reef_status status =
        rfi_samples_from_arrays(context, files->path[0], files->path[1], read, type, &loaded->train, error);
    if (status == REEF_OK && test) {
        status = rfi_samples_from_arrays(context, files->path[2], files->path[3], read, NULL, &loaded->test, error);
    }
    return status;
}
