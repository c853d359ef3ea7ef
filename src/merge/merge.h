/* Inside of a merge.
 *
 * Files that take part are the rows of an aggregation; floating-point tensors with elements are its segments, in the order of the
 * reference model's data. A segment is handled in parts (stretches of the plan's grain), a part in blocks that fit in the cache.
 *
 * Files: model.c opens a file, header.c reads its header, folder.c opens a folder, compare.c compares, match.c finds each tensor in each file, copies.c finds equal files, merge.c sets up and ends, output.c
 * writes files or a folder, small.c copies what lies beside the weights, keys.c says in what it differs, quantized.c warns of models that are no floating-point numbers, pairs.c aggregates LoRA adapters, pair_notes.c warns of them, base.c finds the model that deltas are from, memory.c keeps a state between merges, block.c moves blocks between files and memory, floats.c runs the
 * aggregation over them, vote.c decides whole numbers. */
#ifndef RFI_MERGE_MERGE_H
#define RFI_MERGE_MERGE_H

#include "io/file.h"
#include "merge/model.h"
#include "merge/output.h"
#include "merge/pairs.h"

#include <pthread.h>
#include <reef/agg.h>
#include <reef/merge.h>
#include <stdatomic.h>

/* Bytes of a file that were read ahead. */
typedef struct rfi_read_window {
    const rfi_shard *shard; /* NULL: none */
    size_t at, size;
} rfi_read_window;

/* Bytes of the result that are not written yet. */
typedef struct rfi_behind {
    const rfi_writer *file; /* NULL: none */
    size_t at, size;
    unsigned char *bytes; /* behind_bytes */
} rfi_behind;

/* Buffers of one worker. */
typedef struct rfi_block {
    const void **rows;        /* K: where each row's numbers of the block are; NULL for rows that do not count */
    rfi_type type;            /* of those numbers: the plan's, or that of the files if the plan reads it */
    bool *wanted;             /* K: rows that the pass depends on */
    unsigned char *bytes;     /* K x row_bytes, with gaps: rfi_block_row */
    unsigned char *raw;       /* row_bytes: numbers as a file has them */
    unsigned char *out;       /* row_bytes */
    rfi_read_window *windows; /* K: small tensors that follow one another in a file are read together, into */
    unsigned char *ahead;     /* K x ahead_bytes */
    rfi_behind behind;        /* the same for writing */
    unsigned char *base;      /* row_bytes: numbers of the base model, if there is one */
    double *factors;          /* K x factor_numbers: those of the pair that the worker is at */
    ptrdiff_t pair;           /* which; -1: none */
} rfi_block;

/* A plan for tensors of one length; 0: for several tensors. */
typedef struct rfi_kept_plan {
    ptrdiff_t length;
    reef_plan *plan;
} rfi_kept_plan;

enum { RFI_PLANS = 31 };

typedef struct rfi_merge {
    reef_context *context;
    const reef_merge_options *options;
    const char *out_path;
    reef_agg *agg;
    ptrdiff_t files;
    rfi_model *models;      /* files */
    reef_merge_file *fates; /* files */

    ptrdiff_t rows;              /* K */
    ptrdiff_t *file_of;          /* K: row -> file */
    double *weights;             /* K */
    atomic_bool *spoilt;         /* K: holds NaN or Inf, as far as known */
    bool *left_out;              /* K: the same once all files were searched */
    atomic_ptrdiff_t *spoilt_in; /* K: the first segment that holds NaN or Inf, as far as known */
    double *trust;               /* K, summed over the numbers, then their mean */
    double *numbers;             /* K: how many numbers of it took part */
    double *present;             /* K: weights in one tensor, 0 where a file lacks it */
    double *rejected;            /* K */
    double *by_tensor;           /* segments x K: trust, if the caller wants it; else NULL */
    int64_t *ids;                /* K, with a state */
    reef_state *state;           /* NULL: nothing is remembered */
    rfi_writer memory;           /* the new file of the state; name NULL: none */
    int memory_lock;             /* the old one, open and locked; at the end of a first merge the folder; -1: none */
    bool first;                  /* there was no file of the state */

    const rfi_model *reference; /* whose format, shards and small files the output has */
    rfi_lenience allow;         /* differences between the files */
    rfi_type cast;              /* of the result, if the options name a type */
    rfi_model result;           /* the tensors of the result; the rest of it is the reference's */
    const rfi_tensor **of;      /* tensors x K: each in each file; NULL: the file lacks it */
    rfi_tensor *list;           /* what result.tensors are, and the following its other lists */
    ptrdiff_t *shard_of;
    const rfi_tensor **names;
    rfi_model base;             /* deltas from it are aggregated; count 0: there is none */
    const rfi_tensor **base_of; /* tensors: each in the base */
    rfi_pair *pairs;            /* LoRA */
    ptrdiff_t pair_count;
    ptrdiff_t *pair_of;          /* tensors: the pair that it is a factor of; -1: none */
    ptrdiff_t factor_numbers;    /* of the largest pair */
    double pair_size, pair_miss; /* sums of squares of the products, and of what the factors lack of them */
    pthread_mutex_t lock;        /* of what pairs sum up */
    ptrdiff_t segments;
    ptrdiff_t whole;    /* segments that all files have; the others come after them, each aggregated by itself */
    ptrdiff_t *segment; /* segments: which tensor */
    ptrdiff_t *lengths; /* segments */
    reef_dtype dtype;
    rfi_kept_plan plans[RFI_PLANS];
    const reef_plan *plan; /* under way; NULL: none, blocks are read in the plans' type */

    ptrdiff_t workers;
    ptrdiff_t row_bytes;
    ptrdiff_t ahead_bytes; /* 0: nothing is read ahead */
    ptrdiff_t behind_bytes;
    rfi_block *blocks; /* workers */
    void *block_memory;
    rfi_output out;
    atomic_llong done; /* bytes read */
    double bytes;      /* of all floating-point tensors of all rows */
    double total;      /* to read in all, as far as known */
    double told;       /* share of the work last told to the caller */
    reef_merge_report report;
} rfi_merge;

/* block.c: buffers for blocks of whole `unit`s, as many workers as fit in the memory allowed. Buffers that are there are kept. */
reef_status rfi_blocks_create(rfi_merge *merge, ptrdiff_t unit, reef_error *error);
void rfi_blocks_free(rfi_merge *merge);
/* Where the numbers of a row are put: row_bytes. */
unsigned char *rfi_block_row(const rfi_merge *merge, const rfi_block *block, ptrdiff_t row);
/* Writes what is not written yet; or forgets it. */
reef_status rfi_blocks_flush(rfi_merge *merge, reef_error *error);
void rfi_blocks_forget(rfi_merge *merge);
/* How a block is read: as the files have it, or as numbers of block->type; of all rows that count, or of those wanted, and the others then have
 * the numbers of one of these. */
typedef enum rfi_reading { RFI_AS_IT_IS, RFI_NUMBERS, RFI_WANTED } rfi_reading;
/* `count` elements of a tensor from m on. */
reef_status rfi_block_read(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count,
                           rfi_reading reading, reef_error *error);
/* All numbers of one file's tensor as double. */
reef_status rfi_block_numbers(rfi_merge *merge, rfi_block *block, ptrdiff_t row, const rfi_tensor *tensor, double *to,
                              reef_error *error);
/* Writes block->out as elements of a tensor: small ones when more have come, or with rfi_blocks_flush. */
reef_status rfi_block_write(rfi_merge *merge, rfi_block *block, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count,
                            bool as_numbers, reef_error *error);
/* Tells the kernel what will be read next. wanted: of these rows; NULL: of all. */
void rfi_block_expect(const rfi_merge *merge, const bool *wanted, ptrdiff_t tensor, ptrdiff_t m, ptrdiff_t count);
/* True if the file of this row is read. */
bool rfi_row_counts(const rfi_merge *merge, ptrdiff_t row);
/* A failure if the caller wants the merge to end. */
reef_status rfi_merge_go_on(const rfi_merge *merge, reef_error *error);
/* Tells the caller how far we are; for the calling thread. */
void rfi_merge_tell(rfi_merge *merge);

/* merge.c: REEF_E_ARG if the result would take the place of a file in this model's folder. */
reef_status rfi_merge_check_result(const rfi_merge *merge, const rfi_model *model, reef_error *error);
/* merge.c: REEF_E_FORMAT unless the files that are not bad are most of those that could be read. */
reef_status rfi_merge_check_majority(const rfi_merge *merge, ptrdiff_t readable, reef_error *error);
/* match.c: fills in result and `of`; and releases them. */
reef_status rfi_merge_match(rfi_merge *merge, reef_error *error);
void rfi_merge_unmatch(rfi_merge *merge);
/* Tells the caller of tensors that were left out: `count`, the first `shown` of them by name. */
void rfi_merge_note_names(const rfi_merge *merge, const rfi_slice *names, ptrdiff_t shown, ptrdiff_t count);
/* "F32", "bf16", ...: false if no floating-point type has that name. */
bool rfi_real_type_named(const char *name, rfi_type *type);
/* base.c: opens the base model and finds its tensors; and closes it. */
reef_status rfi_merge_open_base(rfi_merge *merge, reef_error *error);
void rfi_merge_close_base(rfi_merge *merge);
/* copies.c: fills in copy_of of the files. */
reef_status rfi_merge_find_copies(rfi_merge *merge, reef_error *error);
/* small.c: what lies beside the weights in a folder. */
reef_status rfi_merge_small_files(rfi_merge *merge, reef_error *error);
/* keys.c: the first keys at the top of two JSON objects in which they differ: 'a', 'b', ...; none if one of them is no such object, or large. */
typedef struct rfi_key_list {
    ptrdiff_t count;
    bool scale; /* one is what the products of LoRA factors are scaled by */
    char text[160];
    size_t used;
} rfi_key_list;
rfi_key_list rfi_differing_keys(const rfi_file *one, const rfi_file *other);
/* quantized.c: warns where numbers are not what they stand for. */
void rfi_merge_warn_of_scales(const rfi_merge *merge);
void rfi_merge_warn_of_integers(const rfi_merge *merge);
/* memory.c: the state from its file, before the aggregation; and into a new file, which merge.c puts in its place. */
reef_status rfi_merge_recall(rfi_merge *merge, reef_error *error);
reef_status rfi_merge_remember(rfi_merge *merge, reef_error *error);
/* A failure if the file of the state is not the one that this merge began with; and the end of its lock. */
reef_status rfi_merge_check_memory(rfi_merge *merge, reef_error *error);
void rfi_merge_unlock_memory(rfi_merge *merge);
/* floats.c */
reef_status rfi_merge_floats(rfi_merge *merge, reef_error *error);
/* Hands trust by tensor to the caller. */
reef_status rfi_merge_tell_tensors(const rfi_merge *merge, reef_error *error);
/* vote.c */
reef_status rfi_merge_integers(rfi_merge *merge, reef_error *error);

#endif
