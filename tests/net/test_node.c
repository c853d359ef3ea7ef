/* A node by itself on a link that only writes down: the order of what it does, and when it must end. */
#include "net/frames.h"
#include "net/node.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 2, LOG = 64 };
#define FRAME (RFI_MANIFEST_BYTES + NUMBERS * sizeof(double))
#define SEALED (FRAME + RFI_SEAL_BYTES + (size_t)2 * RFI_SEALED_BOX)

typedef enum deed { PUBLISHED, ASKED, RECORDED, COMBINED } deed;

typedef struct desk {
    rfi_netlink link; /* first: the link is the desk */
    struct {
        deed what;
        rfi_topic topic;
        uint64_t round;
        unsigned char bytes[SEALED];
        size_t size;
    } log[LOG];
    int count;
    rfi_message message;
    bool has_message;
    bool sealed;
    bool floods; /* the message comes again and again */
    reef_status record_status;
    rfi_keys keys[3];
    rfi_node *node;
    double until;
} desk;

static void note(desk *d, deed what, const rfi_topic *topic, uint64_t round, const void *bytes, size_t size)
{
    assert_true(d->count < LOG && size <= SEALED);
    d->log[d->count].what = what;
    d->log[d->count].topic = topic ? *topic : (rfi_topic){0};
    d->log[d->count].round = round;
    d->log[d->count].size = size;
    if (size > 0) {
        memcpy(d->log[d->count].bytes, bytes, size);
    }
    d->count++;
}

static void publish(rfi_netlink *link, const rfi_topic *topic, const void *bytes, size_t size)
{
    note((desk *)link, PUBLISHED, topic, topic->round, bytes, size);
}

static void get(rfi_netlink *link, const rfi_topic *topic)
{
    note((desk *)link, ASKED, topic, 0, NULL, 0);
}

static bool poll_one(rfi_netlink *link, rfi_message *message)
{
    desk *d = (desk *)link;
    bool has = d->has_message;
    *message = d->message;
    d->has_message = d->has_message && d->floods;
    return has;
}

static const rfi_netlink_ops ops = {publish, get, poll_one};

static reef_status record(void *user, uint64_t round, const unsigned char mark[RFI_HASH_BYTES], reef_error *error)
{
    desk *d = user;
    note(d, RECORDED, NULL, round, mark, RFI_HASH_BYTES);
    if (d->record_status != REEF_OK) {
        error->status = d->record_status;
        (void)strcpy(error->text, "the disk is full");
    }
    return d->record_status;
}

static bool combine(void *user, uint64_t round, const rfi_row *rows, const void *own, void *out)
{
    (void)rows;
    note(user, COMBINED, NULL, round, NULL, 0);
    memcpy(out, own, NUMBERS * sizeof(double));
    ((double *)out)[0] += 100;
    return true;
}

static int verifications;

static bool counted(const unsigned char signature[RFI_SIGNATURE_BYTES], const unsigned char key[RFI_KEY_BYTES],
                    const void *message, size_t size)
{
    verifications++;
    return rfi_verify(signature, key, message, size);
}

static const rfi_signatures counting = {rfi_sign, counted};

/* Agent 0 of three that all hear each other, in an epoch that begins with round `from`; F = 0.2, so that two of three are enough and one
 * is not. */
static rfi_node *make_node(desk *d, bool wait_all, uint64_t from)
{
    rfi_node *node = NULL;
    rfi_neighbour neighbours[2];
    for (uint32_t k = 0; k < 3; k++) {
        if (k > 0) {
            neighbours[k - 1] = (rfi_neighbour){.agent = k, .weight = 1.0 / 3};
            memcpy(neighbours[k - 1].key, d->keys[k].public_key, RFI_KEY_BYTES);
        }
    }
    const double zero[NUMBERS] = {0};
    rfi_hearer hearers[2];
    frames_hearers(hearers, (const uint32_t[]){1, 2}, 2);
    rfi_node_setup setup = {.window = {.shape = frames_shape(NUMBERS),
                                       .epoch = from > 0 ? 2 : 1,
                                       .from = from,
                                       .count = 2,
                                       .neighbours = neighbours,
                                       .own_weight = 1.0 / 3,
                                       .malicious = 0.2,
                                       .stale = 2,
                                       .by = &counting},
                            .rounds = {.deadline = 10, .wait_all = wait_all},
                            .keys = &d->keys[0],
                            .hearers = hearers,
                            .hearer_count = d->sealed ? 2 : 0,
                            .boot = 99,
                            .next = from,
                            .model = zero,
                            .link = &d->link,
                            .record = record,
                            .combine = combine,
                            .user = d};
    setup.window.shape.sealed = d->sealed;
    memcpy(setup.window.run, frames_run, sizeof setup.window.run);
    reef_error error = {REEF_OK, ""};
    CHECK(rfi_node_create(&node, NULL, &setup, 0, &error) == REEF_OK, "%s", error.text);
    return node;
}

static int open_desk(void **state, bool wait_all)
{
    desk *d = calloc(1, sizeof *d);
    *state = d;
    d->link.ops = &ops;
    if (rfi_crypto_start(NULL) != REEF_OK) {
        return -1;
    }
    for (uint32_t k = 0; k < 3; k++) {
        d->keys[k] = frames_keys(k);
    }
    d->node = make_node(d, wait_all, 0);
    return 0;
}

static int set_up(void **state)
{
    return open_desk(state, false);
}

static int set_up_patient(void **state)
{
    return open_desk(state, true);
}

static int set_up_sealed(void **state)
{
    int opened = open_desk(state, false);
    desk *d = *state;
    rfi_node_destroy(&d->node);
    d->sealed = true;
    d->node = make_node(d, false, 0);
    return opened;
}

static int tear_down(void **state)
{
    desk *d = *state;
    rfi_node_destroy(&d->node);
    free(d);
    return 0;
}

static rfi_node_state step(desk *d, double now, reef_error *error)
{
    d->count = 0;
    return rfi_node_step(d->node, now, &d->until, error);
}

static rfi_node_state give(desk *d, double now, rfi_message_kind kind, uint32_t agent, uint64_t round, uint64_t boot,
                           double value, reef_error *error)
{
    static unsigned char frame[SEALED];
    const double model[NUMBERS] = {value, value};
    rfi_shape shape = frames_shape(NUMBERS);
    rfi_head head = frames_head(&shape, agent, round, model);
    head.boot = boot;
    shape.sealed = d->sealed;
    rfi_hearer hearer;
    frames_hearers(&hearer, (const uint32_t[]){0}, 1);
    size_t size = d->sealed ? frames_sealed(frame, &head, &shape, &d->keys[agent], model, &hearer, 1)
                            : frames_make(frame, &head, &d->keys[agent], model);
    d->message = (rfi_message){kind, {.kind = RFI_TOPIC_SLOT, .agent = agent, .round = round}, frame, size, false};
    d->has_message = true;
    return step(d, now, error);
}

/* To the point where the first model is asked for. */
static void gather(desk *d)
{
    reef_error error;
    assert_int_equal(step(d, 0, &error), RFI_NODE_WAITING);
    assert_int_equal(d->log[0].topic.kind, RFI_TOPIC_EVENT);
    assert_int_equal(d->count, 1 + 3); /* hello, then the own slot and those of two neighbours */
    assert_int_equal(give(d, 0.1, RFI_MESSAGE_DATA, 1, 0, 7, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(give(d, 0.1, RFI_MESSAGE_ABSENT, 0, 0, 7, 1, &error), RFI_NODE_READY);
}

static void offer(desk *d, double now)
{
    const double model[NUMBERS] = {5, 6};
    rfi_node_offer(d->node, model, now);
}

static void a_round_is_recorded_before_it_is_signed(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(d->count, 2);
    assert_int_equal(d->log[0].what, RECORDED);
    assert_int_equal(d->log[1].what, PUBLISHED);
    unsigned char mark[RFI_HASH_BYTES];
    rfi_frame_mark(mark, d->log[1].bytes);
    assert_memory_equal(mark, d->log[0].bytes, sizeof mark);
    assert_true(rfi_frame_verify(d->log[1].bytes, &rfi_ed25519));
    assert_int_equal(give(d, 1.1, RFI_MESSAGE_DATA, 2, 0, 7, 1, &error), RFI_NODE_READY);
    assert_int_equal(d->log[0].what, COMBINED);
    CHECK_CLOSE(((const double *)rfi_node_model(d->node))[0], 105, 0, "combined");
    CHECK_CLOSE(rfi_node_weight(d->node), 1, 1e-12, "weight");
    assert_int_equal(rfi_node_rounds(d->node)->round, 1);
}

static void a_journal_that_cannot_be_written_ends_it_unsigned(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    d->record_status = REEF_E_FILE;
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_FAILED);
    assert_string_equal(error.text, "the disk is full");
    assert_int_equal(d->count, 1); /* nothing was published */
    d->record_status = REEF_OK;
    assert_int_equal(step(d, 2, &error), RFI_NODE_FAILED); /* and it stays so */
    assert_int_equal(d->count, 0);
}

/* Who has gone on has come: the time until then is a measured wait, as that until models of the very round are there. */
static void models_of_later_rounds_end_the_measured_wait(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(give(d, 1.25, RFI_MESSAGE_DATA, 1, 1, 7, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(rfi_node_rounds(d->node)->wait_count, 0); /* two thirds, and 0.8 are wanted */
    assert_int_equal(give(d, 1.5, RFI_MESSAGE_DATA, 2, 1, 7, 1, &error), RFI_NODE_READY);
    assert_int_equal(rfi_node_rounds(d->node)->wait_count, 1);
    assert_true(fabs(rfi_node_rounds(d->node)->waits[0] - 0.5) < 1e-9);
}

static void what_was_published_is_sent_again_after_a_reconnect(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    unsigned char first[FRAME];
    memcpy(first, d->log[1].bytes, sizeof first);
    d->message = (rfi_message){.kind = RFI_MESSAGE_UP};
    d->has_message = true;
    assert_int_equal(step(d, 1.5, &error), RFI_NODE_WAITING);
    assert_int_equal(d->log[0].what, PUBLISHED);
    assert_memory_equal(d->log[0].bytes, first, sizeof first);
}

/* The same with two brokers, of which one is quick to play an old model of this agent back: the other one is waited for. */
static void one_broker_of_two_does_not_tell_the_own_round(void **state)
{
    desk *d = *state;
    reef_error error;
    assert_int_equal(step(d, 0, &error), RFI_NODE_WAITING);
    assert_int_equal(give(d, 0.1, RFI_MESSAGE_DATA, 1, 0, 7, 1, &error), RFI_NODE_WAITING);
    unsigned char frame[FRAME];
    const double model[NUMBERS] = {3, 3};
    rfi_shape shape = frames_shape(NUMBERS);
    for (uint64_t round = 2; round <= 8; round += 6) {
        rfi_head head = frames_head(&shape, 0, round, model);
        head.boot = 98;
        size_t size = frames_make(frame, &head, &d->keys[0], model);
        d->message = (rfi_message){.kind = RFI_MESSAGE_DATA,
                                   .topic = {.kind = RFI_TOPIC_SLOT, .round = round},
                                   .bytes = frame,
                                   .size = size,
                                   .partial = round == 2};
        d->has_message = true;
        assert_int_equal(step(d, 0.2, &error), round == 2 ? RFI_NODE_WAITING : RFI_NODE_READY);
    }
    assert_int_equal(rfi_node_rounds(d->node)->next, 9);
}

/* What agent 2 reads in a sealed frame of agent 0. */
static void check_opens(const unsigned char *frame, size_t size, const double expected[NUMBERS])
{
    rfi_head head;
    rfi_seal seal;
    rfi_opener opener;
    double model[NUMBERS];
    rfi_keys keys = frames_keys(2);
    const size_t parts = sizeof model + RFI_SEAL_BYTES;
    const unsigned char *payload = frame + RFI_MANIFEST_BYTES;
    assert_int_equal(rfi_frame_read(frame, size, &head), RFI_GOOD);
    assert_true(rfi_opener_make(&opener, 2, &keys));
    rfi_seal_begin(&seal, &head);
    assert_true(rfi_seal_find(&seal, &opener, payload + parts, (size_t)head.payload - parts));
    assert_true(rfi_seal_open(&seal, 0, (unsigned char *)model, payload, parts));
    assert_memory_equal(model, expected, sizeof model);
}

/* As a process would that was killed and whose journal knows nothing of it. */
static void begin_again(desk *d)
{
    rfi_node_destroy(&d->node);
    d->node = make_node(d, false, 0);
    gather(d);
}

/* While the process lives the same bytes are sent again. Another process, even if nothing tells it what was signed, takes another key. */
static void a_sealed_model_is_sent_again_as_it_is_and_each_has_a_key_of_its_own(void **state)
{
    enum { AT_COMMITMENT = 176 };
    desk *d = *state;
    reef_error error;
    static const double offered[NUMBERS] = {5, 6};
    static const double other[NUMBERS] = {7, 8};
    unsigned char sent[3][SEALED] = {{0}};
    for (int process = 0; process < 3; process++) {
        const double *model = process == 2 ? other : offered;
        begin_again(d);
        rfi_node_offer(d->node, model, 1);
        assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
        assert_int_equal(d->log[1].what, PUBLISHED);
        assert_int_equal(d->log[1].size, SEALED);
        memcpy(sent[process], d->log[1].bytes, SEALED);
        check_opens(sent[process], SEALED, model);
        d->message = (rfi_message){.kind = RFI_MESSAGE_UP};
        d->has_message = true;
        assert_int_equal(step(d, 1.5, &error), RFI_NODE_WAITING);
        assert_int_equal(d->log[0].what, PUBLISHED);
        assert_memory_equal(d->log[0].bytes, sent[process], SEALED);
        assert_int_equal(give(d, 1.6, RFI_MESSAGE_DATA, 2, 0, 7, 1, &error), RFI_NODE_READY);
        assert_int_equal(rfi_node_rounds(d->node)->combined, 1);
    }
    for (int one = 0; one < 3; one++) {
        assert_memory_not_equal(sent[one] + AT_COMMITMENT, sent[(one + 1) % 3] + AT_COMMITMENT, RFI_HASH_BYTES);
    }
}

static void a_sealed_model_that_is_not_in_the_journal_is_not_sent(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    d->record_status = REEF_E_FILE;
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_FAILED);
    assert_int_equal(d->count, 1);
}

/* A state folder restored from a backup: the store knows better than the journal. */
static void the_own_slot_raises_the_round(void **state)
{
    desk *d = *state;
    reef_error error;
    assert_int_equal(step(d, 0, &error), RFI_NODE_WAITING);
    assert_int_equal(give(d, 0.1, RFI_MESSAGE_DATA, 1, 0, 7, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(give(d, 0.1, RFI_MESSAGE_DATA, 0, 1, 7, 1, &error), RFI_NODE_READY);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(d->log[0].what, RECORDED);
    assert_int_equal(d->log[0].round, 2);
}

/* A broker that hides it cannot keep an agent from starting. */
static void waits_for_the_own_slot_for_a_while_only(void **state)
{
    desk *d = *state;
    reef_error error;
    assert_int_equal(step(d, 0, &error), RFI_NODE_WAITING);
    assert_int_equal(give(d, 0.1, RFI_MESSAGE_DATA, 1, 0, 7, 1, &error), RFI_NODE_WAITING);
    for (double now = 1; now < 5; now += 1) {
        assert_int_equal(step(d, now, &error), RFI_NODE_WAITING);
    }
    assert_int_equal(step(d, 5, &error), RFI_NODE_READY);
}

static void a_second_process_with_the_key_ends_it(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(give(d, 1, RFI_MESSAGE_DATA, 0, 0, 99, 5, &error), RFI_NODE_WAITING); /* its own echo */
    d->keys[0].secret[3] ^= 1; /* a forgery, as a broker might send it */
    assert_int_equal(give(d, 1, RFI_MESSAGE_DATA, 0, 0, 7, 5, &error), RFI_NODE_WAITING);
    d->keys[0].secret[3] ^= 1;
    assert_int_equal(give(d, 1, RFI_MESSAGE_DATA, 0, 0, 7, 5, &error), RFI_NODE_FAILED);
    assert_int_equal(error.status, REEF_E_ORDER);
}

/* A broker sends forged frames in the agent's own name, faster than anybody could take them: the agent acts all the same, and looks at
 * few of them. */
static void a_flood_does_not_keep_it_from_acting(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    d->keys[0].secret[3] ^= 1;
    assert_int_equal(give(d, 1, RFI_MESSAGE_DATA, 0, 0, 7, 5, &error), RFI_NODE_WAITING);
    d->keys[0].secret[3] ^= 1;
    d->floods = d->has_message = true;
    verifications = 0;
    for (int i = 0; i < 90; i++) { /* until the deadline, ten times a second */
        assert_int_equal(step(d, 1.1 + 0.1 * i, &error), RFI_NODE_WAITING);
        assert_true(d->until <= 1.1 + 0.1 * i); /* more is waiting */
    }
    assert_int_equal(step(d, 11.5, &error), RFI_NODE_READY);
    CHECK(verifications <= 8 + 2 * 12 && verifications > 0, "%d", verifications);
    assert_int_equal(rfi_node_rounds(d->node)->combined, 1);
}

/* A broker that comes and goes has the model sent to itself alone, and no oftener than once a second. */
static void a_broker_that_comes_and_goes_costs_little(void **state)
{
    desk *d = *state;
    reef_error error;
    int sent = 0;
    gather(d);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    for (int i = 0; i < 80; i++) {
        d->message = (rfi_message){.kind = RFI_MESSAGE_UP, .topic = {.way = 2}};
        d->has_message = true;
        assert_int_equal(step(d, 2 + 0.1 * i, &error), RFI_NODE_WAITING);
        for (int k = 0; k < d->count; k++) {
            bool model = d->log[k].what == PUBLISHED && d->log[k].topic.kind == RFI_TOPIC_SLOT;
            assert_true(!model || d->log[k].topic.way == 2);
            sent += model;
        }
    }
    CHECK(sent >= 7 && sent <= 9, "%d", sent);
}

static void says_good_bye(void **state)
{
    desk *d = *state;
    rfi_head head;
    rfi_node_leave(d->node);
    assert_int_equal(rfi_frame_read(d->log[0].bytes, d->log[0].size, &head), RFI_GOOD);
    assert_int_equal(head.type, RFI_FRAME_BYE);
    assert_true(rfi_frame_verify(d->log[0].bytes, &rfi_ed25519));
}

static void without_a_quorum_it_goes_on_alone_by_the_deadline(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    /* Round 0 of neighbour 1 is there: two of three. The soft wait is the deadline as long as nothing was measured. */
    assert_int_equal(step(d, 10.9, &error), RFI_NODE_WAITING);
    assert_int_equal(step(d, 11, &error), RFI_NODE_READY);
    assert_int_equal(rfi_node_rounds(d->node)->combined, 1);
    for (int round = 1; round < 3; round++) { /* nobody is heard of any more: the old row serves twice */
        offer(d, 20 * round);
        assert_int_equal(step(d, 20 * round, &error), RFI_NODE_WAITING);
        assert_int_equal(step(d, 20 * round + 10, &error), RFI_NODE_READY);
        assert_int_equal(rfi_node_rounds(d->node)->combined, 1 + round);
    }
    offer(d, 100);
    assert_int_equal(step(d, 100, &error), RFI_NODE_WAITING); /* too far ahead of all others: nothing is signed */
    for (int i = 0; i < d->count; i++) {
        assert_true(d->log[i].what != RECORDED && d->log[i].topic.kind != RFI_TOPIC_SLOT);
    }
    assert_int_equal(step(d, 110, &error), RFI_NODE_READY);
    assert_int_equal(rfi_node_rounds(d->node)->idles, 1);
    assert_int_equal(rfi_node_rounds(d->node)->alone, 1);
    assert_int_equal(rfi_node_rounds(d->node)->round, 3);
    CHECK_CLOSE(((const double *)rfi_node_model(d->node))[0], 5, 0, "its own model");
}

/* Neighbour 2 was heard of with round 1 only: its round 0 was pushed before this agent listened. */
static void who_waits_for_everybody_asks_for_the_round_it_lacks(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(give(d, 1.1, RFI_MESSAGE_DATA, 2, 1, 7, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(step(d, 2.1, &error), RFI_NODE_WAITING);
    assert_int_equal(d->count, 1); /* of neighbour 1 it has the model of this round */
    assert_int_equal(d->log[0].what, ASKED);
    assert_int_equal(d->log[0].topic.agent, 2);
    assert_int_equal(d->log[0].topic.round, 0);
    assert_true(d->log[0].topic.exact);
    assert_int_equal(give(d, 2.2, RFI_MESSAGE_DATA, 2, 0, 7, 1, &error), RFI_NODE_READY);
    assert_int_equal(rfi_node_rounds(d->node)->combined, 1);
}

/* Both neighbours have begun round 1 without this agent's round 0, which somebody else may wait for; but whoever has missed a model
 * goes to where the others are. */
static void who_waits_for_everybody_skips_no_round_before_it_missed_one(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    assert_int_equal(give(d, 0.2, RFI_MESSAGE_DATA, 1, 1, 7, 1, &error), RFI_NODE_READY);
    assert_int_equal(give(d, 0.2, RFI_MESSAGE_DATA, 2, 1, 7, 1, &error), RFI_NODE_READY);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    assert_int_equal(d->log[0].what, RECORDED);
    assert_int_equal(d->log[0].round, 0);
    assert_int_equal(rfi_node_rounds(d->node)->skipped, 0);
    assert_int_equal(give(d, 11.1, RFI_MESSAGE_DATA, 1, 3, 7, 1, &error), RFI_NODE_READY); /* the deadline is over */
    assert_int_equal(give(d, 11.2, RFI_MESSAGE_DATA, 2, 3, 7, 1, &error), RFI_NODE_READY);
    offer(d, 12);
    assert_int_equal(step(d, 12, &error), RFI_NODE_WAITING);
    assert_int_equal(d->log[0].what, RECORDED);
    assert_int_equal(d->log[0].round, 3);
    assert_int_equal(rfi_node_rounds(d->node)->skipped, 2);
}

/* The agent has the file of the next epoch, which holds from this round on, and was offered a model before it could go over. */
static void a_round_of_the_next_epoch_is_not_signed_under_this_file(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    rfi_node_expect(d->node, &(rfi_edition){.known = true, .epoch = 2, .from = 0});
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_READY); /* and nobody waits for it */
    for (int i = 0; i < d->count; i++) {
        assert_true(d->log[i].what == COMBINED || d->log[i].topic.kind == RFI_TOPIC_EVENT);
    }
    assert_int_equal(rfi_node_rounds(d->node)->idles, 1);
    assert_int_equal(rfi_node_rounds(d->node)->round, 0);
}

/* An agent that goes over early, because others claim to be there, and then hears no more of them. */
static void rounds_before_an_epoch_are_not_signed_in_its_name(void **state)
{
    desk *d = *state;
    reef_error error;
    gather(d);
    rfi_node *old = d->node;
    d->node = make_node(d, false, 10);
    rfi_node_succeed(d->node, old);
    rfi_node_destroy(&old);
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    for (int i = 0; i < d->count; i++) {
        assert_true(d->log[i].what == ASKED || d->log[i].topic.kind == RFI_TOPIC_EVENT);
    }
    assert_int_equal(rfi_node_rounds(d->node)->next, 10);
    assert_int_equal(step(d, 11, &error), RFI_NODE_READY);
    assert_int_equal(rfi_node_rounds(d->node)->idles, 1);
}

/* An agent that ends stays until its last model has come back from a broker. */
static void knows_when_a_broker_has_its_model(void **state)
{
    desk *d = *state;
    reef_error error;
    unsigned char frame[FRAME];
    gather(d);
    assert_true(rfi_node_delivered(d->node)); /* nothing was sent */
    offer(d, 1);
    assert_int_equal(step(d, 1, &error), RFI_NODE_WAITING);
    memcpy(frame, d->log[1].bytes, sizeof frame);
    assert_false(rfi_node_delivered(d->node));
    assert_int_equal(give(d, 1, RFI_MESSAGE_DATA, 0, 0, 99, 5, &error), RFI_NODE_WAITING); /* not what it has sent */
    assert_false(rfi_node_delivered(d->node));
    d->count = 0;
    rfi_node_look(d->node);
    assert_int_equal(d->log[0].what, ASKED);
    assert_int_equal(d->log[0].topic.agent, 0);
    d->message = (rfi_message){RFI_MESSAGE_DATA, {.kind = RFI_TOPIC_SLOT}, frame, sizeof frame, false};
    d->has_message = true;
    assert_int_equal(step(d, 1.1, &error), RFI_NODE_WAITING);
    assert_true(rfi_node_delivered(d->node));
    assert_int_equal(give(d, 1.2, RFI_MESSAGE_DATA, 2, 0, 7, 1, &error), RFI_NODE_READY);
    offer(d, 2);
    assert_int_equal(step(d, 2, &error), RFI_NODE_WAITING);
    assert_false(rfi_node_delivered(d->node)); /* the next one */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_round_is_recorded_before_it_is_signed),
        TEST(a_journal_that_cannot_be_written_ends_it_unsigned),
        TEST(what_was_published_is_sent_again_after_a_reconnect),
        TEST(one_broker_of_two_does_not_tell_the_own_round),
        TEST(the_own_slot_raises_the_round),
        TEST(waits_for_the_own_slot_for_a_while_only),
        TEST(a_second_process_with_the_key_ends_it),
        TEST(a_flood_does_not_keep_it_from_acting),
        TEST(a_broker_that_comes_and_goes_costs_little),
        TEST(says_good_bye),
        TEST(without_a_quorum_it_goes_on_alone_by_the_deadline),
        TEST(a_round_of_the_next_epoch_is_not_signed_under_this_file),
        TEST(rounds_before_an_epoch_are_not_signed_in_its_name),
        TEST(knows_when_a_broker_has_its_model),
        TEST(models_of_later_rounds_end_the_measured_wait),
        cmocka_unit_test_setup_teardown(a_sealed_model_is_sent_again_as_it_is_and_each_has_a_key_of_its_own,
                                        set_up_sealed, tear_down),
        cmocka_unit_test_setup_teardown(a_sealed_model_that_is_not_in_the_journal_is_not_sent, set_up_sealed,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_waits_for_everybody_asks_for_the_round_it_lacks, set_up_patient, tear_down),
        cmocka_unit_test_setup_teardown(who_waits_for_everybody_skips_no_round_before_it_missed_one, set_up_patient,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
