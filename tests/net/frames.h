/* Frames, keys and windows for tests, made the way an agent makes them. */
#ifndef TESTS_NET_FRAMES_H
#define TESTS_NET_FRAMES_H

#include "net/window.h"

/* Keys that are a pure function of the number; start the library first. */
rfi_keys frames_keys(uint32_t agent);
/* A shape of `count` doubles. */
rfi_shape frames_shape(uint64_t count);
/* A head of an agent's MODEL frame, inline if the shape is small; root of `model`. */
rfi_head frames_head(const rfi_shape *shape, uint32_t agent, uint64_t round, const void *model);
/* Lays out, signs and appends the payload of an inline model; returns the size. frame has room for it. */
size_t frames_make(unsigned char *frame, const rfi_head *head, const rfi_keys *keys, const void *model);
/* The same of a small model of a sealed shape, for those who hear the agent; head as of frames_head. */
size_t frames_sealed(unsigned char *frame, rfi_head *head, const rfi_shape *shape, const rfi_keys *keys,
                     const void *model, const rfi_hearer *hearers, ptrdiff_t count);
/* Agents `agents` as hearers. */
void frames_hearers(rfi_hearer *hearers, const uint32_t *agents, ptrdiff_t count);
/* The hash of the run file in all of them. */
extern const unsigned char frames_run[RFI_HASH_BYTES];

/* Signatures at the price of a hash, for schedules by the thousand: BLAKE2b of key and message. Whoever knows the public key could
 * forge them, which nobody in the simulated network does except where a test says so. */
extern const rfi_signatures frames_cheap;

#endif
