/* Files that are something else, by their first bytes; and nothing that could be a safetensors or npy file is among them. */
#include "io/foreign.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLE(text, says)                                                                                             \
    {                                                                                                                  \
        text, sizeof(text) - 1, says                                                                                   \
    }

static const struct {
    const char *bytes;
    size_t size;
    const char *says;
} known[] = {
    SAMPLE("GGUF\3\0\0\0\x23\1\0\0\0\0\0\0", "GGUF"),
    SAMPLE("\x08\x07\x12\x07pytorch\x1a\x05"
           "1.9.0",
           "ONNX"),
    SAMPLE("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", "pickled file"),
    SAMPLE("\x80\x04\x95\x10\0\0\0\0\0\0\0}", "pickled file"),
    SAMPLE("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    SAMPLE("<!DOCTYPE html>\n<html>", "HTML"),
    SAMPLE("\xef\xbb\xbf\n <HTML lang=en>", "HTML"),
    SAMPLE("<?xml version=\"1.0\"?><Error>", "XML"),
    SAMPLE("{\n  \"metadata\": {}}", "is JSON"),
    SAMPLE("{\"weight_map\": {}}", "is JSON"),
    SAMPLE("\x89HDF\r\n\x1a\n\0\0", "HDF5"),
    SAMPLE("\x1f\x8b\x08\0\0\0\0\0\0\x03", "gzip"),
    SAMPLE("\x28\xb5\x2f\xfd\x24", "zstd"),
    SAMPLE("", "is empty"),
    SAMPLE("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "begins with zeros"),
    SAMPLE("PK\3\4", "zip archive"),
    SAMPLE("PK\3\4\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\x12\0archive/data.pkl", "pickled PyTorch"),
    /* a name that claims more bytes than there are */
    SAMPLE("PK\3\4\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\x14\0w.npy", "zip archive"),
};

static void named(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        const char *is = rfi_foreign(known[i].bytes, known[i].size);
        CHECK(is && strstr(is, known[i].says), "%td: '%s' should say %s", i, is ? is : "nothing", known[i].says);
    }
}

/* In memory of just that size, so that the sanitizers see a byte too many. */
static void cut_anywhere(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        for (size_t size = 0; size <= known[i].size; size++) {
            char *bytes = malloc(size + 1);
            memcpy(bytes + 1, known[i].bytes, size);
            (void)rfi_foreign(bytes + 1, size);
            free(bytes);
        }
    }
}

/* Every length of a header, and what npy begins with. */
static void ours(void **state)
{
    (void)state;
    for (unsigned length = 1; length <= 100000000; length += length < 1000000 ? 1 : 9973) {
        unsigned char bytes[12] = {[8] = '{', '"', 'w', '"'};
        for (int i = 0; i < 4; i++) {
            bytes[i] = (unsigned char)(length >> (8 * i));
        }
        assert_null(rfi_foreign(bytes, sizeof bytes));
    }
    assert_null(rfi_foreign("\x93NUMPY\1\0v\0{'descr'", 18));
    assert_null(rfi_foreign("PK\3\4\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\x14\0w.npy", 35));
    assert_null(rfi_foreign("\0\0\0\0\0\0\0\0\0", 9)); /* a header of no length is refused as such */
    assert_null(rfi_foreign("junk", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
