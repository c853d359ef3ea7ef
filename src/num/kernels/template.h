/* The kernels, written once over the vector layer and compiled per instruction set and type (kernels_*.c).
 *
 * Notation of M-estimates, per lane: m0 median, s scale, r = c s, u = (x - m0) / r, t = (m - m0) / r;
 *   d = u - t, z = max(1 - d^2, 0);  Tukey: psi = d z^2, b = z^2, psi' = z (1 - 5 d^2) = 5 z^2 - 4 z
 * u is clamped to a few units, far beyond rejection, so that no finite outlier overflows when it is squared. */
#include "num/kernels/kernels.h"

#include <float.h>
#include <math.h>

/* REAL_LARGE: beyond it a scale or its inverse might leave the range; the scalar rules scale such columns down. */
#ifdef REAL_IS_FLOAT
#define REAL_MIN FLT_MIN
#define REAL_MAX FLT_MAX
#define REAL_LARGE 0x1p+115F
#else
#define REAL_MIN DBL_MIN
#define REAL_MAX DBL_MAX
#define REAL_LARGE 0x1p+1000
#endif

#define SORT2(i, j)                                                                                                    \
    do {                                                                                                               \
        const vec low = v_min(x[i], x[j]);                                                                             \
        x[j] = v_max(x[i], x[j]);                                                                                      \
        x[i] = low;                                                                                                    \
    } while (0)
#include "num/kernels/networks.h"

enum { BLOCK = 32 };

/* ---- loading and sorting a column of vectors ---- */

/* A row of the caller: bytes, because it may have any alignment. */
typedef const char *row;

KERNEL vec load_lanes(row r, ptrdiff_t at, ptrdiff_t lanes)
{
    row p = r + at * (ptrdiff_t)sizeof(real);
    return lanes == LANES ? v_load(p) : v_load_part(p, lanes);
}

/* Loads n <= 32 rows, sorts them in registers, stores the column. Returns their sum, which is not finite if one of them is
 * not (or if the sum overflows: harmless, the coordinate is then done by the scalar rule). */
#define LOAD_AND_SORT(n)                                                                                               \
    static __attribute__((noinline))                                                                                   \
    vec load_and_sort_##n(const row *rows, ptrdiff_t at, ptrdiff_t lanes, vec *column)                                 \
    {                                                                                                                  \
        vec x[n];                                                                                                      \
        vec sum = v_set(0);                                                                                            \
        for (int i = 0; i < (n); i++) {                                                                                \
            x[i] = load_lanes(rows[i], at, lanes);                                                                     \
            sum = v_add(sum, x[i]);                                                                                    \
        }                                                                                                              \
        sort_##n(x);                                                                                                   \
        for (int i = 0; i < (n); i++) {                                                                                \
            column[i] = x[i];                                                                                          \
        }                                                                                                              \
        return sum;                                                                                                    \
    }
static __attribute__((noinline)) vec load_and_sort_1(const row *rows, ptrdiff_t at, ptrdiff_t lanes, vec *column)
{
    column[0] = load_lanes(rows[0], at, lanes);
    return column[0];
}
FOR_EACH_NETWORK(LOAD_AND_SORT)

typedef vec (*load_and_sort)(const row *rows, ptrdiff_t at, ptrdiff_t lanes, vec *column);

#define SORTER(n) load_and_sort_##n,
static const load_and_sort sorters[BLOCK + 1] = {NULL, load_and_sort_1, FOR_EACH_NETWORK(SORTER)};

/* Sorts a part of the column that is in memory already. */
#define RESORT(n)                                                                                                      \
    case n:                                                                                                            \
        sort_##n(x);                                                                                                   \
        break;

static __attribute__((noinline)) void sort_block(vec *x, ptrdiff_t n)
{
    switch (n) {
        FOR_EACH_NETWORK(RESORT)
    default:
        break;
    }
}

static __attribute__((noinline)) void merge_block(vec *column)
{
    vec x[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        x[i] = column[i];
    }
    merge_32(x);
    for (int i = 0; i < BLOCK; i++) {
        column[i] = x[i];
    }
}

/* Bitonic merge of two sorted runs x[0..run) and x[run..n), n <= 2 run, run a multiple of 32. Places beyond n count as
 * +infinity and never move, so comparators that touch them are left out. */
static void merge_runs(vec *x, ptrdiff_t run, ptrdiff_t n)
{
    for (ptrdiff_t i = 2 * run - n; i < run; i++) {
        SORT2(i, 2 * run - 1 - i);
    }
    for (ptrdiff_t d = run / 2; d >= BLOCK; d /= 2) {
        for (ptrdiff_t start = 0; start < n; start += 2 * d) {
            for (ptrdiff_t i = start; i < start + d && i + d < n; i++) {
                SORT2(i, i + d);
            }
        }
    }
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        if (n - start >= BLOCK) {
            merge_block(x + start);
        } else {
            sort_block(x + start, n - start);
        }
    }
}

static vec load_sorted(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, vec *column)
{
    if (n <= BLOCK) {
        return sorters[n](rows, at, lanes, column);
    }
    vec sum = v_set(0);
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        ptrdiff_t size = n - start < BLOCK ? n - start : BLOCK;
        sum = v_add(sum, sorters[size](rows + start, at, lanes, column + start));
    }
    for (ptrdiff_t run = BLOCK; run < n; run *= 2) {
        for (ptrdiff_t start = 0; start + run < n; start += 2 * run) {
            ptrdiff_t size = n - start < 2 * run ? n - start : 2 * run;
            merge_runs(column + start, run, size);
        }
    }
    return sum;
}

/* ---- the frame of every kernel ---- */

/* Lanes whose sum is not finite: x - x is then NaN. */
KERNEL mask not_finite(vec sum)
{
    vec zero = v_sub(sum, sum);
    return m_andnot(m_first(LANES), v_equal(zero, zero));
}

static ptrdiff_t list_hard(const rfi_span *span, ptrdiff_t at, mask hard, ptrdiff_t listed)
{
    for (unsigned bits = m_bits(hard); bits; bits &= bits - 1) {
        int lane = __builtin_ctz(bits);
        if (at + lane < span->count) {
            span->hard[listed++] = (int32_t)(at + lane);
        }
    }
    return listed;
}

KERNEL void store_lanes(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, vec value)
{
    value = v_add(value, v_set(0)); /* no -0, whatever the order of the rows */
    char *out = (char *)span->out + at * (ptrdiff_t)sizeof(real);
    if (lanes == LANES) {
        v_store(out, value);
    } else {
        v_store_part(out, value, lanes);
    }
}

KERNEL ptrdiff_t lanes_at(const rfi_span *span, ptrdiff_t at)
{
    return span->count - at < LANES ? span->count - at : LANES;
}

/* Halving the sum, not the numbers, which could be flushed to zero; a sum that overflows makes the lane hard. */
KERNEL vec midpoint(vec a, vec b)
{
    return v_mul(v_set((real)0.5), v_add(a, b));
}

KERNEL vec median_of(const vec *column, ptrdiff_t n)
{
    return n % 2 ? column[n / 2] : midpoint(column[n / 2 - 1], column[n / 2]);
}

/* Sorted columns with numbers beyond REAL_LARGE. */
KERNEL mask too_large(const vec *column, ptrdiff_t n)
{
    vec largest = v_max(v_abs(column[0]), v_abs(column[n - 1]));
    return v_less(v_set(REAL_LARGE), largest);
}

/* ---- sums ---- */

/* `groups` vectors of every row at once, so that a row is read some cache lines at a time. Sums of float32 in double precision round to
 * a value between the smallest and the largest; those of float64 may miss by some last bits and are put back. */
KERNEL ptrdiff_t sum_groups(const rfi_span *span, ptrdiff_t at, int groups, ptrdiff_t listed)
{
    const row *rows = (const row *)span->rows;
    wide sum[4];
#ifndef REAL_IS_FLOAT
    vec low[4];
    vec high[4];
#endif
    double factor = span->weights ? 1 : 1 / (double)span->n;
    for (int g = 0; g < groups; g++) {
        sum[g] = w_zero();
#ifndef REAL_IS_FLOAT
        low[g] = v_set(span->with_zero ? 0 : REAL_MAX);
        high[g] = v_set(span->with_zero ? 0 : -REAL_MAX);
#endif
    }
    for (ptrdiff_t l = 0; l < span->n; l++) {
        for (int g = 0; g < groups; g++) {
            ptrdiff_t from = at + g * LANES;
            vec x = load_lanes(rows[l], from, groups > 1 ? LANES : lanes_at(span, from));
            sum[g] = span->weights ? w_fma(sum[g], x, span->weights[l]) : w_add(sum[g], x);
#ifndef REAL_IS_FLOAT
            low[g] = v_min(low[g], x);
            high[g] = v_max(high[g], x);
#endif
        }
    }
    for (int g = 0; g < groups; g++) {
        vec value = w_narrow(sum[g], factor);
        mask hard = not_finite(value);
#ifndef REAL_IS_FLOAT
        value = v_min(v_max(value, low[g]), high[g]);
#endif
        ptrdiff_t from = at + g * LANES;
        store_lanes(span, from, groups > 1 ? LANES : lanes_at(span, from), value);
        if (m_bits(hard)) {
            listed = list_hard(span, from, hard, listed);
        }
    }
    return listed;
}

static ptrdiff_t NAME(sum)(const rfi_span *span)
{
    ptrdiff_t listed = 0;
    ptrdiff_t at = 0;
    for (; at + 4 * LANES <= span->count; at += 4 * LANES) {
        listed = sum_groups(span, at, 4, listed);
    }
    for (; at < span->count; at += LANES) {
        listed = sum_groups(span, at, 1, listed);
    }
    return listed;
}

/* ---- order statistics ---- */

static ptrdiff_t NAME(median)(const rfi_span *span, int kind)
{
    vec *column = span->scratch;
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        mask hard = not_finite(load_sorted((const row *)span->rows, n, at, lanes, column));
        vec value = median_of(column, n);
        hard = m_or(hard, not_finite(value));
        if (kind != 0) {
            value = column[kind == 1 ? (n - 1) / 2 : n / 2];
        }
        store_lanes(span, at, lanes, value);
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
    }
    return listed;
}

/* Sums start from a middle value: differences of neighbouring values are exact or nearly so. */
static ptrdiff_t NAME(trimmed)(const rfi_span *span, ptrdiff_t f)
{
    vec *column = span->scratch;
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    vec factor = v_set((real)(1 / (double)(n - 2 * f)));
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        mask hard = not_finite(load_sorted((const row *)span->rows, n, at, lanes, column));
        vec m = column[n / 2];
        vec sum = v_set(0);
        for (ptrdiff_t i = f; i < n - f; i++) {
            sum = v_add(sum, v_sub(column[i], m));
        }
        vec value = v_fma(sum, factor, m);
        value = v_min(v_max(value, column[f]), column[n - 1 - f]);
        hard = m_or(hard, too_large(column, n));
        store_lanes(span, at, lanes, value);
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
    }
    return listed;
}

/* The median as the scalar rules have it. Theirs of float32 numbers is a double, and exact: here it is a value of the column plus a
 * correction, both exact, because rounding the midpoint of two neighbouring numbers would spoil every deviation from it. */
typedef struct middle {
    vec at, beyond; /* median = at + beyond */
} middle;

KERNEL middle middle_of(const vec *column, ptrdiff_t n)
{
#ifdef REAL_IS_FLOAT
    vec upper = column[n / 2];
    vec gap = n % 2 ? v_set(0) : v_sub(column[n / 2 - 1], upper);
    return (middle){upper, v_mul(v_set((real)0.5), gap)};
#else
    return (middle){median_of(column, n), v_set(0)};
#endif
}

/* x - median. */
KERNEL vec away_from(middle m, vec x)
{
    return v_sub(v_sub(x, m.at), m.beyond);
}

/* Distance of the kept-th value from the median: the narrowest window of the sorted column. */
KERNEL vec window_radius(const vec *column, ptrdiff_t n, ptrdiff_t kept, middle m)
{
    vec radius = v_set(REAL_MAX);
    for (ptrdiff_t i = 0; i + kept <= n; i++) {
        vec below = v_sub(v_set(0), away_from(m, column[i]));
        vec above = away_from(m, column[i + kept - 1]);
        radius = v_min(radius, v_max(below, above));
    }
    return radius;
}

static ptrdiff_t NAME(meamed)(const rfi_span *span, ptrdiff_t kept)
{
    vec *column = span->scratch;
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    vec one = v_set(1);
    vec zero = v_set(0);
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        mask hard = not_finite(load_sorted((const row *)span->rows, n, at, lanes, column));
        middle m = middle_of(column, n);
        vec radius = window_radius(column, n, kept, m);
        vec sum = zero;
        vec count = zero;
        vec tie_sum = zero;
        vec ties = zero;
        for (ptrdiff_t i = 0; i < n; i++) {
            vec d = away_from(m, column[i]);
            mask inside = v_less(v_abs(d), radius);
            mask tie = v_equal(v_abs(d), radius);
            sum = v_add(sum, v_select(inside, d, zero));
            count = v_add(count, v_select(inside, one, zero));
            tie_sum = v_add(tie_sum, v_select(tie, d, zero));
            ties = v_add(ties, v_select(tie, one, zero));
        }
        vec total = v_set((real)kept);
        vec part = v_div(v_sub(total, count), v_max(ties, one));
        vec value = v_add(m.at, v_add(m.beyond, v_div(v_fma(part, tie_sum, sum), total)));
        /* ties that are kept in part may be no ties in double precision, where the scalar rule measures */
        mask parted = m_andnot(v_less(zero, radius), v_equal(v_add(count, ties), total));
        hard = m_or(hard, m_or(too_large(column, n), parted));
        store_lanes(span, at, lanes, value);
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
    }
    return listed;
}

/* ---- M-estimates ---- */

/* median |x - m| of a sorted column without a second sort. With h values on each side of the middle, below_i = m - x and above_i = x - m
 * are both ascending away from it, so one half-cleaner selects: the h-th smallest of all is max_i min(below_i, above_{h-1-i}), the
 * next one min_i max(...). */
KERNEL vec mad_of(const vec *column, ptrdiff_t n, middle m)
{
    ptrdiff_t h = n / 2;
    const vec *upper = column + (n - h);
    vec low = v_set(0);
    vec high = v_set(REAL_MAX);
    for (ptrdiff_t i = 0; i < h; i++) {
        vec below = v_sub(v_set(0), away_from(m, column[h - 1 - i]));
        vec above = away_from(m, upper[h - 1 - i]);
        low = v_max(low, v_min(below, above));
        high = v_min(high, v_max(below, above));
    }
    return n % 2 ? low : midpoint(low, high);
}

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

/* One column of lanes on its way to the solution. */
typedef struct mest_lanes {
    middle m0;
    vec r, inverse; /* inverse is 0 where the scale is too small: all u are then 0 and t stays 0 */
    vec shift;      /* m0.beyond / r */
    vec t;
    vec limit;  /* for u, see scaled */
    mask open;  /* lanes that still move */
    mask alive; /* lanes with a usable scale */
    mask flat;  /* lanes that ended where the slope is small: rounding moves the solution there */
} mest_lanes;

KERNEL mest_lanes start_lanes(const vec *column, ptrdiff_t n, const rfi_kernel_mest *est)
{
    mest_lanes q;
    q.m0 = middle_of(column, n);
    vec s = v_mul(mad_of(column, n, q.m0), v_set((real)est->mad_factor));
    s = v_max(s, v_set((real)est->floor));
    q.alive = m_andnot(m_first(LANES), v_less(s, v_set(16 * REAL_MIN)));
    q.r = v_mul(s, v_set((real)est->c));
    q.inverse = v_select(q.alive, v_div(v_set(1), q.r), v_set(0));
    q.shift = v_mul(q.m0.beyond, q.inverse);
    q.t = v_set(0);
    /* Tukey: t stays within a few units of 0. Huber: with weights it may go far, but nothing is squared */
    q.limit = v_set(est->family == RFI_KERNEL_TUKEY ? 1024 : (real)0x1p+100);
    q.open = q.alive;
    q.flat = v_less(v_set(1), v_set(0));
    return q;
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

/* Clamped far beyond rejection at any t, and far from overflow. */
KERNEL vec scaled(vec x, const mest_lanes *q)
{
    return clamp_to(v_sub(v_mul(v_sub(x, q->m0.at), q->inverse), q->shift), q->limit);
}

/* Huber's function never lets go of a value, however far: where one was clamped the scalar rule decides. */
KERNEL mask out_of_reach(const vec *column, ptrdiff_t n, const mest_lanes *q)
{
    vec most = v_max(v_abs(scaled(column[0], q)), v_abs(scaled(column[n - 1], q)));
    return m_andnot(m_first(LANES), v_less(most, q->limit));
}

KERNEL void scale_column(vec *u, const vec *x, ptrdiff_t n, const mest_lanes *q)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        u[i] = scaled(x[i], q);
    }
}

KERNEL void scale_rows(vec *u, const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const mest_lanes *q)
{
    const row *rows = (const row *)span->rows;
    for (ptrdiff_t i = 0; i < span->n; i++) {
        u[i] = scaled(load_lanes(rows[i], at, lanes), q);
    }
}

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
} trust_sums;

static trust_sums start_trust(const rfi_span *span, const rfi_kernel_report *report)
{
    trust_sums sums = {(vec *)span->scratch + 2 * span->n, (vec *)span->scratch + 3 * span->n};
    for (ptrdiff_t i = 0; report->share && i < span->n; i++) {
        sums.share[i] = v_set(0);
        sums.rejected[i] = v_set(0);
    }
    return sums;
}

/* Adds the shares of one group; u holds the rows in their own order and is overwritten. */
static void add_trust(const rfi_span *span, int family, vec *u, vec t, mask counted, const trust_sums *sums)
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
}

static void finish_trust(const rfi_span *span, const trust_sums *sums, rfi_kernel_report *report)
{
    for (ptrdiff_t i = 0; report->share && i < span->n; i++) {
        report->share[i] += v_total(sums->share[i]);
        report->rejected[i] += (int64_t)v_total(sums->rejected[i]);
    }
}

static ptrdiff_t NAME(mest)(const rfi_span *span, const rfi_kernel_mest *est, rfi_kernel_report *report)
{
    vec *column = span->scratch;
    vec *u = column + span->n;
    ptrdiff_t n = span->n;
    ptrdiff_t listed = 0;
    trust_sums trust = start_trust(span, report);
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        mask present = m_first(lanes);
        mask hard = not_finite(load_sorted((const row *)span->rows, n, at, lanes, column));
        hard = m_or(hard, too_large(column, n));
        mest_lanes q = start_lanes(column, n, est);
        q.open = m_and(m_andnot(q.open, hard), present);
        if (span->weights) {
            scale_rows(u, span, at, lanes, &q);
        } else {
            scale_column(u, column, n, &q);
        }
        if (est->family == RFI_KERNEL_HUBER) {
            hard = m_or(hard, out_of_reach(column, n, &q));
            q.open = m_andnot(q.open, hard);
        }
        int steps = solve_lanes(&q, u, span->weights, n, est, &report->iterations);
        report->max_iterations = steps > report->max_iterations ? steps : report->max_iterations;
        vec value = v_add(q.m0.at, v_fma(q.t, q.r, q.m0.beyond));
        value = v_min(v_max(value, column[0]), column[n - 1]);
        store_lanes(span, at, lanes, value);
        /* lanes that did not settle, or settled where it is flat, go to the scalar rule */
        hard = m_or(hard, m_or(q.open, q.flat));
        if (report->share) { /* without a scale the result is the median, and ties share it */
            hard = m_or(hard, m_andnot(m_first(LANES), q.alive));
        }
        if (report->share) {
            scale_rows(u, span, at, lanes, &q);
            add_trust(span, est->family, u, q.t, m_andnot(present, hard), &trust);
            if (at / LANES % TRUST_GROUPS == TRUST_GROUPS - 1) {
                finish_trust(span, &trust, report);
                trust = start_trust(span, report);
            }
        }
        if (m_bits(hard)) {
            listed = list_hard(span, at, hard, listed);
        }
    }
    finish_trust(span, &trust, report);
    return listed;
}

/* ---- Gram matrices ----
 *
 * In double precision throughout, from the first difference on: colluders stand close together far from the centre, and the distance
 * between them is what is left when large numbers cancel. */

static bool NAME(centre)(const rfi_span *span, double *centred, ptrdiff_t stride, double *medians, double *largest)
{
    const row *rows = (const row *)span->rows;
    vec *column = span->scratch;
    vec most = v_set(0);
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        if (m_bits(not_finite(load_sorted(rows, span->n, at, lanes, column)))) {
            return false;
        }
        middle m = middle_of(column, span->n);
        if (m_bits(not_finite(m.at)) || m_bits(not_finite(m.beyond))) {
            return false;
        }
        most = v_max(most, v_max(v_abs(away_from(m, column[0])), v_abs(away_from(m, column[span->n - 1]))));
        wide mu = w_add(w_add(w_zero(), m.at), m.beyond);
        w_store(medians + at, mu);
        for (ptrdiff_t l = 0; l < span->n; l++) {
            wide x = w_add(w_zero(), load_lanes(rows[l], at, lanes));
            w_store(centred + l * stride + at, w_sub(x, mu));
        }
    }
    real lane[LANES];
    v_store(lane, most);
    *largest = 0;
    for (int i = 0; i < LANES; i++) {
        *largest = (double)lane[i] > *largest ? (double)lane[i] : *largest;
    }
    return isfinite(*largest);
}

#ifdef REAL_IS_FLOAT
void GRAM(const double *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t count,
          double *sum); /* the other type's */
#else
/* Rows p..p+3 against rows q..q+3: 16 sums in registers. */
enum { SIDE = 4 };

KERNEL void gram_block(const double *const *a, const double *const *b, ptrdiff_t count, double sum[SIDE][SIDE])
{
    vec total[SIDE][SIDE];
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            total[i][j] = v_set(0);
        }
    }
    for (ptrdiff_t t = 0; t < count; t += LANES) {
        vec x[SIDE];
        for (int i = 0; i < SIDE; i++) {
            x[i] = v_load(a[i] + t);
        }
        for (int j = 0; j < SIDE; j++) {
            vec y = v_load(b[j] + t);
            for (int i = 0; i < SIDE; i++) {
                total[i][j] = v_fma(x[i], y, total[i][j]);
            }
        }
    }
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            sum[i][j] = v_total(total[i][j]);
        }
    }
}

/* Rows beyond the last repeat it; their sums are not used. */
static void block_rows(const double *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t from, const double **rows)
{
    for (int i = 0; i < SIDE; i++) {
        ptrdiff_t point = from + i < points ? from + i : points - 1;
        rows[i] = centred + point * stride;
    }
}

void GRAM(const double *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t count, double *sum);

void GRAM(const double *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t count, double *sum)
{
    for (ptrdiff_t p = 0; p < points; p += SIDE) {
        const double *a[SIDE];
        block_rows(centred, stride, points, p, a);
        for (ptrdiff_t q = 0; q <= p; q += SIDE) {
            const double *b[SIDE];
            double block[SIDE][SIDE];
            block_rows(centred, stride, points, q, b);
            gram_block(a, b, count, block);
            for (ptrdiff_t i = p; i < p + SIDE && i < points; i++) {
                for (ptrdiff_t j = q; j < q + SIDE && j <= i; j++) {
                    sum[i * (i + 1) / 2 + j] += block[i - p][j - q];
                }
            }
        }
    }
}
#endif

const rfi_kernels KERNELS = {
    .name = ISA,
    .sum = NAME(sum),
    .median = NAME(median),
    .trimmed = NAME(trimmed),
    .meamed = NAME(meamed),
    .mest = NAME(mest),
    .centre = NAME(centre),
    .gram = GRAM,
};
