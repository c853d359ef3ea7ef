/* A folder with a model, as Hugging Face lays it out: model.safetensors, or model.safetensors.index.json and the shards that it names; or one
 * file of another name that ends with .safetensors or .safetensors.index.json (adapter_model, diffusion_pytorch_model, ...). */
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/lines.h"
#include "io/shards.h"
#include "merge/model.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_end[] = ".safetensors";
static const char index_end[] = ".safetensors.index.json";

/* The files of a folder that end so: how many, and the one that is taken. */
typedef struct choice {
    ptrdiff_t count;
    char name[256];
} choice;

typedef struct finding {
    choice file, index;
    bool pickled;   /* there is a .bin, .pt or .pth */
    char inner[64]; /* a subfolder with a model in it; "": there is none */
} finding;

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name);
    size_t tail = strlen(end);
    return length > tail && strcmp(name + length - tail, end) == 0;
}

reef_status rfi_path_join(const reef_context *context, const char *folder, rfi_slice name, char **path,
                          reef_error *error)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') {
        length--;
    }
    char *joined = rfi_allocate(context, length + name.length + 2);
    if (!joined) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its files", rfi_path_show(folder));
    }
    memcpy(joined, folder, length);
    joined[length] = '/';
    memcpy(joined + length + 1, name.text, name.length);
    joined[length + 1 + name.length] = '\0';
    *path = joined;
    return REEF_OK;
}

/* ---- which files ---- */

/* The usual name goes before all others. */
static void consider(choice *c, const char *name, const char *usual)
{
    bool chosen = c->count == 1 && strcmp(c->name, usual) == 0;
    if (!chosen && strlen(name) < sizeof c->name) {
        c->count = strcmp(name, usual) == 0 ? 1 : c->count + 1;
        memcpy(c->name, name, strlen(name) + 1);
    }
}

/* Whether an entry of a folder is a folder with a .safetensors file, as the parts of a diffusers pipeline are, or checkpoints of one training. */
static bool has_model(int folder, const char *name)
{
    bool found = false;
    int descriptor = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    DIR *inner = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    for (const struct dirent *entry = inner ? readdir(inner) : NULL; entry && !found; entry = readdir(inner)) {
        found = entry->d_name[0] != '.' && ends_with(entry->d_name, file_end);
    }
    if (inner) {
        (void)closedir(inner);
    } else if (descriptor >= 0) {
        (void)close(descriptor);
    }
    return found;
}

static reef_status look_into(const char *path, finding *found, reef_error *error)
{
    DIR *folder = opendir(path);
    if (!folder) {
        return rfi_fail_errno(error, path, "open the folder", errno);
    }
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        const char *name = entry->d_name;
        if (name[0] == '.') {
            continue;
        }
        found->pickled = found->pickled || ends_with(name, ".bin") || ends_with(name, ".pt") || ends_with(name, ".pth");
        if (ends_with(name, index_end)) {
            consider(&found->index, name, "model.safetensors.index.json");
        } else if (ends_with(name, file_end)) {
            consider(&found->file, name, "model.safetensors");
        } else if (!found->inner[0] && strlen(name) < sizeof found->inner && has_model(dirfd(folder), name)) {
            memcpy(found->inner, name, strlen(name) + 1);
        }
    }
    (void)closedir(folder);
    return REEF_OK;
}

/* The name of the file, or of the index, that has the model. */
static reef_status choose(const char *path, const finding *found, const char **name, reef_error *error)
{
    const char *shown = rfi_path_show(path);
    bool usual = strcmp(found->file.name, "model.safetensors") == 0;
    if (found->index.count == 1 && !usual) {
        *name = found->index.name;
        return REEF_OK;
    }
    if (found->file.count == 1) {
        *name = found->file.name;
        return REEF_OK;
    }
    if (found->file.count + found->index.count > 0) {
        return rfi_fail(
            error, REEF_E_FORMAT,
            "%s: has several .safetensors files, but no model.safetensors; if they are the shards of one model, its "
            "index (model.safetensors.index.json) is missing; if they are several models, give one of them",
            shown);
    }
    if (found->inner[0]) {
        return rfi_fail(
            error, REEF_E_FORMAT,
            "%s: is a folder without a .safetensors file, but has subfolders with one, such as %s; give one of "
            "those, or all of them as models",
            shown, found->inner);
    }
    return rfi_fail(error, REEF_E_FORMAT, "%s: %s", shown,
                    found->pickled
                        ? "has pickled files only (.bin, .pt), which can run code when they are loaded; save the "
                          "model as safetensors (save_pretrained)"
                        : "is a folder without a .safetensors file");
}

/* ---- opening ---- */

/* Room for `files` shards. */
static reef_status make_shards(const reef_context *context, rfi_model *model, ptrdiff_t files, reef_error *error)
{
    rfi_shard *shards = rfi_allocate_many(context, files, sizeof *shards);
    if (!shards) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its %td files", rfi_path_show(model->path), files);
    }
    for (ptrdiff_t i = 0; i < files; i++) {
        shards[i] = (rfi_shard){.file = {.descriptor = -1}};
    }
    model->shards = shards;
    model->memory = shards;
    model->shard_count = files;
    return REEF_OK;
}

static bool is_link(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

static reef_status open_shards(const reef_context *context, rfi_model *model, const rfi_slice *files, reef_error *error)
{
    for (ptrdiff_t i = 0; i < model->shard_count; i++) {
        rfi_shard *shard = &model->shards[i];
        reef_status status = rfi_path_join(context, model->path, files[i], &shard->path, error);
        if (status == REEF_OK && access(shard->path, F_OK) != 0 && (errno == ENOENT || errno == ELOOP)) {
            return rfi_fail(error, REEF_E_FORMAT, "%s: is %s", rfi_path_show(shard->path),
                            is_link(shard->path) ? "a link that leads nowhere" : "not there, but the index names it");
        }
        if (status == REEF_OK) {
            status = rfi_shard_open(context, shard, shard->path, error);
        }
        if (status != REEF_OK) {
            return status;
        }
        model->count += shard->table.count;
    }
    return REEF_OK;
}

/* One list of the tensors of all shards. */
static reef_status list_tensors(const reef_context *context, rfi_model *model, reef_error *error)
{
    rfi_tensor *tensors = rfi_allocate_many(context, model->count + 1, sizeof *tensors + sizeof(ptrdiff_t));
    if (!tensors) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its %td tensors", rfi_path_show(model->path),
                        model->count);
    }
    ptrdiff_t *shard_of = (ptrdiff_t *)(void *)(tensors + model->count + 1);
    ptrdiff_t used = 0;
    for (ptrdiff_t i = 0; i < model->shard_count; i++) {
        const rfi_safetensors *table = &model->shards[i].table;
        for (ptrdiff_t t = 0; t < table->count; t++) {
            tensors[used] = table->tensors[t];
            shard_of[used++] = i;
        }
    }
    assert(used == model->count);
    model->list = tensors;
    model->tensors = tensors;
    model->shard_of = shard_of;
    return REEF_OK;
}

static reef_status fail_name(const char *name, bool extra, rfi_slice tensor, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    return rfi_fail(error, REEF_E_FORMAT, "%s: %s tensor '%s' %s", rfi_path_show(name),
                    extra ? "names a" : "does not name the", rfi_shown(tensor, shown),
                    extra ? "that its files lack" : "of its files");
}

/* The index and the shards must say the same about every tensor; both are sorted by name. */
static reef_status check_index(const rfi_model *model, const rfi_shards *index, const char *name, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    ptrdiff_t both = index->count < model->count ? index->count : model->count;
    for (ptrdiff_t i = 0; i < both; i++) {
        const rfi_shard_entry *entry = &index->entries[i];
        const rfi_tensor *tensor = model->by_name[i];
        int order = rfi_slice_compare(entry->tensor, tensor->name);
        if (order != 0) {
            return fail_name(name, order < 0, order < 0 ? entry->tensor : tensor->name, error);
        }
        const char *file = strrchr(rfi_model_shard(model, tensor)->path, '/') + 1;
        if (!rfi_equals(entry->file, file)) {
            return rfi_fail(error, REEF_E_FORMAT, "%s: tensor '%s' is in another file than it says",
                            rfi_path_show(name), rfi_shown(entry->tensor, shown));
        }
    }
    if (index->count != model->count) {
        bool extra = index->count > both;
        return fail_name(name, extra, extra ? index->entries[both].tensor : model->by_name[both]->name, error);
    }
    return REEF_OK;
}

static reef_status open_all(const reef_context *context, rfi_model *model, const rfi_slice *files, ptrdiff_t count,
                            reef_error *error)
{
    reef_status status = make_shards(context, model, count, error);
    if (status == REEF_OK) {
        status = open_shards(context, model, files, error);
    }
    if (status == REEF_OK) {
        status = list_tensors(context, model, error);
    }
    if (status == REEF_OK) {
        status = rfi_model_sort(context, model, error);
    }
    return status;
}

static reef_status open_index(const reef_context *context, rfi_model *model, const char *path, reef_error *error)
{
    rfi_file file;
    rfi_shards index = {0};
    reef_error reason;
    reef_status status = rfi_model_regular(path, &reason);
    if (status == REEF_OK) {
        status = rfi_file_read(context, path, RFI_SHARDS_MAX, &file, &reason);
    }
    if (status == REEF_E_RANGE) { /* an index too large is as wrong as any content */
        reason.status = REEF_E_FORMAT;
    }
    if (status != REEF_OK) {
        return rfi_fail(error, reason.status, "%s", reason.text);
    }
    status = rfi_shards_read(context, file.bytes, file.size, path, &index, error);
    model->index_sum = rfi_hash_bytes(RFI_HASH_START, file.bytes, file.size);
    rfi_file_free(context, &file);
    if (status == REEF_OK && index.count == 0) {
        status = rfi_fail(error, REEF_E_FORMAT, "%s: names no tensor", rfi_path_show(path));
    }
    if (status == REEF_OK) {
        status = open_all(context, model, index.files, index.file_count, error);
    }
    if (status == REEF_OK) {
        status = check_index(model, &index, path, error);
    }
    rfi_shards_free(context, &index);
    return status;
}

reef_status rfi_model_open_folder(const reef_context *context, rfi_model *model, reef_error *error)
{
    finding found = {0};
    const char *name = NULL;
    reef_status status = look_into(model->path, &found, error);
    if (status == REEF_OK) {
        status = choose(model->path, &found, &name, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    rfi_slice slice = {name, strlen(name)};
    if (!ends_with(name, index_end)) {
        return open_all(context, model, &slice, 1, error);
    }
    status = rfi_path_join(context, model->path, slice, &model->index, error);
    if (status != REEF_OK) {
        return status;
    }
    return open_index(context, model, model->index, error);
}
