/* Between the public reef_span and the kernels. */
#ifndef RFI_AGG_RULES_FAST_H
#define RFI_AGG_RULES_FAST_H

#include "num/kernels/kernels.h"

#include <reef/rule.h>

/* The same span in the words of the kernels; weights NULL when they are equal. */
static inline rfi_span rfi_span_of(const reef_span *span)
{
    return (rfi_span){.rows = span->rows,
                      .weights = span->equal ? NULL : span->a,
                      .n = span->n,
                      .count = span->count,
                      .out = span->out,
                      .scratch = span->scratch,
                      .hard = span->hard};
}

/* Whether the kernels of order statistics may be used: weights are equal, or none is so small that it would vanish in products and the rows are the
 * caller's own. With unequal weights a result jumps where two values tie, so both ways must see the same values. */
bool rfi_span_weights(const reef_span *span);

/* The weighted mean, and its report: every row has its weight everywhere. */
ptrdiff_t rfi_span_sum(reef_span *span);

/* A report for the kernels that adds to what the span wants. */
rfi_kernel_report rfi_span_report(reef_span *span);

#endif
