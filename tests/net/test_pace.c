/* How many chunks are asked for at once: as many as the line brings soon, and none kept waiting by neighbours that announce models and have no
 * chunks. */
#include "net/frames.h"
#include "net/window.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PEERS = 4, CHUNKS = 16, NUMBERS = CHUNKS * 64 * 1024 / 8, ROOM = 256 };

typedef struct request {
    ptrdiff_t peer;
    uint64_t round;
    uint32_t number;
} request;

typedef struct desk {
    rfi_window *window;
    rfi_shape shape;
    double model[NUMBERS];
    unsigned char index[CHUNKS * RFI_HASH_BYTES];
    unsigned char message[RFI_CHUNK_HEAD_BYTES + RFI_CHUNK_MIN];
    request line[ROOM]; /* asked for and not yet brought, in order */
    int waiting;
    int asked;
} desk;

static uint32_t agent_of(ptrdiff_t peer)
{
    return (uint32_t)(10 * (peer + 1));
}

static int set_up(void **state)
{
    desk *d = calloc(1, sizeof *d);
    rfi_neighbour neighbours[PEERS];
    unsigned char root[RFI_HASH_BYTES];
    *state = d;
    if (!d || rfi_crypto_start(NULL) != REEF_OK) {
        return -1;
    }
    d->shape = frames_shape(NUMBERS);
    for (ptrdiff_t l = 0; l < PEERS; l++) {
        rfi_keys keys = frames_keys(agent_of(l));
        neighbours[l] = (rfi_neighbour){.agent = agent_of(l), .weight = 0.2};
        memcpy(neighbours[l].key, keys.public_key, RFI_KEY_BYTES);
    }
    rfi_window_setup setup = {.shape = d->shape,
                              .epoch = 1,
                              .count = PEERS,
                              .neighbours = neighbours,
                              .own_weight = 0.2,
                              .malicious = 0.25,
                              .stale = 2,
                              .by = &rfi_ed25519};
    memcpy(setup.run, frames_run, sizeof setup.run);
    rfi_fetch_index(&d->shape, (const unsigned char *)d->model, d->index, root);
    return rfi_window_create(&d->window, NULL, &setup, NULL) == REEF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    desk *d = *state;
    rfi_window_destroy(&d->window);
    free(d);
    return 0;
}

static void announce(desk *d, ptrdiff_t peer, uint64_t round)
{
    unsigned char frame[RFI_MANIFEST_BYTES];
    rfi_keys keys = frames_keys(agent_of(peer));
    rfi_head head = frames_head(&d->shape, agent_of(peer), round, d->model);
    size_t size = frames_make(frame, &head, &keys, d->model);
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, agent_of(peer), round, frame, size), RFI_GOOD);
}

/* Says which round it has signed last. */
static void greet(desk *d, ptrdiff_t peer, uint64_t last)
{
    unsigned char frame[RFI_MANIFEST_BYTES];
    rfi_keys keys = frames_keys(agent_of(peer));
    rfi_head head = {
        .type = RFI_FRAME_HELLO, .flags = RFI_FLAG_INLINE, .epoch = 1, .agent = agent_of(peer), .round = last + 1};
    memcpy(head.run, frames_run, sizeof head.run);
    memcpy(head.key, keys.public_key, sizeof head.key);
    size_t size = frames_make(frame, &head, &keys, NULL);
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_EVENT, agent_of(peer), 0, frame, size), RFI_GOOD);
}

static void ask(desk *d, double now)
{
    request r;
    while (rfi_window_want(d->window, now, &r.peer, &r.round, &r.number)) {
        assert_true(d->waiting < ROOM);
        d->line[d->waiting++] = r;
        d->asked++;
    }
}

static request next(desk *d)
{
    request r = d->line[0];
    d->waiting--;
    memmove(d->line, d->line + 1, (size_t)d->waiting * sizeof *d->line);
    return r;
}

static void bring(desk *d, double now, const request *r)
{
    size_t begin = 0;
    size_t size = sizeof d->index;
    rfi_chunk_head(d->message, r->round, r->number);
    if (r->number == RFI_CHUNK_INDEX) {
        memcpy(d->message + RFI_CHUNK_HEAD_BYTES, d->index, size);
    } else {
        size = rfi_fetch_part(sizeof d->model, d->shape.chunk, r->number, &begin);
        memcpy(d->message + RFI_CHUNK_HEAD_BYTES, (const unsigned char *)d->model + begin, size);
    }
    (void)rfi_window_chunk(d->window, now, agent_of(r->peer), d->message, RFI_CHUNK_HEAD_BYTES + size);
}

static bool is_there(const desk *d, ptrdiff_t peer)
{
    return rfi_window_row(d->window, peer, 1).model != NULL;
}

/* The first two have the index of each of two models, as it was signed, and no chunks. */
static void who_has_no_chunks_keeps_nobody_waiting(void **state)
{
    desk *d = *state;
    for (ptrdiff_t l = 0; l < PEERS; l++) {
        announce(d, l, 1);
    }
    announce(d, 0, 2);
    announce(d, 1, 2);
    for (ask(d, 0); d->waiting > 0; ask(d, 0)) { /* no time passes */
        request r = next(d);
        if (r.peer >= 2 || r.number == RFI_CHUNK_INDEX) {
            bring(d, 0, &r);
        } else {
            rfi_window_vain(d->window, agent_of(r.peer), r.round, r.number);
        }
    }
    assert_true(is_there(d, 2) && is_there(d, 3));
    assert_false(is_there(d, 0) || is_there(d, 1));
    double now = 0;
    int asked = d->asked; /* they are asked again, less and less often */
    for (; now < 60; now += 0.1) {
        for (ask(d, now); d->waiting > 0;) {
            request r = next(d);
            rfi_window_vain(d->window, agent_of(r.peer), r.round, r.number);
        }
    }
    double most = 2.0 * 2 * RFI_FLIGHTS * (60 / RFI_FLIGHT_SECONDS_MAX + 2);
    CHECK(d->asked > asked && d->asked - asked <= (int)most, "%d", d->asked - asked);
}

/* A line that brings three chunks a second: less is under way, and next to nothing is asked for twice. */
static void a_thin_line_is_not_filled(void **state)
{
    desk *d = *state;
    const double each = 1.0 / 3;
    double brings_at = each;
    int most = 0;
    for (ptrdiff_t l = 0; l < PEERS; l++) {
        announce(d, l, 1);
    }
    double now = 0;
    for (; now < 120 && !(is_there(d, 0) && is_there(d, 1) && is_there(d, 2) && is_there(d, 3)); now += 0.01) {
        ask(d, now);
        if (d->waiting == 0) {
            brings_at = now + each;
        } else if (now >= brings_at) {
            request r = next(d);
            bring(d, now, &r);
            brings_at += each;
        }
        most = now > 10 && d->waiting > most ? d->waiting : most;
    }
    CHECK(now < 120, "the models have not come");
    CHECK(d->asked <= PEERS * (CHUNKS + 1) + 16, "%d chunks were asked for", d->asked);
    CHECK(most <= 4, "%d chunks under way", most);
}

/* And where they come at once, up to sixteen are under way. */
static void a_fast_line_is_used(void **state)
{
    desk *d = *state;
    int most = 0;
    for (ptrdiff_t l = 0; l < PEERS; l++) {
        announce(d, l, 1);
    }
    for (double now = 0; now < 20; now += 0.1) {
        ask(d, now);
        most = d->waiting > most ? d->waiting : most;
        while (d->waiting > 0) {
            request r = next(d);
            bring(d, now, &r);
        }
    }
    assert_true(is_there(d, 0) && is_there(d, 1) && is_there(d, 2) && is_there(d, 3));
    assert_int_equal(most, RFI_FLIGHTS_ALL);
    assert_int_equal(d->asked, PEERS * (CHUNKS + 1));
}

/* What comes in place of a chunk when a later round has taken its place in the ring. */
static void say_gone(desk *d, double now, const request *r)
{
    rfi_chunk_head(d->message, r->round + RFI_RING, r->number);
    assert_int_equal(
        rfi_window_chunk(d->window, now, agent_of(r->peer), d->message, RFI_CHUNK_HEAD_BYTES + RFI_CHUNK_MIN),
        RFI_REPEAT);
    rfi_window_vain(d->window, agent_of(r->peer), r->round, r->number);
}

/* One of two brokers answers everything so, and is the faster one. */
static void one_broker_does_not_end_what_another_brings(void **state)
{
    desk *d = *state;
    for (ptrdiff_t l = 0; l < PEERS; l++) {
        announce(d, l, 1);
    }
    for (ask(d, 0); d->waiting > 0; ask(d, 0)) {
        request r = next(d);
        say_gone(d, 0, &r);
        bring(d, 0, &r);
    }
    for (ptrdiff_t l = 0; l < PEERS; l++) {
        assert_true(is_there(d, l));
        assert_int_equal(d->window->peers[l].counts[RFI_GONE], 0);
    }
}

/* Whoever has signed the later round has taken the place: nothing more of the earlier one is asked for. */
static void what_its_sender_has_replaced_is_gone(void **state)
{
    desk *d = *state;
    const rfi_peer *peers = d->window->peers;
    announce(d, 0, 1);
    announce(d, 1, 1);
    greet(d, 0, 1 + RFI_RING - 1);
    for (int over = 0; over < 2; over++) {
        for (ask(d, 10 * over); d->waiting > 0;) {
            request r = next(d);
            say_gone(d, 10 * over, &r);
        }
        assert_int_equal(d->asked, 2 * (over + 1));
        assert_int_equal(peers[0].counts[RFI_GONE], over);
        assert_int_equal(peers[1].counts[RFI_GONE], 0);
        greet(d, 0, 1 + RFI_RING);
    }
    ask(d, 20);
    assert_int_equal(d->asked, 2 * 2 + 1); /* of the other one, who has signed no more */
    assert_int_equal(d->line[0].peer, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_has_no_chunks_keeps_nobody_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thin_line_is_not_filled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_fast_line_is_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_broker_does_not_end_what_another_brings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_its_sender_has_replaced_is_gone, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
