/* Columns of 16-bit numbers, float16 or bfloat16, sorted as integers: these are in the same order once those of negative numbers are turned
 * over, and a vector has twice as many of them as of float32. */
#ifndef RFI_NUM_KERNELS_SORT_16_H
#define RFI_NUM_KERNELS_SORT_16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most coordinates of a call: a vector of numbers. */
enum { RFI_SORT_16_AVX2 = 16, RFI_SORT_16_AVX512 = 32, RFI_SORT_16_NEON = 8 };

/* Coordinates at .. at + lanes - 1 of n rows (any alignment): vector l of `column` receives the numbers at place l, of all places or only
 * of (n - 1) / 2 and n / 2. column: n vectors, aligned as such. True if the bits of some magnitude are `large` or more. */
typedef bool rfi_sort_16(const void *const *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, int large, bool all,
                         void *column);
rfi_sort_16 rfi_sort_16_avx2, rfi_sort_16_avx512, rfi_sort_16_neon;

#endif
