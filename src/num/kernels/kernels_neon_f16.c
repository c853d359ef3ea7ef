/* The kernels of single precision for rows of float16, in NEON. */
#include <stdbool.h>
#include <stddef.h>
#if defined(__aarch64__)

#define REAL_IS_FLOAT
#define STORED_F16
#define ISA "neon"
#define NAME(kernel) kernel##_neon_f16
#define KERNELS rfi_kernels_neon_f16
#define GRAM rfi_gram_neon
#include "num/kernels/vec_neon.h"

#include "num/kernels/stored_neon.h"

#include "num/kernels/kernels_tmpl.h"
#endif
