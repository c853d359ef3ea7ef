#include "num/kernels/halves.h"

#include "num/kernels/kernels.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdatomic.h>

/* AVX2 is what the kernels have been chosen for; F16C has a bit of its own. */
static bool is_there(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    const rfi_kernels *kernels = rfi_kernels_find(true);
    return kernels && strncmp(kernels->name, "avx", 3) == 0 && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool is_known_there(void)
{
    static atomic_int known; /* asking takes microseconds on virtual machines: 1 there, 2 not there */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        answer = is_there() ? 1 : 2;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 1;
}

bool rfi_halves_widen(const uint16_t *half, ptrdiff_t count, float *out)
{
    bool there = is_known_there();
    if (there) {
        rfi_halves_widen_avx2(half, count, out);
    }
    return there;
}

bool rfi_bf16_widen(const uint16_t *half, ptrdiff_t count, float *out)
{
    bool there = is_known_there();
    if (there) {
        rfi_bf16_widen_avx2(half, count, out);
    }
    return there;
}

bool rfi_bf16_narrow(const float *number, ptrdiff_t count, uint16_t *out)
{
    bool there = is_known_there();
    if (there) {
        rfi_bf16_narrow_avx2(number, count, out);
    }
    return there;
}

#else

bool rfi_halves_widen(const uint16_t *half, ptrdiff_t count, float *out)
{
    (void)half;
    (void)count;
    (void)out;
    return false;
}

bool rfi_bf16_widen(const uint16_t *half, ptrdiff_t count, float *out)
{
    return rfi_halves_widen(half, count, out);
}

bool rfi_bf16_narrow(const float *number, ptrdiff_t count, uint16_t *out)
{
    (void)number;
    (void)count;
    (void)out;
    return false;
}

#endif
