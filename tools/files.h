/* Files of a command: inputs are regular files; outputs may be standard output (`-`), a pipe or a device. */
#ifndef REEF_TOOLS_FILES_H
#define REEF_TOOLS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A regular file to read, or NULL with errno set. Pipes and devices are refused, and never waited for. */
FILE *open_regular(const char *path);

/* `-`, or any other name of what standard output is (/dev/stdout). */
bool is_standard_output(const char *path);
/* Standard output, a pipe or a character device: cannot be replaced, and is written from beginning to end. */
bool is_stream(const char *path);
/* True if both are the same output. */
bool same_output(const char *a, const char *b);

/* Whether a file can be made or replaced at this path, as far as its folder tells: before long work, whose result would have no place. EXIT_DONE, or
 * EXIT_FAILED after a message of the command `who`. */
int check_place(const char *who, const char *path);
/* Makes an output hold these bytes: a file in one step, a stream as it is. EXIT_DONE, or EXIT_FAILED after a message of the command `who`. */
int write_output(const char *who, const char *path, const char *bytes, size_t size);
/* Copies the file `from` into a stream. As above. */
int copy_to_stream(const char *who, FILE *from, const char *path);

#endif
