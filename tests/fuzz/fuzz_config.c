/* Configurations of two sites: whatever they hold, what differs is told in a short line that no terminal obeys, and a file does not differ from itself. */
#include "check.h"
#include "merge/merge.h"

#include <stdint.h>
#include <string.h>

static void check(const rfi_key_list *keys)
{
    size_t length = strlen(keys->text);
    CHECK(keys->count >= 0 && length < sizeof keys->text && (length > 0) == (keys->count > 0));
    for (size_t i = 0; i < length; i++) {
        CHECK(keys->text[i] >= ' ' && keys->text[i] <= '~');
    }
}

/* The texts are what stands before and after the first 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char bytes[2][4096];
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    size_t first = zero ? (size_t)(zero - data) : size;
    size_t second = zero ? size - first - 1 : 0;
    if (first > sizeof bytes[0] || second > sizeof bytes[1]) {
        return 0;
    }
    memcpy(bytes[0], data, first);
    memcpy(bytes[1], data + size - second, second);
    const rfi_file one = {bytes[0], first};
    const rfi_file other = {bytes[1], second};
    rfi_key_list keys = rfi_differing_keys(&one, &other);
    check(&keys);
    keys = rfi_differing_keys(&other, &one);
    check(&keys);
    CHECK(rfi_differing_keys(&one, &one).count == 0);
    return 0;
}
