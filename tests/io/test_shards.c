/* The index of a model in shards: what is read, what is refused, and what is written can be read again. */
#include "io/shards.h"
#include "support/alloc.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

/* From memory of just that size, so that the sanitizers see a byte too many. */
static reef_status read(const char *text, size_t size, rfi_shards *shards, reef_error *error)
{
    char *bytes = malloc(size + 1);
    memcpy(bytes + 1, text, size);
    reef_status status = rfi_shards_read(NULL, bytes + 1, size, "x", shards, error);
    free(bytes);
    return status;
}

static const char index_text[] =
    "{\"metadata\": {\"total_size\": 12, \"more\": [1, {\"a\": null}, \"}\"]},\n \"weight_map\":"
    " {\"b\": \"2.safetensors\", \"a\\u00e9\": \"1.safetensors\", \"a\": \"2.safetensors\"}}\n";

static void good(void **state)
{
    rfi_shards shards;
    reef_error error;
    (void)state;
    reef_status status = read(index_text, sizeof index_text - 1, &shards, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    assert_int_equal(shards.count, 3);
    assert_int_equal(shards.file_count, 2);
    assert_true(rfi_equals(shards.entries[0].tensor, "a") && rfi_equals(shards.entries[0].file, "2.safetensors"));
    assert_true(rfi_equals(shards.entries[1].tensor, "a\xc3\xa9") && rfi_equals(shards.entries[2].tensor, "b"));
    assert_true(rfi_equals(shards.files[0], "1.safetensors") && rfi_equals(shards.files[1], "2.safetensors"));
    rfi_shards_free(NULL, &shards);
}

static void refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "byte 0: the index should begin with {"},
        {"[]", "byte 0: the index should begin with {"},
        {"{}", "there should be a key"},
        {"{\"metadata\": {}}", "there is no 'weight_map'"},
        {"{\"weight_map\": []}", "'weight_map' should be"},
        {"{\"weight_map\": {}, \"weight_map\": {}}", "appears twice"},
        {"{\"weight_map\": {\"a\": 1}}", "name of the tensor's file"},
        {"{\"weight_map\": {\"a\": \"f\", \"a\": \"g\"}}", "tensor 'a' appears twice"},
        {"{\"weight_map\": {\"a\": \"../f\"}}", "'../f' is not a file in this folder"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "is not a file in this folder"},
        {"{\"weight_map\": {\"a\": \"b\\u0000c\"}}", "is not a file in this folder"},
        {"{\"weight_map\": {\"a\": \".hidden\"}}", "is not a file in this folder"},
        {"{\"weight_map\": {\"a\": \"\"}}", "is not a file in this folder"},
        {"{\"weight_map\": {\"a\": \"f\"}} x", "something follows"},
        {"{\"weight_map\": {\"a\": \"\\ud800\"}}", "JSON does not know"},
        {"{\"weight_map\": {\"\xff\": \"f\"}}", "not UTF-8"},
        {"{\"metadata\": [[[, \"weight_map\": {}}", "there should be a value"},
        {"{\"metadata\": }, \"weight_map\": {}}", "there should be a value"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        rfi_shards shards;
        reef_error error = {REEF_OK, ""};
        assert_int_equal(read(cases[i].text, strlen(cases[i].text), &shards, &error), REEF_E_FORMAT);
        CHECK(strstr(error.text, cases[i].says), "%td: '%s' should say '%s'", i, error.text, cases[i].says);
    }
}

/* Every beginning of a good index is refused, and no changed byte makes it read beyond its end. */
static void damaged(void **state)
{
    (void)state;
    for (size_t size = 0; size + 2 < sizeof index_text; size++) { /* without its last } */
        rfi_shards shards;
        assert_int_equal(read(index_text, size, &shards, NULL), REEF_E_FORMAT);
    }
    for (size_t i = 0; i + 1 < sizeof index_text; i++) {
        for (int byte = 0; byte < 256; byte += 3) {
            char text[sizeof index_text];
            rfi_shards shards = {0};
            memcpy(text, index_text, sizeof text);
            text[i] = (char)byte;
            if (read(text, sizeof text - 1, &shards, NULL) == REEF_OK) {
                rfi_shards_free(NULL, &shards);
            }
        }
    }
}

static void written(void **state)
{
    static const rfi_shard_entry entries[] = {{{"a\"\\\n\x01\xc3\xa9", 7}, {"1.safetensors", 13}},
                                              {{"b", 1}, {"2.safetensors", 13}}};
    char text[400];
    rfi_shards shards;
    (void)state;
    size_t size = rfi_shards_write(entries, 2, 12, NULL);
    assert_true(size < sizeof text);
    assert_int_equal(rfi_shards_write(entries, 2, 12, text), size);
    assert_int_equal(read(text, size, &shards, NULL), REEF_OK);
    assert_int_equal(shards.count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rfi_slice_compare(shards.entries[i].tensor, entries[i].tensor), 0);
        assert_int_equal(rfi_slice_compare(shards.entries[i].file, entries[i].file), 0);
    }
    rfi_shards_free(NULL, &shards);
}

static void no_memory(void **state)
{
    alloc_log log;
    rfi_shards shards;
    (void)state;
    reef_context *context = alloc_context(&log, 1);
    log.total = 0;
    log.fail_at = 0;
    assert_int_equal(rfi_shards_read(context, index_text, sizeof index_text - 1, "x", &shards, NULL), REEF_E_NOMEM);
    log.fail_at = -1;
    reef_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good),    cmocka_unit_test(refused),   cmocka_unit_test(damaged),
        cmocka_unit_test(written), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
