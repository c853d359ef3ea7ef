/* Tensors of whole numbers and truth values: no averages, but the value of a majority.
 *
 * A value with more than half of the weight survives when different values cancel each other pair by pair (Boyer and Moore): one walk
 * over the rows finds the only candidate, a second one counts its weight. */
#include "merge/merge.h"

#include "base/error.h"
#include "num/treesum.h"

#include <string.h>

typedef struct election {
    rfi_task task;
    ptrdiff_t tensor;
    ptrdiff_t part;    /* elements of a part */
    ptrdiff_t trusted; /* row whose value stands where there is no majority */
    double all;        /* weight of all rows that count */
    bool by_trust;     /* no vote at all */
    atomic_llong disputed, undecided;
} election;

/* The most trusted row: highest trust, then weight, then first. */
static ptrdiff_t most_trusted(const rfi_merge *merge)
{
    ptrdiff_t best = -1;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        bool better = best < 0 || merge->trust[l] > merge->trust[best] ||
                      (merge->trust[l] == merge->trust[best] && merge->weights[l] > merge->weights[best]);
        best = rfi_row_counts(merge, l) && better ? l : best;
    }
    return best;
}

static const unsigned char *ballot(const rfi_block *block, ptrdiff_t row, ptrdiff_t i, size_t width)
{
    return (const unsigned char *)block->rows[row] + (size_t)i * width;
}

/* The row whose value has a majority at element i, or -1. *agreed: all rows have it. */
static ptrdiff_t elect(const election *e, const rfi_block *block, ptrdiff_t i, size_t width, bool *agreed)
{
    const rfi_merge *merge = e->task.merge;
    ptrdiff_t candidate = -1;
    double lead = 0;
    double weight = 0;
    *agreed = true;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        if (!block->rows[l]) {
            continue;
        }
        bool same =
            candidate >= 0 && memcmp(ballot(block, l, i, width), ballot(block, candidate, i, width), width) == 0;
        *agreed = *agreed && (same || candidate < 0);
        lead += same ? merge->weights[l] : -merge->weights[l];
        if (!same && lead < 0) {
            candidate = l;
            lead = -lead;
        }
    }
    for (ptrdiff_t l = 0; !*agreed && l < merge->rows; l++) {
        bool same =
            block->rows[l] && memcmp(ballot(block, l, i, width), ballot(block, candidate, i, width), width) == 0;
        weight += same ? merge->weights[l] : 0;
    }
    return *agreed || 2 * weight > e->all ? candidate : -1;
}

static void decide(election *e, rfi_block *block, ptrdiff_t count, size_t width)
{
    long long disputed = 0;
    long long undecided = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        bool agreed = true;
        ptrdiff_t row = elect(e, block, i, width, &agreed);
        disputed += !agreed;
        undecided += row < 0 && !e->by_trust;
        row = row < 0 || e->by_trust ? e->trusted : row;
        memcpy(block->out + (size_t)i * width, ballot(block, row, i, width), width);
    }
    atomic_fetch_add(&e->disputed, disputed);
    atomic_fetch_add(&e->undecided, undecided);
}

static void run_part(void *job, ptrdiff_t part, ptrdiff_t worker)
{
    election *e = job;
    rfi_merge *merge = e->task.merge;
    rfi_block *block = &merge->blocks[worker];
    const rfi_tensor *tensor = &merge->reference->tensors[e->tensor];
    ptrdiff_t m = part * e->part;
    ptrdiff_t count = tensor->count - m < e->part ? tensor->count - m : e->part;
    reef_error error;
    if (atomic_load(&e->task.status) != REEF_OK) {
        return;
    }
    reef_status status = rfi_block_read(merge, block, e->tensor, m, count, false, &error);
    if (status == REEF_OK) {
        decide(e, block, count, rfi_type_size(tensor->type));
        status = rfi_block_write(merge, block, e->tensor, m, count, false, &error);
    }
    if (status != REEF_OK) {
        rfi_task_fail(&e->task, status, &error);
    }
    if (worker == 0) {
        rfi_merge_tell(merge);
    }
}

static reef_status decide_tensor(election *e, reef_error *error)
{
    rfi_merge *merge = e->task.merge;
    const rfi_tensor *tensor = &merge->reference->tensors[e->tensor];
    merge->report.integer_tensors++;
    merge->report.integers += tensor->count;
    merge->report.trusted = merge->file_of[e->trusted];
    e->part = merge->row_bytes / (ptrdiff_t)rfi_type_size(tensor->type);
    return tensor->count ? rfi_task_run(&e->task, (tensor->count - 1) / e->part + 1, run_part, error) : REEF_OK;
}

reef_status rfi_merge_integers(rfi_merge *merge, reef_error *error)
{
    election e = {.task = {.merge = merge}, .trusted = most_trusted(merge)};
    e.by_trust = merge->options->integers == REEF_MERGE_TRUSTED;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        e.all += rfi_row_counts(merge, l) ? merge->weights[l] : 0;
    }
    reef_status status =
        e.trusted < 0 ? rfi_fail(error, REEF_E_NO_ROWS, "no file is left") : rfi_blocks_create(merge, RFI_TILE, error);
    for (e.tensor = 0; status == REEF_OK && e.tensor < merge->reference->count; e.tensor++) {
        if (!rfi_type_is_real(merge->reference->tensors[e.tensor].type)) {
            status = decide_tensor(&e, error);
        }
    }
    merge->report.disputed = atomic_load(&e.disputed);
    merge->report.undecided = atomic_load(&e.undecided);
    return status;
}
