/* The hash against values published by its authors (draft-eastlake-fnv, test vectors of FNV-1a with 64 bits). */
#include "base/hash.h"
#include "support/check.h"

#include <string.h>

static void published_values(void **state)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } known[] = {{"", UINT64_C(0xcbf29ce484222325)},
                 {"a", UINT64_C(0xaf63dc4c8601ec8c)},
                 {"b", UINT64_C(0xaf63df4c8601f1a5)},
                 {"fo", UINT64_C(0x08985907b541d342)},
                 {"foobar", UINT64_C(0x85944171f73967e8)}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        assert_true(rfi_hash_bytes(RFI_HASH_START, known[i].text, strlen(known[i].text)) == known[i].hash);
    }
    assert_true(rfi_hash_bytes(RFI_HASH_START, NULL, 0) == RFI_HASH_START);
}

static void pieces_are_the_whole(void **state)
{
    (void)state;
    uint64_t two = rfi_hash_bytes(rfi_hash_bytes(RFI_HASH_START, "foo", 3), "bar", 3);
    assert_true(two == rfi_hash_bytes(RFI_HASH_START, "foobar", 6));
    assert_true(rfi_hash_number(RFI_HASH_START, UINT64_C(0x0807060504030201)) ==
                rfi_hash_bytes(RFI_HASH_START, "\1\2\3\4\5\6\7\10", 8));
    assert_true(rfi_hash_text(RFI_HASH_START, "foo") == rfi_hash_bytes(RFI_HASH_START, "foo", 4));
    assert_true(rfi_hash_text(rfi_hash_text(RFI_HASH_START, "ab"), "c") !=
                rfi_hash_text(rfi_hash_text(RFI_HASH_START, "a"), "bc"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_values), cmocka_unit_test(pieces_are_the_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
