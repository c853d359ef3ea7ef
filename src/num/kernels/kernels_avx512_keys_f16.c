/* The kernels of single precision for rows of float16, in AVX-512, sorting integers. */
#include <stdbool.h>
#include <stddef.h>
#if defined(__x86_64__)

#define REAL_IS_FLOAT
#define STORED_F16
#define INTEGER_KEYS
#define ISA "avx512i"
#define NAME(kernel) kernel##_avx512i_f16
#define KERNELS rfi_kernels_avx512i_f16
#define GRAM rfi_gram_avx512
#include "num/kernels/vec_avx512.h"

#include "num/kernels/stored_avx512.h"

#include "num/kernels/kernels_tmpl.h"
#endif
