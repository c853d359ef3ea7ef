/* What lies in a folder beside the weights: configuration, tokenizer, licence. It is copied if all folders have the same; what differs is
 * told, and left for a person to decide on. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Larger files are no small ones. */
static const off_t small_bytes = (off_t)64 << 20;

/* Weights in one form or another; those of the result are written anew, the others would be the first site's. */
static bool is_weights(const char *name)
{
    static const char *const ends[] = {".safetensors", ".index.json", ".bin", ".pt",  ".pth",     ".gguf", ".onnx",
                                       ".h5",          ".ckpt",       ".npy", ".npz", ".msgpack", ".tmp"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t tail = strlen(ends[i]);
        if (length >= tail && strcmp(name + length - tail, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A regular file that is not hidden; scandir calls it. */
static int is_candidate(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && !is_weights(entry->d_name);
}

static bool is_small(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= small_bytes;
}

/* The first folder whose file of that name is missing or has other bytes; NULL: none. */
static const char *find_other(const rfi_merge *merge, const char *name, const rfi_file *file)
{
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const rfi_model *model = &merge->models[merge->file_of[l]];
        rfi_file theirs;
        char *path = NULL;
        bool same = false;
        if (!model->folder || model == merge->reference) {
            continue;
        }
        if (rfi_path_join(merge->context, model->path, (rfi_slice){name, strlen(name)}, &path, NULL) == REEF_OK &&
            rfi_file_read(merge->context, path, (size_t)small_bytes, &theirs, NULL) == REEF_OK) {
            same = theirs.size == file->size && memcmp(theirs.bytes, file->bytes, file->size) == 0;
            rfi_file_free(merge->context, &theirs);
        }
        rfi_release(merge->context, path);
        if (!same) {
            return model->path;
        }
    }
    return NULL;
}

static void tell(const rfi_merge *merge, const char *name, const char *where)
{
    char text[600];
    if (merge->options->note) {
        (void)snprintf(text, sizeof text,
                       "%.200s is not the same everywhere (%.200s has another or none) and was not copied", name,
                       rfi_path_show(where));
        rfi_hide_control(text);
        merge->options->note(merge->options->user, text);
    }
}

static reef_status copy_one(rfi_merge *merge, const char *name, reef_error *error)
{
    char *path = NULL;
    rfi_file file;
    reef_status status =
        rfi_path_join(merge->context, merge->reference->path, (rfi_slice){name, strlen(name)}, &path, error);
    if (status != REEF_OK) {
        return status;
    }
    bool small = is_small(path);
    if (small) {
        status = rfi_file_read(merge->context, path, (size_t)small_bytes, &file, error);
    }
    rfi_release(merge->context, path);
    if (status != REEF_OK || !small) {
        return status;
    }
    const char *other = find_other(merge, name, &file);
    if (other) {
        tell(merge, name, other);
    } else {
        status = rfi_output_add(&merge->out, name, file.bytes, file.size, error);
    }
    rfi_file_free(merge->context, &file);
    return status;
}

reef_status rfi_merge_small_files(rfi_merge *merge, reef_error *error)
{
    struct dirent **entries = NULL;
    if (!merge->out.folder || !merge->reference->folder) {
        return REEF_OK;
    }
    int count = scandir(merge->reference->path, &entries, is_candidate, alphasort);
    if (count < 0) {
        return rfi_fail_errno(error, merge->reference->path, "look into the folder", errno);
    }
    reef_status status = REEF_OK;
    for (int i = 0; i < count; i++) {
        if (status == REEF_OK) {
            status = copy_one(merge, entries[i]->d_name, error);
        }
        free(entries[i]);
    }
    free((void *)entries);
    return status;
}
