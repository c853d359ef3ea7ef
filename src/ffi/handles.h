/* Shared by the files of the flat interface. */
#ifndef RFI_FFI_HANDLES_H
#define RFI_FFI_HANDLES_H

#include <reef/ffi.h>

/* Hands the sentence of an error over to the caller's text, and the status on. */
reef_status rfi_ffi_tell(reef_status status, const reef_error *error, char *text, size_t room);

/* What reef_ffi_apply is asked for; the arguments have been checked. */
typedef struct rfi_ffi_job {
    const reef_agg *agg;
    ptrdiff_t rows, segments;
    const ptrdiff_t *lengths;
    const int *types; /* segments: REEF_FFI_F32 ... */
    reef_dtype dtype; /* what is computed with: double where a segment is, else float */
    const void *const *data;
    void *const *out;
} rfi_ffi_job;

/* True if a segment has the type that is computed with. */
bool rfi_ffi_is_plain(const rfi_ffi_job *job, ptrdiff_t segment);
/* Models with segments that are not: they are widened on the way in, and rounded on the way out. */
reef_status rfi_ffi_widened(const rfi_ffi_job *job, const reef_input *input, reef_report *report, reef_error *error);

#endif
