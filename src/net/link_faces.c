/* A link for tests of two-faced senders: models that go through it differ from those that the agent has signed, and are signed by it all
 * the same. An agent with such a link to one broker and a plain one to another signs two models for every round. Sealed ones are sealed
 * anew. Large models, of which only the manifest is here, pass unchanged. */
#include "net/agent.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>

typedef struct faces_link {
    rfi_netlink base;
    const rfi_agent *agent;
    rfi_netlink *to;
    double delta;
    unsigned char *model; /* RFI_INLINE_MAX */
    unsigned char *frame; /* RFI_FRAME_MAX */
} faces_link;

/* Adds delta to every number. */
static void change(const faces_link *link, const rfi_head *head)
{
    unsigned char *model = link->model;
    for (uint64_t i = 0; i < head->count; i++) {
        if (head->numbers == RFI_NUMBERS_F32) {
            float value;
            memcpy(&value, model + i * sizeof value, sizeof value);
            value += (float)link->delta;
            memcpy(model + i * sizeof value, &value, sizeof value);
        } else {
            double value;
            memcpy(&value, model + i * sizeof value, sizeof value);
            value += link->delta;
            memcpy(model + i * sizeof value, &value, sizeof value);
        }
    }
}

/* The frame of the changed model; returns its size. */
static size_t make_frame(const faces_link *link, rfi_head *head)
{
    const rfi_agent *a = link->agent;
    const rfi_shape *shape = &a->roster.shape;
    unsigned char *payload = link->frame + RFI_MANIFEST_BYTES;
    size_t bytes = rfi_shape_bytes(shape);
    memcpy(link->model, rfi_node_own(a->node), bytes);
    change(link, head);
    if (shape->sealed) {
        rfi_hearer hearers[RFI_HEARERS_MAX];
        ptrdiff_t count = rfi_roster_hearers(&a->roster, a->place, hearers);
        size_t parts = rfi_shape_payload(shape);
        head->payload = parts + rfi_seal_model(head, shape, &a->secret.identity, link->model, hearers, count, payload,
                                               payload + parts);
    } else {
        memcpy(payload, link->model, bytes);
    }
    rfi_hash(head->root, payload, (size_t)head->payload);
    rfi_head_write(link->frame, head);
    rfi_frame_sign(link->frame, &a->secret.identity, &rfi_ed25519);
    return RFI_MANIFEST_BYTES + (size_t)head->payload;
}

static void faces_publish(rfi_netlink *base, const rfi_topic *topic, const void *bytes, size_t size)
{
    faces_link *link = (faces_link *)base;
    rfi_head head;
    if (topic->kind == RFI_TOPIC_SLOT && rfi_frame_read(bytes, size, &head) == RFI_GOOD &&
        head.flags & RFI_FLAG_INLINE) {
        size = make_frame(link, &head);
        bytes = link->frame;
    }
    link->to->ops->publish(link->to, topic, bytes, size);
}

static void faces_get(rfi_netlink *base, const rfi_topic *topic)
{
    faces_link *link = (faces_link *)base;
    link->to->ops->get(link->to, topic);
}

static bool faces_poll(rfi_netlink *base, rfi_message *message)
{
    faces_link *link = (faces_link *)base;
    return link->to->ops->poll(link->to, message);
}

static const rfi_netlink_ops operations = {faces_publish, faces_get, faces_poll};

reef_status rfi_faces_open(rfi_netlink **link, const rfi_agent *agent, rfi_netlink *to, double delta, reef_error *error)
{
    faces_link *made = rfi_allocate(NULL, sizeof *made);
    unsigned char *model = rfi_allocate(NULL, RFI_INLINE_MAX);
    unsigned char *frame = rfi_allocate(NULL, RFI_FRAME_MAX);
    if (!made || !model || !frame) {
        rfi_release(NULL, made);
        rfi_release(NULL, model);
        rfi_release(NULL, frame);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a connection");
    }
    *made =
        (faces_link){.base = {&operations}, .agent = agent, .to = to, .delta = delta, .model = model, .frame = frame};
    *link = &made->base;
    return REEF_OK;
}

void rfi_faces_close(rfi_netlink **link)
{
    faces_link *made = (faces_link *)*link;
    if (made) {
        rfi_release(NULL, made->model);
        rfi_release(NULL, made->frame);
        rfi_release(NULL, made);
    }
    *link = NULL;
}
