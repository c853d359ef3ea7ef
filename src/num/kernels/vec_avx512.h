/* The vector layer for AVX-512. See vec_portable.h for what each operation means. */
#include <immintrin.h>
#include <stdint.h>

#ifdef REAL_IS_FLOAT
typedef float real;
typedef __m512 vec;
typedef __mmask16 mask;
#define LANES 16
#define OP(name) _mm512_##name##_ps
#define MASKED(name) _mm512_mask_##name##_ps
#define ZEROED(name) _mm512_maskz_##name##_ps
#define COMPARE _mm512_cmp_ps_mask
#define COMPARE_IN _mm512_mask_cmp_ps_mask
#else
typedef double real;
typedef __m512d vec;
typedef __mmask8 mask;
#define LANES 8
#define OP(name) _mm512_##name##_pd
#define MASKED(name) _mm512_mask_##name##_pd
#define ZEROED(name) _mm512_maskz_##name##_pd
#define COMPARE _mm512_cmp_pd_mask
#define COMPARE_IN _mm512_mask_cmp_pd_mask
#endif

#define REGISTERS 32
#define KERNEL static inline __attribute__((always_inline))

KERNEL mask first_lanes(ptrdiff_t n)
{
    return (mask)((1U << n) - 1U);
}

KERNEL vec v_load(const void *p)
{
    return OP(loadu)(p);
}

KERNEL vec v_load_part(const void *p, ptrdiff_t n)
{
    return ZEROED(loadu)(first_lanes(n), p);
}

KERNEL void v_store(void *p, vec a)
{
    OP(storeu)(p, a);
}

KERNEL void v_store_part(void *p, vec a, ptrdiff_t n)
{
    MASKED(storeu)(p, first_lanes(n), a);
}

KERNEL vec v_set(real a)
{
    return OP(set1)(a);
}

KERNEL vec v_add(vec a, vec b)
{
    return OP(add)(a, b);
}

KERNEL vec v_sub(vec a, vec b)
{
    return OP(sub)(a, b);
}

KERNEL vec v_mul(vec a, vec b)
{
    return OP(mul)(a, b);
}

KERNEL vec v_div(vec a, vec b)
{
    return OP(div)(a, b);
}

KERNEL vec v_quotient(vec a, vec b)
{
#ifdef REAL_IS_FLOAT
    return _mm512_mul_ps(a, _mm512_rcp14_ps(b));
#else
    return _mm512_div_pd(a, b);
#endif
}

KERNEL vec v_fma(vec a, vec b, vec c)
{
    return OP(fmadd)(a, b, c);
}

KERNEL vec v_fnma(vec a, vec b, vec c)
{
    return OP(fnmadd)(a, b, c);
}

KERNEL vec v_min(vec a, vec b)
{
    return OP(min)(a, b);
}

KERNEL vec v_max(vec a, vec b)
{
    return OP(max)(a, b);
}

KERNEL vec v_abs(vec a)
{
    return OP(abs)(a);
}

KERNEL mask v_less(vec a, vec b)
{
    return COMPARE(a, b, _CMP_LT_OQ);
}

KERNEL mask v_equal(vec a, vec b)
{
    return COMPARE(a, b, _CMP_EQ_OQ);
}

KERNEL mask v_within(vec low, vec a, vec high)
{
    return COMPARE_IN(COMPARE(low, a, _CMP_LE_OQ), a, high, _CMP_LE_OQ);
}

KERNEL vec v_select(mask m, vec a, vec b)
{
    return MASKED(mov)(b, m, a);
}

KERNEL mask m_and(mask a, mask b)
{
    return a & b;
}

KERNEL mask m_andnot(mask a, mask b)
{
    return (mask)(a & ~b);
}

KERNEL mask m_or(mask a, mask b)
{
    return a | b;
}

KERNEL mask m_first(ptrdiff_t n)
{
    return first_lanes(n);
}

KERNEL unsigned m_bits(mask a)
{
    return a;
}

KERNEL bool m_all(mask a)
{
    return a == first_lanes(LANES);
}

/* Lanes of a in double precision, added to LANES sums. */
typedef struct wide {
#ifdef REAL_IS_FLOAT
    __m512d low, high;
#else
    __m512d low;
#endif
} wide;

KERNEL wide w_zero(void)
{
    return (wide){0};
}

KERNEL wide w_fma(wide sum, vec a, double factor)
{
    __m512d f = _mm512_set1_pd(factor);
#ifdef REAL_IS_FLOAT
    sum.low = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(a)), f, sum.low);
    sum.high = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)), f, sum.high);
#else
    sum.low = _mm512_fmadd_pd(a, f, sum.low);
#endif
    return sum;
}

KERNEL wide w_add(wide sum, vec a)
{
#ifdef REAL_IS_FLOAT
    sum.low = _mm512_add_pd(sum.low, _mm512_cvtps_pd(_mm512_castps512_ps256(a)));
    sum.high = _mm512_add_pd(sum.high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)));
#else
    sum.low = _mm512_add_pd(sum.low, a);
#endif
    return sum;
}

KERNEL vec w_narrow(wide sum, double factor)
{
    __m512d f = _mm512_set1_pd(factor);
#ifdef REAL_IS_FLOAT
    __m256 low = _mm512_cvtpd_ps(_mm512_mul_pd(sum.low, f));
    __m256 high = _mm512_cvtpd_ps(_mm512_mul_pd(sum.high, f));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
#else
    return _mm512_mul_pd(sum.low, f);
#endif
}

KERNEL double v_total(vec a)
{
#ifdef REAL_IS_FLOAT
    return _mm512_reduce_add_pd(
        _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(a)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1))));
#else
    return _mm512_reduce_add_pd(a);
#endif
}

KERNEL void v_four_totals(const vec *a, double *total)
{
#ifdef REAL_IS_FLOAT
    enum { EVEN = 0x88, ODD = 0xdd };
    vec first = v_add(_mm512_shuffle_ps(a[0], a[1], EVEN), _mm512_shuffle_ps(a[0], a[1], ODD));
    vec second = v_add(_mm512_shuffle_ps(a[2], a[3], EVEN), _mm512_shuffle_ps(a[2], a[3], ODD));
    vec quarters = v_add(_mm512_shuffle_ps(first, second, EVEN), _mm512_shuffle_ps(first, second, ODD));
    __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(quarters), _mm512_extractf32x8_ps(quarters, 1));
    __m128 all = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
    _mm256_storeu_pd(total, _mm256_cvtps_pd(all));
#else
    for (int i = 0; i < 4; i++) {
        total[i] = v_total(a[i]);
    }
#endif
}

KERNEL wide w_sub(wide a, wide b)
{
    a.low = _mm512_sub_pd(a.low, b.low);
#ifdef REAL_IS_FLOAT
    a.high = _mm512_sub_pd(a.high, b.high);
#endif
    return a;
}

KERNEL wide w_load(const double *p)
{
#ifdef REAL_IS_FLOAT
    return (wide){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8)};
#else
    return (wide){_mm512_loadu_pd(p)};
#endif
}

KERNEL void w_store(double *p, wide a)
{
    _mm512_storeu_pd(p, a.low);
#ifdef REAL_IS_FLOAT
    _mm512_storeu_pd(p + 8, a.high);
#endif
}

KERNEL wide w_clamp(wide a, vec low, vec high)
{
#ifdef REAL_IS_FLOAT
    __m512d low_half = _mm512_cvtps_pd(_mm512_castps512_ps256(low));
    __m512d high_half = _mm512_cvtps_pd(_mm512_castps512_ps256(high));
    a.low = _mm512_min_pd(_mm512_max_pd(a.low, low_half), high_half);
    low_half = _mm512_cvtps_pd(_mm512_extractf32x8_ps(low, 1));
    high_half = _mm512_cvtps_pd(_mm512_extractf32x8_ps(high, 1));
    a.high = _mm512_min_pd(_mm512_max_pd(a.high, low_half), high_half);
#else
    a.low = _mm512_min_pd(_mm512_max_pd(a.low, low), high);
#endif
    return a;
}

KERNEL void v_prefetch(const void *p)
{
    _mm_prefetch(p, _MM_HINT_T1);
}

#ifdef INTEGER_KEYS
/* Keys: the bits as integers, those of negative numbers turned over. */
typedef __m512i key;

KERNEL __m512i turned(__m512i a)
{
    enum { A_XOR_B_AND_C = 0x78 };
    return _mm512_ternarylogic_epi32(a, _mm512_srai_epi32(a, 31), _mm512_set1_epi32(INT32_MAX), A_XOR_B_AND_C);
}

KERNEL key k_of(vec a)
{
    return turned(_mm512_castps_si512(a));
}

KERNEL vec k_value(key a)
{
    return _mm512_castsi512_ps(turned(a));
}

KERNEL key k_min(key a, key b)
{
    return _mm512_min_epi32(a, b);
}

KERNEL key k_max(key a, key b)
{
    return _mm512_max_epi32(a, b);
}

KERNEL vec v_min_positive(vec a, vec b)
{
    return _mm512_castsi512_ps(k_min(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

KERNEL vec v_max_positive(vec a, vec b)
{
    return _mm512_castsi512_ps(k_max(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
#else
#include "num/kernels/float_keys_tmpl.h"
#endif
