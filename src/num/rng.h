/* Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011).
 *
 * key = mix64(seed, purpose); counter = (block, agent, repetition, round), 32 bits each. A number is a pure
 * function of these, so results do not depend on threads, lanes, ranks or resume.
 */
#ifndef RFI_NUM_RNG_H
#define RFI_NUM_RNG_H

#include <stddef.h>
#include <stdint.h>

/* One stream: everything but the block number is fixed. */
typedef struct rfi_rng {
    uint32_t key[2];
    uint32_t counter[4]; /* block, agent, repetition, round */
    uint32_t buffer[4];
    int used;     /* words of buffer handed out already; 4 = empty */
    double spare; /* second Box-Muller normal */
    int has_spare;
} rfi_rng;

/* The bare generator: out = Philox4x32-10(counter, key). */
void rfi_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

void rfi_rng_init(rfi_rng *rng, uint64_t seed, uint64_t purpose, uint32_t agent, uint32_t repetition, uint32_t round);

uint32_t rfi_rng_u32(rfi_rng *rng);
/* Uniform on the odd multiples of 2^-53, so never 0 or 1. */
double rfi_rng_uniform(rfi_rng *rng);
double rfi_rng_normal(rfi_rng *rng);
/* Uniform on 0..bound-1 without bias, bound >= 1. */
uint32_t rfi_rng_below(rfi_rng *rng, uint32_t bound);
/* order becomes a random permutation of 0..n-1 (Fisher-Yates), n < 2^32. */
void rfi_rng_permutation(rfi_rng *rng, ptrdiff_t *order, ptrdiff_t n);

#endif
