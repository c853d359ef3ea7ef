/* FNV-1a: h = (h xor byte) * (2^40 + 2^8 + 0xb3) modulo 2^64. */
#include "base/hash.h"

#include <string.h>

#define PRIME UINT64_C(0x100000001b3)

uint64_t rfi_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ p[i]) * PRIME;
    }
    return hash;
}

uint64_t rfi_hash_number(uint64_t hash, uint64_t number)
{
    for (int shift = 0; shift < 64; shift += 8) {
        hash = (hash ^ (number >> shift & 0xFF)) * PRIME;
    }
    return hash;
}

uint64_t rfi_hash_text(uint64_t hash, const char *text)
{
    return rfi_hash_bytes(hash, text, strlen(text) + 1);
}
