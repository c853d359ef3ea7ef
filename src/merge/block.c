/* Blocks of tensors: from the files to numbers of the plan's type, and back. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/half.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* All rows of a block together should stay in the cache of one core: read once from the file, then used from there. */
static const ptrdiff_t cache_bytes = (ptrdiff_t)1 << 20;
static const ptrdiff_t memory_default = (ptrdiff_t)128 << 20;
/* Readahead asked for per file, at most. */
static const ptrdiff_t expect_bytes = (ptrdiff_t)4 << 20;
/* Numbers converted at a time where that takes two steps. */
enum { STEP = 256 };

/* ---- buffers ---- */

static void lay_out(const rfi_merge *merge, rfi_arena *arena, rfi_block *block)
{
    block->rows = rfi_arena_take(arena, merge->rows, 1, sizeof *block->rows);
    block->bytes = rfi_arena_take(arena, merge->rows, merge->row_bytes, 1);
    block->raw = rfi_arena_take(arena, merge->row_bytes, 1, 1);
    block->out = rfi_arena_take(arena, merge->row_bytes, 1, 1);
}

/* One worker: the least number of bytes per row that will do, more if all rows then still fit in the cache. */
static reef_status choose_sizes(rfi_merge *merge, ptrdiff_t unit, reef_error *error)
{
    ptrdiff_t memory = merge->options->memory ? (ptrdiff_t)merge->options->memory : memory_default;
    ptrdiff_t longest = 1;
    ptrdiff_t width = merge->dtype == REEF_F64 ? (ptrdiff_t)sizeof(double) : (ptrdiff_t)sizeof(float);
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
    ptrdiff_t times = cache_bytes / each;
    merge->row_bytes = times > 1 ? times * least : least;
    merge->row_bytes += merge->row_bytes % (ptrdiff_t)sizeof(double) ? (ptrdiff_t)sizeof(float) : 0;
    each = merge->row_bytes * (merge->rows + 2);
    merge->workers = rfi_context_workers(merge->context);
    merge->workers = merge->workers < memory / each ? merge->workers : memory / each;
    merge->workers = merge->workers > 1 ? merge->workers : 1;
    return REEF_OK;
}

reef_status rfi_blocks_create(rfi_merge *merge, ptrdiff_t unit, reef_error *error)
{
    if (merge->blocks) {
        return REEF_OK;
    }
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

static void widen_to_single(rfi_type type, const void *raw, ptrdiff_t count, float *out)
{
    if (type == RFI_F16) {
        rfi_widen_f16(raw, count, out);
    } else if (type == RFI_BF16) {
        rfi_widen_bf16(raw, count, out);
    } else {
        memcpy(out, raw, (size_t)count * sizeof *out);
    }
}

static void widen_to_double(rfi_type type, const unsigned char *raw, ptrdiff_t count, double *out)
{
    float step[STEP];
    size_t width = rfi_type_size(type);
    for (ptrdiff_t i = 0; i < count; i += STEP) {
        ptrdiff_t part = count - i < STEP ? count - i : STEP;
        widen_to_single(type, raw + (size_t)i * width, part, step);
        for (ptrdiff_t j = 0; j < part; j++) {
            out[i + j] = (double)step[j];
        }
    }
}

/* To nearest; beyond the range of float to infinity. */
static float to_single(double number)
{
    return fabs(number) > (double)FLT_MAX ? copysignf(INFINITY, number < 0 ? -1.0F : 1.0F) : (float)number;
}

/* To odd: so that rounding once more, to 16 bits, is as if done at once. */
static float to_odd(double number)
{
    float nearest = to_single(number);
    if (!isfinite(nearest) || (double)nearest == number) {
        return nearest;
    }
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    bits -= fabs((double)nearest) > fabs(number) ? 1 : 0; /* toward zero */
    bits |= 1;
    memcpy(&nearest, &bits, sizeof nearest);
    return nearest;
}

static void narrow_single(rfi_type type, const float *numbers, ptrdiff_t count, void *raw)
{
    if (type == RFI_F16) {
        rfi_narrow_f16(numbers, count, raw);
    } else if (type == RFI_BF16) {
        rfi_narrow_bf16(numbers, count, raw);
    } else {
        memcpy(raw, numbers, (size_t)count * sizeof *numbers);
    }
}

static void narrow_double(rfi_type type, const double *numbers, ptrdiff_t count, unsigned char *raw)
{
    float step[STEP];
    size_t width = rfi_type_size(type);
    for (ptrdiff_t i = 0; i < count; i += STEP) {
        ptrdiff_t part = count - i < STEP ? count - i : STEP;
        for (ptrdiff_t j = 0; j < part; j++) {
            step[j] = type == RFI_F32 ? to_single(numbers[i + j]) : to_odd(numbers[i + j]);
        }
        narrow_single(type, step, part, raw + (size_t)i * width);
    }
}

/* ---- blocks ---- */

bool rfi_row_counts(const rfi_merge *merge, ptrdiff_t row)
{
    return merge->weights[row] > 0 && !atomic_load(&merge->spoilt[row]);
}

static const rfi_tensor *tensor_of(const rfi_merge *merge, const rfi_model *model, ptrdiff_t tensor)
{
    return model->by_name[merge->rank[tensor]];
}

/* A type that is that of the plan already. */
static bool is_plain(const rfi_merge *merge, rfi_type type)
{
    return type == (merge->dtype == REEF_F64 ? RFI_F64 : RFI_F32);
}

static reef_status read_row(rfi_merge *merge, rfi_block *block, const rfi_model *model, const rfi_tensor *tensor,
                            ptrdiff_t m, ptrdiff_t count, bool as_numbers, void *to, reef_error *error)
{
    size_t width = rfi_type_size(tensor->type);
    size_t size = (size_t)count * width;
    bool plain = !as_numbers || is_plain(merge, tensor->type);
    unsigned char *raw = plain ? to : block->raw;
    reef_status status =
        rfi_reader_get(&model->file, model->data + tensor->start + (size_t)m * width, raw, size, error);
    if (status != REEF_OK) {
        return status;
    }
    if (model->swapped && width > 1) {
        swap_bytes(raw, count, width);
    }
    if (!plain && merge->dtype == REEF_F64) {
        widen_to_double(tensor->type, raw, count, to);
    } else if (!plain) {
        widen_to_single(tensor->type, raw, count, to);
    }
    atomic_fetch_add_explicit(&merge->done, (long long)size, memory_order_relaxed);
    return REEF_OK;
}

reef_status rfi_block_read(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count,
                           bool as_numbers, reef_error *error)
{
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        block->rows[l] = NULL;
        if (!rfi_row_counts(merge, l)) {
            continue;
        }
        const rfi_model *model = &merge->models[merge->file_of[l]];
        unsigned char *to = block->bytes + l * merge->row_bytes;
        reef_status status =
            read_row(merge, block, model, tensor_of(merge, model, tensor), m, count, as_numbers, to, error);
        if (status != REEF_OK) {
            return status;
        }
        block->rows[l] = to;
    }
    return REEF_OK;
}

reef_status rfi_block_write(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count,
                            bool as_numbers, reef_error *error)
{
    const rfi_model *model = merge->reference;
    const rfi_tensor *t = &model->tensors[tensor];
    size_t width = rfi_type_size(t->type);
    bool plain = !as_numbers || is_plain(merge, t->type);
    unsigned char *raw = plain ? block->out : block->raw;
    if (!plain && merge->dtype == REEF_F64) {
        narrow_double(t->type, (const double *)(const void *)block->out, count, raw);
    } else if (!plain) {
        narrow_single(t->type, (const float *)(const void *)block->out, count, raw);
    }
    if (model->swapped && width > 1) {
        swap_bytes(raw, count, width);
    }
    return rfi_writer_put(&merge->out, model->data + t->start + (size_t)m * width, raw, (size_t)count * width, error);
}

void rfi_block_expect(const rfi_merge *merge, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count)
{
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const rfi_model *model = &merge->models[merge->file_of[l]];
        if (rfi_row_counts(merge, l)) {
            const rfi_tensor *t = tensor_of(merge, model, tensor);
            ptrdiff_t width = (ptrdiff_t)rfi_type_size(t->type);
            ptrdiff_t most = expect_bytes / width;
            rfi_reader_expect(&model->file, model->data + t->start + (size_t)(m * width),
                              (size_t)((count < most ? count : most) * width));
        }
    }
}

void rfi_merge_tell(rfi_merge *merge)
{
    double share = merge->total > 0 ? (double)atomic_load(&merge->done) / merge->total : 1;
    if (merge->options->progress && share >= merge->told + 0.001) {
        merge->told = share;
        merge->options->progress(merge->options->user, share < 1 ? share : 1);
    }
}
