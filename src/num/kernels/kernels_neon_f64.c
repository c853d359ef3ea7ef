/* The kernels for float64 in NEON. */
#include <stdbool.h>
#include <stddef.h>
#if defined(__aarch64__)

#define ISA "neon"
#define NAME(kernel) kernel##_neon_f64
#define KERNELS rfi_kernels_neon_f64
#define GRAM rfi_gram_neon
#include "num/kernels/vec_neon.h"

#include "num/kernels/kernels_tmpl.h"
#endif
