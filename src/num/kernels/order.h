/* Rules made of order statistics. Part of template.h. */

KERNEL vec median_of(const vec *column, ptrdiff_t n)
{
    return n % 2 ? column[n / 2] : midpoint(column[n / 2 - 1], column[n / 2]);
}

/* Sorted columns with numbers beyond REAL_LARGE. */
KERNEL mask too_large(vec smallest, vec largest)
{
    return v_less(v_set(REAL_LARGE), v_max(v_abs(smallest), v_abs(largest)));
}

static ptrdiff_t NAME(median)(const rfi_span *span, int kind)
{
    vec *column = span->scratch;
    ahead a = look_ahead_of(span);
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        mask hard = not_finite(load_middle((const row *)span->rows, n, at, lanes, column, &a));
        vec value = median_of(column, n);
        hard = m_or(hard, not_finite(value));
        if (kind != 0) {
            value = column[kind == 1 ? (n - 1) / 2 : n / 2];
        }
        store_lanes(span, at, lanes, value);
        if (span->upper) {
            store_to(span->upper, at, lanes, column[n / 2]);
        }
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
    }
    return listed;
}

/* Sums start from a middle value: differences of neighbouring values are exact or nearly so. */
static ptrdiff_t NAME(trimmed)(const rfi_span *span, ptrdiff_t f)
{
    vec *column = span->scratch;
    ahead a = look_ahead_of(span);
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    vec factor = v_set((real)(1 / (double)(n - 2 * f)));
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        mask hard = not_finite(load_sorted((const row *)span->rows, n, at, lanes, column, &a));
        vec m = column[n / 2];
        vec sum = v_set(0);
        for (ptrdiff_t i = f; i < n - f; i++) {
            sum = v_add(sum, v_sub(column[i], m));
        }
        vec value = v_fma(sum, factor, m);
        value = v_min(v_max(value, column[f]), column[n - 1 - f]);
        hard = m_or(hard, too_large(column[0], column[n - 1]));
        store_lanes(span, at, lanes, value);
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
    }
    return listed;
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

/* Distance of the kept-th value from the median: the narrowest window of the sorted column. */
KERNEL vec window_radius(const vec *column, ptrdiff_t n, ptrdiff_t kept, middle m)
{
    vec radius = v_set(REAL_MAX);
    for (ptrdiff_t i = 0; i + kept <= n; i++) {
        vec below = v_sub(v_set(0), away_from(m, column[i]));
        vec above = away_from(m, column[i + kept - 1]);
        radius = v_min(radius, v_max(below, above));
    }
    return radius;
}

static ptrdiff_t NAME(meamed)(const rfi_span *span, ptrdiff_t kept)
{
    vec *column = span->scratch;
    ahead a = look_ahead_of(span);
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    vec one = v_set(1);
    vec zero = v_set(0);
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        mask hard = not_finite(load_sorted((const row *)span->rows, n, at, lanes, column, &a));
        middle m = middle_of(column, n);
        vec radius = window_radius(column, n, kept, m);
        vec sum = zero;
        vec count = zero;
        vec tie_sum = zero;
        vec ties = zero;
        for (ptrdiff_t i = 0; i < n; i++) {
            vec d = away_from(m, column[i]);
            mask inside = v_less(v_abs(d), radius);
            mask tie = v_equal(v_abs(d), radius);
            sum = v_add(sum, v_select(inside, d, zero));
            count = v_add(count, v_select(inside, one, zero));
            tie_sum = v_add(tie_sum, v_select(tie, d, zero));
            ties = v_add(ties, v_select(tie, one, zero));
        }
        vec total = v_set((real)kept);
        vec part = v_div(v_sub(total, count), v_max(ties, one));
        vec value = v_add(m.upper, v_sub(v_div(v_fma(part, tie_sum, sum), total), m.half));
        /* ties that are kept in part may be no ties in double precision, where the scalar rule measures */
        mask parted = m_andnot(v_less(zero, radius), v_equal(v_add(count, ties), total));
        hard = m_or(hard, m_or(too_large(column[0], column[n - 1]), parted));
        store_lanes(span, at, lanes, value);
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
    }
    return listed;
}
