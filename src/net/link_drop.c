/* A link for tests that loses a share of the messages that arrive. */
#include "net/agent.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

typedef struct drop_link {
    rfi_netlink base;
    const reef_context *context;
    rfi_netlink *from;
    double share;
    uint64_t state;
} drop_link;

static void drop_publish(rfi_netlink *base, const rfi_topic *topic, const void *bytes, size_t size)
{
    drop_link *link = (drop_link *)base;
    link->from->ops->publish(link->from, topic, bytes, size);
}

static void drop_get(rfi_netlink *base, const rfi_topic *topic)
{
    drop_link *link = (drop_link *)base;
    link->from->ops->get(link->from, topic);
}

static bool is_lost(drop_link *link)
{
    link->state = rfi_hash_number(link->state, 1);
    return (double)(link->state >> 11) * 0x1p-53 < link->share;
}

static bool drop_poll(rfi_netlink *base, rfi_message *message)
{
    drop_link *link = (drop_link *)base;
    bool there = link->from->ops->poll(link->from, message);
    while (there && message->kind == RFI_MESSAGE_DATA && is_lost(link)) {
        there = link->from->ops->poll(link->from, message);
    }
    return there;
}

static const rfi_netlink_ops operations = {drop_publish, drop_get, drop_poll};

reef_status rfi_drop_open(rfi_netlink **link, const reef_context *context, rfi_netlink *from, double share,
                          uint64_t seed, reef_error *error)
{
    drop_link *made = rfi_allocate(context, sizeof *made);
    if (!made) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a connection");
    }
    *made = (drop_link){.base = {&operations}, .context = context, .from = from, .share = share, .state = seed};
    *link = &made->base;
    return REEF_OK;
}

void rfi_drop_close(rfi_netlink **link)
{
    drop_link *made = (drop_link *)*link;
    if (made) {
        rfi_release(made->context, made);
    }
    *link = NULL;
}
