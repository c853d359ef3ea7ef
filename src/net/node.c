/* The parts of an agent put together. */
#include "net/node.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* A broker that comes and goes has the model sent again no oftener. */
static const double again_seconds = 1;

/* Messages taken in one step: whoever sends faster than they are taken must not keep the agent from acting. */
enum { MESSAGES_MAX = 256 };

struct rfi_node {
    const reef_context *context;
    void *memory;
    rfi_node_setup setup;
    rfi_window *window;
    rfi_echo *echo; /* NULL: none */
    rfi_rounds rounds;
    size_t bytes; /* of a model */
    unsigned char *model;
    unsigned char *own;   /* what was offered: the rows of this agent */
    unsigned char *fresh; /* room for a result */
    unsigned char *frame; /* of the own model: manifest, then the payload if it is inline */
    size_t frame_size;
    unsigned char *index; /* of the own model: the head of a chunk message, the hashes, and the boxes if it is sealed */
    size_t index_size;    /* without that head */
    unsigned char *part;  /* a chunk message */
    unsigned char *sent;  /* the chunks as they are sent: `own`, or the same sealed */
    rfi_hearer *hearers;
    rfi_row *rows;
    bool published; /* frame is signed and was sent in this process */
    bool delivered; /* and has come back */
    uint64_t published_round;
    rfi_allowance own_frames[RFI_WAYS]; /* frames in this agent's own name that may be verified */
    unsigned again;                     /* brokers that the model is sent to again: a bit each, by their way */
    double again_from;                  /* not before */
    double weight;
    reef_status failure;
    reef_error why;
};

static rfi_node *lay_out(rfi_arena *arena, const rfi_node_setup *setup)
{
    const rfi_shape *shape = &setup->window.shape;
    ptrdiff_t bytes = (ptrdiff_t)rfi_shape_bytes(shape);
    ptrdiff_t sent = (ptrdiff_t)rfi_shape_payload(shape);
    ptrdiff_t boxes = shape->sealed ? setup->hearer_count * RFI_SEALED_BOX : 0;
    uint32_t chunks = rfi_shape_chunks(shape);
    rfi_node *node = rfi_arena_take(arena, 1, 1, sizeof *node);
    rfi_node parts = {
        .model = rfi_arena_take(arena, bytes, 1, 1),
        .own = rfi_arena_take(arena, bytes, 1, 1),
        .fresh = rfi_arena_take(arena, bytes, 1, 1),
        .frame = rfi_arena_take(arena, RFI_MANIFEST_BYTES + (chunks ? 0 : sent + boxes), 1, 1),
        .index = rfi_arena_take(arena, (ptrdiff_t)chunks * RFI_HASH_BYTES + (chunks ? boxes : 0) + RFI_CHUNK_HEAD_BYTES,
                                1, 1),
        .part = rfi_arena_take(arena, (chunks ? (ptrdiff_t)rfi_shape_part(shape) : 0) + RFI_CHUNK_HEAD_BYTES, 1, 1),
        .sent = rfi_arena_take(arena, shape->sealed && chunks ? sent : 0, 1, 1),
        .hearers = rfi_arena_take(arena, setup->hearer_count, 1, sizeof *node->hearers),
        .rows = rfi_arena_take(arena, setup->window.count, 1, sizeof *node->rows)};
    if (node) {
        *node = parts;
    }
    return node;
}

static size_t own_bytes(const rfi_node_setup *setup)
{
    rfi_arena arena = {NULL, 0, false};
    (void)lay_out(&arena, setup);
    return arena.overflow ? SIZE_MAX : (size_t)arena.used + RFI_ALIGNMENT;
}

size_t rfi_node_bytes(const rfi_node_setup *setup)
{
    size_t window = rfi_window_bytes(&setup->window);
    size_t own = own_bytes(setup);
    size_t echo = setup->echo.agents ? rfi_echo_bytes(&setup->echo) : 0;
    size_t most = SIZE_MAX / 3;
    return window > most || own > most || echo > most ? SIZE_MAX : window + own + echo;
}

reef_status rfi_node_create(rfi_node **node, const reef_context *context, const rfi_node_setup *setup, double now,
                            reef_error *error)
{
    rfi_window *window = NULL;
    rfi_window_setup around = setup->window;
    around.agent = setup->agent;
    around.keys = setup->keys;
    reef_status status = rfi_window_create(&window, context, &around, error);
    if (status != REEF_OK) {
        return status;
    }
    if (!(setup->rounds.deadline > 0 && isfinite(setup->rounds.deadline))) {
        rfi_window_destroy(&window);
        return rfi_fail(error, REEF_E_RANGE, "the deadline of a round is positive");
    }
    size_t bytes = own_bytes(setup);
    void *memory = bytes == SIZE_MAX ? NULL : rfi_allocate(context, bytes);
    if (!memory) {
        rfi_window_destroy(&window);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the models of an agent (%zu bytes)", bytes);
    }
    rfi_arena arena = {rfi_align(memory), 0, false};
    rfi_node *made = lay_out(&arena, setup);
    made->context = context;
    made->memory = memory;
    made->setup = *setup;
    made->window = window;
    made->bytes = rfi_shape_bytes(&setup->window.shape);
    made->setup.window.neighbours = NULL; /* the window has copied them */
    made->setup.model = NULL;
    made->setup.hearers = NULL;
    made->sent = setup->window.shape.sealed ? made->sent : made->own;
    if (setup->hearer_count > 0) {
        memcpy(made->hearers, setup->hearers, (size_t)setup->hearer_count * sizeof *made->hearers);
    }
    memcpy(made->model, setup->model, made->bytes);
    memcpy(made->own, setup->model, made->bytes);
    rfi_allowances_fill(made->own_frames);
    rfi_rounds_init(&made->rounds, &setup->rounds, window, setup->round, setup->next, now);
    const rfi_echo_parts parts = {.window = window, .link = setup->link, .keys = setup->keys};
    status = setup->echo.agents ? rfi_echo_create(&made->echo, context, &setup->echo, &parts, error) : REEF_OK;
    *node = made;
    if (status != REEF_OK) {
        rfi_node_destroy(node);
    }
    return status;
}

void rfi_node_destroy(rfi_node **node)
{
    if (*node) {
        rfi_echo_destroy(&(*node)->echo);
        rfi_window_destroy(&(*node)->window);
        rfi_release((*node)->context, (*node)->memory);
    }
    *node = NULL;
}

void rfi_node_succeed(rfi_node *node, const rfi_node *old)
{
    const rfi_rounds made = node->rounds;
    rfi_window_inherit(node->window, old->window);
    node->rounds = old->rounds;
    node->rounds.setup = made.setup;
    node->rounds.window = node->window;
    if (made.next >
        node->rounds.next) { /* rounds before the epoch are not signed in its name, whatever its neighbours claim */
        node->rounds.next = made.next;
    }
    memcpy(node->model, old->model, node->bytes);
    memcpy(node->own, old->own, node->bytes);
    node->weight = old->weight;
}

void rfi_node_expect(rfi_node *node, const rfi_edition *after)
{
    rfi_window_expect(node->window, after);
}

/* --- Sending --- */

static rfi_head head_of(const rfi_node *node, rfi_frame_type type, uint64_t round)
{
    rfi_head head = {.type = type,
                     .flags = RFI_FLAG_INLINE,
                     .epoch = node->setup.window.epoch,
                     .agent = node->setup.agent,
                     .round = round,
                     .boot = node->setup.boot};
    memcpy(head.run, node->setup.window.run, sizeof head.run);
    memcpy(head.key, node->setup.keys->public_key, sizeof head.key);
    return head;
}

static void send_event(rfi_node *node, rfi_frame_type type)
{
    unsigned char frame[RFI_MANIFEST_BYTES];
    rfi_head head = head_of(node, type, node->rounds.next);
    rfi_head_write(frame, &head);
    rfi_frame_sign(frame, node->setup.keys, node->setup.window.by);
    const rfi_topic topic = {.kind = RFI_TOPIC_EVENT, .agent = node->setup.agent};
    node->setup.link->ops->publish(node->setup.link, &topic, frame, sizeof frame);
}

/* Seals the own model: what is sent from here on is `sent`, or the frame, and the boxes behind the index or it. */
static void seal_own(rfi_node *node, rfi_head *head)
{
    const rfi_shape *shape = &node->setup.window.shape;
    unsigned char *parts = head->chunks ? node->sent : node->frame + RFI_MANIFEST_BYTES;
    unsigned char *boxes = head->chunks ? node->index + RFI_CHUNK_HEAD_BYTES + (size_t)head->chunks * RFI_HASH_BYTES
                                        : parts + rfi_shape_payload(shape);
    size_t size =
        rfi_seal_model(head, shape, node->setup.keys, node->own, node->hearers, node->setup.hearer_count, parts, boxes);
    if (head->chunks) {
        node->index_size += size;
    } else {
        head->payload += size;
    }
}

/* Lays out the head of the own model. It is not signed before it is in the journal. */
static void prepare(rfi_node *node, uint64_t round)
{
    const rfi_shape *shape = &node->setup.window.shape;
    rfi_head head = head_of(node, RFI_FRAME_MODEL, round);
    head.numbers = shape->numbers;
    head.count = shape->count;
    head.payload = rfi_shape_payload(shape);
    head.chunks = rfi_shape_chunks(shape);
    head.chunk = head.chunks ? shape->chunk : 0;
    head.flags = head.chunks ? 0 : RFI_FLAG_INLINE;
    memcpy(head.layout, shape->layout, sizeof head.layout);
    node->index_size = (size_t)head.chunks * RFI_HASH_BYTES;
    if (shape->sealed) {
        seal_own(node, &head);
    } else if (!head.chunks) {
        memcpy(node->frame + RFI_MANIFEST_BYTES, node->own, node->bytes);
    }
    node->frame_size = RFI_MANIFEST_BYTES;
    if (head.chunks) {
        rfi_fetch_index(shape, node->sent, node->index + RFI_CHUNK_HEAD_BYTES, head.root);
        rfi_hash(head.root, node->index + RFI_CHUNK_HEAD_BYTES, node->index_size);
    } else {
        rfi_hash(head.root, node->frame + RFI_MANIFEST_BYTES, (size_t)head.payload);
        node->frame_size += (size_t)head.payload;
    }
    rfi_head_write(node->frame, &head);
    node->published = false;
}

static void send_chunk(rfi_node *node, unsigned way, uint32_t number, unsigned char *message, size_t size)
{
    const rfi_topic topic = {.kind = RFI_TOPIC_CHUNK,
                             .agent = node->setup.agent,
                             .round = node->published_round,
                             .number = number,
                             .way = way};
    rfi_chunk_head(message, node->published_round, number);
    node->setup.link->ops->publish(node->setup.link, &topic, message, RFI_CHUNK_HEAD_BYTES + size);
}

/* Sends what was signed, to one broker or all (0): chunks, index, and the manifest last, since it tells receivers to fetch the others. */
static void send_model(rfi_node *node, unsigned way)
{
    const rfi_shape *shape = &node->setup.window.shape;
    uint32_t chunks = rfi_shape_chunks(shape);
    for (uint32_t number = 0; number < chunks; number++) {
        size_t begin;
        size_t size = rfi_fetch_part(rfi_shape_payload(shape), rfi_shape_part(shape), number, &begin);
        memcpy(node->part + RFI_CHUNK_HEAD_BYTES, node->sent + begin, size);
        send_chunk(node, way, number, node->part, size);
    }
    if (chunks) {
        send_chunk(node, way, RFI_CHUNK_INDEX, node->index, node->index_size);
    }
    const rfi_topic topic = {
        .kind = RFI_TOPIC_SLOT, .agent = node->setup.agent, .round = node->published_round, .way = way};
    node->setup.link->ops->publish(node->setup.link, &topic, node->frame, node->frame_size);
}

/* What was published goes once more to brokers that have come back, as the same bytes. */
static void send_again(rfi_node *node, double now, double *until)
{
    if (!node->again) {
        return;
    }
    if (now < node->again_from) {
        *until = fmin(*until, node->again_from);
        return;
    }
    for (unsigned way = 0; node->again >> way && node->published; way++) {
        if (node->again >> way & 1U) {
            send_model(node, way);
        }
    }
    node->again = 0;
    node->again_from = now + again_seconds;
}

/* --- Receiving --- */

static void fail_with(rfi_node *node, reef_status status, const char *text)
{
    node->failure = rfi_fail(&node->why, status, "%s", text);
}

/* A frame under this agent's own name: from a process before this one, or from one beside it. */
static void take_own(rfi_node *node, const rfi_message *message, double now)
{
    const unsigned char *bytes = message->bytes;
    size_t size = message->size;
    rfi_head head;
    if (node->published && size == node->frame_size && memcmp(bytes, node->frame, RFI_MANIFEST_BYTES) == 0) {
        node->delivered = true;
        return;
    }
    if (rfi_frame_read(bytes, size, &head) != RFI_GOOD || head.type != RFI_FRAME_MODEL ||
        head.agent != node->setup.agent || head.boot == node->setup.boot ||
        memcmp(head.key, node->setup.keys->public_key, sizeof head.key) != 0 ||
        memcmp(head.run, node->setup.window.run, sizeof head.run) != 0 ||
        !rfi_allowance_spend(&node->own_frames[node->window->way], now) ||
        !rfi_frame_verify(bytes, node->setup.window.by)) {
        return;
    }
    if (node->rounds.phase == RFI_PHASE_GATHER) {
        rfi_rounds_own(&node->rounds, head.round + 1, !message->partial);
    } else if (head.round >= node->rounds.next || (node->published && head.round == node->published_round)) {
        fail_with(node, REEF_E_ORDER,
                  "another process signs with the same key: run one agent per key (was the key file copied?)");
    }
}

/* A frame of another agent. */
static void take_frame(rfi_node *node, const rfi_message *message, double now)
{
    const rfi_topic *topic = &message->topic;
    rfi_head blank = head_of(node, RFI_FRAME_ECHO, node->rounds.round);
    ptrdiff_t peer = rfi_window_find(node->window, topic->agent);
    if (rfi_echo_wants(node->echo, topic, message->bytes, message->size)) {
        rfi_cause cause = rfi_echo_frame(node->echo, now, topic, message->bytes, message->size, &blank);
        if (peer >= 0) {
            node->window->peers[peer].counts[cause]++;
        }
        return;
    }
    rfi_frame_place place = topic->kind == RFI_TOPIC_SLOT ? RFI_PLACE_SLOT : RFI_PLACE_EVENT;
    rfi_cause cause =
        rfi_window_frame(node->window, now, place, topic->agent, topic->round, message->bytes, message->size);
    if (cause == RFI_TWO_FACED && node->echo) {
        rfi_echo_found(node->echo, peer, &blank);
    }
}

static void take_message(rfi_node *node, const rfi_message *message, double now)
{
    const rfi_topic *topic = &message->topic;
    bool own = topic->agent == node->setup.agent;
    node->window->way = topic->way;
    switch (message->kind) {
    case RFI_MESSAGE_UP:
        node->again |= 1U << topic->way;
        break;
    case RFI_MESSAGE_ABSENT:
        if (own && topic->kind == RFI_TOPIC_SLOT && node->rounds.phase == RFI_PHASE_GATHER) {
            rfi_rounds_own(&node->rounds, 0, true);
        } else if (topic->kind == RFI_TOPIC_CHUNK) {
            rfi_window_vain(node->window, topic->agent, topic->round, topic->number);
        }
        break;
    case RFI_MESSAGE_DATA:
        if (topic->kind == RFI_TOPIC_FILE) {
            if (node->setup.file) {
                node->setup.file(node->setup.user, message->bytes, message->size, now);
            }
        } else if (topic->kind == RFI_TOPIC_CHUNK) {
            if (rfi_window_chunk(node->window, now, topic->agent, message->bytes, message->size) != RFI_GOOD) {
                rfi_window_vain(node->window, topic->agent, topic->round, topic->number);
            }
        } else if (!own) {
            take_frame(node, message, now);
        } else if (topic->kind == RFI_TOPIC_SLOT) {
            take_own(node, message, now);
        }
        break;
    }
}

/* --- Doing what the machine says --- */

/* Asks for the newest slots of those whose model of the round is not there. Who waits for everybody needs the slot of this very round
 * where the newest one is a later one: what was pushed before this agent had subscribed, or while it was not connected, comes in no
 * other way. */
static void ask(rfi_node *node, uint64_t round)
{
    bool gathering = node->rounds.phase == RFI_PHASE_GATHER;
    bool patient = node->rounds.phase == RFI_PHASE_COLLECT && node->rounds.setup.wait_all;
    rfi_topic topic = {.kind = RFI_TOPIC_SLOT, .agent = node->setup.agent, .round = round};
    if (gathering && !node->rounds.own_known) {
        node->setup.link->ops->get(node->setup.link, &topic);
    }
    for (ptrdiff_t l = 0; l < node->window->setup.count; l++) {
        const rfi_peer *peer = &node->window->peers[l];
        rfi_row row = rfi_window_row(node->window, l, round);
        if (!peer->excluded && (gathering || !row.model || row.age != 0)) {
            topic.agent = peer->who.agent;
            topic.exact = patient && peer->claim > (int64_t)round;
            node->setup.link->ops->get(node->setup.link, &topic);
        }
    }
}

static void fetch_chunks(rfi_node *node, double now)
{
    ptrdiff_t peer;
    rfi_topic topic = {.kind = RFI_TOPIC_CHUNK};
    while (rfi_window_want(node->window, now, &peer, &topic.round, &topic.number)) {
        topic.agent = node->window->peers[peer].who.agent;
        node->setup.link->ops->get(node->setup.link, &topic);
    }
}

static bool combine(rfi_node *node, const rfi_action *action, const void *own)
{
    double weight = own ? node->setup.window.own_weight : 0;
    for (ptrdiff_t l = 0; l < node->window->setup.count; l++) {
        node->rows[l] = rfi_window_row(node->window, l, action->round);
        weight += node->rows[l].model ? node->window->peers[l].who.weight : 0;
    }
    bool taken = node->setup.combine(node->setup.user, action->round, node->rows, own, node->fresh);
    if (taken) {
        memcpy(node->model, node->fresh, node->bytes);
    }
    node->weight = taken ? weight : 0;
    return taken;
}

static void journal(rfi_node *node, uint64_t round)
{
    unsigned char mark[RFI_HASH_BYTES];
    prepare(node, round);
    rfi_frame_mark(mark, node->frame);
    node->failure = node->setup.record(node->setup.user, round, mark, &node->why);
}

static void carry_out(rfi_node *node, const rfi_action *action, double now)
{
    bool taken = false;
    switch (action->act) {
    case RFI_ACT_WAIT:
        return;
    case RFI_ACT_HELLO:
        send_event(node, RFI_FRAME_HELLO);
        break;
    case RFI_ACT_ASK:
        ask(node, action->round);
        break;
    case RFI_ACT_ADOPT:
        taken = combine(node, action, NULL);
        break;
    case RFI_ACT_JOURNAL:
        journal(node, action->round);
        break;
    case RFI_ACT_PUBLISH:
        rfi_frame_sign(node->frame, node->setup.keys, node->setup.window.by);
        node->published = true;
        node->delivered = false;
        node->published_round = action->round;
        node->again = 0;
        send_model(node, 0);
        break;
    case RFI_ACT_COMBINE:
        taken = combine(node, action, node->own);
        break;
    case RFI_ACT_SELF:
        node->weight = 0;
        break;
    }
    if (node->failure == REEF_OK && action->act != RFI_ACT_HELLO && action->act != RFI_ACT_ASK) {
        bool ends = node->rounds.phase == RFI_PHASE_COMBINE;
        if (!taken && ends) {
            memcpy(node->model, node->own, node->bytes);
        }
        if (node->echo && ends) {
            rfi_head blank = head_of(node, RFI_FRAME_ECHO, action->round);
            rfi_echo_round(node->echo, now, &blank);
        }
        rfi_rounds_done(&node->rounds, now, taken);
    }
}

rfi_node_state rfi_node_step(rfi_node *node, double now, double *until, reef_error *error)
{
    rfi_message message;
    int taken = 0;
    for (; node->failure == REEF_OK && taken < MESSAGES_MAX && node->setup.link->ops->poll(node->setup.link, &message);
         taken++) {
        take_message(node, &message, now);
    }
    while (node->failure == REEF_OK) {
        rfi_action action = rfi_rounds_next(&node->rounds, now);
        *until = action.until;
        if (action.act == RFI_ACT_WAIT) {
            break;
        }
        carry_out(node, &action, now);
    }
    if (node->failure != REEF_OK) {
        (void)rfi_fail(error, node->failure, "%s", node->why.text);
        return RFI_NODE_FAILED;
    }
    send_again(node, now, until);
    fetch_chunks(node, now);
    if (rfi_window_fetching(node->window)) {
        *until = fmin(*until, now + RFI_FLIGHT_SECONDS);
    }
    if (taken == MESSAGES_MAX) {
        *until = now;
    }
    return node->rounds.phase == RFI_PHASE_READY ? RFI_NODE_READY : RFI_NODE_WAITING;
}

void rfi_node_offer(rfi_node *node, const void *model, double now)
{
    if (node->failure == REEF_OK && node->rounds.phase == RFI_PHASE_READY) {
        memcpy(node->own, model, node->bytes);
        node->published = false; /* the bytes behind what was published are gone */
        rfi_rounds_model(&node->rounds, now);
    }
}

void rfi_node_pass(rfi_node *node, const void *model, double now)
{
    if (node->failure == REEF_OK && node->rounds.phase == RFI_PHASE_READY) {
        memcpy(node->own, model, node->bytes);
        node->published = false;
        rfi_rounds_pass(&node->rounds, now);
    }
}

bool rfi_node_accuse(rfi_node *node, const unsigned char proof[RFI_PROOF_BYTES])
{
    rfi_head blank = head_of(node, RFI_FRAME_ECHO, node->rounds.round);
    return node->echo && rfi_echo_accuse(node->echo, proof, &blank);
}

bool rfi_node_delivered(const rfi_node *node)
{
    return node->delivered || !node->published;
}

void rfi_node_look(rfi_node *node)
{
    const rfi_topic own = {.kind = RFI_TOPIC_SLOT, .agent = node->setup.agent};
    node->setup.link->ops->get(node->setup.link, &own);
}

void rfi_node_leave(rfi_node *node)
{
    send_event(node, RFI_FRAME_BYE);
}

const void *rfi_node_model(const rfi_node *node)
{
    return node->model;
}

const void *rfi_node_own(const rfi_node *node)
{
    return node->own;
}

const rfi_rounds *rfi_node_rounds(const rfi_node *node)
{
    return &node->rounds;
}

const rfi_window *rfi_node_window(const rfi_node *node)
{
    return node->window;
}

double rfi_node_weight(const rfi_node *node)
{
    return node->weight;
}

const rfi_echo *rfi_node_echo(const rfi_node *node)
{
    return node->echo;
}
