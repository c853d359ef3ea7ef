/* From verified frames to lines. What an agent says is its own word about itself and its neighbours; words about others are left out. */
#include "net/dash_watch.h"

#include "base/error.h"
#include "base/memory.h"
#include "net/agent.h"
#include "net/echo.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Frames of an agent that are verified: so many at once, and so many a second. */
static const double tokens_most = 6;
static const double tokens_second = 3;

/* What was last heard of an agent. */
typedef struct sight {
    bool seen, left, proven;
    uint64_t boot;
    ptrdiff_t audience, accusers; /* who hears it, and how many of them say that it is excluded */
    double tokens, at;
    unsigned char mark[RFI_HASH_BYTES]; /* of its last frame: other brokers bring the same one */
    uint32_t *refused;                  /* per neighbour, by its place in the graph's row */
    bool *accused;                      /* likewise */
} sight;

struct rfi_watch {
    rfi_runfile file;
    rfi_roster roster;
    rfi_secret secret;
    rfi_dash *dash;
    double began;
    pthread_mutex_t lock; /* what follows: several brokers speak at once */
    sight *sights;
    uint32_t *counters; /* of all sights, */
    bool *accusations;  /* likewise */
    rfi_status status;
    ptrdiff_t ears;
    rfi_nats_ear *ear[RFI_BROKERS_MAX];
};

double rfi_watch_time(const rfi_watch *w)
{
    return rfi_now() - w->began;
}

/* ---- lines ---- */

static const char *metric_of(const rfi_roster *r)
{
    unsigned traits = r->problem ? reef_problem_kind_of(r->problem)->traits : 0;
    const char *classes = traits & REEF_PROBLEM_CLASSES ? "accuracy" : NULL;
    return traits & REEF_PROBLEM_OPTIMUM ? "msd_db" : classes;
}

static reef_status put_run(const rfi_watch *w, reef_error *error)
{
    reef_csr csr = reef_graph_csr(w->roster.graph);
    ptrdiff_t agents = w->file.agents;
    ptrdiff_t count = 0;
    const char **names = rfi_allocate_many(NULL, agents, sizeof *names);
    rfi_dash_edge *edges = rfi_allocate_many(NULL, csr.start[agents] + 1, sizeof *edges);
    if (!names || !edges) {
        rfi_release(NULL, (void *)names);
        rfi_release(NULL, edges);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the links of %td agents", agents);
    }
    for (ptrdiff_t k = 0; k < agents; k++) {
        names[k] = w->file.participants[k].name;
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
            if (csr.senders[i] != k) {
                edges[count++] = (rfi_dash_edge){(uint32_t)csr.senders[i], (uint32_t)k, csr.weight[i]};
            }
        }
    }
    bool known = w->file.is_test && w->roster.malicious_count > 0;
    const rfi_dash_run run = {.name = w->file.run,
                              .rule = w->file.terms.rule,
                              .attack = known && w->file.test.attack[0] ? w->file.test.attack : NULL,
                              .rounds = w->file.is_test ? (uint64_t)w->file.test.rounds : 0,
                              .metric = metric_of(&w->roster),
                              .agents = agents,
                              .names = names,
                              .edges = count,
                              .edge = edges,
                              .malicious = known ? w->roster.malicious : NULL};
    rfi_dash_put_run(w->dash, &run);
    rfi_release(NULL, (void *)names);
    rfi_release(NULL, edges);
    return REEF_OK;
}

/* What the rule's test says of a neighbour. */
static void explain(const rfi_watch *w, unsigned test, char *text, size_t size)
{
    const reef_memory *memory = reef_agg_rule(w->roster.rule)->memory;
    text[0] = '\0';
    if (test > 0 && memory && (ptrdiff_t)test <= memory->factor_count) {
        const reef_diagnostic *d = &memory->factors[test - 1];
        (void)snprintf(text, size, "%s: %s", d->name, d->meaning);
    }
}

/* What most of those who hear an agent say is shown; a few could lie, and who has a proof publishes it. */
static void count_accuser(rfi_watch *w, ptrdiff_t by, double time, uint32_t agent)
{
    sight *s = &w->sights[agent];
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
    uint32_t *refused = &w->sights[agent].refused[place];
    bool *accused = &w->sights[agent].accused[place];
    if (e->refused > *refused) {
        (void)snprintf(text, sizeof text, "%lu frames refused: %s", (unsigned long)(e->refused - *refused),
                       rfi_cause_text(e->cause));
        rfi_dash_put_event(w->dash, time, "refused", e->agent, agent, text);
    }
    *refused = e->refused;
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
    reef_csr csr = reef_graph_csr(w->roster.graph);
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
        ptrdiff_t place = (ptrdiff_t)e->agent < w->file.agents ? reef_csr_find(&csr, (ptrdiff_t)e->agent, agent) : -1;
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

static bool is_allowed(sight *s, double time)
{
    s->tokens = fmin(tokens_most, s->tokens + tokens_second * (time - s->at));
    s->at = time;
    bool allowed = s->tokens >= 1;
    s->tokens -= allowed ? 1 : 0;
    return allowed;
}

static void take_status(rfi_watch *w, ptrdiff_t agent, const unsigned char *bytes, size_t size, double time)
{
    sight *s = &w->sights[agent];
    rfi_head head;
    unsigned char mark[RFI_HASH_BYTES] = {0};
    const rfi_status_sender from = {.agent = (uint32_t)agent,
                                    .epoch = (uint32_t)w->file.terms.epoch,
                                    .run = w->file.hash,
                                    .key = w->file.participants[agent].identity,
                                    .by = &rfi_ed25519};
    if (size >= RFI_HEAD_BYTES) {
        rfi_frame_mark(mark, bytes);
    }
    if (memcmp(mark, s->mark, sizeof mark) == 0 || !is_allowed(s, time) ||
        rfi_status_take(&from, bytes, size, &head, &w->status) != RFI_GOOD) {
        return;
    }
    memcpy(s->mark, mark, sizeof mark);
    if (!s->seen || s->boot != head.boot) {
        rfi_dash_put_event(w->dash, time, "started", agent, agent, NULL);
        ptrdiff_t row = reef_graph_csr(w->roster.graph).start[agent + 1] - reef_graph_csr(w->roster.graph).start[agent];
        memset(s->refused, 0, (size_t)row * sizeof *s->refused);
        s->left = false;
    }
    s->seen = true;
    s->boot = head.boot;
    put_status(w, agent, time);
    if (w->status.standing == RFI_STANDING_LEFT && !s->left) {
        s->left = true;
        rfi_dash_put_event(w->dash, time, "left", agent, agent, NULL);
    }
}

/* A proof is two manifests of one agent; who sends it does not matter. */
static void take_proof(rfi_watch *w, ptrdiff_t by, const unsigned char *bytes, size_t size, double time)
{
    rfi_head head;
    if (size != RFI_MANIFEST_BYTES + RFI_PROOF_BYTES || rfi_frame_read(bytes, size, &head) != RFI_GOOD ||
        head.type != RFI_FRAME_PROOF || !is_allowed(&w->sights[by], time) ||
        !rfi_proof_read(bytes + RFI_MANIFEST_BYTES, &rfi_ed25519, &head) ||
        memcmp(head.run, w->file.hash, sizeof head.run) != 0) {
        return;
    }
    ptrdiff_t agent = rfi_runfile_find(&w->file, head.key);
    if (agent >= 0 && !w->sights[agent].proven) {
        w->sights[agent].proven = true;
        rfi_dash_put_event(w->dash, time, "proof", agent, by, "it has signed two models for one round");
    }
}

void rfi_watch_hear(rfi_watch *w, const char *subject, const unsigned char *bytes, size_t size)
{
    char *end = NULL;
    size_t head = strlen("reef.") + strlen(w->file.run) + 1;
    if (strlen(subject) < head + 3 || subject[head + 1] != '.' || subject[head + 2] < '0' || subject[head + 2] > '9') {
        return;
    }
    unsigned long agent = strtoul(subject + head + 2, &end, 10);
    if (*end != '\0' || agent >= (unsigned long)w->file.agents || w->file.participants[agent].removed) {
        return;
    }
    double time = rfi_watch_time(w);
    (void)pthread_mutex_lock(&w->lock);
    if (subject[head] == 't') {
        take_status(w, (ptrdiff_t)agent, bytes, size, time);
    } else if (subject[head] == 'x') {
        take_proof(w, (ptrdiff_t)agent, bytes, size, time);
    }
    (void)pthread_mutex_unlock(&w->lock);
}

/* On a thread of libnats. */
static void hear(void *user, const char *subject, const unsigned char *bytes, size_t size)
{
    rfi_watch_hear(user, subject, bytes, size);
}

/* ---- opening and closing ---- */

static reef_status take_rooms(rfi_watch *w, reef_error *error)
{
    reef_csr csr = reef_graph_csr(w->roster.graph);
    w->sights = rfi_allocate_many(NULL, w->file.agents, sizeof *w->sights);
    w->counters = rfi_allocate_many(NULL, csr.start[w->file.agents] + 1, sizeof *w->counters);
    w->accusations = rfi_allocate_many(NULL, csr.start[w->file.agents] + 1, sizeof *w->accusations);
    if (!w->sights || !w->counters || !w->accusations) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td agents", w->file.agents);
    }
    for (ptrdiff_t k = 0; k < w->file.agents; k++) {
        w->sights[k] = (sight){
            .tokens = tokens_most, .refused = w->counters + csr.start[k], .accused = w->accusations + csr.start[k]};
    }
    for (ptrdiff_t k = 0; k < w->file.agents; k++) {
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
            w->sights[csr.senders[i]].audience += csr.senders[i] != k;
        }
    }
    memset(w->accusations, 0, ((size_t)csr.start[w->file.agents] + 1) * sizeof *w->accusations);
    memset(w->counters, 0, ((size_t)csr.start[w->file.agents] + 1) * sizeof *w->counters);
    return REEF_OK;
}

static bool is_observer(const rfi_watch *w)
{
    for (ptrdiff_t i = 0; i < w->file.observers; i++) {
        if (memcmp(w->file.observer[i].login, w->secret.login.public_key, RFI_KEY_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static reef_status read_files(rfi_watch *w, const rfi_watch_setup *s, reef_error *error)
{
    reef_status status = rfi_crypto_start(error);
    if (status == REEF_OK) {
        status = rfi_runfile_load(NULL, s->run_file, &w->file, error);
    }
    if (status == REEF_OK && s->coordinator) {
        status = rfi_runfile_signed_by(&w->file, s->coordinator, error);
    }
    if (status == REEF_OK) {
        status = rfi_secret_read(s->key, &w->secret, error);
    }
    if (status == REEF_OK && !is_observer(w)) {
        status = rfi_fail(
            error, REEF_E_ARG,
            "%.100s is not the key of an observer of run %s: add its login U... to `observers:` before signing", s->key,
            w->file.run);
    }
    if (status != REEF_OK) {
        return status;
    }
    return rfi_roster_create(NULL, &w->file, &w->roster, error);
}

static reef_status listen(rfi_watch *w, const char *authority, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; status == REEF_OK && i < w->file.brokers; i++) {
        const rfi_nats_ear_setup setup = {.url = w->file.broker[i],
                                          .run = w->file.run,
                                          .login = &w->secret.login,
                                          .authority = authority,
                                          .hear = hear,
                                          .user = w};
        status = rfi_nats_listen(&w->ear[i], &setup, error);
        w->ears += status == REEF_OK;
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
    w->began = rfi_now();
    reef_status status = read_files(w, setup, error);
    if (status == REEF_OK) {
        status = take_rooms(w, error);
    }
    if (status == REEF_OK) {
        status = put_run(w, error);
    }
    if (status == REEF_OK) {
        status = listen(w, setup->authority, error);
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
        all = all && rfi_nats_ear_refused(w->ear[i]);
    }
    return all;
}

void rfi_watch_close(rfi_watch **watch)
{
    rfi_watch *w = *watch;
    *watch = NULL;
    if (!w) {
        return;
    }
    for (ptrdiff_t i = 0; i < w->ears; i++) {
        rfi_nats_ear_close(&w->ear[i]);
    }
    rfi_roster_free(&w->roster);
    rfi_runfile_free(&w->file);
    rfi_wipe(&w->secret, sizeof w->secret);
    rfi_release(NULL, w->sights);
    rfi_release(NULL, w->counters);
    rfi_release(NULL, w->accusations);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
