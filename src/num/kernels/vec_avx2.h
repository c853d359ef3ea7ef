/* The vector layer for AVX2 with FMA. See vec_portable.h for what each operation means. */
#include <immintrin.h>

#ifdef REAL_IS_FLOAT
typedef float real;
typedef __m256 vec;
#define LANES 8
#define OP(name) _mm256_##name##_ps
#define FROM_INTEGERS _mm256_castsi256_ps
#define MASK_STORE(p, m, a) _mm256_maskstore_ps((float *)(p), _mm256_castps_si256(m), a)
#define MASK_LOAD(p, m) _mm256_maskload_ps((const float *)(p), _mm256_castps_si256(m))
#define BIT_OP(name) _mm256_##name##_ps
#else
typedef double real;
typedef __m256d vec;
#define LANES 4
#define OP(name) _mm256_##name##_pd
#define FROM_INTEGERS _mm256_castsi256_pd
#define MASK_STORE(p, m, a) _mm256_maskstore_pd((double *)(p), _mm256_castpd_si256(m), a)
#define MASK_LOAD(p, m) _mm256_maskload_pd((const double *)(p), _mm256_castpd_si256(m))
#define BIT_OP(name) _mm256_##name##_pd
#endif
typedef vec mask; /* all bits of a lane set: true */

#define REGISTERS 16
#define KERNEL static inline __attribute__((always_inline))

KERNEL mask m_first(ptrdiff_t n)
{
#ifdef REAL_IS_FLOAT
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return FROM_INTEGERS(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane));
#else
    __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    return FROM_INTEGERS(_mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)n), lane));
#endif
}

KERNEL vec v_load(const void *p)
{
    return OP(loadu)((const real *)p);
}

KERNEL vec v_load_part(const void *p, ptrdiff_t n)
{
    return MASK_LOAD(p, m_first(n));
}

KERNEL void v_store(void *p, vec a)
{
    OP(storeu)((real *)p, a);
}

KERNEL void v_store_part(void *p, vec a, ptrdiff_t n)
{
    MASK_STORE(p, m_first(n), a);
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
    return v_div(a, b);
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
    return BIT_OP(andnot)(v_set((real)-0.0), a);
}

KERNEL mask v_less(vec a, vec b)
{
    return OP(cmp)(a, b, _CMP_LT_OQ);
}

KERNEL mask v_equal(vec a, vec b)
{
    return OP(cmp)(a, b, _CMP_EQ_OQ);
}

KERNEL mask v_within(vec low, vec a, vec high)
{
    return BIT_OP(and)(OP(cmp)(low, a, _CMP_LE_OQ), OP(cmp)(a, high, _CMP_LE_OQ));
}

KERNEL vec v_select(mask m, vec a, vec b)
{
    return OP(blendv)(b, a, m);
}

KERNEL mask m_and(mask a, mask b)
{
    return BIT_OP(and)(a, b);
}

KERNEL mask m_andnot(mask a, mask b)
{
    return BIT_OP(andnot)(b, a);
}

KERNEL mask m_or(mask a, mask b)
{
    return BIT_OP(or)(a, b);
}

KERNEL unsigned m_bits(mask a)
{
    return (unsigned)OP(movemask)(a);
}

KERNEL bool m_all(mask a)
{
    return OP(movemask)(a) == (1 << LANES) - 1;
}

typedef struct wide {
#ifdef REAL_IS_FLOAT
    __m256d low, high;
#else
    __m256d low;
#endif
} wide;

KERNEL wide w_zero(void)
{
    return (wide){0};
}

KERNEL wide w_fma(wide sum, vec a, double factor)
{
    __m256d f = _mm256_set1_pd(factor);
#ifdef REAL_IS_FLOAT
    sum.low = _mm256_fmadd_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a)), f, sum.low);
    sum.high = _mm256_fmadd_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)), f, sum.high);
#else
    sum.low = _mm256_fmadd_pd(a, f, sum.low);
#endif
    return sum;
}

KERNEL wide w_add(wide sum, vec a)
{
#ifdef REAL_IS_FLOAT
    sum.low = _mm256_add_pd(sum.low, _mm256_cvtps_pd(_mm256_castps256_ps128(a)));
    sum.high = _mm256_add_pd(sum.high, _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
#else
    sum.low = _mm256_add_pd(sum.low, a);
#endif
    return sum;
}

KERNEL vec w_narrow(wide sum, double factor)
{
    __m256d f = _mm256_set1_pd(factor);
#ifdef REAL_IS_FLOAT
    __m128 low = _mm256_cvtpd_ps(_mm256_mul_pd(sum.low, f));
    __m128 high = _mm256_cvtpd_ps(_mm256_mul_pd(sum.high, f));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
#else
    return _mm256_mul_pd(sum.low, f);
#endif
}

KERNEL double v_total(vec a)
{
#ifdef REAL_IS_FLOAT
    __m256d sum =
        _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
#else
    __m256d sum = a;
#endif
    __m128d half = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
}

KERNEL void v_four_totals(const vec *a, double *total)
{
#ifdef REAL_IS_FLOAT
    __m256 halves = _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
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
    a.low = _mm256_sub_pd(a.low, b.low);
#ifdef REAL_IS_FLOAT
    a.high = _mm256_sub_pd(a.high, b.high);
#endif
    return a;
}

KERNEL wide w_load(const double *p)
{
#ifdef REAL_IS_FLOAT
    return (wide){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
#else
    return (wide){_mm256_loadu_pd(p)};
#endif
}

KERNEL void w_store(double *p, wide a)
{
    _mm256_storeu_pd(p, a.low);
#ifdef REAL_IS_FLOAT
    _mm256_storeu_pd(p + 4, a.high);
#endif
}

KERNEL wide w_clamp(wide a, vec low, vec high)
{
#ifdef REAL_IS_FLOAT
    __m256d low_half = _mm256_cvtps_pd(_mm256_castps256_ps128(low));
    __m256d high_half = _mm256_cvtps_pd(_mm256_castps256_ps128(high));
    a.low = _mm256_min_pd(_mm256_max_pd(a.low, low_half), high_half);
    low_half = _mm256_cvtps_pd(_mm256_extractf128_ps(low, 1));
    high_half = _mm256_cvtps_pd(_mm256_extractf128_ps(high, 1));
    a.high = _mm256_min_pd(_mm256_max_pd(a.high, low_half), high_half);
#else
    a.low = _mm256_min_pd(_mm256_max_pd(a.low, low), high);
#endif
    return a;
}

KERNEL void v_prefetch(const void *p)
{
    _mm_prefetch(p, _MM_HINT_T1);
}

#include "num/kernels/float_keys_tmpl.h"
