/* Rules made of order statistics. Part of kernels_tmpl.h. */

static ptrdiff_t NAME(median)(const rfi_span *span, int kind, rfi_kernel_report *report)
{
    vec *column = span->scratch;
    ahead a = look_ahead_of(span);
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    ptrdiff_t first = kind == 2 ? n / 2 : (n - 1) / 2; /* the ranks that make the result */
    ptrdiff_t last = kind == 1 ? (n - 1) / 2 : n / 2;
    rank_trust trust = rank_trust_of(span, report, first, last + 1);
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        mask hard = not_finite(load_middle((const row *)span->rows, n, at, lanes, column, &a));
        vec value = median_of(column, n);
        hard = m_or(hard, not_finite(value));
        if (kind != 0) {
            value = column[kind == 1 ? (n - 1) / 2 : n / 2];
        }
        store_lanes(span, at, lanes, value);
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
        if (report->share) {
            trust_order(span, at, lanes, column[first], column[last], hard, &trust, report);
        }
    }
    if (report->share) {
        finish_order(span, &trust, report);
    }
    return listed;
}

/* Sums start from a middle value: differences of neighbouring values are exact or nearly so. */
static ptrdiff_t NAME(trimmed)(const rfi_span *span, ptrdiff_t f, rfi_kernel_report *report)
{
    vec *column = span->scratch;
    ahead a = look_ahead_of(span);
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    vec factor = v_set((real)(1 / (double)(n - 2 * f)));
    rank_trust trust = rank_trust_of(span, report, f, n - f);
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
        if (report->share) {
            trust_order(span, at, lanes, column[f], column[n - 1 - f], hard, &trust, report);
        }
    }
    if (report->share) {
        finish_order(span, &trust, report);
    }
    return listed;
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

/* A row's share around the median: one unit within the radius, a part of one at it. */
KERNEL void trust_nearest(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, middle m, vec radius, vec part,
                          mask hard, trust_sums *sums, rfi_kernel_report *report)
{
    const row *rows = (const row *)span->rows;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec away = v_abs(away_from(m, load_lanes(rows[l], at, lanes)));
        vec units = v_select(v_less(away, radius), v_set(1), v_set(0));
        units = v_select(v_equal(away, radius), part, units);
        add_units(sums, report, l, at, units, m_andnot(m_first(lanes), hard));
    }
    count_groups(sums, span->n, 1);
}

static ptrdiff_t NAME(meamed)(const rfi_span *span, ptrdiff_t kept, rfi_kernel_report *report)
{
    vec *column = span->scratch;
    ahead a = look_ahead_of(span);
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    vec one = v_set(1);
    vec zero = v_set(0);
    trust_sums sums = {0};
    if (report->share) {
        sums = rank_sums(span);
    }
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
        if (report->share) {
            trust_nearest(span, at, lanes, m, radius, part, hard, &sums, report);
        }
    }
    if (report->share) {
        finish_units(span, &sums, report, 1 / (double)kept);
    }
    return listed;
}
