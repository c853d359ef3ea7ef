/* The vector layer in plain C: one lane. It also says what the operations mean.
 *
 * vec: LANES numbers of type real. mask: LANES truth values. wide: LANES double-precision sums.
 * Loads and stores take any address. v_load_part reads the first n lanes and sets the others to 0.
 * v_min(a, b) and v_max(a, b) return b when arithmetic has made a NaN and b is a number: so a bound holds for NaN too.
 * Other results with NaN differ from set to set (here and on x86: b), as does the order of -0 and 0; kernels detect NaN
 * by other means. */
#include <math.h>
#include <string.h>

#ifdef REAL_IS_FLOAT
typedef float real;
#define REAL_ABS fabsf
#define REAL_FMA(a, b, c) ((float)((double)(a) * (double)(b) + (double)(c))) /* exact product, one rounding to double */
#else
typedef double real;
#define REAL_ABS fabs
#define REAL_FMA(a, b, c) ((a) * (b) + (c))
#endif
typedef real vec;
typedef unsigned mask;
#define LANES 1

#define REGISTERS 32
#define KERNEL static inline

KERNEL vec v_load(const void *p)
{
    vec a;
    memcpy(&a, p, sizeof a);
    return a;
}

KERNEL vec v_load_part(const void *p, ptrdiff_t n)
{
    return n > 0 ? v_load(p) : 0;
}

KERNEL void v_store(void *p, vec a)
{
    memcpy(p, &a, sizeof a);
}

KERNEL void v_store_part(void *p, vec a, ptrdiff_t n)
{
    if (n > 0) {
        v_store(p, a);
    }
}

/* a in every lane */
KERNEL vec v_set(real a)
{
    return a;
}

KERNEL vec v_add(vec a, vec b)
{
    return a + b;
}

KERNEL vec v_sub(vec a, vec b)
{
    return a - b;
}

KERNEL vec v_mul(vec a, vec b)
{
    return a * b;
}

KERNEL vec v_div(vec a, vec b)
{
    return a / b;
}

/* a / b, to 14 bits or better where that is faster (float32 only) */
KERNEL vec v_quotient(vec a, vec b)
{
    return v_div(a, b);
}

/* a b + c */
KERNEL vec v_fma(vec a, vec b, vec c)
{
    return REAL_FMA(a, b, c);
}

/* c - a b */
KERNEL vec v_fnma(vec a, vec b, vec c)
{
    return REAL_FMA(-a, b, c);
}

KERNEL vec v_min(vec a, vec b)
{
    return a < b ? a : b;
}

KERNEL vec v_max(vec a, vec b)
{
    return a > b ? a : b;
}

KERNEL vec v_abs(vec a)
{
    return REAL_ABS(a);
}

KERNEL mask v_less(vec a, vec b)
{
    return a < b;
}

KERNEL mask v_equal(vec a, vec b)
{
    return a == b;
}

/* low <= a <= high */
KERNEL mask v_within(vec low, vec a, vec high)
{
    return low <= a && a <= high;
}

/* a where m, else b */
KERNEL vec v_select(mask m, vec a, vec b)
{
    return m ? a : b;
}

KERNEL mask m_and(mask a, mask b)
{
    return a & b;
}

/* a and not b */
KERNEL mask m_andnot(mask a, mask b)
{
    return a & ~b;
}

KERNEL mask m_or(mask a, mask b)
{
    return a | b;
}

/* the first n lanes */
KERNEL mask m_first(ptrdiff_t n)
{
    return n > 0;
}

/* one bit per lane */
KERNEL unsigned m_bits(mask a)
{
    return a;
}

KERNEL bool m_all(mask a)
{
    return a != 0;
}

typedef struct wide {
    double low;
} wide;

KERNEL wide w_zero(void)
{
    return (wide){0};
}

/* sum + factor a */
KERNEL wide w_fma(wide sum, vec a, double factor)
{
    return (wide){sum.low + factor * (double)a};
}

KERNEL wide w_add(wide sum, vec a)
{
    return (wide){sum.low + (double)a};
}

/* factor times the sums, rounded to real */
KERNEL vec w_narrow(wide sum, double factor)
{
    return (real)(sum.low * factor);
}

/* the sum of the lanes in double precision, in a fixed order */
KERNEL double v_total(vec a)
{
    return (double)a;
}

/* The same of four vectors, in the precision of the lanes. */
KERNEL void v_four_totals(const vec *a, double *total)
{
    for (int i = 0; i < 4; i++) {
        total[i] = v_total(a[i]);
    }
}

KERNEL wide w_sub(wide a, wide b)
{
    return (wide){a.low - b.low};
}

/* LANES doubles */
KERNEL wide w_load(const double *p)
{
    return (wide){*p};
}

/* LANES doubles */
KERNEL void w_store(double *p, wide a)
{
    *p = a.low;
}

/* Between low and high, which are numbers. */
KERNEL wide w_clamp(wide a, vec low, vec high)
{
    double least = a.low > (double)low ? a.low : (double)low;
    return (wide){least < (double)high ? least : (double)high};
}

/* Asks for the cache line at p, which need not exist. */
KERNEL void v_prefetch(const void *p)
{
    __builtin_prefetch(p, 0, 2);
}

#include "num/kernels/float_keys_tmpl.h"
