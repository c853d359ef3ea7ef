/* Philox4x32-10, a counter-based generator (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy
 * as 1, 2, 3"), and the distributions drawn from it.
 *
 * One block of four words is a keyed bijection of its 128-bit counter: ten rounds of two 32 x 32 -> 64 bit products,
 * the key raised by a Weyl sequence after each. A stream owns the counters with its (agent, repetition, round) and
 * walks through the block number: 2^34 words before it repeats.
 */
#include "num/rng.h"

#include <assert.h>
#include <math.h>

#define PHILOX_M0 UINT32_C(0xD2511F53)
#define PHILOX_M1 UINT32_C(0xCD9E8D57)
#define PHILOX_W0 UINT32_C(0x9E3779B9) /* golden ratio */
#define PHILOX_W1 UINT32_C(0xBB67AE85) /* sqrt(3) - 1 */
#define PHILOX_ROUNDS 10

#define TWO_PI 6.283185307179586477

void rfi_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)PHILOX_M0 * c0;
        const uint64_t p1 = (uint64_t)PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that spreads every bit. */
static uint64_t spread(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* mix64 of the design: for a fixed purpose a bijection of the seed, and the other way round, so neighbouring seeds
 * never share a stream. The constant keeps (0, 0) off the all-zero key. */
uint64_t rfi_rng_key(uint64_t seed, uint64_t purpose)
{
    return spread(spread(seed + UINT64_C(0x9E3779B97F4A7C15)) ^ purpose);
}

void rfi_rng_init(rfi_rng *rng, uint64_t seed, uint64_t purpose, uint32_t agent, uint32_t repetition, uint32_t round)
{
    const uint64_t key = rfi_rng_key(seed, purpose);
    *rng = (rfi_rng){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {0, agent, repetition, round},
        .used = 4,
    };
}

uint32_t rfi_rng_u32(rfi_rng *rng)
{
    if (rng->used == 4) {
        rfi_philox(rng->counter, rng->key, rng->buffer);
        rng->counter[0]++;
        rng->used = 0;
    }
    return rng->buffer[rng->used++];
}

double rfi_rng_uniform(rfi_rng *rng)
{
    const uint64_t high = rfi_rng_u32(rng);
    const uint64_t bits = high << 32 | rfi_rng_u32(rng);
    /* Odd multiples of 2^-53. With one bit more the largest would round to 1. */
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

/* Box and Muller (1958): two independent normals from two uniforms. */
double rfi_rng_normal(rfi_rng *rng)
{
    if (rng->has_spare) {
        rng->has_spare = 0;
        return rng->spare;
    }
    const double radius = sqrt(-2.0 * log(rfi_rng_uniform(rng)));
    const double angle = TWO_PI * rfi_rng_uniform(rng);
    rng->spare = radius * sin(angle);
    rng->has_spare = 1;
    return radius * cos(angle);
}

/* Lemire (2019): the high word of a product is uniform once the few low words that occur too often are refused. */
uint32_t rfi_rng_below(rfi_rng *rng, uint32_t bound)
{
    assert(bound >= 1);
    const uint32_t refused = (0u - bound) % bound;
    uint64_t product;
    do
        product = (uint64_t)rfi_rng_u32(rng) * bound;
    while ((uint32_t)product < refused);
    return (uint32_t)(product >> 32);
}

void rfi_rng_permutation(rfi_rng *rng, ptrdiff_t *order, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t j = (ptrdiff_t)rfi_rng_below(rng, (uint32_t)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
}

/* A Feistel network on the smallest even number of bits that holds n, walked on until it falls below n (Black and Rogaway 2002): less
 * than four steps on average. */
ptrdiff_t rfi_permuted(uint64_t key, ptrdiff_t n, ptrdiff_t i)
{
    assert(i >= 0 && i < n && (uint64_t)n < UINT64_C(1) << 62);
    enum { ROUNDS = 6 };
    int half = 1;
    while ((uint64_t)n > UINT64_C(1) << (2 * half)) {
        half++;
    }
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t place = (uint64_t)i;
    do {
        uint64_t left = place >> half;
        uint64_t right = place & mask;
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            const uint64_t mixed = left ^ (spread((key + round * UINT64_C(0x9E3779B97F4A7C15)) ^ right) & mask);
            left = right;
            right = mixed;
        }
        place = left << half | right;
    } while (place >= (uint64_t)n);
    return (ptrdiff_t)place;
}
