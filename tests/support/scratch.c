/* Folders for tests. */
#include "support/scratch.h"

#include "support/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void scratch_open(scratch *s)
{
    const char *base = getenv("TMPDIR");
    int length = snprintf(s->folder, sizeof s->folder, "%s/reef-test-XXXXXX", base && base[0] ? base : "/tmp");
    assert_true(length > 0 && (size_t)length < sizeof s->folder);
    assert_non_null(mkdtemp(s->folder));
}

/* Calls unlink on every file if `remove_them`; returns how many there are. */
static int walk(const scratch *s, bool remove_them)
{
    int count = 0;
    DIR *folder = opendir(s->folder);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char path[SCRATCH_PATH];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        count++;
        if (remove_them) {
            (void)unlink(scratch_path(s, entry->d_name, path));
        }
    }
    (void)closedir(folder);
    return count;
}

void scratch_close(scratch *s)
{
    (void)walk(s, true);
    assert_int_equal(rmdir(s->folder), 0);
}

int scratch_count(const scratch *s)
{
    return walk(s, false);
}

const char *scratch_path(const scratch *s, const char *name, char path[SCRATCH_PATH])
{
    int length = snprintf(path, SCRATCH_PATH, "%s/%s", s->folder, name);
    assert_true(length > 0 && length < SCRATCH_PATH);
    return path;
}

const char *scratch_file(const scratch *s, const char *name, const void *bytes, size_t size, char path[SCRATCH_PATH])
{
    FILE *file = fopen(scratch_path(s, name, path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}
