/* What a call of the M-estimates works with, and lanes that wait: those that failed the check, collected from different groups until a
 * vector of them can be solved at once. Part of kernels_tmpl.h. */

/* Groups solved side by side. With more rows than this, their columns would not stay in the first-level cache. */
enum { SIDE_BY_SIDE = sizeof(vec) > 32 ? 4 : 8, FEW_FOR_SIDES = 64 };
/* Lanes of different groups that failed the check, collected. */
typedef struct waiting {
    vec *column; /* n: values, one column per lane */
    int count;
    int32_t coordinate[LANES]; /* of each lane, and its place and scale: */
    real lower[LANES], upper[LANES], half[LANES], r[LANES], inverse[LANES], low[LANES], high[LANES];
    real t[LANES];               /* to try again from, */
    real c[6][LANES], p2[LANES]; /* with the polynomial of the first try */
} waiting;

/* Everything one call works with. */
typedef struct mest_work {
    const rfi_span *span;
    const rfi_kernel_mest *est;
    rfi_kernel_report *report;
    mest_limits limits;
    ahead ahead;
    vec *columns;     /* SIDE_BY_SIDE x n */
    waiting again;    /* for a second try */
    waiting singly;   /* for solving value by value */
    bool tries_again; /* whether there is one */
    trust_sums trust;
    uint64_t hard[RFI_SPAN_MAX / 64]; /* a bit per coordinate, for the scalar rule */
    uint64_t *untold; /* likewise, for its report alone: the result is there; with weights and a report */
} mest_work;

static mest_work work_of(const rfi_span *span, const rfi_kernel_mest *est, rfi_kernel_report *report)
{
    vec *scratch = span->scratch;
    ptrdiff_t n = span->n;
    mest_work w = {.span = span, .est = est, .report = report, .limits = limits_of(est), .ahead = look_ahead_of(span)};
    w.columns = scratch;
    w.again.column = scratch + SIDE_BY_SIDE * n;
    w.singly.column = scratch + (SIDE_BY_SIDE + 1) * n;
    w.trust.total = (wide *)(void *)(scratch + (SIDE_BY_SIDE + 2) * n);
    w.trust.share = (vec *)(void *)(w.trust.total + n);
    w.tries_again = !span->weights && est->max_iter >= NEWTON_STEPS + STEPS_AGAIN;
    memset(w.again.column, 0, (size_t)n * 2 * sizeof(vec));
    memset(w.again.c, 0, sizeof w.again.c);
    memset(w.again.p2, 0, sizeof w.again.p2);
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

static void mark(uint64_t *marks, ptrdiff_t coordinate)
{
    marks[coordinate / 64] |= (uint64_t)1 << coordinate % 64;
}

/* The marks as a list in ascending order. */
static ptrdiff_t list_marks(const mest_work *w)
{
    ptrdiff_t listed = 0;
    for (int i = 0; i < RFI_SPAN_MAX / 64; i++) {
        uint64_t untold = w->untold ? w->untold[i] : 0;
        for (uint64_t bits = w->hard[i] | untold; bits; bits &= bits - 1) {
            int32_t coordinate = 64 * i + __builtin_ctzll(bits);
            w->span->hard[listed++] = bits & -bits & untold ? ~coordinate : coordinate;
        }
    }
    return listed;
}

static void mark_lanes(uint64_t *marks, ptrdiff_t at, mask lanes)
{
    for (unsigned bits = m_bits(lanes); bits; bits &= bits - 1) {
        mark(marks, at + __builtin_ctz(bits));
    }
}

static void note_steps(rfi_kernel_report *report, int steps, uint64_t lanes)
{
    report->iterations += (int64_t)steps * __builtin_popcountll(lanes);
    report->max_iterations = lanes && steps > report->max_iterations ? steps : report->max_iterations;
}

static mest_lanes lanes_of(const waiting *some)
{
    return (mest_lanes){.m0 = {v_load(some->lower), v_load(some->upper), v_load(some->half)},
                        .r = v_load(some->r),
                        .inverse = v_load(some->inverse),
                        .hard = m_first(0),
                        .dead = m_first(0),
                        .open = m_first(some->count),
                        .t = v_set(0),
                        .flat = m_first(0)};
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

/* A place for one lane of a group or of other waiting lanes, without its values. */
static int take_place(waiting *to, const mest_lanes *q, int lane, int32_t coordinate, real low, real high)
{
    int slot = to->count++;
    to->coordinate[slot] = coordinate;
    to->lower[slot] = lane_of(&q->m0.lower, lane);
    to->upper[slot] = lane_of(&q->m0.upper, lane);
    to->half[slot] = lane_of(&q->m0.half, lane);
    to->r[slot] = lane_of(&q->r, lane);
    to->inverse[slot] = lane_of(&q->inverse, lane);
    to->t[slot] = lane_of(&q->t, lane);
    to->low[slot] = low;
    to->high[slot] = high;
    return slot;
}

static void copy_lane(const vec *column, ptrdiff_t n, int lane, waiting *to, int slot)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        set_lane(&to->column[i], slot, (row)&column[i] + lane * (ptrdiff_t)sizeof(real));
    }
}

/* Results of the lanes in `done`. */
static void store_waiting(const mest_work *w, const waiting *some, const mest_lanes *q, mask done)
{
    real value[LANES];
    v_store(value, solution(q, v_load(some->low), v_load(some->high)));
    for (unsigned bits = m_bits(done); bits; bits &= bits - 1) {
        int lane = __builtin_ctz(bits);
        memcpy((char *)w->span->out + some->coordinate[lane] * (ptrdiff_t)sizeof(real), &value[lane], sizeof(real));
    }
}

/* Shares of waiting lanes, from their rows, which take the place of what they were solved from. */
static void trust_waiting(mest_work *w, waiting *some, const mest_lanes *q, vec total, mask counted)
{
    const rfi_span *span = w->span;
    const row *rows = (const row *)span->rows;
    trust_terms terms = trust_terms_of(q, total, counted, true);
    for (ptrdiff_t i = 0; i < span->n; i++) {
        real x[LANES] = {0};
        for (int lane = 0; lane < some->count; lane++) {
            x[lane] = load_one(rows[i], some->coordinate[lane]);
        }
        some->column[i] = v_load(x);
    }
    trust_collected(span, some->column, some->coordinate, &terms, w->est->family, &w->trust, w->report);
}

/* Lanes value by value. Those that do not settle, or settle where it is flat, are listed as hard. */
static __attribute__((noinline)) void solve_waiting(mest_work *w)
{
    const rfi_span *span = w->span;
    waiting *some = &w->singly;
    mest_lanes q = lanes_of(some);
    for (ptrdiff_t i = 0; i < span->n; i++) {
        vec u = span->weights ? scaled(some->column[i], &q) : scaled_place(some->column, span->n, i, &q);
        some->column[i] = clamp_to(u, limit_of(w->est));
    }
    int steps = solve_lanes(&q, some->column, span->weights, span->n, w->est, &w->report->iterations);
    w->report->max_iterations = steps > w->report->max_iterations ? steps : w->report->max_iterations;
    mask hard = m_or(q.open, q.flat);
    mask done = m_andnot(m_first(some->count), hard);
    store_waiting(w, some, &q, done);
    if (w->report->share) {
        vec total = weight_at(some->column, span->weights, span->n, w->est->family, q.t);
        trust_waiting(w, some, &q, total, done);
    }
    for (unsigned bits = m_bits(hard); bits; bits &= bits - 1) {
        mark(w->hard, some->coordinate[__builtin_ctz(bits)]);
    }
    some->count = 0;
}

/* The second try; lanes that fail again go on to be solved value by value. */
static __attribute__((noinline)) void try_waiting(mest_work *w)
{
    waiting *some = &w->again;
    ptrdiff_t n = w->span->n;
    mest_lanes q = lanes_of(some);
    vec t = v_select(q.open, v_load(some->t), v_set(0));
    quintic f = {.p2 = v_load(some->p2)};
    for (int j = 0; j < 6; j++) {
        f.c[j] = v_load(some->c[j]);
    }
    try_again(some->column, n, 1, &q, &w->limits, &t, &f);
    mask done = m_and(settled(&f, &w->limits), q.open);
    q.t = v_select(done, f.t, v_set(0));
    note_steps(w->report, NEWTON_STEPS + STEPS_AGAIN, m_bits(done));
    store_waiting(w, some, &q, done);
    for (unsigned bits = m_bits(m_andnot(q.open, done)); bits; bits &= bits - 1) {
        int lane = __builtin_ctz(bits);
        int slot = take_place(&w->singly, &q, lane, some->coordinate[lane], some->low[lane], some->high[lane]);
        copy_lane(some->column, n, lane, &w->singly, slot);
        if (w->singly.count == LANES) {
            solve_waiting(w);
        }
    }
    if (w->report->share) {
        trust_waiting(w, some, &q, total_weight(&f), done);
    }
    some->count = 0;
}

/* One lane of a group begins to wait: with its sorted column, or with weights the rows in their own order. */
static __attribute__((noinline)) void wait_lane(mest_work *w, const mest_lanes *q, const quintic *f, const vec *column,
                                                ptrdiff_t at, int lane, bool again)
{
    const rfi_span *span = w->span;
    ptrdiff_t n = span->n;
    waiting *to = again ? &w->again : &w->singly;
    int slot = take_place(to, q, lane, (int32_t)(at + lane), lane_of(&column[0], lane), lane_of(&column[n - 1], lane));
    to->p2[slot] = lane_of(&f->p2, lane);
    for (int j = 0; j < 6; j++) {
        to->c[j][slot] = lane_of(&f->c[j], lane);
    }
    if (!span->weights) {
        copy_lane(column, n, lane, to, slot);
    }
    for (ptrdiff_t i = 0; i < n && span->weights; i++) {
        real x = load_one(((const row *)span->rows)[i], at + lane);
        set_lane(&to->column[i], slot, (row)&x);
    }
    if (to->count == LANES && again) {
        try_waiting(w);
    } else if (to->count == LANES) {
        solve_waiting(w);
    }
}
