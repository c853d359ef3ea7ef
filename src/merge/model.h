/* A model: its tensors and where their bytes are, in one file or in the shards of a folder. */
#ifndef RFI_MERGE_MODEL_H
#define RFI_MERGE_MODEL_H

#include "io/safetensors.h"
#include "io/stream.h"

#include <stdbool.h>
#include <stdint.h>

/* A header and what it says. Sites have the same one as a rule, which is then read once. */
typedef struct rfi_header {
    ptrdiff_t users; /* shards */
    char *text;      /* NULL: no longer compared with others */
    size_t length, room;
    rfi_safetensors table;
} rfi_header;

/* One file with tensors. */
typedef struct rfi_shard {
    char *path; /* of a file in a folder, owned; NULL: the model's own */
    rfi_reader file;
    size_t data;        /* where the data begin in the file; what stands before is the header */
    rfi_header *header; /* which owns what the table points to; NULL: the shard does */
    rfi_safetensors table;
} rfi_shard;

typedef struct rfi_model {
    const char *path; /* as the caller gave it */
    bool folder;
    bool npy;     /* else safetensors or npz */
    bool npz;     /* its shard's data begin with the file */
    bool changed; /* of a result: its tensors are not those of the model that its shards are from */
    bool fortran; /* npy: first index fastest */
    bool swapped; /* bytes are not in the machine's order */
    ptrdiff_t shard_count;
    rfi_shard *shards; /* in the order of their names */
    ptrdiff_t count;
    const rfi_tensor *tensors;  /* shard by shard, each in the order of its data */
    const ptrdiff_t *shard_of;  /* count; NULL: all are in the only shard */
    const rfi_tensor **by_name; /* the tensors again */
    void *memory, *list;        /* of a folder: shards; tensors and shard_of */
    char *index;                /* of a folder: the path of its index, NULL: it has none */
    uint64_t index_sum;         /* what the index was when it was checked */
    rfi_shard only;             /* of a file */
    rfi_tensor single;          /* npy: the only tensor, without a name */
    ptrdiff_t shape[RFI_RANK_MAX];
} rfi_model;

/* Opens and checks a file or folder; the format is seen from the first bytes. The model must not be moved afterwards; `path` must outlive
 * it. On failure it is closed. `like`: a model opened before that may have the same header, or NULL. */
reef_status rfi_model_open(const reef_context *context, rfi_model *model, const char *path, rfi_model *like,
                           reef_error *error);
void rfi_model_close(const reef_context *context, rfi_model *model);

/* The file that has a tensor of this model. */
const rfi_shard *rfi_model_shard(const rfi_model *model, const rfi_tensor *tensor);
/* Copies bytes of a tensor, `size` of them from `offset` on. */
reef_status rfi_model_get(const rfi_model *model, const rfi_tensor *tensor, size_t offset, void *bytes, size_t size,
                          reef_error *error);
/* REEF_E_FILE if a file has changed since it was opened. */
reef_status rfi_model_confirm(const rfi_model *model, reef_error *error);

/* Differences that are no obstacle. */
typedef struct rfi_lenience {
    bool types;   /* floating-point numbers of several types */
    bool missing; /* tensors that only some models have */
    bool tensors; /* all tensors: whoever sets this compares them */
} rfi_lenience;

/* compare.c: REEF_E_FORMAT with the first difference between two models in format, names, types or shapes. */
reef_status rfi_model_compare(const rfi_model *model, const rfi_model *reference, rfi_lenience allow,
                              reef_error *error);
/* The same for two tensors of one name: a of the model, b of the reference. */
reef_status rfi_tensor_match(const rfi_model *model, const rfi_tensor *a, const rfi_model *reference,
                             const rfi_tensor *b, rfi_lenience allow, reef_error *error);

/* folder.c: opens a folder with a model in Hugging Face's layout; model.c closes it. */
reef_status rfi_model_open_folder(const reef_context *context, rfi_model *model, reef_error *error);
/* model.c: opens one file of a model. On failure the caller closes the model. */
reef_status rfi_shard_open(const reef_context *context, rfi_shard *shard, const char *path, reef_error *error);
/* model.c: REEF_E_FORMAT for a folder, device or pipe: what a site delivers is its doing, where a file that cannot be opened may be ours. */
reef_status rfi_model_regular(const char *path, reef_error *error);
/* header.c: the table of a safetensors file from its header, or that of `like` if it has the same (NULL: read it). `first`: the first bytes of the file. */
reef_status rfi_header_read(const reef_context *context, rfi_shard *shard, const void *first, size_t have,
                            rfi_shard *like, reef_error *error);
/* header.c: accepts a shard without a table. */
void rfi_header_release(const reef_context *context, rfi_shard *shard);
/* model.c: fills in by_name; REEF_E_FORMAT if a name is there twice. */
reef_status rfi_model_sort(const reef_context *context, rfi_model *model, reef_error *error);
/* folder/name, from the context's allocator. */
reef_status rfi_path_join(const reef_context *context, const char *folder, rfi_slice name, char **path,
                          reef_error *error);

/* True for the types that are aggregated. */
bool rfi_type_is_real(rfi_type type);

#endif
