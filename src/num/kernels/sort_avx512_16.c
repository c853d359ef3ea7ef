/* Sorting 16-bit numbers in AVX-512. */
#include <stdbool.h>
#include <stddef.h>
#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>

#define SORT_16 rfi_sort_16_avx512
#define LANES 32
#define KERNEL static inline __attribute__((always_inline))
typedef __m512i vec;
typedef __m512i key;

KERNEL vec v_set(int a)
{
    return _mm512_set1_epi16((short)a);
}

KERNEL vec v_load(const void *p)
{
    return _mm512_loadu_si512(p);
}

KERNEL vec v_load_part(const void *p, ptrdiff_t n)
{
    return _mm512_maskz_loadu_epi16((__mmask32)((UINT64_C(1) << n) - 1), p);
}

KERNEL vec v_magnitude(vec a)
{
    return _mm512_and_si512(a, v_set(INT16_MAX));
}

KERNEL vec v_greater(vec a, vec b)
{
    return _mm512_max_epi16(a, b);
}

KERNEL bool v_any_from(vec a, int least)
{
    return _mm512_cmpge_epi16_mask(a, v_set(least)) != 0;
}

KERNEL key k_of(vec a)
{
    enum { A_XOR_B_AND_C = 0x78 };
    return _mm512_ternarylogic_epi32(a, _mm512_srai_epi16(a, 15), v_set(INT16_MAX), A_XOR_B_AND_C);
}

KERNEL vec k_value(key a)
{
    return k_of(a);
}

KERNEL key k_min(key a, key b)
{
    return _mm512_min_epi16(a, b);
}

KERNEL key k_max(key a, key b)
{
    return _mm512_max_epi16(a, b);
}

KERNEL void v_prefetch(const void *p)
{
    _mm_prefetch(p, _MM_HINT_T1);
}

#include "num/kernels/sort_16_tmpl.h"
#endif
