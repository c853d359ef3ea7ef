/* M-estimates of location around the median, with the MAD as scale: a group of lanes and how it starts. Part of kernels_tmpl.h.
 *
 * Notation, per lane: m0 median, s scale, r = c s, u = (x - m0) / r, t = (m - m0) / r;
 *   d = u - t, z = max(1 - d^2, 0);  Tukey: psi = d z^2, b = z^2, psi' = z (1 - 5 d^2) = 5 z^2 - 4 z */

/* A group on its way to the solution. */
typedef struct mest_lanes {
    middle m0;
    vec r, inverse; /* inverse is 0 where the scale is too small: all u are then 0 and t stays 0 */
    mask hard;      /* for the scalar rule */
    mask dead;      /* no usable scale: the result is the median */
    mask open;      /* lanes that still move */
    vec t;          /* the solution, 0 in dead lanes */
    mask flat;      /* lanes that ended where the slope is small: rounding moves the solution there */
} mest_lanes;

/* The options in all lanes, and what decides whether a lane is settled, in units of r. */
typedef struct mest_limits {
    vec mad_factor, floor, c;
    vec last;    /* a step after which the next would be below the tolerance */
    vec longest; /* one scale */
    vec slope;   /* least slope per unit of weight */
} mest_limits;

KERNEL mest_limits limits_of(const rfi_kernel_mest *est)
{
    return (mest_limits){.mad_factor = v_set((real)est->mad_factor),
                         .floor = v_set((real)est->floor),
                         .c = v_set((real)est->c),
                         .last = v_set((real)(fmax(est->tol, 0.2 * sqrt(est->tol)) / est->c)),
                         .longest = v_set((real)(fmin(1, est->c) / est->c)),
                         .slope = v_set((real)(0.06 * est->c))};
}

/* Median distance from the median, without a second sort: both ends are ascending away from the middle, so one half-cleaner selects.
 * With h values on each side the h-th smallest distance of all is max_i min(below_i, above_{h-1-i}), the next one min_i max(...).
 * Distances are taken from the lower and the upper middle value; `half` more is the distance from the median itself. */
KERNEL vec median_distance(const vec *column, ptrdiff_t n, middle m)
{
    ptrdiff_t h = n / 2;
    vec low = v_set(0);
    vec high = v_set(REAL_MAX);
    for (ptrdiff_t i = 0; i < h; i++) {
        vec below = v_sub(m.lower, column[h - 1 - i]);
        vec above = v_sub(column[n - 1 - i], m.upper);
        low = v_max_positive(low, v_min_positive(below, above));
        high = v_min_positive(high, v_max_positive(below, above));
    }
    return n % 2 ? low : v_add(midpoint(low, high), m.half);
}

/* (x - m0) / r of a row. */
KERNEL vec scaled(vec x, const mest_lanes *q)
{
    return v_mul(away_from(q->m0, x), q->inverse);
}

/* The same of place i of a sorted column, rounded alike on both sides of the median. */
KERNEL vec scaled_place(const vec *column, ptrdiff_t n, ptrdiff_t i, const mest_lanes *q)
{
    vec below = v_sub(q->m0.lower, column[i]);
    vec above = v_sub(column[i], q->m0.upper);
    vec size = v_mul(v_add(i < n / 2 ? below : above, q->m0.half), q->inverse);
    return i < n / 2 ? v_sub(v_set(0), size) : size;
}

/* A group from its sorted column; sum: of the column. All but t and flat. */
KERNEL void start_lanes(mest_lanes *q, const vec *column, ptrdiff_t n, vec sum, ptrdiff_t lanes,
                        const mest_limits *limits)
{
    q->m0 = middle_of(column, n);
    q->hard = m_and(m_or(not_finite(sum), too_large(column[0], column[n - 1])), m_first(lanes));
    vec s = v_max(v_mul(median_distance(column, n, q->m0), limits->mad_factor), limits->floor);
    q->dead = v_less(s, v_set(16 * REAL_MIN));
    q->r = v_mul(s, limits->c);
    q->inverse = v_select(q->dead, v_set(0), v_div(v_set(1), q->r));
    q->open = m_andnot(m_andnot(m_first(lanes), q->dead), q->hard);
}

/* m0 + t r, between the least and the greatest value. */
KERNEL vec solution(const mest_lanes *q, vec least, vec greatest)
{
    vec value = v_add(q->m0.upper, v_fma(q->t, q->r, v_sub(v_set(0), q->m0.half)));
    value = v_min(v_max(value, least), greatest);
    return v_add(value, v_set(0)); /* no -0 */
}
