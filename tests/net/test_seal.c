/* Sealed models: who opens them, and what becomes of those that do not open. Every byte of a frame is somebody's to change. */
#include "net/frames.h"
#include "support/check.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 5, LARGE = 20000, CHUNKS = 3, SENDER = 1, SELF = 2, ROUND = 6, HEARERS = 3 };
#define PARTS (SMALL * sizeof(double) + RFI_SEAL_BYTES)
#define BOXES ((size_t)HEARERS * RFI_SEALED_BOX)
#define FRAME (RFI_MANIFEST_BYTES + PARTS + BOXES)
#define INDEX ((size_t)CHUNKS * RFI_HASH_BYTES + BOXES)
#define SENT (LARGE * sizeof(double) + (size_t)CHUNKS * RFI_SEAL_BYTES)

static const uint32_t hearing[HEARERS] = {0, SELF, 5};

/* Agent 1 seals for 0, 2 and 5; the window is agent 2's. */
typedef struct desk {
    rfi_keys sender, self;
    rfi_opener opener;
    rfi_hearer hearers[HEARERS];
    rfi_shape shape;
    double model[SMALL];
    rfi_head head;
    unsigned char frame[FRAME + RFI_SEALED_BOX];
    size_t size;
    rfi_window *window;
    rfi_shape large_shape;
    rfi_head large_head;
    double large[LARGE];
    unsigned char sent[SENT];
    unsigned char index[INDEX];
    unsigned char manifest[RFI_MANIFEST_BYTES];
    unsigned char message[RFI_CHUNK_HEAD_BYTES + RFI_CHUNK_MIN + RFI_SEAL_BYTES];
} desk;

static unsigned char *parts_of(desk *d)
{
    return d->frame + RFI_MANIFEST_BYTES;
}

static unsigned char *boxes_of(desk *d)
{
    return parts_of(d) + PARTS;
}

static rfi_window *make_window(const desk *d, const rfi_shape *shape)
{
    rfi_window *window = NULL;
    reef_error error = {REEF_OK, ""};
    rfi_neighbour neighbours[2] = {{.agent = 0, .weight = 1.0 / 3}, {.agent = SENDER, .weight = 1.0 / 3}};
    memcpy(neighbours[1].key, d->sender.public_key, RFI_KEY_BYTES);
    rfi_window_setup setup = {.shape = *shape,
                              .epoch = 1,
                              .count = 2,
                              .neighbours = neighbours,
                              .own_weight = 1.0 / 3,
                              .malicious = 0.2,
                              .stale = 1,
                              .by = &rfi_ed25519,
                              .agent = SELF,
                              .keys = &d->self};
    memcpy(setup.run, frames_run, sizeof setup.run);
    CHECK(rfi_window_create(&window, NULL, &setup, &error) == REEF_OK, "%s", error.text);
    rfi_window_advance(window, ROUND);
    return window;
}

static void seal_large(desk *d)
{
    d->large_shape = frames_shape(LARGE);
    d->large_head = frames_head(&d->large_shape, SENDER, ROUND, d->large);
    d->large_shape.sealed = true;
    d->large_head.payload = rfi_shape_payload(&d->large_shape);
    assert_int_equal(d->large_head.payload, SENT);
    assert_int_equal(rfi_seal_model(&d->large_head, &d->large_shape, &d->sender, d->large, d->hearers, HEARERS, d->sent,
                                    d->index + (size_t)CHUNKS * RFI_HASH_BYTES),
                     BOXES);
    rfi_fetch_index(&d->large_shape, d->sent, d->index, d->large_head.root);
    rfi_hash(d->large_head.root, d->index, INDEX);
}

static int set_up(void **state)
{
    desk *d = calloc(1, sizeof *d);
    *state = d;
    if (!d || rfi_crypto_start(NULL) != REEF_OK) {
        return -1;
    }
    d->sender = frames_keys(SENDER);
    d->self = frames_keys(SELF);
    frames_hearers(d->hearers, hearing, HEARERS);
    for (int i = 0; i < LARGE; i++) {
        d->large[i] = i + 0.25;
    }
    for (int i = 0; i < SMALL; i++) {
        d->model[i] = 1.0 / (i + 3);
    }
    d->shape = frames_shape(SMALL);
    d->head = frames_head(&d->shape, SENDER, ROUND, d->model);
    d->shape.sealed = true;
    d->size = frames_sealed(d->frame, &d->head, &d->shape, &d->sender, d->model, d->hearers, HEARERS);
    d->window = make_window(d, &d->shape);
    seal_large(d);
    return rfi_opener_make(&d->opener, SELF, &d->self) && d->size == FRAME ? 0 : -1;
}

static int tear_down(void **state)
{
    desk *d = *state;
    rfi_window_destroy(&d->window);
    free(d);
    return 0;
}

/* ---- keys, boxes, parts ---- */

static bool finds(desk *d, const rfi_head *head, const rfi_opener *opener, rfi_seal *seal)
{
    rfi_seal_begin(seal, head);
    return rfi_seal_find(seal, opener, boxes_of(d), BOXES);
}

/* Whether the frame as it lies there opens; what does not leaves nothing behind. */
static bool opens(desk *d)
{
    static const double none[SMALL];
    double model[SMALL] = {0};
    rfi_seal seal;
    bool opened =
        finds(d, &d->head, &d->opener, &seal) && rfi_seal_open(&seal, 0, (unsigned char *)model, parts_of(d), PARTS);
    assert_memory_equal(model, opened ? d->model : none, sizeof model);
    return opened;
}

static bool contains(const unsigned char *bytes, size_t size, const unsigned char *window)
{
    for (size_t i = 0; i + 16 <= size; i++) {
        if (memcmp(bytes + i, window, 16) == 0) {
            return true;
        }
    }
    return false;
}

static void those_who_hear_the_sender_open_it_and_nobody_else(void **state)
{
    desk *d = *state;
    rfi_seal seal;
    rfi_opener opener;
    for (int i = 0; i < HEARERS; i++) {
        rfi_keys keys = frames_keys(hearing[i]);
        double model[SMALL];
        assert_true(rfi_opener_make(&opener, hearing[i], &keys));
        assert_true(finds(d, &d->head, &opener, &seal));
        assert_true(rfi_seal_open(&seal, 0, (unsigned char *)model, parts_of(d), PARTS));
        assert_memory_equal(model, d->model, sizeof model);
    }
    const uint32_t strangers[] = {SENDER, 3, 4, 1000};
    for (ptrdiff_t i = 0; i < COUNT(strangers); i++) {
        rfi_keys keys = frames_keys(strangers[i]);
        assert_true(rfi_opener_make(&opener, strangers[i], &keys));
        assert_false(finds(d, &d->head, &opener, &seal));
        opener.agent = SELF; /* another's box */
        assert_false(finds(d, &d->head, &opener, &seal));
    }
    for (size_t at = 0; at + 16 <= sizeof d->model; at++) {
        assert_false(contains(d->frame, FRAME, (const unsigned char *)d->model + at));
    }
}

static void any_bit_that_is_changed_is_noticed(void **state)
{
    desk *d = *state;
    assert_true(opens(d));
    for (size_t i = 0; i < PARTS; i++) {
        parts_of(d)[i] ^= 1U << i % 8;
        assert_false(opens(d));
        parts_of(d)[i] ^= 1U << i % 8;
    }
    for (size_t i = 0; i < BOXES; i++) { /* of others' boxes only their order matters here */
        bool own = i / RFI_SEALED_BOX == 1;
        boxes_of(d)[i] ^= 1U << i % 8;
        assert_true(own ? !opens(d) : opens(d) || i % RFI_SEALED_BOX < 4);
        boxes_of(d)[i] ^= 1U << i % 8;
    }
    unsigned char *const bound[] = {d->head.commitment, d->head.run, d->head.key, (unsigned char *)&d->head.round};
    for (ptrdiff_t f = 0; f < COUNT(bound); f++) {
        for (size_t i = 0; i < (f == 3 ? sizeof d->head.round : (size_t)RFI_HASH_BYTES); i++) {
            bound[f][i] ^= 1U << i % 8;
            assert_false(opens(d));
            bound[f][i] ^= 1U << i % 8;
        }
    }
    assert_true(opens(d));
}

static void parts_stand_in_their_places(void **state)
{
    desk *d = *state;
    rfi_seal seal;
    static unsigned char to[RFI_CHUNK_MIN];
    const size_t whole = RFI_CHUNK_MIN + RFI_SEAL_BYTES;
    rfi_seal_begin(&seal, &d->large_head);
    assert_true(rfi_seal_find(&seal, &d->opener, d->index + (size_t)CHUNKS * RFI_HASH_BYTES, BOXES));
    assert_true(rfi_seal_open(&seal, 1, to, d->sent + whole, whole));
    assert_memory_equal(to, (const unsigned char *)d->large + RFI_CHUNK_MIN, RFI_CHUNK_MIN);
    assert_false(rfi_seal_open(&seal, 0, to, d->sent + whole, whole));
    assert_false(rfi_seal_open(&seal, 1, to, d->sent, whole));
    assert_false(rfi_seal_open(&seal, 1, to, d->sent + whole, whole - 1));
    assert_false(rfi_seal_open(&seal, 1, to, d->sent + whole, RFI_SEAL_BYTES - 1));
    assert_false(rfi_seal_open(&seal, 1, to, d->sent + whole, 0));
}

static void boxes_are_in_order_and_whole(void **state)
{
    desk *d = *state;
    rfi_seal seal;
    unsigned char other[RFI_SEALED_BOX];
    unsigned char *boxes = boxes_of(d);
    rfi_seal_begin(&seal, &d->head);
    for (size_t size = 0; size <= BOXES; size++) {
        assert_true(rfi_seal_find(&seal, &d->opener, boxes, size) ==
                    (size % RFI_SEALED_BOX == 0 && size / RFI_SEALED_BOX >= 2));
    }
    memcpy(other, boxes, sizeof other);
    memmove(boxes, boxes + RFI_SEALED_BOX, RFI_SEALED_BOX); /* twice the own one */
    assert_false(rfi_seal_find(&seal, &d->opener, boxes, BOXES));
    memcpy(boxes + RFI_SEALED_BOX, other, sizeof other); /* out of order */
    assert_false(rfi_seal_find(&seal, &d->opener, boxes, BOXES));
    static unsigned char many[RFI_BOXES_MAX + RFI_SEALED_BOX];
    for (uint32_t i = 0; i <= RFI_HEARERS_MAX; i++) {
        unsigned char *box = many + (size_t)i * RFI_SEALED_BOX;
        memcpy(box, boxes, RFI_SEALED_BOX); /* which was the own one before */
        box[0] = (unsigned char)i;
        box[1] = (unsigned char)(i >> 8);
    }
    assert_true(rfi_seal_find(&seal, &d->opener, many, RFI_BOXES_MAX));
    assert_false(rfi_seal_find(&seal, &d->opener, many, sizeof many));
}

static void keys_of_another_round_open_nothing(void **state)
{
    desk *d = *state;
    unsigned char old[BOXES];
    memcpy(old, boxes_of(d), BOXES);
    d->head.round++;
    d->size = frames_sealed(d->frame, &d->head, &d->shape, &d->sender, d->model, d->hearers, HEARERS);
    assert_true(opens(d));
    memcpy(boxes_of(d), old, BOXES);
    assert_false(opens(d));
}

/* Who passes on as its own what it cannot read has sent nothing. */
static void another_sender_cannot_send_it_on(void **state)
{
    desk *d = *state;
    rfi_keys thief = frames_keys(3);
    memcpy(d->head.key, thief.public_key, RFI_KEY_BYTES);
    assert_false(opens(d));
}

static void only_real_identities_get_boxes(void **state)
{
    (void)state;
    rfi_hearer hearer;
    unsigned char key[RFI_KEY_BYTES] = {0}; /* of small order */
    assert_false(rfi_hearer_make(&hearer, 1, key));
    key[0] = 1;
    assert_false(rfi_hearer_make(&hearer, 1, key));
    memset(key, 0xFF, sizeof key);
    assert_false(rfi_hearer_make(&hearer, 1, key));
}

/* A random source that repeats itself, as in a virtual machine that was set back. */
static const char *name_of_none(void)
{
    return "none";
}

static uint32_t random_none(void)
{
    return 7;
}

static void fill_none(void *const bytes, const size_t size)
{
    memset(bytes, 7, size);
}

static void no_key_is_used_for_two_models_even_if_nothing_is_random(void **state)
{
    desk *d = *state;
    unsigned char parts[3][PARTS];
    unsigned char boxes[BOXES];
    rfi_head heads[3] = {d->head, d->head, d->head};
    randombytes_implementation none = {.implementation_name = name_of_none, .random = random_none, .buf = fill_none};
    assert_int_equal(randombytes_set_implementation(&none), 0);
    for (int i = 0; i < 3; i++) {
        d->model[SMALL - 1] += i == 2;
        (void)rfi_seal_model(&heads[i], &d->shape, &d->sender, d->model, d->hearers, HEARERS, parts[i], boxes);
    }
    (void)randombytes_set_implementation(&randombytes_sysrandom_implementation);
    assert_memory_equal(parts[0], parts[1], PARTS);
    assert_memory_equal(heads[0].commitment, heads[1].commitment, RFI_HASH_BYTES);
    assert_memory_not_equal(heads[0].commitment, heads[2].commitment, RFI_HASH_BYTES);
    for (size_t i = 0; i + 8 <= PARTS; i += 8) { /* not even where the models are the same */
        assert_memory_not_equal(parts[0] + i, parts[2] + i, 8);
    }
    /* and with random numbers the same model has another key each time */
    for (int i = 0; i < 2; i++) {
        (void)rfi_seal_model(&heads[i], &d->shape, &d->sender, d->model, d->hearers, HEARERS, parts[i], boxes);
    }
    assert_memory_not_equal(heads[0].commitment, heads[1].commitment, RFI_HASH_BYTES);
}

/* ---- in a window ---- */

static rfi_cause take_frame(desk *d)
{
    return rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, SENDER, d->head.round, d->frame, d->size);
}

/* A signed frame with the payload as it lies there: the sender's own doing. */
static void sign_payload(desk *d)
{
    rfi_hash(d->head.root, parts_of(d), (size_t)d->head.payload);
    rfi_head_write(d->frame, &d->head);
    rfi_frame_sign(d->frame, &d->sender, &rfi_ed25519);
    d->size = RFI_MANIFEST_BYTES + (size_t)d->head.payload;
}

static void check_refused(desk *d, rfi_cause cause)
{
    assert_int_equal(take_frame(d), cause);
    assert_int_equal(d->window->peers[1].counts[cause], 1);
    assert_null(rfi_window_row(d->window, 1, ROUND).model);
    assert_true(rfi_is_offence(cause));
}

static void a_sealed_model_becomes_a_row(void **state)
{
    desk *d = *state;
    assert_int_equal(take_frame(d), RFI_GOOD);
    assert_memory_equal(rfi_window_row(d->window, 1, ROUND).model, d->model, sizeof d->model);
    assert_int_equal(take_frame(d), RFI_REPEAT);
}

/* What anybody but the sender changes is found by the root and asked for again. */
static void what_a_broker_changes_is_no_offence_against_the_seal(void **state)
{
    desk *d = *state;
    boxes_of(d)[RFI_SEALED_BOX + 20] ^= 1;
    assert_int_equal(take_frame(d), RFI_CHUNK);
    boxes_of(d)[RFI_SEALED_BOX + 20] ^= 1;
    assert_int_equal(take_frame(d), RFI_GOOD);
}

static void a_box_that_does_not_open_refuses_the_model(void **state)
{
    desk *d = *state;
    boxes_of(d)[RFI_SEALED_BOX + 20] ^= 1;
    sign_payload(d);
    check_refused(d, RFI_SEAL);
    assert_int_equal(take_frame(d), RFI_REPEAT);        /* and costs nothing more */
    assert_int_equal(d->window->peers[1].claim, ROUND); /* it was signed all the same */
}

static void a_key_that_was_not_committed_to_refuses_the_model(void **state)
{
    desk *d = *state;
    d->head.commitment[5] ^= 1;
    sign_payload(d);
    check_refused(d, RFI_SEAL);
}

static void a_model_that_does_not_open_is_refused(void **state)
{
    desk *d = *state;
    parts_of(d)[3] ^= 1;
    sign_payload(d);
    check_refused(d, RFI_SEAL);
}

static void a_model_without_a_box_for_this_agent_is_refused(void **state)
{
    desk *d = *state;
    d->head.payload = PARTS + RFI_SEALED_BOX;
    sign_payload(d);
    check_refused(d, RFI_SEAL);
}

static void numbers_are_checked_behind_the_seal(void **state)
{
    desk *d = *state;
    d->model[2] = 1e300;
    d->size = frames_sealed(d->frame, &d->head, &d->shape, &d->sender, d->model, d->hearers, HEARERS);
    check_refused(d, RFI_VALUE);
}

static void sealed_runs_take_sealed_frames_only_and_others_none(void **state)
{
    desk *d = *state;
    rfi_shape open = frames_shape(SMALL);
    rfi_window *other = make_window(d, &open);
    assert_int_equal(rfi_window_frame(other, 0, RFI_PLACE_SLOT, SENDER, ROUND, d->frame, d->size), RFI_SHAPE);
    rfi_head head = frames_head(&open, SENDER, ROUND, d->model);
    d->size = frames_make(d->frame, &head, &d->sender, d->model);
    assert_int_equal(rfi_window_frame(other, 0, RFI_PLACE_SLOT, SENDER, ROUND, d->frame, d->size), RFI_GOOD);
    check_refused(d, RFI_SHAPE);
    rfi_window_destroy(&other);
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    desk *d = *state;
    const uint64_t sizes[] = {PARTS - 1, PARTS - RFI_SEAL_BYTES, PARTS + 1, PARTS + BOXES - 1, PARTS + BOXES + 1, 0};
    for (ptrdiff_t i = 0; i < COUNT(sizes); i++) {
        d->head.payload = sizes[i];
        sign_payload(d);
        assert_int_equal(take_frame(d), RFI_SHAPE);
    }
    static unsigned char large[RFI_FRAME_MAX + 1];
    d->head.payload = RFI_FRAME_MAX + 1 - RFI_MANIFEST_BYTES;
    rfi_head_write(large, &d->head);
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, SENDER, ROUND, large, sizeof large), RFI_LENGTH);
    d->head.payload = PARTS + BOXES;
    sign_payload(d);
    assert_int_equal(take_frame(d), RFI_GOOD);
}

/* Two models for a round are two marks, sealed or not. */
static void two_faces_are_found_behind_seals(void **state)
{
    desk *d = *state;
    unsigned char first[RFI_MANIFEST_BYTES];
    assert_int_equal(take_frame(d), RFI_GOOD);
    memcpy(first, d->frame, sizeof first);
    d->size = frames_sealed(d->frame, &d->head, &d->shape, &d->sender, d->model, d->hearers, HEARERS);
    assert_int_equal(take_frame(d), RFI_TWO_FACED);
    assert_true(d->window->peers[1].excluded);
    assert_true(rfi_frame_proves(first, d->frame, &rfi_ed25519));
}

/* ---- in chunks ---- */

static void announce(desk *d)
{
    rfi_window_destroy(&d->window);
    d->window = make_window(d, &d->large_shape);
    rfi_head_write(d->manifest, &d->large_head);
    rfi_frame_sign(d->manifest, &d->sender, &rfi_ed25519);
    assert_int_equal(rfi_window_frame(d->window, 0, RFI_PLACE_SLOT, SENDER, ROUND, d->manifest, sizeof d->manifest),
                     RFI_GOOD);
}

static rfi_cause take_chunk(desk *d, uint32_t number)
{
    size_t begin = 0;
    size_t size = INDEX;
    rfi_chunk_head(d->message, ROUND, number);
    if (number == RFI_CHUNK_INDEX) {
        memcpy(d->message + RFI_CHUNK_HEAD_BYTES, d->index, INDEX);
    } else {
        size = rfi_fetch_part(SENT, RFI_CHUNK_MIN + RFI_SEAL_BYTES, number, &begin);
        memcpy(d->message + RFI_CHUNK_HEAD_BYTES, d->sent + begin, size);
    }
    return rfi_window_chunk(d->window, 0, SENDER, d->message, RFI_CHUNK_HEAD_BYTES + size);
}

static void sealed_chunks_come_together(void **state)
{
    desk *d = *state;
    announce(d);
    const uint32_t order[] = {RFI_CHUNK_INDEX, 2, 0, 1};
    for (ptrdiff_t i = 0; i < COUNT(order); i++) {
        assert_null(rfi_window_row(d->window, 1, ROUND).model);
        assert_int_equal(take_chunk(d, order[i]), RFI_GOOD);
    }
    assert_memory_equal(rfi_window_row(d->window, 1, ROUND).model, d->large, sizeof d->large);
}

/* The window wants nothing more of a model that cannot be opened. */
static void check_given_up(desk *d)
{
    ptrdiff_t peer = 0;
    uint64_t round = 0;
    uint32_t number = 0;
    assert_int_equal(d->window->peers[1].counts[RFI_SEAL], 1);
    assert_false(rfi_window_want(d->window, 100, &peer, &round, &number));
    assert_false(rfi_window_fetching(d->window));
    assert_int_equal(take_chunk(d, 0), RFI_REPEAT);
    assert_null(rfi_window_row(d->window, 1, ROUND).model);
    rfi_window_advance(d->window, ROUND + 1);
    assert_false(rfi_window_want(d->window, 200, &peer, &round, &number));
}

static void chunks_without_a_key_are_not_fetched(void **state)
{
    desk *d = *state;
    d->index[INDEX - RFI_SEALED_BOX - 1] ^= 1; /* the own box */
    rfi_hash(d->large_head.root, d->index, INDEX);
    announce(d);
    assert_int_equal(take_chunk(d, RFI_CHUNK_INDEX), RFI_SEAL);
    check_given_up(d);
}

static void a_chunk_that_does_not_open_refuses_the_model(void **state)
{
    desk *d = *state;
    d->sent[100000] ^= 1;
    rfi_fetch_index(&d->large_shape, d->sent, d->index, d->large_head.root);
    rfi_hash(d->large_head.root, d->index, INDEX);
    announce(d);
    assert_int_equal(take_chunk(d, RFI_CHUNK_INDEX), RFI_GOOD);
    assert_int_equal(take_chunk(d, 0), RFI_GOOD);
    assert_int_equal(take_chunk(d, 1), RFI_SEAL);
    check_given_up(d);
}

static void chunks_that_a_broker_changes_are_asked_for_again(void **state)
{
    desk *d = *state;
    announce(d);
    d->index[INDEX - 1] ^= 1;
    assert_int_equal(take_chunk(d, RFI_CHUNK_INDEX), RFI_CHUNK);
    d->index[INDEX - 1] ^= 1;
    assert_int_equal(take_chunk(d, RFI_CHUNK_INDEX), RFI_GOOD);
    d->sent[100000] ^= 1;
    assert_int_equal(take_chunk(d, 1), RFI_CHUNK);
    d->sent[100000] ^= 1;
    assert_int_equal(take_chunk(d, 1), RFI_GOOD);
    assert_int_equal(d->window->peers[1].counts[RFI_SEAL], 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(those_who_hear_the_sender_open_it_and_nobody_else),
        TEST(any_bit_that_is_changed_is_noticed),
        TEST(parts_stand_in_their_places),
        TEST(boxes_are_in_order_and_whole),
        TEST(keys_of_another_round_open_nothing),
        TEST(another_sender_cannot_send_it_on),
        TEST(only_real_identities_get_boxes),
        TEST(no_key_is_used_for_two_models_even_if_nothing_is_random),
        TEST(a_sealed_model_becomes_a_row),
        TEST(what_a_broker_changes_is_no_offence_against_the_seal),
        TEST(a_box_that_does_not_open_refuses_the_model),
        TEST(a_key_that_was_not_committed_to_refuses_the_model),
        TEST(a_model_that_does_not_open_is_refused),
        TEST(a_model_without_a_box_for_this_agent_is_refused),
        TEST(numbers_are_checked_behind_the_seal),
        TEST(sealed_runs_take_sealed_frames_only_and_others_none),
        TEST(sizes_that_do_not_fit_are_refused),
        TEST(two_faces_are_found_behind_seals),
        TEST(sealed_chunks_come_together),
        TEST(chunks_without_a_key_are_not_fetched),
        TEST(a_chunk_that_does_not_open_refuses_the_model),
        TEST(chunks_that_a_broker_changes_are_asked_for_again),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
