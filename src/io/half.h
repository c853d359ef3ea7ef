/* 16-bit floating-point numbers as files have them, to float and back.
 *
 *   float16    sign, 5 bits of exponent, 10 of fraction (IEEE 754 binary16)
 *   bfloat16   the upper half of a float
 * Widening is exact. Narrowing rounds to nearest, ties to even; what is too large becomes infinite. NaN stays NaN. */
#ifndef RFI_IO_HALF_H
#define RFI_IO_HALF_H

#include <stddef.h>
#include <stdint.h>

void rfi_widen_f16(const uint16_t *half, ptrdiff_t count, float *out);
void rfi_widen_bf16(const uint16_t *half, ptrdiff_t count, float *out);
void rfi_narrow_f16(const float *number, ptrdiff_t count, uint16_t *out);
void rfi_narrow_bf16(const float *number, ptrdiff_t count, uint16_t *out);

#endif
