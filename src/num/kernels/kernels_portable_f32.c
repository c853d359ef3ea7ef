/* The kernels for float32 in plain C. */
#include <stdbool.h>
#include <stddef.h>

#define REAL_IS_FLOAT
#define ISA "portable"
#define NAME(kernel) kernel##_portable_f32
#define KERNELS rfi_kernels_portable_f32
#define GRAM rfi_gram_portable
#include "num/kernels/vec_portable.h"

#include "num/kernels/kernels_tmpl.h"
