/* A model file: its tensors and where their bytes are, whatever the format. */
#ifndef RFI_MERGE_MODEL_H
#define RFI_MERGE_MODEL_H

#include "io/safetensors.h"
#include "io/stream.h"

#include <stdbool.h>

typedef struct rfi_model {
    rfi_reader file;
    bool npy;     /* else safetensors */
    bool fortran; /* npy: first index fastest */
    bool swapped; /* bytes are not in the machine's order */
    size_t data;  /* where the data begin in the file; what stands before is the header */
    ptrdiff_t count;
    const rfi_tensor *tensors;  /* in the order of their data */
    const rfi_tensor **by_name; /* the same */
    rfi_safetensors table;
    rfi_tensor single; /* npy: the only one, without a name */
    ptrdiff_t shape[RFI_RANK_MAX];
} rfi_model;

/* Opens and checks a file; the format is seen from its first bytes. The model must not be moved afterwards; `path` must outlive it. On
 * failure it is closed. */
reef_status rfi_model_open(const reef_context *context, rfi_model *model, const char *path, reef_error *error);
void rfi_model_close(const reef_context *context, rfi_model *model);

/* REEF_E_ARG with the first difference between two models in format, names, types or shapes. */
reef_status rfi_model_compare(const rfi_model *model, const rfi_model *reference, reef_error *error);

/* True for the types that are aggregated. */
bool rfi_type_is_real(rfi_type type);

#endif
