/* Safetensors headers: files of the reference implementation, every kind of malformed header, and the same opinion as a JSON library
 * on many damaged ones. */
#include "io/file.h"
#include "io/safetensors.h"
#include "num/rng.h"
#include "support/alloc.h"
#include "support/check.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* ---- files of the reference implementation ---- */

static void read_golden(const char *name, rfi_file *file, rfi_safetensors *table)
{
    char path[256];
    reef_error error = {REEF_OK, ""};
    size_t length = 0;
    (void)snprintf(path, sizeof path, "%s/safetensors/%s", REEF_GOLDEN_DIR, name);
    assert_int_equal(rfi_file_read(NULL, path, 1 << 20, file, NULL), REEF_OK);
    assert_int_equal(rfi_safetensors_length(file->bytes, file->size, file->size, name, &length, &error), REEF_OK);
    reef_status status =
        rfi_safetensors_read(NULL, file->bytes + 8, length, file->size - 8 - length, name, table, &error);
    CHECK(status == REEF_OK, "%s: %s", name, error.text);
}

static const rfi_tensor *find(const rfi_safetensors *table, const char *name)
{
    for (ptrdiff_t i = 0; i < table->count; i++) {
        if (rfi_equals(table->tensors[i].name, name)) {
            return &table->tensors[i];
        }
    }
    fail_msg("there is no tensor %s", name);
    return NULL;
}

/* The numbers of a tensor, which lies behind the header. */
static void get(const rfi_file *file, const rfi_tensor *tensor, size_t data, double *out)
{
    rfi_array array = {.type = tensor->type, .rank = 1, .shape = {tensor->count}, .count = tensor->count};
    array.data = file->bytes + data + tensor->start;
    rfi_array_get_f64(&array, out);
}

static void every_type(void **state)
{
    static const struct {
        const char *name;
        rfi_type type;
    } want[] = {{"f64", RFI_F64}, {"f32", RFI_F32}, {"f16", RFI_F16}, {"bf16", RFI_BF16},
                {"i64", RFI_I64}, {"i32", RFI_I32}, {"i16", RFI_I16}, {"i8", RFI_I8},
                {"u64", RFI_U64}, {"u32", RFI_U32}, {"u16", RFI_U16}, {"u8", RFI_U8}};
    static const double numbers[] = {0, 1, 2, 3, 4, 100};
    rfi_file file;
    rfi_safetensors table;
    double got[6];
    (void)state;
    read_golden("types", &file, &table);
    size_t data = file.size - table.tensors[table.count - 1].start - table.tensors[table.count - 1].bytes;
    assert_int_equal(table.count, 13);
    for (ptrdiff_t i = 0; i < COUNT(want); i++) {
        const rfi_tensor *tensor = find(&table, want[i].name);
        assert_int_equal(tensor->type, want[i].type);
        assert_int_equal(tensor->rank, 2);
        assert_int_equal(tensor->shape[0], 2);
        assert_int_equal(tensor->shape[1], 3);
        get(&file, tensor, data, got);
        CHECK(memcmp(got, numbers, sizeof got) == 0, "%s has other numbers", want[i].name);
    }
    assert_int_equal(find(&table, "bool")->type, RFI_BOOL);
    get(&file, find(&table, "bool"), data, got);
    assert_true(got[0] == 1 && got[1] == 0 && got[2] == 1);
    assert_int_equal(table.pairs, 2);
    for (ptrdiff_t i = 0; i < 2; i++) {
        bool format = rfi_equals(table.metadata[2 * i], "format");
        assert_true(format || rfi_equals(table.metadata[2 * i], "quote"));
        assert_true(rfi_equals(table.metadata[2 * i + 1], format ? "np" : "a \"b\" \\ \n"));
    }
    rfi_safetensors_free(NULL, &table);
    rfi_file_free(NULL, &file);
}

static void names_and_shapes(void **state)
{
    rfi_file file;
    rfi_safetensors table;
    (void)state;
    read_golden("names", &file, &table);
    assert_int_equal(table.count, 4);
    assert_int_equal(table.pairs, 0);
    assert_int_equal(find(&table, "scalar")->rank, 0);
    assert_int_equal(find(&table, "scalar")->count, 1);
    assert_int_equal(find(&table, "empty")->rank, 3);
    assert_int_equal(find(&table, "empty")->count, 0);
    assert_int_equal(find(&table, "a\"b\\c")->count, 2);
    assert_int_equal(find(&table, "sp\xC3\xA4\xC3\x9F"
                                  "e/\xCE\xBB")
                         ->count,
                     4);
    rfi_safetensors_free(NULL, &table);
    rfi_file_free(NULL, &file);
    read_golden("nothing", &file, &table);
    assert_int_equal(table.count, 0);
    rfi_safetensors_free(NULL, &table);
    rfi_file_free(NULL, &file);
}

/* ---- headers by hand ---- */

static reef_status read_text(const char *header, size_t room, rfi_safetensors *table, reef_error *error)
{
    return rfi_safetensors_read(NULL, header, strlen(header), room, "made", table, error);
}

static void other_ways_to_write_it(void **state)
{
    static const char two[] = "{\"y\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[3,8]},"
                              "\"x\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}";
    static const char *const good[] = {
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{ \"x\" : {\n\"data_offsets\" : [ 0 , 8 ] , \"shape\"\t:[2],\r\"dtype\" : \"F32\" } }   ",
        "{\"\\u0078\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"__metadata__\":{},\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"__metadata__\":{\"\":\"\"}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
        two,
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(good); i++) {
        rfi_safetensors table;
        reef_error error = {REEF_OK, ""};
        CHECK(read_text(good[i], 8, &table, &error) == REEF_OK, "%s: %s", good[i], error.text);
        CHECK(rfi_equals(table.tensors[0].name, "x"), "%s: another name", good[i]);
        rfi_safetensors_free(NULL, &table);
    }
}

static void unicode_names(void **state)
{
    rfi_safetensors table;
    (void)state;
    assert_int_equal(read_text("{\"\\uD83D\\ude00\\u00e4\\n\\u0000/\":{\"dtype\":\"U8\",\"shape\":[1],"
                               "\"data_offsets\":[0,1]}}",
                               1, &table, NULL),
                     REEF_OK);
    assert_int_equal(table.tensors[0].name.length, 9);
    assert_memory_equal(table.tensors[0].name.text, "\xF0\x9F\x98\x80\xC3\xA4\n\0/", 9);
    rfi_safetensors_free(NULL, &table);
}

#define ONE(name, inside) "\"" name "\":{" inside "}"
#define F32(shape, offsets) "\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]"

static const struct {
    const char *header;
    size_t room;
    const char *says;
} bad_headers[] = {
    {"", 0, "byte 8: the header should begin with {"},
    {" {}", 0, "byte 8: the header should begin with {"},
    {"[]", 0, "should begin with {"},
    {"{", 0, "name of a tensor"},
    {"{}x", 0, "something follows"},
    {"{,}", 0, "name of a tensor"},
    {"{\"x\"}", 0, "colon is missing after the name"},
    {"{\"x\":3}", 0, "a tensor should be {"},
    {"{\"x\":{}}", 0, "should have the keys"},
    {"{\"x\":{" F32("2", "0,8") ",\"more\":1}}", 8, "should end with } after its three keys"},
    {"{\"x\":{\"type\":\"F32\"}}", 8, "unknown key"},
    {"{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 8, "a key appears twice"},
    {"{\"x\":{\"dtype\":32}}", 8, "should be a type"},
    {"{\"x\":{\"dtype\":\"F8_E8M0\"}}", 8, "type 'F8_E8M0' are not supported; F64"},
    {"{\"x\":{\"dtype\":\"f32\"}}", 8, "type 'f32' are not supported"},
    {"{" ONE("x", F32("2", "0,8")) ",}", 8, "name of a tensor"},
    {"{" ONE("x", F32("2", "0,8")) " " ONE("y", F32("", "8,12")) "}", 12, "comma or the header's } is missing"},
    {"{" ONE("x", F32("2,", "0,8")) "}", 8, "whole number"},
    {"{" ONE("x", F32("02", "0,8")) "}", 8, "whole number"},
    {"{" ONE("x", F32("-2", "0,8")) "}", 8, "whole number"},
    {"{" ONE("x", F32("2.0", "0,8")) "}", 8, "whole number"},
    {"{" ONE("x", F32("2e0", "0,8")) "}", 8, "whole number"},
    {"{" ONE("x", F32("2 1", "0,8")) "}", 8, "should end with ]"},
    {"{\"x\":{\"shape\":2}}", 8, "'shape' should be a list"},
    {"{\"x\":{\"data_offsets\":8}}", 8, "list of two numbers"},
    {"{" ONE("x", F32("2", "0")) "}", 8, "list of two numbers"},
    {"{" ONE("x", F32("2", "0,8,9")) "}", 8, "list of two numbers"},
    {"{" ONE("x", F32("2", "8,0")) "}", 8, "not below the first"},
    {"{" ONE("x", F32("2", "0,99999999999999999999")) "}", 8, "number is too large"},
    {"{" ONE("x", F32("99999999999999999999", "0,8")) "}", 8, "number is too large"},
    {"{" ONE("x", F32("4294967296,4294967296", "0,8")) "}", 8, "more elements than"},
    {"{" ONE("x", F32("9223372036854775807", "0,8")) "}", 8, "more elements than"},
    {"{" ONE("x", F32("4611686018427387904,4,0", "0,0")) "}", 0, "more elements than"},
    {"{" ONE("x", F32("3", "0,8")) "}", 8, "tensor 'x' has data_offsets that do not fit"},
    {"{" ONE("x", F32("0", "0,8")) "}", 8, "do not fit"},
    {"{" ONE("x", F32("2", "4,12")) "}", 12, "tensor 'x' begins after a hole"},
    {"{" ONE("x", F32("2", "0,8")) "," ONE("y", F32("2", "12,20")) "}", 20, "'y' begins after a hole"},
    {"{" ONE("x", F32("2", "0,8")) "," ONE("y", F32("2", "4,12")) "}", 12, "'y' overlaps"},
    {"{" ONE("x", F32("2", "0,8")) "," ONE("y", F32("2", "0,8")) "}", 8, "'y' overlaps"},
    {"{" ONE("x", F32("2", "0,8")) "," ONE("y", F32("0", "4,4")) "}", 8, "'y' overlaps"},
    {"{" ONE("x", F32("2", "0,8")) "," ONE("x", F32("2", "8,16")) "}", 16, "'x' appears twice"},
    {"{" ONE("x", F32("2", "0,8")) "," ONE("\\u0078", F32("2", "8,16")) "}", 16, "'x' appears twice"},
    {"{" ONE("x", F32("2", "0,8")) "}", 7, "reaches beyond the end"},
    {"{" ONE("x", F32("2", "0,8")) "}", 9, "1 byte follows"},
    {"{}", 3, "3 bytes follow"},
    {"{" ONE("\\u005f_metadata__", F32("2", "0,8")) "}", 8, "kept for metadata"},
    {"{\"__metadata__\":1}", 0, "'__metadata__' should be"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "should be strings"},
    {"{\"__metadata__\":{a:1}}", 0, "should be a string"},
    {"{\"__metadata__\":{\"a\" \"b\"}}", 0, "colon is missing in"},
    {"{\"__metadata__\":{\"a\":\"b\"", 0, "should end with }"},
    {"{\"__metadata__\" {}}", 0, "colon is missing after '__metadata__'"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "appears twice"},
    {"{\"x", 0, "ends within a string"},
    {"{\"\\x\":1}", 0, "JSON does not know"},
    {"{\"\\u12g4\":1}", 0, "JSON does not know"},
    {"{\"\\ud800\":1}", 0, "JSON does not know"},
    {"{\"\\ud800\\u0041\":1}", 0, "JSON does not know"},
    {"{\"\\udc00\":1}", 0, "JSON does not know"},
    {"{\"\\u12", 0, "JSON does not know"},
    {"{\"\n\":1}", 0, "not UTF-8"},
    {"{\"\x80\":1}", 0, "not UTF-8"},
    {"{\"\xC0\x80\":1}", 0, "not UTF-8"},
    {"{\"\xE0\x80\x80\":1}", 0, "not UTF-8"},
    {"{\"\xED\xA0\x80\":1}", 0, "not UTF-8"},
    {"{\"\xF4\x90\x80\x80\":1}", 0, "not UTF-8"},
    {"{\"\xC3", 0, "not UTF-8"},
};

static void malformed_headers(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad_headers); i++) {
        rfi_safetensors table = {.count = 77};
        reef_error error = {REEF_OK, ""};
        CHECK(read_text(bad_headers[i].header, bad_headers[i].room, &table, &error) == REEF_E_FORMAT, "%s is taken",
              bad_headers[i].header);
        CHECK(strstr(error.text, bad_headers[i].says) && strncmp(error.text, "made: ", 6) == 0,
              "%s: '%s' should say '%s'", bad_headers[i].header, error.text, bad_headers[i].says);
        assert_int_equal(table.count, 77);
    }
}

static void lengths_of_headers(void **state)
{
    static const struct {
        unsigned char bytes[8];
        size_t size;
        const char *says; /* NULL: good */
    } cases[] = {
        {{2}, 10, NULL},
        {{3}, 10, "ends within its header of 3 bytes"},
        {{2}, 7, "too few"},
        {{0}, 0, "too few"},
        {{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, 100, "not a safetensors file"},
        {{0x01, 0xE1, 0xF5, 0x05}, 200000000, "does not begin with the length of a header"},
        {{0x00, 0xE1, 0xF5, 0x05}, 200000000, NULL},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        size_t length = 0;
        reef_error error = {REEF_OK, ""};
        size_t have = cases[i].size < 8 ? cases[i].size : 8;
        reef_status status = rfi_safetensors_length(cases[i].bytes, have, cases[i].size, "made", &length, &error);
        assert_int_equal(status, cases[i].says ? REEF_E_FORMAT : REEF_OK);
        CHECK(!cases[i].says || strstr(error.text, cases[i].says), "'%s'", error.text);
    }
}

/* ---- against a JSON library ---- */

static void compare_tensor(const rfi_tensor *tensor, json_t *root)
{
    json_t *entry = json_object_getn(root, tensor->name.text, tensor->name.length);
    assert_non_null(entry);
    json_t *shape = json_object_get(entry, "shape");
    json_t *offsets = json_object_get(entry, "data_offsets");
    assert_string_equal(json_string_value(json_object_get(entry, "dtype")), rfi_safetensors_type(tensor->type));
    assert_int_equal(json_array_size(shape), tensor->rank);
    for (ptrdiff_t i = 0; i < tensor->rank; i++) {
        assert_true(json_integer_value(json_array_get(shape, (size_t)i)) == tensor->shape[i]);
    }
    assert_true(json_integer_value(json_array_get(offsets, 0)) == (json_int_t)tensor->start);
    assert_true(json_integer_value(json_array_get(offsets, 1)) == (json_int_t)(tensor->start + tensor->bytes));
}

/* What is taken here is JSON, with the same content. */
static bool check_damaged(const char *header, size_t length, size_t room)
{
    rfi_safetensors table;
    if (rfi_safetensors_read(NULL, header, length, room, "damaged", &table, NULL) != REEF_OK) {
        return false;
    }
    json_error_t error;
    json_t *root = json_loadb(header, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    CHECK(root != NULL, "taken, but no JSON (%s): %.*s", error.text, (int)length, header);
    assert_int_equal(json_object_size(root), table.count + (json_object_get(root, "__metadata__") ? 1 : 0));
    for (ptrdiff_t i = 0; i < table.count; i++) {
        compare_tensor(&table.tensors[i], root);
    }
    json_decref(root);
    rfi_safetensors_free(NULL, &table);
    return true;
}

static void damaged_headers(void **state)
{
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"}, " ONE("a.weight", F32("2, 3", "0,24")) "," ONE(
        "\\u00e4\xC3\xB6",
        F32("0,7", "24,24")) "," ONE("n", "\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[24,32]") "}  ";
    static const char marks[] = "0123456789{}[]\",:\\ unF\t\x80\xC3\x00";
    char damaged[sizeof header];
    rfi_rng rng;
    int taken = 0;
    (void)state;
    rfi_rng_init(&rng, 3, 77, 0, 0, 0);
    assert_true(check_damaged(header, sizeof header - 1, 32));
    for (int i = 0; i < 100000; i++) {
        memcpy(damaged, header, sizeof header);
        size_t length = sizeof header - 1;
        for (uint64_t n = 1 + rfi_rng_below(&rng, 2); n > 0; n--) {
            damaged[rfi_rng_below(&rng, (uint32_t)length)] = marks[rfi_rng_below(&rng, sizeof marks - 1)];
        }
        taken += check_damaged(damaged, rfi_rng_below(&rng, 10) ? length : rfi_rng_below(&rng, (uint32_t)length), 32);
    }
    CHECK(taken > 1000 && taken < 90000, "%d of 100000 were taken", taken);
}

static void failing_allocations(void **state)
{
    static const char header[] = "{" ONE("x", F32("2", "0,8")) "}";
    rfi_safetensors table = {.count = 77};
    alloc_log log;
    (void)state;
    reef_context *context = alloc_context(&log, 1);
    log.fail_at = 0;
    assert_int_equal(rfi_safetensors_read(context, header, sizeof header - 1, 8, "made", &table, NULL), REEF_E_NOMEM);
    assert_int_equal(table.count, 77);
    log.fail_at = -1;
    assert_int_equal(rfi_safetensors_read(context, header, sizeof header - 1, 9, "made", &table, NULL), REEF_E_FORMAT);
    reef_context_destroy(&context);
    assert_int_equal(log.live, 0);
    assert_false(log.broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),
        cmocka_unit_test(names_and_shapes),
        cmocka_unit_test(other_ways_to_write_it),
        cmocka_unit_test(unicode_names),
        cmocka_unit_test(malformed_headers),
        cmocka_unit_test(lengths_of_headers),
        cmocka_unit_test(damaged_headers),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
