/* Tukey's M-estimate from power sums. Part of kernels_tmpl.h; notation in mest_group_tmpl.h.
 *
 * Tukey's psi is the quintic d - 2 d^3 + d^5 on |d| < 1. As long as the same values are active (|d| < 1), the sum of psi is therefore a
 * polynomial in t whose coefficients are the power sums p_j = sum u^j, j = 0..5: one pass over the column, then Newton's method on that
 * polynomial, at a cost that does not depend on n. Afterwards each lane is checked: same active values at the solution, steps short, slope
 * healthy. Lanes that fail it because other values are active at the solution, or because it is still far, are tried again from there with
 * the values that are active now. Those that fail otherwise, or twice, are solved value by value (mest_values_tmpl.h). */

typedef struct powers {
    vec p[6];       /* sums of a u^j over the active values, j = 0..5 */
    vec products;   /* sum of (a b)^2 over pairs: what p[4] still has too much of, halved */
    vec inside[2];  /* greatest active |u| below and above the median */
    vec outside[2]; /* least inactive |u| */
    mask rejects;   /* lanes with inactive values */
} powers;

KERNEL powers no_powers(void)
{
    enum { FAR_OUT = 4 }; /* beyond any t that is accepted */
    vec zero = v_set(0);
    return (powers){
        {zero, zero, zero, zero, zero, zero}, zero, {zero, zero}, {v_set(FAR_OUT), v_set(FAR_OUT)}, m_first(0)};
}

/* -a and b, a value from the lower and one from the upper end: their odd powers nearly cancel, so that the sums stay small and exact. With
 * e = b - a, f = a b and g = a^2 + b^2 = e^2 + 2 f:  b^3 - a^3 = e (g + f),  a^4 + b^4 = g^2 - 2 f^2,  b^5 - a^5 = e (g (g + f) - f^2). */
KERNEL void add_powers(powers *sums, vec a, vec b)
{
    vec *p = sums->p;
    vec e = v_sub(b, a);
    vec f = v_mul(a, b);
    vec g = v_fma(e, e, v_add(f, f));
    vec h = v_add(g, f);
    vec ff = v_mul(f, f);
    p[1] = v_add(p[1], e);
    p[2] = v_add(p[2], g);
    p[3] = v_fma(e, h, p[3]);
    p[4] = v_fma(g, g, p[4]);
    p[5] = v_fnma(e, v_fnma(g, h, ff), p[5]);
    sums->products = v_add(sums->products, ff);
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

/* A pair of values from both ends of a sorted column, as |u|. */
typedef struct value_pair {
    vec a, b;
} value_pair;

KERNEL value_pair pair_at(const vec *column, ptrdiff_t n, ptrdiff_t i, const mest_lanes *q, vec half)
{
    vec a = v_fma(v_sub(q->m0.lower, column[i]), q->inverse, half);
    vec b = v_fma(v_sub(column[n - 1 - i], q->m0.upper), q->inverse, half);
    return (value_pair){a, b};
}

/* |u - t| < 1 of a pair: where its |u| is below these. */
KERNEL value_pair edges_at(vec t)
{
    return (value_pair){v_sub(v_set(1), t), v_add(v_set(1), t)};
}

KERNEL bool all_active(value_pair pair, value_pair edges)
{
    return m_all(m_and(v_less(pair.a, edges.a), v_less(pair.b, edges.b)));
}

KERNEL void add_masked(powers *sums, value_pair pair, value_pair edges)
{
    vec a = active_part(sums, pair.a, v_less(pair.a, edges.a), 0);
    vec b = active_part(sums, pair.b, v_less(pair.b, edges.b), 1);
    add_powers(sums, a, b);
}

/* Of a sorted column with equal weights, of the values that are active at 0, from both ends inwards; once all lanes are active no masks
 * are needed, only the edges are noted once more. Always the same order of additions, whatever the other lanes do. The middle of an odd
 * number is the median: 0. */
KERNEL powers powers_of_column(const vec *column, ptrdiff_t n, const mest_lanes *q)
{
    powers sums = no_powers();
    value_pair edges = edges_at(v_set(0));
    vec half = v_mul(q->m0.half, q->inverse);
    ptrdiff_t pairs = n / 2;
    ptrdiff_t i = 0;
    value_pair pair = pair_at(column, n, 0, q, half);
    do { /* the outermost pair is often active in some lanes only: not worth a guess */
        add_masked(&sums, pair, edges);
        pair = pair_at(column, n, ++i, q, half);
    } while (i < pairs && !all_active(pair, edges));
    sums.inside[0] = i < pairs ? v_max(sums.inside[0], pair.a) : sums.inside[0];
    sums.inside[1] = i < pairs ? v_max(sums.inside[1], pair.b) : sums.inside[1];
    sums.p[0] = v_add(sums.p[0], v_set((real)(n - 2 * i)));
    for (; i < pairs; i++) {
        pair = pair_at(column, n, i, q, half);
        add_powers(&sums, pair.a, pair.b);
    }
    sums.p[4] = v_fnma(v_set(2), sums.products, sums.p[4]);
    sums.rejects = v_less(sums.p[0], v_set((real)n));
    return sums;
}

/* The same for a constant n of at least 4, without loops. */
KERNEL powers powers_of_short_column(const vec *column, ptrdiff_t n, const mest_lanes *q)
{
    powers sums = no_powers();
    value_pair edges = edges_at(v_set(0));
    vec half = v_mul(q->m0.half, q->inverse);
    value_pair pair = pair_at(column, n, 1, q, half);
    add_masked(&sums, pair_at(column, n, 0, q, half), edges);
    if (all_active(pair, edges)) {
        sums.inside[0] = v_max(sums.inside[0], pair.a);
        sums.inside[1] = v_max(sums.inside[1], pair.b);
        sums.p[0] = v_add(sums.p[0], v_set((real)(n - 2)));
        UNROLL
        for (ptrdiff_t i = 1; i < n / 2; i++) {
            pair = pair_at(column, n, i, q, half);
            add_powers(&sums, pair.a, pair.b);
        }
    } else {
        UNROLL
        for (ptrdiff_t i = 1; i < n / 2; i++) {
            add_masked(&sums, pair_at(column, n, i, q, half), edges);
        }
        sums.p[0] = v_add(sums.p[0], v_set((real)(n % 2)));
    }
    sums.p[4] = v_fnma(v_set(2), sums.products, sums.p[4]);
    sums.rejects = v_less(sums.p[0], v_set((real)n));
    return sums;
}

/* Of the rows in their own order, with weights. */
KERNEL powers powers_of_rows(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const mest_lanes *q)
{
    const row *rows = (const row *)span->rows;
    powers sums = no_powers();
    vec zero = v_set(0);
    vec inside = zero;
    vec outside = sums.outside[0];
    vec inverse = q->inverse;
    vec half = v_mul(q->m0.half, inverse);
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec u = v_fma(v_sub(load_lanes(rows[l], at, lanes), q->m0.upper), inverse, half);
        vec size = v_abs(u);
        mask active = v_less(size, v_set(1));
        sums.rejects = m_or(sums.rejects, m_andnot(m_first(LANES), active));
        inside = v_select(active, v_max(inside, size), inside);
        outside = v_select(active, outside, v_min(outside, size));
        vec a = v_select(active, v_set((real)span->weights[l]), zero);
        u = v_select(active, u, zero);
        vec uu = v_mul(u, u);
        vec au = v_mul(a, u);
        vec auuu = v_mul(au, uu);
        sums.p[0] = v_add(sums.p[0], a);
        sums.p[1] = v_add(sums.p[1], au);
        sums.p[2] = v_fma(au, u, sums.p[2]);
        sums.p[3] = v_add(sums.p[3], auuu);
        sums.p[4] = v_fma(auuu, u, sums.p[4]);
        sums.p[5] = v_fma(auuu, uu, sums.p[5]);
    }
    for (int side = 0; side < 2; side++) { /* careful: the nearest of both sides stands for both */
        sums.inside[side] = inside;
        sums.outside[side] = outside;
    }
    return sums;
}

/* ---- Newton's method on the polynomial ---- */

/* g(t) = sum psi(u - t) = c0 + c1 t + ... + c5 t^5; the slope of the M-estimate is sum psi' = -g'(t). */
typedef struct quintic {
    vec c[6];
    vec p2;        /* for sum z = p0 - p2 + 2 p1 t - p0 t^2, with p1 = c4 / 5 and p0 = -c5 */
    vec low, high; /* between them the same values are active, and t is at most one scale */
    mask rejects;  /* lanes with inactive values */
    vec step, t;
    mask healthy; /* so far */
} quintic;

/* All but step, t and healthy. */
KERNEL void quintic_of(quintic *f, const powers *sums, const mest_limits *limits)
{
    const vec *p = sums->p;
    vec one = v_set(1);
    f->c[0] = v_add(v_fnma(v_set(2), p[3], p[1]), p[5]);
    f->c[1] = v_fnma(v_set(5), p[4], v_fma(v_set(6), p[2], v_sub(v_set(0), p[0])));
    f->c[2] = v_fma(v_set(10), p[3], v_mul(v_set(-6), p[1]));
    f->c[3] = v_fma(v_set(-10), p[2], v_add(p[0], p[0]));
    f->c[4] = v_mul(v_set(5), p[1]);
    f->c[5] = v_sub(v_set(0), p[0]);
    f->p2 = p[2];
    /* inside[0] < 1 - t < outside[0] and inside[1] < 1 + t < outside[1] */
    f->low = v_max(v_max(v_sub(sums->inside[1], one), v_sub(one, sums->outside[0])), v_sub(v_set(0), limits->longest));
    f->high = v_min(v_min(v_sub(one, sums->inside[0]), v_sub(sums->outside[1], one)), limits->longest);
    f->rejects = sums->rejects;
}

/* Sum of z at t: a parabola. */
KERNEL vec sum_of_z(const quintic *f, vec t)
{
    vec linear = v_fma(v_set((real)0.4), f->c[4], v_mul(f->c[5], t));
    return v_fma(linear, t, v_sub(v_sub(v_set(0), f->c[5]), f->p2));
}

/* Whether the guard of src/num/mest.c would let the step be: the slope is more than half the weight, sum b. With slope = 5 sum b - 4 sum z
 * this reads 9 slope > 4 sum z. derivative = -slope. */
KERNEL mask healthy_slope(vec derivative, vec z)
{
    return v_less(v_fma(v_set(9), derivative, v_mul(v_set(4), z)), v_set(0));
}

/* g'(t), and g(t) into *value. */
KERNEL vec derivative_at(const quintic *f, vec t, vec *value)
{
    vec g = f->c[5];
    vec derivative = g;
    for (int j = 4; j > 0; j--) {
        g = v_fma(g, t, f->c[j]);
        derivative = v_fma(derivative, t, g);
    }
    *value = v_fma(g, t, f->c[0]);
    return derivative;
}

KERNEL void newton_step(quintic *f, bool is_last, const mest_limits *limits)
{
    vec value;
    vec derivative = derivative_at(f, f->t, &value);
    if (is_last) { /* rounding moves the solution by some ulp(1) / slope, in units of r = c s: that must vanish beside s */
        f->healthy = m_and(f->healthy, healthy_slope(derivative, sum_of_z(f, f->t)));
        f->healthy = m_and(f->healthy, v_less(derivative, v_mul(limits->slope, f->c[5])));
    }
    f->step = v_quotient(value, derivative);
    f->t = v_sub(f->t, f->step);
}

#ifdef REAL_IS_FLOAT
enum { NEWTON_STEPS = 3, STEPS_AGAIN = 2 };
#else
enum { NEWTON_STEPS = 4, STEPS_AGAIN = 3 };
#endif

/* Groups are solved side by side: alone each is a long chain of operations that wait for each other. */
KERNEL void newton(quintic *f, int groups, const mest_limits *limits)
{
    UNROLL
    for (int g = 0; g < groups; g++) { /* the first step, from 0 */
        f[g].healthy = healthy_slope(f[g].c[1], v_sub(v_sub(v_set(0), f[g].c[5]), f[g].p2));
        f[g].t = v_sub(v_set(0), v_quotient(f[g].c[0], f[g].c[1]));
    }
    UNROLL
    for (int step = 1; step < NEWTON_STEPS; step++) {
        UNROLL
        for (int g = 0; g < groups; g++) {
            newton_step(&f[g], step == NEWTON_STEPS - 1, limits);
        }
    }
}

/* Lanes whose solution holds: Newton's method was never bent, its last step was so short that the next would be below the tolerance,
 * and the same values are active there. */
KERNEL mask settled(const quintic *f, const mest_limits *limits)
{
    mask inside = m_and(v_less(f->low, f->t), v_less(f->t, f->high));
    return m_and(m_and(f->healthy, inside), v_less(v_abs(f->step), limits->last));
}

/* Lanes that have come to a place from where a second try is worth while: nothing was bent and the median is not far. */
KERNEL mask promising(const quintic *f, const mest_limits *limits)
{
    return m_and(f->healthy, v_less(v_abs(f->t), limits->longest));
}

/* ---- the second try, from t on ----
 *
 * The sums need not be made again: only the values that are active at t and were not at 0, or the other way round, are added or taken
 * away. In a sorted column they are among the outermost. */

/* |u| of place i from the lower (0) or the upper (1) end. */
KERNEL vec size_at(const vec *column, ptrdiff_t n, ptrdiff_t i, int side, const mest_lanes *q, vec half)
{
    vec away = side ? v_sub(column[n - 1 - i], q->m0.upper) : v_sub(q->m0.lower, column[i]);
    return v_fma(away, q->inverse, half);
}

/* Powers of one value that is new (sign 1), gone (-1, and size as it is) or neither (0 and 0). */
KERNEL void move_value(vec *p, vec size, vec sign, int side)
{
    vec power = sign;
    for (int j = 0; j < 6; j++) {
        p[j] = j % 2 && !side ? v_sub(p[j], power) : v_add(p[j], power);
        power = v_mul(power, size);
    }
}

/* One end of a column, from outside inwards as long as something is inactive at 0 or at t. Returns how many values are gone. */
KERNEL vec move_side(powers *moved, const vec *column, ptrdiff_t n, const mest_lanes *q, vec edge, int side)
{
    vec zero = v_set(0);
    vec one = v_set(1);
    vec half = v_mul(q->m0.half, q->inverse);
    vec both = v_min(edge, one);
    vec size = size_at(column, n, 0, side, q, half);
    vec gone = zero;
    ptrdiff_t i = 0;
    for (; i < n / 2 && !m_all(v_less(size, both)); size = size_at(column, n, ++i, side, q, half)) {
        mask before = v_less(size, one);
        mask now = v_less(size, edge);
        vec sign = v_sub(v_select(now, one, zero), v_select(before, one, zero));
        vec active = v_select(now, size, zero);
        moved->inside[side] = v_max(moved->inside[side], active);
        moved->outside[side] = v_select(now, moved->outside[side], size);
        gone = v_sub(gone, v_min(sign, zero));
        move_value(moved->p, v_select(before, v_select(now, zero, size), active), sign, side);
    }
    moved->inside[side] = i < n / 2 ? v_max(moved->inside[side], size) : moved->inside[side];
    return gone;
}

/* f becomes the polynomial of the values that are active at t. What is taken away leaves its rounding errors in the sums: where it is much,
 * the lane is not healthy. */
KERNEL void move_quintic(quintic *f, const vec *column, ptrdiff_t n, const mest_lanes *q, const mest_limits *limits,
                         vec t)
{
    powers moved = no_powers();
    quintic more;
    value_pair edges = edges_at(t);
    vec gone = move_side(&moved, column, n, q, edges.a, 0);
    gone = v_add(gone, move_side(&moved, column, n, q, edges.b, 1));
    quintic_of(&more, &moved, limits);
    for (int j = 0; j < 6; j++) {
        f->c[j] = v_add(f->c[j], more.c[j]);
    }
    f->p2 = v_add(f->p2, more.p2);
    f->low = more.low;
    f->high = more.high;
    f->rejects = v_less(v_sub(v_set(0), f->c[5]), v_set((real)n));
    f->healthy = v_less(v_mul(v_set(4), gone), v_set((real)(n + 1)));
    f->t = t;
}

/* Of some groups side by side; f: their polynomials of the first try. */
static __attribute__((noinline)) void try_again(const vec *columns, ptrdiff_t n, int groups, const mest_lanes *q,
                                                const mest_limits *limits, const vec *t, quintic *f)
{
    for (int g = 0; g < groups; g++) {
        move_quintic(&f[g], columns + g * n, n, &q[g], limits, t[g]);
    }
    for (int step = 0; step < STEPS_AGAIN; step++) {
        for (int g = 0; g < groups; g++) {
            newton_step(&f[g], true, limits);
        }
    }
}

/* sum b at the solution: slope = 5 sum b - 4 sum z. */
KERNEL vec total_weight(const quintic *f)
{
    vec value;
    vec derivative = derivative_at(f, f->t, &value);
    return v_mul(v_set((real)0.2), v_fma(v_set(4), sum_of_z(f, f->t), v_sub(v_set(0), derivative)));
}
