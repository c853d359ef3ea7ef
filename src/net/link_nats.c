/* NATS behind the operations of a link: the queues, what is sent and asked for, what is polled. */
#include "net/link_nats.h"

#include "net/link_nats_inner.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- queues ---- */

static bool has_room(const rfi_nats_queue *to, size_t size)
{
    bool fits = to->count == 0 || to->bytes + size <= to->most;
    return to->count < to->room && size <= RFI_NATS_MESSAGE_BYTES && fits;
}

void rfi_nats_push(rfi_nats_link *link, rfi_nats_queue *to, natsMsg *message, bool urgent)
{
    (void)pthread_mutex_lock(&link->mutex);
    assert(to->room > 0 && to->count >= 0 && to->count <= to->room);
    if (has_room(to, (size_t)natsMsg_GetDataLength(message))) {
        to->bytes += (size_t)natsMsg_GetDataLength(message);
        to->messages[(to->first + to->count++) % to->room] = message;
        message = NULL;
        urgent = urgent || 2 * to->count >= to->room;
    }
    (void)pthread_mutex_unlock(&link->mutex);
    if (!message && urgent) { /* without the mutex, which whoever waits would have to wait for again */
        (void)pthread_cond_signal(&link->arrived);
        if (link->leader) {
            rfi_nats_wake(&link->leader->base);
        }
    }
    natsMsg_Destroy(message);
}

natsMsg *rfi_nats_pop(rfi_nats_queue *from)
{
    assert(from->first >= 0 && from->first < from->room);
    if (from->count == 0) {
        return NULL;
    }
    natsMsg *message = from->messages[from->first];
    from->first = (from->first + 1) % from->room;
    from->count--;
    from->bytes -= (size_t)natsMsg_GetDataLength(message);
    return message;
}

/* ---- operations ---- */

/* A broker that stops reading, as a malicious one may, must not hold the agent up: the connection is given up, and until it has been made
 * anew nothing is sent. */
static void note_sent(rfi_nats_link *link, natsStatus s)
{
    link->stalled = link->stalled || s == NATS_TIMEOUT;
}

static void nats_publish(rfi_netlink *base, const rfi_topic *topic, const void *bytes, size_t size)
{
    rfi_nats_link *link = (rfi_nats_link *)base;
    char subject[RFI_SUBJECT_TEXT];
    if (link->stalled) {
        return;
    }
    rfi_subject_print(&link->names, topic, subject);
    note_sent(link, natsConnection_Publish(link->connection, subject, bytes, (int)size));
}

/* The stream that a topic is stored in. */
static void print_request(const rfi_nats_link *link, const rfi_topic *topic, char request[RFI_SUBJECT_TEXT])
{
    static const char head[] = "$JS.reef.API.DIRECT.GET.reef-";
    if (topic->kind == RFI_TOPIC_FILE) {
        (void)snprintf(request, RFI_SUBJECT_TEXT, "%s%s-c", head, link->names.run);
    } else {
        (void)snprintf(request, RFI_SUBJECT_TEXT, "%s%s-%c-%lu", head, link->names.run,
                       topic->kind == RFI_TOPIC_SLOT ? 's' : 'p', (unsigned long)topic->agent);
    }
}

static void nats_get(rfi_netlink *base, const rfi_topic *topic)
{
    rfi_nats_link *link = (rfi_nats_link *)base;
    bool slot = topic->kind == RFI_TOPIC_SLOT;
    char subject[RFI_SUBJECT_TEXT];
    char request[RFI_SUBJECT_TEXT];
    char reply[2 * RFI_SUBJECT_TEXT];
    char body[2 * RFI_SUBJECT_TEXT];
    unsigned long agent = topic->agent;
    if (link->stalled) {
        return;
    }
    print_request(link, topic, request);
    rfi_subject_print(&link->names, topic, subject);
    if (slot && !topic->exact) {
        (void)snprintf(subject, sizeof subject, "reef.%s.s.%lu.*", link->names.run, agent);
    }
    if (topic->kind == RFI_TOPIC_FILE) {
        bool broker = topic->agent == RFI_TOPIC_BROKER;
        (void)snprintf(reply, sizeof reply, "%s.%c.%llu", link->names.inbox, broker ? 'b' : 'f',
                       broker ? (unsigned long long)topic->round : (unsigned long long)agent);
    } else if (slot) {
        (void)snprintf(reply, sizeof reply, "%s.s.%lu", link->names.inbox, agent);
    } else {
        (void)snprintf(reply, sizeof reply, "%s.c.%lu.%llu.%lu", link->names.inbox, agent,
                       (unsigned long long)topic->round, (unsigned long)topic->number);
    }
    int size = snprintf(body, sizeof body, "{\"last_by_subj\":\"%s\"}", subject);
    note_sent(link, natsConnection_PublishRequest(link->connection, request, reply, body, size));
}

/* An answer of the store: found, or a status in the header. */
static bool read_answer(const rfi_nats_link *link, natsMsg *from, rfi_message *message)
{
    const char *status = NULL;
    const char *subject = NULL;
    rfi_topic stored;
    if (!rfi_inbox_read(&link->names, natsMsg_GetSubject(from), &message->topic)) {
        return false;
    }
    if (natsMsgHeader_Get(from, "Status", &status) == NATS_OK) {
        message->kind = RFI_MESSAGE_ABSENT;
        return strcmp(status, "404") == 0; /* nobody there to answer is no answer */
    }
    if (message->topic.kind == RFI_TOPIC_SLOT) { /* which round it is stands in the subject it was stored under */
        if (natsMsgHeader_Get(from, "Nats-Subject", &subject) != NATS_OK ||
            !rfi_subject_read(&link->names, subject, &stored) || stored.kind != RFI_TOPIC_SLOT ||
            stored.agent != message->topic.agent) {
            return false;
        }
        message->topic.round = stored.round;
    }
    return true;
}

static bool read_message(const rfi_nats_link *link, natsMsg *from, bool answer, rfi_message *message)
{
    *message = (rfi_message){.kind = RFI_MESSAGE_DATA,
                             .bytes = (const unsigned char *)natsMsg_GetData(from),
                             .size = (size_t)natsMsg_GetDataLength(from)};
    return answer ? read_answer(link, from, message)
                  : rfi_subject_read(&link->names, natsMsg_GetSubject(from), &message->topic);
}

/* The next message: senders and answers take turns. */
static natsMsg *next(rfi_nats_link *link, bool *answer, bool *up)
{
    natsMsg *message = NULL;
    int queues = 2 * ((int)link->count + 1) + 1;
    (void)pthread_mutex_lock(&link->mutex);
    *up = link->up;
    link->up = false;
    for (int i = 0; !*up && !message && i < queues; i++) {
        int at = (link->turn + i) % queues;
        *answer = at == queues - 1;
        rfi_nats_source *from = &link->sources[at / 2];
        message = rfi_nats_pop(*answer ? &link->answers : (at % 2 ? &from->said : &from->waiting));
        link->turn = message ? (at + 1) % queues : link->turn;
    }
    (void)pthread_mutex_unlock(&link->mutex);
    return message;
}

static bool nats_poll(rfi_netlink *base, rfi_message *message)
{
    rfi_nats_link *link = (rfi_nats_link *)base;
    rfi_nats_revive(link);
    bool answer = false;
    bool up = false;
    do {
        natsMsg_Destroy(link->polled);
        link->polled = next(link, &answer, &up);
        if (up) {
            *message = (rfi_message){.kind = RFI_MESSAGE_UP};
            return true;
        }
    } while (link->polled && !read_message(link, link->polled, answer, message));
    return link->polled != NULL;
}

const rfi_netlink_ops rfi_nats_operations = {nats_publish, nats_get, nats_poll};

void rfi_nats_wait(rfi_netlink *base, double seconds)
{
    rfi_nats_link *link = (rfi_nats_link *)base;
    struct timespec until;
    if (!(seconds > 0)) {
        return;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    double whole = floor(fmin(seconds, 3600));
    until.tv_sec += (time_t)whole;
    until.tv_nsec += (long)((fmin(seconds, 3600) - whole) * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_mutex_lock(&link->mutex);
    bool any = false;
    int status = 0;
    while (status == 0) {
        any = link->up || link->woken || link->answers.count > 0;
        for (ptrdiff_t i = 0; i <= link->count && !any; i++) {
            any = link->sources[i].waiting.count > 0 || link->sources[i].said.count > 0;
        }
        status = any ? 1 : pthread_cond_timedwait(&link->arrived, &link->mutex, &until);
    }
    link->woken = false;
    (void)pthread_mutex_unlock(&link->mutex);
}

void rfi_nats_wake(rfi_netlink *base)
{
    rfi_nats_link *link = (rfi_nats_link *)base;
    (void)pthread_mutex_lock(&link->mutex);
    link->woken = true;
    (void)pthread_cond_signal(&link->arrived);
    (void)pthread_mutex_unlock(&link->mutex);
}

bool rfi_nats_refused(rfi_netlink *base)
{
    rfi_nats_link *link = (rfi_nats_link *)base;
    (void)pthread_mutex_lock(&link->mutex);
    bool refused = link->closed && link->refusals >= RFI_NATS_REVIVALS;
    (void)pthread_mutex_unlock(&link->mutex);
    return refused;
}

void rfi_nats_add_counts(natsConnection *connection, rfi_nats_counts *counts)
{
    natsStatistics *statistics = NULL;
    uint64_t in = 0;
    uint64_t out = 0;
    uint64_t again = 0;
    if (connection && natsStatistics_Create(&statistics) == NATS_OK &&
        natsConnection_GetStats(connection, statistics) == NATS_OK &&
        natsStatistics_GetCounts(statistics, NULL, &in, NULL, &out, &again) == NATS_OK) {
        counts->in += in;
        counts->out += out;
        counts->reconnects += again;
    }
    natsStatistics_Destroy(statistics);
}

void rfi_nats_count(rfi_netlink *base, rfi_nats_counts *counts)
{
    rfi_nats_link *link = (rfi_nats_link *)base;
    *counts = link->past;
    counts->up = link->connection && natsConnection_Status(link->connection) == NATS_CONN_STATUS_CONNECTED;
    rfi_nats_add_counts(link->connection, counts);
}

const char *rfi_nats_version(void)
{
    return nats_GetVersion();
}
