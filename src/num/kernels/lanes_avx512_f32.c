/* The code for sixteen lanes in AVX-512. */
#include <stddef.h>
#if defined(__x86_64__)

#include <immintrin.h>

#define PAIR __m512i
#define PAIRS 8
#define PAIR_LOAD(p) _mm512_loadu_si512(p)
#define PAIR_STORE(p, v) _mm512_storeu_si512(p, v)
#define PAIR_SET(x) _mm512_set1_epi64((long long)(x))
#define PAIR_MUL(x, y) _mm512_mul_epu32(x, y)
#define PAIR_HIGH(x) _mm512_srli_epi64(x, 32)
#define PAIR_ADD(x, y) _mm512_add_epi64(x, y)
#define PAIR_XOR(x, y, z) _mm512_ternarylogic_epi64(x, y, z, 0x96)
#define PAIR_JOIN(even, odd) _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32))
#include "num/kernels/sixteen_lanes_tmpl.h"

const rfi_lanes rfi_lanes_avx512 = {"avx512", normals, residual, scale};
#endif
