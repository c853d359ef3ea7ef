/* Assembling models from chunks in any order, with loss, repetition and hostile bytes. */
#include "net/frames.h"
#include "num/rng.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 30000, CHUNKS = 4 }; /* 240 000 bytes: three chunks of 64 KiB and a short one */

typedef struct desk {
    rfi_shape shape;
    double *model;
    unsigned char got[NUMBERS * sizeof(double)];
    unsigned char index[CHUNKS * RFI_HASH_BYTES];
    unsigned char sent_index[CHUNKS * RFI_HASH_BYTES];
    unsigned char have[CHUNKS];
    unsigned char message[RFI_CHUNK_HEAD_BYTES + RFI_CHUNK_MIN];
    rfi_head head;
    rfi_fetch fetch;
} desk;

static int set_up(void **state)
{
    desk *d = calloc(1, sizeof *d);
    *state = d;
    if (!d || rfi_crypto_start(NULL) != REEF_OK) {
        return -1;
    }
    d->model = malloc(NUMBERS * sizeof(double));
    for (int i = 0; i < NUMBERS; i++) {
        d->model[i] = i * 0.5;
    }
    d->shape = frames_shape(NUMBERS);
    d->head = frames_head(&d->shape, 1, 6, d->model);
    assert_int_equal(d->head.chunks, CHUNKS);
    unsigned char root[RFI_HASH_BYTES];
    rfi_fetch_index(&d->shape, (const unsigned char *)d->model, d->sent_index, root);
    assert_memory_equal(root, d->head.root, sizeof root);
    rfi_fetch_init(&d->fetch, &d->shape, d->got, d->index, d->have);
    rfi_fetch_begin(&d->fetch, &d->head);
    return 0;
}

static int tear_down(void **state)
{
    desk *d = *state;
    free(d->model);
    free(d);
    return 0;
}

/* The message a sender publishes for a number. */
static size_t sent(desk *d, uint32_t number)
{
    size_t begin = 0;
    rfi_chunk_head(d->message, d->head.round, number);
    if (number == RFI_CHUNK_INDEX) {
        memcpy(d->message + RFI_CHUNK_HEAD_BYTES, d->sent_index, sizeof d->sent_index);
        return RFI_CHUNK_HEAD_BYTES + sizeof d->sent_index;
    }
    size_t size = rfi_fetch_part(sizeof d->got, d->shape.chunk, number, &begin);
    memcpy(d->message + RFI_CHUNK_HEAD_BYTES, (unsigned char *)d->model + begin, size);
    return RFI_CHUNK_HEAD_BYTES + size;
}

static rfi_taken take(desk *d, uint32_t number)
{
    size_t size = sent(d, number);
    return rfi_fetch_take(&d->fetch, 0, d->message, size);
}

static void asks_for_the_index_first_and_four_at_a_time(void **state)
{
    desk *d = *state;
    uint32_t number = 0;
    assert_true(rfi_fetch_want(&d->fetch, 0, &number));
    assert_int_equal(number, RFI_CHUNK_INDEX);
    assert_false(rfi_fetch_want(&d->fetch, 0.5, &number));
    assert_int_equal(take(d, RFI_CHUNK_INDEX), RFI_TAKEN_PART);
    for (uint32_t i = 0; i < RFI_FLIGHTS; i++) {
        assert_true(rfi_fetch_want(&d->fetch, 0.5, &number));
        assert_int_equal(number, i);
    }
    assert_false(rfi_fetch_want(&d->fetch, 0.5, &number));
    assert_int_equal(rfi_fetch_flying(&d->fetch, 0.5), RFI_FLIGHTS);
    assert_int_equal(take(d, 2), RFI_TAKEN_PART);
    assert_false(rfi_fetch_want(&d->fetch, 0.6, &number)); /* all were asked for */
    assert_true(rfi_fetch_want(&d->fetch, 1.5, &number));  /* lost: once more */
    assert_int_equal(number, 0);
    assert_int_equal(take(d, 3), RFI_TAKEN_PART);
    assert_int_equal(take(d, 0), RFI_TAKEN_PART);
    assert_int_equal(take(d, 1), RFI_TAKEN_DONE);
    assert_memory_equal(d->got, d->model, sizeof d->got);
    assert_false(rfi_fetch_want(&d->fetch, 9, &number));
    assert_int_equal(take(d, 1), RFI_TAKEN_NONE);
}

static void comes_together_in_any_order_with_loss_and_damage(void **state)
{
    desk *d = *state;
    for (uint32_t seed = 0; seed < 50; seed++) {
        rfi_rng rng;
        rfi_rng_init(&rng, seed, 1, 0, 0, 0);
        memset(d->got, 0, sizeof d->got);
        rfi_fetch_begin(&d->fetch, &d->head);
        double now = 0;
        bool done = false;
        for (int step = 0; step < 1000 && !done; step++, now += 0.3) {
            uint32_t number = 0;
            while (rfi_fetch_want(&d->fetch, now, &number)) {
                size_t size = sent(d, number);
                uint32_t fate = rfi_rng_below(&rng, 4);
                if (fate == 0) {
                    continue; /* lost */
                }
                if (fate == 1) {
                    d->message[16 + rfi_rng_below(&rng, (uint32_t)size - 16)] ^= 1;
                    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size), RFI_TAKEN_BAD);
                    continue;
                }
                done = rfi_fetch_take(&d->fetch, 0, d->message, size) == RFI_TAKEN_DONE;
                if (fate == 2) {
                    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size), RFI_TAKEN_NONE);
                }
            }
        }
        CHECK(done, "seed %u: not complete", seed);
        assert_memory_equal(d->got, d->model, sizeof d->got);
    }
}

static void refuses_what_is_malformed(void **state)
{
    desk *d = *state;
    size_t size = sent(d, RFI_CHUNK_INDEX);
    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, 15), RFI_TAKEN_BAD);
    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size - 1), RFI_TAKEN_BAD);
    d->message[12] = 1;
    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size), RFI_TAKEN_BAD);
    assert_int_equal(take(d, 0), RFI_TAKEN_NONE); /* before the index nothing can be checked */
    assert_int_equal(take(d, RFI_CHUNK_INDEX), RFI_TAKEN_PART);
    size = sent(d, 3);
    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size - 1), RFI_TAKEN_BAD);
    rfi_chunk_head(d->message, d->head.round, CHUNKS); /* beyond the last */
    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size), RFI_TAKEN_NONE);
    rfi_chunk_head(d->message, d->head.round, 0xFFFFFFFE);
    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size), RFI_TAKEN_NONE);
}

static void tells_a_ring_that_moved_on(void **state)
{
    desk *d = *state;
    size_t size = sent(d, RFI_CHUNK_INDEX);
    rfi_chunk_head(d->message, d->head.round - 4, RFI_CHUNK_INDEX);
    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size), RFI_TAKEN_NONE);
    for (uint64_t ahead = 1; ahead < 4; ahead++) { /* has a place of its own: fetched at the same time */
        rfi_chunk_head(d->message, d->head.round + ahead, RFI_CHUNK_INDEX);
        assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size), RFI_TAKEN_NONE);
        assert_true(d->fetch.active);
    }
    rfi_chunk_head(d->message, d->head.round + 4, RFI_CHUNK_INDEX);
    assert_int_equal(rfi_fetch_take(&d->fetch, 0, d->message, size), RFI_TAKEN_GONE);
    assert_true(d->fetch.active); /* nobody has signed that: whether it is so is for the window to know */
    assert_int_equal(take(d, RFI_CHUNK_INDEX), RFI_TAKEN_PART);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(asks_for_the_index_first_and_four_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(comes_together_in_any_order_with_loss_and_damage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_what_is_malformed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tells_a_ring_that_moved_on, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
