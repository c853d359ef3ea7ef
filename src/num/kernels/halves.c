#include "num/kernels/halves.h"

#include "num/kernels/kernels.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdatomic.h>

static bool has_instruction(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* What is so of the processor, asked once: that takes microseconds on virtual machines. *known: 1 yes, 2 no. */
static bool ask_once(atomic_int *known, bool (*ask)(void))
{
    int answer = atomic_load_explicit(known, memory_order_relaxed);
    if (answer == 0) {
        answer = ask() ? 1 : 2;
        atomic_store_explicit(known, answer, memory_order_relaxed);
    }
    return answer == 1;
}

bool rfi_halves_here(void)
{
    static atomic_int known;
    return ask_once(&known, has_instruction);
}

/* AVX2 is what the kernels have been chosen for; F16C has a bit of its own. */
static bool is_there(void)
{
    const rfi_kernels *kernels = rfi_kernels_find(true);
    return kernels && strncmp(kernels->name, "avx", 3) == 0 && has_instruction();
}

static bool is_known_there(void)
{
    static atomic_int known;
    return ask_once(&known, is_there);
}

bool rfi_halves_narrow(const float *number, ptrdiff_t count, uint16_t *out)
{
    bool there = is_known_there();
    if (there) {
        rfi_halves_narrow_avx2(number, count, out);
    }
    return there;
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
bool rfi_halves_here(void)
{
#if defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

bool rfi_halves_widen(const uint16_t *half, ptrdiff_t count, float *out)
{
    (void)half;
    (void)count;
    (void)out;
    return false;
}

bool rfi_halves_narrow(const float *number, ptrdiff_t count, uint16_t *out)
{
    (void)number;
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
    return rfi_halves_narrow(number, count, out);
}
#endif
