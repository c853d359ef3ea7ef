/* STATUS frames: bytes there and back, every check, and no altered bit goes unnoticed. */
#include "net/frames.h"
#include "net/status.h"
#include "support/check.h"

#include <math.h>
#include <string.h>

static void fill(rfi_status *s)
{
    *s = (rfi_status){.standing = RFI_STANDING_ALONE,
                      .links = 3,
                      .round = 77,
                      .combined = 70,
                      .alone = 6,
                      .skipped = 1,
                      .idle = 2,
                      .weight = 0.75,
                      .adapt = 0.5F,
                      .wait = 0.25F,
                      .combine = 0.125F,
                      .resident = 6000000,
                      .norm = 3.5,
                      .notes = {{"loss", 0.25}, {"accuracy_on_test", -1}},
                      .received = 1000,
                      .sent = 0x1122334455,
                      .count = 2,
                      .entries = {{4, 1.25F, 0, RFI_GOOD, 0, 0}, {9, -1, RFI_AGE_ABSENT, RFI_VALUE, 3, 12}}};
}

static size_t make(unsigned char *frame, const rfi_status *s)
{
    rfi_keys keys = frames_keys(5);
    rfi_head head = {.epoch = 2, .agent = 5, .boot = 99};
    memcpy(head.run, frames_run, sizeof head.run);
    memcpy(head.key, keys.public_key, sizeof head.key);
    return rfi_status_frame(frame, &head, s, &keys, &rfi_ed25519);
}

static rfi_cause take(uint32_t agent, uint32_t epoch, const unsigned char *frame, size_t size)
{
    static rfi_status status;
    rfi_head head;
    rfi_keys keys = frames_keys(5);
    const rfi_status_sender from = {agent, epoch, frames_run, keys.public_key, &rfi_ed25519};
    return rfi_status_take(&from, frame, size, &head, &status);
}

static void there_and_back(void **state)
{
    (void)state;
    static rfi_status s;
    static rfi_status back;
    unsigned char payload[RFI_STATUS_MAX];
    unsigned char again[RFI_STATUS_MAX];
    fill(&s);
    size_t size = rfi_status_write(payload, &s);
    assert_int_equal(size, 200 + 2 * 16);
    assert_int_equal(payload[0], 2);
    assert_int_equal(payload[2], 2);
    assert_int_equal(payload[8], 77);
    assert_memory_equal(payload + 88, "loss\0\0\0\0", 8);
    assert_int_equal(payload[192], 0x55);
    assert_int_equal(payload[200 + 16], 9);
    assert_int_equal(payload[200 + 16 + 8], 255);
    assert_int_equal(payload[200 + 16 + 12], 12);
    assert_true(rfi_status_read(payload, size, &back));
    assert_int_equal(back.alone, 6);
    assert_int_equal(back.received, 1000);
    assert_string_equal(back.notes[1].name, "accuracy_on_test");
    assert_int_equal(rfi_status_write(again, &back), size);
    assert_memory_equal(again, payload, size);
    s.count = RFI_NEIGHBOURS_MAX;
    for (unsigned i = 0; i < s.count; i++) {
        s.entries[i] = (rfi_status_entry){.agent = i};
    }
    assert_int_equal(rfi_status_write(payload, &s), RFI_STATUS_MAX);
    assert_int_equal(RFI_STATUS_MAX, 4296);
    assert_true(rfi_status_read(payload, RFI_STATUS_MAX, &back));
}

/* A payload in which one thing is wrong. */
static void refuse(size_t at, const void *bytes, size_t count)
{
    static rfi_status s;
    unsigned char payload[RFI_STATUS_MAX];
    fill(&s);
    size_t size = rfi_status_write(payload, &s);
    memcpy(payload + at, bytes, count);
    assert_false(rfi_status_read(payload, size, &s));
}

static void hostile_payloads(void **state)
{
    (void)state;
    static rfi_status s;
    unsigned char payload[RFI_STATUS_MAX];
    const double nan = (double)NAN;
    const float inf = (float)INFINITY;
    const unsigned char one[] = {1};
    const unsigned char many[] = {255};
    fill(&s);
    size_t size = rfi_status_write(payload, &s);
    for (size_t less = 0; less < size; less++) {
        assert_false(rfi_status_read(payload, less, &s));
    }
    refuse(0, many, 1);        /* no such state */
    refuse(2, many, 1);        /* more entries than there are */
    refuse(4, one, 1);         /* zeros */
    refuse(68, one, 1);        /* likewise */
    refuse(15, many, 1);       /* a round beyond all */
    refuse(48, &nan, 8);       /* weight */
    refuse(56, &inf, 4);       /* seconds */
    refuse(80, &nan, 8);       /* norm */
    refuse(88, "<b>x", 4);     /* a name with markup */
    refuse(88 + 8, one, 1);    /* something behind the end of a name */
    refuse(88 + 16, &nan, 8);  /* a note */
    refuse(88 + 72, one, 1);   /* an unused name that is no name */
    refuse(88 + 90, one, 1);   /* an unused note with a value */
    refuse(200 + 4, &inf, 4);  /* trust */
    refuse(200 + 9, many, 1);  /* no such cause */
    refuse(200 + 11, one, 1);  /* zero */
    refuse(200 + 16, "\3", 1); /* agents not ascending */
}

static void hostile_frames(void **state)
{
    (void)state;
    static rfi_status s;
    unsigned char frame[RFI_STATUS_FRAME_MAX];
    fill(&s);
    size_t size = make(frame, &s);
    assert_int_equal(take(5, 2, frame, size), RFI_GOOD);
    assert_int_equal(take(6, 2, frame, size), RFI_SENDER);
    assert_int_equal(take(5, 3, frame, size), RFI_CONFIG);
    assert_int_equal(take(5, 2, frame, size - 1), RFI_LENGTH);
    for (size_t bit = 0; bit < 8 * size; bit += 7) {
        frame[bit / 8] ^= (unsigned char)(1U << bit % 8);
        assert_true(take(5, 2, frame, size) != RFI_GOOD);
        frame[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    assert_int_equal(take(5, 2, frame, size), RFI_GOOD);
    s.entries[0].trust = (float)NAN; /* signed nonsense */
    size = make(frame, &s);
    assert_int_equal(take(5, 2, frame, size), RFI_SHAPE);
    frame[5] = RFI_FRAME_ECHO;
    assert_int_equal(take(5, 2, frame, size), RFI_FORMAT);
}

static void names_of_notes(void **state)
{
    (void)state;
    assert_true(rfi_is_note("loss"));
    assert_true(rfi_is_note("a123456789_12345"));
    assert_false(rfi_is_note(""));
    assert_false(rfi_is_note("a123456789_123456"));
    assert_false(rfi_is_note("Loss"));
    assert_false(rfi_is_note("lo ss"));
}

static int start(void **state)
{
    (void)state;
    return rfi_crypto_start(NULL) == REEF_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(hostile_payloads),
        cmocka_unit_test(hostile_frames),
        cmocka_unit_test(names_of_notes),
    };
    return cmocka_run_group_tests_name("status", tests, start, NULL);
}
