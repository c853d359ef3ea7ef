/* Opening what a command reads, and where its outputs go. */
#include "files.h"

#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *open_regular(const char *path)
{
    struct stat found;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        return NULL;
    }
    bool regular = fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode);
    FILE *file = regular ? fdopen(descriptor, "rb") : NULL;
    if (!file) {
        (void)close(descriptor);
        errno = EINVAL;
    }
    return file;
}

bool is_standard_output(const char *path)
{
    struct stat ours;
    struct stat found;
    return strcmp(path, "-") == 0 || (fstat(STDOUT_FILENO, &ours) == 0 && stat(path, &found) == 0 &&
                                      ours.st_dev == found.st_dev && ours.st_ino == found.st_ino);
}

bool is_stream(const char *path)
{
    struct stat found;
    return is_standard_output(path) || (stat(path, &found) == 0 && (S_ISFIFO(found.st_mode) || S_ISCHR(found.st_mode)));
}

bool same_output(const char *a, const char *b)
{
    bool standard = is_standard_output(a);
    return standard == is_standard_output(b) && (standard || reef_file_same(a, b));
}

static int complain(const char *who, const char *path, const char *reason)
{
    fprintf(stderr, "reef %s: %s: cannot write: %s\n", who, printable_path(path), reason);
    return EXIT_FAILED;
}

int check_place(const char *who, const char *path)
{
    char place[4096];
    struct stat found;
    bool exists = stat(path, &found) == 0;
    if (path[0] == '\0' || (!exists && errno != ENOENT)) {
        return complain(who, path, strerror(errno));
    }
    if (is_stream(path) || (!exists && lstat(path, &found) == 0) || strlen(path) >= sizeof place) {
        return EXIT_DONE; /* written to as it is; or what a link to nothing leads to, which writing finds out */
    }
    if (!exists || !realpath(path, place)) {
        memcpy(place, path, strlen(path) + 1);
    }
    char *slash = strrchr(place, '/');
    if (slash) {
        slash[1] = '\0';
    }
    return access(slash ? place : ".", W_OK | X_OK) == 0 ? EXIT_DONE : complain(who, path, strerror(errno));
}

int write_output(const char *who, const char *path, const char *bytes, size_t size)
{
    reef_error error;
    if (is_standard_output(path)) {
        bool good = fwrite(bytes, 1, size, stdout) == size && fflush(stdout) == 0;
        return good ? EXIT_DONE : complain(who, "standard output", strerror(errno));
    }
    if (reef_file_write(NULL, path, bytes, size, &error) != REEF_OK) {
        fprintf(stderr, "reef %s: %s\n", who, error.text);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* False with errno set. */
static bool copy(FILE *from, FILE *to)
{
    char bytes[1 << 16];
    bool good = true;
    size_t got = sizeof bytes;
    while (good && got == sizeof bytes) {
        got = fread(bytes, 1, sizeof bytes, from);
        good = fwrite(bytes, 1, got, to) == got;
    }
    return good && !ferror(from) && fflush(to) == 0;
}

int copy_to_stream(const char *who, FILE *from, const char *path)
{
    bool standard = is_standard_output(path);
    FILE *out = standard ? stdout : fopen(path, "wb");
    bool good = out && copy(from, out);
    int number = errno;
    if (out && !standard && fclose(out) != 0 && good) {
        number = errno;
        good = false;
    }
    return good ? EXIT_DONE : complain(who, standard ? "standard output" : path, strerror(number));
}
