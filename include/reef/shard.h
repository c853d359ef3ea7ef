/* Aggregating rows that are spread over several ranks, without any rank ever holding all of them.
 *
 * There are K rows of M numbers. Every rank contributes some whole rows, and aggregates one slice of the coordinates for all K. Rows are sent
 * once, by an all-to-all transpose. Rules on distances see the Gram matrix of all coordinates, summed in the same order as in one process, so
 * the result is bit-identical for any number of ranks.
 *
 *     reef_shard_create(&shard, agg, engine, &shape, &error);             collective, like every call here
 *     reef_shard_apply(shard, &input, slice, NULL, &error);               as often as wanted
 *     reef_shard_gather(shard, slice, model, &error);                     if every rank wants the whole result
 *
 * A failure on one rank fails all of them with the same status and text.
 */
#ifndef REEF_SHARD_H
#define REEF_SHARD_H

#include <reef/agg.h>
#include <reef/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A shard, to be used by one thread of each rank at a time. The aggregator and the engine must outlive it. */
typedef struct reef_shard reef_shard;

/* The rows of all ranks. */
typedef struct reef_shard_shape {
    size_t size;           /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    ptrdiff_t length;      /* M */
    reef_dtype dtype;      /* of rows and result */
    const ptrdiff_t *rows; /* per rank: how many rows it contributes, >= 0; they are numbered rank by rank */
    bool report;           /* apply will be given a report; slices are then coarser */
} reef_shard_shape;

/* agg and engine must outlive the shard. */
REEF_API REEF_MUST_CHECK reef_status reef_shard_create(reef_shard **shard, const reef_agg *agg,
                                                       const reef_engine *engine, const reef_shard_shape *shape,
                                                       reef_error *error);
/* Collective. Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_shard_destroy(reef_shard **shard);
/* K. */
REEF_API ptrdiff_t reef_shard_rows(const reef_shard *shard);
/* The coordinates m0 <= m < m1 of a rank's slice; m0 = m1: it has none. */
REEF_API void reef_shard_range(const reef_shard *shard, ptrdiff_t rank, ptrdiff_t *m0, ptrdiff_t *m1);
/* Bytes that this rank holds in addition to the caller's rows and slice. */
REEF_API size_t reef_shard_size(const reef_shard *shard);
/* input->rows: this rank's own rows. Everything else refers to all K rows and must be the same on all ranks; a state must have been made
 * for all of M. A centre is then remembered by slices, and senders (mref) by all ranks alike, with the seed of rank 0's state. Rows without
 * weight are not sent. slice receives m1 - m0 numbers. Effective weights of single coordinates are not kept. */
REEF_API REEF_MUST_CHECK reef_status reef_shard_apply(reef_shard *shard, const reef_input *input, void *slice,
                                                      reef_report *report, reef_error *error);
/* The slices of all ranks end to end: M numbers. */
REEF_API REEF_MUST_CHECK reef_status reef_shard_gather(reef_shard *shard, const void *slice, void *out,
                                                       reef_error *error);

#ifdef __cplusplus
}
#endif
#endif
