/* LoRA adapters: pairs of factors whose products are what the sites have learned.
 *
 * The average of factors is not the factor of the average, and two sites with the same product may have quite different factors. So products
 * are aggregated, as if the full weights had been sent, and the result is factored back to the rank of the pair (num/lowrank.h). A product is
 * a segment of rows x columns numbers that are computed block by block from the factors, which every worker holds for the pair it works on; only
 * results are held as a whole, one per worker at most.
 *
 *   down  A, rank x columns (lora_A, lora_down)     up  B, rows x rank (lora_B, lora_up)     product  B A
 *
 * Factors of convolutions have further axes: those of A count as columns, those of B must be 1. */
#ifndef RFI_MERGE_PAIRS_H
#define RFI_MERGE_PAIRS_H

#include "base/text.h"

#include <reef/context.h>
#include <stdbool.h>
#include <stddef.h>

struct rfi_merge;
struct rfi_block;

typedef struct rfi_pair {
    ptrdiff_t down, up; /* tensors of the result */
    ptrdiff_t rank, rows, columns;
    ptrdiff_t done; /* numbers of the product that are there */
    void *product;  /* rows x columns of the plan's type, from the first of them to the last; NULL: none yet, or done */
} rfi_pair;

/* Finds the pairs of the result. REEF_E_FORMAT if a factor is alone or its shape does not fit. With the option factors they are only told. */
reef_status rfi_pairs_find(struct rfi_merge *merge, reef_error *error);
void rfi_pairs_free(struct rfi_merge *merge);
/* Nothing is done yet. */
void rfi_pairs_reset(struct rfi_merge *merge);

/* What a pair adapts: the name of its factors up to what tells them apart. */
rfi_slice rfi_pair_name(const struct rfi_merge *merge, ptrdiff_t pair);

/* Numbers of the product of a pair, all rows that count, as rfi_block_read. */
reef_status rfi_pair_read(struct rfi_merge *merge, struct rfi_block *block, ptrdiff_t pair, ptrdiff_t m,
                          ptrdiff_t count, reef_error *error);
/* Takes block->out as numbers of the product; with the last of them the factors are written. */
reef_status rfi_pair_write(struct rfi_merge *merge, struct rfi_block *block, ptrdiff_t pair, ptrdiff_t m,
                           ptrdiff_t count, reef_error *error);

/* pair_notes.c: what is told of adapters. */
reef_status rfi_pairs_warn(const struct rfi_merge *merge, reef_error *error);
/* If the new factors lack much of the aggregated products. */
void rfi_pairs_warn_of_error(const struct rfi_merge *merge);
/* Where a word stands in a name, with no small letter after it (lora_alpha is no lora_a); -1: nowhere. */
ptrdiff_t rfi_find_word(rfi_slice name, const char *word);
/* True for the names of factors A. */
bool rfi_is_down_factor(rfi_slice name);
/* True for the names of both factors. */
bool rfi_is_factor(rfi_slice name);

#endif
