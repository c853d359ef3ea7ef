/* The contents of a reef_context. */
#ifndef RFI_BASE_CONTEXT_H
#define RFI_BASE_CONTEXT_H

#include "base/pool.h"

#include <reef/context.h>
#include <reef/registry.h>
#include <stdatomic.h>

/* A kind from outside; the struct is its owner's. */
typedef struct rfi_added {
    reef_family family;
    const reef_kind *kind;
} rfi_added;

struct reef_context {
    reef_allocator allocator;
    rfi_added *added; /* in order of registration */
    ptrdiff_t added_count;
    ptrdiff_t added_room;
    ptrdiff_t threads; /* workers of a job, the caller included */
    atomic_flag busy;  /* the pool has a job */
    rfi_pool *pool;    /* NULL before the first job */
};

/* What is registered in `from` (or NULL) can be named in `to` as well, which must not outlive it and is not destroyed. */
void rfi_context_borrow(reef_context *to, const reef_context *from);

#endif
