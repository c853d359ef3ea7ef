/* The vector layer for NEON of 64-bit Arm, which every such processor has. See vec_portable.h for what each operation
 * means.
 *
 * v_min and v_max are the instructions that prefer numbers: of a NaN that arithmetic made and a number they return the
 * number, on either side. Kernels need that where a number bounds what may be NaN (the other pair of instructions
 * would let the NaN of one lane through to a sum of lanes). A column with a NaN comes out of the sort in no useful
 * state, as everywhere: the kernels see it from its sum and leave the lane to the caller. */
#include <arm_neon.h>
#include <string.h>

#ifdef REAL_IS_FLOAT
typedef float real;
typedef float32x4_t vec;
typedef uint32x4_t mask; /* all bits of a lane set: true */
#define LANES 4
#define OP(name) name##_f32
#define MASK_OP(name) name##_u32
#else
typedef double real;
typedef float64x2_t vec;
typedef uint64x2_t mask;
#define LANES 2
#define OP(name) name##_f64
#define MASK_OP(name) name##_u64
#endif

#define REGISTERS 32
#define KERNEL static inline __attribute__((always_inline))

KERNEL mask m_first(ptrdiff_t n)
{
#ifdef REAL_IS_FLOAT
    return vcgtq_s32(vdupq_n_s32((int32_t)n), (int32x4_t){0, 1, 2, 3});
#else
    return vcgtq_s64(vdupq_n_s64(n), (int64x2_t){0, 1});
#endif
}

/* memcpy, since the intrinsics take pointers to numbers, which must be aligned as such */
KERNEL vec v_load(const void *p)
{
    vec a;
    memcpy(&a, p, sizeof a);
    return a;
}

KERNEL vec v_load_part(const void *p, ptrdiff_t n)
{
    vec a = OP(vdupq_n)(0);
    memcpy(&a, p, (size_t)n * sizeof(real));
    return a;
}

KERNEL void v_store(void *p, vec a)
{
    memcpy(p, &a, sizeof a);
}

KERNEL void v_store_part(void *p, vec a, ptrdiff_t n)
{
    memcpy(p, &a, (size_t)n * sizeof(real));
}

KERNEL vec v_set(real a)
{
    return OP(vdupq_n)(a);
}

KERNEL vec v_add(vec a, vec b)
{
    return OP(vaddq)(a, b);
}

KERNEL vec v_sub(vec a, vec b)
{
    return OP(vsubq)(a, b);
}

KERNEL vec v_mul(vec a, vec b)
{
    return OP(vmulq)(a, b);
}

KERNEL vec v_div(vec a, vec b)
{
    return OP(vdivq)(a, b);
}

KERNEL vec v_quotient(vec a, vec b)
{
    return v_div(a, b);
}

KERNEL vec v_fma(vec a, vec b, vec c)
{
    return OP(vfmaq)(c, a, b);
}

KERNEL vec v_fnma(vec a, vec b, vec c)
{
    return OP(vfmsq)(c, a, b);
}

KERNEL vec v_min(vec a, vec b)
{
    return OP(vminnmq)(a, b);
}

KERNEL vec v_max(vec a, vec b)
{
    return OP(vmaxnmq)(a, b);
}

KERNEL vec v_abs(vec a)
{
    return OP(vabsq)(a);
}

KERNEL mask v_less(vec a, vec b)
{
    return OP(vcltq)(a, b);
}

KERNEL mask v_equal(vec a, vec b)
{
    return OP(vceqq)(a, b);
}

KERNEL mask v_within(vec low, vec a, vec high)
{
    return MASK_OP(vandq)(OP(vcleq)(low, a), OP(vcleq)(a, high));
}

KERNEL vec v_select(mask m, vec a, vec b)
{
    return OP(vbslq)(m, a, b);
}

KERNEL mask m_and(mask a, mask b)
{
    return MASK_OP(vandq)(a, b);
}

KERNEL mask m_andnot(mask a, mask b)
{
    return MASK_OP(vbicq)(a, b);
}

KERNEL mask m_or(mask a, mask b)
{
    return MASK_OP(vorrq)(a, b);
}

KERNEL unsigned m_bits(mask a)
{
#ifdef REAL_IS_FLOAT
    return vaddvq_u32(vandq_u32(a, (uint32x4_t){1, 2, 4, 8}));
#else
    return (unsigned)vaddvq_u64(vandq_u64(a, (uint64x2_t){1, 2}));
#endif
}

KERNEL bool m_all(mask a)
{
    return m_bits(a) == (1U << LANES) - 1;
}

typedef struct wide {
#ifdef REAL_IS_FLOAT
    float64x2_t low, high;
#else
    float64x2_t low;
#endif
} wide;

KERNEL wide w_zero(void)
{
    float64x2_t zero = vdupq_n_f64(0);
#ifdef REAL_IS_FLOAT
    return (wide){zero, zero};
#else
    return (wide){zero};
#endif
}

KERNEL wide w_fma(wide sum, vec a, double factor)
{
#ifdef REAL_IS_FLOAT
    sum.low = vfmaq_n_f64(sum.low, vcvt_f64_f32(vget_low_f32(a)), factor);
    sum.high = vfmaq_n_f64(sum.high, vcvt_high_f64_f32(a), factor);
#else
    sum.low = vfmaq_n_f64(sum.low, a, factor);
#endif
    return sum;
}

KERNEL wide w_add(wide sum, vec a)
{
#ifdef REAL_IS_FLOAT
    sum.low = vaddq_f64(sum.low, vcvt_f64_f32(vget_low_f32(a)));
    sum.high = vaddq_f64(sum.high, vcvt_high_f64_f32(a));
#else
    sum.low = vaddq_f64(sum.low, a);
#endif
    return sum;
}

KERNEL vec w_narrow(wide sum, double factor)
{
#ifdef REAL_IS_FLOAT
    float32x2_t low = vcvt_f32_f64(vmulq_n_f64(sum.low, factor));
    return vcvt_high_f32_f64(low, vmulq_n_f64(sum.high, factor));
#else
    return vmulq_n_f64(sum.low, factor);
#endif
}

KERNEL double v_total(vec a)
{
#ifdef REAL_IS_FLOAT
    return vaddvq_f64(vaddq_f64(vcvt_f64_f32(vget_low_f32(a)), vcvt_high_f64_f32(a)));
#else
    return vaddvq_f64(a);
#endif
}

KERNEL void v_four_totals(const vec *a, double *total)
{
#ifdef REAL_IS_FLOAT
    float32x4_t all = vpaddq_f32(vpaddq_f32(a[0], a[1]), vpaddq_f32(a[2], a[3]));
    vst1q_f64(total, vcvt_f64_f32(vget_low_f32(all)));
    vst1q_f64(total + 2, vcvt_f64_f32(vget_high_f32(all)));
#else
    for (int i = 0; i < 4; i++) {
        total[i] = v_total(a[i]);
    }
#endif
}

KERNEL wide w_sub(wide a, wide b)
{
    a.low = vsubq_f64(a.low, b.low);
#ifdef REAL_IS_FLOAT
    a.high = vsubq_f64(a.high, b.high);
#endif
    return a;
}

KERNEL wide w_load(const double *p)
{
#ifdef REAL_IS_FLOAT
    return (wide){vld1q_f64(p), vld1q_f64(p + 2)};
#else
    return (wide){vld1q_f64(p)};
#endif
}

KERNEL void w_store(double *p, wide a)
{
    vst1q_f64(p, a.low);
#ifdef REAL_IS_FLOAT
    vst1q_f64(p + 2, a.high);
#endif
}

KERNEL wide w_clamp(wide a, vec low, vec high)
{
#ifdef REAL_IS_FLOAT
    a.low = vminnmq_f64(vmaxnmq_f64(a.low, vcvt_f64_f32(vget_low_f32(low))), vcvt_f64_f32(vget_low_f32(high)));
    a.high = vminnmq_f64(vmaxnmq_f64(a.high, vcvt_high_f64_f32(low)), vcvt_high_f64_f32(high));
#else
    a.low = vminnmq_f64(vmaxnmq_f64(a.low, low), high);
#endif
    return a;
}

KERNEL void v_prefetch(const void *p)
{
    __builtin_prefetch(p, 0, 2);
}

#include "num/kernels/float_keys_tmpl.h"
