/* 8-bit floating-point numbers as files have them, to float and back (Micikevicius et al., FP8 formats for deep learning, 2022).
 *
 *   E4M3   sign, 4 bits of exponent (bias 7), 3 of fraction; no infinities, NaN is 0x7F and 0xFF, the largest number 448
 *   E5M2   sign, 5 bits of exponent (bias 15), 2 of fraction; infinities and NaN as IEEE 754 has them: the upper half of a float16
 * Widening is exact. Narrowing rounds to nearest, ties to even; what is too large becomes NaN (E4M3) or infinite (E5M2). */
#ifndef RFI_IO_EIGHTH_H
#define RFI_IO_EIGHTH_H

#include <stddef.h>
#include <stdint.h>

void rfi_widen_e4m3(const uint8_t *eighth, ptrdiff_t count, float *out);
void rfi_widen_e5m2(const uint8_t *eighth, ptrdiff_t count, float *out);
void rfi_narrow_e4m3(const float *number, ptrdiff_t count, uint8_t *out);
void rfi_narrow_e5m2(const float *number, ptrdiff_t count, uint8_t *out);

#endif
