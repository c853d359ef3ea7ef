/* What an agent holds of its neighbours: each check in its order, claims, rows, rates, and memory taken once. */
#include "net/frames.h"
#include "support/alloc.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PEERS = 4, NUMBERS = 3 };
#define FRAME (RFI_MANIFEST_BYTES + NUMBERS * sizeof(double))

typedef struct desk {
    rfi_keys keys[PEERS];
    rfi_neighbour neighbours[PEERS]; /* agents 10, 20, 30, 40 of weight 0.2 each */
    rfi_window_setup setup;
    rfi_window *window;
} desk;

static uint32_t agent_of(ptrdiff_t peer)
{
    return (uint32_t)(10 * (peer + 1));
}

static int set_up(void **state)
{
    desk *d = calloc(1, sizeof *d);
    *state = d;
    if (rfi_crypto_start(NULL) != REEF_OK) {
        return -1;
    }
    for (ptrdiff_t l = 0; l < PEERS; l++) {
        d->keys[l] = frames_keys(agent_of(l));
        d->neighbours[l] = (rfi_neighbour){.agent = agent_of(l), .weight = 0.2};
        memcpy(d->neighbours[l].key, d->keys[l].public_key, RFI_KEY_BYTES);
    }
    d->setup = (rfi_window_setup){.shape = frames_shape(NUMBERS),
                                  .epoch = 1,
                                  .count = PEERS,
                                  .neighbours = d->neighbours,
                                  .own_weight = 0.2,
                                  .malicious = 0.25,
                                  .stale = 2,
                                  .by = &rfi_ed25519};
    memcpy(d->setup.run, frames_run, sizeof d->setup.run);
    reef_error error = {REEF_OK, ""};
    reef_status status = rfi_window_create(&d->window, NULL, &d->setup, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    return 0;
}

static int tear_down(void **state)
{
    desk *d = *state;
    rfi_window_destroy(&d->window);
    free(d);
    return 0;
}

static rfi_head head_of(const desk *d, ptrdiff_t peer, uint64_t round, const double *model)
{
    return frames_head(&d->setup.shape, agent_of(peer), round, model);
}

static rfi_cause give(desk *d, double now, ptrdiff_t peer, const rfi_head *head, const double *model)
{
    unsigned char frame[FRAME];
    size_t size = frames_make(frame, head, &d->keys[peer], model);
    rfi_frame_place place = head->type == RFI_FRAME_MODEL ? RFI_PLACE_SLOT : RFI_PLACE_EVENT;
    return rfi_window_frame(d->window, now, place, agent_of(peer), head->round, frame, size);
}

static rfi_cause send(desk *d, double now, ptrdiff_t peer, uint64_t round, double value)
{
    const double model[NUMBERS] = {value, value, value};
    rfi_head head = head_of(d, peer, round, model);
    return give(d, now, peer, &head, model);
}

static rfi_cause greet(desk *d, double now, ptrdiff_t peer, rfi_frame_type type, uint64_t next)
{
    rfi_head head = {.type = type, .flags = RFI_FLAG_INLINE, .epoch = 1, .agent = agent_of(peer), .round = next};
    memcpy(head.run, frames_run, sizeof head.run);
    memcpy(head.key, d->keys[peer].public_key, sizeof head.key);
    return give(d, now, peer, &head, NULL);
}

/* The row of a round as its first number; 0 if absent. */
static double row(const desk *d, ptrdiff_t peer, uint64_t round)
{
    rfi_row got = rfi_window_row(d->window, peer, round);
    return got.model ? *(const double *)got.model : 0;
}

static void takes_the_row_of_the_round_or_the_newest_near_it(void **state)
{
    desk *d = *state;
    rfi_window_advance(d->window, 5);
    assert_int_equal(send(d, 0, 0, 3, 3), RFI_GOOD);
    CHECK_CLOSE(row(d, 0, 5), 3, 0, "two rounds old");
    CHECK_CLOSE(row(d, 0, 6), 0, 0, "three rounds old");
    assert_int_equal(send(d, 0, 0, 6, 6), RFI_GOOD);
    CHECK_CLOSE(row(d, 0, 5), 6, 0, "one ahead");
    assert_int_equal(send(d, 0, 0, 5, 5.5), RFI_GOOD);
    CHECK_CLOSE(row(d, 0, 5), 5.5, 0, "of the round");
    assert_int_equal(rfi_window_row(d->window, 0, 5).age, 0);
    CHECK_CLOSE(row(d, 0, 6), 6, 0, "the next is held");
    assert_int_equal(send(d, 0, 0, 7, 7), RFI_GOOD); /* no room: both places are wanted more */
    CHECK_CLOSE(row(d, 0, 5), 5.5, 0, "of the round");
    rfi_window_advance(d->window, 7);
    CHECK_CLOSE(row(d, 0, 7), 6, 0, "the newest");
    assert_int_equal(send(d, 0, 0, 7, 7), RFI_GOOD); /* known, but its payload is wanted now */
    CHECK_CLOSE(row(d, 0, 7), 7, 0, "of the round");
    assert_int_equal(send(d, 0, 0, 7, 7), RFI_REPEAT);
    rfi_window_advance(d->window, 10);
    CHECK_CLOSE(row(d, 0, 10), 0, 0, "too old");
}

/* Each refusal, in the order of the checks: every case repairs the one before, so the later check alone refuses. */
static void refuses_in_order(void **state)
{
    desk *d = *state;
    const double model[NUMBERS] = {1, 2, 3};
    unsigned char frame[FRAME];
    rfi_window_advance(d->window, 5);
    rfi_head head = head_of(d, 0, 5, model);
    size_t size = frames_make(frame, &head, &d->keys[0], model);
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 11, 5, frame, size), RFI_SENDER);
    assert_int_equal(d->window->strangers, 1);
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 10, 5, frame, size - 1), RFI_LENGTH);
    frame[4] = 9;
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 10, 5, frame, size), RFI_FORMAT);
    frame[4] = 1;
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_EVENT, 10, 5, frame, size), RFI_FORMAT);
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 20, 5, frame, size), RFI_SENDER);
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 10, 6, frame, size), RFI_SUBJECT);

    rfi_head other = head;
    other.epoch = 2;
    assert_int_equal(give(d, 0, 0, &other, model), RFI_CONFIG);
    other = head;
    other.run[5] ^= 1;
    assert_int_equal(give(d, 0, 0, &other, model), RFI_CONFIG);
    other = head_of(d, 0, 2, model);
    assert_int_equal(give(d, 0, 0, &other, model), RFI_OLD);
    other = head;
    other.layout[0] = 1;
    assert_int_equal(give(d, 0, 0, &other, model), RFI_SHAPE);
    other = head;
    other.count = 2;
    assert_int_equal(give(d, 0, 0, &other, model), RFI_SHAPE);
    frame[RFI_HEAD_BYTES] ^= 1;
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 10, 5, frame, size), RFI_SIGNATURE);
    frame[RFI_HEAD_BYTES] ^= 1;
    frame[RFI_MANIFEST_BYTES] ^= 1; /* the payload: a good copy may still come */
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 10, 5, frame, size), RFI_CHUNK);
    CHECK_CLOSE(row(d, 0, 5), 0, 0, "absent");
    frame[RFI_MANIFEST_BYTES] ^= 1;
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 10, 5, frame, size), RFI_GOOD);
    CHECK_CLOSE(row(d, 0, 5), 1, 0, "present");
    assert_int_equal(d->window->peers[0].counts[RFI_CONFIG], 2);
    assert_int_equal(d->window->peers[0].counts[RFI_SHAPE], 2);
    assert_int_equal(d->window->peers[1].counts[RFI_SENDER], 1);
}

/* Bytes that do not verify leave nothing but counters and the allowance of that sender. */
static void forgeries_change_counters_only(void **state)
{
    desk *d = *state;
    const double model[NUMBERS] = {1, 2, 3};
    unsigned char frame[FRAME];
    rfi_window_advance(d->window, 5);
    assert_int_equal(send(d, 0, 0, 5, 4), RFI_GOOD);
    rfi_peer before = d->window->peers[0];
    for (uint64_t round = 3; round < 100; round += 7) {
        rfi_head head = head_of(d, 0, round, model);
        size_t size = frames_make(frame, &head, &d->keys[1], model); /* signed by another */
        rfi_cause cause = rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 10, round, frame, size);
        assert_true(cause == RFI_SIGNATURE || cause == RFI_RATE);
    }
    rfi_peer *after = &d->window->peers[0];
    memcpy(before.counts, after->counts, sizeof before.counts);
    memcpy(before.allowances, after->allowances, sizeof before.allowances);
    assert_memory_equal(&before, after, sizeof before);
    assert_int_equal(after->claim, 5);
}

/* One broker forges as fast as it can; what comes by another is looked at all the same. */
static void a_broker_that_forges_uses_up_its_own_allowance(void **state)
{
    desk *d = *state;
    const double model[NUMBERS] = {1, 2, 3};
    unsigned char frame[FRAME];
    rfi_head head = head_of(d, 0, 0, model);
    size_t size = frames_make(frame, &head, &d->keys[1], model);
    int verified = 0;
    d->window->way = 1;
    for (int i = 0; i < 1000; i++) {
        verified += rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, 10, 0, frame, size) == RFI_SIGNATURE;
    }
    assert_int_equal(verified, (int)RFI_TOKENS_MAX);
    assert_int_equal(send(d, 0, 0, 0, 4), RFI_RATE);
    d->window->way = 2;
    assert_int_equal(send(d, 0, 0, 0, 4), RFI_GOOD);
    d->window->way = 0;
}

static void values_that_are_no_numbers_are_refused_once(void **state)
{
    desk *d = *state;
    const double bad[] = {(double)NAN, (double)INFINITY, 1e7};
    for (uint64_t i = 0; i < 3; i++) {
        rfi_window_advance(d->window, i);
        assert_int_equal(send(d, 0, 0, i, bad[i]), RFI_VALUE);
        assert_int_equal(send(d, 0, 0, i, bad[i]), RFI_REPEAT);
        CHECK_CLOSE(row(d, 0, i), 0, 0, "no row");
    }
}

static void verification_is_rationed(void **state)
{
    desk *d = *state;
    int verified = 0;
    for (uint64_t round = 3; round < 103; round++) {
        verified += send(d, 0, 0, round, 1) == RFI_FUTURE;
    }
    assert_int_equal(verified, 8);
    assert_int_equal(send(d, 0, 1, 0, 1), RFI_GOOD); /* others are not concerned */
    assert_int_equal(send(d, 0.4, 0, 0, 1), RFI_RATE);
    assert_int_equal(send(d, 0.6, 0, 0, 1), RFI_GOOD);
    rfi_window_advance(d->window, 1);
    verified = 0;
    for (uint64_t round = 200; round < 300; round++) {
        verified += send(d, 0.6, 0, round, 1) == RFI_FUTURE;
    }
    assert_int_equal(verified, 4);
    CHECK(d->window->peers[0].counts[RFI_RATE] == 92 + 1 + 96, "%llu",
          (unsigned long long)d->window->peers[0].counts[RFI_RATE]);
}

/* An agent that had no processor for a while, or waits for its user's model, finds what its neighbours have signed meanwhile all at once.
 * They have done nothing wrong, and it learns where they are. */
static void what_has_piled_up_is_no_offence(void **state)
{
    desk *d = *state;
    for (uint64_t round = 0; round < 50; round++) {
        (void)send(d, 0, 0, round, 1);
    }
    assert_true(d->window->peers[0].counts[RFI_RATE] > 0);
    assert_int_equal(rfi_offences(&d->window->peers[0]), 0);
    assert_int_equal(send(d, 1, 0, 50, 1), RFI_FUTURE);
    assert_int_equal(d->window->peers[0].claim, 50);
}

static void two_models_for_a_round_exclude(void **state)
{
    desk *d = *state;
    assert_int_equal(send(d, 0, 0, 1, 1), RFI_GOOD);
    assert_int_equal(send(d, 0, 0, 1, 2), RFI_TWO_FACED);
    assert_true(rfi_frame_proves(d->window->peers[0].proof[0], d->window->peers[0].proof[1], &rfi_ed25519));
    assert_int_equal(send(d, 0, 0, 2, 2), RFI_EXCLUDED);
    CHECK_CLOSE(row(d, 0, 1), 0, 0, "no row any more");
    assert_true(rfi_window_settled(d->window, 0, 1, false));
    assert_int_equal(send(d, 0, 1, 50, 1), RFI_FUTURE); /* and beyond the window as well */
    assert_int_equal(send(d, 0, 1, 50, 2), RFI_TWO_FACED);
    assert_true(d->window->peers[1].excluded);
    assert_int_equal(rfi_window_claimed(d->window), -1);
    /* who starts now, or again with the proofs on its disk, does not wait for them for ever */
    CHECK_CLOSE(rfi_window_heard(d->window), 0.6, 1e-12, "excluded neighbours were there");
    d->window->peers[0].heard = d->window->peers[1].heard = false;
    CHECK_CLOSE(rfi_window_heard(d->window), 0.6, 1e-12, "excluded before the start");
}

/* F is 0.25, everybody has 0.2: three of four must claim a round, so that with this agent more than 2 F of the weight is honest there. */
static void claims_need_the_weight_of_a_quorum(void **state)
{
    desk *d = *state;
    assert_int_equal(rfi_window_claimed(d->window), -1);
    assert_int_equal(send(d, 0, 0, 1000, 1), RFI_FUTURE);
    assert_int_equal(greet(d, 0, 1, RFI_FRAME_HELLO, 8), RFI_GOOD);
    assert_int_equal(rfi_window_claimed(d->window), -1);
    assert_int_equal(greet(d, 0, 2, RFI_FRAME_HELLO, 0), RFI_GOOD);
    assert_int_equal(rfi_window_claimed(d->window), -1);
    CHECK_CLOSE(rfi_window_heard(d->window), 0.8, 1e-12, "heard");
    assert_int_equal(greet(d, 0, 2, RFI_FRAME_HELLO, 21), RFI_GOOD);
    assert_int_equal(rfi_window_claimed(d->window), 7);
    assert_int_equal(greet(d, 0, 3, RFI_FRAME_HELLO, 15), RFI_GOOD);
    assert_int_equal(rfi_window_claimed(d->window), 14);
    assert_int_equal(greet(d, 0, 2, RFI_FRAME_HELLO, 3), RFI_GOOD); /* an old greeting takes nothing back */
    assert_int_equal(rfi_window_claimed(d->window), 14);
}

/* No more is asked than honest neighbours can give: with F = 0.45 that is 1 - 0.2 - 0.45, and never less than F. */
static void claims_of_the_honest_are_enough(void **state)
{
    desk *d = *state;
    d->window->setup.malicious = 0.45;
    assert_int_equal(greet(d, 0, 0, RFI_FRAME_HELLO, 8), RFI_GOOD);
    assert_int_equal(greet(d, 0, 1, RFI_FRAME_HELLO, 8), RFI_GOOD);
    assert_int_equal(rfi_window_claimed(d->window), -1);
    assert_int_equal(greet(d, 0, 2, RFI_FRAME_HELLO, 8), RFI_GOOD);
    assert_int_equal(rfi_window_claimed(d->window), 7);
}

static void waits_for_nobody_who_has_gone(void **state)
{
    desk *d = *state;
    assert_false(rfi_window_settled(d->window, 0, 0, false));
    assert_int_equal(greet(d, 0, 0, RFI_FRAME_BYE, 0), RFI_GOOD);
    assert_true(rfi_window_settled(d->window, 0, 0, false));
    assert_int_equal(greet(d, 0, 0, RFI_FRAME_HELLO, 0), RFI_GOOD);
    assert_false(rfi_window_settled(d->window, 0, 0, false));
    assert_int_equal(greet(d, 0, 0, RFI_FRAME_HELLO, 2), RFI_GOOD); /* it has gone on to round 1 */
    assert_false(rfi_window_settled(d->window, 0, 0, false)); /* but nothing of it is here to stand for this one */
    assert_int_equal(send(d, 0, 0, 1, 1), RFI_GOOD);
    assert_true(rfi_window_settled(d->window, 0, 0, false));
    assert_false(rfi_window_settled(d->window, 0, 0, true));
    assert_int_equal(greet(d, 0, 0, RFI_FRAME_BYE, 1), RFI_GOOD); /* replayed: it was heard of since */
    assert_false(d->window->peers[0].left);
}

static void a_frame_further_ahead_serves_as_a_row(void **state)
{
    desk *d = *state;
    assert_int_equal(send(d, 0, 0, 9, 9), RFI_FUTURE);
    assert_int_equal(send(d, 0, 0, 9, 9), RFI_REPEAT);
    CHECK_CLOSE(row(d, 0, 0), 9, 0, "row of one who is ahead");
    assert_int_equal(send(d, 0, 0, 30, 30), RFI_FUTURE);
    assert_int_equal(send(d, 0, 0, 20, 20), RFI_FUTURE); /* not the newest: not kept */
    CHECK_CLOSE(row(d, 0, 0), 30, 0, "the newest");
    assert_int_equal(send(d, 0, 0, 0, 0.5), RFI_GOOD);
    CHECK_CLOSE(row(d, 0, 0), 0.5, 0, "that of the round before all others");
    rfi_window_advance(d->window, 29);
    CHECK_CLOSE(row(d, 0, 29), 30, 0, "still held");
    assert_int_equal(send(d, 0, 0, 30, 30), RFI_REPEAT);
    d->window->peers[0].slots[0].state = d->window->peers[0].slots[1].state = RFI_SLOT_EMPTY;
    assert_int_equal(send(d, 0, 0, 30, 30), RFI_GOOD);
    CHECK_CLOSE(row(d, 0, 30), 30, 0, "taken again without its signature");
    assert_int_equal(send(d, 0, 0, 30, 8), RFI_TWO_FACED);
}

static void memory_is_what_was_said(void **state)
{
    desk *d = *state;
    alloc_log log = {.fail_at = -1};
    reef_context *context = alloc_context(&log, 1);
    size_t base = log.held;
    rfi_window *window = NULL;
    reef_error error;
    assert_int_equal(rfi_window_create(&window, context, &d->setup, &error), REEF_OK);
    assert_int_equal(log.held - base, rfi_window_bytes(&d->setup));
    rfi_window_destroy(&window);
    log.fail_at = log.total;
    assert_int_equal(rfi_window_create(&window, context, &d->setup, &error), REEF_E_NOMEM);
    log.fail_at = -1;
    reef_context_destroy(&context);
}

static void setups_are_checked(void **state)
{
    desk *d = *state;
    reef_error error;
    rfi_window_setup setup = d->setup;
    setup.malicious = 0.5;
    assert_int_equal(rfi_window_check(&setup, &error), REEF_E_RANGE);
    setup.malicious = (double)NAN;
    assert_int_equal(rfi_window_check(&setup, &error), REEF_E_RANGE);
    setup = d->setup;
    setup.own_weight = 0.3;
    assert_int_equal(rfi_window_check(&setup, &error), REEF_E_WEIGHTS);
    setup = d->setup;
    setup.stale = 3;
    assert_int_equal(rfi_window_check(&setup, &error), REEF_E_RANGE);
    setup = d->setup;
    setup.count = 0;
    assert_int_equal(rfi_window_check(&setup, &error), REEF_E_GRAPH);
    d->neighbours[1].agent = 10;
    assert_int_equal(rfi_window_check(&d->setup, &error), REEF_E_ARG);
}

/* A model in chunks: fetched when its manifest comes, given up at the deadline, and fetched again when its round has come. */
static void large_models_are_fetched(void **state)
{
    desk *d = *state;
    enum { LARGE = 20000 };
    static double model[LARGE];
    static unsigned char message[RFI_CHUNK_HEAD_BYTES + RFI_CHUNK_MIN];
    static unsigned char index[3 * RFI_HASH_BYTES];
    rfi_window *window = NULL;
    rfi_window_setup setup = d->setup;
    setup.shape = frames_shape(LARGE);
    assert_int_equal(rfi_window_create(&window, NULL, &setup, NULL), REEF_OK);
    for (int i = 0; i < LARGE; i++) {
        model[i] = i;
    }
    unsigned char frame[RFI_MANIFEST_BYTES];
    unsigned char root[RFI_HASH_BYTES];
    rfi_head head = frames_head(&setup.shape, 10, 1, model);
    size_t size = frames_make(frame, &head, &d->keys[0], model);
    rfi_fetch_index(&setup.shape, (const unsigned char *)model, index, root);
    assert_int_equal(rfi_window_frame(window, 0, RFI_PLACE_SLOT, 10, 1, frame, size), RFI_GOOD);
    assert_int_equal(rfi_window_frame(window, 0, RFI_PLACE_SLOT, 10, 1, frame, size), RFI_REPEAT);
    assert_false(rfi_window_settled(window, 0, 1, false));
    ptrdiff_t peer = -1;
    uint64_t round = 0;
    uint32_t number = 0;
    double now = 0;
    int asked = 0;
    for (; rfi_window_want(window, now, &peer, &round, &number); asked++) {
        assert_int_equal(peer, 0);
        assert_int_equal(round, 1);
        rfi_chunk_head(message, round, number);
        size_t begin = 0;
        size_t part = sizeof index;
        if (number == RFI_CHUNK_INDEX) {
            memcpy(message + RFI_CHUNK_HEAD_BYTES, index, part);
        } else {
            part = rfi_fetch_part(sizeof model, setup.shape.chunk, number, &begin);
            memcpy(message + RFI_CHUNK_HEAD_BYTES, (unsigned char *)model + begin, part);
        }
        if (asked == 1) { /* given up once: the manifest stays known, and the next round asks anew */
            rfi_window_give_up(window, 1);
            assert_int_equal(window->peers[0].counts[RFI_TIMEOUT], 1);
            assert_false(rfi_window_want(window, now, &peer, &round, &number));
            rfi_window_advance(window, 1);
            continue;
        }
        assert_int_equal(rfi_window_chunk(window, 0, 10, message, RFI_CHUNK_HEAD_BYTES + part), RFI_GOOD);
    }
    assert_int_equal(asked, 2 + 4);
    rfi_row got = rfi_window_row(window, 0, 1);
    assert_non_null(got.model);
    assert_memory_equal(got.model, model, sizeof model);
    assert_false(rfi_window_fetching(window));
    rfi_window_destroy(&window);
}

/* A head as the file of epoch 2 has it, which holds from round 7 on. */
static rfi_head head_of_next(const desk *d, ptrdiff_t peer, uint64_t round, const double *model)
{
    rfi_head head = head_of(d, peer, round, model);
    head.epoch = 2;
    head.run[0] ^= 1;
    return head;
}

static rfi_edition next_edition(void)
{
    rfi_edition next = {.known = true, .epoch = 2, .from = 7};
    memcpy(next.run, frames_run, sizeof next.run);
    next.run[0] ^= 1;
    return next;
}

static void frames_of_the_next_epoch_say_where_others_are(void **state)
{
    desk *d = *state;
    const double model[NUMBERS] = {1, 1, 1};
    const rfi_edition next = next_edition();
    rfi_window_advance(d->window, 5);
    rfi_head head = head_of_next(d, 0, 7, model);
    assert_int_equal(give(d, 0, 0, &head, model), RFI_CONFIG); /* of a file that is not known */
    assert_int_equal(d->window->peers[0].claim, -1);
    rfi_window_expect(d->window, &next);
    assert_false(rfi_window_outgrown(d->window, 6));
    assert_true(rfi_window_outgrown(d->window, 7));
    d->keys[0].secret[3] ^= 1;
    assert_int_equal(give(d, 0, 0, &head, model), RFI_SIGNATURE);
    d->keys[0].secret[3] ^= 1;
    assert_int_equal(d->window->peers[0].claim, -1);
    for (ptrdiff_t l = 0; l < PEERS; l++) {
        head = head_of_next(d, l, 8, model);
        assert_int_equal(give(d, 1, l, &head, model), RFI_FUTURE);
        assert_int_equal(d->window->peers[l].claim, 8);
        CHECK_CLOSE(row(d, l, 7), 0, 0, "nothing of it is kept");
    }
    assert_int_equal(rfi_window_claimed(d->window), 8);
    head = head_of_next(d, 0, 6, model); /* a round of this epoch under the file of the next */
    assert_int_equal(give(d, 1, 0, &head, model), RFI_CONFIG);
    head = head_of_next(d, 0, 9, model);
    head.run[1] ^= 1; /* another file for that epoch */
    assert_int_equal(give(d, 1, 0, &head, model), RFI_CONFIG);
    assert_false(d->window->peers[0].excluded);
}

static void the_next_epoch_takes_over_what_is_held(void **state)
{
    desk *d = *state;
    const double model[NUMBERS] = {4, 4, 4};
    rfi_window *old = d->window;
    rfi_window_advance(old, 6);
    assert_int_equal(send(d, 0, 1, 6, 6.5), RFI_GOOD);
    assert_int_equal(send(d, 0, 1, 8, 8.5), RFI_GOOD); /* by somebody who does not know of the next epoch yet */
    assert_int_equal(send(d, 0, 2, 6, 1), RFI_GOOD);
    assert_int_equal(send(d, 0, 2, 6, 2), RFI_TWO_FACED);
    const rfi_edition next = next_edition();
    rfi_window_setup setup = d->setup; /* neighbour 0 has left, and the others have more weight */
    setup.epoch = next.epoch;
    setup.from = next.from;
    memcpy(setup.run, next.run, sizeof setup.run);
    memcpy(setup.before, frames_run, sizeof setup.before);
    setup.count--;
    setup.neighbours++;
    setup.own_weight += 0.2;
    reef_error error = {REEF_OK, ""};
    assert_int_equal(rfi_window_create(&d->window, NULL, &setup, &error), REEF_OK);
    rfi_window_inherit(d->window, old);
    rfi_window_destroy(&old);
    assert_int_equal(d->window->round, 6);
    assert_int_equal(d->window->peers[0].who.agent, agent_of(1));
    assert_int_equal(d->window->peers[0].claim, 8);
    CHECK_CLOSE(row(d, 0, 7), 6.5, 0, "the model of the epoch before serves");
    CHECK_CLOSE(row(d, 0, 8), 6.5, 0, "what was signed for round 8 was signed under the wrong file");
    assert_true(d->window->peers[1].excluded);
    assert_int_equal(d->window->peers[1].counts[RFI_TWO_FACED], 1);
    assert_true(rfi_window_is_ours(d->window, frames_run));
    assert_true(rfi_window_is_ours(d->window, next.run));
    /* it hears frames of the new file; old ones offend nobody, rounds before the epoch do */
    rfi_head head = head_of_next(d, 1, 8, model);
    assert_int_equal(give(d, 1, 1, &head, model), RFI_GOOD);
    CHECK_CLOSE(row(d, 0, 8), 4, 0, "its model");
    assert_int_equal(send(d, 1, 1, 9, 1), RFI_OLD);
    assert_false(rfi_is_offence(RFI_OLD));
    head = head_of_next(d, 1, 6, model);
    assert_int_equal(give(d, 1, 1, &head, model), RFI_CONFIG);
    /* whoever was removed may go on, under either file: nobody hears it */
    assert_int_equal(send(d, 1, 0, 7, 1), RFI_SENDER);
    head = head_of_next(d, 0, 7, model);
    assert_int_equal(give(d, 1, 0, &head, model), RFI_SENDER);
    assert_int_equal(d->window->strangers, 2);
    assert_int_equal(rfi_window_claimed(d->window), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(takes_the_row_of_the_round_or_the_newest_near_it),
        TEST(refuses_in_order),
        TEST(forgeries_change_counters_only),
        TEST(a_broker_that_forges_uses_up_its_own_allowance),
        TEST(values_that_are_no_numbers_are_refused_once),
        TEST(verification_is_rationed),
        TEST(what_has_piled_up_is_no_offence),
        TEST(frames_of_the_next_epoch_say_where_others_are),
        TEST(the_next_epoch_takes_over_what_is_held),
        TEST(two_models_for_a_round_exclude),
        TEST(claims_need_the_weight_of_a_quorum),
        TEST(claims_of_the_honest_are_enough),
        TEST(waits_for_nobody_who_has_gone),
        TEST(a_frame_further_ahead_serves_as_a_row),
        TEST(memory_is_what_was_said),
        TEST(setups_are_checked),
        TEST(large_models_are_fetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
