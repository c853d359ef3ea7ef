/* The kernel of the M-estimates. Part of kernels_tmpl.h.
 *
 * Tukey's function is solved from power sums (mest_powers_tmpl.h), several groups side by side. Lanes that fail the check there are
 * collected, LANES columns at a time, for a second try and then for solving value by value (mest_values_tmpl.h); what fails there is left to
 * the scalar rule. Where many lanes of a group fail, the group has its second try in place, with the same operations. Huber's function is
 * solved value by value from the start. What is done to a lane depends on that lane alone. */

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

/* Where the lanes of a group stand once its polynomial is solved. */
typedef struct verdict {
    mask done;    /* t is the solution */
    mask counted; /* whose shares follow from it */
    mask rejects; /* if shares are wanted: lanes with inactive values */
    vec weight;   /* likewise: sum b */
} verdict;

KERNEL void store_solution(mest_work *w, const mest_lanes *q, const vec *column, ptrdiff_t at, ptrdiff_t lanes)
{
    store_lanes(w->span, at, lanes, solution(q, column[0], column[w->span->n - 1]));
}

/* The second try of groups in place, for the lanes `again`. */
static __attribute__((noinline)) void redo_groups(mest_work *w, ptrdiff_t at, int groups, ptrdiff_t lanes,
                                                  const mask *again, mest_lanes *q, quintic *f, verdict *v)
{
    ptrdiff_t n = w->span->n;
    vec t[SIDE_BY_SIDE];
    for (int g = 0; g < SIDE_BY_SIDE; g++) {
        t[g] = g < groups ? v_select(again[g], f[g].t, v_set(0)) : v_set(0);
    }
    try_again(w->columns, n, groups, q, &w->limits, t, f);
    for (int g = 0; g < groups; g++) {
        mask done = m_and(settled(&f[g], &w->limits), again[g]);
        q[g].t = v_select(done, f[g].t, q[g].t);
        if (w->report->share) {
            v[g].rejects = m_or(m_andnot(v[g].rejects, done), m_and(f[g].rejects, done));
            v[g].weight = v_select(done, total_weight(&f[g]), v[g].weight);
        }
        v[g].done = m_or(v[g].done, done);
        note_steps(w->report, NEWTON_STEPS + STEPS_AGAIN, m_bits(done));
        store_solution(w, &q[g], w->columns + g * n, at + g * LANES, lanes);
    }
}

/* Lanes without a scale, and hard ones. Returns those whose shares do not follow from the solution. */
static __attribute__((noinline)) mask set_aside(mest_work *w, const mest_lanes *q, const vec *column, ptrdiff_t at,
                                                ptrdiff_t lanes)
{
    mask dead = m_andnot(m_and(q->dead, m_first(lanes)), q->hard);
    if (w->report->share && m_bits(dead) && w->span->weights) { /* ties share by weight */
        mark_lanes(w->untold, at, dead);
    } else if (w->report->share && m_bits(dead)) {
        trust_dead(w, column, at, lanes, dead);
    }
    mark_lanes(w->hard, at, q->hard);
    return m_or(q->hard, dead);
}

/* Groups of which not all lanes are done at the first try. From so many lanes on that are worth a second one, as there are groups, it is
 * made in place, which then costs less than copying them. */
static __attribute__((noinline)) void finish_rest(mest_work *w, ptrdiff_t at, int groups, ptrdiff_t lanes, quintic *f,
                                                  mest_lanes *q, verdict *v)
{
    ptrdiff_t n = w->span->n;
    mask again[SIDE_BY_SIDE];
    uint64_t waits = 0; /* a bit per lane of all groups */
    uint64_t tries = 0;
    for (int g = 0; g < groups; g++) {
        again[g] = m_andnot(m_and(promising(&f[g], &w->limits), q[g].open), v[g].done);
        q[g].t = v_select(again[g], f[g].t, q[g].t);
        tries |= (uint64_t)m_bits(again[g]) << g * LANES;
    }
    if (w->tries_again && __builtin_popcountll(tries) >= groups) {
        redo_groups(w, at, groups, lanes, again, q, f, v);
        tries = 0;
    }
    for (int g = 0; g < groups; g++) {
        waits |= (uint64_t)m_bits(m_andnot(q[g].open, v[g].done)) << g * LANES;
        v[g].counted = v[g].done;
        if (m_bits(m_or(q[g].hard, q[g].dead))) {
            v[g].counted = m_andnot(v[g].done, set_aside(w, &q[g], w->columns + g * n, at + g * LANES, lanes));
        }
    }
    for (; waits; waits &= waits - 1) {
        int place = __builtin_ctzll(waits);
        int g = place / LANES;
        wait_lane(w, &q[g], &f[g], w->columns + g * n, at + g * LANES, place % LANES,
                  w->tries_again && tries >> place & 1);
    }
}

/* Shares of solved groups. */
KERNEL void weigh_groups(const quintic *f, int groups, verdict *v)
{
    for (int g = 0; g < groups; g++) {
        v[g].rejects = f[g].rejects;
        v[g].weight = total_weight(&f[g]);
    }
}

KERNEL void trust_solved(mest_work *w, ptrdiff_t at, int groups, ptrdiff_t lanes, const mest_lanes *q, const verdict *v)
{
    trust_terms terms[SIDE_BY_SIDE];
    for (int g = 0; g < groups; g++) {
        terms[g] = trust_terms_of(&q[g], v[g].weight, v[g].counted, m_bits(m_and(v[g].rejects, v[g].counted)));
    }
    trust_groups(w->span, at, groups, lanes, terms, RFI_KERNEL_TUKEY, &w->trust, w->report);
}

/* Groups from their rows to their scales, and from there to their polynomials. Two functions, not one: what comes after the scales waits
 * long for a division, so it is better begun when all scales are under way. Up to 16 rows stay in registers while they are sorted. */
typedef void (*start_groups)(const rfi_span *span, ptrdiff_t at, int groups, ptrdiff_t lanes, const mest_limits *limits,
                             vec *columns, mest_lanes *q);
typedef void (*group_powers)(const vec *columns, int groups, const mest_limits *limits, const mest_lanes *q,
                             quintic *f);

#define START(n, rest)                                                                                                 \
    static __attribute__((noinline)) void start_##n(const rfi_span *span, ptrdiff_t at, int groups, ptrdiff_t lanes,   \
                                                    const mest_limits *limits, vec *columns, mest_lanes *q)            \
    {                                                                                                                  \
        for (int g = 0; g < groups; g++) {                                                                             \
            key x[n];                                                                                                  \
            vec *column = columns + g * (n);                                                                           \
            vec sum = sorted_##n((const row *)span->rows, at + g * LANES, lanes, x);                                   \
            store_keys(x, n, true, column);                                                                            \
            start_lanes(&q[g], column, n, sum, lanes, limits);                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static __attribute__((noinline)) void powers_##n(const vec *columns, int groups, const mest_limits *limits,        \
                                                     const mest_lanes *q, quintic *f)                                  \
    {                                                                                                                  \
        for (int g = 0; g < groups; g++) {                                                                             \
            const vec *column = columns + g * (n);                                                                     \
            powers sums = (n) >= 4 ? powers_of_short_column(column, n, &q[g]) : powers_of_column(column, n, &q[g]);    \
            quintic_of(&f[g], &sums, limits);                                                                          \
        }                                                                                                              \
    }
FOR_EACH_SHORT(START)
#define STARTER(n, rest) start_##n,
static const start_groups starters[] = {NULL, FOR_EACH_SHORT(STARTER)};
#define POWERS(n, rest) powers_##n,
static const group_powers power_sums[] = {NULL, FOR_EACH_SHORT(POWERS)};
enum { SHORT_COLUMN = sizeof starters / sizeof starters[0] - 1 };

KERNEL void prepare_groups(mest_work *w, ptrdiff_t at, int groups, ptrdiff_t lanes, bool weighted, mest_lanes *q,
                           quintic *f)
{
    const rfi_span *span = w->span;
    const row *rows = (const row *)span->rows;
    ptrdiff_t n = span->n;
    if (!weighted && n <= SHORT_COLUMN) {
        look_ahead(&w->ahead, groups * n * ROW_BYTES);
        starters[n](span, at, groups, lanes, &w->limits, w->columns, q);
        power_sums[n](w->columns, groups, &w->limits, q, f);
        return;
    }
    vec sum[SIDE_BY_SIDE];
    for (int g = 0; g < groups; g++) {
        sum[g] = load_sorted(rows, n, at + g * LANES, lanes, w->columns + g * n, &w->ahead);
    }
    for (int g = 0; g < groups; g++) {
        start_lanes(&q[g], w->columns + g * n, n, sum[g], lanes, &w->limits);
    }
    for (int g = 0; g < groups; g++) {
        const vec *column = w->columns + g * n;
        powers sums =
            weighted ? powers_of_rows(span, at + g * LANES, lanes, &q[g]) : powers_of_column(column, n, &q[g]);
        quintic_of(&f[g], &sums, &w->limits);
    }
}

/* `lanes` in each group. */
KERNEL void solve_groups(mest_work *w, ptrdiff_t at, int groups, ptrdiff_t lanes, bool weighted)
{
    const bool shares = w->report->share;
    mest_lanes q[SIDE_BY_SIDE];
    quintic f[SIDE_BY_SIDE];
    verdict v[SIDE_BY_SIDE];
    uint64_t done = 0; /* a bit per lane of all groups */
    bool all = true;
    prepare_groups(w, at, groups, lanes, weighted, q, f);
    newton(f, groups, &w->limits);
    for (int g = 0; g < groups; g++) {
        v[g].done = m_and(settled(&f[g], &w->limits), q[g].open);
        v[g].counted = v[g].done;
        q[g].t = v_select(v[g].done, f[g].t, v_set(0));
        store_solution(w, &q[g], w->columns + g * w->span->n, at + g * LANES, lanes);
        done |= (uint64_t)m_bits(v[g].done) << g * LANES;
        all = all && m_all(v[g].done);
    }
    note_steps(w->report, NEWTON_STEPS, done);
    if (shares) {
        weigh_groups(f, groups, v);
    }
    if (!all) {
        finish_rest(w, at, groups, lanes, f, q, v);
    }
    if (shares) {
        trust_solved(w, at, groups, lanes, q, v);
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
    mest_lanes q = {.t = v_set(0), .flat = m_first(0)};
    start_lanes(&q, column, n, sum, lanes, &w->limits);
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
    store_solution(w, &q, column, at, lanes);
    mask counted = m_andnot(done, set_aside(w, &q, column, at, lanes));
    if (w->report->share) {
        trust_terms terms = trust_terms_of(&q, weight_at(u, span->weights, n, family, q.t), counted, true);
        trust_groups(span, at, 1, lanes, &terms, family, &w->trust, w->report);
    }
}

static ptrdiff_t NAME(mest)(const rfi_span *span, const rfi_kernel_mest *est, rfi_kernel_report *report)
{
    mest_work w = work_of(span, est, report);
    uint64_t untold[RFI_SPAN_MAX / 64];
    if (span->weights && report->share) {
        memset(untold, 0, sizeof untold);
        w.untold = untold;
    }
    bool smooth = est->family == RFI_KERNEL_TUKEY && est->max_iter >= NEWTON_STEPS;
    for (ptrdiff_t at = 0; !smooth && at < span->count; at += LANES) {
        solve_singly(&w, at);
    }
    if (smooth && span->weights) {
        solve_weighted(&w);
    } else if (smooth) {
        solve_equal(&w);
    }
    if (w.again.count) {
        try_waiting(&w);
    }
    if (w.singly.count) {
        solve_waiting(&w);
    }
    if (report->share) {
        finish_trust(span, &w.trust, report);
    }
    return list_marks(&w);
}
