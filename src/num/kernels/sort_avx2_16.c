/* Sorting 16-bit numbers in AVX2. */
#include <stdbool.h>
#include <stddef.h>
#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define SORT_16 rfi_sort_16_avx2
#define LANES 16
#define KERNEL static inline __attribute__((always_inline))
typedef __m256i vec;
typedef __m256i key;

KERNEL vec v_set(int a)
{
    return _mm256_set1_epi16((short)a);
}

KERNEL vec v_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

KERNEL vec v_load_part(const void *p, ptrdiff_t n)
{
    uint16_t number[LANES] = {0};
    memcpy(number, p, (size_t)n * sizeof *number);
    return v_load(number);
}

KERNEL vec v_magnitude(vec a)
{
    return _mm256_and_si256(a, v_set(INT16_MAX));
}

KERNEL vec v_greater(vec a, vec b)
{
    return _mm256_max_epi16(a, b);
}

KERNEL bool v_any_from(vec a, int least)
{
    return _mm256_movemask_epi8(_mm256_cmpgt_epi16(a, v_set(least - 1))) != 0;
}

KERNEL key k_of(vec a)
{
    return _mm256_xor_si256(a, _mm256_and_si256(_mm256_srai_epi16(a, 15), v_set(INT16_MAX)));
}

KERNEL vec k_value(key a)
{
    return k_of(a);
}

KERNEL key k_min(key a, key b)
{
    return _mm256_min_epi16(a, b);
}

KERNEL key k_max(key a, key b)
{
    return _mm256_max_epi16(a, b);
}

KERNEL void v_prefetch(const void *p)
{
    _mm_prefetch(p, _MM_HINT_T1);
}

#include "num/kernels/sort_16_tmpl.h"
#endif
