/* Files written as Reef writes all of its outputs. */
#ifndef REEF_FILE_H
#define REEF_FILE_H

#include <reef/context.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a file atomically. The bytes are written beside it, flushed to disk and renamed: readers see either the old file or the new one,
 * and after a failure the old one is unchanged. A symbolic link stays and its target is written; an existing file keeps its permissions. A pipe
 * or device is written to directly. */
REEF_API reef_status reef_file_write(const reef_context *context, const char *path, const void *bytes, size_t size,
                                     reef_error *error);

/* True if both paths lead to the same file, or would once it is written: by links of any kind, or by different names of its folder. */
REEF_API bool reef_file_same(const char *a, const char *b);

#ifdef __cplusplus
}
#endif
#endif
