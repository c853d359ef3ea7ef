/* Lengths and sketches of residuals from the coordinatewise median, without storing the residuals. Part of kernels_tmpl.h.
 *
 * Sums are in the type of the data, over at most RFI_SPAN_MAX coordinates: a part in 10^5 of a length at worst. Each group of 64
 * coordinates is added from another place on; twice as many places as numbers spare turning round, the caller folds them. */

/* Residuals of one group of up to 64 coordinates, n x 64; false if some value is not finite. */
KERNEL bool residual_group(const rfi_span *span, ptrdiff_t from, real *d, ahead *a)
{
    const row *rows = (const row *)span->rows;
    vec *column = span->scratch;
    for (ptrdiff_t at = from; at < from + RFI_SKETCH_GROUP; at += LANES) {
        ptrdiff_t lanes = at < span->count ? lanes_at(span, at) : 0;
        if (lanes == 0) { /* behind the end */
            for (ptrdiff_t l = 0; l < span->n; l++) {
                v_store(d + l * RFI_SKETCH_GROUP + (at - from), v_set(0));
            }
            continue;
        }
        if (m_bits(not_finite(load_middle(rows, span->n, at, lanes, column, a)))) {
            return false;
        }
        middle m = middle_of(column, span->n);
        if (m_bits(not_finite(m.upper)) || m_bits(not_finite(m.half))) {
            return false;
        }
        for (ptrdiff_t l = 0; l < span->n; l++) {
            v_store(d + l * RFI_SKETCH_GROUP + (at - from), away_from(m, load_lanes(rows[l], at, lanes)));
        }
    }
    return true;
}

/* One row of a group: squares by lane, signed residuals from `places` on. */
KERNEL void residual_row(const real *d, const real *sign, real *places, real *squares)
{
    vec sum = v_load(squares);
    for (ptrdiff_t i = 0; i < RFI_SKETCH_GROUP; i += LANES) {
        vec x = v_load(d + i);
        sum = v_fma(x, x, sum);
        v_store(places + i, v_fma(v_load(sign + i), x, v_load(places + i)));
    }
    v_store(squares, sum);
}

static bool NAME(residual)(const rfi_span *span, const rfi_turns *turns, void *room, double *squares, double *sketch)
{
    enum { PLACES = 2 * RFI_SKETCH_GROUP };
    real *d = room;
    real *places = d + span->n * RFI_SKETCH_GROUP;
    real *lanes = places + span->n * PLACES;
    ahead a = look_ahead_of(span);
    memset(places, 0, (size_t)(span->n * (PLACES + RFI_SKETCH_LANES)) * sizeof *places);
    for (ptrdiff_t from = 0; from < span->count; from += RFI_SKETCH_GROUP) {
        const real *sign = (const real *)turns->sign + from;
        ptrdiff_t shift = turns->shift[from / RFI_SKETCH_GROUP];
        if (!residual_group(span, from, d, &a)) {
            return false;
        }
        for (ptrdiff_t l = 0; l < span->n; l++) {
            residual_row(d + l * RFI_SKETCH_GROUP, sign, places + l * PLACES + shift, lanes + l * RFI_SKETCH_LANES);
        }
    }
    for (ptrdiff_t l = 0; l < span->n; l++) {
        squares[l] = v_total(v_load(lanes + l * RFI_SKETCH_LANES));
        for (ptrdiff_t i = 0; i < RFI_SKETCH_GROUP; i++) {
            sketch[l * RFI_SKETCH_GROUP + i] =
                (double)places[l * PLACES + i] + (double)places[l * PLACES + RFI_SKETCH_GROUP + i];
        }
    }
    return true;
}
