/* Sorting 16-bit numbers in NEON. */
#include <stdbool.h>
#include <stddef.h>
#if defined(__aarch64__)

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define SORT_16 rfi_sort_16_neon
#define LANES 8
#define KERNEL static inline __attribute__((always_inline))
typedef int16x8_t vec;
typedef int16x8_t key;

KERNEL vec v_set(int a)
{
    return vdupq_n_s16((int16_t)a);
}

KERNEL vec v_load(const void *p)
{
    vec a;
    memcpy(&a, p, sizeof a);
    return a;
}

KERNEL vec v_load_part(const void *p, ptrdiff_t n)
{
    vec a = v_set(0);
    memcpy(&a, p, (size_t)n * sizeof(int16_t));
    return a;
}

KERNEL vec v_magnitude(vec a)
{
    return vandq_s16(a, v_set(INT16_MAX));
}

KERNEL vec v_greater(vec a, vec b)
{
    return vmaxq_s16(a, b);
}

KERNEL bool v_any_from(vec a, int least)
{
    return vmaxvq_s16(a) >= least;
}

KERNEL key k_of(vec a)
{
    return veorq_s16(a, vandq_s16(vshrq_n_s16(a, 15), v_set(INT16_MAX)));
}

KERNEL vec k_value(key a)
{
    return k_of(a);
}

KERNEL key k_min(key a, key b)
{
    return vminq_s16(a, b);
}

KERNEL key k_max(key a, key b)
{
    return vmaxq_s16(a, b);
}

KERNEL void v_prefetch(const void *p)
{
    __builtin_prefetch(p, 0, 2);
}

#include "num/kernels/sort_16_tmpl.h"
#endif
