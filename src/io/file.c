/* Whole files, with POSIX calls. */
#include "io/file.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN = 100, NAME_ROOM = 48, NAME_TRIES = 100 };

const char *rfi_path_show(const char *path)
{
    size_t length = strlen(path);
    return length > SHOWN ? path + length - SHOWN : path;
}

/* "path: cannot do: reason". The number is passed, since closing a file may change errno. */
static reef_status fail_with(reef_error *error, const char *path, const char *what, int number)
{
    char reason[100];
    if (strerror_r(number, reason, sizeof reason) != 0) {
        (void)snprintf(reason, sizeof reason, "error %d", number);
    }
    return rfi_fail(error, REEF_E_FILE, "%s: cannot %s: %s", rfi_path_show(path), what, reason);
}

/* ---- reading ---- */

/* Fills bytes[size] from the file; *got is less at its end. False with errno set. */
static bool read_all(int descriptor, unsigned char *bytes, size_t size, size_t *got)
{
    *got = 0;
    while (*got < size) {
        ssize_t step = read(descriptor, bytes + *got, size - *got);
        if (step < 0 && errno == EINTR) {
            continue;
        }
        if (step < 0) {
            return false;
        }
        if (step == 0) {
            break;
        }
        *got += (size_t)step;
    }
    return true;
}

static reef_status read_open(const reef_context *context, const char *path, int descriptor, size_t limit,
                             rfi_file *file, reef_error *error)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0) {
        return fail_with(error, path, "look at it", errno);
    }
    if (!S_ISREG(about.st_mode)) {
        return rfi_fail(error, REEF_E_FILE, "%s: is not a regular file", rfi_path_show(path));
    }
    if (about.st_size < 0 || (uintmax_t)about.st_size > limit || (uintmax_t)about.st_size >= PTRDIFF_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%s: has %jd bytes; at most %zu are read", rfi_path_show(path),
                        (intmax_t)about.st_size, limit);
    }
    size_t size = (size_t)about.st_size;
    size_t got = 0;
    /* One byte more than the size: it shows whether the file has grown, and holds the final 0. */
    unsigned char *bytes = rfi_allocate(context, size + 1);
    if (!bytes) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its %zu bytes", rfi_path_show(path), size);
    }
    bool good = read_all(descriptor, bytes, size + 1, &got);
    if (!good || got != size) {
        int number = errno;
        rfi_release(context, bytes);
        return good ? rfi_fail(error, REEF_E_FILE, "%s: changed its size while being read", rfi_path_show(path))
                    : fail_with(error, path, "read", number);
    }
    bytes[size] = 0;
    *file = (rfi_file){bytes, size};
    return REEF_OK;
}

reef_status rfi_file_read(const reef_context *context, const char *path, size_t limit, rfi_file *file,
                          reef_error *error)
{
    /* O_NONBLOCK: opening a pipe would wait for a writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return fail_with(error, path, "open", errno);
    }
    reef_status status = read_open(context, path, descriptor, limit, file, error);
    (void)close(descriptor);
    return status;
}

void rfi_file_free(const reef_context *context, rfi_file *file)
{
    rfi_release(context, file->bytes);
    *file = (rfi_file){0};
}

/* ---- writing ---- */

/* False with errno set. */
static bool write_all(int descriptor, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t step = write(descriptor, bytes, size);
        if (step < 0 && errno == EINTR) {
            continue;
        }
        if (step < 0) {
            return false;
        }
        bytes += step;
        size -= (size_t)step;
    }
    return true;
}

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

/* Writes and flushes the pieces and closes the descriptor; 0 or an errno. */
static int fill(int descriptor, const rfi_piece *pieces, ptrdiff_t count)
{
    int number = 0;
    for (ptrdiff_t i = 0; i < count && !number; i++) {
        number = write_all(descriptor, pieces[i].bytes, pieces[i].size) ? 0 : errno;
    }
    if (!number && fsync(descriptor) != 0) {
        number = errno;
    }
    if (close(descriptor) != 0 && !number) {
        number = errno;
    }
    return number;
}

static reef_status write_via(const char *path, char *name, size_t room, const rfi_piece *pieces, ptrdiff_t count,
                             reef_error *error)
{
    int descriptor = open_temporary(path, name, room);
    if (descriptor < 0) {
        return fail_with(error, path, "make a file beside it", errno);
    }
    int number = fill(descriptor, pieces, count);
    if (!number && rename(name, path) != 0) {
        number = errno;
    }
    if (number) {
        (void)unlink(name);
        return fail_with(error, path, "write", number);
    }
    flush_folder(name);
    return REEF_OK;
}

reef_status rfi_file_write(const reef_context *context, const char *path, const rfi_piece *pieces, ptrdiff_t count,
                           reef_error *error)
{
    size_t room = strlen(path) + NAME_ROOM;
    char *name = rfi_allocate(context, room);
    if (!name) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory to write it", rfi_path_show(path));
    }
    reef_status status = write_via(path, name, room, pieces, count, error);
    rfi_release(context, name);
    return status;
}
