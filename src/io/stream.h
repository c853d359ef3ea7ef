/* Files too large for memory: read from any place, written in any order and put in place at the end.
 *
 * Reading copies with pread and does not map: a file that somebody cuts short meanwhile is an error here, not a signal. */
#ifndef RFI_IO_STREAM_H
#define RFI_IO_STREAM_H

#include <reef/context.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* A regular file open for reading. Readable from many threads at once. */
typedef struct rfi_reader {
    const char *path; /* the caller's */
    int descriptor;   /* -1: closed */
    size_t size;      /* when it was opened, like the following */
    dev_t device;
    ino_t inode;
    struct timespec modified;
    struct timespec changed; /* whoever writes can set the time above back, but not this one */
} rfi_reader;

/* Folders, devices and pipes are refused (and never waited for). On failure the reader is closed. */
reef_status rfi_reader_open(rfi_reader *reader, const char *path, reef_error *error);
/* Copies `size` bytes from `offset` on; REEF_E_FILE if the file is shorter. */
reef_status rfi_reader_get(const rfi_reader *reader, size_t offset, void *bytes, size_t size, reef_error *error);
/* REEF_E_FILE if the file has changed since it was opened (size or time of modification), or another one has taken its place: what was
 * read may be partly of one and partly of the other. */
reef_status rfi_reader_confirm(const rfi_reader *reader, reef_error *error);
/* The hash (base/hash.h) of the whole file, which *sum goes on from. */
reef_status rfi_reader_sum(const reef_context *context, const rfi_reader *reader, uint64_t *sum, reef_error *error);
/* Says that these bytes will be read soon. */
void rfi_reader_expect(const rfi_reader *reader, size_t offset, size_t size);
/* Accepts a closed one. */
void rfi_reader_close(rfi_reader *reader);

/* A file being written beside its final path, which it takes on commit. Writable from many threads at once. */
typedef struct rfi_writer {
    const reef_context *context;
    const char *path; /* the caller's */
    char *target;     /* the file that is replaced: path, or where it leads as a symbolic link; owned, with name */
    char *name;       /* of the temporary file; NULL: closed */
    int descriptor;
} rfi_writer;

/* New files get the mode 0666 less the umask; an existing file keeps its mode, and a symbolic link stays and its target is written. What
 * exists must be a regular file. On failure the writer is closed. */
reef_status rfi_writer_open(const reef_context *context, rfi_writer *writer, const char *path, reef_error *error);
/* The same, but a new file is for its owner alone. */
reef_status rfi_writer_open_private(const reef_context *context, rfi_writer *writer, const char *path,
                                    reef_error *error);
reef_status rfi_writer_put(const rfi_writer *writer, size_t offset, const void *bytes, size_t size, reef_error *error);
/* Flushed to the disk, then renamed: readers see the old file or the new one and never a part. Closes the writer; on failure the
 * temporary file is gone and path is as it was. */
reef_status rfi_writer_commit(rfi_writer *writer, reef_error *error);
/* The same, but fails if something has that name. */
reef_status rfi_writer_commit_new(rfi_writer *writer, reef_error *error);
/* What was put reaches the disk. */
reef_status rfi_writer_flush(const rfi_writer *writer, reef_error *error);
/* What was renamed to this name, or made, reaches the disk under it. */
void rfi_flush_folder_of(const char *path);
/* A descriptor of the folder that a path is in, or -1 with errno set. */
int rfi_open_folder_of(const char *path);
/* Removes the temporary file; accepts a closed writer. */
void rfi_writer_abandon(rfi_writer *writer);

/* Removes temporary files of writers that have died from a folder, by the process number in their names. */
void rfi_sweep_folder(const char *path);

/* "path: cannot do: reason", REEF_E_FILE. The number is passed, since closing a file may change errno. */
reef_status rfi_fail_errno(reef_error *error, const char *path, const char *what, int number);

#endif
