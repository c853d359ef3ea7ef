/* Means and weighted sums. Part of kernels_tmpl.h. */

/* `groups` vectors of every row at once, so that a row is read some cache lines at a time. Sums of float32 in double precision round to
 * a value between the smallest and the largest; those of float64 may miss by some last bits and are put back. */
KERNEL ptrdiff_t sum_groups(const rfi_span *span, ptrdiff_t at, int groups, ahead *a, ptrdiff_t listed)
{
    const row *rows = (const row *)span->rows;
    wide sum[4];
#ifndef REAL_IS_FLOAT
    vec low[4];
    vec high[4];
#endif
    double factor = span->weights ? 1 : 1 / (double)span->n;
    for (int g = 0; g < groups; g++) {
        sum[g] = w_zero();
#ifndef REAL_IS_FLOAT
        low[g] = v_set(span->with_zero ? 0 : REAL_MAX);
        high[g] = v_set(span->with_zero ? 0 : -REAL_MAX);
#endif
    }
    for (ptrdiff_t l = 0; l < span->n; l++) {
        look_ahead(a, groups * ROW_BYTES);
        for (int g = 0; g < groups; g++) {
            ptrdiff_t from = at + g * LANES;
            vec x = load_lanes(rows[l], from, groups > 1 ? LANES : lanes_at(span, from));
            sum[g] = span->weights ? w_fma(sum[g], x, span->weights[l]) : w_add(sum[g], x);
#ifndef REAL_IS_FLOAT
            low[g] = v_min(low[g], x);
            high[g] = v_max(high[g], x);
#endif
        }
    }
    for (int g = 0; g < groups; g++) {
        vec value = w_narrow(sum[g], factor);
        mask hard = not_finite(value);
#ifndef REAL_IS_FLOAT
        value = v_min(v_max(value, low[g]), high[g]);
#endif
        ptrdiff_t from = at + g * LANES;
        store_lanes(span, from, groups > 1 ? LANES : lanes_at(span, from), value);
        if (m_bits(hard)) {
            listed = list_hard(span, from, hard, listed);
        }
    }
    return listed;
}

/* A vector of sums: put back, stored, and its lanes that are not finite listed. */
KERNEL ptrdiff_t store_sum(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, vec value, vec low, vec high,
                           ptrdiff_t listed)
{
    mask hard = not_finite(value);
#ifdef REAL_IS_FLOAT
    (void)low;
    (void)high;
#else
    value = v_min(v_max(value, low), high);
#endif
    store_lanes(span, at, lanes, value);
    return m_bits(hard) ? list_hard(span, at, hard, listed) : listed;
}

/* What sum_groups does, of rows that are not fetched ahead: few of them, or short ones. All that does not change is out of the loop over the rows. */
KERNEL ptrdiff_t sum_near(const rfi_span *span, bool weighted, ptrdiff_t at, int groups, ptrdiff_t listed)
{
    const row *rows = (const row *)span->rows;
    const ptrdiff_t lanes = groups > 1 ? LANES : lanes_at(span, at);
    const double factor = weighted ? 1 : 1 / (double)span->n;
    wide sum[4];
    vec low[4];
    vec high[4];
    UNROLL
    for (int g = 0; g < groups; g++) {
        sum[g] = w_zero();
        low[g] = v_set(span->with_zero ? 0 : REAL_MAX);
        high[g] = v_set(span->with_zero ? 0 : -REAL_MAX);
    }
    for (ptrdiff_t l = 0; l < span->n; l++) {
        UNROLL
        for (int g = 0; g < groups; g++) {
            vec x = load_lanes(rows[l], at + g * LANES, lanes);
            sum[g] = weighted ? w_fma(sum[g], x, span->weights[l]) : w_add(sum[g], x);
            low[g] = v_min(low[g], x);
            high[g] = v_max(high[g], x);
        }
    }
    UNROLL
    for (int g = 0; g < groups; g++) {
        listed = store_sum(span, at + g * LANES, lanes, w_narrow(sum[g], factor), low[g], high[g], listed);
    }
    return listed;
}

KERNEL ptrdiff_t sum_span_near(const rfi_span *span, bool weighted)
{
    ptrdiff_t listed = 0;
    ptrdiff_t at = 0;
    for (; at + 4 * LANES <= span->count; at += 4 * LANES) {
        listed = sum_near(span, weighted, at, 4, listed);
    }
    for (; at < span->count; at += LANES) {
        listed = sum_near(span, weighted, at, 1, listed);
    }
    return listed;
}

/* A function of its own: with the other way in it, compilers spread its work over the registers in ways that cost a fifth of the time. */
static __attribute__((noinline)) ptrdiff_t sum_span_far(const rfi_span *span)
{
    ptrdiff_t listed = 0;
    ptrdiff_t at = 0;
    ahead a = look_ahead_of(span);
    for (; at + 4 * LANES <= span->count; at += 4 * LANES) {
        listed = sum_groups(span, at, 4, &a, listed);
    }
    for (; at < span->count; at += LANES) {
        listed = sum_groups(span, at, 1, &a, listed);
    }
    return listed;
}

static ptrdiff_t NAME(sum)(const rfi_span *span)
{
    if (look_ahead_of(span).window) {
        return sum_span_far(span);
    }
    return span->weights ? sum_span_near(span, true) : sum_span_near(span, false);
}
