/* Whole files, with POSIX calls. */
#include "io/file.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN = 100 };

const char *rfi_path_show(const char *path)
{
    size_t length = strlen(path);
    return length > SHOWN ? path + length - SHOWN : path;
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
        return rfi_fail_errno(error, path, "look at it", errno);
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
                    : rfi_fail_errno(error, path, "read", number);
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
        return rfi_fail_errno(error, path, "open", errno);
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

reef_status rfi_file_write(const reef_context *context, const char *path, const rfi_piece *pieces, ptrdiff_t count,
                           reef_error *error)
{
    rfi_writer writer;
    size_t offset = 0;
    reef_status status = rfi_writer_open(context, &writer, path, error);
    for (ptrdiff_t i = 0; status == REEF_OK && i < count; i++) {
        status = rfi_writer_put(&writer, offset, pieces[i].bytes, pieces[i].size, error);
        offset += pieces[i].size;
    }
    if (status == REEF_OK) {
        return rfi_writer_commit(&writer, error);
    }
    rfi_writer_abandon(&writer);
    return status;
}
