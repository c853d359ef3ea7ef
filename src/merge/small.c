/* What lies in a folder beside the weights: configuration, tokenizer, licence. It is copied if all folders have the same; what differs, or is in
 * some of them only, is told, and left for a person to decide on. A subfolder (1_Pooling of sentence-transformers) is copied as a whole if it holds
 * nothing but such files, and is the same everywhere. */
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
/* Sites may have any number of files: so many are told of by name. */
enum { NOTES_MAX = 20 };

typedef struct copying {
    rfi_merge *merge;
    ptrdiff_t left; /* files and folders that were not copied */
    bool scales;    /* adapters differ in their scale */
} copying;

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

/* ---- what is told ---- */

static void note(const rfi_merge *merge, char *text)
{
    if (merge->options->note) {
        rfi_hide_control(text);
        merge->options->note(merge->options->user, text);
    }
}

/* `what` follows the name of something in a folder that was not copied. */
static void tell(copying *c, const char *name, const char *what)
{
    char text[800];
    (void)snprintf(text, sizeof text, "%.200s %.550s", name, what);
    if (c->left++ < NOTES_MAX) {
        note(c->merge, text);
    }
}

/* differs: how the file in the folder `where` does. */
static void tell_other(copying *c, const char *name, const char *where, const char *differs)
{
    char what[550];
    (void)snprintf(what, sizeof what,
                   "is not the same everywhere (%.200s %.200s) and was not copied; copy the one that you trust",
                   rfi_path_show(where), differs);
    tell(c, name, what);
}

static void tell_rest(const copying *c)
{
    char text[100];
    if (c->left > NOTES_MAX) {
        (void)snprintf(text, sizeof text, "%td more files and folders were not copied", c->left - NOTES_MAX);
        note(c->merge, text);
    }
}

/* ---- looking ---- */

/* A path in a folder; NULL: no memory. The caller releases it. */
static char *join(const rfi_merge *merge, const char *folder, const char *name)
{
    char *path = NULL;
    reef_status status = rfi_path_join(merge->context, folder, (rfi_slice){name, strlen(name)}, &path, NULL);
    return status == REEF_OK ? path : NULL;
}

static bool has(const rfi_merge *merge, const rfi_model *model, const char *name)
{
    struct stat about;
    char *path = join(merge, model->path, name);
    bool there = path && stat(path, &about) == 0;
    rfi_release(merge->context, path);
    return there;
}

static bool is_same(const rfi_merge *merge, const rfi_model *model, const char *name, const rfi_file *file)
{
    rfi_file theirs;
    char *path = join(merge, model->path, name);
    bool same = path && rfi_file_read(merge->context, path, (size_t)small_bytes, &theirs, NULL) == REEF_OK;
    if (same) {
        same = theirs.size == file->size && memcmp(theirs.bytes, file->bytes, file->size) == 0;
        rfi_file_free(merge->context, &theirs);
    }
    rfi_release(merge->context, path);
    return same;
}

static const rfi_model *model_of(const rfi_merge *merge, ptrdiff_t row)
{
    return &merge->models[merge->file_of[row]];
}

/* The first folder whose file of that name is missing or has other bytes; NULL: none. */
static const rfi_model *find_other(const rfi_merge *merge, const char *name, const rfi_file *file)
{
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const rfi_model *model = model_of(merge, l);
        if (model->folder && model != merge->reference && !is_same(merge, model, name, file)) {
            return model;
        }
    }
    return NULL;
}

/* In which keys two files differ, if they are small and JSON. */
static rfi_key_list compare_keys(const rfi_merge *merge, const rfi_model *model, const char *name, const rfi_file *file)
{
    rfi_file theirs;
    rfi_key_list keys = {0};
    char *path = join(merge, model->path, name);
    if (path && rfi_file_read(merge->context, path, (size_t)small_bytes, &theirs, NULL) == REEF_OK) {
        keys = rfi_differing_keys(file, &theirs);
        rfi_file_free(merge->context, &theirs);
    }
    rfi_release(merge->context, path);
    return keys;
}

/* `other` has no such file, or another than the reference's, which is `file`. */
static void tell_difference(copying *c, const char *name, const rfi_model *other, const rfi_file *file)
{
    char differs[200] = "has another";
    if (!has(c->merge, other, name)) {
        tell_other(c, name, other->path, "has none");
        return;
    }
    if (c->left < NOTES_MAX) { /* the rest are not told of */
        rfi_key_list keys = compare_keys(c->merge, other, name, file);
        if (keys.count > 0) {
            (void)snprintf(differs, sizeof differs, "differs in %s", keys.text);
        }
        c->scales = c->scales || (keys.scale && strcmp(name, "adapter_config.json") == 0);
    }
    tell_other(c, name, other->path, differs);
}

/* PEFT has the scale of products beside the factors. */
static void warn_of_scale(const copying *c)
{
    char text[] =
        "warning: the sites differ in what adapter_config.json says of the scale: products are aggregated as if all "
        "had the same; multiply factors by the scale, or train with one lora_alpha";
    if (c->scales && c->merge->pair_count > 0) {
        note(c->merge, text);
    }
}

/* ---- copying ---- */

static reef_status copy_file(copying *c, const char *name, const char *path, reef_error *error)
{
    const rfi_merge *merge = c->merge;
    rfi_file file;
    reef_status status = rfi_file_read(merge->context, path, (size_t)small_bytes, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    const rfi_model *other = find_other(merge, name, &file);
    if (other) {
        tell_difference(c, name, other, &file);
    } else {
        status = rfi_output_add(&merge->out, name, file.bytes, file.size, error);
    }
    rfi_file_free(merge->context, &file);
    return status;
}

/* ---- subfolders ---- */

/* A name in a subfolder, relative to the folder. The caller releases it. */
static char *inside(const rfi_merge *merge, const char *folder, const struct dirent *entry)
{
    return join(merge, folder, entry->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void free_entries(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++) {
        free(entries[i]);
    }
    free((void *)entries);
}

/* How many visible things are in a folder; negative: it cannot be read. */
static int count_entries(const rfi_merge *merge, const rfi_model *model, const char *name)
{
    struct dirent **entries = NULL;
    char *path = join(merge, model->path, name);
    int count = path ? scandir(path, &entries, is_visible, alphasort) : -1;
    rfi_release(merge->context, path);
    if (count >= 0) {
        free_entries(entries, count);
    }
    return count;
}

/* Reads a file of the reference if it is one that may be copied, and all others have the same. `name` is relative to the folders. */
static bool take_same(const rfi_merge *merge, const char *name, rfi_file *file)
{
    struct stat about;
    char *path = join(merge, merge->reference->path, name);
    bool small = path && !is_weights(name) && stat(path, &about) == 0 && S_ISREG(about.st_mode) &&
                 about.st_size <= small_bytes &&
                 rfi_file_read(merge->context, path, (size_t)small_bytes, file, NULL) == REEF_OK;
    rfi_release(merge->context, path);
    if (small && find_other(merge, name, file)) {
        rfi_file_free(merge->context, file);
        small = false;
    }
    return small;
}

/* True if the subfolder can be copied; `entries` are those of the reference. */
static bool is_same_folder(const rfi_merge *merge, const char *name, struct dirent **entries, int count)
{
    bool same = true;
    for (ptrdiff_t l = 0; same && l < merge->rows; l++) {
        same = !model_of(merge, l)->folder || count_entries(merge, model_of(merge, l), name) == count;
    }
    for (int i = 0; same && i < count; i++) {
        rfi_file file;
        char *inner = inside(merge, name, entries[i]);
        same = inner && take_same(merge, inner, &file);
        if (same) {
            rfi_file_free(merge->context, &file);
        }
        rfi_release(merge->context, inner);
    }
    return same;
}

static reef_status copy_entries(const rfi_merge *merge, const char *name, struct dirent **entries, int count,
                                reef_error *error)
{
    reef_status status = rfi_output_add_folder(&merge->out, name, error);
    for (int i = 0; status == REEF_OK && i < count; i++) {
        rfi_file file;
        char *inner = inside(merge, name, entries[i]);
        if (!inner || !take_same(merge, inner, &file)) {
            status = rfi_fail(error, REEF_E_FILE, "%.200s: a file in it has changed while it was read", name);
        } else {
            status = rfi_output_add(&merge->out, inner, file.bytes, file.size, error);
            rfi_file_free(merge->context, &file);
        }
        rfi_release(merge->context, inner);
    }
    return status;
}

static reef_status copy_folder(copying *c, const char *name, const char *path, reef_error *error)
{
    struct dirent **entries = NULL;
    reef_status status = REEF_OK;
    int count = scandir(path, &entries, is_visible, alphasort);
    if (count >= 0 && is_same_folder(c->merge, name, entries, count)) {
        status = copy_entries(c->merge, name, entries, count, error);
    } else {
        tell(c, name,
             "is a subfolder that is not the same everywhere, or holds more than small files, and was not copied");
    }
    if (count >= 0) {
        free_entries(entries, count);
    }
    return status;
}

static bool is_link(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

/* Something in the reference's folder. */
static reef_status copy_one(copying *c, const char *name, reef_error *error)
{
    struct stat about;
    char *path = join(c->merge, c->merge->reference->path, name);
    reef_status status = REEF_OK;
    if (!path) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory to copy %.200s", name);
    }
    if (stat(path, &about) != 0) {
        tell(c, name, "cannot be read and was not copied");
    } else if (S_ISDIR(about.st_mode) && is_link(path)) {
        tell(c, name, "is a link to a folder and was not copied");
    } else if (S_ISDIR(about.st_mode)) {
        status = copy_folder(c, name, path, error);
    } else if (!S_ISREG(about.st_mode)) {
        tell(c, name, "is not a regular file and was not copied");
    } else if (about.st_size > small_bytes) {
        tell(c, name, "is larger than 64 MB and was not copied; copy it yourself if the model needs it");
    } else {
        status = copy_file(c, name, path, error);
    }
    rfi_release(c->merge->context, path);
    return status;
}

/* Something in another folder: told of if neither the reference nor a folder before has it. */
static void look_at_one(copying *c, ptrdiff_t row, const char *name)
{
    const rfi_merge *merge = c->merge;
    for (ptrdiff_t l = 0; l < row; l++) {
        if (model_of(merge, l)->folder && has(merge, model_of(merge, l), name)) {
            return;
        }
    }
    if (!has(merge, merge->reference, name)) {
        tell_other(c, name, merge->reference->path, "has none");
    }
}

static reef_status look_into(copying *c, ptrdiff_t row, reef_error *error)
{
    struct dirent **entries = NULL;
    const rfi_model *model = model_of(c->merge, row);
    int count = scandir(model->path, &entries, is_candidate, alphasort);
    if (count < 0) {
        return rfi_fail_errno(error, model->path, "look into the folder", errno);
    }
    reef_status status = REEF_OK;
    for (int i = 0; i < count; i++) {
        if (status == REEF_OK && model == c->merge->reference) {
            status = copy_one(c, entries[i]->d_name, error);
        } else if (status == REEF_OK) {
            look_at_one(c, row, entries[i]->d_name);
        }
    }
    free_entries(entries, count);
    return status;
}

reef_status rfi_merge_small_files(rfi_merge *merge, reef_error *error)
{
    copying c = {.merge = merge};
    reef_status status = REEF_OK;
    if (!merge->out.folder || !merge->reference->folder) {
        return REEF_OK;
    }
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        status = model_of(merge, l)->folder ? look_into(&c, l, error) : REEF_OK;
    }
    tell_rest(&c);
    warn_of_scale(&c);
    return status;
}
