/* Inside of a merge.
 *
 * Files that take part are the rows of an aggregation; floating-point tensors with elements are its segments, in the order of the
 * reference model's data. A segment is handled in parts (stretches of the plan's grain), a part in blocks that fit in the cache.
 *
 * Files: model.c opens and compares files, merge.c sets up and ends, block.c moves blocks between files and memory, floats.c runs the
 * aggregation over them, vote.c decides whole numbers. */
#ifndef RFI_MERGE_MERGE_H
#define RFI_MERGE_MERGE_H

#include "base/pool.h"
#include "merge/model.h"

#include <reef/agg.h>
#include <reef/merge.h>
#include <stdatomic.h>

/* Buffers of one worker. */
typedef struct rfi_block {
    const void **rows;    /* K: where each row's numbers of the block are; NULL for rows that are not read */
    unsigned char *bytes; /* K x row_bytes */
    unsigned char *raw;   /* row_bytes: numbers as a file has them */
    unsigned char *out;   /* row_bytes */
} rfi_block;

typedef struct rfi_merge {
    reef_context *context;
    const reef_merge_options *options;
    reef_agg *agg;
    ptrdiff_t files;
    rfi_model *models;      /* files */
    reef_merge_file *fates; /* files */

    ptrdiff_t rows;      /* K */
    ptrdiff_t *file_of;  /* K: row -> file */
    double *weights;     /* K */
    atomic_bool *spoilt; /* K: holds NaN or Inf */
    double *trust;       /* K, summed over the numbers, then their mean */
    double *rejected;    /* K */

    const rfi_model *reference; /* whose layout the output has */
    ptrdiff_t *rank;            /* tensors: place of each in by_name */
    ptrdiff_t segments;
    ptrdiff_t *segment; /* segments: which tensor */
    ptrdiff_t *lengths; /* segments */
    reef_dtype dtype;

    ptrdiff_t workers;
    ptrdiff_t row_bytes;
    rfi_block *blocks; /* workers */
    void *block_memory;
    rfi_writer out;
    atomic_llong done; /* bytes read */
    double bytes;      /* of all floating-point tensors of all rows */
    double total;      /* to read in all, as far as known */
    double told;       /* share of the work last told to the caller */
    reef_merge_report report;
} rfi_merge;

/* A job of many parts; the first failure ends it. */
typedef struct rfi_task {
    rfi_merge *merge;
    atomic_int status;
    reef_error failure;
} rfi_task;

/* block.c: buffers for blocks of whole `unit`s, as many workers as fit in the memory allowed. Buffers that are there are kept. */
reef_status rfi_blocks_create(rfi_merge *merge, ptrdiff_t unit, reef_error *error);
void rfi_blocks_free(rfi_merge *merge);
/* `count` elements of a tensor from m on, of all rows that count, as numbers of the plan's type or as they are. */
reef_status rfi_block_read(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count,
                           bool as_numbers, reef_error *error);
/* Writes block->out as elements of a tensor. */
reef_status rfi_block_write(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count,
                            bool as_numbers, reef_error *error);
/* Tells the kernel what will be read next. */
void rfi_block_expect(const rfi_merge *merge, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count);
/* True if the file of this row is read. */
bool rfi_row_counts(const rfi_merge *merge, ptrdiff_t row);
/* Tells the caller how far we are; for the calling thread. */
void rfi_merge_tell(rfi_merge *merge);

/* merge.c: keeps the first failure of a task. */
void rfi_task_fail(rfi_task *task, reef_status status, const reef_error *error);
reef_status rfi_task_run(rfi_task *task, ptrdiff_t parts, rfi_job run, reef_error *error);

/* floats.c */
reef_status rfi_merge_floats(rfi_merge *merge, reef_error *error);
/* vote.c */
reef_status rfi_merge_integers(rfi_merge *merge, reef_error *error);

#endif
