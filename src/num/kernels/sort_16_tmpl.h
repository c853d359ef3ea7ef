/* Sorting 16-bit numbers, written once over the few vector operations that it takes (sort_*_16.c). */
#include "num/kernels/kernels.h"
#include "num/kernels/sort_16.h"

typedef uint16_t stored;
#define ROW_BYTES (LANES * (ptrdiff_t)sizeof(stored))
typedef const char *row;

KERNEL vec load_lanes(row r, ptrdiff_t at, ptrdiff_t lanes)
{
    row p = r + at * (ptrdiff_t)sizeof(stored);
    return lanes == LANES ? v_load(p) : v_load_part(p, lanes);
}

/* Of all values of a lane the bits of the greatest magnitude. */
KERNEL vec gathered(vec most, vec value)
{
    return v_greater(most, v_magnitude(value));
}

#include "num/kernels/sort_tmpl.h"

bool SORT_16(const void *const *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, int large, bool all, void *column)
{
    ahead none = {0}; /* who calls looks ahead */
    vec most = all ? load_sorted_here((const row *)rows, n, at, lanes, column, &none)
                   : load_middle_here((const row *)rows, n, at, lanes, column, &none);
    return v_any_from(most, large);
}
