#include "merge/pairs.h"

#include "agg/driver.h"
#include "base/error.h"
#include "base/memory.h"
#include "io/lines.h"
#include "merge/merge.h"
#include "num/lowrank.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns of a product that are computed at once, and the largest product: it is held in memory. */
enum { STRIP = 512 };
static const ptrdiff_t product_max = (ptrdiff_t)1 << 31;

/* ---- names ---- */

/* What factors are called: peft, then torchtune, kohya, diffusers. */
static const struct {
    const char *down, *up;
} markers[] = {{"lora_embedding_A", "lora_embedding_B"},
               {"lora_A", "lora_B"},
               {"lora_a", "lora_b"},
               {"lora_down", "lora_up"},
               {"lora_linear_layer.down", "lora_linear_layer.up"},
               {"lora.down", "lora.up"}};

static bool is_small_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

ptrdiff_t rfi_find_word(rfi_slice name, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= name.length; i++) {
        const char *next = memchr(name.text + i, word[0], name.length - length - i + 1);
        if (!next) {
            return -1;
        }
        i = (size_t)(next - name.text);
        bool ends = i + length == name.length || !is_small_letter(name.text[i + length]);
        if (ends && memcmp(next, word, length) == 0) {
            return (ptrdiff_t)i;
        }
    }
    return -1;
}

/* Order of a tensor's name and a name in which `word` at `at` is replaced by `other`. */
static int compare_with(const rfi_tensor *tensor, rfi_slice name, ptrdiff_t at, const char *word, const char *other)
{
    const rfi_slice parts[] = {{name.text, (size_t)at},
                               {other, strlen(other)},
                               {name.text + at + strlen(word), name.length - (size_t)at - strlen(word)}};
    rfi_slice rest = tensor->name;
    for (int i = 0; i < 3; i++) {
        size_t length = parts[i].length < rest.length ? parts[i].length : rest.length;
        int order = length ? memcmp(rest.text, parts[i].text, length) : 0;
        if (order != 0 || parts[i].length > rest.length) {
            return order ? order : -1;
        }
        rest = (rfi_slice){rest.text + length, rest.length - length};
    }
    return rest.length > 0;
}

/* The tensor at the other side of a factor; -1: there is none. */
static ptrdiff_t find_other(const rfi_merge *merge, rfi_slice name, ptrdiff_t at, const char *word, const char *other)
{
    ptrdiff_t low = 0;
    ptrdiff_t high = merge->result.count;
    while (low < high) {
        ptrdiff_t middle = low + (high - low) / 2;
        int order = compare_with(merge->names[middle], name, at, word, other);
        if (order == 0) {
            return merge->names[middle] - merge->list;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return -1;
}

bool rfi_is_down_factor(rfi_slice name)
{
    bool found = false;
    for (size_t i = 0; !found && i < sizeof markers / sizeof *markers; i++) {
        found = rfi_find_word(name, markers[i].down) >= 0;
    }
    return found;
}

bool rfi_is_factor(rfi_slice name)
{
    bool found = rfi_is_down_factor(name);
    for (size_t i = 0; !found && i < sizeof markers / sizeof *markers; i++) {
        found = rfi_find_word(name, markers[i].up) >= 0;
    }
    return found;
}

/* ---- finding ---- */

static reef_status fail_tensor(const rfi_merge *merge, ptrdiff_t tensor, const char *what, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    return rfi_fail(error, REEF_E_FORMAT,
                    "tensor '%s' is a factor of a LoRA adapter, but %s; --factors merges such "
                    "tensors one by one",
                    rfi_shown(merge->list[tensor].name, shown), what);
}

static reef_status measure(const rfi_merge *merge, rfi_pair *pair, reef_error *error)
{
    const rfi_tensor *down = &merge->list[pair->down];
    const rfi_tensor *up = &merge->list[pair->up];
    ptrdiff_t numbers = 0;
    if (down->rank < 2 || up->rank < 2 || down->count == 0 || up->count == 0 ||
        up->count != up->shape[0] * up->shape[1] || up->shape[1] != down->shape[0]) {
        return fail_tensor(merge, pair->down, "its shape does not match that of the other factor", error);
    }
    pair->rank = down->shape[0];
    pair->rows = up->shape[0];
    pair->columns = down->count / pair->rank;
    if (!rfi_mul(pair->rows, pair->columns, &numbers) || numbers > product_max) {
        return fail_tensor(merge, pair->down, "the product would not fit in memory", error);
    }
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        if (!merge->of[pair->down * merge->rows + l] != !merge->of[pair->up * merge->rows + l]) {
            return fail_tensor(merge, pair->down, "a file has only one of the two", error);
        }
    }
    return REEF_OK;
}

/* Whether a tensor is a factor; if so, its pair is added. */
static reef_status consider(rfi_merge *merge, ptrdiff_t tensor, reef_error *error)
{
    rfi_slice name = merge->list[tensor].name;
    if (rfi_find_word(name, "lora") < 0) {
        return REEF_OK; /* none of them is in it: after it there is a dot or a line */
    }
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        ptrdiff_t at = rfi_find_word(name, markers[i].down);
        if (at >= 0) {
            rfi_pair pair = {.down = tensor, .up = find_other(merge, name, at, markers[i].down, markers[i].up)};
            if (pair.up < 0 || !rfi_type_is_real(merge->list[pair.up].type)) {
                return fail_tensor(merge, tensor, "the other factor is missing", error);
            }
            if (merge->pair_of[pair.down] >= 0 || merge->pair_of[pair.up] >= 0) { /* x.lora_B.lora_A */
                return fail_tensor(merge, tensor, "it or its partner also belongs to a third factor", error);
            }
            assert(pair.up != pair.down && merge->pair_count < merge->result.count);
            reef_status status = measure(merge, &pair, error);
            merge->pair_of[pair.down] = merge->pair_count;
            merge->pair_of[pair.up] = merge->pair_count;
            merge->pairs[merge->pair_count++] = pair;
            return status;
        }
        at = rfi_find_word(name, markers[i].up);
        if (at >= 0) {
            bool alone = find_other(merge, name, at, markers[i].up, markers[i].down) < 0;
            return alone ? fail_tensor(merge, tensor, "the other factor is missing", error) : REEF_OK;
        }
    }
    return REEF_OK;
}

reef_status rfi_pairs_find(rfi_merge *merge, reef_error *error)
{
    ptrdiff_t count = merge->result.count;
    merge->pair_of = rfi_allocate_many(merge->context, count + 1, sizeof *merge->pair_of);
    merge->pairs = rfi_allocate_many(merge->context, count + 1, sizeof *merge->pairs);
    if (!merge->pair_of || !merge->pairs) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td tensors", count);
    }
    for (ptrdiff_t t = 0; t < count; t++) {
        merge->pair_of[t] = -1;
    }
    if (merge->options->factors) {
        return rfi_pairs_warn(merge, error);
    }
    reef_status status = REEF_OK;
    for (ptrdiff_t t = 0; status == REEF_OK && t < count; t++) {
        status = rfi_type_is_real(merge->list[t].type) ? consider(merge, t, error) : REEF_OK;
    }
    for (ptrdiff_t p = 0; p < merge->pair_count; p++) {
        const rfi_pair *pair = &merge->pairs[p];
        ptrdiff_t numbers = pair->rank * (pair->rows + pair->columns);
        merge->factor_numbers = numbers > merge->factor_numbers ? numbers : merge->factor_numbers;
    }
    merge->report.pairs = merge->pair_count;
    if (status != REEF_OK) {
        return status;
    }
    return rfi_pairs_warn(merge, error);
}

rfi_slice rfi_pair_name(const rfi_merge *merge, ptrdiff_t pair)
{
    rfi_slice name = merge->list[merge->pairs[pair].down].name;
    ptrdiff_t at = -1;
    for (size_t i = 0; at < 0 && i < sizeof markers / sizeof *markers; i++) {
        at = rfi_find_word(name, markers[i].down);
    }
    while (at > 0 && (name.text[at - 1] == '.' || name.text[at - 1] == '_')) {
        at--;
    }
    return at > 0 ? (rfi_slice){name.text, (size_t)at} : name;
}

void rfi_pairs_reset(rfi_merge *merge)
{
    for (ptrdiff_t p = 0; p < merge->pair_count; p++) {
        rfi_release(merge->context, merge->pairs[p].product);
        merge->pairs[p].product = NULL;
        merge->pairs[p].done = 0;
    }
    merge->pair_size = merge->pair_miss = 0;
    merge->report.pair_worst = 0;
}

void rfi_pairs_free(rfi_merge *merge)
{
    rfi_pairs_reset(merge);
    rfi_release(merge->context, merge->pairs);
    rfi_release(merge->context, merge->pair_of);
}

/* ---- products ---- */

/* Where a worker has the factors of a row: A, then B. */
static double *factors_of(const rfi_merge *merge, const rfi_block *block, ptrdiff_t row)
{
    return block->factors + row * merge->factor_numbers;
}

static reef_status load_factors(rfi_merge *merge, rfi_block *block, ptrdiff_t pair, reef_error *error)
{
    const rfi_pair *p = &merge->pairs[pair];
    assert(p->rank * (p->rows + p->columns) <= merge->factor_numbers);
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const rfi_tensor *down = merge->of[p->down * merge->rows + l];
        const rfi_tensor *up = merge->of[p->up * merge->rows + l];
        if (!down || !rfi_row_counts(merge, l)) {
            continue;
        }
        double *to = factors_of(merge, block, l);
        reef_status status = rfi_block_numbers(merge, block, l, down, to, error);
        if (status == REEF_OK) {
            status = rfi_block_numbers(merge, block, l, up, to + p->rank * p->columns, error);
        }
        if (status != REEF_OK) {
            return status;
        }
    }
    block->pair = pair;
    return REEF_OK;
}

/* Numbers [m, m + count) of the product of a row: each a sum over the rank in ascending order, wherever a block begins. */
static void multiply(const rfi_merge *merge, const rfi_pair *p, const double *factors, ptrdiff_t m, ptrdiff_t count,
                     void *to)
{
    double sums[STRIP];
    float *single = to;
    double *number = to;
    const double *up = factors + p->rank * p->columns;
    for (ptrdiff_t done = 0, part; done < count; done += part) {
        ptrdiff_t i = (m + done) / p->columns;
        ptrdiff_t j = (m + done) % p->columns;
        part = p->columns - j < count - done ? p->columns - j : count - done;
        part = part < STRIP ? part : STRIP;
        memset(sums, 0, (size_t)part * sizeof *sums);
        for (ptrdiff_t r = 0; r < p->rank; r++) {
            double b = up[i * p->rank + r];
            const double *a = factors + r * p->columns + j;
            for (ptrdiff_t c = 0; c < part; c++) {
                sums[c] += b * a[c];
            }
        }
        for (ptrdiff_t c = 0; c < part; c++) {
            if (merge->dtype == REEF_F64) {
                number[done + c] = sums[c];
            } else {
                single[done + c] = (float)sums[c];
            }
        }
    }
}

reef_status rfi_pair_read(rfi_merge *merge, rfi_block *block, ptrdiff_t pair, ptrdiff_t m, ptrdiff_t count,
                          reef_error *error)
{
    const rfi_pair *p = &merge->pairs[pair];
    assert(pair >= 0 && pair < merge->pair_count && m >= 0 && count <= p->rows * p->columns - m);
    reef_status status = block->pair == pair ? REEF_OK : load_factors(merge, block, pair, error);
    if (status != REEF_OK) {
        return status;
    }
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const rfi_tensor *down = merge->of[p->down * merge->rows + l];
        const rfi_tensor *up = merge->of[p->up * merge->rows + l];
        block->rows[l] = NULL;
        if (down && rfi_row_counts(merge, l)) {
            unsigned char *to = rfi_block_row(merge, block, l);
            multiply(merge, p, factors_of(merge, block, l), m, count, to);
            block->rows[l] = to;
            double share = (double)count / ((double)p->rows * (double)p->columns);
            atomic_fetch_add_explicit(&merge->done, (long long)(share * (double)(down->bytes + up->bytes)),
                                      memory_order_relaxed);
        }
    }
    return REEF_OK;
}

/* ---- results ---- */

/* A factor goes out in pieces, by way of the plan's type, as all results do. */
static reef_status put_factor(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, const double *numbers,
                              reef_error *error)
{
    ptrdiff_t count = merge->list[tensor].count;
    ptrdiff_t most = merge->row_bytes / (ptrdiff_t)sizeof(double);
    float *single = (float *)(void *)block->out;
    double *number = (double *)(void *)block->out;
    for (ptrdiff_t m = 0, part; m < count; m += part) {
        part = count - m < most ? count - m : most;
        for (ptrdiff_t i = 0; i < part; i++) {
            if (merge->dtype == REEF_F64) {
                number[i] = numbers[m + i];
            } else {
                single[i] = (float)numbers[m + i];
            }
        }
        reef_status status = rfi_block_write(merge, block, tensor, m, part, true, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

/* The columns of all factors B, one after the other. Returns how many there are. */
static ptrdiff_t stack_columns(const rfi_merge *merge, const rfi_block *block, const rfi_pair *p, double *basis)
{
    ptrdiff_t span = 0;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const double *up = factors_of(merge, block, l) + p->rank * p->columns;
        bool there = rfi_row_counts(merge, l) && merge->of[p->up * merge->rows + l];
        for (ptrdiff_t r = 0; there && r < p->rank; r++, span++) {
            for (ptrdiff_t i = 0; i < p->rows; i++) {
                basis[span * p->rows + i] = up[i * p->rank + r];
            }
        }
    }
    assert(span <= merge->rows * p->rank);
    return span;
}

static void note_error(rfi_merge *merge, const rfi_lowrank_error *far)
{
    double relative = far->size > 0 ? far->miss / far->size : 0;
    (void)pthread_mutex_lock(&merge->lock);
    merge->pair_size += far->size * far->size;
    merge->pair_miss += far->miss * far->miss;
    merge->report.pair_worst = fmax(merge->report.pair_worst, relative);
    (void)pthread_mutex_unlock(&merge->lock);
}

static reef_status factor(rfi_merge *merge, rfi_block *block, rfi_pair *p, reef_error *error)
{
    ptrdiff_t width = merge->rows * p->rank;
    ptrdiff_t columns = width + p->rank; /* of the basis, and of the left factor */
    double *room = rfi_allocate_many(merge->context, columns * p->rows + p->rank * p->columns, sizeof *room);
    if (!room) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory to factor a product of %td x %td", p->rows, p->columns);
    }
    double *left = room + width * p->rows;
    double *right = left + p->rank * p->rows;
    rfi_lowrank_error far;
    const rfi_lowrank problem = {.rows = p->rows,
                                 .columns = p->columns,
                                 .rank = p->rank,
                                 .numbers = p->product,
                                 .wide = merge->dtype == REEF_F64,
                                 .span = stack_columns(merge, block, p, room),
                                 .basis = room};
    reef_status status = rfi_lowrank_factor(merge->context, &problem, left, right, &far, error);
    if (status == REEF_OK) {
        note_error(merge, &far);
        status = put_factor(merge, block, p->up, left, error);
    }
    if (status == REEF_OK) {
        status = put_factor(merge, block, p->down, right, error);
    }
    rfi_release(merge->context, room);
    return status;
}

/* Room for the product, made by the first worker that has a part of it. */
static reef_status make_room(rfi_merge *merge, rfi_pair *p, reef_error *error)
{
    (void)pthread_mutex_lock(&merge->lock);
    if (!p->product) {
        p->product = rfi_allocate_many(merge->context, p->rows * p->columns, rfi_dtype_size(merge->dtype));
    }
    bool there = p->product != NULL;
    (void)pthread_mutex_unlock(&merge->lock);
    return there ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for a product of %td x %td", p->rows, p->columns);
}

/* True for the worker that has the last part. */
static bool count_part(rfi_merge *merge, rfi_pair *p, ptrdiff_t count)
{
    (void)pthread_mutex_lock(&merge->lock);
    p->done += count;
    assert(p->done <= p->rows * p->columns); /* each number comes once */
    bool last = p->done == p->rows * p->columns;
    (void)pthread_mutex_unlock(&merge->lock);
    return last;
}

reef_status rfi_pair_write(rfi_merge *merge, rfi_block *block, ptrdiff_t pair, ptrdiff_t m, ptrdiff_t count,
                           reef_error *error)
{
    rfi_pair *p = &merge->pairs[pair];
    assert(block->pair == pair); /* who writes has read: its factors are those of the pair */
    size_t width = rfi_dtype_size(merge->dtype);
    reef_status status = make_room(merge, p, error);
    if (status != REEF_OK) {
        return status;
    }
    memcpy((unsigned char *)p->product + (size_t)m * width, block->out, (size_t)count * width);
    if (!count_part(merge, p, count)) {
        return REEF_OK;
    }
    status = factor(merge, block, p, error);
    rfi_release(merge->context, p->product);
    p->product = NULL;
    return status;
}
