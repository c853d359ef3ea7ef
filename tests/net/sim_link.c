/* The network of the simulation: links, brokers honest and hostile, and what malicious agents send. */
#include "net/frames.h"
#include "net/sim_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const rfi_signatures *signatures(const sim_world *world)
{
    return world->options.real ? &rfi_ed25519 : &frames_cheap;
}

static bool cut_off(const sim_world *world, int one, int other)
{
    return world->cut && world->now >= world->cut_from && world->now < world->cut_until &&
           (world->side >> one & 1U) != (world->side >> other & 1U);
}

static double travel(sim_world *world)
{
    return world->delay * (0.2 + sim_uniform(world)) * (world->healed || !sim_chance(world, 0.02) ? 1 : 50);
}

/* One way through the network, with what can happen to a message there. Takes over the bytes. */
static void carry(sim_world *world, sim_event event)
{
    if (!world->healed && sim_chance(world, world->loss)) {
        free(event.bytes);
        return;
    }
    if (!world->healed && sim_chance(world, world->repeat)) {
        sim_event again = event;
        again.bytes = sim_copy(event.bytes, event.size);
        sim_later(world, travel(world), again);
    }
    if (!world->healed && event.size > 0 && sim_chance(world, world->damage)) {
        event.bytes[sim_below(world, (int)event.size)] ^= (unsigned char)(1U << sim_below(world, 8));
    }
    sim_later(world, travel(world), event);
}

/* --- Links --- */

static void send_one(sim_world *world, int agent, int broker, rfi_topic topic, const void *bytes, size_t size)
{
    unsigned char *copy = sim_copy(bytes, size);
    if (world->agent[agent].character != SIM_HONEST && !sim_malicious(world, agent, broker, &topic, &copy, &size)) {
        free(copy);
        return;
    }
    carry(
        world,
        (sim_event){
            .kind = SIM_ARRIVE_BROKER, .agent = agent, .broker = broker, .topic = topic, .bytes = copy, .size = size});
}

static void link_publish(rfi_netlink *link, const rfi_topic *topic, const void *bytes, size_t size)
{
    sim_link *from = (sim_link *)link;
    sim_world *world = from->world;
    sim_agent *agent = &world->agent[from->agent];
    if (agent->character == SIM_HONEST && topic->kind != RFI_TOPIC_CHUNK) {
        sim_saw_frame(world, from->agent, bytes, size);
    }
    for (int b = 0; b < world->brokers; b++) {
        if (from->mute) {
            return;
        }
        send_one(world, from->agent, b, *topic, bytes, size);
        if (!world->healed && topic->kind != RFI_TOPIC_EVENT && sim_chance(world, world->crash / 4)) {
            from->mute = true; /* what was sent so far is on its way */
            agent->crash = true;
        }
    }
}

static void link_get(rfi_netlink *link, const rfi_topic *topic)
{
    sim_link *from = (sim_link *)link;
    sim_world *world = from->world;
    for (int b = 0; b < world->brokers && !from->mute; b++) {
        carry(world, (sim_event){.kind = SIM_ASK_BROKER,
                                 .agent = from->agent,
                                 .broker = b,
                                 .life = world->agent[from->agent].life,
                                 .topic = *topic});
    }
}

static bool link_poll(rfi_netlink *link, rfi_message *message)
{
    sim_agent *agent = &((sim_link *)link)->world->agent[((sim_link *)link)->agent];
    if (!agent->has_message) {
        return false;
    }
    agent->has_message = false;
    *message = (rfi_message){agent->inbox.message, agent->inbox.topic, agent->inbox.bytes, agent->inbox.size, false};
    return true;
}

const rfi_netlink_ops sim_link_ops = {link_publish, link_get, link_poll};

/* --- Malicious agents --- */

static void sign_again(const sim_world *world, int agent, unsigned char *frame, const rfi_head *head)
{
    rfi_head_write(frame, head);
    rfi_frame_sign(frame, &world->agent[agent].keys, signatures(world));
}

/* Bytes of many kinds under the sender's own name. */
static void send_garbage(sim_world *world, int agent, int broker, rfi_topic topic, const unsigned char *bytes,
                         size_t size)
{
    for (int i = 0; i < 6; i++) {
        unsigned char *junk = sim_copy(bytes, size);
        size_t length = size;
        rfi_head head;
        switch (sim_below(world, 4)) {
        case 0:
            length = (size_t)sim_below(world, (int)size);
            break;
        case 1:
            for (size_t k = 0; k < length; k++) {
                junk[k] = (unsigned char)sim_below(world, 256);
            }
            break;
        case 2: /* signed, but of another shape or round */
            if (rfi_frame_read(junk, length, &head) == RFI_GOOD) {
                head.count += (uint64_t)sim_below(world, 2);
                head.round += (uint64_t)sim_below(world, 5);
                topic.round = head.round;
                sign_again(world, agent, junk, &head);
            }
            break;
        default:
            junk[sim_below(world, (int)length)] ^= 1;
        }
        sim_later(world, travel(world),
                  (sim_event){.kind = SIM_ARRIVE_BROKER,
                              .agent = agent,
                              .broker = broker,
                              .topic = topic,
                              .bytes = junk,
                              .size = length});
    }
}

/* A small model with another first number, signed. */
static void change_model(sim_world *world, int agent, unsigned char *frame, rfi_head *head, double value)
{
    if (head->type == RFI_FRAME_MODEL && head->flags & RFI_FLAG_INLINE) {
        unsigned char *payload = frame + RFI_MANIFEST_BYTES;
        const rfi_shape shape = sim_shape(world);
        if (shape.sealed) {
            const double model[SIM_SMALL] = {value};
            rfi_hearer hearers[SIM_AGENTS];
            ptrdiff_t count = sim_hearers(world, agent, hearers);
            (void)rfi_seal_model(head, &shape, &world->agent[agent].keys, model, hearers, count, payload,
                                 payload + rfi_shape_payload(&shape));
        } else {
            memcpy(payload, &value, sizeof value);
        }
        rfi_hash(head->root, frame + RFI_MANIFEST_BYTES, (size_t)head->payload);
        sign_again(world, agent, frame, head);
    }
}

/* The boxes of a small sealed model with one byte changed, signed: some of its hearers can open it, others cannot. */
static void spoil_boxes(sim_world *world, int agent, unsigned char *frame, rfi_head *head)
{
    const rfi_shape shape = sim_shape(world);
    size_t parts = rfi_shape_payload(&shape);
    if (head->type == RFI_FRAME_MODEL && head->flags & RFI_FLAG_INLINE && head->payload > parts) {
        unsigned char *payload = frame + RFI_MANIFEST_BYTES;
        payload[parts + (size_t)sim_below(world, (int)(head->payload - parts))] ^= 1;
        rfi_hash(head->root, payload, (size_t)head->payload);
        sign_again(world, agent, frame, head);
    }
}

/* The mark of the second model of a two-faced sender, in the field that tells processes apart. */
static const uint64_t second_face = UINT64_C(1) << 63;

static bool is_second(const unsigned char *bytes, size_t size)
{
    rfi_head head;
    return rfi_frame_read(bytes, size, &head) == RFI_GOOD && head.type == RFI_FRAME_MODEL && head.boot & second_face;
}

/* Two models for a round: of those that go through two brokers one each, otherwise, and where brokers want both, both. */
static void show_faces(sim_world *world, int agent, int broker, const rfi_topic *topic, unsigned char *bytes,
                       size_t size, rfi_head *head)
{
    if (head->type != RFI_FRAME_MODEL) {
        return;
    }
    bool both = world->brokers == 1 || world->broker[broker].splits;
    unsigned char *other = both ? sim_copy(bytes, size) : bytes;
    world->agent[agent].faces_since += world->healed && broker == 0;
    if (both || broker == 1) {
        head->boot |= world->options.plain ? 0 : second_face;
        sign_again(world, agent, other, head);
        change_model(world, agent, other, head, both ? -3 : 3);
    }
    if (both) {
        carry(world, (sim_event){.kind = SIM_ARRIVE_BROKER,
                                 .agent = agent,
                                 .broker = broker,
                                 .topic = *topic,
                                 .bytes = other,
                                 .size = size});
    }
}

/* A proof made of a stored model of somebody and a changed copy of it. */
static void send_false_proof(sim_world *world, int agent, int broker, const rfi_head *like)
{
    const sim_stored *stored =
        &world->broker[broker].slots[sim_below(world, world->agents)][sim_below(world, SIM_STORE)];
    rfi_head model;
    if (!stored->there || stored->size < RFI_MANIFEST_BYTES || !rfi_frame_manifest(stored->bytes, &model)) {
        return;
    }
    size_t size = RFI_MANIFEST_BYTES + RFI_PROOF_BYTES;
    unsigned char *frame = sim_copy(stored->bytes, RFI_MANIFEST_BYTES);
    frame = realloc(frame, size);
    memcpy(frame + RFI_MANIFEST_BYTES, stored->bytes, RFI_MANIFEST_BYTES);
    memcpy(frame + RFI_PROOF_BYTES, stored->bytes, RFI_MANIFEST_BYTES);
    model.boot++;
    rfi_head_write(frame + RFI_PROOF_BYTES, &model);
    rfi_head head = *like;
    head.type = RFI_FRAME_PROOF;
    head.count = 2;
    head.payload = RFI_PROOF_BYTES;
    rfi_hash(head.root, frame + RFI_MANIFEST_BYTES, RFI_PROOF_BYTES);
    sign_again(world, agent, frame, &head);
    carry(world, (sim_event){.kind = SIM_ARRIVE_BROKER,
                             .agent = agent,
                             .broker = broker,
                             .topic = {.kind = RFI_TOPIC_PROOF, .agent = (uint32_t)agent},
                             .bytes = frame,
                             .size = size});
}

/* An echo with other marks than those that were received, and an accusation. */
static void lie_in_echo(sim_world *world, int agent, int broker, unsigned char *bytes, rfi_head *head)
{
    if (head->type != RFI_FRAME_ECHO) {
        return;
    }
    for (uint64_t i = 0; i < head->count; i++) {
        bytes[RFI_MANIFEST_BYTES + i * RFI_ECHO_ENTRY_BYTES + 8] ^= (unsigned char)(1 + sim_below(world, 255));
    }
    rfi_hash(head->root, bytes + RFI_MANIFEST_BYTES, (size_t)head->payload);
    sign_again(world, agent, bytes, head);
    send_false_proof(world, agent, broker, head);
}

bool sim_malicious(sim_world *world, int agent, int broker, rfi_topic *topic, unsigned char **bytes, size_t *size)
{
    rfi_head head;
    if (topic->kind == RFI_TOPIC_CHUNK || rfi_frame_read(*bytes, *size, &head) != RFI_GOOD) {
        return world->agent[agent].character != SIM_SILENT;
    }
    switch (world->agent[agent].character) {
    case SIM_SILENT:
        return false;
    case SIM_FAR:
        head.round += (uint64_t)sim_below(world, 3) * 500;
        topic->round = head.round;
        sign_again(world, agent, *bytes, &head);
        break;
    case SIM_TWO_FACED:
        show_faces(world, agent, broker, topic, *bytes, *size, &head);
        break;
    case SIM_GARBAGE:
        send_garbage(world, agent, broker, *topic, *bytes, *size);
        break;
    case SIM_NOT_A_NUMBER:
        if (world->options.sealed && sim_chance(world, 0.5)) {
            spoil_boxes(world, agent, *bytes, &head);
            break;
        }
        change_model(world, agent, *bytes, &head, sim_chance(world, 0.5) ? (double)NAN : 1e300);
        break;
    case SIM_LATE:
        sim_later(world, 1.5 * world->deadline * sim_uniform(world),
                  (sim_event){.kind = SIM_ARRIVE_BROKER,
                              .agent = agent,
                              .broker = broker,
                              .topic = *topic,
                              .bytes = sim_copy(*bytes, *size),
                              .size = *size});
        return false;
    case SIM_FALSE_ECHO:
        lie_in_echo(world, agent, broker, *bytes, &head);
        break;
    case SIM_HONEST:
    case SIM_CHARACTERS:
        break;
    }
    return true;
}

/* --- Brokers --- */

static sim_stored *place_of(sim_broker *broker, const rfi_topic *topic)
{
    if (topic->kind == RFI_TOPIC_SLOT) {
        return &broker->slots[topic->agent][topic->round % SIM_STORE];
    }
    uint32_t number = topic->number == RFI_CHUNK_INDEX ? 2 : topic->number % 2;
    return &broker->chunks[topic->agent][topic->round % RFI_RING][number];
}

static void keep(sim_stored *stored, const rfi_topic *topic, const unsigned char *bytes, size_t size)
{
    free(stored->bytes);
    *stored = (sim_stored){true, *topic, sim_copy(bytes, size), size};
}

static void deliver(sim_world *world, int broker, int to, rfi_message_kind kind, rfi_topic topic,
                    const unsigned char *bytes, size_t size)
{
    topic.way = (unsigned)broker + 1;
    if (world->agent[to].up && !cut_off(world, (int)topic.agent, to)) {
        carry(world, (sim_event){.kind = SIM_ARRIVE_AGENT,
                                 .agent = to,
                                 .broker = broker,
                                 .life = world->agent[to].life,
                                 .message = kind,
                                 .topic = topic,
                                 .bytes = sim_copy(bytes, size),
                                 .size = size});
    }
}

/* Something stored, of anybody. */
static const sim_stored *any_stored(sim_world *world, sim_broker *broker)
{
    const sim_stored *stored = &broker->slots[sim_below(world, world->agents)][sim_below(world, SIM_STORE)];
    return stored->there ? stored : NULL;
}

/* What a hostile broker sends to an agent besides, or instead of, what it should. */
static void mischief(sim_world *world, int b, int to)
{
    const sim_stored *stored = any_stored(world, &world->broker[b]);
    if (!stored) {
        return;
    }
    rfi_topic topic = stored->topic;
    unsigned char *bytes = sim_copy(stored->bytes, stored->size);
    rfi_head head;
    switch (sim_below(world, 4)) {
    case 0: /* replayed as it is */
        break;
    case 1: /* as another agent's */
        topic.agent = (uint32_t)sim_below(world, world->agents);
        break;
    case 2: /* as another round's, with a head to match and the old signature */
        if (rfi_frame_read(bytes, stored->size, &head) == RFI_GOOD) {
            head.round += (uint64_t)(1 + sim_below(world, 3));
            topic.round = head.round;
            rfi_head_write(bytes, &head);
        }
        break;
    default: /* another model under the signed head */
        bytes[stored->size > 0 ? stored->size - 1 : 0] ^= 1;
    }
    deliver(world, b, to, RFI_MESSAGE_DATA, topic, bytes, stored->size);
    free(bytes);
}

/* A broker that splits views shows each half of the agents one model of a two-faced sender. */
static bool is_hidden(const sim_world *world, int b, int to, int from, const unsigned char *bytes, size_t size)
{
    if (!world->broker[b].splits || world->agent[from].character != SIM_TWO_FACED) {
        return false;
    }
    rfi_head head;
    bool model = rfi_frame_read(bytes, size, &head) == RFI_GOOD && head.type == RFI_FRAME_MODEL;
    return model && is_second(bytes, size) != ((world->half >> to & 1U) != 0);
}

void sim_broker_takes(sim_world *world, sim_event *event)
{
    sim_broker *broker = &world->broker[event->broker];
    rfi_topic *topic = &event->topic;
    int from = (int)topic->agent;
    if (world->now >= broker->dead_from || (broker->hostile && sim_chance(world, 0.3))) {
        return;
    }
    if (topic->kind == RFI_TOPIC_SLOT || topic->kind == RFI_TOPIC_CHUNK) {
        sim_stored *stored = place_of(broker, topic);
        bool ring = topic->kind == RFI_TOPIC_CHUNK;
        if (ring || !stored->there || stored->topic.round != topic->round) {
            keep(stored, topic, event->bytes, event->size);
        }
        if (ring) {
            return;
        }
        broker->newest[from] = topic->round + 1 > broker->newest[from] ? topic->round + 1 : broker->newest[from];
    }
    for (int to = 0; to < world->agents; to++) {
        bool said = topic->kind != RFI_TOPIC_SLOT && !world->options.plain;
        if ((!world->linked[to][from] && to != from && !(said && world->witness[to][from])) ||
            is_hidden(world, event->broker, to, from, event->bytes, event->size)) {
            continue;
        }
        if (broker->hostile && sim_chance(world, 0.4)) {
            mischief(world, event->broker, to);
        }
        if (!broker->hostile || !sim_chance(world, 0.2)) {
            deliver(world, event->broker, to, RFI_MESSAGE_DATA, *topic, event->bytes, event->size);
        }
    }
}

void sim_broker_asked(sim_world *world, const sim_event *event)
{
    sim_broker *broker = &world->broker[event->broker];
    rfi_topic topic = event->topic;
    if (event->life != world->agent[event->agent].life || world->now >= broker->dead_from) {
        return;
    }
    if (broker->hostile && sim_chance(world, 0.5)) {
        mischief(world, event->broker, event->agent);
        return;
    }
    bool slot = topic.kind == RFI_TOPIC_SLOT;
    if (slot && !topic.exact && broker->newest[topic.agent] > 0) {
        topic.round = broker->newest[topic.agent] - 1;
    }
    const sim_stored *stored = place_of(broker, &topic);
    bool found = stored->there && (!slot || stored->topic.round == topic.round);
    if (broker->hostile && sim_chance(world, 0.3)) {
        found = false;
    }
    if (found && slot && is_hidden(world, event->broker, event->agent, (int)topic.agent, stored->bytes, stored->size)) {
        found = false;
    }
    if (found) {
        deliver(world, event->broker, event->agent, RFI_MESSAGE_DATA, stored->topic, stored->bytes, stored->size);
    } else {
        deliver(world, event->broker, event->agent, RFI_MESSAGE_ABSENT, topic, NULL, 0);
    }
}

void sim_brokers_clear(sim_world *world)
{
    for (int b = 0; b < SIM_BROKERS; b++) {
        for (int k = 0; k < SIM_AGENTS; k++) {
            for (int i = 0; i < SIM_STORE; i++) {
                free(world->broker[b].slots[k][i].bytes);
            }
            for (int i = 0; i < RFI_RING * 3; i++) {
                free(world->broker[b].chunks[k][i / 3][i % 3].bytes);
            }
        }
    }
}
