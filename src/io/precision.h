/* Floating-point numbers of the types that files and arrays have (F8_E4M3, F8_E5M2, F16, BF16, F32, F64) to those that are computed with, and back.
 *
 * Widening is exact. Narrowing rounds once, to nearest, ties to even; what is too large becomes infinite (F8_E4M3: NaN). `raw` may have any alignment,
 * except that of 16-bit numbers, which is that of uint16_t; for the type that is computed with both are copies. */
#ifndef RFI_IO_PRECISION_H
#define RFI_IO_PRECISION_H

#include "io/array.h"

/* All but F64 to float. */
void rfi_widen_to_f32(rfi_type type, const void *raw, ptrdiff_t count, float *out);
/* All to double. */
void rfi_widen_to_f64(rfi_type type, const void *raw, ptrdiff_t count, double *out);
void rfi_narrow_from_f32(rfi_type type, const float *numbers, ptrdiff_t count, void *raw);
void rfi_narrow_from_f64(rfi_type type, const double *numbers, ptrdiff_t count, void *raw);

#endif
