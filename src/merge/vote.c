/* Tensors of whole numbers and truth values, block by block: every element by a vote of the files. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/walk.h"
#include "num/treesum.h"
#include "num/vote.h"

#include <assert.h>

typedef struct election {
    rfi_merge *merge;
    rfi_vote vote; /* without its ballots, which each block has its own of */
    ptrdiff_t tensor;
    atomic_llong disputed, undecided;
} election;

static bool votes(const rfi_merge *merge, ptrdiff_t row, ptrdiff_t tensor)
{
    return rfi_row_counts(merge, row) && merge->of[tensor * merge->rows + row];
}

/* The most trusted row of those that have the tensor. */
static ptrdiff_t most_trusted(const rfi_merge *merge, ptrdiff_t tensor)
{
    ptrdiff_t best = -1;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        bool better =
            best < 0 || rfi_vote_prefers(merge->trust[l], merge->weights[l], merge->trust[best], merge->weights[best]);
        best = votes(merge, l, tensor) && better ? l : best;
    }
    return best;
}

static void decide(election *e, rfi_block *block, ptrdiff_t count, size_t width)
{
    rfi_vote vote = e->vote;
    vote.ballots = block->rows;
    vote.width = width;
    rfi_turnout turnout = rfi_vote_decide(&vote, count, block->out);
    assert(turnout.undecided <= turnout.disputed && turnout.disputed <= count);
    atomic_fetch_add(&e->disputed, turnout.disputed);
    atomic_fetch_add(&e->undecided, turnout.undecided);
}

static reef_status decide_block(void *user, const rfi_stretch *at, reef_error *error)
{
    election *e = user;
    rfi_block *block = &e->merge->blocks[at->worker];
    ptrdiff_t count = at->m1 - at->m0;
    reef_status status = rfi_block_read(e->merge, block, e->tensor, at->m0, count, RFI_AS_IT_IS, error);
    if (status == REEF_OK) {
        decide(e, block, count, rfi_type_size(e->merge->result.tensors[e->tensor].type));
        status = rfi_block_write(e->merge, block, e->tensor, at->m0, count, false, error);
    }
    if (at->worker == 0) {
        rfi_merge_tell(e->merge);
    }
    return status;
}

/* Who votes on a tensor; fails if nobody is left. */
static reef_status call(election *e, reef_error *error)
{
    const rfi_merge *merge = e->merge;
    e->vote.arbiter = most_trusted(merge, e->tensor);
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        merge->present[l] = votes(merge, l, e->tensor) ? merge->weights[l] : 0;
    }
    e->vote.total = rfi_vote_scale(merge->present, merge->rows);
    return e->vote.arbiter < 0 ? rfi_fail(error, REEF_E_NO_ROWS, "no file is left") : REEF_OK;
}

static reef_status decide_tensor(election *e, reef_error *error)
{
    rfi_merge *merge = e->merge;
    const rfi_tensor *tensor = &merge->result.tensors[e->tensor];
    ptrdiff_t block = merge->row_bytes / (ptrdiff_t)rfi_type_size(tensor->type);
    ptrdiff_t parts[2];
    assert(block >= 1 && !rfi_type_is_real(tensor->type));
    reef_status status = call(e, error);
    if (status != REEF_OK) {
        return status;
    }
    assert(e->vote.total > 0 && e->vote.arbiter < merge->rows);
    merge->report.integer_tensors++;
    merge->report.integers += tensor->count;
    merge->report.trusted = merge->file_of[e->vote.arbiter];
    if (tensor->count == 0) {
        return REEF_OK;
    }
    rfi_walk_parts(&tensor->count, 1, block, parts);
    const rfi_walk walk = {.context = merge->context,
                           .workers = merge->workers,
                           .segments = 1,
                           .lengths = &tensor->count,
                           .parts = parts,
                           .grain = block,
                           .to = PTRDIFF_MAX,
                           .user = e,
                           .visit = decide_block};
    return rfi_walk_run(&walk, error);
}

reef_status rfi_merge_integers(rfi_merge *merge, reef_error *error)
{
    election e = {.merge = merge};
    e.vote = (rfi_vote){.rows = merge->rows,
                        .weights = merge->present,
                        .arbiter_decides = merge->options->integers == REEF_MERGE_TRUSTED};
    reef_status status = rfi_blocks_create(merge, RFI_TILE, error);
    for (e.tensor = 0; status == REEF_OK && e.tensor < merge->result.count; e.tensor++) {
        if (!rfi_type_is_real(merge->result.tensors[e.tensor].type)) {
            status = decide_tensor(&e, error);
        }
    }
    merge->report.disputed = atomic_load(&e.disputed);
    merge->report.undecided = atomic_load(&e.undecided);
    if (status == REEF_OK) {
        rfi_merge_warn_of_integers(merge);
    }
    return status;
}
