/* Lengths and sketches of residuals from the coordinatewise median, without storing the residuals. Part of kernels_tmpl.h.
 *
 * Sums are in the type of the data, over at most RFI_SPAN_MAX coordinates: a part in 10^5 of a length at worst. Each group of 64
 * coordinates is added from another place on: its residuals are written into a ring, whose beginning is repeated behind its end, and read
 * from where the first place is. Reading across cache lines costs less than adding across them. */

/* Numbers from ring to ring: whole cache lines. */
enum { RING = RFI_SKETCH_GROUP + 2 * RFI_SKETCH_LANES };

/* Where the sums of a span are made, row by row. */
typedef struct residual_sums {
    ptrdiff_t n;
    real *rings;  /* n x RING: residuals of a group, with signs */
    real *places; /* n x 64 */
    real *lanes;  /* n x RFI_SKETCH_LANES: squares */
} residual_sums;

/* Adds a group: squares by lane, residuals to their places. */
KERNEL void add_rings(const residual_sums *sums, ptrdiff_t shift)
{
    const real *ring = sums->rings;
    real *places = sums->places;
    real *lanes = sums->lanes;
    for (ptrdiff_t l = 0; l < sums->n; l++, ring += RING, places += RFI_SKETCH_GROUP, lanes += RFI_SKETCH_LANES) {
        vec sum = v_load(lanes);
        UNROLL
        for (ptrdiff_t i = 0; i < RFI_SKETCH_GROUP; i += LANES) {
            vec x = v_load(ring + ((i - shift) & (RFI_SKETCH_GROUP - 1)));
            sum = v_fma(x, x, sum);
            v_store(places + i, v_add(x, v_load(places + i)));
        }
        v_store(lanes, sum);
    }
}

/* Residuals of the group of lanes at `at` from their median, with signs, into the rings from `place` on. */
KERNEL void fill_rings(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, middle m, vec signs, ptrdiff_t place,
                       const residual_sums *sums)
{
    const row *rows = (const row *)span->rows;
    ptrdiff_t n = sums->n;
    real *to = sums->rings + place;
    vec half = v_mul(signs, m.half);
    for (ptrdiff_t l = 0; l < n; l++, to += RING) {
        vec residual = v_fma(signs, v_sub(load_lanes(rows[l], at, lanes), m.upper), half);
        v_store(to, residual);
        if (place == 0) {
            v_store(to + RFI_SKETCH_GROUP, residual);
        }
    }
}

/* One group of up to 64 coordinates into the rings; false if some value is not finite. What is in the rings, of the group before, is added
 * as late as possible: numbers just written are slow to read from other places than they were written to. */
KERNEL bool residual_group(const rfi_span *span, const rfi_turns *turns, ptrdiff_t from, const residual_sums *sums,
                           ahead *a)
{
    vec *column = span->scratch;
    for (ptrdiff_t at = from; at < from + RFI_SKETCH_GROUP; at += LANES) {
        ptrdiff_t lanes = at < span->count ? lanes_at(span, at) : 0;
        middle m = {v_set(0), v_set(0), v_set(0)};
        if (lanes > 0) {
            vec sum = load_middle((const row *)span->rows, sums->n, at, lanes, column, a);
            m = middle_of(column, sums->n);
            if (m_bits(m_or(not_finite(sum), m_or(not_finite(m.upper), not_finite(m.half))))) {
                return false;
            }
        }
        if (at == from && from > 0) {
            add_rings(sums, turns->shift[from / RFI_SKETCH_GROUP - 1]);
        }
        if (lanes == LANES) {
            fill_rings(span, at, LANES, m, v_load((const real *)turns->sign + at), at - from, sums);
        } else { /* nothing behind the end */
            fill_rings(span, at, lanes, m, v_load((const real *)turns->sign + at), at - from, sums);
        }
    }
    return true;
}

static bool NAME(residual)(const rfi_span *span, const rfi_turns *turns, void *room, double *squares, double *sketch)
{
    ptrdiff_t n = span->n;
    residual_sums sums = {.n = n, .rings = room};
    sums.places = sums.rings + n * RING;
    sums.lanes = sums.places + n * RFI_SKETCH_GROUP;
    ahead a = look_ahead_of(span);
    ptrdiff_t from = 0;
    memset(sums.places, 0, (size_t)(n * (RFI_SKETCH_GROUP + RFI_SKETCH_LANES)) * sizeof(real));
    for (; from < span->count; from += RFI_SKETCH_GROUP) {
        if (!residual_group(span, turns, from, &sums, &a)) {
            return false;
        }
    }
    add_rings(&sums, turns->shift[from / RFI_SKETCH_GROUP - 1]);
    for (ptrdiff_t l = 0; l < n; l++) {
        squares[l] = v_total(v_load(sums.lanes + l * RFI_SKETCH_LANES));
    }
    for (ptrdiff_t i = 0; i < n * RFI_SKETCH_GROUP; i++) {
        sketch[i] = (double)sums.places[i];
    }
    return true;
}
