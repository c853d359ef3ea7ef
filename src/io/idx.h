/* IDX files, the format of MNIST: two zero bytes, a type, the rank (1 to 4), the dimensions as 32-bit numbers, the data; all
 * big endian. Types: 8 u8, 9 i8, 11 i16, 12 i32, 13 f32, 14 f64. */
#ifndef RFI_IO_IDX_H
#define RFI_IO_IDX_H

#include "io/array.h"

/* Looks at the bytes of a file; the array points into them. `name` is for messages. */
reef_status rfi_idx_read(const void *bytes, size_t size, const char *name, rfi_array *array, reef_error *error);

#endif
