/* Layouts, headers and folders of results. */
#include "merge/output.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/shards.h"
#include "io/target.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARD_NAME = 64 };

/* ---- layout ---- */

static reef_status allocate(rfi_output *out, ptrdiff_t shards, reef_error *error)
{
    out->shards = rfi_allocate_many(out->context, shards, sizeof *out->shards);
    if (!out->shards) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a result in %td files", shards);
    }
    for (ptrdiff_t i = 0; i < shards; i++) {
        out->shards[i] = (rfi_out_shard){0};
    }
    out->shard_count = shards;
    return REEF_OK;
}

/* In the shards of the reference model; where the tensors are its own, at the same places. */
static reef_status lay_out_alike(rfi_output *out, reef_error *error)
{
    const rfi_model *model = out->model;
    assert(model->shard_of);
    reef_status status = allocate(out, model->shard_count, error);
    if (status != REEF_OK) {
        return status;
    }
    for (ptrdiff_t i = 0; i < model->count; i++) {
        rfi_out_shard *shard = &out->shards[model->shard_of[i]];
        out->places[i] = (rfi_place){model->shard_of[i], model->changed ? shard->used : model->tensors[i].start};
        shard->used += model->tensors[i].bytes;
    }
    return REEF_OK;
}

/* One tensor after the other, a new shard where the next one would be too much. */
static reef_status lay_out_anew(rfi_output *out, size_t shard_size, reef_error *error)
{
    const rfi_model *model = out->model;
    ptrdiff_t shard = 0;
    size_t used = 0;
    for (ptrdiff_t i = 0; i < model->count; i++) {
        size_t bytes = model->tensors[i].bytes;
        if (shard_size > 0 && used > 0 && bytes > shard_size - (used < shard_size ? used : shard_size)) {
            shard++;
            used = 0;
        }
        out->places[i] = (rfi_place){shard, used};
        used += bytes;
    }
    assert(shard == 0 || shard_size > 0);
    return allocate(out, shard + 1, error);
}

/* ---- headers ---- */

/* The header of the reference's file, as it is. */
static reef_status copy_header(rfi_output *out, ptrdiff_t shard, reef_error *error)
{
    unsigned char bytes[16384];
    const rfi_shard *from = &out->model->shards[shard];
    out->shards[shard].data = from->data;
    for (size_t at = 0; at < from->data; at += sizeof bytes) {
        size_t part = from->data - at < sizeof bytes ? from->data - at : sizeof bytes;
        reef_status status = rfi_reader_get(&from->file, at, bytes, part, error);
        if (status == REEF_OK) {
            status = rfi_writer_put(&out->shards[shard].file, at, bytes, part, error);
        }
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

/* A new one, with the metadata of the reference. `tensors` has room for those of a shard. */
static reef_status write_header(rfi_output *out, ptrdiff_t shard, rfi_tensor *tensors, reef_error *error)
{
    rfi_safetensors table = out->model->shards[0].table;
    table.tensors = tensors;
    table.count = 0;
    for (ptrdiff_t i = 0; i < out->model->count; i++) {
        if (out->places[i].shard == shard) {
            tensors[table.count] = out->model->tensors[i];
            tensors[table.count++].start = out->places[i].start;
        }
    }
    size_t size = rfi_safetensors_write(&table, NULL);
    char *header = rfi_allocate(out->context, size);
    if (!header) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a header of %zu bytes", size);
    }
    size_t written = rfi_safetensors_write(&table, header);
    assert(written == size);
    (void)written;
    out->shards[shard].data = size;
    reef_status status = rfi_writer_put(&out->shards[shard].file, 0, header, size, error);
    rfi_release(out->context, header);
    return status;
}

/* Of an array whose type has changed. */
static reef_status write_npy_header(rfi_output *out, reef_error *error)
{
    char header[RFI_NPY_HEADER_MAX];
    const rfi_tensor *tensor = &out->model->tensors[0];
    if (tensor->type != RFI_F16 && tensor->type != RFI_F32 && tensor->type != RFI_F64) {
        return rfi_fail(error, REEF_E_ARG, "npy files have no type %s; cast to F16, F32 or F64",
                        rfi_safetensors_type(tensor->type));
    }
    if (out->model->fortran || out->model->swapped) {
        return rfi_fail(error, REEF_E_ARG, "npy files are cast in C order and the byte order of this machine only");
    }
    out->shards[0].data = rfi_npy_header(tensor->type, (int)tensor->rank, tensor->shape, header);
    return rfi_writer_put(&out->shards[0].file, 0, header, out->shards[0].data, error);
}

static reef_status write_headers(rfi_output *out, bool alike, reef_error *error)
{
    reef_status status = REEF_OK;
    if (out->model->npy && !alike) {
        return write_npy_header(out, error);
    }
    rfi_tensor *tensors = rfi_allocate_many(out->context, out->model->count + 1, sizeof *tensors);
    if (!tensors) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the tensors of the result");
    }
    for (ptrdiff_t i = 0; status == REEF_OK && i < out->shard_count; i++) {
        status = alike ? copy_header(out, i, error) : write_header(out, i, tensors, error);
    }
    rfi_release(out->context, tensors);
    return status;
}

/* ---- folders ---- */

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    bool empty = folder != NULL;
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    }
    if (folder) {
        (void)closedir(folder);
    }
    return empty;
}

/* Where the folder will be: links are followed, also one that leads nowhere yet; slashes at the end are dropped. */
static reef_status find_target(rfi_output *out, rfi_target *target, reef_error *error)
{
    char path[RFI_PATH_MAX];
    size_t length = strlen(out->path);
    while (length > 1 && out->path[length - 1] == '/') {
        length--;
    }
    if (length >= sizeof path) {
        return rfi_fail_errno(error, out->path, "find the folder", ENAMETOOLONG);
    }
    memcpy(path, out->path, length);
    path[length] = '\0';
    reef_status status = rfi_target_find(path, target, error);
    if (status != REEF_OK) {
        return status;
    }
    if (target->exists && !S_ISDIR(target->type)) {
        return rfi_fail(error, REEF_E_EXISTS, "%s: is a file; the result is a folder", rfi_path_show(out->path));
    }
    if (target->exists && !is_empty(path)) {
        return rfi_fail(error, REEF_E_EXISTS, "%s: is a folder that is not empty; name one that is new or empty",
                        rfi_path_show(out->path));
    }
    if (target->exists && !realpath(path, target->path)) {
        return rfi_fail_errno(error, out->path, "find the folder", errno);
    }
    length = strlen(target->path);
    out->target = rfi_allocate(out->context, 2 * length + 64);
    if (!out->target) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory to write it", rfi_path_show(out->path));
    }
    memcpy(out->target, target->path, length + 1);
    return REEF_OK;
}

/* An empty folder that is in the place of the result gives way to it, but its mode and owner stay. */
static reef_status make_folder(rfi_output *out, reef_error *error)
{
    rfi_target target;
    reef_status status = find_target(out, &target, error);
    if (status != REEF_OK) {
        return status;
    }
    char *name = out->target + strlen(out->target) + 1;
    if (!rfi_target_make_folder(&target, name, strlen(out->target) + 60)) {
        return rfi_fail_errno(error, out->path, "make a folder beside it", errno);
    }
    out->temporary = name;
    return REEF_OK;
}

/* What the files of a folder are called by, after Hugging Face's habit: adapter_model for adapter_model.safetensors and its index. */
static rfi_slice stem_of(const rfi_model *model)
{
    static const char usual[] = "model";
    static const char *const ends[] = {".safetensors.index.json", ".safetensors"};
    const char *path = model->index ? model->index : model->shards[0].path;
    if (!model->folder) {
        return (rfi_slice){usual, sizeof usual - 1};
    }
    const char *name = strrchr(path, '/') + 1;
    return (rfi_slice){name, strlen(name) - strlen(ends[model->index ? 0 : 1])};
}

/* The name of a shard's file: that of the reference, or one made of the stem. */
static void name_shard(const rfi_output *out, ptrdiff_t shard, bool alike, char name[256])
{
    rfi_slice stem = stem_of(out->model);
    int length = (int)stem.length;
    if (alike) {
        (void)snprintf(name, 256, "%s", strrchr(out->model->shards[shard].path, '/') + 1);
    } else if (out->shard_count == 1) {
        (void)snprintf(name, 256, "%.*s.safetensors", length, stem.text);
    } else {
        length = length < 200 ? length : 200; /* there is room for the numbers */
        (void)snprintf(name, 256, "%.*s-%05td-of-%05td.safetensors", length, stem.text, shard + 1, out->shard_count);
    }
}

static reef_status open_file(rfi_output *out, ptrdiff_t shard, bool alike, reef_error *error)
{
    char name[256];
    rfi_out_shard *to = &out->shards[shard];
    if (!out->folder) {
        return rfi_writer_open(out->context, &to->file, out->path, error);
    }
    name_shard(out, shard, alike, name);
    reef_status status = rfi_path_join(out->context, out->temporary, (rfi_slice){name, strlen(name)}, &to->path, error);
    if (status != REEF_OK) {
        return status;
    }
    return rfi_writer_open(out->context, &to->file, to->path, error);
}

static reef_status add_index(const rfi_output *out, bool alike, reef_error *error);

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path);
    return length >= strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

/* A folder, or what can only be the name of one. */
static bool is_folder_name(const char *path)
{
    struct stat about;
    return ends_with(path, "/") || (stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

reef_status rfi_output_open(const reef_context *context, rfi_output *out, const rfi_model *model, const char *path,
                            size_t shard_size, reef_error *error)
{
    *out = (rfi_output){.context = context, .path = path, .model = model};
    out->folder = shard_size > 0 || (model->folder && !ends_with(path, ".safetensors"));
    bool alike = shard_size == 0 && model->folder == out->folder;
    if (model->npy && out->folder) {
        return rfi_fail(error, REEF_E_ARG, "an npy file has one array, which is not written in shards");
    }
    if (!out->folder && is_folder_name(path)) {
        return rfi_fail(error, REEF_E_FILE,
                        "%s: is a folder, and single files are merged into one file; name a file, or give --shard-size",
                        rfi_path_show(path));
    }
    if (model->npz && ends_with(path, ".npz")) {
        return rfi_fail(error, REEF_E_ARG, "%s: npz files are read, but not written; the result is a .safetensors file",
                        rfi_path_show(path));
    }
    out->places = rfi_allocate_many(context, model->count + 1, sizeof *out->places);
    if (!out->places) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the tensors of the result");
    }
    reef_status status = out->folder ? make_folder(out, error) : REEF_OK;
    if (status == REEF_OK) {
        status = alike ? lay_out_alike(out, error) : lay_out_anew(out, shard_size, error);
    }
    for (ptrdiff_t i = 0; status == REEF_OK && i < out->shard_count; i++) {
        status = open_file(out, i, alike, error);
    }
    if (status == REEF_OK) {
        status = write_headers(out, alike && !model->changed, error);
    }
    if (status == REEF_OK && out->folder) {
        status = add_index(out, alike, error);
    }
    if (status != REEF_OK) {
        rfi_output_abandon(out);
    }
    return status;
}

/* ---- content ---- */

const rfi_writer *rfi_output_place(const rfi_output *out, ptrdiff_t tensor, size_t offset, size_t *at)
{
    const rfi_place *place = &out->places[tensor];
    assert(tensor >= 0 && tensor < out->model->count && offset <= out->model->tensors[tensor].bytes);
    assert(place->shard >= 0 && place->shard < out->shard_count);
    const rfi_out_shard *shard = &out->shards[place->shard];
    *at = shard->data + place->start + offset;
    return &shard->file;
}

reef_status rfi_output_add_folder(const rfi_output *out, const char *name, reef_error *error)
{
    char *path = NULL;
    assert(out->temporary && !strchr(name, '/'));
    reef_status status = rfi_path_join(out->context, out->temporary, (rfi_slice){name, strlen(name)}, &path, error);
    if (status != REEF_OK) {
        return status;
    }
    status = mkdir(path, 0777) == 0 ? REEF_OK : rfi_fail_errno(error, path, "make the folder", errno);
    rfi_release(out->context, path);
    return status;
}

reef_status rfi_output_add(const rfi_output *out, const char *name, const void *bytes, size_t size, reef_error *error)
{
    char *path = NULL;
    assert(out->temporary && name[0] != '/');
    reef_status status = rfi_path_join(out->context, out->temporary, (rfi_slice){name, strlen(name)}, &path, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_file_write(out->context, path, &(rfi_piece){bytes, size}, 1, error);
    rfi_release(out->context, path);
    return status;
}

/* The reference's index as it was when it was checked: a later one might name files anywhere. */
static reef_status copy_index(const rfi_output *out, reef_error *error)
{
    rfi_file file;
    const char *path = out->model->index;
    reef_status status = rfi_file_read(out->context, path, RFI_SHARDS_MAX, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    if (rfi_hash_bytes(RFI_HASH_START, file.bytes, file.size) != out->model->index_sum) {
        status = rfi_fail(error, REEF_E_FILE, "%s: the file was changed while it was being read", rfi_path_show(path));
    } else {
        status = rfi_output_add(out, strrchr(path, '/') + 1, file.bytes, file.size, error);
    }
    rfi_file_free(out->context, &file);
    return status;
}

static reef_status write_index(const rfi_output *out, reef_error *error)
{
    const rfi_model *model = out->model;
    rfi_shard_entry *entries = rfi_allocate_many(out->context, model->count + 1, sizeof *entries);
    size_t total = 0;
    for (ptrdiff_t i = 0; entries && i < model->count; i++) {
        const rfi_tensor *tensor = model->by_name[i];
        const char *path = out->shards[out->places[tensor - model->tensors].shard].path;
        const char *file = strrchr(path, '/') + 1;
        entries[i] = (rfi_shard_entry){tensor->name, {file, strlen(file)}};
        total += tensor->bytes;
    }
    size_t size = entries ? rfi_shards_write(entries, model->count, total, NULL) : 0;
    char *text = entries ? rfi_allocate(out->context, size) : NULL;
    reef_status status = REEF_OK;
    if (text) {
        (void)rfi_shards_write(entries, model->count, total, text);
        char name[256];
        rfi_slice stem = stem_of(model);
        int length = stem.length < 200 || model->index ? (int)stem.length : 200;
        (void)snprintf(name, sizeof name, "%.*s.safetensors.index.json", length, stem.text);
        status = rfi_output_add(out, name, text, size, error);
    } else {
        status = rfi_fail(error, REEF_E_NOMEM, "no memory for the index of the result");
    }
    rfi_release(out->context, text);
    rfi_release(out->context, entries);
    return status;
}

static reef_status add_index(const rfi_output *out, bool alike, reef_error *error)
{
    if (alike && !out->model->changed) {
        return out->model->index ? copy_index(out, error) : REEF_OK;
    }
    return out->shard_count > 1 || (alike && out->model->index) ? write_index(out, error) : REEF_OK;
}

/* ---- the end ---- */

static void forget(rfi_output *out)
{
    for (ptrdiff_t i = 0; out->shards && i < out->shard_count; i++) {
        rfi_release(out->context, out->shards[i].path);
    }
    rfi_release(out->context, out->shards);
    rfi_release(out->context, out->places);
    rfi_release(out->context, out->target);
    out->shards = NULL;
    out->places = NULL;
    out->target = out->temporary = NULL;
    out->shard_count = 0;
}

/* The files of a folder, and closes it. */
static void remove_files(DIR *folder)
{
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder) {
        (void)closedir(folder);
    }
}

/* What is in the folder is what was put there: files, and folders of files. */
static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        bool self = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!self && unlinkat(dirfd(folder), entry->d_name, 0) != 0) {
            int inner = openat(dirfd(folder), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            remove_files(inner >= 0 ? fdopendir(inner) : NULL);
            (void)unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
    (void)rmdir(path);
}

void rfi_output_abandon(rfi_output *out)
{
    for (ptrdiff_t i = 0; out->shards && i < out->shard_count; i++) {
        if (out->shards[i].file.name) {
            rfi_writer_abandon(&out->shards[i].file);
        }
    }
    if (out->temporary) {
        remove_folder(out->temporary);
    }
    forget(out);
}

reef_status rfi_output_commit(rfi_output *out, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; status == REEF_OK && i < out->shard_count; i++) {
        status = rfi_writer_commit(&out->shards[i].file, error);
    }
    if (status == REEF_OK && out->temporary && rename(out->temporary, out->target) != 0) {
        status = rfi_fail_errno(error, out->path, "put the folder in its place", errno);
    }
    if (status != REEF_OK) {
        rfi_output_abandon(out);
        return status;
    }
    if (out->temporary) {
        rfi_flush_folder_of(out->target);
    }
    forget(out);
    return REEF_OK;
}
