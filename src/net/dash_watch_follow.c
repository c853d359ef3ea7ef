/* An observer's brokers, and how it follows the run into later epochs.
 *
 * The next run file is known before it is in force. The page shows the new members as soon as more than half of the agents that were heard
 * within the last seconds work by it, so that a few that hurry ahead, or say so, change nothing. */
#include "net/dash_watch_inner.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double recent_seconds = 10;

/* ---- brokers ---- */

static bool is_listed(const rfi_runfile *file, const char *url)
{
    for (ptrdiff_t i = 0; i < file->brokers; i++) {
        if (strcmp(file->broker[i], url) == 0) {
            return true;
        }
    }
    return false;
}

static int free_place(const rfi_watch *w)
{
    for (int number = 0;; number++) {
        bool used = false;
        for (ptrdiff_t e = 0; e < w->ears; e++) {
            used = used || w->ear[e].place == number;
        }
        if (!used) {
            return number; /* there are as many places as ears */
        }
    }
}

/* Listens at a broker, if it is not heard yet. Nothing is locked: a connection that fails waits for what is being heard. */
static reef_status listen_at(rfi_watch *w, const char *url, reef_error *error)
{
    bool known = w->ears == RFI_WATCH_EARS;
    for (ptrdiff_t e = 0; e < w->ears; e++) {
        known = known || strcmp(w->ear[e].url, url) == 0;
    }
    if (known) {
        return REEF_OK;
    }
    if (strlen(url) >= RFI_WATCH_URL) {
        return rfi_fail(error, REEF_E_ARG, "the address of a broker has at most %d characters", RFI_WATCH_URL - 1);
    }
    int number = free_place(w);
    w->ear[w->ears].place = number;
    w->places[number] = (rfi_watch_place){w, number};
    (void)snprintf(w->ear[w->ears].url, RFI_WATCH_URL, "%s", url);
    const rfi_nats_ear_setup setup = {.url = w->ear[w->ears].url,
                                      .run = w->view->file.run,
                                      .login = &w->secret.login,
                                      .authority = w->authority,
                                      .hear = rfi_watch_heard,
                                      .user = &w->places[number]};
    reef_status status = rfi_nats_listen(&w->ear[w->ears].ear, &setup, error);
    w->ears += status == REEF_OK;
    return status;
}

/* Agents go over to the brokers of a later file at once, so they are heard from the moment that it is known. */
static void listen_ahead(rfi_watch *w)
{
    char urls[RFI_LATER_FILES * RFI_BROKERS_MAX][RFI_WATCH_URL];
    int count = 0;
    (void)pthread_mutex_lock(&w->lock);
    for (int i = 0; i < w->later.count; i++) {
        for (ptrdiff_t b = 0; b < w->later.files[i].brokers; b++) {
            if (strlen(w->later.files[i].broker[b]) < RFI_WATCH_URL) {
                (void)snprintf(urls[count++], RFI_WATCH_URL, "%s", w->later.files[i].broker[b]);
            }
        }
    }
    (void)pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < count; i++) {
        (void)listen_at(w, urls[i], NULL);
    }
}

/* Brokers that neither the file in force nor a later one names. Closing waits for what is being heard, so nothing is locked. */
static void close_old(rfi_watch *w)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t e = 0; e < w->ears; e++) {
        bool named = is_listed(&w->view->file, w->ear[e].url);
        (void)pthread_mutex_lock(&w->lock);
        for (int i = 0; i < w->later.count; i++) {
            named = named || is_listed(&w->later.files[i], w->ear[e].url);
        }
        (void)pthread_mutex_unlock(&w->lock);
        if (named) {
            w->ear[kept++] = w->ear[e];
        } else {
            rfi_nats_ear_close(&w->ear[e].ear);
        }
    }
    w->ears = kept;
}

/* ---- epochs ---- */

/* Whether most of the agents that were heard lately work by this epoch or a later one; or by this or an earlier one. */
static bool do_most(const rfi_watch *w, int64_t epoch, bool or_later)
{
    double now = rfi_watch_time(w);
    ptrdiff_t recent = 0;
    ptrdiff_t there = 0;
    for (ptrdiff_t k = 0; k < w->view->file.agents; k++) {
        const rfi_sight *s = &w->view->sights[k];
        bool works = !s->left && now - s->heard < recent_seconds;
        recent += works;
        there += works && (or_later ? s->epoch >= epoch : s->epoch <= epoch);
    }
    return 2 * there > recent;
}

static void tell_members(const rfi_watch *w, const rfi_view *before, double time)
{
    enum { MOST = 100 }; /* lines, for a change of thousands */
    char text[160];
    ptrdiff_t gone = 0;
    ptrdiff_t come = 0;
    for (ptrdiff_t k = 0; k < w->view->file.agents; k++) {
        bool was = k < before->file.agents && !before->file.participants[k].removed;
        bool is = !w->view->file.participants[k].removed;
        gone += was && !is;
        come += !was && is;
        if (was != is && gone + come <= MOST) {
            rfi_dash_put_event(w->dash, time, is ? "added" : "removed", k, -1,
                               "by the coordinator, in the next run file");
        }
    }
    (void)snprintf(text, sizeof text, "epoch %lld begins: %td removed, %td added", (long long)w->view->file.terms.epoch,
                   gone, come);
    rfi_dash_put_event(w->dash, time, "epoch", -1, -1, text);
}

/* Whether the observer may go on to listen: brokers ask the file in force. */
static bool is_observer(const rfi_watch *w, const rfi_runfile *file)
{
    for (ptrdiff_t i = 0; i < file->observers; i++) {
        if (memcmp(file->observer[i].login, w->secret.login.public_key, RFI_KEY_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

/* What cannot be shown is told, and the members stay as they were. */
static void turn(rfi_watch *w, int64_t epoch)
{
    rfi_runfile file;
    rfi_view *view = NULL;
    rfi_view *before = w->view;
    reef_error why = {REEF_OK, ""};
    double time = rfi_watch_time(w);
    rfi_later_turn(&w->later, epoch, &file);
    if (rfi_view_make(&view, &file, before, &why) != REEF_OK) {
        rfi_dash_put_event(w->dash, time, "run file", -1, -1, why.text);
        rfi_runfile_free(&file);
        return;
    }
    w->view = view;
    if (rfi_watch_put_run(w, time, &why) != REEF_OK) {
        rfi_dash_put_event(w->dash, time, "run file", -1, -1, why.text);
    }
    tell_members(w, before, time);
    if (!is_observer(w, &view->file)) {
        rfi_dash_put_event(w->dash, time, "run file", -1, -1,
                           "it does not list this observer any more: brokers will refuse its login");
    }
    rfi_view_free(&before);
}

/* The agents work by a file that nobody has given to the observer, or not yet by the one that it has; told once for each epoch. */
static void complain(rfi_watch *w)
{
    char text[160];
    int64_t now = w->view->file.terms.epoch;
    int64_t other = now;
    for (ptrdiff_t k = 0; k < w->view->file.agents; k++) {
        int64_t epoch = w->view->sights[k].epoch;
        bool unknown = epoch != now && !rfi_later_find(&w->later, epoch);
        other = unknown && do_most(w, epoch, epoch > now) ? epoch : other;
    }
    if (other == now || other == w->missing) {
        return;
    }
    w->missing = other;
    (void)snprintf(text, sizeof text,
                   other > now
                       ? "agents work by epoch %lld: put its run file in place of the one this was started with"
                       : "agents still work by epoch %lld: they are shown once that of the given run file begins",
                   (long long)other);
    rfi_dash_put_event(w->dash, rfi_watch_time(w), "run file", -1, -1, text);
}

/* True: the file in force has changed. */
static bool follow(rfi_watch *w)
{
    reef_error why;
    double now = rfi_watch_time(w);
    if (!rfi_later_look(&w->later, &w->view->file, w->run_file, now, &why) && why.text[0]) {
        rfi_dash_put_event(w->dash, now, "run file", -1, -1, why.text);
    }
    for (int i = w->later.count - 1; i >= 0; i--) {
        if (do_most(w, w->later.files[i].terms.epoch, true)) {
            turn(w, w->later.files[i].terms.epoch);
            return true;
        }
    }
    complain(w);
    return false;
}

void rfi_watch_tend(rfi_watch *w)
{
    (void)pthread_mutex_lock(&w->lock);
    bool turned = follow(w);
    (void)pthread_mutex_unlock(&w->lock);
    for (ptrdiff_t e = 0; e < w->ears; e++) {
        rfi_nats_ear_tend(w->ear[e].ear);
    }
    listen_ahead(w);
    if (turned) {
        close_old(w);
    }
}

/* ---- opening and closing ---- */

static reef_status read_files(rfi_watch *w, const rfi_watch_setup *s, rfi_runfile *file, reef_error *error)
{
    reef_status status = rfi_crypto_start(error);
    if (status == REEF_OK) {
        status = rfi_runfile_load(NULL, s->run_file, file, error);
    }
    if (status == REEF_OK && s->coordinator) {
        status = rfi_runfile_signed_by(file, s->coordinator, error);
    }
    if (status == REEF_OK) {
        status = rfi_secret_read(s->key, &w->secret, error);
    }
    ptrdiff_t agent = status == REEF_OK ? rfi_runfile_find(file, w->secret.identity.public_key) : -1;
    if (agent >= 0) { /* it cannot be listed as an observer, too */
        status = rfi_fail(error, REEF_E_ARG,
                          "%.100s is the key of agent %s; an observer needs one of its own: `reef keys new watcher`",
                          s->key, file->participants[agent].name);
    }
    if (status == REEF_OK && !is_observer(w, file)) {
        char login[RFI_KEY_TEXT];
        rfi_key_print(login, RFI_LETTER_LOGIN, w->secret.login.public_key);
        status = rfi_fail(error, REEF_E_ARG,
                          "%.100s is not the key of an observer of run %s: its coordinator must add "
                          "`observers: {NAME: \"%s\"}` to the run file and sign it",
                          s->key, file->run, login);
    }
    return status;
}

static reef_status open_view(rfi_watch *w, const rfi_watch_setup *s, reef_error *error)
{
    rfi_runfile file = {0};
    reef_status status = read_files(w, s, &file, error);
    if (status == REEF_OK) {
        status = rfi_view_make(&w->view, &file, NULL, error);
    }
    rfi_runfile_free(&file); /* cleared, if it was taken over */
    if (status == REEF_OK) {
        status = rfi_watch_put_run(w, 0, error);
    }
    return status;
}

reef_status rfi_watch_open(rfi_watch **watch, const rfi_watch_setup *setup, reef_error *error)
{
    *watch = NULL;
    rfi_watch *w = calloc(1, sizeof *w);
    if (!w || pthread_mutex_init(&w->lock, NULL) != 0) {
        free(w);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for an observer");
    }
    w->dash = setup->dash;
    w->run_file = setup->run_file;
    w->authority = setup->authority;
    w->began = rfi_now();
    for (int by = 0; by < RFI_WATCH_EARS; by++) {
        w->broker[by].tokens = RFI_BUCKET_MOST;
    }
    (void)stat(w->run_file, &w->later.seen);
    reef_status status = open_view(w, setup, error);
    for (ptrdiff_t i = 0; status == REEF_OK && i < w->view->file.brokers; i++) {
        status = listen_at(w, w->view->file.broker[i], error);
    }
    *watch = w;
    if (status != REEF_OK) {
        rfi_watch_close(watch);
    }
    return status;
}

bool rfi_watch_refused(rfi_watch *w)
{
    bool all = true;
    for (ptrdiff_t i = 0; i < w->ears; i++) {
        all = all && rfi_nats_ear_refused(w->ear[i].ear);
    }
    return all;
}

bool rfi_watch_silent(rfi_watch *w, reef_error *why)
{
    bool heard = false;
    (void)pthread_mutex_lock(&w->lock);
    for (ptrdiff_t k = 0; k < w->view->file.agents; k++) {
        heard = heard || isfinite(w->view->sights[k].heard);
    }
    (void)pthread_mutex_unlock(&w->lock);
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; !heard && status == REEF_OK && i < w->ears; i++) {
        const rfi_nats_operator by = {w->ear[i].url, &w->secret.login, w->authority};
        status = rfi_nats_try(&by, why);
    }
    if (!heard && status == REEF_OK) {
        (void)rfi_fail(
            why, REEF_E_ENGINE,
            "no agent reports: do they run, by a run file that lists this observer?"); /* the broker is there */
    }
    return !heard;
}

void rfi_watch_close(rfi_watch **watch)
{
    rfi_watch *w = *watch;
    *watch = NULL;
    if (!w) {
        return;
    }
    for (ptrdiff_t i = 0; i < w->ears; i++) {
        rfi_nats_ear_close(&w->ear[i].ear);
    }
    rfi_later_free(&w->later);
    rfi_view_free(&w->view);
    rfi_wipe(&w->secret, sizeof w->secret);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
