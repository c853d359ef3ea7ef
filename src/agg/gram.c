/* Gram matrices of the points of a pass, tile by tile.
 *
 *   G_pq = sum over m of (p(m) - mu(m)) (q(m) - mu(m)),   mu(m) = median of the rows at m
 *
 * Centring makes the differences of nearly equal models exact before they are squared, and the median as the centre cannot be moved far
 * by a minority.
 *
 * What rules use are squared distances, D = G_pp + G_qq - 2 G_pq. float32 rows are summed in single precision first, a chunk at a time.
 * With u = 2^-24 each number of the chunk is good to 3 u of itself, a product to 7 u, and RFI_GRAM_ADDITIONS + 4 = 68 roundings follow
 * before the sums go on in double precision: G_pq is off by at most 76 u (G_pp + G_qq) / 2 and D by 152 u (G_pp + G_qq). Where D is less
 * than CLOSE = 2^-6 of G_pp + G_qq, which honest rows never are, but colluders can be, both rows are done again in double precision. So
 * the squared distances are good to 152 u / CLOSE = 0.06 % at the very worst; rounding errors being random, 1e-7 is usual.
 *
 * Cost that an attacker can force: up to half of the rows can be repaired, which takes a quarter of the time of the double sums of all. If
 * more of them are close to one another, the rest of the tile (at least three chunks of four) is done in double precision at once. */
#include "agg/plan.h"
#include "base/error.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Rows in single precision end before the place of the origin in double precision: 4 (n + 2) SINGLE_STRIDE <= 8 n GRAM_STRIDE bytes. */
enum { FEWEST_SINGLE = 3 };
static_assert(4 * (FEWEST_SINGLE + 2) * RFI_SINGLE_STRIDE <= 8 * FEWEST_SINGLE * RFI_GRAM_STRIDE, "they overlap");

/* Squared distances below this part of the squared lengths are repaired. */
#define CLOSE 0x1p-6
/* Squared lengths below it may have lost products that are too small for single precision. */
#define LEAST_SQUARE 0x1p-80
/* Numbers up to it may be squared in single precision, and their sums are at most the next. */
#define LARGEST_SINGLE 0x1p+58
#define LARGEST_SQUARE 0x1p+126

void rfi_gram_chunk(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t segment, ptrdiff_t m,
                    ptrdiff_t count)
{
    ptrdiff_t rows = rfi_space_rows(plan, space);
    ptrdiff_t points = rfi_space_points(plan, space);
    for (ptrdiff_t t = 0; t < count; t++) {
        (void)rfi_column_points(plan, worker, space, t, segment, m + t);
        double mu = rfi_points_median(worker, rows);
        for (ptrdiff_t p = 0; p < points; p++) {
            bool absent = p < rows && worker->gap[p];
            worker->centred[p * RFI_CHUNK + t] = absent ? 0 : worker->points[p] - mu;
        }
    }
    double *sum = rfi_treesum_leaf(&worker->gram);
    for (ptrdiff_t p = 0; p < points; p++) {
        const double *x = worker->centred + p * RFI_CHUNK;
        for (ptrdiff_t q = 0; q <= p; q++) {
            const double *y = worker->centred + q * RFI_CHUNK;
            double dot = 0;
            for (ptrdiff_t t = 0; t < count; t++) {
                dot += x[t] * y[t];
            }
            *sum++ += dot;
        }
    }
}

/* Magnitudes whose squares neither overflow nor vanish when added up: all of float32, most of float64. */
static bool in_gram_range(double largest)
{
    return largest == 0 || (largest < 0x1p+500 && largest > 0x1p-400);
}

/* Coordinates m .. m + count - 1 of a segment, at most RFI_GRAM_CHUNK. */
typedef struct gram_piece {
    const rfi_space *space;
    ptrdiff_t segment, m, count;
} gram_piece;

/* Whole vectors. */
static ptrdiff_t padded(const gram_piece *piece)
{
    return (piece->count + 15) / 16 * 16;
}

/* Points beside the rows, as seen from the medians: the origin is -mu, the remembered centre v - mu. False if one is beyond `largest`. */
static bool centre_extra_points(const reef_plan *plan, rfi_worker *worker, const gram_piece *piece, double largest)
{
    double *next = worker->centred_rows + rfi_space_rows(plan, piece->space) * RFI_GRAM_STRIDE;
    for (int extra = 0; extra < 2; extra++) {
        if (!(extra ? piece->space->centre : piece->space->origin)) {
            continue;
        }
        for (ptrdiff_t t = 0; t < piece->count; t++) {
            double value = 0;
            if (extra && plan->centre_known) {
                value = rfi_state_value(plan->input.state, piece->segment, piece->m + t);
            } else if (extra && (plan->needs & REEF_NEED_MEDIAN)) {
                value = worker->medians[t];
            }
            next[t] = value - worker->medians[t];
            if (fabs(next[t]) > largest) {
                return false;
            }
        }
        next += RFI_GRAM_STRIDE;
    }
    return true;
}

/* Zeros behind a short chunk, up to whole vectors. */
static void pad_chunk(double *centred, ptrdiff_t points, const gram_piece *piece)
{
    for (ptrdiff_t p = 0; p < points; p++) {
        for (ptrdiff_t t = piece->count; t < padded(piece); t++) {
            centred[p * RFI_GRAM_STRIDE + t] = 0;
        }
    }
}

/* The points of a chunk by kernels, in double precision; false if it must be done by the scalar code (non-finite or extreme values). */
static bool gram_double(reef_plan *plan, rfi_worker *worker, const gram_piece *piece)
{
    double largest = 0;
    ptrdiff_t points = rfi_space_points(plan, piece->space);
    rfi_span span = {.rows = worker->used,
                     .n = rfi_space_rows(plan, piece->space),
                     .count = piece->count,
                     .scratch = worker->scratch};
    if (!worker->row_kernels->centre(&span, worker->centred_rows, RFI_GRAM_STRIDE, worker->medians, &largest) ||
        !in_gram_range(largest) || !centre_extra_points(plan, worker, piece, 0x1p+500)) {
        return false;
    }
    pad_chunk(worker->centred_rows, points, piece);
    plan->kernels->gram(worker->centred_rows, RFI_GRAM_STRIDE, points, padded(piece), rfi_treesum_leaf(&worker->gram));
    return true;
}

/* Whether two points with these squared lengths and this product are close. */
static inline bool is_close(double one, double other, double product)
{
    double both = one + other;
    return both - 2 * product < CLOSE * both;
}

/* Whether point p is close to one before it; row: its products with them. Without a branch, so that compilers make vectors of it. */
static bool any_close(const double *square, const double *row, ptrdiff_t p)
{
    int64_t found = 0;
    for (ptrdiff_t q = 0; q < p; q++) {
        found |= is_close(square[p], square[q], row[q]);
    }
    return found;
}

/* Lists the points that are close to another, or so near the centre that products may have been lost. */
static ptrdiff_t list_close(rfi_worker *worker, ptrdiff_t points)
{
    double *square = worker->centred; /* not in use now */
    bool *close = worker->close;
    for (ptrdiff_t p = 0; p < points; p++) {
        const double *row = worker->single_sums + p * (p + 1) / 2;
        square[p] = row[p];
        close[p] = row[p] < LEAST_SQUARE;
        bool found = any_close(square, row, p);
        for (ptrdiff_t q = 0; found && q < p; q++) {
            bool near = is_close(square[p], square[q], row[q]);
            close[p] = close[p] || near;
            close[q] = close[q] || near;
        }
    }
    ptrdiff_t count = 0;
    for (ptrdiff_t p = 0; p < points; p++) {
        worker->close_points[count] = p;
        count += close[p];
    }
    return count;
}

/* Whether no number of the chunk and none of its squares left the range of single precision. */
static bool squares_finite(const rfi_worker *worker, ptrdiff_t points)
{
    bool finite = true;
    for (ptrdiff_t p = 0; p < points; p++) {
        finite = finite && worker->single_sums[p * (p + 3) / 2] < LARGEST_SQUARE;
    }
    return finite;
}

/* Whether all points are the same, as where a model is frozen. */
static bool all_agree(const rfi_worker *worker, ptrdiff_t points, const gram_piece *piece)
{
    for (ptrdiff_t p = 0; p < points; p++) {
        const float *row = worker->single_rows + p * RFI_SINGLE_STRIDE;
        for (ptrdiff_t t = 0; t < piece->count; t++) {
            if (fabsf(row[t]) > 0) {
                return false;
            }
        }
    }
    return true;
}

/* The products of the listed points with each other, anew in double precision. */
static void repair_close(const reef_plan *plan, rfi_worker *worker, const gram_piece *piece, ptrdiff_t count)
{
    ptrdiff_t rows = rfi_space_rows(plan, piece->space);
    ptrdiff_t raw = 0;
    double *to = worker->centred_rows;
    for (; raw < count && worker->close_points[raw] < rows; raw++) {
        worker->close_rows[raw] = worker->used[worker->close_points[raw]];
    }
    rfi_span span = {.rows = worker->close_rows, .n = raw, .count = piece->count};
    worker->row_kernels->away(&span, worker->medians, to, RFI_GRAM_STRIDE);
    for (ptrdiff_t i = raw; i < count; i++) { /* origin and centre, whose places are behind those of all rows */
        memmove(to + i * RFI_GRAM_STRIDE, to + worker->close_points[i] * RFI_GRAM_STRIDE, RFI_GRAM_STRIDE * sizeof *to);
    }
    pad_chunk(to, count, piece);
    double *again = worker->repaired_sums;
    memset(again, 0, (size_t)rfi_packed_length(count) * sizeof *again);
    plan->kernels->gram(to, RFI_GRAM_STRIDE, count, padded(piece), again);
    for (ptrdiff_t i = 0; i < count; i++) {
        ptrdiff_t p = worker->close_points[i];
        for (ptrdiff_t j = 0; j <= i; j++) {
            worker->single_sums[p * (p + 1) / 2 + worker->close_points[j]] = *again++;
        }
    }
}

/* Origin and centre in single precision too, and zeros behind a short chunk. */
static void narrow_extra_points(const reef_plan *plan, rfi_worker *worker, const gram_piece *piece, ptrdiff_t points)
{
    ptrdiff_t rows = rfi_space_rows(plan, piece->space);
    for (ptrdiff_t p = 0; p < points; p++) {
        float *row = worker->single_rows + p * RFI_SINGLE_STRIDE;
        for (ptrdiff_t t = 0; p >= rows && t < piece->count; t++) {
            row[t] = (float)worker->centred_rows[p * RFI_GRAM_STRIDE + t];
        }
        for (ptrdiff_t t = piece->count; t < padded(piece); t++) {
            row[t] = 0;
        }
    }
}

/* The same in single precision, repaired where that does not do; false: nothing was added, double precision is needed. */
static bool gram_single(reef_plan *plan, rfi_worker *worker, const gram_piece *piece)
{
    ptrdiff_t points = rfi_space_points(plan, piece->space);
    ptrdiff_t length = rfi_packed_length(points);
    rfi_span span = {.rows = worker->used,
                     .n = rfi_space_rows(plan, piece->space),
                     .count = piece->count,
                     .scratch = worker->scratch};
    if (!worker->row_kernels->centre_single(&span, worker->single_rows, RFI_SINGLE_STRIDE, worker->medians) ||
        !centre_extra_points(plan, worker, piece, LARGEST_SINGLE)) {
        return false;
    }
    narrow_extra_points(plan, worker, piece, points);
    memset(worker->single_sums, 0, (size_t)length * sizeof(double));
    plan->kernels->gram_single(worker->single_rows, RFI_SINGLE_STRIDE, points, padded(piece), worker->single_sums);
    if (!squares_finite(worker, points)) {
        return false;
    }
    ptrdiff_t close = list_close(worker, points);
    if (2 * close > points) {
        return all_agree(worker, points, piece);
    }
    if (close > 0) {
        repair_close(plan, worker, piece, close);
    }
    double *sum = rfi_treesum_leaf(&worker->gram);
    for (ptrdiff_t i = 0; i < length; i++) {
        sum[i] += worker->single_sums[i];
    }
    return true;
}

static bool is_mixed(const reef_plan *plan, const rfi_space *space)
{
    return space->mixed && plan->agg->count > 1;
}

/* Behind pre-aggregators: worker->used gets the mixed rows in place of the raw ones. */
static bool mix_used(const reef_plan *plan, rfi_worker *worker, const gram_piece *piece)
{
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        worker->rows_mixed[p] = worker->used[p];
    }
    return rfi_mix_rows(plan, worker, worker->rows_mixed, piece->count);
}

/* One chunk by the kernels; false if the scalar code must do it. *single: single precision is worth trying. */
static bool gram_fast(reef_plan *plan, rfi_worker *worker, const gram_piece *piece, ptrdiff_t m0,
                      const void *const *rows, bool *single)
{
    bool raw = !is_mixed(plan, piece->space);
    if (!plan->kernels || (!raw && !plan->mixes)) {
        return false;
    }
    rfi_rows_used(plan, worker, piece->m, m0, rows);
    unsigned flush = rfi_flush_begin();
    bool there = raw || mix_used(plan, worker, piece);
    *single = there && *single && gram_single(plan, worker, piece);
    bool done = *single || (there && gram_double(plan, worker, piece));
    rfi_flush_end(flush);
    return done;
}

void rfi_gram_tile(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t segment, ptrdiff_t m,
                   ptrdiff_t count, ptrdiff_t m0, const void *const *rows)
{
    assert(count >= 1 && count <= RFI_TILE && m >= m0 && m + count <= plan->m.lengths[segment]);
    bool single = plan->kernels && plan->kernels->gram_single && rfi_space_rows(plan, space) >= FEWEST_SINGLE;
    for (ptrdiff_t at = m; at < m + count; at += RFI_GRAM_CHUNK) {
        ptrdiff_t end = m + count - at < RFI_GRAM_CHUNK ? m + count : at + RFI_GRAM_CHUNK;
        gram_piece piece = {space, segment, at, end - at};
        if (gram_fast(plan, worker, &piece, m0, rows, &single)) {
            continue;
        }
        for (ptrdiff_t from = at; from < end; from += RFI_CHUNK) {
            ptrdiff_t part = end - from < RFI_CHUNK ? end - from : RFI_CHUNK;
            rfi_fetch(plan, worker, rows, from - m0, part);
            rfi_gram_chunk(plan, worker, space, segment, from, part);
        }
    }
}
