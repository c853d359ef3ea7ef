/* Half precision to single by the processor's own instruction, and bfloat16 to single and back. io/half.c is the definition; it takes several times
 * as long. */
#ifndef RFI_NUM_KERNELS_HALVES_H
#define RFI_NUM_KERNELS_HALVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the processor converts half precision: on x86-64 F16C, a part of 64-bit Arm. */
bool rfi_halves_here(void);

/* Does `count` numbers; false, and nothing done, where the processor cannot or REEF_ISA does not allow it. Any alignment. NaN stay NaN; the bits of
 * those that signal change. */
bool rfi_halves_widen(const uint16_t *half, ptrdiff_t count, float *out);

/* And back, to nearest, ties to even, in every bit as io/half.c has it, but for NaN, which stay NaN. */
bool rfi_halves_narrow(const float *number, ptrdiff_t count, uint16_t *out);

/* The same for bfloat16, to single and back, in every bit as io/half.c has it. */
bool rfi_bf16_widen(const uint16_t *half, ptrdiff_t count, float *out);
bool rfi_bf16_narrow(const float *number, ptrdiff_t count, uint16_t *out);

/* With AVX2, and the first two with F16C, which the caller has made sure of. */
void rfi_halves_widen_avx2(const uint16_t *half, ptrdiff_t count, float *out);
void rfi_halves_narrow_avx2(const float *number, ptrdiff_t count, uint16_t *out);
void rfi_bf16_widen_avx2(const uint16_t *half, ptrdiff_t count, float *out);
void rfi_bf16_narrow_avx2(const float *number, ptrdiff_t count, uint16_t *out);

#endif
