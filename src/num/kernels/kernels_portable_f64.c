/* The kernels for float64 in plain C. */
#include <stdbool.h>
#include <stddef.h>

#define ISA "portable"
#define NAME(kernel) kernel##_portable_f64
#define KERNELS rfi_kernels_portable_f64
#define GRAM rfi_gram_portable
#include "num/kernels/vec_portable.h"

#include "num/kernels/kernels_tmpl.h"
