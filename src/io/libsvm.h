/* LIBSVM's sparse text: `label index:value index:value ...`, indices from 1 and ascending, # comments. Read into a dense
 * matrix. */
#ifndef RFI_IO_LIBSVM_H
#define RFI_IO_LIBSVM_H

#include <reef/context.h>
#include <stddef.h>

typedef struct rfi_libsvm {
    ptrdiff_t rows;    /* at least 1 */
    ptrdiff_t columns; /* the largest index met, or the least width asked for; may be 0 */
    float *values;     /* rows x columns */
    double *labels;    /* rows */
} rfi_libsvm;

/* Reads the bytes of a file; `name` is for messages. A short line can ask for many columns, so the caller says how many
 * values (rows x columns) it is willing to hold. */
reef_status rfi_libsvm_read(const reef_context *context, const void *bytes, size_t size, const char *name,
                            ptrdiff_t columns_least, ptrdiff_t values_most, rfi_libsvm *data, reef_error *error);
void rfi_libsvm_free(const reef_context *context, rfi_libsvm *data);

#endif
