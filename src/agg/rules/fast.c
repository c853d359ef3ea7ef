/* Between the public reef_span and the kernels. */
#include "agg/rules/fast.h"

rfi_kernel_report rfi_span_report(reef_span *span)
{
    span->reported = true;
    span->marked = true;
    return (rfi_kernel_report){
        .share = span->share, .rejected = span->rejected, .none = span->none, .stride = span->count};
}

bool rfi_span_weights(const reef_span *span)
{
    const double least = 0x1p-40;
    bool usable = span->equal || !span->mixed;
    for (ptrdiff_t i = 0; !span->equal && i < span->n; i++) {
        usable = usable && span->a[i] > least;
    }
    return usable;
}

ptrdiff_t rfi_span_sum(reef_span *span)
{
    rfi_span inner = rfi_span_of(span);
    span->fair = true;
    return span->kernels->sum(&inner);
}
