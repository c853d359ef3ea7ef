/* Large files, with POSIX calls. */
#include "io/stream.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
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
    return rfi_fail(error, REEF_E_FILE, "%s: cannot %s: %s", rfi_path_show(path), what, reason);
}

/* ---- reading ---- */

static reef_status look_at(rfi_reader *reader, reef_error *error)
{
    struct stat about;
    if (fstat(reader->descriptor, &about) != 0) {
        return rfi_fail_errno(error, reader->path, "look at it", errno);
    }
    if (!S_ISREG(about.st_mode)) {
        return rfi_fail(error, REEF_E_FILE, "%s: is not a regular file", rfi_path_show(reader->path));
    }
    if (about.st_size < 0 || (uintmax_t)about.st_size >= PTRDIFF_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%s: is larger than addresses can say", rfi_path_show(reader->path));
    }
    reader->size = (size_t)about.st_size;
    return REEF_OK;
}

reef_status rfi_reader_open(rfi_reader *reader, const char *path, reef_error *error)
{
    /* O_NONBLOCK: opening a pipe would wait for a writer. */
    *reader = (rfi_reader){.path = path, .descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (reader->descriptor < 0) {
        return rfi_fail_errno(error, path, "open", errno);
    }
    reef_status status = look_at(reader, error);
    if (status != REEF_OK) {
        rfi_reader_close(reader);
    }
    return status;
}

reef_status rfi_reader_get(const rfi_reader *reader, size_t offset, void *bytes, size_t size, reef_error *error)
{
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
            return rfi_fail(error, REEF_E_FILE, "%s: became shorter while being read", rfi_path_show(reader->path));
        }
        to += step;
        offset += (size_t)step;
        size -= (size_t)step;
    }
    return REEF_OK;
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

/* Creates a file that did not exist, path with a number after it; its descriptor or -1. */
static int open_temporary(const char *path, char *name, size_t room)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        (void)snprintf(name, room, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) {
            return descriptor;
        }
    }
    return -1;
}

/* The rename itself reaches the disk only with its folder. A file system that cannot flush folders is no reason to fail:
 * the file is complete either way. */
static void flush_folder(char *name)
{
    char *slash = strrchr(name, '/');
    if (slash) {
        slash[slash == name ? 1 : 0] = '\0';
    }
    int folder = open(slash ? name : ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (folder >= 0) {
        (void)fsync(folder);
        (void)close(folder);
    }
}

reef_status rfi_writer_open(const reef_context *context, rfi_writer *writer, const char *path, reef_error *error)
{
    struct stat about;
    size_t room = strlen(path) + NAME_ROOM;
    *writer = (rfi_writer){.context = context, .path = path, .descriptor = -1};
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        return rfi_fail(error, REEF_E_FILE, "%s: cannot write: there is something that is not a regular file",
                        rfi_path_show(path));
    }
    char *name = rfi_allocate(context, room);
    if (!name) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory to write it", rfi_path_show(path));
    }
    writer->descriptor = open_temporary(path, name, room);
    if (writer->descriptor < 0) {
        int number = errno;
        rfi_release(context, name);
        return rfi_fail_errno(error, path, "make a file beside it", number);
    }
    writer->name = name;
    return REEF_OK;
}

reef_status rfi_writer_put(const rfi_writer *writer, size_t offset, const void *bytes, size_t size, reef_error *error)
{
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
    rfi_release(writer->context, writer->name);
    writer->name = NULL;
    writer->descriptor = -1;
}

reef_status rfi_writer_commit(rfi_writer *writer, reef_error *error)
{
    int number = fsync(writer->descriptor) != 0 ? errno : 0;
    if (close(writer->descriptor) != 0 && !number) {
        number = errno;
    }
    if (!number && rename(writer->name, writer->path) != 0) {
        number = errno;
    }
    if (number) {
        (void)unlink(writer->name);
    } else {
        flush_folder(writer->name);
    }
    forget(writer);
    return number ? rfi_fail_errno(error, writer->path, "write", number) : REEF_OK;
}

void rfi_writer_abandon(rfi_writer *writer)
{
    if (writer->name) {
        (void)close(writer->descriptor);
        (void)unlink(writer->name);
        forget(writer);
    }
}
