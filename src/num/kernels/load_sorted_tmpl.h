/* The sorted column of the group of lanes at `at`, or its two middle places. Part of kernels_tmpl.h.
 *
 * Numbers of 16 bits are sorted as integers, twice as many lanes at a time (sort_16.h): two groups, of which the second waits
 * until it is asked for. */
#ifndef ROWS_STORED
KERNEL vec load_sorted(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, vec *column, ahead *a)
{
    return load_sorted_here(rows, n, at, lanes, column, a);
}

KERNEL vec load_middle(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, vec *column, ahead *a)
{
    return load_middle_here(rows, n, at, lanes, column, a);
}
#else

/* The sum of a column in the order in which load_middle_here adds it up. */
KERNEL vec sum_block(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes)
{
    enum { FIRST = 16 };
    vec sum[2] = {v_set(0), v_set(0)};
    for (ptrdiff_t l = 0; l < n; l++) {
        sum[l >= FIRST] = v_add(sum[l >= FIRST], load_lanes(rows[l], at, lanes));
    }
    return v_add(sum[0], sum[1]);
}

static __attribute__((noinline)) vec sum_of_column(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes)
{
    vec sum = v_set(0);
    for (ptrdiff_t l = 0; l < n; l += BLOCK) {
        sum = v_add(sum, sum_block(rows + l, n - l < BLOCK ? n - l : BLOCK, at, lanes));
    }
    return sum;
}

/* Sorts what is not sorted yet; returns where the group's lanes of the first place are. */
KERNEL const stored *sort_ahead(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, bool all, ahead *a)
{
    if (at < a->sorted_from || at + lanes > a->sorted_to) {
        ptrdiff_t left = a->count - at;
        a->sorted_from = at;
        a->sorted_to = at + (left < SORT_16_LANES ? left : SORT_16_LANES);
        look_ahead(a, n * (ptrdiff_t)sizeof(stored) * (a->sorted_to - at));
        a->large = SORT_16((const void *const *)rows, n, at, a->sorted_to - at, LARGE_BITS, all, a->sorted);
    }
    return a->sorted + (at - a->sorted_from);
}

KERNEL vec load_sorted(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, vec *column, ahead *a)
{
    const stored *from = sort_ahead(rows, n, at, lanes, true, a);
    for (ptrdiff_t l = 0; l < n; l++) {
        column[l] = v_load_stored(from + l * SORT_16_LANES);
    }
    return a->large ? sum_of_column(rows, n, at, lanes) : v_set(0);
}

KERNEL vec load_middle(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, vec *column, ahead *a)
{
    const stored *from = sort_ahead(rows, n, at, lanes, false, a);
    column[(n - 1) / 2] = v_load_stored(from + (n - 1) / 2 * SORT_16_LANES);
    column[n / 2] = v_load_stored(from + n / 2 * SORT_16_LANES);
    return a->large ? sum_of_column(rows, n, at, lanes) : v_set(0);
}
#endif
