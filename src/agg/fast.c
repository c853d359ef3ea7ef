/* Between the public reef_span and the kernels. */
#include "agg/fast.h"

rfi_span rfi_span_of(const reef_span *span)
{
    return (rfi_span){.rows = span->rows,
                      .weights = span->equal ? NULL : span->a,
                      .n = span->n,
                      .count = span->count,
                      .out = span->out,
                      .scratch = span->scratch,
                      .hard = span->hard};
}

ptrdiff_t rfi_span_sum(reef_span *span)
{
    rfi_span inner = rfi_span_of(span);
    ptrdiff_t hard = span->kernels->sum(&inner);
    span->reported = true;
    for (ptrdiff_t l = 0; span->share && l < span->n; l++) {
        span->share[l] += (double)(span->count - hard) * span->a[l];
    }
    return hard;
}
