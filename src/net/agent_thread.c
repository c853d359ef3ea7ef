/* An agent for programs with models of their own: the agent of agent.h, stepped by a thread, so that models of neighbours arrive while the
 * program computes. The thread alone touches the agent; the program's calls leave what they want under the lock and wait. */
#include "net/agent.h"

#include <reef/net.h>

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXPLAIN = 240 };

/* How long the last model may take to reach a broker. */
static const double deliver_seconds = 3;

/* What the last round made of a neighbour. */
typedef struct hearing {
    uint64_t used, stale; /* counters before it */
    uint64_t offences;
    double trust;
    reef_presence presence;
    char cause[16]; /* of what was refused in the round; "" */
    char why[EXPLAIN];
} hearing;

struct reef_agent {
    rfi_agent core;
    rfi_shape shape; /* of models, the same in all epochs: the roster has it, too, but the thread makes another one */
    size_t bytes;    /* of a model */
    ptrdiff_t count;
    hearing *neighbours;
    double *shares; /* 2 senders */
    unsigned char *offer, *result;
    pid_t process;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* everything below, and what is above while no round is under way */
    pthread_cond_t changed;
    bool stop;
    bool ready;  /* the node waits for a model */
    bool wanted; /* an offer waits for the node */
    bool under_way;
    bool done;  /* the result of the last exchange is there */
    bool taken; /* somebody has fetched it, or there is none yet */
    bool joined;
    bool combined;
    double weight;
    int64_t round;
    uint64_t combined_before;
    int epochs;         /* for which there are rooms */
    reef_status status; /* why the agent has ended */
    reef_error why;
};

/* ---- rooms ---- */

/* What is about neighbours, of whom there are others in each epoch. Their counters may have a past. */
static reef_status take_rooms(reef_agent *a, reef_error *error)
{
    const rfi_window *window = rfi_node_window(a->core.node);
    rfi_release(NULL, a->neighbours);
    rfi_release(NULL, a->shares);
    a->count = window->setup.count;
    a->epochs = a->core.epochs;
    a->neighbours = rfi_allocate_many(NULL, a->count > 0 ? a->count : 1, sizeof *a->neighbours);
    a->shares = rfi_allocate_many(NULL, 2 * (a->count + 1), sizeof *a->shares);
    if (!a->neighbours || !a->shares) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for an agent");
    }
    memset(a->neighbours, 0, (size_t)(a->count > 0 ? a->count : 1) * sizeof *a->neighbours);
    for (ptrdiff_t l = 0; l < a->count; l++) {
        const rfi_peer *peer = &window->peers[l];
        a->neighbours[l].used = peer->counts[RFI_USED];
        a->neighbours[l].stale = peer->counts[RFI_STALE];
        a->neighbours[l].offences = rfi_offences(peer);
    }
    return REEF_OK;
}

static reef_status take_models(reef_agent *a, reef_error *error)
{
    a->shape = a->core.roster.shape;
    a->bytes = rfi_shape_bytes(&a->shape);
    a->offer = rfi_allocate(NULL, a->bytes);
    a->result = rfi_allocate(NULL, a->bytes);
    return a->offer && a->result ? take_rooms(a, error) : rfi_fail(error, REEF_E_NOMEM, "no memory for an agent");
}

/* ---- the thread ---- */

/* Which of the offences a peer has committed most often. */
static const char *worst_cause(const rfi_peer *peer)
{
    int worst = RFI_GOOD;
    for (int cause = 0; cause < RFI_CAUSES; cause++) {
        bool more = worst == RFI_GOOD || peer->counts[cause] > peer->counts[worst];
        worst = rfi_is_offence((rfi_cause)cause) && peer->counts[cause] > 0 && more ? cause : worst;
    }
    return worst == RFI_GOOD ? "" : rfi_cause_text((rfi_cause)worst);
}

static void note_neighbour(reef_agent *a, ptrdiff_t l)
{
    const rfi_peer *peer = &rfi_node_window(a->core.node)->peers[l];
    hearing *n = &a->neighbours[l];
    ptrdiff_t sender = l + (l >= a->core.self);
    ptrdiff_t senders = a->count + 1;
    n->presence = REEF_MISSING;
    if (peer->counts[RFI_USED] > n->used) {
        n->presence = REEF_FRESH;
    } else if (peer->counts[RFI_STALE] > n->stale) {
        n->presence = REEF_OLD;
    }
    n->used = peer->counts[RFI_USED];
    n->stale = peer->counts[RFI_STALE];
    n->trust = a->combined ? a->shares[sender] / a->shares[senders + sender] : (double)NAN;
    n->why[0] = '\0';
    if (a->combined && n->presence != REEF_MISSING) {
        (void)reef_report_explain(reef_member_report(a->core.member), sender, n->why, sizeof n->why);
    }
    uint64_t offences = rfi_offences(peer);
    (void)snprintf(n->cause, sizeof n->cause, "%s", offences > n->offences ? worst_cause(peer) : "");
    n->offences = offences;
}

/* A round has ended: everything about it is put where the program can ask. */
static void note_round(reef_agent *a)
{
    const rfi_rounds *rounds = rfi_node_rounds(a->core.node);
    a->combined = rounds->combined > a->combined_before;
    a->combined_before = rounds->combined;
    a->weight = rfi_node_weight(a->core.node);
    reef_member_trust(a->core.member, a->shares, a->shares + a->count + 1);
    for (ptrdiff_t l = 0; l < a->count; l++) {
        note_neighbour(a, l);
    }
    memcpy(a->result, reef_member_model(a->core.member), a->bytes);
    a->under_way = false;
    a->done = true;
}

static double turn(reef_agent *a, double now)
{
    double until = now;
    bool ended = false;
    /* The report of a round is the program's until it asks for the next one: only then neighbours may become others. */
    a->core.held = a->ready && !a->wanted;
    rfi_node_state state = rfi_agent_step(&a->core, now, &until, &ended, &a->why);
    bool bad = state == RFI_NODE_FAILED;
    if (!bad && a->epochs != a->core.epochs) {
        bad = take_rooms(a, &a->why) != REEF_OK;
    }
    if (bad) {
        a->status = a->why.status;
        return now;
    }
    bool ready = state == RFI_NODE_READY;
    if (ready && a->under_way) {
        note_round(a);
    }
    if (ready && !a->ready) {
        a->joined = a->joined || rfi_node_rounds(a->core.node)->joined > 0;
        memcpy(a->result, reef_member_model(a->core.member), a->bytes);
    }
    a->ready = a->ready || ready;
    a->round = (int64_t)rfi_node_rounds(a->core.node)->round;
    if (ready && a->wanted) {
        a->wanted = false;
        a->under_way = true;
        reef_member_offer(a->core.member, a->offer);
        rfi_agent_offer(&a->core, a->offer, a->offer, now);
        return now;
    }
    return until;
}

static void *work(void *user)
{
    reef_agent *a = user;
    bool over = false;
    while (!over) {
        double now = rfi_now();
        (void)pthread_mutex_lock(&a->lock);
        double until = a->status == REEF_OK && !a->stop ? turn(a, now) : now;
        over = a->stop || a->status != REEF_OK;
        (void)pthread_cond_broadcast(&a->changed);
        (void)pthread_mutex_unlock(&a->lock);
        if (!over) {
            rfi_nats_wait(a->core.nats, until - now);
        }
    }
    if (a->status == REEF_OK && a->core.node) {
        rfi_agent_deliver(&a->core, fmin(deliver_seconds, a->core.file.deadline), NULL);
    }
    return NULL;
}

/* ---- opening and closing ---- */

static reef_status start_thread(reef_agent *a, reef_error *error)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    a->process = getpid();
    a->started = pthread_create(&a->thread, NULL, work, a) == 0;
    return a->started ? REEF_OK : rfi_fail(error, REEF_E_ENGINE, "no thread for an agent");
}

reef_status rfi_agent_start(reef_agent **agent, const rfi_agent_setup *setup, reef_error *error)
{
    *agent = NULL;
    reef_agent *a = rfi_allocate(NULL, sizeof *a);
    if (!a) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for an agent");
    }
    memset(a, 0, sizeof *a);
    reef_status status = rfi_agent_open(&a->core, setup, error);
    if (status == REEF_OK && a->core.roster.problem) {
        status = rfi_fail(error, REEF_E_ARG, "run %s is about a built-in problem (test: problem)", a->core.file.run);
    }
    if (status == REEF_OK) {
        status = take_models(a, error);
    }
    if (status == REEF_OK) {
        status = start_thread(a, error);
    }
    *agent = a;
    if (status != REEF_OK) {
        reef_agent_destroy(agent);
    }
    return status;
}

reef_status reef_agent_create(reef_agent **agent, const char *run_file, const char *key, const char *coordinator,
                              const char *state, const unsigned char *layout, reef_error *error)
{
    const rfi_agent_setup setup = {
        .run_file = run_file, .key = key, .coordinator = coordinator, .state = state, .layout = layout};
    return rfi_agent_start(agent, &setup, error);
}

void reef_agent_destroy(reef_agent **agent)
{
    reef_agent *a = *agent;
    *agent = NULL;
    if (!a || (a->started && a->process != getpid())) {
        return; /* in a forked child there is no thread to wait for, and nothing to say */
    }
    if (a->started) {
        (void)pthread_mutex_lock(&a->lock);
        a->stop = true;
        if (a->core.nats) {
            rfi_nats_wake(a->core.nats);
        }
        (void)pthread_mutex_unlock(&a->lock);
        (void)pthread_join(a->thread, NULL);
        (void)pthread_cond_destroy(&a->changed);
        (void)pthread_mutex_destroy(&a->lock);
    }
    rfi_agent_close(&a->core, a->status == REEF_OK);
    rfi_release(NULL, a->neighbours);
    rfi_release(NULL, a->shares);
    rfi_release(NULL, a->offer);
    rfi_release(NULL, a->result);
    rfi_release(NULL, a);
}

/* ---- the program's calls ---- */

/* Locks, unless the call comes from a forked child or the agent has ended. */
static reef_status enter(reef_agent *a, reef_error *error)
{
    if (a->process != getpid()) {
        return rfi_fail(error, REEF_E_ORDER,
                        "an agent belongs to the process that made it, not to its forked children");
    }
    (void)pthread_mutex_lock(&a->lock);
    if (a->status != REEF_OK) {
        reef_status status = rfi_fail(error, a->status, "%s", a->why.text);
        (void)pthread_mutex_unlock(&a->lock);
        return status;
    }
    return REEF_OK;
}

/* Waits until *flag or the agent has ended, at most so long. */
static void wait_for(reef_agent *a, const bool *flag, double seconds)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    double whole = floor(fmin(fmax(seconds, 0), 3600));
    until.tv_sec += (time_t)whole;
    until.tv_nsec += (long)((fmin(fmax(seconds, 0), 3600) - whole) * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!*flag && a->status == REEF_OK && pthread_cond_timedwait(&a->changed, &a->lock, &until) == 0) {
    }
}

static reef_status leave(reef_agent *a, reef_error *error)
{
    reef_status status = a->status == REEF_OK ? REEF_OK : rfi_fail(error, a->status, "%s", a->why.text);
    (void)pthread_mutex_unlock(&a->lock);
    return status;
}

reef_status reef_agent_join(reef_agent *a, double seconds, void *model, int *ready, int *joined, reef_error *error)
{
    reef_status status = enter(a, error);
    if (status != REEF_OK) {
        return status;
    }
    wait_for(a, &a->ready, seconds);
    *ready = a->ready;
    *joined = a->ready && a->joined;
    if (*joined && model) {
        memcpy(model, a->result, a->bytes);
    }
    return leave(a, error);
}

/* What an agent that has not begun has. */
typedef struct waiting {
    char name[RFI_NAME_SIZE];
    char url[256]; /* of the first broker */
    double heard, above;
} waiting;

static bool look_waiting(reef_agent *a, waiting *w)
{
    (void)pthread_mutex_lock(&a->lock);
    const rfi_runfile *file = &a->core.file; /* which a thread may exchange for the next one */
    bool waits = a->status == REEF_OK && !a->ready && a->core.node;
    w->heard = waits ? rfi_window_heard(rfi_node_window(a->core.node)) : 0;
    w->above = 2 * file->terms.malicious;
    (void)snprintf(w->name, sizeof w->name, "%s", file->participants[a->core.place].name);
    (void)snprintf(w->url, sizeof w->url, "%s", file->broker[0]);
    (void)pthread_mutex_unlock(&a->lock);
    return waits;
}

void rfi_agent_tell_waiting(reef_agent *a, const char *authority)
{
    waiting w;
    if (look_waiting(a, &w)) {
        const rfi_nats_operator by = {.url = w.url, .login = &a->core.secret.login, .authority = authority};
        rfi_agent_explain(&a->core.log, w.name, &by, w.heard, w.above);
    }
}

void reef_agent_waits_for(reef_agent *a, char *text, size_t size)
{
    waiting w;
    reef_error why = {REEF_OK, ""};
    bool waits = look_waiting(a, &w);
    const rfi_nats_operator by = {.url = w.url, .login = &a->core.secret.login};
    if (!waits) {
        (void)snprintf(text, size, "%s", "");
    } else if (rfi_nats_try(&by, &why) != REEF_OK) {
        (void)snprintf(text, size, "%s", why.text);
    } else {
        (void)snprintf(text, size, "%s: weight %.3g, of more than %.3g", rfi_agent_lacks(w.heard, w.above), w.heard,
                       w.above);
    }
}

reef_status reef_agent_begin(reef_agent *a, const void *model, reef_error *error)
{
    if (!rfi_shape_values(&a->shape, model)) {
        return rfi_fail(error, REEF_E_ARG,
                        "the model has a number that is not finite or beyond %g (`largest` of the run): no neighbour "
                        "would take it",
                        a->shape.largest);
    }
    reef_status status = enter(a, error);
    if (status != REEF_OK) {
        return status;
    }
    bool busy = a->wanted || a->under_way || (a->done && !a->taken); /* however soon a round was over */
    if (!busy) {
        memcpy(a->offer, model, a->bytes);
        a->wanted = true;
        a->done = a->taken = false;
    }
    if (a->core.nats) { /* which the thread may replace, but not while this has the lock */
        rfi_nats_wake(a->core.nats);
    }
    status = leave(a, error);
    return busy ? rfi_fail(error, REEF_E_ORDER, "an exchange is under way already: wait for its result first") : status;
}

reef_status reef_agent_wait(reef_agent *a, double seconds, void *model, int *done, reef_error *error)
{
    reef_status status = enter(a, error);
    if (status != REEF_OK) {
        return status;
    }
    if (!a->done && !a->wanted && !a->under_way) {
        (void)pthread_mutex_unlock(&a->lock);
        return rfi_fail(error, REEF_E_ORDER, "no exchange is under way");
    }
    wait_for(a, &a->done, seconds);
    *done = a->done;
    if (a->done) {
        memcpy(model, a->result, a->bytes);
        a->taken = true;
    }
    return leave(a, error);
}

reef_status reef_agent_note(reef_agent *a, const char *name, double value, reef_error *error)
{
    reef_status status = enter(a, error);
    if (status != REEF_OK) {
        return status;
    }
    bool kept = rfi_telemetry_note(&a->core.telemetry, name, value);
    status = leave(a, error);
    return kept ? status
                : rfi_fail(
                      error, REEF_E_ARG,
                      "%.40s: notes are finite numbers under names of 1 to %d characters a-z, 0-9 and _, at most %d",
                      name, (int)RFI_NOTE_NAME, (int)RFI_NOTES);
}

bool rfi_agent_removed(const reef_agent *a)
{
    return a && a->core.removed;
}

int64_t reef_agent_dimension(const reef_agent *a)
{
    return (int64_t)a->shape.count;
}

int reef_agent_double(const reef_agent *a)
{
    return a->shape.numbers == RFI_NUMBERS_F64;
}

int64_t reef_agent_round(reef_agent *a)
{
    int64_t round = -1;
    if (enter(a, NULL) == REEF_OK) {
        round = a->round;
        (void)pthread_mutex_unlock(&a->lock);
    }
    return round;
}

/* Between two exchanges nobody but the caller changes these. */

int reef_agent_combined(const reef_agent *a)
{
    return a->combined;
}

double reef_agent_weight(const reef_agent *a)
{
    return a->weight;
}

ptrdiff_t reef_agent_neighbours(const reef_agent *a)
{
    return a->count;
}

const char *reef_agent_name(const reef_agent *a, ptrdiff_t neighbour)
{
    if (!a->core.node) { /* the next epoch could not be made */
        return "";
    }
    return a->core.file.participants[rfi_node_window(a->core.node)->peers[neighbour].who.agent].name;
}

double reef_agent_trust(const reef_agent *a, ptrdiff_t neighbour)
{
    return a->neighbours[neighbour].trust;
}

reef_presence reef_agent_presence(const reef_agent *a, ptrdiff_t neighbour)
{
    return a->neighbours[neighbour].presence;
}

const char *reef_agent_refused(const reef_agent *a, ptrdiff_t neighbour)
{
    return a->neighbours[neighbour].cause;
}

const char *reef_agent_explain(const reef_agent *a, ptrdiff_t neighbour)
{
    return a->neighbours[neighbour].why;
}
