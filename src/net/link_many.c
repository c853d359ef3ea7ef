/* Several brokers as one link: what is published goes to all, and whatever any of them brings is taken; the first valid frame wins,
 * since the window counts the others as repeated. One broker that works is enough: one that holds the agent up while it sends is left alone for
 * a while, so that it costs a tenth of the time at most. */
#include "net/link_many.h"

#include "base/error.h"
#include "base/memory.h"

/* How long a call may take; and how long nothing is sent behind one that took longer, as a multiple. */
static const double tolerable = RFI_LINK_PATIENCE / 2;
static const double rest = 10;

typedef struct many_link {
    rfi_netlink base;
    const reef_context *context;
    uint32_t agent;
    int count;
    int turn;      /* whose messages are looked at next */
    unsigned told; /* bit per link: it has said which slot of this agent it holds, or that it holds none */
    rfi_netlink *links[RFI_MANY_MAX];
    double rests_until[RFI_MANY_MAX];
    rfi_many_clock *clock;
} many_link;

/* Whether something is sent by a link: not while it rests, unless all do, or it is the only one that is meant. */
static bool is_used(const many_link *many, int i, const rfi_topic *topic, double now)
{
    bool all_rest = true;
    for (int k = 0; k < many->count; k++) {
        all_rest = all_rest && now < many->rests_until[k];
    }
    bool meant = topic->way == 0 || topic->way == (unsigned)i + 1;
    return meant && (all_rest || now >= many->rests_until[i]);
}

/* Has sent something by link i since `began`. */
static double note_time(many_link *many, int i, double began)
{
    double now = many->clock();
    if (now - began > tolerable) {
        many->rests_until[i] = now + rest * (now - began);
    }
    return now;
}

static void many_publish(rfi_netlink *base, const rfi_topic *topic, const void *bytes, size_t size)
{
    many_link *many = (many_link *)base;
    double now = many->clock();
    for (int i = 0; i < many->count; i++) {
        if (is_used(many, i, topic, now)) {
            many->links[i]->ops->publish(many->links[i], topic, bytes, size);
            now = note_time(many, i, now);
        }
    }
}

static void many_get(rfi_netlink *base, const rfi_topic *topic)
{
    many_link *many = (many_link *)base;
    double now = many->clock();
    for (int i = 0; i < many->count; i++) {
        if (is_used(many, i, topic, now)) {
            many->links[i]->ops->get(many->links[i], topic);
            now = note_time(many, i, now);
        }
    }
}

/* What is stored of this agent is known only when all have said it: otherwise a broker that was down, or that plays back an old model, would
 * make an agent without its journal sign a round again. */
static bool is_news(many_link *many, int from, rfi_message *message)
{
    bool own = message->topic.kind == RFI_TOPIC_SLOT && message->topic.agent == many->agent;
    if (message->kind == RFI_MESSAGE_UP || !own) {
        return true;
    }
    many->told |= 1U << from;
    message->partial = many->told != (1U << many->count) - 1;
    return message->kind == RFI_MESSAGE_DATA || !message->partial;
}

static bool many_poll(rfi_netlink *base, rfi_message *message)
{
    many_link *many = (many_link *)base;
    for (int i = 0; i < many->count; i++) {
        int at = (many->turn + i) % many->count;
        while (many->links[at]->ops->poll(many->links[at], message)) {
            if (is_news(many, at, message)) {
                many->turn = (at + 1) % many->count;
                message->topic.way = (unsigned)at + 1;
                return true;
            }
        }
    }
    return false;
}

static const rfi_netlink_ops operations = {many_publish, many_get, many_poll};

reef_status rfi_many_open(rfi_netlink **link, const reef_context *context, uint32_t agent, rfi_netlink *const *links,
                          int count, rfi_many_clock *clock, reef_error *error)
{
    many_link *made = rfi_allocate(context, sizeof *made);
    if (!made || count < 1 || count > RFI_MANY_MAX) {
        rfi_release(context, made);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %d connections", count);
    }
    *made = (many_link){.base = {&operations}, .context = context, .agent = agent, .count = count, .clock = clock};
    for (int i = 0; i < count; i++) {
        made->links[i] = links[i];
    }
    *link = &made->base;
    return REEF_OK;
}

void rfi_many_close(rfi_netlink **link)
{
    many_link *made = (many_link *)*link;
    if (made) {
        rfi_release(made->context, made);
    }
    *link = NULL;
}
