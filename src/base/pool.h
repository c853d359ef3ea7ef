/* A small thread pool: runs numbered parts of one job on all workers, the caller being one of them.
 *
 * Threads are started before the first job and wait, without spinning, between jobs. After fork() the child has no
 * threads; it notices by the process id and starts its own. One job at a time: a second caller meanwhile does its parts alone. */
#ifndef RFI_BASE_POOL_H
#define RFI_BASE_POOL_H

#include <reef/context.h>

typedef struct rfi_pool rfi_pool;

/* Part number `part` of a job, on worker number `worker` (0: the caller). */
typedef void (*rfi_job)(void *job, ptrdiff_t part, ptrdiff_t worker);

/* Threads the affinity mask of this process allows. */
ptrdiff_t rfi_processor_count(void);

/* Workers a context offers: 1 without a context. */
ptrdiff_t rfi_context_workers(const reef_context *context);

/* Starts the threads now, so that no job allocates anything. */
void rfi_pool_prepare(reef_context *context);

/* Runs parts 0..parts-1, in any order, on at most `workers` workers; returns when all are done. */
void rfi_pool_run(reef_context *context, ptrdiff_t workers, ptrdiff_t parts, rfi_job run, void *job);

/* Ends the threads and releases the pool; accepts NULL. */
void rfi_pool_destroy(reef_context *context);

#endif
