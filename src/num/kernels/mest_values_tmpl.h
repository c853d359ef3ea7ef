/* M-estimates value by value, for what power sums cannot decide and for Huber's function, which has corners. Part of kernels_tmpl.h;
 * notation in mest_group_tmpl.h. */

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

/* sum b at shift t. */
KERNEL vec weight_at(const vec *u, const double *weights, ptrdiff_t n, int family, vec t)
{
    return family == RFI_KERNEL_HUBER ? huber_sums(u, weights, n, t).weight : tukey_sums(u, weights, n, t).weight;
}
