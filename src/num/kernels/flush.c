/* Flushing denormal numbers to zero. An attacker could otherwise slow aggregation down tenfold by sending them. */
#include "num/kernels/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* MXCSR bits: results that are denormal become 0, inputs that are count as 0 */
enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };

unsigned rfi_flush_begin(void)
{
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    return before;
}

void rfi_flush_end(unsigned before)
{
    _mm_setcsr(before);
}
#elif defined(__aarch64__)
/* FPCR bit: results that are denormal become 0, inputs that are count as 0 */
enum { FLUSH_TO_ZERO = 1 << 24 };

/* FPCR in assembly, since gcc and clang have no common name for it. Its upper half is reserved and reads as 0. */
unsigned rfi_flush_begin(void)
{
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | FLUSH_TO_ZERO));
    return (unsigned)before;
}

void rfi_flush_end(unsigned before)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)before));
}
#else
unsigned rfi_flush_begin(void)
{
    return 0;
}

void rfi_flush_end(unsigned before)
{
    (void)before;
}
#endif
