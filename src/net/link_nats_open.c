/* Opening and closing a link through NATS: subscriptions, what libnats calls back, a connection that was given up begun anew. */
#include "base/error.h"
#include "base/memory.h"
#include "net/frame.h"
#include "net/link_nats_inner.h"
#include "net/runfile.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- what libnats calls, on its thread ---- */

/* Of a message that is too long for a frame nothing is kept but that it came: it waits for its refusal without taking the room of others, and
 * is counted as one of a wrong length. Takes over the message; NULL if there is no memory. */
static natsMsg *without_excess(natsMsg *message)
{
    natsMsg *empty = NULL;
    if ((size_t)natsMsg_GetDataLength(message) <= RFI_FRAME_MAX) {
        return message;
    }
    (void)natsMsg_Create(&empty, natsMsg_GetSubject(message), NULL, NULL, 0);
    natsMsg_Destroy(message);
    return empty;
}

static void from_sender(natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *closure)
{
    rfi_nats_source *from = closure;
    (void)connection;
    (void)subscription;
    message = without_excess(message);
    if (message) {
        rfi_nats_push(from->link, &from->waiting, message, from != &from->link->sources[from->link->count]);
    }
}

/* Nobody waits for an echo: one a round and witness, looked at together with the next model, or within a second. */
static bool is_echo(natsMsg *message)
{
    const char *bytes = natsMsg_GetData(message);
    return natsMsg_GetDataLength(message) > RFI_FRAME_AT_TYPE && bytes[RFI_FRAME_AT_TYPE] == RFI_FRAME_ECHO;
}

static void from_speaker(natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *closure)
{
    rfi_nats_source *from = closure;
    (void)connection;
    (void)subscription;
    message = without_excess(message);
    if (message) {
        rfi_nats_push(from->link, &from->said, message, !is_echo(message));
    }
}

static void from_inbox(natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *closure)
{
    rfi_nats_link *link = closure;
    (void)connection;
    (void)subscription;
    rfi_nats_push(link, &link->answers, message, true);
}

static void connected(natsConnection *connection, void *closure)
{
    rfi_nats_link *link = closure;
    (void)connection;
    (void)pthread_mutex_lock(&link->mutex);
    link->up = true;
    link->refusals = link->failures = 0;
    (void)pthread_cond_signal(&link->arrived);
    (void)pthread_mutex_unlock(&link->mutex);
    if (link->leader) {
        rfi_nats_wake(&link->leader->base);
    }
}

/* The last call of a subscription or of the connection. */
static void one_less(void *closure)
{
    rfi_nats_link *link = closure;
    (void)pthread_mutex_lock(&link->mutex);
    assert(link->open > 0);
    link->open--;
    (void)pthread_cond_signal(&link->arrived);
    (void)pthread_mutex_unlock(&link->mutex);
}

/* The connection is given up. */
static void closed(natsConnection *connection, void *closure)
{
    const rfi_nats_life *life = closure;
    rfi_nats_link *link = life->link;
    (void)connection;
    (void)pthread_mutex_lock(&link->mutex);
    link->closed = link->closed || life->number == link->life;
    (void)pthread_mutex_unlock(&link->mutex);
    one_less(link);
}

/* ---- opening ---- */

int64_t rfi_nats_delay(int attempt, uint32_t chance)
{
    enum { FIRST = 200, MOST = 5000, EXTRA = 2 }; /* milliseconds; up to a half more */
    int64_t wait = FIRST;
    for (int i = 1; i < attempt && wait < MOST; i++) {
        wait *= 2;
    }
    wait = wait < MOST - MOST / (EXTRA + 1) ? wait : MOST - MOST / (EXTRA + 1);
    return wait + (int64_t)((uint64_t)chance * (uint64_t)(wait / EXTRA) >> 32);
}

/* What libnats asks before it tries again; `attempt` counts from 1 since the connection was lost. */
static int64_t wait_before(natsConnection *connection, int attempt, void *closure)
{
    uint32_t chance = 0;
    (void)connection;
    (void)closure;
    rfi_random(&chance, sizeof chance);
    return rfi_nats_delay(attempt, chance);
}

natsStatus rfi_nats_try_again(natsOptions *o)
{
    enum { FOR_EVER = -1 };
    natsStatus s = natsOptions_SetMaxReconnect(o, FOR_EVER);
    s = s == NATS_OK ? natsOptions_SetIgnoreDiscoveredServers(o, true)
                     : s; /* the run file says where to, nobody else */
    return s == NATS_OK ? natsOptions_SetCustomReconnectDelay(o, wait_before, NULL) : s;
}

static natsStatus set_options(rfi_nats_link *link, const rfi_nats_setup *setup)
{
    enum { BUFFER = 64 * 1024, PING = 10000 };
    natsOptions *o = NULL;
    natsStatus s = natsOptions_Create(&link->options);
    o = link->options;
    s = s == NATS_OK ? natsOptions_SetURL(o, setup->url) : s;
    s = s == NATS_OK ? rfi_nats_try_again(o) : s;
    s = s == NATS_OK ? natsOptions_SetReconnectBufSize(o, BUFFER) : s;
    s = s == NATS_OK ? natsOptions_SetPingInterval(o, PING) : s;
    s = s == NATS_OK ? natsOptions_SetMaxPingsOut(o, 2) : s;
    s = s == NATS_OK ? natsOptions_SetReconnectedCB(o, connected, link) : s;
    s = s == NATS_OK ? natsOptions_SetRetryOnFailedConnect(o, true, connected, link) : s;
    s = s == NATS_OK ? natsOptions_UseGlobalMessageDelivery(o, true) : s;
    s = s == NATS_OK ? natsOptions_SetSendAsap(o, true) : s; /* without a thread in between that waits for more */
    s = s == NATS_OK ? natsOptions_SetWriteDeadline(o, (int64_t)(1000 * RFI_LINK_PATIENCE)) : s;
    return s == NATS_OK ? rfi_nats_set_trust(o, setup->url, setup->authority, setup->login ? &link->login : NULL) : s;
}

static natsStatus subscribe(rfi_nats_link *link, natsSubscription **made, const char *subject, natsMsgHandler handler,
                            void *closure, int limit)
{
    /* Also of what libnats has not yet handed over. */
    int most = limit == RFI_NATS_ANSWERS ? (int)RFI_NATS_ANSWER_BYTES : (int)(2 * RFI_NATS_MESSAGE_BYTES);
    natsStatus s = natsConnection_Subscribe(made, link->connection, subject, handler, closure);
    s = s == NATS_OK ? natsSubscription_SetPendingLimits(*made, limit, most) : s;
    if (s == NATS_OK) {
        (void)pthread_mutex_lock(&link->mutex);
        link->open++;
        (void)pthread_mutex_unlock(&link->mutex);
        s = natsSubscription_SetOnCompleteCB(*made, one_less, link);
        if (s != NATS_OK) { /* it will not call: nobody is to wait for it when the link is closed */
            one_less(link);
        }
    }
    return s;
}

static natsStatus listen_to(rfi_nats_link *link, ptrdiff_t i)
{
    char subject[RFI_SUBJECT_TEXT];
    rfi_nats_source *from = &link->sources[i];
    unsigned long agent = from->agent;
    natsStatus s = NATS_OK;
    assert(!from->slots && !from->events && !from->proofs);
    if (i < link->neighbours || i == link->count) {
        (void)snprintf(subject, sizeof subject, "reef.%s.s.%lu.*", link->names.run, agent);
        s = subscribe(link, &from->slots, subject, from_sender, from, RFI_NATS_QUEUE);
    }
    if (s == NATS_OK && i < link->count) {
        (void)snprintf(subject, sizeof subject, "reef.%s.e.%lu", link->names.run, agent);
        s = subscribe(link, &from->events, subject, from_speaker, from, RFI_NATS_QUEUE);
    }
    if (s == NATS_OK && i < link->count) {
        (void)snprintf(subject, sizeof subject, "reef.%s.x.%lu", link->names.run, agent);
        s = subscribe(link, &from->proofs, subject, from_speaker, from, RFI_NATS_QUEUE);
    }
    return s;
}

static rfi_nats_life *begin_life(rfi_nats_link *link)
{
    (void)pthread_mutex_lock(&link->mutex);
    rfi_nats_life *life = &link->lives[++link->life % RFI_NATS_LIVES];
    *life = (rfi_nats_life){link, link->life};
    (void)pthread_mutex_unlock(&link->mutex);
    return life;
}

/* Connects now and says why not, which libnats keeps to itself once it tries by itself; where nobody listens it does so. */
static natsStatus connect_now(rfi_nats_link *link)
{
    natsStatus s = natsOptions_SetRetryOnFailedConnect(link->options, false, NULL, NULL);
    s = s == NATS_OK ? natsConnection_Connect(&link->connection, link->options) : s;
    if (s == NATS_NO_SERVER) {
        s = natsOptions_SetRetryOnFailedConnect(link->options, true, connected, link);
        s = s == NATS_OK ? natsConnection_Connect(&link->connection, link->options) : s;
    }
    return s;
}

static natsStatus connect_and_listen(rfi_nats_link *link, bool again)
{
    char subject[RFI_SUBJECT_TEXT + 2];
    rfi_nats_life *life = begin_life(link);
    natsStatus s = natsOptions_SetClosedCB(link->options, closed, life);
    s = s == NATS_OK ? (again ? connect_now(link) : natsConnection_Connect(&link->connection, link->options)) : s;
    s = s == NATS_NOT_YET_CONNECTED ? NATS_OK : s;
    (void)snprintf(subject, sizeof subject, "%s.>", link->names.inbox);
    if (s == NATS_OK) {
        (void)pthread_mutex_lock(&link->mutex);
        link->open++;
        (void)pthread_mutex_unlock(&link->mutex);
        s = subscribe(link, &link->answers_from, subject, from_inbox, link, RFI_NATS_ANSWERS);
    }
    for (ptrdiff_t i = 0; s == NATS_OK && i <= link->count; i++) {
        s = listen_to(link, i);
    }
    return s;
}

static natsStatus prepare(rfi_nats_link *link, const rfi_nats_setup *setup)
{
    link->answers.room = RFI_NATS_ANSWERS;
    link->answers.most = RFI_NATS_ANSWER_BYTES;
    for (ptrdiff_t i = 0; i <= link->count; i++) {
        rfi_nats_source *from = &link->sources[i];
        from->link = link;
        from->waiting.room = from->said.room = RFI_NATS_QUEUE;
        from->waiting.most = from->said.most = RFI_NATS_SAID_BYTES;
        from->agent = i < link->neighbours ? setup->agents[i]
                                           : (i < link->count ? setup->others[i - link->neighbours] : link->agent);
    }
    natsStatus s = nats_SetMessageDeliveryPoolSize(1);
    return s == NATS_OK ? set_options(link, setup) : s;
}

static void disconnect(rfi_nats_link *link)
{
    natsSubscription_Destroy(link->answers_from);
    link->answers_from = NULL;
    for (ptrdiff_t i = 0; i <= link->count; i++) {
        natsSubscription_Destroy(link->sources[i].slots);
        natsSubscription_Destroy(link->sources[i].events);
        natsSubscription_Destroy(link->sources[i].proofs);
        link->sources[i].slots = link->sources[i].events = link->sources[i].proofs = NULL;
    }
    rfi_nats_add_counts(link->connection, &link->past);
    link->past.reconnects++;
    natsConnection_Destroy(link->connection);
    link->connection = NULL;
}

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether somebody has set the time of this machine. libnats waits by the wall clock: where that is set back while there is no connection, it
 * would be made again as much later. */
static bool clock_was_set(rfi_nats_link *link, double now)
{
    static const double step = 1;
    double ahead = seconds_of(CLOCK_REALTIME) - now;
    bool set = link->wall_ahead != 0 && fabs(ahead - link->wall_ahead) > step;
    link->wall_ahead = ahead;
    return set;
}

bool rfi_nats_refuses(natsStatus s)
{
    return s == NATS_CONNECTION_AUTH_FAILED || s == NATS_SSL_ERROR || s == NATS_SECURE_CONNECTION_REQUIRED ||
           s == NATS_SECURE_CONNECTION_WANTED;
}

double rfi_nats_now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

/* A login that the broker refuses is counted; anything else that may stand in the way of one, such as a broker that is too busy to answer in
 * time, passes some day, however often it happens. A broker that says nothing holds the caller up for 2 s and is asked more rarely. */
static void note_revival(rfi_nats_link *link, natsStatus s)
{
    static const double most = 5;
    static const double most_mute = 20;
    bool refused = rfi_nats_refuses(s);
    bool there = s == NATS_OK && natsConnection_Status(link->connection) == NATS_CONN_STATUS_CONNECTED;
    if (there) {
        connected(link->connection, link);
    }
    (void)pthread_mutex_lock(&link->mutex);
    link->closed = link->closed || s != NATS_OK;
    link->refusals += refused;
    link->failures = s == NATS_OK || refused ? 0 : link->failures + 1;
    double wait =
        link->failures < 2 ? 1 : ldexp(1, link->failures < RFI_NATS_REVIVALS ? link->failures - 1 : RFI_NATS_REVIVALS);
    link->revive_at = seconds_of(CLOCK_MONOTONIC) + fmin(wait, s == NATS_TIMEOUT ? most_mute : most);
    (void)pthread_mutex_unlock(&link->mutex);
}

void rfi_nats_revive(rfi_nats_link *link)
{
    double now = seconds_of(CLOCK_MONOTONIC);
    link->stalled = link->stalled || clock_was_set(link, now);
    (void)pthread_mutex_lock(&link->mutex);
    bool lost = (link->closed && link->refusals < RFI_NATS_REVIVALS) || link->stalled;
    bool due = lost && now >= link->revive_at;
    link->closed = link->closed && !due;
    (void)pthread_mutex_unlock(&link->mutex);
    if (due) {
        disconnect(link);
        link->stalled = false;
        note_revival(link, connect_and_listen(link, true));
    }
}

static reef_status check(const rfi_nats_setup *setup, reef_error *error)
{
    size_t length = strlen(setup->run);
    if (length < 1 || length > RFI_RUN_TOKEN || strspn(setup->run, "abcdefghijklmnopqrstuvwxyz0123456789-") != length) {
        return rfi_fail(error, REEF_E_ARG, "the token of a run has 1 to %d letters a-z, digits and dashes",
                        RFI_RUN_TOKEN);
    }
    if (strncmp(setup->url, "tls://", 6) != 0 && !rfi_is_loopback(setup->url)) {
        return rfi_fail(error, REEF_E_ARG, "a broker on another machine is reached by tls://host:port only");
    }
    return REEF_OK;
}

reef_status rfi_nats_open(rfi_netlink **link, const reef_context *context, const rfi_nats_setup *setup,
                          reef_error *error)
{
    *link = NULL;
    reef_status status = check(setup, error);
    if (status != REEF_OK) {
        return status;
    }
    size_t bytes = sizeof(rfi_nats_link) + ((size_t)(setup->count + setup->other_count) + 1) * sizeof(rfi_nats_source);
    rfi_nats_link *made = rfi_allocate(context, bytes);
    if (!made) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a connection");
    }
    memset(made, 0, bytes);
    made->base.ops = &rfi_nats_operations;
    made->context = context;
    made->agent = setup->agent;
    made->leader = (rfi_nats_link *)setup->leader;
    made->neighbours = setup->count;
    made->count = setup->count + setup->other_count;
    (void)snprintf(made->names.run, sizeof made->names.run, "%s", setup->run);
    if (setup->login) {
        made->login = *setup->login;
    }
    rfi_draw_inbox(&made->names, made->agent);
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&made->mutex, NULL);
    (void)pthread_cond_init(&made->arrived, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    natsStatus s = prepare(made, setup);
    s = s == NATS_OK ? connect_and_listen(made, false) : s;
    if (s == NATS_CONNECTION_CLOSED ||
        s == NATS_INVALID_SUBSCRIPTION) { /* given up while this was under way: poll begins anew */
        (void)pthread_mutex_lock(&made->mutex);
        made->closed = true;
        (void)pthread_mutex_unlock(&made->mutex);
        s = NATS_OK;
    }
    *link = &made->base;
    if (s != NATS_OK) {
        rfi_nats_close(link);
        return rfi_fail(error, REEF_E_ENGINE, "no connection to %.100s: %s", setup->url, natsStatus_GetText(s));
    }
    connected(made->connection, made);
    return REEF_OK;
}

/* ---- closing ---- */

/* Whether nothing of libnats will touch the link any more; waits for it, but not for ever. */
static bool is_quiet(rfi_nats_link *link)
{
    enum { SECONDS = 5 };
    struct timespec until;
    int status = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += SECONDS;
    (void)pthread_mutex_lock(&link->mutex);
    while (link->open > 0 && status == 0) {
        status = pthread_cond_timedwait(&link->arrived, &link->mutex, &until);
    }
    bool quiet = link->open == 0;
    (void)pthread_mutex_unlock(&link->mutex);
    return quiet;
}

static void drop_all(rfi_nats_queue *waiting)
{
    for (natsMsg *message = rfi_nats_pop(waiting); message; message = rfi_nats_pop(waiting)) {
        natsMsg_Destroy(message);
    }
}

void rfi_nats_close(rfi_netlink **base)
{
    rfi_nats_link *link = (rfi_nats_link *)*base;
    if (!link) {
        return;
    }
    *base = NULL;
    if (link->connection) {
        if (natsConnection_Status(link->connection) == NATS_CONN_STATUS_CONNECTED) {
            (void)natsConnection_FlushTimeout(link->connection, 1000); /* what was published last should go out */
        }
        natsConnection_Close(link->connection);
    }
    disconnect(link);
    natsOptions_Destroy(link->options);
    rfi_wipe(&link->login, sizeof link->login);
    if (!is_quiet(link)) {
        if (link->leader) {
            (void)pthread_mutex_lock(&link->leader->mutex);
            link->leader->open++; /* it may still be woken */
            (void)pthread_mutex_unlock(&link->leader->mutex);
        }
        return; /* better some memory lost than a thread writing to what is no longer there */
    }
    natsMsg_Destroy(link->polled);
    drop_all(&link->answers);
    for (ptrdiff_t i = 0; i <= link->count; i++) {
        drop_all(&link->sources[i].waiting);
        drop_all(&link->sources[i].said);
    }
    (void)pthread_cond_destroy(&link->arrived);
    (void)pthread_mutex_destroy(&link->mutex);
    rfi_release(link->context, link);
}
