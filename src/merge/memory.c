/* Memory between merges: the state of a rule that remembers senders, in a file.
 *
 * Sites are told apart by their names, whose hashes are the ids that the rule knows them by. The file has the bytes of the state as the library
 * saves them, with version, rule, lengths and checksum; it is for its owner alone, because of the seed in it. The new file is written before the result takes its place and renamed after it, so
 * that a merge that fails leaves neither.
 *
 * Two merges at once with one memory would both begin with the same and one would be forgotten. So the file is locked (flock) as long as a merge
 * that began with it is under way; who has waited for the lock of a file that was replaced meanwhile takes the new one. The first merge has no
 * file to lock: it fails if there is one when it ends. Several first merges that end at once take turns by a lock of the folder, so that none puts
 * its result in place and then finds that it may not put its memory there. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/lines.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
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
                return rfi_fail(error, REEF_E_ARG,
                                "two models have the id '%s'; name each site by an id of its own (--ids)",
                                rfi_shown(name, shown));
            }
        }
    }
    return REEF_OK;
}

/* ---- the file ---- */

enum { LOCK_TRIES = 100 };

/* True if the path is that of the open file, and not of one that has taken its place. */
static bool is_there(int descriptor, const char *path)
{
    struct stat opened;
    struct stat found;
    return fstat(descriptor, &opened) == 0 && stat(path, &found) == 0 && opened.st_dev == found.st_dev &&
           opened.st_ino == found.st_ino;
}

/* Opens the file and locks it; without one, merge->first is true. Where files cannot be locked, nobody is kept out. */
static reef_status lock(rfi_merge *merge, reef_error *error)
{
    const char *path = merge->options->state;
    for (int i = 0; i < LOCK_TRIES; i++) {
        int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (descriptor < 0 && errno == ENOENT) {
            merge->first = true;
            return REEF_OK;
        }
        if (descriptor < 0) {
            return rfi_fail_errno(error, path, "open", errno);
        }
        bool busy = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!busy && is_there(descriptor, path)) {
            merge->memory_lock = descriptor;
            return REEF_OK;
        }
        (void)close(descriptor);
        if (busy) {
            break;
        }
    }
    return rfi_fail(error, REEF_E_FILE,
                    "%s: another merge is working with this memory; run this one again when that is done",
                    rfi_path_show(path));
}

/* Waits until no other first merge is putting its files in place. Where folders cannot be locked, nobody is waited for. */
static void take_turn(rfi_merge *merge)
{
    assert(merge->first && merge->memory_lock < 0);
    merge->memory_lock = rfi_open_folder_of(merge->memory.target);
    while (merge->memory_lock >= 0 && flock(merge->memory_lock, LOCK_EX) != 0 && errno == EINTR) {
    }
}

reef_status rfi_merge_check_memory(rfi_merge *merge, reef_error *error)
{
    struct stat about;
    const char *path = merge->options->state;
    if (merge->first) {
        take_turn(merge);
    }
    bool lost = merge->first ? stat(path, &about) == 0 : merge->memory_lock >= 0 && !is_there(merge->memory_lock, path);
    return lost ? rfi_fail(error, REEF_E_FILE,
                           "%s: this memory was %s while the models were merged; run this merge again",
                           rfi_path_show(path), merge->first ? "made by another merge" : "replaced or removed")
                : REEF_OK;
}

void rfi_merge_unlock_memory(rfi_merge *merge)
{
    if (merge->memory_lock >= 0) {
        (void)close(merge->memory_lock);
    }
    merge->memory_lock = -1;
}

static reef_status load(rfi_merge *merge, reef_error *error)
{
    const char *path = merge->options->state;
    rfi_file file;
    reef_error reason;
    size_t most = reef_state_room(merge->state, REEF_SENDERS_LIMIT);
    reef_status status = rfi_file_read(merge->context, path, most ? most : SIZE_MAX - 1, &file, &reason);
    if (status == REEF_OK) {
        status = reef_state_load(merge->state, file.bytes, file.size, &reason);
        rfi_file_free(merge->context, &file);
    } else if (status != REEF_E_RANGE) { /* too large is as wrong as any content */
        return rfi_fail(error, status, "%s", reason.text);
    }
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
        return rfi_fail(error, REEF_E_ARG, "this rule remembers no senders, so it has no use for a memory; mref does");
    }
    if (merge->options->per_tensor) {
        return rfi_fail(error, REEF_E_ARG,
                        "a memory is kept of whole models, which are compared as such; merge without --per-tensor");
    }
    if (merge->segments > merge->whole) {
        return rfi_fail(error, REEF_E_ARG,
                        "a memory is kept of whole models, and some files lack tensors; leave those "
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
        status = lock(merge, error);
    }
    if (status == REEF_OK && !merge->first) {
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
    if (status == REEF_OK) {
        status = rfi_writer_flush(&merge->memory, error); /* a full disk shows now, before the result is in its place */
    }
    rfi_release(merge->context, bytes);
    return status;
}
