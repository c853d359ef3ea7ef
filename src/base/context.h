/* Inside of a reef_context. */
#ifndef RFI_BASE_CONTEXT_H
#define RFI_BASE_CONTEXT_H

#include "base/pool.h"

#include <reef/context.h>
#include <reef/rule.h>
#include <stdatomic.h>

struct reef_context {
    reef_allocator allocator;
    const reef_rule **rules; /* the user's, in order of registration */
    ptrdiff_t rule_count;
    ptrdiff_t rule_room;
    ptrdiff_t threads; /* workers of a job, the caller included */
    atomic_flag busy;  /* the pool has a job */
    rfi_pool *pool;    /* NULL before the first job */
};

#endif
