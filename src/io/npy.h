/* NumPy's .npy files: versions 1.0, 2.0 and 3.0 are read, 1.0 is written.
 *
 *   \x93NUMPY  major minor  length (2 bytes in version 1, else 4)  header  data
 *   header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } padded with blanks, then a newline
 *
 * Types: b1, i1 i2 i4 i8, u1 u2 u4 u8, f2 f4 f8, either byte order. Anything else (objects, records, complex, text) is
 * refused. The data must fill the file exactly. */
#ifndef RFI_IO_NPY_H
#define RFI_IO_NPY_H

#include "io/array.h"
#include "io/file.h"

/* Looks at the bytes of a file; the array points into them. `name` is for messages. */
reef_status rfi_npy_read(const void *bytes, size_t size, const char *name, rfi_array *array, reef_error *error);

/* The most that rfi_npy_look needs of a file. */
#define RFI_NPY_LOOK_MAX 65664
/* The same from the first `have` bytes of a file of `size` bytes, for files that do not fit in memory: array->data is NULL, *start
 * is where the data begin. */
reef_status rfi_npy_look(const void *bytes, size_t have, size_t size, const char *name, rfi_array *array, size_t *start,
                         reef_error *error);

/* Room for the magic and header of any file written here. */
#define RFI_NPY_HEADER_MAX 448

/* The bytes before the data, exactly as NumPy writes them for an array in C order and the machine's byte order. Returns
 * their number, a multiple of 64. 0 <= rank <= RFI_RANK_MAX. */
size_t rfi_npy_header(rfi_type type, int rank, const ptrdiff_t *shape, char header[RFI_NPY_HEADER_MAX]);

/* Writes a file with type RFI_F32, RFI_F64, RFI_I32 or RFI_I64 from contiguous data in C order, all or nothing. */
reef_status rfi_npy_write(const reef_context *context, const char *path, rfi_type type, int rank,
                          const ptrdiff_t *shape, const void *data, reef_error *error);

#endif
