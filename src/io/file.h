/* Whole files: read into memory, written so that readers see the old file or the new one and never a part. */
#ifndef RFI_IO_FILE_H
#define RFI_IO_FILE_H

#include <reef/context.h>
#include <stddef.h>

/* The content of a file. bytes[size] is 0, so that text can be looked at with care; not part of the content. */
typedef struct rfi_file {
    unsigned char *bytes; /* from the context's allocator */
    size_t size;
} rfi_file;

/* Reads a regular file of at most `limit` bytes. Folders, devices and pipes are refused (and never waited for). On failure
 * *file is untouched. */
reef_status rfi_file_read(const reef_context *context, const char *path, size_t limit, rfi_file *file,
                          reef_error *error);
/* Releases the memory and clears *file; accepts a cleared one. */
void rfi_file_free(const reef_context *context, rfi_file *file);

/* A part of what is written. */
typedef struct rfi_piece {
    const void *bytes;
    size_t size;
} rfi_piece;

/* Makes `path` hold the pieces one after the other, as rfi_writer does: into a temporary file in the same folder, flushed to the disk,
 * then renamed. On failure path is as it was and the temporary file is gone. */
reef_status rfi_file_write(const reef_context *context, const char *path, const rfi_piece *pieces, ptrdiff_t count,
                           reef_error *error);

/* The end of a path, short enough for a message (100 bytes). */
const char *rfi_path_show(const char *path);

#endif
