/* Shares of the rows in a mean of order statistics, equal weights, added up over the coordinates of a span. Part of kernels_tmpl.h.
 *
 * The ranks first .. last - 1 of a column count, one unit each. Values that tie at the first or the last of them divide the ranks that are left
 * for them, as the scalar rules have it. */

typedef struct rank_ends {
    vec low, high;           /* the values at the first and the last rank */
    vec low_part, high_part; /* units of a value that equals them */
    mask counted;            /* lanes that are not hard */
} rank_ends;

/* Room for the sums: behind the columns that the rules of order statistics use. */
static trust_sums rank_sums(const rfi_span *span)
{
    vec *scratch = span->scratch;
    trust_sums sums = {.share = scratch + 5 * span->n, .total = (wide *)(void *)(scratch + 6 * span->n)};
    clear_trust(&sums, span->n);
    return sums;
}

/* Ranks of first .. last - 1 among so many values that are smaller, over those that tie. */
KERNEL vec tied_part(vec smaller, vec ties, ptrdiff_t first, ptrdiff_t last)
{
    vec from = v_max(smaller, v_set((real)first));
    vec to = v_min(v_add(smaller, ties), v_set((real)last));
    return v_div(v_sub(to, from), v_max(ties, v_set(1)));
}

KERNEL rank_ends rank_ends_of(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, vec low, vec high, ptrdiff_t first,
                              ptrdiff_t last)
{
    const row *rows = (const row *)span->rows;
    vec zero = v_set(0);
    vec one = v_set(1);
    vec under_low = zero;
    vec at_low = zero;
    vec under_high = zero;
    vec at_high = zero;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        under_low = v_add(under_low, v_select(v_less(x, low), one, zero));
        at_low = v_add(at_low, v_select(v_equal(x, low), one, zero));
        under_high = v_add(under_high, v_select(v_less(x, high), one, zero));
        at_high = v_add(at_high, v_select(v_equal(x, high), one, zero));
    }
    return (rank_ends){low, high, tied_part(under_low, at_low, first, last),
                       tied_part(under_high, at_high, first, last), m_first(0)};
}

/* Adds the units of one row's lanes to its sum, and notes those without any. */
KERNEL void add_units(trust_sums *sums, rfi_kernel_report *report, ptrdiff_t l, ptrdiff_t at, vec units, mask counted)
{
    units = v_select(counted, units, v_set(0));
    sums->share[l] = v_add(sums->share[l], units);
    note_none(report, l, at, m_bits(m_andnot(counted, v_less(v_set(0), units))));
}

KERNEL void trust_ranks(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const rank_ends *e, trust_sums *sums,
                        rfi_kernel_report *report)
{
    const row *rows = (const row *)span->rows;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        mask inside = m_and(v_less(e->low, x), v_less(x, e->high));
        vec units = v_select(inside, v_set(1), v_set(0));
        units = v_select(v_equal(x, e->high), e->high_part, units);
        units = v_select(v_equal(x, e->low), e->low_part, units);
        add_units(sums, report, l, at, units, e->counted);
    }
    count_groups(sums, span->n, 1);
}

/* What a unit is worth ends the sums. */
static void finish_units(const rfi_span *span, trust_sums *sums, rfi_kernel_report *report, double unit)
{
    count_groups(sums, span->n, TRUST_GROUPS);
    for (ptrdiff_t l = 0; l < span->n; l++) {
        report->share[l] += unit * sum_of_lanes(sums, l);
    }
}

/* The trust of one group of the median or the trimmed mean. */
KERNEL void trust_order(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, vec low, vec high, ptrdiff_t first,
                        ptrdiff_t last, mask hard, trust_sums *sums, rfi_kernel_report *report)
{
    rank_ends ends = rank_ends_of(span, at, lanes, low, high, first, last);
    ends.counted = m_andnot(m_first(lanes), hard);
    trust_ranks(span, at, lanes, &ends, sums, report);
}
