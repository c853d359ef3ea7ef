/* Frames: the layout byte by byte, every check, and that no altered bit goes unnoticed. */
#include "net/frames.h"
#include "support/check.h"

#include <math.h>
#include <string.h>

static const double model[3] = {1.5, -2, 0.25};

static size_t make(unsigned char *frame)
{
    rfi_shape shape = frames_shape(3);
    rfi_keys keys = frames_keys(5);
    rfi_head head = frames_head(&shape, 5, 0x0102030405, model);
    return frames_make(frame, &head, &keys, model);
}

static void lies_where_the_table_says(void **state)
{
    (void)state;
    unsigned char bytes[RFI_HEAD_BYTES];
    rfi_head head = {.type = RFI_FRAME_MODEL,
                     .numbers = RFI_NUMBERS_F32,
                     .flags = RFI_FLAG_SEALED,
                     .epoch = 0x11121314,
                     .agent = 0x21222324,
                     .round = 0x313233343536,
                     .count = 0x41424344,
                     .payload = 0x5152535455,
                     .chunk = 0x61626364,
                     .chunks = 0x71727374,
                     .boot = UINT64_C(0x8182838485868788)};
    memset(head.run, 'r', 32);
    memset(head.key, 'k', 32);
    memset(head.root, 'o', 32);
    memset(head.layout, 'l', 32);
    memset(head.commitment, 'c', 32);
    rfi_head_write(bytes, &head);
    assert_memory_equal(bytes, "REEF\x01\x01\x01\x02\x14\x13\x12\x11\x24\x23\x22\x21rrrr", 20);
    assert_memory_equal(bytes + 46, "rrkk", 4);
    assert_memory_equal(bytes + 78, "kk\x36\x35\x34\x33\x32\x31\0\0\x44\x43\x42\x41\0\0\0\0\x55\x54\x53\x52\x51\0\0\0",
                        26);
    assert_memory_equal(bytes + 104, "\x64\x63\x62\x61\x74\x73\x72\x71oooo", 12);
    assert_memory_equal(bytes + 143, "ol", 2);
    assert_memory_equal(bytes + 175, "lc", 2);
    assert_memory_equal(bytes + 207, "c\x88\x87\x86\x85\x84\x83\x82\x81\0", 10);
    for (int i = 216; i < RFI_HEAD_BYTES; i++) {
        assert_int_equal(bytes[i], 0);
    }
}

static void goes_there_and_back(void **state)
{
    (void)state;
    unsigned char frame[RFI_MANIFEST_BYTES + sizeof model];
    rfi_head head;
    size_t size = make(frame);
    assert_int_equal(size, sizeof frame);
    assert_int_equal(rfi_frame_read(frame, size, &head), RFI_GOOD);
    assert_int_equal(head.round, 0x0102030405);
    assert_int_equal(head.agent, 5);
    unsigned char again[RFI_HEAD_BYTES];
    rfi_head_write(again, &head);
    assert_memory_equal(again, frame, sizeof again);
    assert_true(rfi_frame_verify(frame, &rfi_ed25519));
}

/* Each bit of head and signature is covered: by the format or by the signature. */
static void notices_every_bit(void **state)
{
    (void)state;
    unsigned char frame[RFI_MANIFEST_BYTES + sizeof model];
    rfi_head head;
    size_t size = make(frame);
    for (size_t bit = 0; bit < 8 * (size_t)RFI_MANIFEST_BYTES; bit++) {
        frame[bit / 8] ^= (unsigned char)(1U << bit % 8);
        CHECK(rfi_frame_read(frame, size, &head) != RFI_GOOD || !rfi_frame_verify(frame, &rfi_ed25519),
              "bit %zu is not covered", bit);
        frame[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    assert_true(rfi_frame_verify(frame, &rfi_ed25519));
}

static void refuses_wrong_lengths(void **state)
{
    (void)state;
    unsigned char frame[RFI_MANIFEST_BYTES + sizeof model + 1] = {0};
    rfi_head head;
    size_t size = make(frame);
    for (size_t less = 1; less <= size; less++) {
        assert_int_equal(rfi_frame_read(frame, size - less, &head), RFI_LENGTH);
    }
    assert_int_equal(rfi_frame_read(frame, size + 1, &head), RFI_LENGTH);
}

/* Byte `at` set to `value` is a matter of format. */
static void refuses_other_formats(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        unsigned char value;
    } cases[] = {{0, 'r'}, {3, 0},  {4, 0},  {4, 2},   {5, 0},   {5, 8},   {5, 2},   {6, 3},    {7, 5},
                 {7, 129}, {86, 1}, {87, 1}, {104, 1}, {108, 1}, {176, 1}, {216, 1}, {255, 128}};
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        unsigned char frame[RFI_MANIFEST_BYTES + sizeof model];
        rfi_head head;
        size_t size = make(frame);
        frame[cases[i].at] = cases[i].value;
        CHECK(rfi_frame_read(frame, size, &head) == RFI_FORMAT, "byte %zu as %d passes", cases[i].at, cases[i].value);
    }
}

static void hellos_are_bare(void **state)
{
    (void)state;
    unsigned char frame[RFI_MANIFEST_BYTES];
    rfi_head back;
    rfi_head head = {.type = RFI_FRAME_HELLO, .flags = RFI_FLAG_INLINE, .round = 3};
    rfi_head_write(frame, &head);
    memset(frame + RFI_HEAD_BYTES, 0, RFI_SIGNATURE_BYTES);
    assert_int_equal(rfi_frame_read(frame, sizeof frame, &back), RFI_GOOD);
    static const size_t must_be_zero[] = {6, 88, 112, 144, 176};
    for (ptrdiff_t i = 0; i < COUNT(must_be_zero); i++) {
        frame[must_be_zero[i]] = 1;
        CHECK(rfi_frame_read(frame, sizeof frame, &back) == RFI_FORMAT, "byte %zu passes", must_be_zero[i]);
        frame[must_be_zero[i]] = 0;
    }
}

static void two_manifests_are_a_proof(void **state)
{
    (void)state;
    const double other_model[3] = {1.5, -2, 0.5};
    rfi_shape shape = frames_shape(3);
    rfi_keys keys = frames_keys(5);
    unsigned char one[RFI_MANIFEST_BYTES + sizeof model];
    unsigned char other[RFI_MANIFEST_BYTES + sizeof model];
    rfi_head head = frames_head(&shape, 5, 9, model);
    (void)frames_make(one, &head, &keys, model);
    head = frames_head(&shape, 5, 9, other_model);
    (void)frames_make(other, &head, &keys, other_model);
    assert_true(rfi_frame_proves(one, other, &rfi_ed25519));
    assert_false(rfi_frame_proves(one, one, &rfi_ed25519));

    other[RFI_HEAD_BYTES] ^= 1; /* not signed by it */
    assert_false(rfi_frame_proves(one, other, &rfi_ed25519));
    head = frames_head(&shape, 5, 10, other_model); /* another round */
    (void)frames_make(other, &head, &keys, other_model);
    assert_false(rfi_frame_proves(one, other, &rfi_ed25519));
    rfi_keys stranger = frames_keys(6); /* another key */
    head = frames_head(&shape, 6, 9, other_model);
    (void)frames_make(other, &head, &stranger, other_model);
    assert_false(rfi_frame_proves(one, other, &rfi_ed25519));
    head = frames_head(&shape, 5, 9, other_model); /* another run */
    head.run[0] ^= 1;
    (void)frames_make(other, &head, &keys, other_model);
    assert_false(rfi_frame_proves(one, other, &rfi_ed25519));
    head = (rfi_head){.type = RFI_FRAME_HELLO, .flags = RFI_FLAG_INLINE, .round = 9}; /* a greeting is no model */
    memcpy(head.run, frames_run, sizeof head.run);
    memcpy(head.key, keys.public_key, sizeof head.key);
    (void)frames_make(other, &head, &keys, NULL);
    assert_false(rfi_frame_proves(one, other, &rfi_ed25519));
}

static void shapes_are_checked(void **state)
{
    (void)state;
    reef_error error;
    rfi_shape shape = frames_shape(3);
    assert_int_equal(rfi_shape_check(&shape, &error), REEF_OK);
    shape.count = 0;
    assert_int_equal(rfi_shape_check(&shape, &error), REEF_E_RANGE);
    shape.count = RFI_NUMBERS_MAX + 1;
    assert_int_equal(rfi_shape_check(&shape, &error), REEF_E_RANGE);
    shape = frames_shape(3);
    shape.chunk = 4096;
    assert_int_equal(rfi_shape_check(&shape, &error), REEF_E_RANGE);
    shape = frames_shape(RFI_NUMBERS_MAX); /* 16 GiB in chunks of 64 KiB */
    assert_int_equal(rfi_shape_check(&shape, &error), REEF_E_RANGE);
    shape = frames_shape(3);
    shape.largest = (double)NAN;
    assert_int_equal(rfi_shape_check(&shape, &error), REEF_E_RANGE);
    shape = frames_shape(3);
    shape.numbers = RFI_NO_NUMBERS;
    assert_int_equal(rfi_shape_check(&shape, &error), REEF_E_ARG);

    shape = frames_shape(8192); /* 64 KiB: the last that is inline */
    assert_int_equal(rfi_shape_chunks(&shape), 0);
    shape = frames_shape(8193);
    assert_int_equal(rfi_shape_chunks(&shape), 2);
}

static void values_are_checked(void **state)
{
    (void)state;
    rfi_shape shape = frames_shape(4);
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1.0000001e6, -1e300};
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        double x[4] = {0, -1e6, 1e6, 5e-324};
        assert_true(rfi_shape_values(&shape, x));
        x[i % 4] = bad[i];
        CHECK(!rfi_shape_values(&shape, x), "%g passes", bad[i]);
        float y[4] = {0, 1, 2, 3};
        rfi_shape narrow = shape;
        narrow.numbers = RFI_NUMBERS_F32;
        assert_true(rfi_shape_values(&narrow, y));
        y[i % 4] = (float)fmax(-2e6, fmin(bad[i], 2e6));
        y[i % 4] = isnan(bad[i]) ? NAN : y[i % 4] * (i == 3 ? 1.1F : 1.0F);
        CHECK(!rfi_shape_values(&narrow, y), "%g passes", bad[i]);
    }
}

static int start(void **state)
{
    (void)state;
    return rfi_crypto_start(NULL) == REEF_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_where_the_table_says), cmocka_unit_test(goes_there_and_back),
        cmocka_unit_test(notices_every_bit),         cmocka_unit_test(refuses_wrong_lengths),
        cmocka_unit_test(refuses_other_formats),     cmocka_unit_test(hellos_are_bare),
        cmocka_unit_test(two_manifests_are_a_proof), cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(values_are_checked),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
