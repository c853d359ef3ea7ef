/* Several brokers as one link: what is published goes to all, and whatever any of them brings is taken; the first valid frame wins,
 * since the window counts the others as repeated. One broker that works is enough. */
#include "net/link_many.h"

#include "base/error.h"
#include "base/memory.h"

typedef struct many_link {
    rfi_netlink base;
    const reef_context *context;
    uint32_t agent;
    int count;
    int turn;        /* whose messages are looked at next */
    unsigned absent; /* bit per link: it holds no slot of this agent */
    rfi_netlink *links[RFI_MANY_MAX];
} many_link;

static void many_publish(rfi_netlink *base, const rfi_topic *topic, const void *bytes, size_t size)
{
    many_link *many = (many_link *)base;
    for (int i = 0; i < many->count; i++) {
        many->links[i]->ops->publish(many->links[i], topic, bytes, size);
    }
}

static void many_get(rfi_netlink *base, const rfi_topic *topic)
{
    many_link *many = (many_link *)base;
    for (int i = 0; i < many->count; i++) {
        many->links[i]->ops->get(many->links[i], topic);
    }
}

/* That nothing of this agent is stored counts only when all say so: otherwise a broker that was down, or lies, would make an agent
 * without its journal sign a round again. */
static bool is_news(many_link *many, int from, const rfi_message *message)
{
    bool own = message->topic.kind == RFI_TOPIC_SLOT && message->topic.agent == many->agent;
    if (message->kind != RFI_MESSAGE_ABSENT || !own) {
        return true;
    }
    many->absent |= 1U << from;
    return many->absent == (1U << many->count) - 1;
}

static bool many_poll(rfi_netlink *base, rfi_message *message)
{
    many_link *many = (many_link *)base;
    for (int i = 0; i < many->count; i++) {
        int at = (many->turn + i) % many->count;
        while (many->links[at]->ops->poll(many->links[at], message)) {
            if (is_news(many, at, message)) {
                many->turn = (at + 1) % many->count;
                return true;
            }
        }
    }
    return false;
}

static const rfi_netlink_ops operations = {many_publish, many_get, many_poll};

reef_status rfi_many_open(rfi_netlink **link, const reef_context *context, uint32_t agent, rfi_netlink *const *links,
                          int count, reef_error *error)
{
    many_link *made = rfi_allocate(context, sizeof *made);
    if (!made || count < 1 || count > RFI_MANY_MAX) {
        rfi_release(context, made);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %d connections", count);
    }
    *made = (many_link){.base = {&operations}, .context = context, .agent = agent, .count = count};
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
