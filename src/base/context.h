/* Inside of a reef_context. */
#ifndef RFI_BASE_CONTEXT_H
#define RFI_BASE_CONTEXT_H

#include <reef/context.h>
#include <reef/rule.h>

struct reef_context {
    reef_allocator allocator;
    const reef_rule **rules; /* the user's, in order of registration */
    ptrdiff_t rule_count;
    ptrdiff_t rule_room;
};

#endif
