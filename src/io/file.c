/* Whole files, with POSIX calls. */
#include "io/file.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <reef/file.h>
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

/* The content of an open file, with a 0 after it. */
static reef_status read_open(const reef_context *context, const rfi_reader *reader, size_t limit, rfi_file *file,
                             reef_error *error)
{
    const char *shown = rfi_path_show(reader->path);
    size_t size = reader->size;
    if (size > limit) {
        return rfi_fail(error, REEF_E_RANGE, "%s: the file has %zu bytes; at most %zu are supported", shown, size,
                        limit);
    }
    unsigned char *bytes = rfi_allocate(context, size + 1);
    if (!bytes) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: not enough memory for its %zu bytes", shown, size);
    }
    reef_status status = rfi_reader_get(reader, 0, bytes, size, error);
    if (status == REEF_OK) {
        status = rfi_reader_confirm(reader, error);
    }
    if (status != REEF_OK) {
        rfi_release(context, bytes);
        return status;
    }
    bytes[size] = 0;
    *file = (rfi_file){bytes, size};
    return REEF_OK;
}

reef_status rfi_file_read(const reef_context *context, const char *path, size_t limit, rfi_file *file,
                          reef_error *error)
{
    rfi_reader reader;
    reef_status status = rfi_reader_open(&reader, path, error);
    if (status != REEF_OK) {
        return status;
    }
    status = read_open(context, &reader, limit, file, error);
    rfi_reader_close(&reader);
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

/* Into a pipe or device, which nothing may replace. */
static reef_status write_through(const char *path, const unsigned char *bytes, size_t size, reef_error *error)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0) {
        return rfi_fail_errno(error, path, "open", errno);
    }
    int number = 0;
    while (size > 0 && !number) {
        ssize_t step = write(descriptor, bytes, size);
        number = step < 0 && errno != EINTR ? errno : 0;
        bytes += step > 0 ? step : 0;
        size -= step > 0 ? (size_t)step : 0;
    }
    if (close(descriptor) != 0 && !number) {
        number = errno;
    }
    return number ? rfi_fail_errno(error, path, "write", number) : REEF_OK;
}

reef_status reef_file_write(const reef_context *context, const char *path, const void *bytes, size_t size,
                            reef_error *error)
{
    struct stat about;
    if (!path || (!bytes && size > 0)) {
        return rfi_fail(error, REEF_E_ARG, "a path and bytes to write are expected, not NULL");
    }
    if (stat(path, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode))) {
        return write_through(path, bytes, size, error);
    }
    return rfi_file_write(context, path, &(rfi_piece){bytes, size}, 1, error);
}
