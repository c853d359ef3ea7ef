/* Rows of 16 bits for the kernels in AVX2 (with F16C for float16): widened to single precision as they are loaded. */
#include <stdint.h>
#include <string.h>

#include "num/kernels/sort_16.h"

#define ROWS_STORED
#define SORT_16 rfi_sort_16_avx2
#define SORT_16_LANES RFI_SORT_16_AVX2
/* Bits of magnitudes that are not finite, or so large that their sum might not be. */
#ifdef STORED_F16
#define LARGE_BITS 0x7C00
#else
#define LARGE_BITS 0x6F80
#endif
typedef uint16_t stored;

KERNEL vec widened(__m128i number)
{
#ifdef STORED_F16
    return _mm256_cvtph_ps(number);
#else
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(number), 16));
#endif
}

KERNEL vec v_load_stored(const void *p)
{
    return widened(_mm_loadu_si128((const __m128i *)p));
}

KERNEL vec v_load_stored_part(const void *p, ptrdiff_t n)
{
    stored number[LANES] = {0};
    memcpy(number, p, (size_t)n * sizeof *number);
    return v_load_stored(number);
}

KERNEL real number_of(stored number)
{
    return _mm256_cvtss_f32(widened(_mm_cvtsi32_si128(number)));
}
