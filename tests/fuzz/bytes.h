/* Bytes that decide what a fuzz target does; when they run out a generator goes on, so that short inputs reach everything too. */
#ifndef REEF_FUZZ_BYTES_H
#define REEF_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>

typedef struct bytes {
    const uint8_t *data;
    size_t left;
    uint32_t more;
} bytes;

static inline uint8_t take(bytes *b)
{
    if (b->left > 0) {
        b->left--;
        return *b->data++;
    }
    b->more = b->more * 1664525U + 1013904223U;
    return (uint8_t)(b->more >> 24);
}

static inline ptrdiff_t below(bytes *b, ptrdiff_t limit)
{
    return (ptrdiff_t)take(b) % limit;
}

#endif
