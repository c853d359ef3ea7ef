/* The kernel of the M-estimates. Part of kernels_tmpl.h.
 *
 * Tukey's function is solved from power sums (mest_powers_tmpl.h), several groups side by side. Lanes that fail the check there are
 * collected and solved value by value (mest_values_tmpl.h), LANES columns at a time; what fails there is left to the scalar rule. Huber's
 * function is solved value by value from the start. A lane's way depends on that lane alone. */

/* Groups solved side by side. With more rows than this, their columns would not stay in the first-level cache. */
enum { SIDE_BY_SIDE = 4, FEW_FOR_SIDES = 64 };

/* Everything one call works with. */
typedef struct mest_work {
    const rfi_span *span;
    const rfi_kernel_mest *est;
    rfi_kernel_report *report;
    mest_limits limits;
    ahead ahead;
    vec *columns; /* SIDE_BY_SIDE x n */
    vec *waiting; /* n: columns to be solved value by value, one per lane */
    trust_sums trust;
    int waiting_count;
    uint64_t hard[RFI_SPAN_MAX / 64]; /* a bit per coordinate, for the scalar rule */
    int32_t coordinate[LANES];        /* of each waiting lane, and its place and scale: */
    real lower[LANES], upper[LANES], half[LANES], r[LANES], inverse[LANES], low[LANES], high[LANES];
} mest_work;

static mest_work work_of(const rfi_span *span, const rfi_kernel_mest *est, rfi_kernel_report *report)
{
    vec *scratch = span->scratch;
    ptrdiff_t n = span->n;
    mest_work w = {.span = span, .est = est, .report = report, .limits = limits_of(est), .ahead = look_ahead_of(span)};
    w.columns = scratch;
    w.waiting = scratch + SIDE_BY_SIDE * n;
    w.trust.share = scratch + (SIDE_BY_SIDE + 1) * n;
    w.trust.total = (wide *)(void *)(scratch + (SIDE_BY_SIDE + 2) * n);
    memset(w.waiting, 0, (size_t)n * sizeof(vec));
    if (report->share) {
        clear_trust(&w.trust, n);
    }
    return w;
}

/* Far beyond rejection at any t, and far from overflow when squared (Tukey); Huber's function squares nothing. */
KERNEL vec limit_of(const rfi_kernel_mest *est)
{
    return v_set(est->family == RFI_KERNEL_TUKEY ? 1024 : (real)0x1p+100);
}

/* Huber's function never lets go of a value, however far: a heavy one may carry the estimate there, where numbers have no place left for
 * distances of the order of r. The scalar rule decides then. */
KERNEL mask out_of_reach(const mest_lanes *q, vec least, vec greatest, const rfi_span *span, int family)
{
    vec reach = v_set((real)(sizeof(real) == 4 ? 0x1p+10 : 0x1p+30));
    if (family == RFI_KERNEL_TUKEY || !span->weights) {
        return m_first(0);
    }
    vec most = v_max(v_abs(scaled(least, q)), v_abs(scaled(greatest, q)));
    return m_andnot(m_first(LANES), v_less(most, reach));
}

static void mark_hard(mest_work *w, ptrdiff_t coordinate)
{
    w->hard[coordinate / 64] |= (uint64_t)1 << coordinate % 64;
}

/* The marks as a list in ascending order. */
static ptrdiff_t list_marks(const mest_work *w)
{
    ptrdiff_t listed = 0;
    for (int i = 0; i < RFI_SPAN_MAX / 64; i++) {
        for (uint64_t bits = w->hard[i]; bits; bits &= bits - 1) {
            w->span->hard[listed++] = 64 * i + __builtin_ctzll(bits);
        }
    }
    return listed;
}

static void mark_lanes(mest_work *w, ptrdiff_t at, mask hard)
{
    for (unsigned bits = m_bits(hard); bits; bits &= bits - 1) {
        mark_hard(w, at + __builtin_ctz(bits));
    }
}

/* ---- lanes that wait to be solved value by value ---- */

/* The rows of the waiting lanes, in their own order, in place of what they were solved from. */
static void trust_waiting(mest_work *w, const mest_lanes *q, mask counted)
{
    const rfi_span *span = w->span;
    const row *rows = (const row *)span->rows;
    int family = w->est->family;
    vec total = weight_at(w->waiting, span->weights, span->n, family, q->t);
    trust_terms terms = trust_terms_of(q, total, counted, true);
    for (ptrdiff_t i = 0; i < span->n; i++) {
        real x[LANES] = {0};
        for (int lane = 0; lane < w->waiting_count; lane++) {
            memcpy(&x[lane], rows[i] + w->coordinate[lane] * (ptrdiff_t)sizeof(real), sizeof(real));
        }
        w->waiting[i] = v_load(x);
    }
    trust_collected(span, w->waiting, w->coordinate, &terms, family, &w->trust, w->report);
}

/* Solves the waiting lanes value by value. Those that do not settle, or settle where it is flat, are listed as hard. */
static __attribute__((noinline)) void solve_waiting(mest_work *w)
{
    mest_lanes q = {.m0 = {v_load(w->lower), v_load(w->upper), v_load(w->half)},
                    .r = v_load(w->r),
                    .inverse = v_load(w->inverse),
                    .t = v_set(0),
                    .flat = m_first(0),
                    .open = m_first(w->waiting_count)};
    const rfi_span *span = w->span;
    for (ptrdiff_t i = 0; i < span->n; i++) {
        vec u = span->weights ? scaled(w->waiting[i], &q) : scaled_place(w->waiting, span->n, i, &q);
        w->waiting[i] = clamp_to(u, limit_of(w->est));
    }
    int steps = solve_lanes(&q, w->waiting, span->weights, span->n, w->est, &w->report->iterations);
    w->report->max_iterations = steps > w->report->max_iterations ? steps : w->report->max_iterations;
    mask hard = m_or(q.open, q.flat);
    real value[LANES];
    v_store(value, solution(&q, v_load(w->low), v_load(w->high)));
    for (int lane = 0; lane < w->waiting_count; lane++) {
        memcpy((char *)span->out + w->coordinate[lane] * (ptrdiff_t)sizeof(real), &value[lane], sizeof(real));
    }
    if (w->report->share) {
        trust_waiting(w, &q, m_andnot(m_first(w->waiting_count), hard));
    }
    for (unsigned bits = m_bits(hard); bits; bits &= bits - 1) {
        mark_hard(w, w->coordinate[__builtin_ctz(bits)]);
    }
    w->waiting_count = 0;
}

static real lane_of(const vec *a, int lane)
{
    real value;
    memcpy(&value, (const char *)a + lane * (ptrdiff_t)sizeof(real), sizeof value);
    return value;
}

static void set_lane(vec *a, int lane, row value)
{
    memcpy((char *)a + lane * (ptrdiff_t)sizeof(real), value, sizeof(real));
}

/* Copies one lane of a group to the waiting ones: the sorted column, or with weights the rows in their own order. */
static __attribute__((noinline)) void wait_lane(mest_work *w, const mest_lanes *q, const vec *column, ptrdiff_t at,
                                                int lane)
{
    const rfi_span *span = w->span;
    ptrdiff_t n = span->n;
    int slot = w->waiting_count;
    w->coordinate[slot] = (int32_t)(at + lane);
    w->lower[slot] = lane_of(&q->m0.lower, lane);
    w->upper[slot] = lane_of(&q->m0.upper, lane);
    w->half[slot] = lane_of(&q->m0.half, lane);
    w->r[slot] = lane_of(&q->r, lane);
    w->inverse[slot] = lane_of(&q->inverse, lane);
    w->low[slot] = lane_of(&column[0], lane);
    w->high[slot] = lane_of(&column[n - 1], lane);
    for (ptrdiff_t i = 0; i < n && !span->weights; i++) {
        set_lane(&w->waiting[i], slot, (row)&column[i] + lane * (ptrdiff_t)sizeof(real));
    }
    for (ptrdiff_t i = 0; i < n && span->weights; i++) {
        set_lane(&w->waiting[i], slot, ((const row *)span->rows)[i] + (at + lane) * (ptrdiff_t)sizeof(real));
    }
    if (++w->waiting_count == LANES) {
        solve_waiting(w);
    }
}

/* ---- groups ---- */

/* Without a scale the result is the median, and the values that tie with it share it. */
static __attribute__((noinline)) void trust_dead(mest_work *w, const vec *column, ptrdiff_t at, ptrdiff_t lanes,
                                                 mask dead)
{
    ptrdiff_t first = (w->span->n - 1) / 2;
    ptrdiff_t last = w->span->n / 2;
    vec unit = v_set((real)(1 / (double)(last - first + 1)));
    rank_ends ends = rank_ends_of(w->span, at, lanes, column[first], column[last], first, last + 1);
    ends.low_part = v_mul(ends.low_part, unit);
    ends.high_part = v_mul(ends.high_part, unit);
    ends.counted = dead;
    trust_ranks(w->span, at, lanes, &ends, &w->trust, w->report);
}

/* What becomes of the lanes of a group: done, waiting, or hard. Returns those whose shares follow from the solution. */
KERNEL mask finish_group(mest_work *w, const mest_lanes *q, const vec *column, ptrdiff_t at, ptrdiff_t lanes, mask done)
{
    mask hard = q->hard;
    mask waits = m_andnot(m_andnot(q->open, done), hard);
    store_lanes(w->span, at, lanes, solution(q, column[0], column[w->span->n - 1]));
    for (unsigned bits = m_bits(waits); bits; bits &= bits - 1) {
        wait_lane(w, q, column, at, __builtin_ctz(bits));
    }
    mask dead = m_andnot(m_and(q->dead, m_first(lanes)), hard);
    if (w->report->share && m_bits(dead) && w->span->weights) { /* ties share by weight */
        hard = m_or(hard, dead);
    } else if (w->report->share && m_bits(dead)) {
        trust_dead(w, column, at, lanes, dead);
    }
    if (m_bits(hard)) {
        mark_lanes(w, at, hard);
    }
    return m_andnot(m_andnot(m_andnot(m_first(lanes), hard), waits), dead);
}

/* A group from its rows to the polynomial. Up to 16 rows stay in registers on the way (column is written for lanes that will wait). */
typedef void (*prepare)(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const mest_limits *limits, vec *column,
                        mest_lanes *q, quintic *f);

#define PREPARE(n, rest)                                                                                               \
    static                                                                                                             \
        __attribute__((noinline)) void prepare_##n(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes,                \
                                                   const mest_limits *limits, vec *column, mest_lanes *q, quintic *f)  \
    {                                                                                                                  \
        key x[n];                                                                                                      \
        vec sum = sorted_##n((const row *)span->rows, at, lanes, x);                                                   \
        store_keys(x, n, true, column);                                                                                \
        *q = start_lanes(column, n, sum, lanes, limits);                                                               \
        powers sums = (n) >= 4 ? powers_of_short_column(column, n, q) : powers_of_column(column, n, q);                \
        *f = quintic_of(&sums, limits);                                                                                \
    }
FOR_EACH_SHORT(PREPARE)
#define PREPARER(n, rest) prepare_##n,
static const prepare preparers[] = {NULL, FOR_EACH_SHORT(PREPARER)};
enum { SHORT_COLUMN = sizeof preparers / sizeof preparers[0] - 1 };

KERNEL void prepare_group(mest_work *w, ptrdiff_t at, ptrdiff_t lanes, bool weighted, vec *column, mest_lanes *q,
                          quintic *f)
{
    const rfi_span *span = w->span;
    ptrdiff_t n = span->n;
    if (!weighted && n <= SHORT_COLUMN) {
        look_ahead(&w->ahead, n * (ptrdiff_t)sizeof(vec));
        preparers[n](span, at, lanes, &w->limits, column, q, f);
        return;
    }
    vec sum = load_sorted((const row *)span->rows, n, at, lanes, column, &w->ahead);
    *q = start_lanes(column, n, sum, lanes, &w->limits);
    powers sums = weighted ? powers_of_rows(span, at, lanes, q) : powers_of_column(column, n, q);
    *f = quintic_of(&sums, &w->limits);
}

/* `lanes` in each group. */
KERNEL void solve_groups(mest_work *w, ptrdiff_t at, int groups, ptrdiff_t lanes, bool weighted)
{
    ptrdiff_t n = w->span->n;
    mest_lanes q[SIDE_BY_SIDE];
    quintic f[SIDE_BY_SIDE];
    trust_terms terms[SIDE_BY_SIDE];
    for (int g = 0; g < groups; g++) {
        prepare_group(w, at + g * LANES, lanes, weighted, w->columns + g * n, &q[g], &f[g]);
    }
    newton(f, groups, &w->limits);
    for (int g = 0; g < groups; g++) {
        mask done = m_and(settled(&f[g], &w->limits), q[g].open);
        q[g].t = v_select(done, f[g].t, v_set(0));
        w->report->iterations += NEWTON_STEPS * __builtin_popcount(m_bits(done));
        mask counted = finish_group(w, &q[g], w->columns + g * n, at + g * LANES, lanes, done);
        if (w->report->share) {
            bool rejects = m_bits(m_and(f[g].rejects, counted));
            terms[g] = trust_terms_of(&q[g], total_weight(&f[g]), counted, rejects);
        }
    }
    if (w->report->share) {
        trust_groups(w->span, at, groups, lanes, terms, RFI_KERNEL_TUKEY, &w->trust, w->report);
    }
}

/* All groups by power sums. */
KERNEL void solve_span(mest_work *w, bool weighted)
{
    const rfi_span *span = w->span;
    ptrdiff_t at = 0;
    for (; span->n <= FEW_FOR_SIDES && at + SIDE_BY_SIDE * LANES <= span->count; at += SIDE_BY_SIDE * LANES) {
        solve_groups(w, at, SIDE_BY_SIDE, LANES, weighted);
    }
    for (; at + LANES <= span->count; at += LANES) {
        solve_groups(w, at, 1, LANES, weighted);
    }
    if (at < span->count) {
        solve_groups(w, at, 1, span->count - at, weighted);
    }
    if (w->report->iterations > 0 && w->report->max_iterations < NEWTON_STEPS) {
        w->report->max_iterations = NEWTON_STEPS;
    }
}

static __attribute__((noinline)) void solve_equal(mest_work *w)
{
    solve_span(w, false);
}

static __attribute__((noinline)) void solve_weighted(mest_work *w)
{
    solve_span(w, true);
}

/* One group without power sums: value by value. */
static void solve_singly(mest_work *w, ptrdiff_t at)
{
    const rfi_span *span = w->span;
    ptrdiff_t n = span->n;
    int family = w->est->family;
    vec *column = w->columns;
    vec *u = w->columns + n;
    ptrdiff_t lanes = lanes_at(span, at);
    vec sum = load_sorted((const row *)span->rows, n, at, lanes, column, &w->ahead);
    mest_lanes q = start_lanes(column, n, sum, lanes, &w->limits);
    q.open = m_andnot(q.open, out_of_reach(&q, column[0], column[n - 1], span, family));
    for (ptrdiff_t i = 0; i < n; i++) {
        vec x = load_lanes(((const row *)span->rows)[i], at, lanes);
        u[i] = clamp_to(span->weights ? scaled(x, &q) : scaled_place(column, n, i, &q), limit_of(w->est));
    }
    mask moving = q.open;
    int steps = solve_lanes(&q, u, span->weights, n, w->est, &w->report->iterations);
    w->report->max_iterations = steps > w->report->max_iterations ? steps : w->report->max_iterations;
    mask done = m_andnot(moving, m_or(q.open, q.flat));
    q.hard = m_or(q.hard, m_andnot(m_andnot(m_first(lanes), q.dead), done));
    mask counted = finish_group(w, &q, column, at, lanes, done);
    if (w->report->share) {
        trust_terms terms = trust_terms_of(&q, weight_at(u, span->weights, n, family, q.t), counted, true);
        trust_groups(span, at, 1, lanes, &terms, family, &w->trust, w->report);
    }
}

static ptrdiff_t NAME(mest)(const rfi_span *span, const rfi_kernel_mest *est, rfi_kernel_report *report)
{
    mest_work w = work_of(span, est, report);
    bool smooth = est->family == RFI_KERNEL_TUKEY && est->max_iter >= NEWTON_STEPS;
    for (ptrdiff_t at = 0; !smooth && at < span->count; at += LANES) {
        solve_singly(&w, at);
    }
    if (smooth && span->weights) {
        solve_weighted(&w);
    } else if (smooth) {
        solve_equal(&w);
    }
    if (w.waiting_count) {
        solve_waiting(&w);
    }
    if (report->share) {
        finish_trust(span, &w.trust, report);
    }
    return list_marks(&w);
}
