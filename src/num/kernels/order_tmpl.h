/* Middle values of sorted columns. Part of kernels_tmpl.h. */

KERNEL vec median_of(const vec *column, ptrdiff_t n)
{
    return n % 2 ? column[n / 2] : midpoint(column[n / 2 - 1], column[n / 2]);
}

/* Sorted columns with numbers beyond REAL_LARGE. */
KERNEL mask too_large(vec smallest, vec largest)
{
    return v_less(v_set(REAL_LARGE), v_max(v_abs(smallest), v_abs(largest)));
}

/* The median as the scalar rules have it. Theirs of float32 numbers is a double, and exact: here it is kept as the two middle values,
 * because rounding their midpoint would spoil every deviation from it. */
typedef struct middle {
    vec lower, upper, half; /* median = lower + half = upper - half */
} middle;

KERNEL middle middle_of(const vec *column, ptrdiff_t n)
{
#ifdef REAL_IS_FLOAT
    vec upper = column[n / 2];
    vec lower = n % 2 ? upper : column[n / 2 - 1];
    return (middle){lower, upper, v_mul(v_set((real)0.5), v_sub(upper, lower))};
#else
    vec median = median_of(column, n);
    return (middle){median, median, v_set(0)};
#endif
}

/* x - median. */
KERNEL vec away_from(middle m, vec x)
{
    return v_add(v_sub(x, m.upper), m.half);
}
