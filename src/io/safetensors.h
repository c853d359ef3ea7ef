/* Safetensors files: a table of named tensors, then their bytes.
 *
 *   length of the header (8 bytes, little endian)   header   data
 *   header: {"__metadata__": {"key": "text", ...}, "name": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}, ...}
 *
 * Offsets count from the first byte after the header; the tensors must fill the data exactly, without holes or overlaps. Blanks may
 * follow the header's }. Types: F64 F32 F16 BF16 F8_E4M3 F8_E5M2, I8 to I64, U8 to U64, BOOL; little endian. What the format does not define is
 * refused: other keys, a name twice, numbers that are not plain whole ones, text that is not UTF-8.
 *
 * The header is JSON, but of this one shape; it is read by a parser of its own that needs memory in proportion to the tensors in it
 * and has no depth, where a general one would build a tree of a hostile file first. */
#ifndef RFI_IO_SAFETENSORS_H
#define RFI_IO_SAFETENSORS_H

#include "base/text.h"
#include "io/array.h"

#include <reef/context.h>
#include <stddef.h>

/* Bytes before the header, and the longest header, the same as that of the reference implementation. */
#define RFI_SAFETENSORS_START 8
#define RFI_SAFETENSORS_HEADER_MAX 100000000

typedef struct rfi_tensor {
    rfi_slice name; /* decoded; may hold any byte, 0 included */
    rfi_type type;
    ptrdiff_t rank;
    const ptrdiff_t *shape;
    ptrdiff_t count; /* of elements */
    size_t start;    /* bytes from the beginning of the data */
    size_t bytes;
} rfi_tensor;

typedef struct rfi_safetensors {
    ptrdiff_t count;
    rfi_tensor *tensors;        /* in the order of their data; those without data by name */
    const rfi_tensor **by_name; /* the same, sorted; NULL in tables that were not read from a header */
    ptrdiff_t pairs;
    rfi_slice *metadata; /* key, text, key, text, ... */
    void *memory;        /* everything above */
} rfi_safetensors;

/* Length of the header from the first bytes of a file of `size` bytes. */
reef_status rfi_safetensors_length(const void *bytes, size_t have, size_t size, const char *name, size_t *length,
                                   reef_error *error);
/* Reads a header of `length` bytes, followed by `room` bytes of data. `name` is the file's, for messages. */
reef_status rfi_safetensors_read(const reef_context *context, const void *header, size_t length, size_t room,
                                 const char *name, rfi_safetensors *table, reef_error *error);
/* Writes the length and the header of tensors whose places (start, bytes) are set; returns how many bytes that are, a multiple of 8. `to` NULL:
 * only measures. */
size_t rfi_safetensors_write(const rfi_safetensors *table, char *to);
void rfi_safetensors_free(const reef_context *context, rfi_safetensors *table);

/* Order of the names: negative, 0 or positive. */
int rfi_tensor_compare(const rfi_tensor *a, const rfi_tensor *b);
/* The type's name in a safetensors file. */
const char *rfi_safetensors_type(rfi_type type);

#endif
