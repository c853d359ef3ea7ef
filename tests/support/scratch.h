/* A folder of its own for tests that write files, and small files made from text. */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <stddef.h>

/* Paths are at most this long, with their end. */
enum { SCRATCH_PATH = 256 };

typedef struct scratch {
    char folder[SCRATCH_PATH / 2];
} scratch;

/* Makes an empty folder below $TMPDIR or /tmp. */
void scratch_open(scratch *s);
/* Removes the folder and the files in it. */
void scratch_close(scratch *s);
/* path = folder/name; returns path. */
const char *scratch_path(const scratch *s, const char *name, char path[SCRATCH_PATH]);
/* Writes size bytes to folder/name and returns its path. */
const char *scratch_file(const scratch *s, const char *name, const void *bytes, size_t size, char path[SCRATCH_PATH]);
/* How many files the folder has. */
int scratch_count(const scratch *s);

#endif
