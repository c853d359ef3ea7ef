/* An enrolled agent and the operator of the broker send hostile frames of many kinds to honest agents over a real server. None is used,
 * each is counted under its cause, memory does not grow, and rounds go on. REEF_HOSTILE_FRAMES sets how many there are. */
#include "net/camp.h"
#include "net/fetch.h"
#include "net/frames.h"
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL = 64,   /* numbers in a small model... */
    LARGE = 20000 /* ...and in one of three chunks */
};
enum { BATCH = 6 }; /* receivers have room for 8 messages of a sender; what is beyond that may be lost */

/* A message that is being made. */
typedef struct hostile {
    camp *camp;
    wire wire;
    uint64_t draws;
    uint64_t number; /* of this kind so far */
    uint64_t round;  /* of the honest agents, the furthest */
    bool event;      /* it goes where hello does */
    uint64_t slot;   /* round in the subject */
    rfi_head head;
    double model[SMALL];
    unsigned char bytes[1 << 20];
    size_t size;
} hostile;

typedef struct kind {
    const char *name;
    rfi_cause cause;
    rfi_cause also; /* counted instead if the sender has used up its allowance */
    int share;      /* one of so many of all frames */
    void (*make)(hostile *h);
} kind;

static uint64_t draw(hostile *h)
{
    h->draws = h->draws * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return h->draws >> 33;
}

/* ---- making frames ---- */

/* Begins with a model that would be accepted. */
static void begin(hostile *h, uint64_t round)
{
    for (int i = 0; i < SMALL; i++) {
        h->model[i] = 900000; /* below the largest number; a mean with it in would show */
    }
    h->event = false;
    h->slot = round;
    h->head = camp_head(h->camp, CAMP_MALLORY, round, h->model);
}

static void sign(hostile *h)
{
    h->size = frames_make(h->bytes, &h->head, &h->camp->secrets[CAMP_MALLORY].identity, h->model);
}

static rfi_head event_head(const hostile *h, rfi_frame_type type)
{
    rfi_head head = {
        .type = type, .flags = RFI_FLAG_INLINE, .epoch = 1, .agent = CAMP_MALLORY, .round = h->round + 1, .boot = 666};
    memcpy(head.run, h->camp->file.hash, sizeof head.run);
    memcpy(head.key, h->camp->secrets[CAMP_MALLORY].identity.public_key, sizeof head.key);
    return head;
}

static void short_garbage(hostile *h)
{
    begin(h, h->round);
    h->size = draw(h) % RFI_MANIFEST_BYTES;
    rfi_random(h->bytes, h->size);
}

static void garbage(hostile *h)
{
    enum { FLAGS = 7 };
    begin(h, h->round);
    h->size = RFI_MANIFEST_BYTES;
    rfi_random(h->bytes, h->size);
    h->bytes[FLAGS] &= 0xFE; /* not inline, so that its length is right */
}

static void oversize(hostile *h)
{
    begin(h, h->round);
    h->size = h->number % 100 == 0 ? sizeof h->bytes : RFI_MANIFEST_BYTES + RFI_INLINE_MAX + 1 + draw(h) % 1000;
    memset(h->bytes, 'R', h->size);
}

static void wrong_length(hostile *h)
{
    begin(h, h->round + 1);
    sign(h);
    h->size += h->number % 2 ? 1 : (size_t)-1;
}

static void wrong_format(hostile *h)
{
    static const unsigned char places[] = {0, 3, 4, 5, 6, 7, 216, 255};
    begin(h, h->round + 1);
    sign(h);
    h->bytes[places[h->number % sizeof places]] ^= 0x80;
}

static void wrong_place(hostile *h)
{
    begin(h, h->round + 1);
    h->event = h->number % 2; /* a model among the events, or a hello in a slot */
    if (!h->event) {
        h->head = event_head(h, RFI_FRAME_HELLO);
    }
    sign(h);
}

static void wrong_sender(hostile *h)
{
    begin(h, h->round + 1);
    if (h->number % 2) {
        h->head.agent = 0;
    } else {
        memcpy(h->head.key, h->camp->secrets[0].identity.public_key, sizeof h->head.key);
    }
    sign(h);
}

static void wrong_run(hostile *h)
{
    begin(h, h->round + 1);
    h->head.run[h->number % RFI_HASH_BYTES] ^= h->number % 3 ? 1 : 0;
    h->head.epoch += h->number % 3 ? 0 : 1;
    sign(h);
}

static void wrong_subject(hostile *h)
{
    begin(h, h->round + 1);
    h->slot = h->round + 2 + draw(h) % 5;
    sign(h);
}

static void old(hostile *h)
{
    begin(h, draw(h) % 3);
    sign(h);
}

static void wrong_shape(hostile *h)
{
    begin(h, h->round + 1);
    switch (h->number % 4) {
    case 0:
        h->head.count += 1;
        break;
    case 1:
        h->head.numbers = RFI_NUMBERS_F32;
        break;
    case 2:
        h->head.layout[5] = 1;
        break;
    default: /* in chunks: 8 GB of them */
        h->head.flags = 0;
        h->head.chunk = 65536;
        h->head.chunks = 131072;
        h->head.payload = UINT64_C(8) << 30;
        break;
    }
    sign(h);
}

static void wrong_signature(hostile *h)
{
    begin(h, h->round + 1);
    h->head.boot = draw(h);
    sign(h);
    h->bytes[RFI_HEAD_BYTES + draw(h) % RFI_SIGNATURE_BYTES] ^= 4;
}

static void forged_event(hostile *h)
{
    begin(h, h->round + 1);
    h->event = true;
    h->head = event_head(h, h->number % 2 ? RFI_FRAME_BYE : RFI_FRAME_HELLO);
    sign(h);
    h->bytes[RFI_HEAD_BYTES] ^= 1;
}

/* Behind the mark of a far round that is held already, see far_ahead. */
static void future(hostile *h)
{
    begin(h, h->round + 10 + draw(h) % 100000);
    sign(h);
}

/* What was signed is not what is sent. */
static void wrong_payload(hostile *h)
{
    begin(h, h->round + 1);
    sign(h);
    h->bytes[h->size - 1 - draw(h) % 8] ^= 1;
}

static const kind kinds[] = {
    {"short garbage", RFI_LENGTH, RFI_LENGTH, 12, short_garbage},
    {"garbage", RFI_FORMAT, RFI_FORMAT, 12, garbage},
    {"oversize", RFI_LENGTH, RFI_LENGTH, 24, oversize},
    {"wrong length", RFI_LENGTH, RFI_LENGTH, 12, wrong_length},
    {"wrong format", RFI_FORMAT, RFI_FORMAT, 12, wrong_format},
    {"wrong place", RFI_FORMAT, RFI_FORMAT, 24, wrong_place},
    {"wrong sender", RFI_SENDER, RFI_SENDER, 12, wrong_sender},
    {"wrong run", RFI_CONFIG, RFI_CONFIG, 12, wrong_run},
    {"wrong subject", RFI_SUBJECT, RFI_SUBJECT, 24, wrong_subject},
    {"old", RFI_OLD, RFI_OLD, 24, old},
    {"wrong shape", RFI_SHAPE, RFI_SHAPE, 12, wrong_shape},
    {"wrong signature", RFI_SIGNATURE, RFI_RATE, 12, wrong_signature},
    {"forged event", RFI_SIGNATURE, RFI_RATE, 24, forged_event},
    {"future", RFI_FUTURE, RFI_RATE, 48, future},
    {"wrong payload", RFI_CHUNK, RFI_RATE, 48, wrong_payload},
};

/* ---- sending them ---- */

static uint64_t frames_wanted(void)
{
    const char *text = getenv("REEF_HOSTILE_FRAMES");
    return text ? strtoull(text, NULL, 10) : (uint64_t)MONTE_CARLO(100000, 20000);
}

static void publish(hostile *h, int as)
{
    char subject[64];
    (void)(h->event ? snprintf(subject, sizeof subject, "reef.t.e.%d", as)
                    : snprintf(subject, sizeof subject, "reef.t.s.%d.%llu", as, (unsigned long long)h->slot));
    assert_true(wire_publish(&h->wire, subject, NULL, h->bytes, h->size));
}

/* Waits until all honest agents but the one whose name is used have dealt with so many messages of it. */
static void wait_heard(hostile *h, int sender, const uint64_t want[CAMP_HONEST])
{
    assert_true(wire_flush(&h->wire)); /* which answers the server's pings too */
    for (int k = 0; k < CAMP_HONEST; k++) {
        for (double end = camp_now() + 60; k != sender && camp_heard(h->camp, k, sender) < want[k];) {
            CHECK(camp_now() < end, "agent %d has dealt with %llu messages of agent %d, not %llu", k,
                  (unsigned long long)camp_heard(h->camp, k, sender), sender, (unsigned long long)want[k]);
            camp_pause();
        }
    }
}

/* What the receivers count of agent 3 under one cause. */
static void read_counts(const hostile *h, rfi_cause cause, uint64_t counts[CAMP_HONEST])
{
    for (int k = 0; k < CAMP_HONEST; k++) {
        counts[k] = camp_count(h->camp, k, CAMP_MALLORY, cause);
    }
}

/* Sends `total` frames of a kind as agent 3, and waits until all are dealt with. Returns how many of them may have arrived after the
 * rounds they were made for: where this process waits for a processor, the honest agents' rounds go on. */
static uint64_t send_batches(hostile *h, const kind *of, uint64_t total)
{
    uint64_t heard[CAMP_HONEST];
    uint64_t late = 0;
    for (int k = 0; k < CAMP_HONEST; k++) {
        heard[k] = camp_heard(h->camp, k, CAMP_MALLORY);
    }
    for (uint64_t sent = 0; sent < total;) {
        uint64_t batch = total - sent < BATCH ? total - sent : BATCH;
        h->round = camp_round(h->camp);
        for (uint64_t end = sent + batch; sent < end; sent++) {
            h->number = sent;
            of->make(h);
            publish(h, CAMP_MALLORY);
        }
        for (int k = 0; k < CAMP_HONEST; k++) {
            heard[k] += batch;
        }
        wait_heard(h, CAMP_MALLORY, heard);
        late += camp_round(h->camp) > h->round + 1 + CAMP_STALE ? batch : 0;
    }
    return late;
}

/* Each receiver counts each frame of a kind under one of the kind's causes; late ones may be counted as old. */
static void send_kind(hostile *h, const kind *of, uint64_t total)
{
    uint64_t as_such[CAMP_HONEST];
    uint64_t instead[CAMP_HONEST];
    uint64_t old_ones[CAMP_HONEST];
    read_counts(h, of->cause, as_such);
    read_counts(h, of->also, instead);
    read_counts(h, RFI_OLD, old_ones);
    uint64_t late = send_batches(h, of, total);
    for (int k = 0; k < CAMP_HONEST; k++) {
        uint64_t counted = camp_count(h->camp, k, CAMP_MALLORY, of->cause) - as_such[k];
        uint64_t too_old = camp_count(h->camp, k, CAMP_MALLORY, RFI_OLD) - old_ones[k];
        if (of->also != of->cause) {
            CHECK(counted > 0, "%s: none of %llu counted as such", of->name, (unsigned long long)total);
            counted += camp_count(h->camp, k, CAMP_MALLORY, of->also) - instead[k];
        }
        if (of->cause != RFI_OLD) {
            CHECK(too_old <= late, "%s: agent %d counts %llu as old, of which at most %llu were late", of->name, k,
                  (unsigned long long)too_old, (unsigned long long)late);
            counted += too_old;
        }
        CHECK(counted == total, "%s: agent %d counts %llu of %llu as %s", of->name, k, (unsigned long long)counted,
              (unsigned long long)total, rfi_cause_text(of->cause));
    }
}

/* Takes part for some rounds, so that the others know how long a round takes. Who is not there yet hears it again. */
static void begin_well(hostile *h)
{
    double end = camp_now() + 60;
    for (uint64_t round = 0; round < 6; round = camp_round(h->camp)) {
        CHECK(camp_now() < end, "honest agents are at round %llu after a minute", (unsigned long long)round);
        begin(h, round);
        memset(h->model, 0, sizeof h->model);
        h->head = camp_head(h->camp, CAMP_MALLORY, round, h->model);
        sign(h);
        publish(h, CAMP_MALLORY);
        assert_true(wire_flush(&h->wire));
        for (int i = 0; i < 1000 && camp_round(h->camp) == round; i++) {
            camp_pause();
        }
    }
    camp_combine(h->camp, 5); /* now its last models are too old */
}

/* Numbers that are none, one model a round, and the same frames again; then one of a far round. */
static void send_values(hostile *h)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e38, 1.1e6};
    uint64_t want[CAMP_HONEST];
    uint64_t before[CAMP_HONEST];
    for (int k = 0; k < CAMP_HONEST; k++) {
        want[k] = camp_heard(h->camp, k, CAMP_MALLORY);
        before[k] = camp_count(h->camp, k, CAMP_MALLORY, RFI_VALUE);
    }
    enum { MODELS = 21, AGAIN = 3 };
    for (int i = 0; i < MODELS; i++) {
        uint64_t round = camp_round(h->camp) + (i == MODELS - 1 ? 1000000 : 1);
        begin(h, round);
        h->model[(size_t)i % SMALL] = bad[i % COUNT(bad)];
        h->head = camp_head(h->camp, CAMP_MALLORY, round, h->model);
        sign(h);
        for (int again = 0; again <= AGAIN; again++) {
            publish(h, CAMP_MALLORY);
        }
        for (int k = 0; k < CAMP_HONEST; k++) {
            want[k] += 1 + AGAIN;
        }
        wait_heard(h, CAMP_MALLORY, want);
        camp_combine(h->camp, 2); /* a round of its own for each */
    }
    for (int k = 0; k < CAMP_HONEST; k++) {
        uint64_t counted = camp_count(h->camp, k, CAMP_MALLORY, RFI_VALUE) - before[k];
        CHECK(counted == MODELS, "agent %d counts %llu of %d as value", k, (unsigned long long)counted, MODELS);
        assert_true(camp_count(h->camp, k, CAMP_MALLORY, RFI_REPEAT) >= (uint64_t)AGAIN * MODELS);
    }
}

/* Two different models for one round, both signed. */
static void be_two_faced(hostile *h)
{
    static const kind after[] = {{"two-faced", RFI_EXCLUDED, RFI_EXCLUDED, 1, wrong_signature}};
    uint64_t want[CAMP_HONEST];
    for (int k = 0; k < CAMP_HONEST; k++) {
        want[k] = camp_heard(h->camp, k, CAMP_MALLORY) + 2;
    }
    uint64_t round = camp_round(h->camp) + 1;
    for (int i = 0; i < 2; i++) {
        begin(h, round);
        h->model[0] = NAN; /* no row even for a moment */
        h->model[1] = i;
        h->head = camp_head(h->camp, CAMP_MALLORY, round, h->model);
        sign(h);
        publish(h, CAMP_MALLORY);
    }
    wait_heard(h, CAMP_MALLORY, want);
    for (int k = 0; k < CAMP_HONEST; k++) {
        assert_true(h->camp->view->excluded[k][CAMP_MALLORY]);
        assert_int_equal(camp_count(h->camp, k, CAMP_MALLORY, RFI_TWO_FACED), 1);
    }
    send_kind(h, &after[0], 100);
}

static void none_used(const hostile *h, const uint64_t before[CAMP_HONEST])
{
    for (int k = 0; k < CAMP_HONEST; k++) {
        uint64_t used =
            camp_count(h->camp, k, CAMP_MALLORY, RFI_USED) + camp_count(h->camp, k, CAMP_MALLORY, RFI_STALE);
        assert_int_equal(used, before[k]);
    }
}

/* The honest agents' memory has not grown by a tenth, or by more than a megabyte. */
static void check_memory(const hostile *h, long before)
{
    long after = camp_memory(h->camp, false);
    print_message("at most %ld kB before, %ld kB after\n", before, after);
#if !defined(TEST_SANITIZED) /* which keeps what was freed */
    assert_true((double)after <
                fmax(1.1 * (double)before, (double)before + 1024)); /* malloc takes as much for itself */
#endif
}

static void hostile_frames_are_counted_and_not_used(void **state)
{
    hostile *h = *state;
    uint64_t total = frames_wanted();
    uint64_t used[CAMP_HONEST];
    long memory = 0;
    camp_enter(h->camp, &h->wire, CAMP_MALLORY);
    begin_well(h);
    for (int k = 0; k < CAMP_HONEST; k++) {
        used[k] = camp_count(h->camp, k, CAMP_MALLORY, RFI_USED) + camp_count(h->camp, k, CAMP_MALLORY, RFI_STALE);
        assert_true(used[k] > 0);
    }
    send_values(h);
    for (ptrdiff_t i = 0; i < COUNT(kinds); i++) { /* what memory they take at all they have taken now */
        send_kind(h, &kinds[i], 60);
        camp_combine(h->camp, 3); /* its allowance is full again */
    }
    memory = camp_memory(h->camp, true);
    for (ptrdiff_t i = 0; i < COUNT(kinds); i++) {
        send_kind(h, &kinds[i], total / (uint64_t)kinds[i].share);
        camp_combine(h->camp, 3);
    }
    be_two_faced(h);
    camp_combine(h->camp, 3);
    none_used(h, used);
    check_memory(h, memory);
    wire_close(&h->wire);
}

static void flood(hostile *h, int total)
{
    for (int i = 0; i < total; i++) {
        h->round = camp_round(h->camp);
        h->number = (uint64_t)i;
        wrong_signature(h);
        publish(h, CAMP_MALLORY);
        if (i % 5000 == 0) {
            assert_true(wire_flush(&h->wire));
            camp_combine(h->camp, 1);
        }
    }
    assert_true(wire_flush(&h->wire));
    camp_combine(h->camp, 3);
}

/* Frames as fast as the server takes them; what does not fit into the receivers' queues is dropped there. */
static void a_flood_stops_nobody(void **state)
{
    enum { FRAMES = MONTE_CARLO(20000, 5000) };
    hostile *h = *state;
    camp_enter(h->camp, &h->wire, CAMP_MALLORY);
    camp_combine(h->camp, 1);
    flood(h, FRAMES);
    long memory = camp_memory(h->camp, true);
    flood(h, 2 * FRAMES);
    for (int k = 0; k < CAMP_HONEST; k++) {
        uint64_t heard = camp_heard(h->camp, k, CAMP_MALLORY);
        CHECK(heard > 0 && heard <= UINT64_C(3) * FRAMES, "agent %d has dealt with %llu frames", k,
              (unsigned long long)heard);
        assert_int_equal(heard, camp_count(h->camp, k, CAMP_MALLORY, RFI_RATE) +
                                    camp_count(h->camp, k, CAMP_MALLORY, RFI_SIGNATURE) +
                                    camp_count(h->camp, k, CAMP_MALLORY, RFI_OLD)); /* from the store */
        assert_int_equal(camp_count(h->camp, k, CAMP_MALLORY, RFI_USED), 0);
    }
    check_memory(h, memory);
    wire_close(&h->wire);
}

/* ---- the operator of the broker, who may say anything in anybody's name ---- */

static void operator_kind(hostile *h, rfi_cause cause, uint64_t total)
{
    uint64_t before[CAMP_HONEST];
    for (int k = 0; k < CAMP_HONEST; k++) {
        before[k] = camp_count(h->camp, k, 1, cause);
    }
    for (uint64_t sent = 0; sent < total; sent++) {
        h->round = camp_round(h->camp);
        begin(h, h->round + 1);
        h->event = false;
        if (cause == RFI_SENDER) {
            sign(h); /* a good frame of another agent */
        } else {
            h->head = camp_head(h->camp, 1, h->round + 1, h->model);
            h->head.run[0] ^= cause == RFI_CONFIG; /* replayed from another run */
            h->slot += cause == RFI_SUBJECT;       /* replayed under another round */
            sign(h);                               /* with a key that is not agent 1's */
            h->size -= cause == RFI_LENGTH;
        }
        publish(h, 1);
        for (int k = 0; k < CAMP_HONEST; k += 2) {
            for (double end = camp_now() + 60; camp_count(h->camp, k, 1, cause) < before[k] + sent + 1;) {
                CHECK(camp_now() < end, "agent %d counts %llu of %llu as %s", k,
                      (unsigned long long)(camp_count(h->camp, k, 1, cause) - before[k]), (unsigned long long)sent + 1,
                      rfi_cause_text(cause));
                camp_pause();
            }
        }
    }
    for (int k = 0; k < CAMP_HONEST; k += 2) {
        assert_int_equal(camp_count(h->camp, k, 1, cause) - before[k], total);
    }
}

static void the_operator_cannot_speak_for_others(void **state)
{
    hostile *h = *state;
    camp_combine(h->camp, 1);
    camp_enter(h->camp, &h->wire, -1);
    uint64_t total = MONTE_CARLO(2000, 300);
    operator_kind(h, RFI_SENDER, total);
    operator_kind(h, RFI_CONFIG, total);
    operator_kind(h, RFI_SUBJECT, total);
    operator_kind(h, RFI_LENGTH, total);
    for (int i = 0; i < 10;
         i++) { /* as many as agent 1 is entitled to; more would cost it its own, as dropping them would */
        operator_kind(h, RFI_SIGNATURE, 1);
        camp_combine(h->camp, 1);
    }
    camp_combine(h->camp, 3);
    for (int k = 0; k < CAMP_HONEST; k++) {
        for (int l = 0; l < CAMP_HONEST; l++) {
            assert_false(h->camp->view->excluded[k][l]); /* nobody is accused of what the operator did */
        }
    }
    wire_close(&h->wire);
}

/* ---- large models ---- */

typedef struct parts {
    double model[LARGE];
    unsigned char index[8 * RFI_HASH_BYTES + RFI_CHUNK_HEAD_BYTES];
    unsigned char message[RFI_CHUNK_MIN + RFI_CHUNK_HEAD_BYTES];
} parts;

static void publish_chunk(hostile *h, uint64_t round, const char *place, const void *bytes, size_t size)
{
    char subject[64];
    (void)snprintf(subject, sizeof subject, "reef.t.p.%d.%d.%s", CAMP_MALLORY, (int)(round % RFI_RING), place);
    assert_true(wire_publish(&h->wire, subject, NULL, bytes, size));
}

/* A signed manifest whose chunks do not come, are wrong, or come one by one and too late. */
static void announce(hostile *h, parts *p, uint64_t round, int how)
{
    const rfi_shape *shape = &h->camp->file.shape;
    size_t begins = 0;
    rfi_head head = camp_head(h->camp, CAMP_MALLORY, round, p->model);
    rfi_fetch_index(shape, (const unsigned char *)p->model, p->index + RFI_CHUNK_HEAD_BYTES, head.root);
    rfi_chunk_head(p->index, round, RFI_CHUNK_INDEX);
    if (how > 0) { /* the index is right... */
        publish_chunk(h, round, "i", p->index, RFI_CHUNK_HEAD_BYTES + (size_t)head.chunks * RFI_HASH_BYTES);
        for (uint32_t number = 0; number < (how == 1 ? head.chunks : 1); number++) {
            char place[16];
            (void)snprintf(place, sizeof place, "%u", (unsigned)number);
            size_t size = rfi_fetch_part(rfi_shape_bytes(shape), shape->chunk, number, &begins);
            memcpy(p->message + RFI_CHUNK_HEAD_BYTES, (const unsigned char *)p->model + begins, size);
            p->message[RFI_CHUNK_HEAD_BYTES + 77] ^= how == 1; /* ...the chunks are not, or only the first comes */
            rfi_chunk_head(p->message, round, number);
            publish_chunk(h, round, place, p->message, RFI_CHUNK_HEAD_BYTES + size);
        }
    }
    h->event = false;
    h->slot = round;
    h->size = frames_make(h->bytes, &head, &h->camp->secrets[CAMP_MALLORY].identity, p->model);
    publish(h, CAMP_MALLORY);
}

static void models_that_never_come_are_not_waited_for(void **state)
{
    hostile *h = *state;
    parts *p = calloc(1, sizeof *p);
    for (int i = 0; i < LARGE; i++) {
        p->model[i] = 900000;
    }
    camp_enter(h->camp, &h->wire, CAMP_MALLORY);
    camp_combine(h->camp, 1);
    for (int i = 0; i < 12; i++) {
        announce(h, p, camp_round(h->camp) + 1, i % 3);
        camp_combine(h->camp, 3);
    }
    for (int k = 0; k < CAMP_HONEST; k++) {
        uint64_t unusable =
            camp_count(h->camp, k, CAMP_MALLORY, RFI_TIMEOUT) + camp_count(h->camp, k, CAMP_MALLORY, RFI_CHUNK);
        CHECK(unusable > 0, "agent %d has noticed nothing", k);
        assert_int_equal(camp_count(h->camp, k, CAMP_MALLORY, RFI_USED), 0);
        assert_int_equal(camp_count(h->camp, k, CAMP_MALLORY, RFI_STALE), 0);
    }
    wire_close(&h->wire);
    free(p);
}

/* ---- */

static int set_up_with(void **state, const camp_terms *terms)
{
    hostile *h = calloc(1, sizeof *h);
    h->camp = calloc(1, sizeof *h->camp);
    h->draws = 1;
    h->wire.socket = -1;
    camp_open(h->camp, terms);
    *state = h;
    return 0;
}

/* Nothing is stored, so that every message comes once. */
static int set_up(void **state)
{
    return set_up_with(state, &(camp_terms){.count = SMALL, .deadline = 20});
}

/* Where agent 3 is silent the first rounds wait for it until the deadline. */
static int set_up_alone(void **state)
{
    return set_up_with(state, &(camp_terms){.count = SMALL, .deadline = 1});
}

static int set_up_hasty(void **state)
{
    return set_up_with(state, &(camp_terms){.count = SMALL, .deadline = 1, .streams = true});
}

static int set_up_large(void **state)
{
    return set_up_with(state, &(camp_terms){.count = LARGE, .deadline = 1, .streams = true});
}

static int tear_down(void **state)
{
    hostile *h = *state;
    wire_close(&h->wire);
    camp_close(h->camp);
    free(h->camp);
    free(h);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hostile_frames_are_counted_and_not_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flood_stops_nobody, set_up_hasty, tear_down),
        cmocka_unit_test_setup_teardown(the_operator_cannot_speak_for_others, set_up_alone, tear_down),
        cmocka_unit_test_setup_teardown(models_that_never_come_are_not_waited_for, set_up_large, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
