/* Gram matrices of rows centred at the coordinatewise median. Part of template.h.
 *
 * In double precision throughout, from the first difference on: colluders stand close together far from the centre, and the distance
 * between them is what is left when large numbers cancel. */

static bool NAME(centre)(const rfi_span *span, double *centred, ptrdiff_t stride, double *medians, double *largest)
{
    const row *rows = (const row *)span->rows;
    vec *column = span->scratch;
    ahead a = look_ahead_of(span);
    vec most = v_set(0);
    for (ptrdiff_t at = 0; at < span->count; at += LANES) {
        ptrdiff_t lanes = lanes_at(span, at);
        if (m_bits(not_finite(load_middle(rows, span->n, at, lanes, column, &a)))) {
            return false;
        }
        middle m = middle_of(column, span->n);
        if (m_bits(not_finite(m.upper)) || m_bits(not_finite(m.half))) {
            return false;
        }
        wide mu = w_sub(w_add(w_zero(), m.upper), w_add(w_zero(), m.half));
        wide minus_mu = w_sub(w_zero(), mu);
        w_store(medians + at, mu);
        for (ptrdiff_t l = 0; l < span->n; l++) {
            vec x = load_lanes(rows[l], at, lanes);
            most = v_max(most, v_abs(away_from(m, x)));
            w_store(centred + l * stride + at, w_add(minus_mu, x));
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
/* Rows p..p+3 against rows q..q+3: 16 sums in registers. Of a block on the diagonal only the lower half is made. */
enum { SIDE = 4 };

KERNEL void gram_block(const double *const *a, const double *const *b, ptrdiff_t count, bool diagonal,
                       double sum[SIDE][SIDE])
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
            for (int i = diagonal ? j : 0; i < SIDE; i++) {
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
            if (p == q) {
                gram_block(a, b, count, true, block);
            } else {
                gram_block(a, b, count, false, block);
            }
            for (ptrdiff_t i = p; i < p + SIDE && i < points; i++) {
                for (ptrdiff_t j = q; j < q + SIDE && j <= i; j++) {
                    sum[i * (i + 1) / 2 + j] += block[i - p][j - q];
                }
            }
        }
    }
}
#endif
