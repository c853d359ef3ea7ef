/* reef dash RUN: the page of a run under way, as one of its observers sees it. */
#include "net/dash_live.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

reef_status rfi_live_open(rfi_live *live, const rfi_live_setup *setup, reef_error *error)
{
    *live = (rfi_live){.path = setup->record};
    if (setup->record) {
        live->record = fopen(setup->record, "wxe");
        if (!live->record) {
            return errno == EEXIST
                       ? rfi_fail(error, REEF_E_FILE, "%.200s exists: --record writes to a new file", setup->record)
                       : rfi_fail(error, REEF_E_FILE, "%.200s: %s", setup->record, strerror(errno));
        }
    }
    reef_status status = rfi_dash_create(&live->dash, 0, live->record, error);
    rfi_watch_setup watch = setup->watch;
    watch.dash = live->dash;
    if (status == REEF_OK) {
        status = rfi_watch_open(&live->watch, &watch, error);
    }
    if (status == REEF_OK && setup->serve) {
        status = rfi_dash_serve(&live->server, live->dash, setup->port, false, error);
    }
    if (status != REEF_OK) {
        (void)!rfi_live_close(live, NULL);
    }
    return status;
}

void rfi_live_tend(rfi_live *live)
{
    if (live->watch) {
        rfi_watch_tend(live->watch);
    }
    if (live->dash) {
        rfi_dash_flush(live->dash);
    }
    if (live->server) {
        rfi_dash_wake(live->server);
    }
}

int rfi_live_port(const rfi_live *live)
{
    return live->server ? rfi_dash_port(live->server) : 0;
}

reef_status rfi_live_close(rfi_live *live, reef_error *error)
{
    const char *path = live->path;
    rfi_watch_close(&live->watch);
    if (live->server) {
        rfi_dash_stop(&live->server);
    }
    int failed = live->dash ? rfi_dash_unrecorded(live->dash) : 0;
    rfi_dash_destroy(&live->dash);
    if (live->record && fclose(live->record) != 0 && !failed) {
        failed = errno;
    }
    *live = (rfi_live){0};
    return failed ? rfi_fail(error, REEF_E_FILE, "%.200s has only the beginning of the run: %s", path, strerror(failed))
                  : REEF_OK;
}

/* Nothing is there to be seen: says why, on the page, too, after 3 s and then once a minute. */
static void explain_silence(const rfi_live *live, const reef_dash_options *o, double *at)
{
    reef_error why = {REEF_OK, ""};
    char line[sizeof why.text + 16];
    double time = rfi_watch_time(live->watch);
    if (time < *at) {
        return;
    }
    if (!rfi_watch_silent(live->watch, &why)) {
        *at = HUGE_VAL;
        return;
    }
    *at = time + 60;
    rfi_dash_put_event(live->dash, time, "waiting", -1, -1, why.text);
    (void)snprintf(line, sizeof line, "waiting: %s", why.text);
    if (o->tell) {
        o->tell(o->user, line);
    }
}

reef_status rfi_dash_live(const reef_dash_options *o, reef_error *error)
{
    rfi_live live;
    char line[120];
    double explain_at = 3;
    const rfi_live_setup setup = {
        .watch = {.run_file = o->run_file, .key = o->key, .coordinator = o->coordinator, .authority = o->authority},
        .serve = true,
        .port = o->port,
        .record = o->record};
    reef_status status = rfi_live_open(&live, &setup, error);
    if (status != REEF_OK) {
        return status;
    }
    (void)snprintf(line, sizeof line, "http://127.0.0.1:%d/ shows the run; Ctrl-C ends this", rfi_live_port(&live));
    if (o->tell) {
        o->tell(o->user, line);
    }
    while (status == REEF_OK && (!o->stop || !*o->stop)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
        rfi_live_tend(&live);
        explain_silence(&live, o, &explain_at);
        if (rfi_watch_refused(live.watch)) {
            status = rfi_fail(error, REEF_E_ORDER,
                              "every broker refuses this observer's login: do they work by a run file that lists it?");
        }
    }
    reef_status closed = rfi_live_close(&live, status == REEF_OK ? error : NULL);
    if (status != REEF_OK) {
        return status;
    }
    return closed;
}
