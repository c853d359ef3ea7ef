/* Little-endian integers in byte strings: the wire and the journal are the same on every machine. */
#ifndef RFI_NET_BYTES_H
#define RFI_NET_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void rfi_put(unsigned char *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (unsigned char)(value >> (8 * i));
    }
}

static inline uint64_t rfi_take(const unsigned char *from, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)from[i] << (8 * i);
    }
    return value;
}

static inline bool rfi_all_zero(const unsigned char *bytes, size_t size)
{
    unsigned char any = 0;
    for (size_t i = 0; i < size; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

#endif
