/* The result of a merge on its way to the disk: one file, or a folder of them.
 *
 * A file is written beside its place and renamed. A folder is made beside its place under another name, filled, and renamed as a whole; its
 * place must be free, or an empty folder. */
#ifndef RFI_MERGE_OUTPUT_H
#define RFI_MERGE_OUTPUT_H

#include "merge/model.h"

/* Where a tensor of the reference model goes. */
typedef struct rfi_place {
    ptrdiff_t shard;
    size_t start; /* bytes from the beginning of the shard's data */
} rfi_place;

typedef struct rfi_out_shard {
    char *path; /* owned */
    rfi_writer file;
    size_t data; /* where the data begin */
    size_t used; /* bytes of its tensors, as far as they are laid out */
} rfi_out_shard;

typedef struct rfi_output {
    const reef_context *context;
    const char *path;         /* the caller's */
    const rfi_model *model;   /* the reference */
    bool folder;              /* else a single file */
    char *target, *temporary; /* of a folder: its place, and its name until then; NULL: none */
    ptrdiff_t shard_count;
    rfi_out_shard *shards;
    rfi_place *places; /* one per tensor of the reference */
} rfi_output;

/* Lays out the result like `model`, or in shards of at most shard_size bytes of data (0: as the model has them; one tensor is never
 * split), opens its files and writes their headers. On failure nothing is left. */
reef_status rfi_output_open(const reef_context *context, rfi_output *out, const rfi_model *model, const char *path,
                            size_t shard_size, reef_error *error);
/* The file that has a tensor, and where the tensor's bytes from `offset` on are in it. */
const rfi_writer *rfi_output_place(const rfi_output *out, ptrdiff_t tensor, size_t offset, size_t *at);
/* A further file of a folder, or of a subfolder that was added before ("1_Pooling/config.json"). */
reef_status rfi_output_add_folder(const rfi_output *out, const char *name, reef_error *error);
reef_status rfi_output_add(const rfi_output *out, const char *name, const void *bytes, size_t size, reef_error *error);
/* Puts the result in its place. Closes the output; on failure nothing is left. */
reef_status rfi_output_commit(rfi_output *out, reef_error *error);
/* Removes what there is of it; accepts a closed one. */
void rfi_output_abandon(rfi_output *out);

#endif
