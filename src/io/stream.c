/* Large files, with POSIX calls. */
#include "io/stream.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/target.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_ROOM = 48, NAME_TRIES = 100 };

reef_status rfi_fail_errno(reef_error *error, const char *path, const char *what, int number)
{
    char reason[100];
    if (strerror_r(number, reason, sizeof reason) != 0) {
        (void)snprintf(reason, sizeof reason, "error %d", number);
    }
    return rfi_fail(error, REEF_E_FILE, "%s: cannot %s: %s%s", rfi_path_show(path), what, reason,
                    number == EMFILE ? " for one process; allow more (ulimit -n)" : "");
}

/* ---- reading ---- */

/* Notes what the file is now. */
static reef_status look_at(rfi_reader *reader, reef_error *error)
{
    struct stat about;
    if (fstat(reader->descriptor, &about) != 0) {
        return rfi_fail_errno(error, reader->path, "look at it", errno);
    }
    if (!S_ISREG(about.st_mode)) {
        const char *what = S_ISDIR(about.st_mode) ? "a folder, not a file" : "not a regular file";
        return rfi_fail(error, REEF_E_FILE, "%s: is %s", rfi_path_show(reader->path), what);
    }
    if (about.st_size < 0 || (uintmax_t)about.st_size >= PTRDIFF_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%s: too large for the address space", rfi_path_show(reader->path));
    }
    reader->size = (size_t)about.st_size;
    reader->device = about.st_dev;
    reader->inode = about.st_ino;
    reader->modified = about.st_mtim;
    reader->changed = about.st_ctim;
    return REEF_OK;
}

reef_status rfi_reader_open(rfi_reader *reader, const char *path, reef_error *error)
{
    /* O_NONBLOCK: opening a pipe would wait for a writer. */
    *reader = (rfi_reader){.path = path, .descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (reader->descriptor < 0) {
        return rfi_fail_errno(error, path, "open", errno);
    }
    reef_status status = look_at(reader, error);
    if (status != REEF_OK) {
        rfi_reader_close(reader);
    }
    return status;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

reef_status rfi_reader_confirm(const rfi_reader *reader, reef_error *error)
{
    struct stat place;
    rfi_reader now = *reader;
    reef_status status = look_at(&now, error);
    if (status != REEF_OK) {
        return status;
    }
    bool same = now.size == reader->size && is_same_time(&now.modified, &reader->modified) &&
                is_same_time(&now.changed, &reader->changed);
    bool removed = stat(reader->path, &place) != 0;
    bool there = !removed && place.st_dev == reader->device && place.st_ino == reader->inode;
    return same && there ? REEF_OK
                         : rfi_fail(error, REEF_E_FILE, "%s: the file was %s while it was being read",
                                    rfi_path_show(reader->path),
                                    removed  ? "removed"
                                    : !there ? "replaced" /* which changes the time of the one that is open, too */
                                             : "changed");
}

reef_status rfi_reader_get(const rfi_reader *reader, size_t offset, void *bytes, size_t size, reef_error *error)
{
    assert(reader->descriptor >= 0);
    unsigned char *to = bytes;
    while (size > 0) {
        ssize_t step = pread(reader->descriptor, to, size, (off_t)offset);
        if (step < 0 && errno == EINTR) {
            continue;
        }
        if (step < 0) {
            return rfi_fail_errno(error, reader->path, "read", errno);
        }
        if (step == 0) {
            return rfi_fail(error, REEF_E_FILE, "%s: the file became shorter while it was being read",
                            rfi_path_show(reader->path));
        }
        to += step;
        offset += (size_t)step;
        size -= (size_t)step;
    }
    return REEF_OK;
}

reef_status rfi_reader_sum(const reef_context *context, const rfi_reader *reader, uint64_t *sum, reef_error *error)
{
    enum { BLOCK = 1 << 20 };
    unsigned char *block = rfi_allocate(context, BLOCK);
    if (!block) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory while reading %s", rfi_path_show(reader->path));
    }
    reef_status status = REEF_OK;
    for (size_t at = 0; status == REEF_OK && at < reader->size; at += BLOCK) {
        size_t size = reader->size - at < BLOCK ? reader->size - at : BLOCK;
        status = rfi_reader_get(reader, at, block, size, error);
        *sum = status == REEF_OK ? rfi_hash_bytes(*sum, block, size) : *sum;
    }
    rfi_release(context, block);
    return status;
}

void rfi_reader_expect(const rfi_reader *reader, size_t offset, size_t size)
{
    (void)posix_fadvise(reader->descriptor, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
}

void rfi_reader_close(rfi_reader *reader)
{
    if (reader->descriptor >= 0) {
        (void)close(reader->descriptor);
    }
    reader->descriptor = -1;
}

/* ---- writing ---- */

/* Creates a file that did not exist, the target with a number after it; its descriptor or -1. Until it is dressed nobody else may open
 * what replaces an existing file. */
static int open_temporary(const rfi_target *target, mode_t fresh, char *name, size_t room)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        (void)snprintf(name, room, "%s.%ld-%d.tmp", target->path, (long)getpid(), i);
        int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, target->exists ? 0600 : fresh);
        if (descriptor >= 0 || errno != EEXIST) {
            return descriptor;
        }
    }
    return -1;
}

int rfi_open_folder_of(const char *path)
{
    char folder[RFI_PATH_MAX];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 1;
    if (snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".") >= (int)sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
}

/* The rename itself reaches the disk only with its folder. A file system that cannot flush folders is no reason to fail:
 * the file is complete either way. */
void rfi_flush_folder_of(const char *path)
{
    int folder = rfi_open_folder_of(path);
    if (folder >= 0) {
        (void)fsync(folder);
        (void)close(folder);
    }
}

/* fresh: mode of a file that is not there yet, less the umask. */
static reef_status open_writer(const reef_context *context, rfi_writer *writer, const char *path, mode_t fresh,
                               reef_error *error)
{
    rfi_target target;
    *writer = (rfi_writer){.context = context, .path = path, .descriptor = -1};
    reef_status status = rfi_target_find(path, &target, error);
    if (status != REEF_OK) {
        return status;
    }
    if (target.exists && !S_ISREG(target.type)) {
        return rfi_fail(error, REEF_E_FILE, "%s: cannot write: the path exists and is not a regular file",
                        rfi_path_show(path));
    }
    size_t length = strlen(target.path) + 1;
    char *names = rfi_allocate(context, 2 * length + NAME_ROOM);
    if (!names) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: not enough memory while writing", rfi_path_show(path));
    }
    memcpy(names, target.path, length);
    writer->descriptor = open_temporary(&target, fresh, names + length, length + NAME_ROOM);
    if (writer->descriptor < 0) {
        int number = errno;
        rfi_release(context, names);
        return rfi_fail_errno(error, path, "make a file beside it", number);
    }
    rfi_target_dress(&target, writer->descriptor);
    writer->target = names;
    writer->name = names + length;
    return REEF_OK;
}

reef_status rfi_writer_open(const reef_context *context, rfi_writer *writer, const char *path, reef_error *error)
{
    return open_writer(context, writer, path, 0666, error);
}

reef_status rfi_writer_open_private(const reef_context *context, rfi_writer *writer, const char *path,
                                    reef_error *error)
{
    return open_writer(context, writer, path, 0600, error);
}

reef_status rfi_writer_put(const rfi_writer *writer, size_t offset, const void *bytes, size_t size, reef_error *error)
{
    assert(writer->descriptor >= 0);
    const unsigned char *from = bytes;
    while (size > 0) {
        ssize_t step = pwrite(writer->descriptor, from, size, (off_t)offset);
        if (step < 0 && errno == EINTR) {
            continue;
        }
        if (step < 0) {
            return rfi_fail_errno(error, writer->path, "write", errno);
        }
        from += step;
        offset += (size_t)step;
        size -= (size_t)step;
    }
    return REEF_OK;
}

static void forget(rfi_writer *writer)
{
    rfi_release(writer->context, writer->target);
    writer->target = NULL;
    writer->name = NULL;
    writer->descriptor = -1;
}

reef_status rfi_writer_flush(const rfi_writer *writer, reef_error *error)
{
    assert(writer->descriptor >= 0);
    return fsync(writer->descriptor) != 0 ? rfi_fail_errno(error, writer->path, "write", errno) : REEF_OK;
}

/* Gives the file its name; an error number, or 0. fresh: not if something has that name. Some file systems have no second names for files. */
static int take_place(const rfi_writer *writer, bool fresh)
{
    if (fresh && link(writer->name, writer->target) == 0) {
        (void)unlink(writer->name);
        return 0;
    }
    if (fresh && errno == EEXIST) {
        return EEXIST;
    }
    return rename(writer->name, writer->target) != 0 ? errno : 0;
}

static reef_status commit(rfi_writer *writer, bool fresh, reef_error *error)
{
    assert(writer->descriptor >= 0 && writer->name && writer->target);
    int number = fsync(writer->descriptor) != 0 ? errno : 0;
    if (close(writer->descriptor) != 0 && !number) {
        number = errno;
    }
    number = number ? number : take_place(writer, fresh);
    if (number) {
        (void)unlink(writer->name);
    } else {
        rfi_flush_folder_of(writer->name);
    }
    forget(writer);
    return number ? rfi_fail_errno(error, writer->path, "write", number) : REEF_OK;
}

reef_status rfi_writer_commit(rfi_writer *writer, reef_error *error)
{
    return commit(writer, false, error);
}

reef_status rfi_writer_commit_new(rfi_writer *writer, reef_error *error)
{
    return commit(writer, true, error);
}

void rfi_writer_abandon(rfi_writer *writer)
{
    if (writer->name) {
        (void)close(writer->descriptor);
        (void)unlink(writer->name);
        forget(writer);
    }
}

/* NAME.PID-NUMBER.tmp of a process that is not there any more. */
static bool is_orphan(const char *name)
{
    static const char digits[] = "0123456789";
    const char *end = strrchr(name, '.');
    const char *start = end;
    while (start && start > name && *--start != '.') {
    }
    if (!end || strcmp(end, ".tmp") != 0 || start == name || *start != '.') {
        return false;
    }
    size_t first = strspn(start + 1, digits);
    const char *dash = start + 1 + first;
    size_t second = *dash == '-' ? strspn(dash + 1, digits) : 0;
    if (first == 0 || first > 9 || second == 0 || dash + 1 + second != end) {
        return false;
    }
    return kill((pid_t)strtol(start + 1, NULL, 10), 0) != 0 && errno == ESRCH;
}

void rfi_sweep_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        if (is_orphan(entry->d_name)) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
}
