/* reef aggregate: a line of progress on a terminal. */
#include "cmd_aggregate.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What takes less than this is over before anybody wonders; and the least time between two lines. */
static const double silent_seconds = 2;
static const double between_seconds = 0.5;

enum { LINE_ROOM = 80 };

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The size of a file, or of the .safetensors files of a folder. */
static double size_of(const char *path)
{
    struct stat found;
    double bytes = 0;
    DIR *folder = opendir(path);
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        const char *end = strrchr(entry->d_name, '.');
        bool counts = end && strcmp(end, ".safetensors") == 0;
        bytes += counts && fstatat(dirfd(folder), entry->d_name, &found, 0) == 0 ? (double)found.st_size : 0;
    }
    if (folder) {
        (void)closedir(folder);
        return bytes;
    }
    return stat(path, &found) == 0 ? (double)found.st_size : 0;
}

meter meter_start(const request *r)
{
    meter m = {.start = now_seconds(), .wanted = !r->quiet && isatty(STDERR_FILENO) == 1};
    for (ptrdiff_t i = 0; m.wanted && i < r->count; i++) {
        m.bytes += size_of(r->paths[i]);
    }
    return m;
}

/* Columns of the terminal; 0: unknown. */
static int columns(void)
{
    struct winsize size = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Over what stands there, as many blanks as it takes. A line as wide as the terminal would begin a new one. */
static void put_line(meter *m, char *line)
{
    int width = columns();
    int length = (int)strlen(line);
    if (width > 0 && length >= width) {
        length = width - 1;
        line[length] = '\0';
    }
    int before = width > 0 && m->shown >= width ? width - 1 : m->shown;
    fprintf(stderr, "\r%s%*s%s", line, before > length ? before - length : 0, "", length == 0 ? "\r" : "");
    m->shown = length;
}

void meter_show(meter *m, double share)
{
    char rate[24];
    char left[24];
    char line[LINE_ROOM];
    double now = now_seconds();
    double taken = now - m->start;
    if (!m->wanted || taken < silent_seconds || now - m->last < between_seconds || share <= 0) {
        return;
    }
    double speed = share * m->bytes / taken; /* of the models, however often a rule reads them */
    double rest = taken / share * (1 - share);
    (void)snprintf(rate, sizeof rate, speed < 1e9 ? "%.0f MB/s" : "%.2f GB/s",
                   speed < 1e9 ? 1e-6 * speed : 1e-9 * speed);
    (void)snprintf(left, sizeof left,
                   rest < 120    ? "%.0f s"
                   : rest < 7200 ? "%.0f min"
                                 : "%.1f h",
                   rest < 120    ? rest
                   : rest < 7200 ? rest / 60
                                 : rest / 3600);
    (void)snprintf(line, sizeof line, "%3.0f %%  %s  %s left", 100 * share, rate, left);
    put_line(m, line);
    m->last = now;
}

void meter_clear(meter *m)
{
    char nothing[1] = "";
    if (m->shown > 0) {
        put_line(m, nothing);
    }
}
