/* Files whose tensors have the same bytes: one model with two votes, by accident or not.
 *
 * Reading everything once more would double the time of a merge, so samples of all files are compared first, and only those with equal
 * samples byte by byte. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { SAMPLES = 64, SAMPLE_BYTES = 4096, PART_BYTES = 1 << 18 };

/* The beginnings of tensors here and there. */
static reef_status sample(const rfi_model *model, uint64_t *hash, reef_error *error)
{
    unsigned char bytes[SAMPLE_BYTES];
    ptrdiff_t samples = model->count < SAMPLES ? model->count : SAMPLES;
    *hash = RFI_HASH_START;
    for (ptrdiff_t i = 0; i < samples; i++) {
        const rfi_tensor *tensor = model->by_name[(ptrdiff_t)((double)i / (double)samples * (double)model->count)];
        size_t size = tensor->bytes < sizeof bytes ? tensor->bytes : sizeof bytes;
        reef_status status = rfi_model_get(model, tensor, (tensor->bytes - size) / 2, bytes, size, error);
        if (status != REEF_OK) {
            return status;
        }
        *hash = rfi_hash_bytes(*hash, bytes, size);
    }
    return REEF_OK;
}

/* Two parts of PART_BYTES are the memory. *same becomes false at the first difference. */
static reef_status compare_tensor(const rfi_merge *merge, const rfi_model *a, const rfi_model *b, ptrdiff_t rank,
                                  unsigned char *memory, bool *same, reef_error *error)
{
    assert(rank < a->count && rank < b->count);
    size_t bytes = a->by_name[rank]->bytes;
    *same = bytes == b->by_name[rank]->bytes && rfi_tensor_compare(a->by_name[rank], b->by_name[rank]) == 0;
    for (size_t at = 0; *same && at < bytes; at += PART_BYTES) {
        size_t size = bytes - at < PART_BYTES ? bytes - at : PART_BYTES;
        reef_status status = rfi_merge_go_on(merge, error);
        if (status == REEF_OK) {
            status = rfi_model_get(a, a->by_name[rank], at, memory, size, error);
        }
        if (status == REEF_OK) {
            status = rfi_model_get(b, b->by_name[rank], at, memory + PART_BYTES, size, error);
        }
        if (status != REEF_OK) {
            return status;
        }
        *same = memcmp(memory, memory + PART_BYTES, size) == 0;
    }
    return REEF_OK;
}

static reef_status compare(const rfi_merge *merge, const rfi_model *a, const rfi_model *b, bool *same,
                           reef_error *error)
{
    *same = a->count == b->count;
    const rfi_reader *x = &a->shards[0].file;
    const rfi_reader *y = &b->shards[0].file;
    if (a->shard_count == 1 && b->shard_count == 1 && x->device == y->device && x->inode == y->inode) {
        return REEF_OK;
    }
    unsigned char *memory = rfi_allocate(merge->context, (size_t)2 * PART_BYTES);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory to compare files");
    }
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; status == REEF_OK && *same && i < a->count; i++) {
        status = compare_tensor(merge, a, b, i, memory, same, error);
    }
    rfi_release(merge->context, memory);
    return status;
}

/* Compares the file of a row with those before it that are no copies themselves. */
static reef_status find_original(rfi_merge *merge, ptrdiff_t row, const uint64_t *hashes, reef_error *error)
{
    ptrdiff_t file = merge->file_of[row];
    for (ptrdiff_t l = 0; l < row; l++) {
        ptrdiff_t other = merge->file_of[l];
        bool same = false;
        if (hashes[l] != hashes[row] || merge->fates[other].copy_of >= 0) {
            continue;
        }
        reef_status status = compare(merge, &merge->models[other], &merge->models[file], &same, error);
        if (status != REEF_OK || same) {
            assert(other != file);
            merge->fates[file].copy_of = same ? other : -1;
            return status;
        }
    }
    return REEF_OK;
}

reef_status rfi_merge_find_copies(rfi_merge *merge, reef_error *error)
{
    if (merge->bytes + merge->total <= 0) {
        return REEF_OK; /* nothing that could differ */
    }
    uint64_t *hashes = rfi_allocate_many(merge->context, merge->rows, sizeof *hashes);
    reef_status status = hashes ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for %td files", merge->rows);
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        status = sample(&merge->models[merge->file_of[l]], &hashes[l], error);
        if (status == REEF_OK) {
            status = find_original(merge, l, hashes, error);
        }
    }
    rfi_release(merge->context, hashes);
    return status;
}
