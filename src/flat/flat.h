/* Shared by the files of the flat interface. */
#ifndef RFI_FLAT_FLAT_H
#define RFI_FLAT_FLAT_H

#include <reef/flat.h>

/* Hands the sentence of an error over to the caller's text, and the status on. */
reef_status rfi_flat_tell(reef_status status, const reef_error *error, char *text, size_t room);

/* reef_flat_apply for 16-bit numbers; the arguments have been checked. */
typedef struct rfi_halves {
    const reef_agg *agg;
    ptrdiff_t rows, segments;
    const ptrdiff_t *lengths;
    int type; /* REEF_FLAT_F16 or REEF_FLAT_BF16 */
    const void *const *data;
    void *const *out;
} rfi_halves;
reef_status rfi_flat_halves(const rfi_halves *halves, const reef_input *input, reef_report *report, reef_error *error);

#endif
