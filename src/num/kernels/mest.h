/* M-estimates of location around the median, with the MAD as scale. Part of template.h.
 *
 * Notation, per lane: m0 median, s scale, r = c s, u = (x - m0) / r, t = (m - m0) / r;
 *   d = u - t, z = max(1 - d^2, 0);  Tukey: psi = d z^2, b = z^2, psi' = z (1 - 5 d^2) = 5 z^2 - 4 z
 *
 * Tukey's psi is the quintic d - 2 d^3 + d^5 on |d| < 1. As long as the same values are active (|d| < 1), the sum of psi is therefore a
 * polynomial in t whose coefficients are the power sums p_j = sum u^j, j = 0..5: one pass over the column, then Newton's method on that
 * polynomial, at a cost that does not depend on n. Afterwards each lane is checked: same active values at the solution, steps short, slope
 * healthy. Lanes that fail the check are collected and solved value by value (solve_lanes), LANES columns at a time; what fails there is
 * left to the scalar rule. Huber's function has corners and is solved value by value from the start. A lane's way depends on that lane alone. */

/* Groups solved side by side: Newton's method alone is a long chain of operations that wait for each other. */
enum { SIDE_BY_SIDE = 4 };
/* With more rows than this, columns of several groups would not stay in the first-level cache. */
enum { FEW_FOR_SIDES = 64 };

/* A group on its way to the solution. */
typedef struct mest_lanes {
    middle m0;
    vec low, high;  /* least and greatest value */
    vec r, inverse; /* inverse is 0 where the scale is too small: all u are then 0 and t stays 0 */
    vec t;
    mask hard; /* for the scalar rule */
    mask dead; /* no usable scale: the result is the median */
    mask flat; /* lanes that ended where the slope is small: rounding moves the solution there */
    mask open; /* lanes that still move */
} mest_lanes;

/* Keys become distances from the middle: below the median from its lower value, above from its upper one; `half` more is the distance
 * from the median itself. Returns the median distance, without a second sort: both ends are ascending away from the middle, so one
 * half-cleaner selects. With h values on each side the h-th smallest of all is max_i min(below_i, above_{h-1-i}), the next one
 * min_i max(...). */
KERNEL vec measure(void *column, ptrdiff_t n, middle m)
{
    const key *keys = column;
    vec *distance = column;
    ptrdiff_t h = n / 2;
    vec low = v_set(0);
    vec high = v_set(REAL_MAX);
    for (ptrdiff_t i = 0; i < h; i++) {
        vec below = v_sub(m.lower, value_at(keys, h - 1 - i));
        vec above = v_sub(value_at(keys, n - 1 - i), m.upper);
        distance[h - 1 - i] = below;
        distance[n - 1 - i] = above;
        low = v_max_positive(low, v_min_positive(below, above));
        high = v_min_positive(high, v_max_positive(below, above));
    }
    if (n % 2) {
        distance[h] = v_set(0);
        return low;
    }
    return v_add(midpoint(low, high), m.half);
}

/* u of place i of a measured column. */
KERNEL vec scaled_place(const vec *distance, ptrdiff_t n, ptrdiff_t i, const mest_lanes *q)
{
    vec u = v_mul(v_add(distance[i], q->m0.half), q->inverse);
    return i < n / 2 ? v_sub(v_set(0), u) : u;
}

/* Sorts the group at `at` and finds its scale; the column becomes distances from the middle. */
KERNEL mest_lanes start_lanes(const rfi_span *span, const rfi_kernel_mest *est, ptrdiff_t at, ptrdiff_t lanes,
                              void *column, ahead *a)
{
    mest_lanes q;
    ptrdiff_t n = span->n;
    q.hard = not_finite(load_sorted((const row *)span->rows, n, at, lanes, column, a));
    q.m0 = middle_of(column, n);
    q.low = value_at(column, 0);
    q.high = value_at(column, n - 1);
    q.hard = m_and(m_or(q.hard, too_large(q.low, q.high)), m_first(lanes));
    vec s = v_mul(measure(column, n, q.m0), v_set((real)est->mad_factor));
    s = v_max(s, v_set((real)est->floor));
    q.dead = v_less(s, v_set(16 * REAL_MIN));
    q.r = v_mul(s, v_set((real)est->c));
    q.inverse = v_select(q.dead, v_set(0), v_div(v_set(1), q.r));
    q.t = v_set(0);
    q.flat = m_first(0);
    q.open = m_andnot(m_andnot(m_first(lanes), q.dead), q.hard);
    return q;
}

/* ---- power sums ---- */

typedef struct powers {
    vec p[6];       /* sums of a u^j over the active values, j = 0..5 */
    vec inside[2];  /* greatest active |u| below and above the median */
    vec outside[2]; /* least inactive |u| */
} powers;

KERNEL powers no_powers(void)
{
    enum { FAR_OUT = 4 }; /* beyond any t that is accepted */
    vec zero = v_set(0);
    return (powers){{zero, zero, zero, zero, zero, zero}, {zero, zero}, {v_set(FAR_OUT), v_set(FAR_OUT)}};
}

/* -a and b, a value from the lower and one from the upper end: their odd powers nearly cancel, so that the sums stay small and exact. */
KERNEL void add_powers(vec *p, vec a, vec b)
{
    vec aa = v_mul(a, a);
    vec bb = v_mul(b, b);
    vec aaa = v_mul(aa, a);
    vec bbb = v_mul(bb, b);
    p[1] = v_add(p[1], v_sub(b, a));
    p[2] = v_add(p[2], v_add(aa, bb));
    p[3] = v_add(p[3], v_sub(bbb, aaa));
    p[4] = v_fma(bb, bb, v_fma(aa, aa, p[4]));
    p[5] = v_fma(bbb, bb, v_fnma(aaa, aa, p[5]));
}

/* |u| where it is active, else 0; notes the edges of the active values. side: 0 below the median, 1 above. */
KERNEL vec active_part(powers *sums, vec u, mask active, int side)
{
    sums->p[0] = v_add(sums->p[0], v_select(active, v_set(1), v_set(0)));
    sums->outside[side] = v_select(active, sums->outside[side], u);
    u = v_select(active, u, v_set(0));
    sums->inside[side] = v_max(sums->inside[side], u);
    return u;
}

/* Of a measured column with equal weights, from both ends inwards; once all lanes are active no masks are needed. Always the same order
 * of additions, whatever the other lanes do. */
KERNEL powers powers_of_column(const vec *distance, ptrdiff_t n, const mest_lanes *q)
{
    powers sums = no_powers();
    vec inverse = q->inverse;
    vec half = v_mul(q->m0.half, inverse);
    ptrdiff_t pairs = n / 2;
    ptrdiff_t i = 0;
    for (bool inner = false; i < pairs && !inner; i++) {
        vec a = v_fma(distance[i], inverse, half);
        vec b = v_fma(distance[n - 1 - i], inverse, half);
        mask low = v_less(a, v_set(1));
        mask high = v_less(b, v_set(1));
        inner = m_all(m_and(low, high));
        a = active_part(&sums, a, low, 0);
        b = active_part(&sums, b, high, 1);
        add_powers(sums.p, a, b);
    }
    sums.p[0] = v_add(sums.p[0], v_set((real)(n - 2 * i)));
    for (; i < pairs; i++) {
        add_powers(sums.p, v_fma(distance[i], inverse, half), v_fma(distance[n - 1 - i], inverse, half));
    }
    return sums; /* the middle of an odd number is the median: 0 */
}

/* (x - m0) / r of a row. */
KERNEL vec scaled(vec x, const mest_lanes *q)
{
    return v_mul(away_from(q->m0, x), q->inverse);
}

/* Of the rows in their own order, with weights. */
KERNEL powers powers_of_rows(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const mest_lanes *q)
{
    const row *rows = (const row *)span->rows;
    powers sums = no_powers();
    vec zero = v_set(0);
    vec inside = zero;
    vec outside = sums.outside[0];
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec u = scaled(load_lanes(rows[l], at, lanes), q);
        vec size = v_abs(u);
        mask active = v_less(size, v_set(1));
        inside = v_max(inside, v_select(active, size, zero));
        outside = v_min(outside, v_select(active, outside, size));
        u = v_select(active, u, zero);
        vec a = v_select(active, v_set((real)span->weights[l]), zero);
        vec uu = v_mul(u, u);
        vec au = v_mul(a, u);
        vec auu = v_mul(a, uu);
        vec auuu = v_mul(au, uu);
        sums.p[0] = v_add(sums.p[0], a);
        sums.p[1] = v_add(sums.p[1], au);
        sums.p[2] = v_add(sums.p[2], auu);
        sums.p[3] = v_add(sums.p[3], auuu);
        sums.p[4] = v_fma(auu, uu, sums.p[4]);
        sums.p[5] = v_fma(auuu, uu, sums.p[5]);
    }
    for (int side = 0; side < 2; side++) { /* careful: the nearest of both sides stands for both */
        sums.inside[side] = inside;
        sums.outside[side] = outside;
    }
    return sums;
}

/* ---- Newton's method on the polynomial ---- */

/* What decides whether a lane is settled, in units of r. */
typedef struct mest_limits {
    vec last;    /* a step after which the next would be below the tolerance */
    vec longest; /* one scale */
    vec slope;   /* least slope per unit of weight */
} mest_limits;

KERNEL mest_limits limits_of(const rfi_kernel_mest *est)
{
    return (mest_limits){v_set((real)(fmax(est->tol, 0.2 * sqrt(est->tol)) / est->c)),
                         v_set((real)(fmin(1, est->c) / est->c)), v_set((real)(0.06 * est->c))};
}

/* sum psi(u - t) = c0 + c1 t + ... + c5 t^5, sum psi' = minus its derivative, sum b = w0 + ... + w4 t^4. */
typedef struct quintic {
    vec c[6];
    vec w[5];
    vec step, t;
    mask healthy; /* so far */
} quintic;

KERNEL quintic quintic_of(const vec *p)
{
    quintic f;
    f.c[0] = v_add(v_fnma(v_set(2), p[3], p[1]), p[5]);
    f.c[1] = v_fnma(v_set(5), p[4], v_fnma(v_set(-6), p[2], v_sub(v_set(0), p[0])));
    f.c[2] = v_fma(v_set(10), p[3], v_mul(v_set(-6), p[1]));
    f.c[3] = v_fma(v_set(-10), p[2], v_add(p[0], p[0]));
    f.c[4] = v_mul(v_set(5), p[1]);
    f.c[5] = v_sub(v_set(0), p[0]);
    f.w[0] = v_add(v_fnma(v_set(2), p[2], p[0]), p[4]);
    f.w[1] = v_mul(v_set(4), v_sub(p[1], p[3]));
    f.w[2] = v_fma(v_set(6), p[2], v_mul(v_set(-2), p[0]));
    f.w[3] = v_mul(v_set(-4), p[1]);
    f.w[4] = p[0];
    f.t = v_set(0);
    f.step = v_set(0);
    f.healthy = m_first(LANES);
    return f;
}

KERNEL vec polynomial(const vec *c, int degree, vec t)
{
    vec value = c[degree];
    for (int j = degree - 1; j >= 0; j--) {
        value = v_fma(value, t, c[j]);
    }
    return value;
}

/* Whether the guard of src/num/mest.c would let the step be: the slope is more than half the weight. */
KERNEL void check_slope(quintic *f, vec slope, vec weight)
{
    f->healthy = m_and(f->healthy, v_less(v_mul(v_set((real)0.5), weight), slope));
}

/* Rounding moves the solution by some ulp(1) / slope, in units of r = c s: the slope must be large enough for that to vanish beside s. */
KERNEL mask well_conditioned(const quintic *f, vec slope, const mest_limits *limits)
{
    return v_less(v_mul(limits->slope, f->w[4]), slope);
}

KERNEL void newton_step(quintic *f, const vec *falling, bool is_last, const mest_limits *limits)
{
    vec slope = polynomial(falling, 4, f->t);
    if (is_last) {
        check_slope(f, slope, polynomial(f->w, 4, f->t));
        f->healthy = m_and(f->healthy, well_conditioned(f, slope, limits));
    }
    f->step = v_div(polynomial(f->c, 5, f->t), slope);
    f->t = v_add(f->t, f->step);
}

#ifdef REAL_IS_FLOAT
enum { NEWTON_STEPS = 3 };
#else
enum { NEWTON_STEPS = 4 };
#endif

KERNEL void newton(quintic *f, int groups, const mest_limits *limits)
{
    vec falling[SIDE_BY_SIDE][5];
    for (int g = 0; g < groups; g++) {
        for (int j = 0; j < 5; j++) {
            falling[g][j] = v_mul(v_set((real) - (j + 1)), f[g].c[j + 1]);
        }
        check_slope(&f[g], falling[g][0], f[g].w[0]);
        f[g].t = v_div(f[g].c[0], falling[g][0]); /* the first step, from 0 */
    }
    for (int step = 1; step < NEWTON_STEPS; step++) {
        for (int g = 0; g < groups; g++) {
            newton_step(&f[g], falling[g], step == NEWTON_STEPS - 1, limits);
        }
    }
}

/* Lanes whose solution holds: Newton's method was never bent, its last step was so short that the next would be below the tolerance,
 * and the same values are active there. */
KERNEL mask settled(const quintic *f, const powers *sums, const mest_limits *limits)
{
    vec below = v_sub(v_set(1), f->t);
    vec above = v_add(v_set(1), f->t);
    mask short_steps = m_and(v_less(v_abs(f->step), limits->last), v_less(v_abs(f->t), limits->longest));
    mask inside = m_and(v_less(sums->inside[0], below), v_less(sums->inside[1], above));
    mask outside = m_and(v_less(below, sums->outside[0]), v_less(above, sums->outside[1]));
    return m_and(m_and(f->healthy, short_steps), m_and(inside, outside));
}

/* ---- value by value ---- */

typedef struct mest_sums {
    vec psi, slope, weight;
} mest_sums;

KERNEL vec clamp_to(vec d, vec limit)
{
    return v_max(v_min(d, limit), v_sub(v_set(0), limit));
}

/* psi, z and z^2 of one value, with its weight. */
typedef struct tukey_terms {
    vec psi, z, zz;
} tukey_terms;

KERNEL tukey_terms tukey_at(const vec *u, const double *weights, ptrdiff_t i, vec t)
{
    vec d = v_sub(u[i], t);
    vec z = v_max(v_fnma(d, d, v_set(1)), v_set(0));
    vec zz = v_mul(z, z);
    if (weights) {
        vec a = v_set((real)weights[i]);
        z = v_mul(a, z);
        zz = v_mul(a, zz);
    }
    return (tukey_terms){v_mul(d, zz), z, zz};
}
/* Sums at shift t over scaled values u[i]; weights NULL: 1 each. Values are taken from both ends: in a sorted column their psi cancel
 * in pairs, so that the sum stays small and exact, and the two chains run side by side. */
KERNEL mest_sums tukey_sums(const vec *u, const double *weights, ptrdiff_t n, vec t)
{
    vec psi = v_set(0);
    vec z1 = v_set(0);
    vec z2 = v_set(0);
    for (ptrdiff_t i = 0; i < n / 2; i++) {
        tukey_terms a = tukey_at(u, weights, i, t);
        tukey_terms b = tukey_at(u, weights, n - 1 - i, t);
        psi = v_add(psi, v_add(a.psi, b.psi));
        z1 = v_add(z1, v_add(a.z, b.z));
        z2 = v_add(z2, v_add(a.zz, b.zz));
    }
    if (n % 2) {
        tukey_terms a = tukey_at(u, weights, n / 2, t);
        psi = v_add(psi, a.psi);
        z1 = v_add(z1, a.z);
        z2 = v_add(z2, a.zz);
    }
    return (mest_sums){psi, v_fnma(v_set(4), z1, v_mul(v_set(5), z2)), z2};
}

KERNEL mest_sums huber_at(const vec *u, const double *weights, ptrdiff_t i, vec t)
{
    vec one = v_set(1);
    vec d = v_sub(u[i], t);
    vec away = v_max(v_abs(d), one);
    vec a = v_set(weights ? (real)weights[i] : 1);
    return (mest_sums){v_mul(a, clamp_to(d, one)), v_select(v_less(one, away), v_set(0), a), v_div(a, away)};
}

KERNEL mest_sums add_sums(mest_sums a, mest_sums b)
{
    return (mest_sums){v_add(a.psi, b.psi), v_add(a.slope, b.slope), v_add(a.weight, b.weight)};
}

/* From both ends, as above. */
KERNEL mest_sums huber_sums(const vec *u, const double *weights, ptrdiff_t n, vec t)
{
    mest_sums sums = {v_set(0), v_set(0), v_set(0)};
    for (ptrdiff_t i = 0; i < n / 2; i++) {
        mest_sums pair = add_sums(huber_at(u, weights, i, t), huber_at(u, weights, n - 1 - i, t));
        sums = add_sums(sums, pair);
    }
    return n % 2 ? add_sums(sums, huber_at(u, weights, n / 2, t)) : sums;
}

/* Guarded Newton (src/num/mest.c): 6 bold steps of at most one scale, then steps of at most twice the IRLS step. A lane stops when
 * its unguarded Newton distance is below the tolerance. Newton's method is quadratic: where the slope is healthy, a distance below the
 * root of the tolerance (times a margin) before the step is one below the tolerance after it. */
static int solve_lanes(mest_lanes *q, const vec *u, const double *weights, ptrdiff_t n, const rfi_kernel_mest *est,
                       int64_t *iterations)
{
    vec longest = v_set((real)(fmin(1, est->c) / est->c));
    vec tol = v_set((real)(est->tol / est->c));
    bool smooth = est->family == RFI_KERNEL_TUKEY; /* Huber's function has corners: there Newton is not quadratic */
    vec last = v_set((real)((smooth ? fmax(est->tol, 0.2 * sqrt(est->tol)) : est->tol) / est->c));
    vec before = v_set(0);
    int step = 0;
    for (; step < est->max_iter && m_bits(q->open); step++) {
        mest_sums sums =
            est->family == RFI_KERNEL_HUBER ? huber_sums(u, weights, n, q->t) : tukey_sums(u, weights, n, q->t);
        bool bold = step < 6;
        vec least = v_mul(v_set((real)(bold ? 0.3 : 0.5)), sums.weight);
        vec move = v_div(sums.psi, v_max(v_max(sums.slope, least), v_set(REAL_MIN)));
        if (bold) {
            move = v_max(v_min(move, longest), v_sub(v_set(0), longest));
        } else {
            mask back = m_and(v_less(v_mul(move, before), v_set(0)),
                              v_less(v_mul(v_set((real)0.5), v_abs(before)), v_abs(move)));
            move = v_select(back, v_mul(move, v_set((real)0.5)), move);
        }
        before = move;
        *iterations += __builtin_popcount(m_bits(q->open));
        vec next = v_add(q->t, move);
        vec distance = v_abs(sums.psi); /* times slope */
        mask healthy = v_less(v_mul(v_set((real)0.35), sums.weight), sums.slope);
        mask newton =
            v_less(v_mul(v_set((real)0.5), sums.weight), sums.slope); /* the guard does not shorten the step */
        mask near = m_and(v_less(v_set(0), sums.slope), v_less(distance, v_mul(tol, sums.slope)));
        if (bold) { /* later steps may have been halved */
            near = m_or(near, m_and(newton, v_less(distance, v_mul(last, sums.slope))));
        }
        mask done = m_or(near, v_equal(next, q->t));
        mask ends = m_and(q->open, done);
        q->flat = m_or(q->flat, m_andnot(ends, healthy));
        q->t = v_select(q->open, next, q->t);
        q->open = m_andnot(q->open, done);
    }
    return step;
}

/* ---- trust ---- */

/* b of one value at the solution, times its weight. */
KERNEL vec weight_of(const rfi_span *span, int family, vec u, vec t, ptrdiff_t i)
{
    vec d = v_sub(u, t);
    vec a = v_set(span->weights ? (real)span->weights[i] : 1);
    if (family == RFI_KERNEL_HUBER) {
        return v_div(a, v_max(v_abs(d), v_set(1)));
    }
    vec z = v_max(v_fnma(d, d, v_set(1)), v_set(0));
    return v_mul(a, v_mul(z, z));
}

/* Groups whose shares are added lane by lane, until equal addends would begin to round the same way every time. */
enum { TRUST_GROUPS = 16 };

/* Sums per row over such groups, lane by lane. */
typedef struct trust_sums {
    vec *share, *rejected; /* n each */
    int groups;
} trust_sums;

static void clear_trust(const rfi_span *span, trust_sums *sums)
{
    sums->groups = 0;
    for (ptrdiff_t i = 0; i < span->n; i++) {
        sums->share[i] = v_set(0);
        sums->rejected[i] = v_set(0);
    }
}

static void finish_trust(const rfi_span *span, trust_sums *sums, rfi_kernel_report *report)
{
    for (ptrdiff_t i = 0; i < span->n; i++) {
        report->share[i] += v_total(sums->share[i]);
        report->rejected[i] += (int64_t)v_total(sums->rejected[i]);
    }
    clear_trust(span, sums);
}

/* Adds the shares of one group; u holds the rows in their own order, scaled, and is overwritten. */
static void add_trust(const rfi_span *span, int family, vec *u, vec t, mask counted, trust_sums *sums,
                      rfi_kernel_report *report)
{
    vec total = v_set(0);
    vec one = v_select(counted, v_set(1), v_set(0));
    for (ptrdiff_t i = 0; i < span->n; i++) {
        u[i] = weight_of(span, family, u[i], t, i);
        total = v_add(total, u[i]);
    }
    vec factor = v_select(counted, v_div(v_set(1), total), v_set(0));
    for (ptrdiff_t i = 0; i < span->n; i++) {
        sums->share[i] = v_fma(u[i], factor, sums->share[i]);
        sums->rejected[i] = v_add(sums->rejected[i], v_select(v_equal(u[i], v_set(0)), one, v_set(0)));
    }
    if (++sums->groups == TRUST_GROUPS) {
        finish_trust(span, sums, report);
    }
}

/* ---- the kernel ---- */

/* Everything one call works with. */
typedef struct mest_work {
    const rfi_span *span;
    const rfi_kernel_mest *est;
    rfi_kernel_report *report;
    mest_limits limits;
    ahead ahead;
    vec *columns; /* SIDE_BY_SIDE x n */
    vec *waiting; /* n: scaled columns to be solved value by value, one per lane */
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
    w.trust = (trust_sums){scratch + (SIDE_BY_SIDE + 1) * n, scratch + (SIDE_BY_SIDE + 2) * n, 0};
    for (ptrdiff_t i = 0; i < n; i++) {
        w.waiting[i] = v_set(0);
    }
    if (report->share) {
        clear_trust(span, &w.trust);
    }
    return w;
}

/* Far beyond rejection at any t, and far from overflow when squared (Tukey); Huber's function squares nothing. */
KERNEL vec limit_of(const rfi_kernel_mest *est)
{
    return v_set(est->family == RFI_KERNEL_TUKEY ? 1024 : (real)0x1p+100);
}

/* Huber's function never lets go of a value, however far: where one would be clamped the scalar rule decides. */
KERNEL mask out_of_reach(const mest_lanes *q, const rfi_kernel_mest *est)
{
    if (est->family == RFI_KERNEL_TUKEY) {
        return m_first(0);
    }
    vec most = v_max(v_abs(scaled(q->low, q)), v_abs(scaled(q->high, q)));
    return m_andnot(m_first(LANES), v_less(most, limit_of(est)));
}

/* Shares of the lanes `counted` at solution t, from the rows of the group at `at`. */
static void trust_group(mest_work *w, const mest_lanes *q, ptrdiff_t at, mask counted)
{
    const rfi_span *span = w->span;
    vec *u = w->columns; /* the group's column is no longer needed */
    for (ptrdiff_t i = 0; i < span->n; i++) {
        vec x = load_lanes(((const row *)span->rows)[i], at, lanes_at(span, at));
        u[i] = clamp_to(scaled(x, q), limit_of(w->est));
    }
    add_trust(span, w->est->family, u, q->t, counted, &w->trust, w->report);
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

/* The rows of the waiting lanes, in their own order. */
static void trust_waiting(mest_work *w, const mest_lanes *q, mask counted)
{
    const row *rows = (const row *)w->span->rows;
    for (ptrdiff_t i = 0; i < w->span->n; i++) {
        real x[LANES] = {0};
        for (int lane = 0; lane < w->waiting_count; lane++) {
            memcpy(&x[lane], rows[i] + w->coordinate[lane] * (ptrdiff_t)sizeof(real), sizeof(real));
        }
        w->waiting[i] = clamp_to(scaled(v_load(x), q), limit_of(w->est));
    }
    add_trust(w->span, w->est->family, w->waiting, q->t, counted, &w->trust, w->report);
}

static vec solution(const mest_lanes *q)
{
    vec value = v_add(q->m0.upper, v_fma(q->t, q->r, v_sub(v_set(0), q->m0.half)));
    value = v_min(v_max(value, q->low), q->high);
    return v_add(value, v_set(0)); /* no -0 */
}

/* Solves the waiting lanes value by value. Those that do not settle, or settle where it is flat, are listed as hard. */
static __attribute__((noinline)) void solve_waiting(mest_work *w)
{
    mest_lanes q = {.m0 = {v_load(w->lower), v_load(w->upper), v_load(w->half)},
                    .low = v_load(w->low),
                    .high = v_load(w->high),
                    .r = v_load(w->r),
                    .inverse = v_load(w->inverse),
                    .t = v_set(0),
                    .flat = m_first(0),
                    .open = m_first(w->waiting_count)};
    const rfi_span *span = w->span;
    int steps = solve_lanes(&q, w->waiting, span->weights, span->n, w->est, &w->report->iterations);
    w->report->max_iterations = steps > w->report->max_iterations ? steps : w->report->max_iterations;
    mask hard = m_or(q.open, q.flat);
    real value[LANES];
    v_store(value, solution(&q));
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

/* Copies one lane of a group to the waiting ones: the sorted column, or with weights the rows in their own order. */
static void wait_lane(mest_work *w, const mest_lanes *q, const vec *column, ptrdiff_t at, int lane)
{
    const rfi_span *span = w->span;
    int slot = w->waiting_count;
    real limit;
    v_store_part(&limit, limit_of(w->est), 1);
    w->coordinate[slot] = (int32_t)(at + lane);
    w->lower[slot] = lane_of(&q->m0.lower, lane);
    w->upper[slot] = lane_of(&q->m0.upper, lane);
    w->half[slot] = lane_of(&q->m0.half, lane);
    w->r[slot] = lane_of(&q->r, lane);
    w->inverse[slot] = lane_of(&q->inverse, lane);
    w->low[slot] = lane_of(&q->low, lane);
    w->high[slot] = lane_of(&q->high, lane);
    for (ptrdiff_t i = 0; i < span->n; i++) {
        real deviation = lane_of(&column[i], lane) + w->half[slot];
        deviation = i < span->n / 2 ? -deviation : deviation;
        if (span->weights) {
            real x;
            memcpy(&x, ((const row *)span->rows)[i] + (at + lane) * (ptrdiff_t)sizeof(real), sizeof x);
            deviation = (x - w->upper[slot]) + w->half[slot];
        }
        real u = deviation * w->inverse[slot];
        u = u > limit ? limit : (u < -limit ? -limit : u);
        memcpy((char *)&w->waiting[i] + slot * (ptrdiff_t)sizeof(real), &u, sizeof u);
    }
    if (++w->waiting_count == LANES) {
        solve_waiting(w);
    }
}

/* What becomes of the lanes of a group: done, waiting, or hard. */
KERNEL void finish_group(mest_work *w, mest_lanes *q, const vec *column, ptrdiff_t at, ptrdiff_t lanes, mask done)
{
    const rfi_span *span = w->span;
    mask waits = m_andnot(m_andnot(q->open, done), q->hard);
    store_lanes(span, at, lanes, solution(q));
    for (unsigned bits = m_bits(waits); bits; bits &= bits - 1) {
        wait_lane(w, q, column, at, __builtin_ctz(bits));
    }
    mask hard = q->hard;
    if (w->report->share) { /* without a scale the result is the median, and ties share it */
        hard = m_or(hard, m_and(q->dead, m_first(lanes)));
        trust_group(w, q, at, m_andnot(m_andnot(m_first(lanes), hard), waits));
    }
    for (unsigned bits = m_bits(hard); bits; bits &= bits - 1) {
        mark_hard(w, at + __builtin_ctz(bits));
    }
}

/* `lanes` in each group. */
KERNEL void solve_groups(mest_work *w, ptrdiff_t at, int groups, ptrdiff_t lanes)
{
    ptrdiff_t n = w->span->n;
    mest_lanes q[SIDE_BY_SIDE];
    powers sums[SIDE_BY_SIDE];
    quintic f[SIDE_BY_SIDE];
    for (int g = 0; g < groups; g++) {
        ptrdiff_t from = at + g * LANES;
        vec *column = w->columns + g * n;
        q[g] = start_lanes(w->span, w->est, from, lanes, column, &w->ahead);
        sums[g] = w->span->weights ? powers_of_rows(w->span, from, lanes, &q[g]) : powers_of_column(column, n, &q[g]);
        f[g] = quintic_of(sums[g].p);
    }
    newton(f, groups, &w->limits);
    for (int g = 0; g < groups; g++) {
        mask done = settled(&f[g], &sums[g], &w->limits);
        q[g].t = v_select(m_and(done, q[g].open), f[g].t, v_set(0));
        w->report->iterations += NEWTON_STEPS * __builtin_popcount(m_bits(m_and(q[g].open, done)));
        finish_group(w, &q[g], w->columns + g * n, at + g * LANES, lanes, done);
    }
}

/* Without power sums: value by value. */
static void solve_singly(mest_work *w, ptrdiff_t at)
{
    const rfi_span *span = w->span;
    vec *u = w->columns;
    ptrdiff_t lanes = lanes_at(span, at);
    mest_lanes q = start_lanes(span, w->est, at, lanes, u, &w->ahead);
    q.open = m_andnot(q.open, out_of_reach(&q, w->est));
    for (ptrdiff_t i = 0; i < span->n; i++) {
        vec x = load_lanes(((const row *)span->rows)[i], at, lanes);
        u[i] = clamp_to(span->weights ? scaled(x, &q) : scaled_place(u, span->n, i, &q), limit_of(w->est));
    }
    mask moving = q.open;
    int steps = solve_lanes(&q, u, span->weights, span->n, w->est, &w->report->iterations);
    w->report->max_iterations = steps > w->report->max_iterations ? steps : w->report->max_iterations;
    mask done = m_andnot(moving, m_or(q.open, q.flat));
    q.hard = m_or(q.hard, m_andnot(m_andnot(m_first(lanes), q.dead), done));
    finish_group(w, &q, u, at, lanes, done);
}

static ptrdiff_t NAME(mest)(const rfi_span *span, const rfi_kernel_mest *est, rfi_kernel_report *report)
{
    mest_work w = work_of(span, est, report);
    bool smooth = est->family == RFI_KERNEL_TUKEY && est->max_iter >= NEWTON_STEPS;
    ptrdiff_t at = 0;
    for (; !smooth && at < span->count; at += LANES) {
        solve_singly(&w, at);
    }
    for (; span->n <= FEW_FOR_SIDES && at + SIDE_BY_SIDE * LANES <= span->count; at += SIDE_BY_SIDE * LANES) {
        solve_groups(&w, at, SIDE_BY_SIDE, LANES);
    }
    for (; at < span->count; at += LANES) {
        solve_groups(&w, at, 1, lanes_at(span, at));
    }
    if (smooth && report->max_iterations < NEWTON_STEPS) {
        report->max_iterations = NEWTON_STEPS;
    }
    if (w.waiting_count) {
        solve_waiting(&w);
    }
    if (report->share) {
        finish_trust(span, &w.trust, report);
    }
    return list_marks(&w);
}
