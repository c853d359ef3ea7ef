/* Means of many rows each, for float32 rows: what nearest-neighbour mixing makes. Part of kernels_tmpl.h.
 *
 * Most rows are part of most means. Their sum is made once, in double precision; a mean takes away those it does not have and adds the
 * few that others do not have. With K rows, n of them in the sum, at most 2 K additions of numbers up to K X follow one another, X being the
 * largest of those n: an error below 4 K X 2^-53 in a mean of at least K/2 rows. Where that might be more than 2^-26 of the mean, because
 * something large was taken away or the mean is next to 0, the lane is summed up anew, row by row. */

#if defined(REAL_IS_FLOAT) && LANES > 1
/* As many vectors of every row at once. */
enum { MEAN_GROUPS = 2 };

/* Widens `groups` vectors of every row into double numbers (groups x LANES each); their sum over the core, and its largest values. */
KERNEL void widen_rows(const rfi_means *m, ptrdiff_t at, int groups, double *wide_rows, wide *total, vec *largest)
{
    const row *rows = (const row *)m->rows;
    UNROLL
    for (int g = 0; g < groups; g++) {
        total[g] = w_zero();
        largest[g] = v_set(0);
    }
    for (ptrdiff_t l = 0; l < m->n; l++) {
        row r = rows[l];
        UNROLL
        for (int g = 0; g < groups; g++) {
            ptrdiff_t from = at + g * LANES;
            vec x = load_lanes(r, from, m->count - from < LANES ? m->count - from : LANES);
            w_store(wide_rows + (l * groups + g) * LANES, w_add(w_zero(), x));
            if (m->core[l]) {
                total[g] = w_add(total[g], x);
                largest[g] = v_max(largest[g], v_abs(x));
            }
            v_prefetch(r + (from + m->count) * (ptrdiff_t)sizeof(real));
        }
    }
}

/* The mean in full, from the numbers of one vector per row. */
KERNEL vec full_mean(const rfi_means *m, const rfi_mean *mean, const double *wide_rows, ptrdiff_t stride)
{
    wide minus = w_zero();
    for (ptrdiff_t l = 0; l < m->n; l++) {
        if (mean->part[l] > 0) {
            minus = w_sub(minus, w_load(wide_rows + l * stride));
        }
    }
    return w_narrow(minus, -mean->factor);
}

/* `groups` vectors of all means; false if one is not finite. */
KERNEL bool means_of_groups(const rfi_means *m, ptrdiff_t at, int groups)
{
    double *wide_rows = m->scratch;
    const ptrdiff_t stride = groups * LANES;
    const vec limit = v_set((real)(0x1p+25 / (double)m->n));
    wide total[MEAN_GROUPS];
    vec largest[MEAN_GROUPS];
    vec void_sum = v_set(0);
    widen_rows(m, at, groups, wide_rows, total, largest);
    for (const rfi_mean *mean = m->mean; mean < m->mean + m->means; mean++) {
        wide sum[MEAN_GROUPS];
        UNROLL
        for (int g = 0; g < groups; g++) {
            sum[g] = total[g];
        }
        const uint16_t *change = mean->change;
        for (int i = 0; i < mean->taken; i++) {
            UNROLL
            for (int g = 0; g < groups; g++) {
                sum[g] = w_sub(sum[g], w_load(wide_rows + change[i] * stride + g * LANES));
            }
        }
        for (int i = mean->taken; i < mean->taken + mean->added; i++) {
            UNROLL
            for (int g = 0; g < groups; g++) {
                sum[g] = w_sub(sum[g], w_sub(w_zero(), w_load(wide_rows + change[i] * stride + g * LANES)));
            }
        }
        vec value[MEAN_GROUPS];
        mask vague[MEAN_GROUPS];
        UNROLL
        for (int g = 0; g < groups; g++) {
            value[g] = w_narrow(sum[g], mean->factor);
            vague[g] = v_less(v_mul(v_abs(value[g]), limit), largest[g]);
        }
        if (m_bits(m_or(vague[0], vague[groups - 1]))) {
            for (int g = 0; g < groups; g++) {
                vec full = full_mean(m, mean, wide_rows + g * LANES, stride);
                value[g] = v_select(vague[g], full, value[g]);
            }
        }
        real *out = (real *)m->out + mean->place * m->stride + at;
        UNROLL
        for (int g = 0; g < groups; g++) {
            void_sum = v_add(void_sum, v_sub(value[g], value[g]));
            v_store(out + g * LANES, v_add(value[g], v_set(0))); /* no -0 */
        }
    }
    return !m_bits(not_finite(void_sum));
}

static bool NAME(means)(const rfi_means *m)
{
    bool finite = true;
    ptrdiff_t at = 0;
    for (; at + MEAN_GROUPS * LANES <= m->count; at += MEAN_GROUPS * LANES) {
        finite = means_of_groups(m, at, MEAN_GROUPS) && finite;
    }
    for (; at < m->count; at += LANES) {
        finite = means_of_groups(m, at, 1) && finite;
    }
    return finite;
}
#endif
