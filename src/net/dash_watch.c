/* From verified frames to lines. What an agent says is its own word about itself and its neighbours; words about others are left out. */
#include "net/dash_watch_inner.h"

#include "base/error.h"
#include "base/memory.h"
#include "net/echo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double tokens_second = 3;
/* Refusals of a neighbour are told of once in this time, as in logs: who reports more with every word must not push everything else out. */
static const double refused_seconds = 60;

double rfi_watch_time(const rfi_watch *w)
{
    return rfi_now() - w->began;
}

/* ---- lines ---- */

/* What the rule's test says of a neighbour. */
static void explain(const rfi_watch *w, unsigned test, char *text, size_t size)
{
    const reef_memory *memory = reef_agg_rule(w->view->roster.rule)->memory;
    text[0] = '\0';
    if (test > 0 && memory && (ptrdiff_t)test <= memory->factor_count) {
        const reef_diagnostic *d = &memory->factors[test - 1];
        (void)snprintf(text, size, "%s: %s", d->name, d->meaning);
    }
}

/* What most of those who hear an agent say is shown; a few could lie, and who has a proof publishes it. */
static void count_accuser(rfi_watch *w, ptrdiff_t by, double time, uint32_t agent)
{
    rfi_sight *s = &w->view->sights[agent];
    s->accusers++;
    if (2 * s->accusers > s->audience && 2 * (s->accusers - 1) <= s->audience && !s->proven) {
        rfi_dash_put_event(w->dash, time, "excluded", agent, by,
                           "most of those who hear it hold a proof of two models for one round");
    }
}

/* What has changed since the agent's last word: refusals and exclusions of neighbours. */
static void put_changes(rfi_watch *w, ptrdiff_t agent, double time, const rfi_status_entry *e, ptrdiff_t place)
{
    char text[160];
    uint32_t *refused = &w->view->sights[agent].refused[place];
    double *told_at = &w->view->sights[agent].told_at[place];
    bool *accused = &w->view->sights[agent].accused[place];
    *refused = e->refused < *refused ? e->refused : *refused; /* since the process was started again */
    if (e->refused > *refused && time - *told_at >= refused_seconds) {
        (void)snprintf(text, sizeof text, "%lu frames refused: %s", (unsigned long)(e->refused - *refused),
                       rfi_cause_text(e->cause));
        rfi_dash_put_event(w->dash, time, "refused", e->agent, agent, text);
        *refused = e->refused;
        *told_at = time;
    }
    if (e->cause == RFI_EXCLUDED && !*accused) {
        *accused = true;
        count_accuser(w, agent, time, e->agent);
    }
}

static void put_status(rfi_watch *w, ptrdiff_t agent, double time)
{
    enum { WHY = 200 };
    static char why[RFI_NEIGHBOURS_MAX][WHY]; /* under the lock */
    rfi_dash_peer peers[RFI_NEIGHBOURS_MAX];
    const rfi_status *s = &w->status;
    reef_csr csr = reef_graph_csr(w->view->roster.graph);
    rfi_dash_status line = {.time = time,
                            .agent = (uint32_t)agent,
                            .round = s->round,
                            .state = rfi_standing_text(s->standing),
                            .combined = s->combined,
                            .alone = s->alone,
                            .skipped = s->skipped,
                            .idle = s->idle,
                            .weight = s->weight,
                            .adapt = (double)s->adapt,
                            .wait = (double)s->wait,
                            .combine = (double)s->combine,
                            .received = (double)s->received,
                            .sent = (double)s->sent,
                            .resident = (double)s->resident,
                            .peer = peers};
    for (int i = 0; i < RFI_NOTES && s->notes[i].name[0]; i++) {
        line.metric[line.metrics].name = s->notes[i].name;
        line.metric[line.metrics++].value = s->notes[i].value;
    }
    for (size_t i = 0; i < s->count; i++) {
        const rfi_status_entry *e = &s->entries[i];
        ptrdiff_t place =
            (ptrdiff_t)e->agent < w->view->file.agents ? reef_csr_find(&csr, (ptrdiff_t)e->agent, agent) : -1;
        if (place < 0 || (ptrdiff_t)e->agent == agent) {
            continue; /* nobody speaks about agents that it does not hear */
        }
        explain(w, e->test, why[i], WHY);
        peers[line.peers++] = (rfi_dash_peer){.agent = e->agent,
                                              .trust = e->trust < 0 ? (double)NAN : (double)e->trust,
                                              .age = e->age == RFI_AGE_ABSENT ? -1 : (int)e->age,
                                              .refused = e->refused,
                                              .cause = e->cause == RFI_GOOD ? NULL : rfi_cause_text(e->cause),
                                              .why = why[i]};
        put_changes(w, agent, time, e, place - csr.start[agent]);
    }
    rfi_dash_put_status(w->dash, &line);
}

/* ---- frames ---- */

bool rfi_bucket_take(rfi_bucket *b, double time)
{
    b->tokens = fmin(RFI_BUCKET_MOST, b->tokens + tokens_second * (time - b->at));
    b->at = time;
    bool there = b->tokens >= 1;
    b->tokens -= there ? 1 : 0;
    return there;
}

/* A word from before the last one: another broker is slower, or plays old messages again. */
static bool is_outdated(const rfi_sight *s, const rfi_head *head)
{
    bool past = false;
    for (unsigned i = 0; i < s->pasts && i < RFI_PAST_BOOTS; i++) {
        past = past || s->past[i] == head->boot;
    }
    return s->seen && (head->boot == s->boot ? head->round < s->round : past);
}

/* A process has been started since, or an epoch has begun. */
static void note_boot(rfi_sight *s, const rfi_head *head)
{
    if (s->seen && s->boot != head->boot) {
        s->past[s->pasts++ % RFI_PAST_BOOTS] = s->boot;
    }
    s->seen = true;
    s->boot = head->boot;
    s->round = head->round;
}

/* Verifies a STATUS by the run file whose epoch it names: the one in force, or a later one. Of an epoch whose file is missing, or that is
 * over, it tells nothing but that its sender works by it. */
static bool verify_status(rfi_watch *w, ptrdiff_t agent, const unsigned char *bytes, size_t size, int64_t *epoch)
{
    const rfi_runfile *file = &w->view->file;
    rfi_head head;
    if (rfi_frame_read(bytes, size, &head) != RFI_GOOD) {
        return false;
    }
    *epoch = (int64_t)head.epoch;
    const rfi_runfile *later = *epoch == file->terms.epoch ? file : rfi_later_find(&w->later, *epoch);
    const rfi_status_sender from = {.agent = (uint32_t)agent,
                                    .epoch = head.epoch,
                                    .run = later ? later->hash : head.run,
                                    .key = (later ? later : file)->participants[agent].identity,
                                    .by = &rfi_ed25519};
    if (rfi_status_take(&from, bytes, size, &head, &w->status) != RFI_GOOD ||
        is_outdated(&w->view->sights[agent], &head)) {
        return false;
    }
    w->view->sights[agent].epoch = *epoch;
    w->view->sights[agent].heard = rfi_watch_time(w);
    return later != NULL;
}

static void take_status(rfi_watch *w, ptrdiff_t agent, const unsigned char *bytes, size_t size, double time)
{
    rfi_sight *s = &w->view->sights[agent];
    rfi_head head;
    int64_t epoch = 0;
    unsigned char mark[RFI_HASH_BYTES] = {0};
    if (size >= RFI_HEAD_BYTES) {
        rfi_frame_mark(mark, bytes);
    }
    if (memcmp(mark, s->mark, sizeof mark) == 0 || !rfi_bucket_take(&s->bucket[w->by], time) ||
        !verify_status(w, agent, bytes, size, &epoch) || rfi_frame_read(bytes, size, &head) != RFI_GOOD) {
        return;
    }
    memcpy(s->mark, mark, sizeof mark);
    if (!s->seen || s->boot != head.boot) {
        rfi_dash_put_event(w->dash, time, "started", agent, agent, NULL);
        reef_csr csr = reef_graph_csr(w->view->roster.graph);
        memset(s->refused, 0, (size_t)(csr.start[agent + 1] - csr.start[agent]) * sizeof *s->refused);
        s->left = false;
    }
    note_boot(s, &head);
    put_status(w, agent, time);
    if (w->status.standing == RFI_STANDING_LEFT && !s->left) {
        s->left = true;
        rfi_dash_put_event(w->dash, time, "left", agent, agent, NULL);
    }
}

static bool is_of_run(const rfi_watch *w, const unsigned char hash[RFI_HASH_BYTES])
{
    bool found = memcmp(hash, w->view->file.hash, RFI_HASH_BYTES) == 0;
    for (int i = 0; i < w->later.count; i++) {
        found = found || memcmp(hash, w->later.files[i].hash, RFI_HASH_BYTES) == 0;
    }
    return found;
}

/* With the first bytes of both marks, by which the models can be told apart. */
static void tell_proof(const rfi_watch *w, ptrdiff_t agent, ptrdiff_t by, const unsigned char *manifests,
                       uint64_t round, double time)
{
    enum { SHOWN = 8 };
    char marks[2][2 * SHOWN + 1];
    char text[160];
    for (int i = 0; i < 2; i++) {
        unsigned char mark[RFI_HASH_BYTES];
        rfi_frame_mark(mark, manifests + (ptrdiff_t)i * RFI_MANIFEST_BYTES);
        for (int b = 0; b < SHOWN; b++) {
            (void)snprintf(marks[i] + 2 * (ptrdiff_t)b, 3, "%02x", mark[b]);
        }
    }
    (void)snprintf(text, sizeof text, "it has signed two models for round %llu, with the marks %s and %s",
                   (unsigned long long)round, marks[0], marks[1]);
    rfi_dash_put_event(w->dash, time, "proof", agent, by, text);
}

/* A proof is two manifests of one agent; who sends it does not matter. */
static void take_proof(rfi_watch *w, ptrdiff_t by, const unsigned char *bytes, size_t size, double time)
{
    rfi_head head;
    if (size != RFI_MANIFEST_BYTES + RFI_PROOF_BYTES || rfi_frame_read(bytes, size, &head) != RFI_GOOD ||
        head.type != RFI_FRAME_PROOF || !rfi_bucket_take(&w->view->sights[by].bucket[w->by], time) ||
        !rfi_proof_read(bytes + RFI_MANIFEST_BYTES, &rfi_ed25519, &head) || !is_of_run(w, head.run)) {
        return;
    }
    ptrdiff_t agent = rfi_runfile_find(&w->view->file, head.key);
    if (agent >= 0 && !w->view->sights[agent].proven) {
        w->view->sights[agent].proven = true;
        tell_proof(w, agent, by, bytes + RFI_MANIFEST_BYTES, head.round, time);
    }
}

/* A run file that an agent or, with `bucket` of its own, a broker hands out; files of no use are not worth a word here: agents tell. */
static void take_file(rfi_watch *w, rfi_bucket *bucket, const unsigned char *bytes, size_t size, double time)
{
    reef_error why;
    if (rfi_bucket_take(bucket, time)) {
        (void)rfi_later_take(&w->later, &w->view->file, bytes, size, &why);
    }
}

static void take(rfi_watch *w, char kind, unsigned long agent, const unsigned char *bytes, size_t size)
{
    double time = rfi_watch_time(w);
    if (agent >= (unsigned long)w->view->file.agents || w->view->file.participants[agent].removed) {
        return;
    }
    if (kind == 't') {
        take_status(w, (ptrdiff_t)agent, bytes, size, time);
    } else if (kind == 'x') {
        take_proof(w, (ptrdiff_t)agent, bytes, size, time);
    } else if (kind == 'c') {
        take_file(w, &w->view->sights[agent].bucket[w->by], bytes, size, time);
    }
}

/* Subjects are reef.RUN.t.AGENT, reef.RUN.x.AGENT, reef.RUN.c.AGENT and reef.RUN.c.b.EPOCH; the run's name never changes. */
void rfi_watch_hear(rfi_watch *w, int by, const char *subject, const unsigned char *bytes, size_t size)
{
    char *end = NULL;
    (void)pthread_mutex_lock(&w->lock);
    w->by = by;
    size_t head = strlen("reef.") + strlen(w->view->file.run) + 1;
    if (strlen(subject) >= head + 3 && strncmp(subject + head, "c.b.", 4) == 0) {
        take_file(w, &w->broker[by], bytes, size, rfi_watch_time(w));
    } else if (strlen(subject) >= head + 3 && subject[head + 1] == '.' && subject[head + 2] >= '0' &&
               subject[head + 2] <= '9') {
        unsigned long agent = strtoul(subject + head + 2, &end, 10);
        if (*end == '\0') {
            take(w, subject[head], agent, bytes, size);
        }
    }
    (void)pthread_mutex_unlock(&w->lock);
}

void rfi_watch_heard(void *user, const char *subject, const unsigned char *bytes, size_t size)
{
    const rfi_watch_place *place = user;
    rfi_watch_hear(place->watch, place->number, subject, bytes, size);
}
