/* The code for sixteen lanes in AVX2. */
#include <stddef.h>
#if defined(__x86_64__)

#include <immintrin.h>

#define PAIR __m256i
#define PAIRS 4
#define PAIR_LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define PAIR_STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define PAIR_SET(x) _mm256_set1_epi64x((long long)(x))
#define PAIR_MUL(x, y) _mm256_mul_epu32(x, y)
#define PAIR_HIGH(x) _mm256_srli_epi64(x, 32)
#define PAIR_ADD(x, y) _mm256_add_epi64(x, y)
#define PAIR_XOR(x, y, z) _mm256_xor_si256(_mm256_xor_si256(x, y), z)
#define PAIR_JOIN(even, odd) _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA)
#include "num/kernels/sixteen_lanes_tmpl.h"

const rfi_lanes rfi_lanes_avx2 = {"avx2", normals, residual, scale};
#endif
