/* Eight numbers at a time. */
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

__attribute__((target("avx,f16c"))) void rfi_halves_narrow_avx2(const float *number, ptrdiff_t count, uint16_t *out)
{
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(number + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(out + i), half);
    }
    if (i < count) {
        float rest[8] = {0};
        uint16_t halves[8];
        memcpy(rest, number + i, (size_t)(count - i) * sizeof *rest);
        _mm_storeu_si128((__m128i *)(void *)halves, _mm256_cvtps_ph(_mm256_loadu_ps(rest), _MM_FROUND_TO_NEAREST_INT));
        memcpy(out + i, halves, (size_t)(count - i) * sizeof *halves);
    }
}

#define AVX2 static inline __attribute__((target("avx2"), always_inline))

AVX2 __m256 bf16_to_single(const uint16_t *half)
{
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)half));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

__attribute__((target("avx2"))) void rfi_bf16_widen_avx2(const uint16_t *half, ptrdiff_t count, float *out)
{
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(out + i, bf16_to_single(half + i));
    }
    if (i < count) {
        uint16_t rest[8] = {0};
        float numbers[8];
        memcpy(rest, half + i, (size_t)(count - i) * sizeof *rest);
        _mm256_storeu_ps(numbers, bf16_to_single(rest));
        memcpy(out + i, numbers, (size_t)(count - i) * sizeof *numbers);
    }
}

/* To nearest, ties to even; NaN stay NaN. */
AVX2 __m128i single_to_bf16(const float *number)
{
    __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(number));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i near = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
    __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F800000));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i both = _mm256_srli_epi32(_mm256_blendv_epi8(near, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
}

__attribute__((target("avx2"))) void rfi_bf16_narrow_avx2(const float *number, ptrdiff_t count, uint16_t *out)
{
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm_storeu_si128((__m128i *)(void *)(out + i), single_to_bf16(number + i));
    }
    if (i < count) {
        float rest[8] = {0};
        uint16_t halves[8];
        memcpy(rest, number + i, (size_t)(count - i) * sizeof *rest);
        _mm_storeu_si128((__m128i *)(void *)halves, single_to_bf16(rest));
        memcpy(out + i, halves, (size_t)(count - i) * sizeof *halves);
    }
}
#endif
