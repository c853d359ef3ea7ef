/* The kernels of single precision for rows of bfloat16, in AVX-512. */
#include <stdbool.h>
#include <stddef.h>
#if defined(__x86_64__)

#define REAL_IS_FLOAT
#define ISA "avx512"
#define NAME(kernel) kernel##_avx512_bf16
#define KERNELS rfi_kernels_avx512_bf16
#define GRAM rfi_gram_avx512
#include "num/kernels/vec_avx512.h"

#include "num/kernels/stored_avx512.h"

#include "num/kernels/kernels_tmpl.h"
#endif
