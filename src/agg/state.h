/* The contents of a reef_state: the last result (centre of centered clipping), or the senders of a rule that remembers them. */
#ifndef RFI_AGG_STATE_H
#define RFI_AGG_STATE_H

#include "agg/plan.h"

struct reef_state {
    const reef_context *context;
    const reef_rule *rule; /* the last of the pipeline */
    reef_dtype dtype;
    ptrdiff_t segments;
    ptrdiff_t *offsets; /* segments + 1 */
    bool *given;        /* segments: set by the user since the last reset */
    bool known;
    unsigned char *now; /* the centre, all segments end to end */
    unsigned char *next;
    bool recalls;
    rfi_senders senders; /* with it, instead of a centre */
};

#endif
