/* IDX files byte by byte. */
#include "io/idx.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

typedef struct sample {
    const char *bytes;
    size_t size;
} sample;
#define SAMPLE(text)                                                                                                   \
    {                                                                                                                  \
        text, sizeof(text) - 1                                                                                         \
    }

static void types(void **state)
{
    static const struct {
        sample file;
        double values[3];
    } known[] = {
        {SAMPLE("\0\0\x08\x01\0\0\0\x03\x00\x7F\xFF"), {0, 127, 255}},
        {SAMPLE("\0\0\x09\x01\0\0\0\x03\x00\x7F\xFF"), {0, 127, -1}},
        {SAMPLE("\0\0\x0B\x01\0\0\0\x03\x00\x01\x7F\xFF\x80\x00"), {1, 32767, -32768}},
        {SAMPLE("\0\0\x0C\x01\0\0\0\x03\0\0\0\x02\xFF\xFF\xFF\xFE\0\x01\0\0"), {2, -2, 65536}},
        {SAMPLE("\0\0\x0D\x01\0\0\0\x03\x3F\x80\0\0\xC0\0\0\0\0\0\0\0"), {1, -2, 0}},
        {SAMPLE("\0\0\x0E\x01\0\0\0\x03\x3F\xF0\0\0\0\0\0\0\xC0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), {1, -2, 0}},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        rfi_array array;
        double values[3];
        reef_error error;
        CHECK(rfi_idx_read(known[i].file.bytes, known[i].file.size, "x", &array, &error) == REEF_OK, "%s", error.text);
        assert_int_equal(array.count, 3);
        rfi_array_get_f64(&array, values);
        for (int j = 0; j < 3; j++) {
            CHECK(values[j] == known[i].values[j], "%td: value %d is %g", i, j, values[j]);
        }
    }
}

static void shapes(void **state)
{
    static const char bytes[] = "\0\0\x08\x04\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x01"
                                "abcdef";
    rfi_array array;
    (void)state;
    assert_int_equal(rfi_idx_read(bytes, sizeof bytes - 1, "x", &array, NULL), REEF_OK);
    assert_true(array.rank == 4 && array.shape[0] == 1 && array.shape[1] == 2 && array.shape[2] == 3);
    assert_true(array.shape[3] == 1 && array.count == 6 && !array.fortran);
    assert_memory_equal(array.data, "abcdef", 6);
}

static void refusals(void **state)
{
    static const struct {
        sample file;
        const char *says;
    } bad[] = {
        {SAMPLE(""), "byte 0: this is not an IDX file"},
        {SAMPLE("\0\0\x08"), "not an IDX file"},
        {SAMPLE("\x01\0\x08\x01\0\0\0\0"), "not an IDX file"},
        {SAMPLE("\x1F\x8B\x08\x01\0\0\0\0"), "is compressed"},
        {SAMPLE("\0\0\x0A\x01\0\0\0\0"), "byte 2: unknown type 10"},
        {SAMPLE("\0\0\x08\0"), "byte 3: 0 dimensions"},
        {SAMPLE("\0\0\x08\x05\0\0\0\x01"), "byte 3: 5 dimensions"},
        {SAMPLE("\0\0\x08\x02\0\0\0\x01\0\0\0"), "byte 11: the file ends within its header"},
        {SAMPLE("\0\0\x08\x01\0\0\0\x03"
                "ab"),
         "byte 8: 2 bytes of data, expected 3"},
        {SAMPLE("\0\0\x08\x01\0\0\0\x03"
                "abcd"),
         "byte 8: 4 bytes of data, expected 3"},
        {SAMPLE("\0\0\x0E\x04\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), "more elements"},
        {SAMPLE("\0\0\x0E\x04\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0"), "more elements"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        rfi_array array = {.rank = 77};
        reef_error error = {REEF_OK, ""};
        unsigned char *copy = malloc(bad[i].file.size + 1);
        assert_non_null(copy);
        memcpy(copy, bad[i].file.bytes, bad[i].file.size);
        assert_int_not_equal(rfi_idx_read(copy, bad[i].file.size, "made", &array, &error), REEF_OK);
        CHECK(strstr(error.text, bad[i].says) && array.rank == 77, "%td: '%s' should say '%s'", i, error.text,
              bad[i].says);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(types), cmocka_unit_test(shapes), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
