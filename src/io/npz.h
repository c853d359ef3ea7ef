/* NumPy's .npz files: zip archives of npy arrays, as numpy.savez writes them.
 *
 *   [local header  name  extra  npy file] ...   central directory: one entry per member   (zip64 records)   end record
 *
 * Members must be stored as they are: then their data are read in place, like those of a safetensors file. Compressed ones
 * (numpy.savez_compressed) are refused, because they would have to be unpacked somewhere first. So are arrays in Fortran order or of the other
 * byte order, and members that overlap or are no arrays. Checksums are not looked at. */
#ifndef RFI_IO_NPZ_H
#define RFI_IO_NPZ_H

#include "io/safetensors.h"
#include "io/stream.h"

/* True for the first bytes of a zip archive whose first member is an array. */
bool rfi_npz_begins(const void *bytes, size_t have);
/* The arrays of a file in the order of their data, by names without .npy; `start` counts from the beginning of the file. */
reef_status rfi_npz_read(const reef_context *context, const rfi_reader *file, rfi_safetensors *table,
                         reef_error *error);

#endif
