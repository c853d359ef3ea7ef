/* Numeric arrays as they lie in a file: any type, byte order and alignment, rank up to 8. What npy and idx files contain. */
#ifndef RFI_IO_ARRAY_H
#define RFI_IO_ARRAY_H

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>

#define RFI_RANK_MAX 8

/* The types, with their letter and size in npy files. NumPy has no BF16 and no 8-bit floats. */
#define RFI_TYPE_LIST(X)                                                                                               \
    X(RFI_BOOL, 'b', 1)                                                                                                \
    X(RFI_I8, 'i', 1)                                                                                                  \
    X(RFI_I16, 'i', 2)                                                                                                 \
    X(RFI_I32, 'i', 4)                                                                                                 \
    X(RFI_I64, 'i', 8)                                                                                                 \
    X(RFI_U8, 'u', 1)                                                                                                  \
    X(RFI_U16, 'u', 2)                                                                                                 \
    X(RFI_U32, 'u', 4)                                                                                                 \
    X(RFI_U64, 'u', 8)                                                                                                 \
    X(RFI_F16, 'f', 2)                                                                                                 \
    X(RFI_BF16, '\0', 2)                                                                                               \
    X(RFI_F8_E4M3, '\0', 1)                                                                                            \
    X(RFI_F8_E5M2, '\0', 1)                                                                                            \
    X(RFI_F32, 'f', 4)                                                                                                 \
    X(RFI_F64, 'f', 8)

typedef enum rfi_type {
#define RFI_TYPE_ENUM(code, letter, size) code,
    RFI_TYPE_LIST(RFI_TYPE_ENUM)
#undef RFI_TYPE_ENUM
} rfi_type;

/* A view into somebody else's bytes. */
typedef struct rfi_array {
    rfi_type type;
    bool big_endian;
    bool fortran; /* first index fastest */
    int rank;
    ptrdiff_t shape[RFI_RANK_MAX];
    ptrdiff_t count; /* of elements: product of the shape, 1 for rank 0 */
    const unsigned char *data;
} rfi_array;

/* Bytes per element. */
size_t rfi_type_size(rfi_type type);
/* Fills in count from shape; false if it or its bytes overflow (also when some other dimension is 0). */
bool rfi_array_measure(rfi_array *array);

/* All elements in C order (last index fastest) as doubles or floats. Integers beyond 2^53 (2^24) are rounded; what a
 * float cannot hold becomes infinite. */
void rfi_array_get_f64(const rfi_array *array, double *out);
void rfi_array_get_f32(const rfi_array *array, float *out);

#endif
