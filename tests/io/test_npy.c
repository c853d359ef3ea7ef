/* .npy: files of NumPy 2 in tests/golden/npy are read right and written to the same bytes; whatever is malformed is
 * refused with a sentence that says where. */
#include "io/npy.h"
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rfi_file golden(const char *name)
{
    char path[512];
    rfi_file file;
    (void)snprintf(path, sizeof path, "%s/npy/%s.npy", REEF_GOLDEN_DIR, name);
    assert_int_equal(rfi_file_read(NULL, path, 4096, &file, NULL), REEF_OK);
    return file;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void golden_values(void **state)
{
    static const struct {
        const char *name;
        ptrdiff_t count;
        double values[6];
    } known[] = {
        {"f4", 6, {1.5, -2.25, 0, (double)3e38F, 0x1p-149, NAN}},
        {"f4_big", 6, {1.5, -2.25, 0, (double)3e38F, 0x1p-149, NAN}},
        {"f8", 6, {1.5, -2.25, 0, 1e300, 0x1p-1074, -INFINITY}},
        {"f8_big", 6, {1.5, -2.25, 0, 1e300, 0x1p-1074, -INFINITY}},
        {"i1", 5, {-128, -1, 0, 1, 127}},
        {"i2", 5, {-32768, -1, 0, 1, 32767}},
        {"i2_big", 5, {-32768, -1, 0, 1, 32767}},
        {"i4", 5, {-2147483648.0, -1, 0, 1, 2147483647}},
        {"i4_big", 5, {-2147483648.0, -1, 0, 1, 2147483647}},
        {"i8", 5, {-0x1p63, -1, 0, 1, 0x1p63}},
        {"i8_big", 5, {-0x1p63, -1, 0, 1, 0x1p63}},
        {"u1", 4, {0, 1, 2, 255}},
        {"u2", 4, {0, 1, 2, 65535}},
        {"u2_big", 4, {0, 1, 2, 65535}},
        {"u4", 4, {0, 1, 2, 4294967295.0}},
        {"u4_big", 4, {0, 1, 2, 4294967295.0}},
        {"u8", 4, {0, 1, 2, 0x1p64}},
        {"u8_big", 4, {0, 1, 2, 0x1p64}},
        {"b1", 3, {1, 0, 1}},
        {"fortran2", 6, {0, 1, 2, 3, 4, 5}},
        {"scalar", 1, {2.5}},
        {"empty", 0, {0}},
        {"rank8", 2, {0, 1}},
        {"version2", 4, {0, 1, 2, 3}},
        {"version3", 4, {0, 1, 2, 3}},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        rfi_file file = golden(known[i].name);
        rfi_array array;
        double values[6];
        float floats[6];
        reef_error error;
        CHECK(rfi_npy_read(file.bytes, file.size, known[i].name, &array, &error) == REEF_OK, "%s", error.text);
        assert_int_equal(array.count, known[i].count);
        rfi_array_get_f64(&array, values);
        rfi_array_get_f32(&array, floats);
        for (ptrdiff_t j = 0; j < known[i].count; j++) {
            double v = known[i].values[j];
            CHECK(same(values[j], v), "%s[%td] = %.17g", known[i].name, j, values[j]);
            double narrow = fabs(v) > 3.4028234664e38 ? copysign(INFINITY, v) : (double)(float)v;
            CHECK(same((double)floats[j], narrow), "%s[%td] = %.9g", known[i].name, j, (double)floats[j]);
        }
        rfi_file_free(NULL, &file);
    }
}

static void fortran_of_rank_three(void **state)
{
    rfi_file file = golden("fortran3");
    rfi_array array;
    double values[24];
    (void)state;
    assert_int_equal(rfi_npy_read(file.bytes, file.size, "x", &array, NULL), REEF_OK);
    assert_true(array.fortran && array.rank == 3 && array.shape[0] == 2 && array.shape[1] == 3 && array.shape[2] == 4);
    rfi_array_get_f64(&array, values);
    for (int i = 0; i < 24; i++) {
        assert_true(values[i] == i);
    }
    rfi_file_free(NULL, &file);
}

/* The bytes NumPy wrote, on a machine of the same byte order. */
static void written_as_numpy_does(void **state)
{
    static const struct {
        const char *name;
        rfi_type type;
        int rank;
        ptrdiff_t shape[8];
    } files[] = {{"f4", RFI_F32, 2, {2, 3}},
                 {"f8", RFI_F64, 2, {2, 3}},
                 {"i4", RFI_I32, 1, {5}},
                 {"i8", RFI_I64, 1, {5}},
                 {"scalar", RFI_F64, 0, {0}},
                 {"empty", RFI_F32, 2, {0, 3}},
                 {"rank8", RFI_I64, 8, {1, 1, 2, 1, 1, 1, 1, 1}}};
    scratch s;
    (void)state;
    scratch_open(&s);
    for (ptrdiff_t i = 0; i < COUNT(files); i++) {
        char path[SCRATCH_PATH];
        rfi_file want = golden(files[i].name);
        rfi_file got;
        rfi_array array;
        scratch_path(&s, files[i].name, path);
        assert_int_equal(rfi_npy_read(want.bytes, want.size, "x", &array, NULL), REEF_OK);
        assert_int_equal(array.rank, files[i].rank);
        assert_int_equal(rfi_npy_write(NULL, path, files[i].type, files[i].rank, files[i].shape, array.data, NULL),
                         REEF_OK);
        assert_int_equal(rfi_file_read(NULL, path, 4096, &got, NULL), REEF_OK);
        CHECK(got.size == want.size && memcmp(got.bytes, want.bytes, got.size) == 0, "%s differs", files[i].name);
        rfi_file_free(NULL, &want);
        rfi_file_free(NULL, &got);
    }
    char path[SCRATCH_PATH];
    ptrdiff_t shape[8] = {-1};
    scratch_path(&s, "bad", path);
    assert_int_equal(rfi_npy_write(NULL, path, RFI_F32, 1, shape, "", NULL), REEF_E_ARG);
    assert_int_equal(rfi_npy_write(NULL, path, RFI_U8, 0, shape, "", NULL), REEF_E_ARG);
    assert_int_equal(rfi_npy_write(NULL, path, RFI_F32, 9, shape, "", NULL), REEF_E_ARG);
    assert_int_equal(rfi_npy_write(NULL, path, RFI_F32, 2, (ptrdiff_t[]){PTRDIFF_MAX / 2, 3}, "", NULL), REEF_E_ARG);
    scratch_close(&s);
}

/* The longest header there can be fits its buffer and reads back. */
static void longest_header(void **state)
{
    char *header = guarded_new(RFI_NPY_HEADER_MAX);
    ptrdiff_t shape[8];
    rfi_array array;
    reef_error error;
    (void)state;
    for (int i = 0; i < 8; i++) {
        shape[i] = PTRDIFF_MAX;
    }
    size_t size = rfi_npy_header(RFI_F64, 8, shape, header);
    assert_true(size % 64 == 0 && size <= RFI_NPY_HEADER_MAX && guarded_intact(header, RFI_NPY_HEADER_MAX));
    assert_int_equal(rfi_npy_read(header, size, "x", &array, &error), REEF_E_OVERFLOW);
    assert_non_null(strstr(error.text, "more elements than memory can hold"));
    guarded_free(header);
}

/* A version 1 file from a header and some data; every read is of a copy that ends where the file does. */
static reef_status read_made(const char *header, size_t data, rfi_array *array, reef_error *error)
{
    static const unsigned char start[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    size_t length = strlen(header);
    unsigned char *bytes = guarded_new(10 + length + data);
    memcpy(bytes, start, sizeof start);
    bytes[8] = (unsigned char)(length & 0xFF);
    bytes[9] = (unsigned char)(length >> 8);
    for (size_t i = 0; i < length; i++) {
        bytes[10 + i] = (unsigned char)header[i];
    }
    memset(bytes + 10 + length, 0, data);
    reef_status status = rfi_npy_read(bytes, 10 + length + data, "made", array, error);
    guarded_free(bytes);
    return status;
}

static void odd_but_good_headers(void **state)
{
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{\"shape\":(2,3,),\"fortran_order\":True,\"descr\":\">f4\"}",
        " { 'fortran_order' : False , 'shape' : ( 2L , 3L ) , 'descr' : '=f4' , } ",
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(headers); i++) {
        rfi_array array;
        reef_error error;
        CHECK(read_made(headers[i], 24, &array, &error) == REEF_OK, "%s: %s", headers[i], error.text);
        assert_true(array.type == RFI_F32 && array.rank == 2 && array.shape[0] == 2 && array.shape[1] == 3);
    }
}

static void malformed_headers(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } bad[] = {
        {"", 0, "byte 10: the header should begin with {"},
        {"{'descr'", 0, "should have the keys"},
        {"{'descr: '<f4'}", 0, "should have the keys"},
        {"{'descr': 4}", 0, "byte 20: 'descr' should be a type"},
        {"{'descr': [('a', '<f4')], }", 0, "should be a type"},
        {"{'descr': '<f1', ", 0, "type '<f1' are not supported"},
        {"{'descr': '<V2', ", 0, "type '<V2' are not supported"},
        {"{'descr': '|f4', ", 0, "type '|f4' are not supported"},
        {"{'descr': '|O', ", 0, "not supported"},
        {"{'descr': '<c8', ", 0, "not supported"},
        {"{'descr': '\x01\xFF\n4', ", 0, "type '???4' are not supported"},
        {"{'descr': 'xf4', ", 0, "not supported"},
        {"{'descr': '<f4', 'fortran_order': 0, ", 0, "True or False"},
        {"{'descr': '<f4', 'descr': '<f4', ", 0, "twice"},
        {"{'descr': '<f4', 'other': 3, ", 0, "unknown key"},
        {"{'descr': '<f4' 'fortran_order': False}", 0, "comma is missing in the header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3], }", 24, "should be a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", 24, "comma is missing after a dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", 8, "comma is missing after a dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", 8, "whole number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8, "whole number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,), }", 8, "comma is missing after a dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", 8, "whole number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8, "dimension is too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, "more than 8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0, "more elements than"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952, 1), }", 0, "more elements than"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4, 0), }", 0, "more elements than"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } x", 24, "something follows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", 24, "should end with }"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 23, "byte 92: the file ends after 23 of 24"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 25, "byte 93: 1 byte follows the data"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        rfi_array array = {.rank = 77};
        reef_error error = {REEF_OK, ""};
        reef_status status = read_made(bad[i].header, bad[i].data, &array, &error);
        CHECK(status == REEF_E_FORMAT || status == REEF_E_OVERFLOW, "%s is taken", bad[i].header);
        CHECK(strstr(error.text, bad[i].says) && strstr(error.text, "made: "), "%s: '%s' should say '%s'",
              bad[i].header, error.text, bad[i].says);
        assert_int_equal(array.rank, 77);
    }
}

/* Cut anywhere, a file is refused; so it is with wrong magic or version. */
static void damaged_files(void **state)
{
    static const char *const names[] = {"f4", "version2", "fortran3"};
    rfi_array array;
    reef_error error;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(names); i++) {
        rfi_file file = golden(names[i]);
        for (size_t size = 0; size < file.size; size++) {
            unsigned char *copy = malloc(size + 1);
            assert_non_null(copy);
            memcpy(copy, file.bytes, size);
            copy = realloc(copy, size ? size : 1);
            CHECK(rfi_npy_read(copy, size, "cut", &array, &error) == REEF_E_FORMAT, "%s cut to %zu is taken", names[i],
                  size);
            free(copy);
        }
        file.bytes[7] = 1;
        assert_int_equal(rfi_npy_read(file.bytes, file.size, "x", &array, &error), REEF_E_FORMAT);
        assert_non_null(strstr(error.text, "; 1.0, 2.0 and 3.0"));
        file.bytes[0] = 'P';
        assert_int_equal(rfi_npy_read(file.bytes, file.size, "x", &array, &error), REEF_E_FORMAT);
        assert_non_null(strstr(error.text, "byte 0: this is not an .npy file"));
        rfi_file_free(NULL, &file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_values),         cmocka_unit_test(fortran_of_rank_three),
        cmocka_unit_test(written_as_numpy_does), cmocka_unit_test(longest_header),
        cmocka_unit_test(odd_but_good_headers),  cmocka_unit_test(malformed_headers),
        cmocka_unit_test(damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
