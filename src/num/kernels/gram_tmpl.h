/* Gram matrices of rows centred at the coordinatewise median. Part of kernels_tmpl.h.
 *
 * In double precision from the first difference on, or for float32 rows in single precision with an error that is known: colluders stand
 * close together far from the centre, and the distance between them is what is left when large numbers cancel. Who calls sees from the
 * sums where that happens (agg/gram.c) and has those rows done in double precision. */

KERNEL double largest_lane(vec a)
{
    real lane[LANES];
    double largest = 0;
    v_store(lane, a);
    for (int i = 0; i < LANES; i++) {
        largest = (double)lane[i] > largest ? (double)lane[i] : largest;
    }
    return largest;
}

/* The medians of a group, in *m and in double precision in medians[at]; false if some value is not finite. */
KERNEL bool group_middle(const rfi_span *span, ptrdiff_t at, double *medians, middle *m, ahead *a)
{
    vec *column = span->scratch;
    if (m_bits(not_finite(load_middle((const row *)span->rows, span->n, at, lanes_at(span, at), column, a)))) {
        return false;
    }
    *m = middle_of(column, span->n);
    w_store(medians + at, w_sub(w_add(w_zero(), m->upper), w_add(w_zero(), m->half)));
    return !m_bits(not_finite(m->upper)) && !m_bits(not_finite(m->half));
}

static bool NAME(centre)(const rfi_span *span, double *centred, ptrdiff_t stride, double *medians, double *largest)
{
    const row *rows = (const row *)span->rows;
    ahead a = look_ahead_of(span);
    vec most = v_set(0);
    middle m;
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        if (!group_middle(span, at, medians, &m, &a)) {
            return false;
        }
        wide minus_mu = w_sub(w_add(w_zero(), m.half), w_add(w_zero(), m.upper));
        for (ptrdiff_t l = 0; l < span->n; l++) {
            vec x = load_lanes(rows[l], at, lanes);
            most = v_max(most, v_abs(away_from(m, x)));
            w_store(centred + l * stride + at, w_add(minus_mu, x));
        }
    }
    *largest = largest_lane(most);
    return isfinite(*largest);
}

void GRAM(const double *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t count, double *sum);

#if !defined(REAL_IS_FLOAT) || LANES > 1
/* Rows p..p+3 against rows q..q+3 (or fewer where registers are few): their sums in registers. Of a block on the diagonal only the lower
 * half is made, and as many rows as are high. */
enum { SIDE = 4, ACROSS = REGISTERS < 32 ? 3 : 4 };

KERNEL void gram_block(const real *const *a, const real *const *b, ptrdiff_t from, ptrdiff_t to, bool diagonal,
                       double sum[SIDE][SIDE])
{
    const int across = diagonal ? SIDE : ACROSS;
    vec total[SIDE][SIDE];
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            total[i][j] = v_set(0);
        }
    }
    for (ptrdiff_t t = from; t < to; t += LANES) {
        vec x[SIDE];
        for (int i = 0; i < SIDE; i++) {
            x[i] = v_load(a[i] + t);
        }
        for (int j = 0; j < across; j++) {
            vec y = v_load(b[j] + t);
            for (int i = diagonal ? j : 0; i < SIDE; i++) {
                total[i][j] = v_fma(x[i], y, total[i][j]);
            }
        }
    }
    for (int i = 0; i < SIDE; i++) {
        v_four_totals(total[i], sum[i]);
    }
}

/* Rows beyond the last repeat it; their sums are not used. */
KERNEL void block_rows(const real *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t from, const real **rows)
{
    for (int i = 0; i < SIDE; i++) {
        ptrdiff_t point = from + i < points ? from + i : points - 1;
        rows[i] = centred + point * stride;
    }
}

/* Adds rows p..p+3 against rows q..end-1 to the packed sums. */
KERNEL void add_block(const real *const *a, const real *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t p,
                      ptrdiff_t q, ptrdiff_t end, ptrdiff_t from, ptrdiff_t to, double *sum)
{
    const real *b[SIDE];
    double block[SIDE][SIDE];
    block_rows(centred, stride, points, q, b);
    if (p == q) {
        gram_block(a, b, from, to, true, block);
    } else {
        gram_block(a, b, from, to, false, block);
    }
    for (ptrdiff_t i = p; i < p + SIDE && i < points; i++) {
        for (ptrdiff_t j = q; j < end && j <= i; j++) {
            sum[i * (i + 1) / 2 + j] += block[i - p][j - q];
        }
    }
}

/* sum[packed pair p >= q] += the products of coordinates from..to-1. */
static void gram_run(const real *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t from, ptrdiff_t to, double *sum)
{
    for (ptrdiff_t p = 0; p < points; p += SIDE) {
        const real *a[SIDE];
        block_rows(centred, stride, points, p, a);
        for (ptrdiff_t q = 0; q < p; q += ACROSS) {
            add_block(a, centred, stride, points, p, q, q + ACROSS < p ? q + ACROSS : p, from, to, sum);
        }
        add_block(a, centred, stride, points, p, p, p + SIDE, from, to, sum);
    }
}

#endif

#ifndef REAL_IS_FLOAT
void GRAM(const double *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t count, double *sum)
{
    gram_run(centred, stride, points, 0, count, sum);
}
#elif LANES > 1
static bool NAME(centre_single)(const rfi_span *span, float *centred, ptrdiff_t stride, double *medians)
{
    const row *rows = (const row *)span->rows;
    ahead a = look_ahead_of(span);
    middle m;
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        if (!group_middle(span, at, medians, &m, &a)) {
            return false;
        }
        for (ptrdiff_t l = 0; l < span->n; l++) {
            v_store(centred + l * stride + at, away_from(m, load_lanes(rows[l], at, lanes)));
        }
    }
    return true;
}

static void NAME(gram_single)(const float *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t count, double *sum)
{
    enum { RUN_LENGTH = RFI_GRAM_ADDITIONS * LANES };
    for (ptrdiff_t from = 0; from < count; from += RUN_LENGTH) {
        gram_run(centred, stride, points, from, count - from < RUN_LENGTH ? count : from + RUN_LENGTH, sum);
    }
}

static void NAME(away)(const rfi_span *span, const double *medians, double *centred, ptrdiff_t stride)
{
    const row *rows = (const row *)span->rows;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        for (ptrdiff_t at = 0; at < span->count; at += LANES) {
            vec x = load_lanes(rows[l], at, lanes_at(span, at));
            w_store(centred + l * stride + at, w_sub(w_add(w_zero(), x), w_load(medians + at)));
        }
    }
}
#endif
