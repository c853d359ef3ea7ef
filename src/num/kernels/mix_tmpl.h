/* Weighted sums of float32 rows that stay in double precision, for mixed rows. Part of kernels_tmpl.h. */

#ifdef REAL_IS_FLOAT
/* `groups` vectors of every row at once. The bits are those of the kernel for float64 on the same numbers. */
KERNEL bool sum_wide_groups(const rfi_span *span, ptrdiff_t at, int groups)
{
    const row *rows = (const row *)span->rows;
    wide sum[2];
    vec low[2];
    vec high[2];
    for (int g = 0; g < groups; g++) {
        sum[g] = w_zero();
        low[g] = v_set(span->with_zero ? 0 : REAL_MAX);
        high[g] = v_set(span->with_zero ? 0 : -REAL_MAX);
    }
    for (ptrdiff_t l = 0; l < span->n; l++) {
        for (int g = 0; g < groups; g++) {
            ptrdiff_t from = at + g * LANES;
            vec x = load_lanes(rows[l], from, groups > 1 ? LANES : lanes_at(span, from));
            sum[g] = w_fma(sum[g], x, span->weights[l]);
            low[g] = v_min(low[g], x);
            high[g] = v_max(high[g], x);
        }
    }
    bool finite = true;
    for (int g = 0; g < groups; g++) {
        finite = finite && !m_bits(not_finite(w_narrow(sum[g], 1)));
        wide value = w_add(w_clamp(sum[g], low[g], high[g]), v_set(0)); /* no -0 */
        w_store((double *)span->out + at + g * LANES, value);
    }
    return finite;
}
#endif

static bool NAME(sum_wide)(const rfi_span *span)
{
#ifdef REAL_IS_FLOAT
    bool finite = true;
    ptrdiff_t at = 0;
    for (; at + 2 * LANES <= span->count; at += 2 * LANES) {
        finite = sum_wide_groups(span, at, 2) && finite;
    }
    for (; at < span->count; at += LANES) {
        finite = sum_wide_groups(span, at, 1) && finite;
    }
    return finite;
#else
    return NAME(sum)(span) == 0;
#endif
}
