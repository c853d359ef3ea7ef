/* Standard normals in float32, many at once: the data of problems that generate their samples as they go.
 *
 * Numbers 4 b .. 4 b + 3 of a lane are two Box-Muller pairs made of block b of its Philox stream,
 *   key = rfi_rng_key(rfi_rng_key(seed, purpose), step + 2^32 (round / 2^32)),
 *   counter = (b, agent, repetition, round mod 2^32).
 * Nothing but integers and + - * / sqrt of IEEE float32 is used, so a number is bit-identical on every instruction set and
 * next to any other lanes. Largest value: 6.56. Compared with exact arithmetic,
 * a number is wrong by at most 4e-7 max(1, r) + 2^-25 / r, r being the radius of its pair.
 */
#ifndef RFI_NUM_NORMAL_H
#define RFI_NUM_NORMAL_H

#include <stddef.h>
#include <stdint.h>

/* What all lanes of a call have in common. */
typedef struct rfi_normal_stream {
    uint32_t key[2];
    uint32_t round;
} rfi_normal_stream;

rfi_normal_stream rfi_normal_open(uint64_t seed, uint64_t purpose, int64_t round, int32_t step);

/* out[j * lanes + l] = number first + j of the stream of agents[l] and repetitions[l], j < count; first a multiple of 4, up to
 * 2^34 numbers per stream. The implementations are in num/lanes.h. */
typedef void rfi_normals(const rfi_normal_stream *stream, const uint32_t *agents, const uint32_t *repetitions,
                         ptrdiff_t lanes, ptrdiff_t first, ptrdiff_t count, float *out);

#endif
