/* Eight numbers at a time with F16C. */
#include "num/kernels/halves.h"
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

__attribute__((target("avx,f16c"))) void rfi_halves_widen_avx2(const uint16_t *half, ptrdiff_t count, float *out)
{
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(half + i))));
    }
    if (i < count) {
        uint16_t rest[8] = {0};
        float numbers[8];
        memcpy(rest, half + i, (size_t)(count - i) * sizeof *rest);
        _mm256_storeu_ps(numbers, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)rest)));
        memcpy(out + i, numbers, (size_t)(count - i) * sizeof *numbers);
    }
}
#endif
