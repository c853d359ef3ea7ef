/* Blocks of tensors: from the files to numbers of the plan's type, and back. */
#include "merge/merge.h"

#include "agg/driver.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/pool.h"
#include "io/file.h"
#include "io/lines.h"
#include "io/precision.h"
#include "num/kernels/halves.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* All rows of a block together. They should stay in the processor's last cache, read once from the file and then used from there; but a call to the
 * system should bring many pages, or copying them takes a third longer (docs/merging.md has what was measured). */
static const ptrdiff_t block_bytes = (ptrdiff_t)4 << 20;
/* Bytes between rows: were they a power of two apart, their numbers of one coordinate would share the few places of a cache. */
enum { ROW_GAP = 128 };
static const ptrdiff_t memory_default = (ptrdiff_t)128 << 20;
/* Readahead asked for per file, at most; for less than the least, asking takes longer than it saves. */
static const ptrdiff_t expect_bytes = (ptrdiff_t)4 << 20;
static const ptrdiff_t expect_least = (ptrdiff_t)64 << 10;
/* Small tensors are read in pieces of this many bytes per file: a call to the system for each would take longer than the work on it. */
static const ptrdiff_t ahead_least = (ptrdiff_t)16 << 10;
static const ptrdiff_t ahead_most = (ptrdiff_t)64 << 10;

/* ---- buffers ---- */

#ifndef NDEBUG
/* What is asked for of a tensor lies in it, and has room in a row of a block as it is in the file, and as numbers. */
static bool fits(const rfi_merge *merge, const rfi_tensor *tensor, ptrdiff_t m, ptrdiff_t count, bool as_numbers)
{
    ptrdiff_t width = (ptrdiff_t)rfi_type_size(tensor->type);
    ptrdiff_t wide = as_numbers ? (ptrdiff_t)rfi_dtype_size(merge->dtype) : width;
    return m >= 0 && count >= 1 && count <= tensor->count - m &&
           count <= merge->row_bytes / (wide > width ? wide : width);
}
#endif

static void lay_out(const rfi_merge *merge, rfi_arena *arena, rfi_block *block)
{
    block->rows = rfi_arena_take(arena, merge->rows, 1, sizeof *block->rows);
    block->wanted = rfi_arena_take(arena, merge->rows, 1, sizeof *block->wanted);
    block->bytes = rfi_arena_take(arena, merge->rows, merge->row_bytes + ROW_GAP, 1);
    block->raw = rfi_arena_take(arena, merge->row_bytes, 1, 1);
    block->out = rfi_arena_take(arena, merge->row_bytes, 1, 1);
    block->windows = rfi_arena_take(arena, merge->rows, 1, sizeof *block->windows);
    block->ahead = rfi_arena_take(arena, merge->rows, merge->ahead_bytes, 1);
    block->behind = (rfi_behind){.bytes = rfi_arena_take(arena, merge->behind_bytes, 1, 1)};
    for (ptrdiff_t l = 0; block->windows && l < merge->rows; l++) {
        block->windows[l] = (rfi_read_window){0};
    }
    block->base = merge->base_of ? rfi_arena_take(arena, merge->row_bytes, 1, 1) : NULL;
    block->factors = rfi_arena_take(arena, merge->rows, merge->factor_numbers, sizeof(double));
    block->pair = -1;
}

unsigned char *rfi_block_row(const rfi_merge *merge, const rfi_block *block, ptrdiff_t row)
{
    assert(row >= 0 && row < merge->rows);
    return block->bytes + row * (merge->row_bytes + ROW_GAP);
}

/* The least number of bytes per row that will do, more if that is good for speed and leaves memory for all workers. */
static reef_status choose_sizes(rfi_merge *merge, ptrdiff_t unit, reef_error *error)
{
    ptrdiff_t memory = merge->options->memory ? (ptrdiff_t)merge->options->memory : memory_default;
    ptrdiff_t longest = 1;
    ptrdiff_t width = (ptrdiff_t)rfi_dtype_size(merge->dtype);
    ptrdiff_t least = 0;
    ptrdiff_t each = 0;
    for (ptrdiff_t s = 0; s < merge->segments; s++) {
        longest = merge->lengths[s] > longest ? merge->lengths[s] : longest;
    }
    if (!rfi_mul(unit < longest ? unit : longest, width, &least) || !rfi_mul(least, merge->rows + 2, &each) ||
        each > memory) {
        return rfi_fail(error, REEF_E_RANGE,
                        "blocks of %td numbers of %td files take more than the %td bytes of memory allowed", unit,
                        merge->rows, memory);
    }
    merge->workers = rfi_context_workers(merge->context);
    ptrdiff_t share = memory / merge->workers;
    ptrdiff_t times = (share < block_bytes ? share : block_bytes) / each;
    merge->row_bytes = times > 1 ? times * least : least;
    merge->row_bytes += merge->row_bytes % (ptrdiff_t)sizeof(double) ? (ptrdiff_t)sizeof(float) : 0;
    each = merge->row_bytes * (merge->rows + 2);
    merge->workers = merge->workers < memory / each ? merge->workers : memory / each;
    merge->workers = merge->workers > 1 ? merge->workers : 1;
    assert(merge->row_bytes >= least && merge->row_bytes % (ptrdiff_t)sizeof(double) == 0);
    ptrdiff_t ahead = memory / 4 / merge->workers / (merge->rows + 1);
    ptrdiff_t most = block_bytes / 2 / merge->rows / 64 * 64;
    most = most < ahead_least ? ahead_least : most > ahead_most ? ahead_most : most;
    merge->ahead_bytes = ahead < most ? ahead / 64 * 64 : most;
    merge->behind_bytes = ahead < ahead_most ? ahead / 64 * 64 : ahead_most;
    return REEF_OK;
}

reef_status rfi_blocks_create(rfi_merge *merge, ptrdiff_t unit, reef_error *error)
{
    if (merge->blocks) {
        return REEF_OK;
    }
    assert(unit >= 1 && merge->rows >= 1);
    reef_status status = choose_sizes(merge, unit, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_arena arena = {0};
    for (int round = 0; round < 2; round++) { /* measure, then take */
        rfi_block *blocks = rfi_arena_take(&arena, merge->workers, 1, sizeof *blocks);
        for (ptrdiff_t w = 0; w < merge->workers; w++) {
            rfi_block measured;
            lay_out(merge, &arena, blocks ? &blocks[w] : &measured);
        }
        if (round == 0) {
            merge->block_memory =
                arena.overflow ? NULL : rfi_allocate(merge->context, (size_t)arena.used + RFI_ALIGNMENT);
            if (!merge->block_memory) {
                return rfi_fail(error, REEF_E_NOMEM, "no memory for blocks of %td files", merge->rows);
            }
            arena = (rfi_arena){.base = rfi_align(merge->block_memory)};
        } else {
            merge->blocks = blocks;
        }
    }
    return REEF_OK;
}

void rfi_blocks_free(rfi_merge *merge)
{
    rfi_release(merge->context, merge->block_memory);
    merge->block_memory = NULL;
    merge->blocks = NULL;
}

/* ---- numbers ---- */

static void swap_bytes(unsigned char *bytes, ptrdiff_t count, size_t width)
{
    for (ptrdiff_t i = 0; i < count; i++, bytes += width) {
        for (size_t j = 0; j < width / 2; j++) {
            unsigned char byte = bytes[j];
            bytes[j] = bytes[width - 1 - j];
            bytes[width - 1 - j] = byte;
        }
    }
}

static bool all_finite(const rfi_merge *merge, const void *numbers, ptrdiff_t count)
{
    const float *single = numbers;
    const double *number = numbers;
    bool good = true;
    for (ptrdiff_t i = 0; i < count; i++) {
        good = good && (merge->dtype == REEF_F64 ? isfinite(number[i]) : isfinite(single[i]));
    }
    return good;
}

/* to += sign * from, numbers of the plan's type. */
static void add_numbers(const rfi_merge *merge, void *to, const void *from, ptrdiff_t count, int sign)
{
    float *single = to;
    double *number = to;
    const float *other_single = from;
    const double *other = from;
    for (ptrdiff_t i = 0; merge->dtype == REEF_F32 && i < count; i++) {
        single[i] += (float)sign * other_single[i];
    }
    for (ptrdiff_t i = 0; merge->dtype == REEF_F64 && i < count; i++) {
        number[i] += sign * other[i];
    }
}

/* ---- blocks ---- */

bool rfi_row_counts(const rfi_merge *merge, ptrdiff_t row)
{
    return merge->weights[row] > 0 && !atomic_load(&merge->spoilt[row]);
}

/* NULL: the row does not count, or its file lacks the tensor. */
static const rfi_tensor *tensor_of(const rfi_merge *merge, ptrdiff_t row, ptrdiff_t tensor)
{
    return rfi_row_counts(merge, row) ? merge->of[tensor * merge->rows + row] : NULL;
}

static rfi_type plan_type(const rfi_merge *merge)
{
    return merge->dtype == REEF_F64 ? RFI_F64 : RFI_F32;
}

/* The type in which rows of a tensor are handed to the plan: that of all files if it is read as it is. */
static rfi_type choose_type(const rfi_merge *merge, ptrdiff_t tensor)
{
    rfi_type own = plan_type(merge);
    const rfi_tensor *first = NULL;
    bool one_type = merge->plan && !merge->base_of && merge->pair_of[tensor] < 0;
    for (ptrdiff_t l = 0; one_type && l < merge->rows; l++) {
        const rfi_tensor *theirs = tensor_of(merge, l, tensor);
        first = first ? first : theirs;
        one_type = !theirs || theirs->type == first->type;
    }
    return one_type && first && rfi_plan_reads(merge->plan, first->type) ? first->type : own;
}

reef_status rfi_block_numbers(rfi_merge *merge, rfi_block *block, ptrdiff_t row, const rfi_tensor *tensor, double *to,
                              reef_error *error)
{
    const rfi_model *model = &merge->models[merge->file_of[row]];
    size_t width = rfi_type_size(tensor->type);
    assert(row >= 0 && row < merge->rows && rfi_type_is_real(tensor->type));
    ptrdiff_t most = merge->row_bytes / (ptrdiff_t)width;
    for (ptrdiff_t m = 0, part; m < tensor->count; m += part) {
        part = tensor->count - m < most ? tensor->count - m : most;
        reef_status status = rfi_model_get(model, tensor, (size_t)m * width, block->raw, (size_t)part * width, error);
        if (status != REEF_OK) {
            return status;
        }
        if (model->swapped) {
            swap_bytes(block->raw, part, width);
        }
        rfi_widen_to_f64(tensor->type, block->raw, part, to + m);
    }
    return REEF_OK;
}

/* Bytes of a tensor, from what was read ahead if they are few. row -1: the base. *found: where they are; `to` unless they may stay where they were
 * read ahead (`stay`), at a place that is as aligned as that asks for. */
static reef_status get(const rfi_merge *merge, rfi_block *block, ptrdiff_t row, const rfi_tensor *tensor, size_t offset,
                       void *to, size_t size, size_t stay, const void **found, reef_error *error)
{
    *found = to;
    const rfi_model *model = row < 0 ? &merge->base : &merge->models[merge->file_of[row]];
    const rfi_shard *shard = rfi_model_shard(model, tensor);
    size_t room = (size_t)merge->ahead_bytes;
    size_t at = shard->data + tensor->start + offset;
    assert(offset + size <= tensor->bytes && at + size <= shard->file.size); /* seen to when the file was opened */
    if (row < 0 || size > room / 2) {
        return rfi_reader_get(&shard->file, at, to, size, error);
    }
    rfi_read_window *window = &block->windows[row];
    unsigned char *bytes = block->ahead + (size_t)row * room;
    if (window->shard != shard || at < window->at || at + size > window->at + window->size) {
        size_t left = shard->file.size - at;
        *window = (rfi_read_window){shard, at, left < room ? left : room};
        reef_status status = rfi_reader_get(&shard->file, at, bytes, window->size, error);
        if (status != REEF_OK) {
            window->shard = NULL;
            return status;
        }
    }
    const unsigned char *here = bytes + (at - window->at);
    if (stay > 0 && (at - window->at) % stay == 0) {
        *found = here;
        return REEF_OK;
    }
    memcpy(to, here, size);
    return REEF_OK;
}

/* 16-bit numbers by vector code, here and back; false: not here, or of another type. */
static bool widen_fast(rfi_type type, const void *raw, ptrdiff_t count, float *to)
{
    return (type == RFI_F16 && rfi_halves_widen(raw, count, to)) ||
           (type == RFI_BF16 && rfi_bf16_widen(raw, count, to));
}

static bool narrow_fast(rfi_type type, const float *numbers, ptrdiff_t count, void *raw)
{
    return (type == RFI_F16 && rfi_halves_narrow(numbers, count, raw)) ||
           (type == RFI_BF16 && rfi_bf16_narrow(numbers, count, raw));
}

/* Elements of one file's tensor; *found: where they are, `to` or a place that is not written to. */
static reef_status read_row(rfi_merge *merge, rfi_block *block, ptrdiff_t row, const rfi_tensor *tensor, ptrdiff_t m,
                            ptrdiff_t count, bool as_numbers, void *to, const void **found, reef_error *error)
{
    const rfi_model *model = row < 0 ? &merge->base : &merge->models[merge->file_of[row]];
    size_t width = rfi_type_size(tensor->type);
    size_t size = (size_t)count * width;
    bool plain = !as_numbers || tensor->type == block->type;
    assert(row < merge->rows && fits(merge, tensor, m, count, as_numbers));
    unsigned char *raw = plain ? to : block->raw;
    bool stays = plain && as_numbers && !model->swapped && !merge->base_of;
    reef_status status = get(merge, block, row, tensor, (size_t)m * width, raw, size, stays ? width : 0, found, error);
    if (status != REEF_OK) {
        return status;
    }
    *found = plain ? *found : to;
    if (model->swapped && width > 1) {
        swap_bytes(raw, count, width);
    }
    if (!plain && merge->dtype == REEF_F64) {
        rfi_widen_to_f64(tensor->type, raw, count, to);
    } else if (!plain && !widen_fast(tensor->type, raw, count, to)) {
        rfi_widen_to_f32(tensor->type, raw, count, to);
    }
    atomic_fetch_add_explicit(&merge->done, (long long)size, memory_order_relaxed);
    return REEF_OK;
}

/* Numbers of the base model into block->base, and off those of all rows. */
static reef_status subtract_base(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count,
                                 reef_error *error)
{
    const void *found;
    reef_status status = read_row(merge, block, -1, merge->base_of[tensor], m, count, true, block->base, &found, error);
    if (status == REEF_OK && !all_finite(merge, block->base, count)) {
        char shown[RFI_SHOWN_SIZE];
        return rfi_fail(error, REEF_E_NONFINITE, "%s: tensor '%s' holds NaN or Inf, so it cannot be the base",
                        rfi_path_show(merge->base.path), rfi_shown(merge->base_of[tensor]->name, shown));
    }
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        if (block->rows[l]) {
            add_numbers(merge, rfi_block_row(merge, block, l), block->base, count, -1);
        }
    }
    return status;
}

/* Rows that were not read, but count, have the numbers of one that was. */
static void stand_in(const rfi_merge *merge, rfi_block *block, ptrdiff_t tensor)
{
    const void *some = NULL;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        some = block->rows[l] ? block->rows[l] : some;
    }
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        block->rows[l] = block->rows[l] || !tensor_of(merge, l, tensor) ? block->rows[l] : some;
    }
}

reef_status rfi_block_read(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count,
                           rfi_reading reading, reef_error *error)
{
    bool as_numbers = reading != RFI_AS_IT_IS;
    reef_status status = rfi_merge_go_on(merge, error);
    if (status != REEF_OK) {
        return status;
    }
    block->type = choose_type(merge, tensor);
    if (as_numbers && merge->pair_of[tensor] >= 0) {
        return rfi_pair_read(merge, block, merge->pair_of[tensor], m, count, error);
    }
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        const rfi_tensor *theirs = tensor_of(merge, l, tensor);
        block->rows[l] = NULL;
        if (theirs && reading == RFI_WANTED && !block->wanted[l]) {
            long long bytes = (long long)count * (long long)rfi_type_size(theirs->type);
            atomic_fetch_add_explicit(&merge->done, bytes, memory_order_relaxed);
        } else if (theirs) {
            status = read_row(merge, block, l, theirs, m, count, as_numbers, rfi_block_row(merge, block, l),
                              &block->rows[l], error);
        }
    }
    if (status == REEF_OK && as_numbers && merge->base_of) {
        status = subtract_base(merge, block, tensor, m, count, error);
    }
    if (reading == RFI_WANTED) {
        stand_in(merge, block, tensor);
    }
    return status;
}

/* The least number that a type rounds to infinity. */
static double limit_of(rfi_type type)
{
    switch (type) {
    case RFI_F8_E4M3:
        return 0x1.D000000000001p8; /* above 464, which is a tie and goes to 448 */
    case RFI_F8_E5M2:
        return 61440;
    case RFI_F16:
        return 65520;
    case RFI_BF16:
        return 0x1.FFp127;
    default:
        return type == RFI_F32 ? 0x1.FFFFFFp127 : (double)INFINITY;
    }
}

/* A type that was asked for may be too small for the numbers, and so may one for new factors; otherwise those that the files have cannot be. */
static reef_status check_range(const rfi_merge *merge, const rfi_tensor *tensor, const void *numbers, ptrdiff_t count,
                               reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    const float *single = numbers;
    const double *number = numbers;
    double limit = limit_of(tensor->type);
    for (ptrdiff_t i = 0; i < count; i++) {
        double size = fabs(merge->dtype == REEF_F64 ? number[i] : (double)single[i]);
        if (size >= limit && isfinite(size)) {
            return rfi_fail(error, REEF_E_RANGE,
                            "tensor '%s' of the result has numbers that are too large for %s (%g); use --cast %s",
                            rfi_shown(tensor->name, shown), rfi_safetensors_type(tensor->type), size,
                            size < limit_of(RFI_F32) ? "F32" : "F64");
        }
    }
    return REEF_OK;
}

static reef_status flush(rfi_behind *behind, reef_error *error)
{
    const rfi_writer *file = behind->file;
    behind->file = NULL;
    return file ? rfi_writer_put(file, behind->at, behind->bytes, behind->size, error) : REEF_OK;
}

reef_status rfi_blocks_flush(rfi_merge *merge, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t w = 0; status == REEF_OK && merge->blocks && w < merge->workers; w++) {
        status = flush(&merge->blocks[w].behind, error);
    }
    return status;
}

void rfi_blocks_forget(rfi_merge *merge)
{
    for (ptrdiff_t w = 0; merge->blocks && w < merge->workers; w++) {
        merge->blocks[w].behind.file = NULL;
    }
}

/* Bytes of the result at a place in a file; few of them wait for those that follow. */
static reef_status put(const rfi_merge *merge, rfi_behind *behind, const rfi_writer *file, size_t at, const void *bytes,
                       size_t size, reef_error *error)
{
    size_t room = (size_t)merge->behind_bytes;
    if (size > room / 2) {
        return rfi_writer_put(file, at, bytes, size, error);
    }
    if (behind->file && (behind->file != file || behind->at + behind->size != at || behind->size + size > room)) {
        reef_status status = flush(behind, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    if (!behind->file) {
        *behind = (rfi_behind){file, at, 0, behind->bytes};
    }
    memcpy(behind->bytes + behind->size, bytes, size);
    behind->size += size;
    return REEF_OK;
}

reef_status rfi_block_write(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count,
                            bool as_numbers, reef_error *error)
{
    const rfi_model *model = &merge->result;
    const rfi_tensor *t = &model->tensors[tensor];
    size_t width = rfi_type_size(t->type);
    bool plain = !as_numbers || t->type == plan_type(merge);
    assert(tensor >= 0 && tensor < model->count && fits(merge, t, m, count, as_numbers));
    unsigned char *raw = plain ? block->out : block->raw;
    if (as_numbers && merge->base_of) {
        add_numbers(merge, block->out, block->base, count, 1);
    }
    reef_status status = as_numbers && (merge->options->cast || merge->pair_of[tensor] >= 0)
                             ? check_range(merge, t, block->out, count, error)
                             : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    if (!plain && merge->dtype == REEF_F64) {
        rfi_narrow_from_f64(t->type, (const double *)(const void *)block->out, count, raw);
    } else if (!plain && !narrow_fast(t->type, (const float *)(const void *)block->out, count, raw)) {
        rfi_narrow_from_f32(t->type, (const float *)(const void *)block->out, count, raw);
    }
    if (model->swapped && width > 1) {
        swap_bytes(raw, count, width);
    }
    size_t at = 0;
    const rfi_writer *file = rfi_output_place(&merge->out, tensor, (size_t)m * width, &at);
    return put(merge, &block->behind, file, at, raw, (size_t)count * width, error);
}

void rfi_block_expect(const rfi_merge *merge, const bool *wanted, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count)
{
    if (merge->pair_of[tensor] >= 0) {
        return; /* read as a whole */
    }
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const rfi_model *model = &merge->models[merge->file_of[l]];
        const rfi_tensor *t = tensor_of(merge, l, tensor);
        if (t && (!wanted || wanted[l])) {
            ptrdiff_t width = (ptrdiff_t)rfi_type_size(t->type);
            ptrdiff_t most = expect_bytes / width;
            const rfi_shard *shard = rfi_model_shard(model, t);
            if (count * width < expect_least) {
                continue;
            }
            rfi_reader_expect(&shard->file, shard->data + t->start + (size_t)(m * width),
                              (size_t)((count < most ? count : most) * width));
        }
    }
}

reef_status rfi_merge_go_on(const rfi_merge *merge, reef_error *error)
{
    bool stop = merge->options->stop && *merge->options->stop;
    return stop ? rfi_fail(error, REEF_E_FILE, "stopped before it was done; nothing was written") : REEF_OK;
}

void rfi_merge_tell(rfi_merge *merge)
{
    double share = merge->total > 0 ? (double)atomic_load(&merge->done) / merge->total : 1;
    if (merge->options->progress && share >= merge->told + 0.001) {
        merge->told = share;
        merge->options->progress(merge->options->user, share < 1 ? share : 1);
    }
}
