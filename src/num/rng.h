/* Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011).
 *
 * key = mix64(seed, purpose); counter = (block, agent, repetition, round), 32 bits each. A number is a pure
 * function of these, so results do not depend on threads, lanes, ranks or resume.
 */
#ifndef RFI_NUM_RNG_H
#define RFI_NUM_RNG_H

#include <stddef.h>
#include <stdint.h>

/* What random numbers are for. Every use of one seed has its own number here, so that no two share a stream. The values are
 * names in ASCII; uses add to them at most a number times 2^32. */
#define RFI_PURPOSE_SPLIT UINT64_C(0x73706C6974)       /* data set: training or test */
#define RFI_PURPOSE_CENTRE UINT64_C(0x67617573732D63)  /* data source gaussian: centres of the classes */
#define RFI_PURPOSE_SAMPLE UINT64_C(0x67617573732D78)  /* data source gaussian: samples */
#define RFI_PURPOSE_PARTITION UINT64_C(0x706172746974) /* who gets which samples */
#define RFI_PURPOSE_DATA UINT64_C(0x64617461)          /* samples of problems that make them as they go */
#define RFI_PURPOSE_OPTIMUM UINT64_C(0x6F707469)       /* the model to be found */
#define RFI_PURPOSE_DRIFT UINT64_C(0x64726674)         /* how it moves */
#define RFI_PURPOSE_AGENT UINT64_C(0x6167656E)         /* what differs between agents: noise, covariance, own optimum */
#define RFI_PURPOSE_BATCH UINT64_C(0x62617463)         /* which samples a mini-batch has */
#define RFI_PURPOSE_START UINT64_C(0x73746172)         /* where learning starts */
#define RFI_PURPOSE_LOWRANK UINT64_C(0x6C6F7772)       /* where the search for directions of a matrix starts */

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

/* The key of a purpose within a seed: for a fixed purpose a bijection of the seed, and the other way round. */
uint64_t rfi_rng_key(uint64_t seed, uint64_t purpose);

void rfi_rng_init(rfi_rng *rng, uint64_t seed, uint64_t purpose, uint32_t agent, uint32_t repetition, uint32_t round);

uint32_t rfi_rng_u32(rfi_rng *rng);
/* Uniform on the odd multiples of 2^-53, so never 0 or 1. */
double rfi_rng_uniform(rfi_rng *rng);
double rfi_rng_normal(rfi_rng *rng);
/* Uniform on 0..bound-1 without bias, bound >= 1. */
uint32_t rfi_rng_below(rfi_rng *rng, uint32_t bound);
/* order becomes a random permutation of 0..n-1 (Fisher-Yates), n < 2^32. */
void rfi_rng_permutation(rfi_rng *rng, ptrdiff_t *order, ptrdiff_t n);
/* Place i of a permutation of 0..n-1 that is a pure function of the key and needs no memory; 0 <= i < n < 2^62. */
ptrdiff_t rfi_permuted(uint64_t key, ptrdiff_t n, ptrdiff_t i);

#endif
