/* Rules made of order statistics, rows with unequal weights. Part of kernels_tmpl.h.
 *
 * The trimmed mean and the mean around the median keep values by count and average them by weight. The weighted median is found by bisection
 * among the sorted values: C(v), the weight of all values up to v, is summed in double precision, and every decision is that of the scalar
 * rule; where it might be another, the coordinate is hard. What is hard does not depend on whether a report is wanted. */

#ifdef REAL_IS_FLOAT
#define REAL_SMALL 0x1p-80F /* a spread below it, times a weight, might vanish */
#else
#define REAL_SMALL 0x1p-500
#endif

/* Lanes of a sorted column that are hard for an average. */
KERNEL mask hard_to_average(vec sum, const vec *column, ptrdiff_t n)
{
    vec spread = v_sub(column[n - 1], column[0]);
    mask tiny = m_and(v_less(v_set(0), spread), v_less(spread, v_set(REAL_SMALL)));
    return m_or(not_finite(sum), m_or(tiny, too_large(column[0], column[n - 1])));
}

/* ---- means of what is kept ---- */

/* What is kept: values between two ends (nearest: those whose distance from the middle is below a radius, `high`). One unit each inside, a
 * part of one at the ends. */
typedef struct kept_values {
    rank_ends ends;
    middle m;
    bool nearest;
} kept_values;

KERNEL vec units_of(const kept_values *kept, vec x, vec d)
{
    const rank_ends *e = &kept->ends;
    vec one = v_set(1);
    vec zero = v_set(0);
    if (kept->nearest) {
        vec away = v_abs(d);
        return v_select(v_equal(away, e->high), e->high_part, v_select(v_less(away, e->high), one, zero));
    }
    vec units = v_select(m_and(v_less(e->low, x), v_less(x, e->high)), one, zero);
    units = v_select(v_equal(x, e->high), e->high_part, units);
    return v_select(v_equal(x, e->low), e->low_part, units);
}

/* The mean of a group as a distance from the middle, in units of the half that `middle` has; *mass: the weight that is kept. */
KERNEL vec mean_of_kept(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const kept_values *kept, vec *mass)
{
    const row *rows = (const row *)span->rows;
    wide weight = w_zero();
    wide sum = w_zero();
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        vec d = away_from(kept->m, x);
        vec units = units_of(kept, x, d);
        weight = w_fma(weight, units, span->weights[l]);
        sum = w_fma(sum, v_mul(units, d), span->weights[l]);
    }
    *mass = w_narrow(weight, 1);
    return v_div(w_narrow(sum, 1), *mass);
}

/* The shares of one group: a units / mass. The weights a come in at the end (finish_trust). */
KERNEL void trust_kept(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const kept_values *kept, vec mass,
                       trust_sums *sums, rfi_kernel_report *report)
{
    const row *rows = (const row *)span->rows;
    vec factor = v_div(v_set(1), mass);
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        vec units = units_of(kept, x, away_from(kept->m, x));
        add_units(sums, report, l, at, v_mul(units, factor), kept->ends.counted);
    }
    count_groups(sums, span->n, 1);
}

/* The ranks f .. n - f - 1. Values that tie across one of their ends divide what is left for them; otherwise every part is 1. */
KERNEL rank_ends trimmed_ends(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const vec *column, ptrdiff_t f)
{
    ptrdiff_t n = span->n;
    vec low = column[f];
    vec high = column[n - 1 - f];
    if (f > 0 && m_bits(m_or(v_equal(column[f - 1], low), v_equal(high, column[n - f])))) {
        return rank_ends_of(span, at, lanes, low, high, f, n - f);
    }
    return (rank_ends){low, high, v_set(1), v_set(1), m_first(0)};
}

/* Values around the median, up to the distance of the last that is kept. Lanes in which values at that distance are kept in part are added to
 * *hard: they may be no ties in double precision, where the scalar rule measures. */
KERNEL kept_values nearest_values(const vec *column, ptrdiff_t n, ptrdiff_t count, mask *hard)
{
    vec zero = v_set(0);
    vec one = v_set(1);
    middle m = middle_of(column, n);
    vec radius = window_radius(column, n, count, m);
    vec inside = zero;
    vec ties = zero;
    for (ptrdiff_t i = 0; i < n; i++) {
        vec away = v_abs(away_from(m, column[i]));
        inside = v_add(inside, v_select(v_less(away, radius), one, zero));
        ties = v_add(ties, v_select(v_equal(away, radius), one, zero));
    }
    vec total = v_set((real)count);
    vec part = v_div(v_sub(total, inside), v_max(ties, one));
    *hard = m_or(*hard, m_andnot(v_less(zero, radius), v_equal(v_add(inside, ties), total)));
    return (kept_values){.ends = {.high = radius, .high_part = part}, .m = m, .nearest = true};
}

/* The mean of `count` values around the median, or without `count` at either end, and its report. */
KERNEL ptrdiff_t average_kept(const rfi_span *span, ptrdiff_t count, bool nearest, rfi_kernel_report *report)
{
    vec *column = span->scratch;
    ahead a = look_ahead_of(span);
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    trust_sums sums = {0};
    if (report->share) {
        sums = rank_sums(span);
    }
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        vec all = load_sorted((const row *)span->rows, n, at, lanes, column, &a);
        mask hard = hard_to_average(all, column, n);
        vec mass;
        kept_values kept = nearest ? nearest_values(column, n, count, &hard)
                                   : (kept_values){.ends = trimmed_ends(span, at, lanes, column, count),
                                                   .m = {column[n / 2], column[n / 2], v_set(0)}};
        vec away = mean_of_kept(span, at, lanes, &kept, &mass);
        vec value = v_add(kept.m.upper, v_sub(away, kept.m.half));
        vec low = nearest ? column[0] : kept.ends.low;
        vec high = nearest ? column[n - 1] : kept.ends.high;
        store_lanes(span, at, lanes, v_min(v_max(value, low), high));
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
        if (report->share) {
            kept.ends.counted = m_andnot(m_first(lanes), hard);
            trust_kept(span, at, lanes, &kept, mass, &sums, report);
        }
    }
    if (report->share) {
        finish_trust(span, &sums, report);
    }
    return listed;
}

static ptrdiff_t NAME(trimmed_weighted)(const rfi_span *span, ptrdiff_t f, rfi_kernel_report *report)
{
    return average_kept(span, f, false, report);
}

static ptrdiff_t NAME(meamed_weighted)(const rfi_span *span, ptrdiff_t count, rfi_kernel_report *report)
{
    return average_kept(span, count, true, report);
}

/* ---- the weighted median ---- */

/* Half of the weight, and how far a sum may be from it to count as half; in double precision. */
typedef struct half_mass {
    double low, high; /* C >= low: at least half; C > high: more than half */
    double unsure;    /* sums this close to one of them may have been rounded across it */
} half_mass;

static half_mass half_mass_of(const rfi_span *span, double half_tol)
{
    double mass = 0;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        mass += span->weights[l];
    }
    return (half_mass){0.5 * mass - half_tol * mass, 0.5 * mass + half_tol * mass, (double)span->n * DBL_EPSILON};
}

KERNEL wide w_set(double value)
{
    double lane[LANES];
    for (int i = 0; i < LANES; i++) {
        lane[i] = value;
    }
    return w_load(lane);
}

/* C(v) - limit, per lane. */
KERNEL vec weight_up_to(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, vec v, wide minus_limit)
{
    const row *rows = (const row *)span->rows;
    wide sum = minus_limit;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        sum = w_fma(sum, v_select(v_less(v, x), v_set(0), v_set(1)), span->weights[l]);
    }
    return w_narrow(sum, 1);
}

/* The first value of the sorted column with C >= low. Every step leaves half of the candidates. */
KERNEL vec lower_median(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const half_mass *half, const vec *column,
                        mask *hard)
{
    vec *left = (vec *)span->scratch + span->n;
    wide minus_low = w_set(-half->low);
    ptrdiff_t last = span->n - 1;
    ptrdiff_t size = 1;
    while (size < span->n) {
        size *= 2;
    }
    for (const vec *from = column; size > 1; from = left) { /* behind the last of them they are all the same */
        size /= 2;
        vec above = weight_up_to(span, at, lanes, from[size - 1], minus_low);
        mask below = v_less(above, v_set(0));
        *hard = m_or(*hard, v_less(v_abs(above), v_set((real)half->unsure)));
        for (ptrdiff_t j = 0; j < size; j++) {
            left[j] = v_select(below, from[j + size < last ? j + size : last], from[j]);
        }
        last = size - 1;
    }
    return span->n > 1 ? left[0] : column[0];
}

/* The value next to the lower median, in lanes that the latter leaves with half of the weight and no more; elsewhere the latter. */
KERNEL vec upper_median(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const half_mass *half, vec lower,
                        mask *hard)
{
    const row *rows = (const row *)span->rows;
    wide minus_high = w_set(-half->high);
    vec unsure = v_set((real)half->unsure);
    vec above = weight_up_to(span, at, lanes, lower, minus_high);
    *hard = m_or(*hard, v_less(v_abs(above), unsure));
    mask halved = v_less(above, v_set(0));
    if (!m_bits(halved)) {
        return lower;
    }
    vec next = v_set(REAL_MAX);
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        next = v_select(v_less(lower, x), v_min(next, x), next);
    }
    next = v_select(halved, next, lower);
    above = weight_up_to(span, at, lanes, next, minus_high); /* not above: the weight of `next` is tiny */
    *hard = m_or(*hard, m_andnot(m_first(LANES), v_less(unsure, above)));
    return next;
}

/* Half a unit for each end, which values that tie there divide by their weights. */
KERNEL void trust_middle(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, vec lower, vec upper, mask hard,
                         trust_sums *sums, rfi_kernel_report *report)
{
    const row *rows = (const row *)span->rows;
    vec zero = v_set(0);
    vec one = v_set(1);
    vec half = v_set((real)0.5);
    wide low_mass = w_zero();
    wide high_mass = w_zero();
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        low_mass = w_fma(low_mass, v_select(v_equal(x, lower), one, zero), span->weights[l]);
        high_mass = w_fma(high_mass, v_select(v_equal(x, upper), one, zero), span->weights[l]);
    }
    vec low = v_div(half, w_narrow(low_mass, 1));
    vec high = v_div(half, w_narrow(high_mass, 1));
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        vec units = v_add(v_select(v_equal(x, lower), low, zero), v_select(v_equal(x, upper), high, zero));
        add_units(sums, report, l, at, units, m_andnot(m_first(lanes), hard));
    }
    count_groups(sums, span->n, 1);
}

static ptrdiff_t NAME(median_weighted)(const rfi_span *span, int kind, double half_tol, rfi_kernel_report *report)
{
    vec *column = span->scratch;
    ahead a = look_ahead_of(span);
    half_mass half = half_mass_of(span, half_tol);
    ptrdiff_t listed = 0;
    trust_sums sums = {0};
    if (report->share) {
        sums = rank_sums(span);
    }
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        mask hard = not_finite(load_sorted((const row *)span->rows, span->n, at, lanes, column, &a));
        vec lower = lower_median(span, at, lanes, &half, column, &hard);
        vec upper = kind == 1 ? lower : upper_median(span, at, lanes, &half, lower, &hard);
        lower = kind == 2 ? upper : lower;
        vec value = midpoint(lower, upper);
        hard = m_or(hard, not_finite(value));
        store_lanes(span, at, lanes, v_select(v_equal(lower, upper), lower, value));
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
        if (report->share) {
            trust_middle(span, at, lanes, lower, upper, hard, &sums, report);
        }
    }
    if (report->share) {
        finish_trust(span, &sums, report);
    }
    return listed;
}
