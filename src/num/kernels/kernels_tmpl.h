/* The kernels, written once over the vector layer and compiled per instruction set and type (kernels_*.c). A group is LANES coordinates
 * next to each other; a column is the n values of one coordinate, all of a group in n vectors. */
#include "num/kernels/kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* REAL_LARGE: beyond it a scale or its inverse might leave the range; the scalar rules scale such columns down. */
#ifdef REAL_IS_FLOAT
#define REAL_MIN FLT_MIN
#define REAL_MAX FLT_MAX
#define REAL_LARGE 0x1p+115F
#else
#define REAL_MIN DBL_MIN
#define REAL_MAX DBL_MAX
#define REAL_LARGE 0x1p+1000
#endif

/* What rows are made of: the kernels' own type, unless a file stored_*.h says otherwise; then they are widened as they are loaded. */
#ifndef ROWS_STORED
typedef real stored;
#define v_load_stored v_load
#define v_load_stored_part v_load_part
KERNEL real number_of(stored number)
{
    return number;
}
#endif
/* Bytes of a row's numbers in as many lanes as a vector has. */
#define ROW_BYTES (LANES * (ptrdiff_t)sizeof(stored))

/* A row of the caller: bytes, because it may have any alignment. */
typedef const char *row;

KERNEL vec load_lanes(row r, ptrdiff_t at, ptrdiff_t lanes)
{
    row p = r + at * (ptrdiff_t)sizeof(stored);
    return lanes == LANES ? v_load_stored(p) : v_load_stored_part(p, lanes);
}

/* What load_sorted and load_middle return of all values of a lane: their sum. */
KERNEL vec gathered(vec sum, vec value)
{
    return v_add(sum, value);
}

KERNEL real load_one(row r, ptrdiff_t at)
{
    stored number;
    memcpy(&number, r + at * (ptrdiff_t)sizeof(stored), sizeof number);
    return number_of(number);
}

/* Lanes whose sum is not finite: x - x is then NaN. */
KERNEL mask not_finite(vec sum)
{
    vec zero = v_sub(sum, sum);
    return m_andnot(m_first(LANES), v_equal(zero, zero));
}

static ptrdiff_t list_hard(const rfi_span *span, ptrdiff_t at, mask hard, ptrdiff_t listed)
{
    for (unsigned bits = m_bits(hard); bits; bits &= bits - 1) {
        int lane = __builtin_ctz(bits);
        if (at + lane < span->count) {
            span->hard[listed++] = (int32_t)(at + lane);
        }
    }
    return listed;
}

KERNEL void store_to(void *to, ptrdiff_t at, ptrdiff_t lanes, vec value)
{
    value = v_add(value, v_set(0)); /* no -0, whatever the order of the rows */
    char *out = (char *)to + at * (ptrdiff_t)sizeof(real);
    if (lanes == LANES) {
        v_store(out, value);
    } else {
        v_store_part(out, value, lanes);
    }
}

KERNEL void store_lanes(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, vec value)
{
    store_to(span->out, at, lanes, value);
}

KERNEL ptrdiff_t lanes_at(const rfi_span *span, ptrdiff_t at)
{
    return span->count - at < LANES ? span->count - at : LANES;
}

/* Halving the sum, not the numbers, which could be flushed to zero; a sum that overflows makes the lane hard. */
KERNEL vec midpoint(vec a, vec b)
{
    return v_mul(v_set((real)0.5), v_add(a, b));
}

#include "num/kernels/sort_tmpl.h"
#include "num/kernels/load_sorted_tmpl.h"
#include "num/kernels/sums_tmpl.h"
#include "num/kernels/mix_tmpl.h"
#include "num/kernels/order_tmpl.h"
#include "num/kernels/mest_group_tmpl.h"
#include "num/kernels/mest_powers_tmpl.h"
#include "num/kernels/mest_values_tmpl.h"
#include "num/kernels/mest_trust_tmpl.h"
#include "num/kernels/order_trust_tmpl.h"
#include "num/kernels/order_rules_tmpl.h"
#include "num/kernels/order_weights_tmpl.h"
#include "num/kernels/mest_wait_tmpl.h"
#include "num/kernels/mest_solve_tmpl.h"
#include "num/kernels/gram_tmpl.h"
#include "num/kernels/residual_tmpl.h"

const rfi_kernels KERNELS = {
    .name = ISA,
    .sum = NAME(sum),
    .median = NAME(median),
    .trimmed = NAME(trimmed),
    .meamed = NAME(meamed),
    .median_weighted = NAME(median_weighted),
    .trimmed_weighted = NAME(trimmed_weighted),
    .meamed_weighted = NAME(meamed_weighted),
    .mest = NAME(mest),
    .centre = NAME(centre),
    .gram = GRAM,
#if defined(REAL_IS_FLOAT) && LANES > 1
    .centre_single = NAME(centre_single),
    .gram_single = NAME(gram_single),
    .away = NAME(away),
    .means = NAME(means),
#endif
    .residual = NAME(residual),
};
