/* The kernels for float64 in AVX2. */
#include <stdbool.h>
#include <stddef.h>
#if defined(__x86_64__)

#define ISA "avx2"
#define NAME(kernel) kernel##_avx2_f64
#define KERNELS rfi_kernels_avx2_f64
#define GRAM rfi_gram_avx2
#include "num/kernels/vec_avx2.h"

#include "num/kernels/kernels_tmpl.h"
#endif
