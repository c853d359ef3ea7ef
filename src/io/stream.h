/* Files too large for memory: read from any place, written in any order and put in place at the end.
 *
 * Reading copies with pread and does not map: a file that somebody cuts short meanwhile is an error here, not a signal. */
#ifndef RFI_IO_STREAM_H
#define RFI_IO_STREAM_H

#include <reef/context.h>
#include <stdbool.h>
#include <stddef.h>

/* A regular file open for reading. Readable from many threads at once. */
typedef struct rfi_reader {
    const char *path; /* the caller's */
    int descriptor;   /* -1: closed */
    size_t size;      /* when it was opened */
} rfi_reader;

/* Folders, devices and pipes are refused (and never waited for). On failure the reader is closed. */
reef_status rfi_reader_open(rfi_reader *reader, const char *path, reef_error *error);
/* Copies `size` bytes from `offset` on; REEF_E_FILE if the file is shorter. */
reef_status rfi_reader_get(const rfi_reader *reader, size_t offset, void *bytes, size_t size, reef_error *error);
/* Says that these bytes will be read soon. */
void rfi_reader_expect(const rfi_reader *reader, size_t offset, size_t size);
/* Accepts a closed one. */
void rfi_reader_close(rfi_reader *reader);

/* A file being written beside its final path, which it takes on commit. Writable from many threads at once. */
typedef struct rfi_writer {
    const reef_context *context;
    const char *path; /* the caller's */
    char *name;       /* of the temporary file; NULL: closed */
    int descriptor;
} rfi_writer;

/* New files get the mode 0666 less the umask. A path that exists must be a regular file. On failure the writer is closed. */
reef_status rfi_writer_open(const reef_context *context, rfi_writer *writer, const char *path, reef_error *error);
reef_status rfi_writer_put(const rfi_writer *writer, size_t offset, const void *bytes, size_t size, reef_error *error);
/* Flushed to the disk, then renamed: readers see the old file or the new one and never a part. Closes the writer; on failure the
 * temporary file is gone and path is as it was. */
reef_status rfi_writer_commit(rfi_writer *writer, reef_error *error);
/* Removes the temporary file; accepts a closed writer. */
void rfi_writer_abandon(rfi_writer *writer);

/* "path: cannot do: reason", REEF_E_FILE. The number is passed, since closing a file may change errno. */
reef_status rfi_fail_errno(reef_error *error, const char *path, const char *what, int number);

#endif
