/* Memory between merges: the state of a rule that remembers senders, in a file.
 *
 * Sites are told apart by their names, whose hashes are the ids that the rule knows them by. The file has the bytes of the state as the library
 * saves them, with version, rule, lengths and checksum; it is for its owner alone, because of the seed in it. The new file is written before the result takes its place and renamed after it, so
 * that a merge that fails leaves neither. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/lines.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- names ---- */

/* The last part of a path without its ending: "siteA" of week1/siteA.safetensors and of week1/siteA/. */
static rfi_slice site_of(const char *path)
{
    static const char *const ends[] = {".safetensors", ".npy", ".npz"};
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    size_t start = length;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t tail = strlen(ends[i]);
        if (length - start > tail && strncmp(path + length - tail, ends[i], tail) == 0) {
            length -= tail;
            break;
        }
    }
    return (rfi_slice){path + start, length - start};
}

static rfi_slice name_of(const rfi_merge *merge, ptrdiff_t row)
{
    ptrdiff_t file = merge->file_of[row];
    const char *const *given = merge->options->ids;
    return given ? (rfi_slice){given[file], strlen(given[file])} : site_of(merge->models[file].path);
}

static reef_status number_sites(rfi_merge *merge, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        rfi_slice name = name_of(merge, l);
        merge->ids[l] = (int64_t)(rfi_hash_bytes(RFI_HASH_START, name.text, name.length) >> 1);
        for (ptrdiff_t k = 0; k < l; k++) {
            if (merge->ids[k] == merge->ids[l]) {
                return rfi_fail(error, REEF_E_ARG, "two models have the id '%s'; name them with ids of their own",
                                rfi_shown(name, shown));
            }
        }
    }
    return REEF_OK;
}

/* ---- the file ---- */

static reef_status load(rfi_merge *merge, reef_error *error)
{
    const char *path = merge->options->state;
    rfi_file file;
    reef_error reason;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return REEF_OK; /* the first merge */
    }
    size_t most = reef_state_room(merge->state, REEF_SENDERS_LIMIT);
    reef_status status = rfi_file_read(merge->context, path, most ? most : SIZE_MAX - 1, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    status = reef_state_load(merge->state, file.bytes, file.size, &reason);
    rfi_file_free(merge->context, &file);
    if (status == REEF_E_NOMEM || status == REEF_OK) {
        return status == REEF_OK ? REEF_OK : rfi_fail(error, status, "%s", reason.text);
    }
    return rfi_fail(error, REEF_E_FORMAT, "%s: cannot be used as the memory of this rule and model: %.150s",
                    rfi_path_show(path), reason.text);
}

/* A rule that remembers senders, without a memory: allowed, but a person should know. */
static void warn(const rfi_merge *merge, bool remembers)
{
    if (remembers && merge->options->note) {
        merge->options->note(
            merge->options->user,
            "warning: this rule remembers sites from merge to merge, but has no file for that (--state); "
            "it judges them by this merge alone");
    }
}

reef_status rfi_merge_recall(rfi_merge *merge, reef_error *error)
{
    const bool remembers = reef_agg_traits(merge->agg) & REEF_TRAIT_SENDERS;
    if (!merge->options->state) {
        warn(merge, remembers);
        return REEF_OK;
    }
    if (!remembers) {
        return rfi_fail(error, REEF_E_ARG, "this rule remembers no senders, so there is nothing to keep; mref does");
    }
    if (merge->options->per_tensor) {
        return rfi_fail(error, REEF_E_ARG, "the memory is that of whole models, not of each tensor by itself");
    }
    if (merge->segments > merge->whole) {
        return rfi_fail(error, REEF_E_ARG,
                        "the memory is that of whole models, and some files lack tensors; leave those "
                        "out for all (--common)");
    }
    const reef_shape shape = {.rows = merge->rows,
                              .segments = merge->segments,
                              .lengths = merge->lengths,
                              .dtype = merge->dtype,
                              .workers = merge->workers};
    assert(!merge->state && merge->segments == merge->whole);
    reef_status status = number_sites(merge, error);
    if (status == REEF_OK) {
        status = reef_state_create(&merge->state, merge->agg, &shape, error);
    }
    if (status == REEF_OK) {
        status = load(merge, error);
    }
    return status;
}

reef_status rfi_merge_remember(rfi_merge *merge, reef_error *error)
{
    if (!merge->state) {
        return REEF_OK;
    }
    assert(!merge->memory.name); /* once a merge */
    size_t size = reef_state_size(merge->state);
    void *bytes = rfi_allocate(merge->context, size);
    if (!bytes) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the %zu bytes to be kept", size);
    }
    reef_status status = reef_state_save(merge->state, bytes, size, error);
    if (status == REEF_OK) {
        status = rfi_writer_open_private(merge->context, &merge->memory, merge->options->state, error);
    }
    if (status == REEF_OK) {
        status = rfi_writer_put(&merge->memory, 0, bytes, size, error);
    }
    rfi_release(merge->context, bytes);
    return status;
}
