/* The index of a model in shards, as Hugging Face writes it:
 *
 *   {"metadata": {"total_size": 123}, "weight_map": {"tensor": "model-00001-of-00002.safetensors", ...}}
 *
 * The files lie in the folder of the index: names with a slash in them, which would lead elsewhere, are refused. */
#ifndef RFI_IO_SHARDS_H
#define RFI_IO_SHARDS_H

#include "base/text.h"

#include <reef/context.h>
#include <stddef.h>

/* The longest index. */
#define RFI_SHARDS_MAX 100000000

typedef struct rfi_shard_entry {
    rfi_slice tensor, file; /* decoded */
} rfi_shard_entry;

typedef struct rfi_shards {
    ptrdiff_t count;
    rfi_shard_entry *entries; /* by the tensors' names */
    ptrdiff_t file_count;
    rfi_slice *files; /* each once, in order */
    void *memory;     /* everything above */
} rfi_shards;

/* `name` is the file's, for messages. */
reef_status rfi_shards_read(const reef_context *context, const void *bytes, size_t size, const char *name,
                            rfi_shards *shards, reef_error *error);
void rfi_shards_free(const reef_context *context, rfi_shards *shards);

/* The index of entries in any order; total: bytes of all tensors. Returns its size; `to` NULL: only measures. */
size_t rfi_shards_write(const rfi_shard_entry *entries, ptrdiff_t count, size_t total, char *to);

/* Order of two texts: negative, 0 or positive. */
int rfi_slice_compare(rfi_slice a, rfi_slice b);

#endif
