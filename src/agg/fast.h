/* Between the public reef_span and the kernels. */
#ifndef RFI_AGG_FAST_H
#define RFI_AGG_FAST_H

#include "num/kernels/kernels.h"

#include <reef/rule.h>

/* The same span in the words of the kernels; weights NULL when they are equal. */
rfi_span rfi_span_of(const reef_span *span);

/* The weighted mean, and its report: every row has its weight everywhere. */
ptrdiff_t rfi_span_sum(reef_span *span);

/* The median of rows with equal weights (kind as rfi_median_kind), and its report if that is wanted. */
ptrdiff_t rfi_span_median(reef_span *span, int kind);

#endif
