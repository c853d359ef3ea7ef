/* A folder for the files of a fuzz target, in memory where the system has such a place; it goes when the process ends well. */
#ifndef REEF_FUZZ_FOLDER_H
#define REEF_FUZZ_FOLDER_H

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static void remove_folder(void)
{
    char command[96];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0); /* NOLINT(cert-env33-c): the name is ours */
}

static void make_folder(void)
{
    if (folder[0]) {
        return;
    }
    (void)snprintf(folder, sizeof folder, "%s/reef-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(folder));
    CHECK(atexit(remove_folder) == 0);
}

/* All of a file, and its length; -1: there is none. */
static inline long read_all(const char *path, unsigned char *to, size_t room)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        return -1;
    }
    size_t count = fread(to, 1, room, file);
    CHECK(fclose(file) == 0 && count < room);
    return (long)count;
}

static inline void write_all(const char *path, const void *from, size_t count)
{
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(from, 1, count, file) == count && fclose(file) == 0);
}

#endif
