/* Rows of 16 bits for the kernels in AVX-512: widened to single precision as they are loaded. */
#include "num/kernels/sort_16.h"

#define ROWS_STORED
#define SORT_16 rfi_sort_16_avx512
#define SORT_16_LANES RFI_SORT_16_AVX512
/* Bits of magnitudes that are not finite, or so large that their sum might not be. */
#ifdef STORED_F16
#define LARGE_BITS 0x7C00
#else
#define LARGE_BITS 0x6F80
#endif
typedef uint16_t stored;

KERNEL vec widened(__m256i number)
{
#ifdef STORED_F16
    return _mm512_cvtph_ps(number);
#else
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(number), 16));
#endif
}

KERNEL vec v_load_stored(const void *p)
{
    return widened(_mm256_loadu_si256((const __m256i *)p));
}

KERNEL vec v_load_stored_part(const void *p, ptrdiff_t n)
{
    return widened(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}

KERNEL real number_of(stored number)
{
    return _mm512_cvtss_f32(widened(_mm256_castsi128_si256(_mm_cvtsi32_si128(number))));
}
