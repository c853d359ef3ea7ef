/* A link for tests of two-faced senders: models that go through it differ from those that the agent has signed, and are signed by it all
 * the same. An agent with such a link to one broker and a plain one to another signs two models for every round. Large models, of which
 * only the manifest is here, pass unchanged. */
#include "net/agent.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>

typedef struct faces_link {
    rfi_netlink base;
    const reef_context *context;
    rfi_netlink *to;
    const rfi_keys *keys;
    double delta;
    unsigned char *frame; /* RFI_MANIFEST_BYTES + RFI_INLINE_MAX */
} faces_link;

/* Adds delta to every number and signs again. */
static void change(faces_link *link, rfi_head *head)
{
    unsigned char *model = link->frame + RFI_MANIFEST_BYTES;
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
    rfi_hash(head->root, model, (size_t)head->payload);
    rfi_head_write(link->frame, head);
    rfi_frame_sign(link->frame, link->keys, &rfi_ed25519);
}

static void faces_publish(rfi_netlink *base, const rfi_topic *topic, const void *bytes, size_t size)
{
    faces_link *link = (faces_link *)base;
    rfi_head head;
    if (topic->kind == RFI_TOPIC_SLOT && rfi_frame_read(bytes, size, &head) == RFI_GOOD &&
        head.flags & RFI_FLAG_INLINE) {
        memcpy(link->frame, bytes, size);
        change(link, &head);
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

reef_status rfi_faces_open(rfi_netlink **link, const reef_context *context, rfi_netlink *to, const rfi_keys *keys,
                           double delta, reef_error *error)
{
    faces_link *made = rfi_allocate(context, sizeof *made);
    unsigned char *frame = rfi_allocate(context, RFI_MANIFEST_BYTES + RFI_INLINE_MAX);
    if (!made || !frame) {
        rfi_release(context, made);
        rfi_release(context, frame);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a connection");
    }
    *made =
        (faces_link){.base = {&operations}, .context = context, .to = to, .keys = keys, .delta = delta, .frame = frame};
    *link = &made->base;
    return REEF_OK;
}

void rfi_faces_close(rfi_netlink **link)
{
    faces_link *made = (faces_link *)*link;
    if (made) {
        rfi_release(made->context, made->frame);
        rfi_release(made->context, made);
    }
    *link = NULL;
}
