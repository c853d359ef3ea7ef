/* The kernels of single precision for rows of float16, in AVX2. */
#include <stdbool.h>
#include <stddef.h>
#if defined(__x86_64__)

#define REAL_IS_FLOAT
#define STORED_F16
#define ISA "avx2"
#define NAME(kernel) kernel##_avx2_f16
#define KERNELS rfi_kernels_avx2_f16
#define GRAM rfi_gram_avx2
#include "num/kernels/vec_avx2.h"

#include "num/kernels/stored_avx2.h"

#include "num/kernels/kernels_tmpl.h"
#endif
