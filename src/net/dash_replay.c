/* reef dash --replay: a page of lines that were recorded, or that come on standard input. */
#include "net/dash_live.h"

#include "base/error.h"
#include "io/stream.h"

#include <reef/net.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A run line of the largest network there may be. */
enum { LONGEST = 16 * 1024 * 1024, PIECE = 65536, SECOND = 1000 };

typedef struct reading {
    rfi_dash *dash;
    char *text; /* of a line that is not whole yet */
    size_t size, room;
    ptrdiff_t good, bad, blank;
} reading;

static void take_line(reading *r, const char *text, size_t size)
{
    size -= size > 0 && text[size - 1] == '\r';
    if (size == 0) {
        r->blank++;
    } else if (rfi_dash_put_line(r->dash, text, size)) {
        r->good++;
    } else {
        r->bad++;
    }
}

/* Adds bytes to what there is, and takes out whole lines. */
static reef_status take_bytes(reading *r, const char *bytes, size_t count, reef_error *error)
{
    if (r->size + count > r->room) {
        size_t room = 2 * (r->size + count);
        char *larger = room <= 2 * LONGEST ? realloc(r->text, room) : NULL;
        if (!larger) {
            return rfi_fail(error, REEF_E_FORMAT, "not a recorded run: a line is longer than %d MiB",
                            LONGEST / (1024 * 1024));
        }
        r->text = larger;
        r->room = room;
    }
    memcpy(r->text + r->size, bytes, count);
    size_t searched = r->size;
    r->size += count;
    size_t start = 0;
    for (char *end; (end = memchr(r->text + searched, '\n', r->size - searched)) != NULL;) {
        take_line(r, r->text + start, (size_t)(end - r->text) - start);
        start = searched = (size_t)(end - r->text) + 1;
    }
    memmove(r->text, r->text + start, r->size - start);
    r->size -= start;
    return REEF_OK;
}

static reef_status read_file(reading *r, const char *path, reef_error *error)
{
    static char piece[PIECE];
    rfi_reader file;
    reef_status status = rfi_reader_open(&file, path, error);
    if (status != REEF_OK) {
        return status;
    }
    for (size_t at = 0; status == REEF_OK && at < file.size;) {
        size_t size = file.size - at < sizeof piece ? file.size - at : sizeof piece;
        status = rfi_reader_get(&file, at, piece, size, error);
        if (status == REEF_OK) {
            status = take_bytes(r, piece, size, error);
        }
        at += size;
    }
    rfi_reader_close(&file);
    if (status == REEF_OK && r->size > 0) {
        take_line(r, r->text, r->size);
    }
    if (status == REEF_OK && r->good == 0) {
        status = rfi_fail(error, REEF_E_FORMAT, "%.200s: not a recorded run (docs/dash.md)", path);
    }
    return status;
}

static bool wanted(const reef_dash_options *o)
{
    return !o->stop || !*o->stop;
}

/* Shows what comes on standard input, until somebody ends the command; the end of the input ends nothing. */
static reef_status follow(reading *r, const reef_dash_options *o, rfi_dash_server *server, reef_error *error)
{
    static char piece[PIECE];
    reef_status status = REEF_OK;
    bool open = true;
    while (status == REEF_OK && wanted(o)) {
        struct pollfd input = {.fd = open ? STDIN_FILENO : -1, .events = POLLIN};
        if (poll(&input, 1, SECOND) > 0) {
            ssize_t got = read(STDIN_FILENO, piece, sizeof piece);
            open = got > 0 || (got < 0 && errno == EINTR);
            status = got > 0 ? take_bytes(r, piece, (size_t)got, error) : REEF_OK;
        }
        rfi_dash_wake(server);
    }
    return status;
}

static void wait_for_end(const reef_dash_options *o, rfi_dash_server *server)
{
    while (wanted(o)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        rfi_dash_wake(server);
    }
}

static reef_status show(reading *r, const reef_dash_options *o, reef_error *error)
{
    bool live = strcmp(o->replay, "-") == 0;
    rfi_dash_server *server = NULL;
    char line[200];
    reef_status status = live ? REEF_OK : read_file(r, o->replay, error);
    if (status == REEF_OK && r->bad > 0 && o->tell) {
        (void)snprintf(line, sizeof line, "%td of %td lines are not lines of a recorded run and were skipped", r->bad,
                       r->bad + r->good);
        o->tell(o->user, line);
    }
    if (status == REEF_OK) {
        status = rfi_dash_serve(&server, r->dash, o->port, !live, error);
    }
    if (status == REEF_OK && o->tell) {
        (void)snprintf(line, sizeof line, "http://127.0.0.1:%d/ shows the run; Ctrl-C ends this",
                       rfi_dash_port(server));
        o->tell(o->user, line);
    }
    if (status == REEF_OK && live) {
        status = follow(r, o, server, error);
    } else if (status == REEF_OK) {
        wait_for_end(o, server);
    }
    rfi_dash_stop(&server);
    return status;
}

static reef_status replay(const reef_dash_options *options, reef_error *error)
{
    reading r = {0};
    reef_status status = rfi_dash_create(&r.dash, 0, NULL, error);
    if (status == REEF_OK) {
        status = show(&r, options, error);
    }
    rfi_dash_destroy(&r.dash);
    free(r.text);
    return status;
}

reef_status reef_net_dash(const reef_dash_options *options, reef_error *error)
{
    reef_status status = rfi_check_size(options->size, sizeof *options, "reef_dash_options", error);
    if (status != REEF_OK) {
        return status;
    }
    return options->run_file ? rfi_dash_live(options, error) : replay(options, error);
}
