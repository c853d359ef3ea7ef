/* Lengths and sketches of residuals: the kernel of every instruction set against sums in double precision. */
#include "agg/recall.h"
#include "num/kernels/kernels.h"
#include "num/order.h"
#include "num/rng.h"
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 33, LENGTH = 4096, KEY = 77 };

static double values[ROWS][LENGTH];
static double centred[ROWS][LENGTH];
static float narrow[ROWS][LENGTH];

static void make_rows(ptrdiff_t n, ptrdiff_t count, uint32_t seed)
{
    double column[ROWS];
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 1, 0, 0, 0);
    for (ptrdiff_t m = 0; m < count; m++) {
        for (ptrdiff_t l = 0; l < n; l++) {
            narrow[l][m] = (float)(100 + rfi_rng_normal(&rng));
            values[l][m] = column[l] = (double)narrow[l][m];
        }
        double median = rfi_median(column, n, RFI_MEDIAN_AVERAGE);
        for (ptrdiff_t l = 0; l < n; l++) {
            centred[l][m] = values[l][m] - median;
        }
    }
}

static void check_kernel(const rfi_kernels *kernels, bool single, ptrdiff_t n, ptrdiff_t count)
{
    static double room[RFI_RESIDUAL_ROOM(ROWS)], signs[RFI_SPAN_MAX], squares[ROWS], sketch[ROWS * RFI_SKETCH_GROUP];
    static double want_squares[ROWS], want_sketch[ROWS * RFI_SKETCH_GROUP];
    unsigned char shift[RFI_SPAN_MAX / RFI_SKETCH_GROUP];
    const void *rows[ROWS];
    void *scratch = aligned_alloc(64, RFI_SPAN_SCRATCH(ROWS));
    char text[100];
    assert_non_null(scratch);
    for (ptrdiff_t l = 0; l < n; l++) {
        rows[l] = single ? (const void *)narrow[l] : (const void *)values[l];
    }
    rfi_sketch_turns(KEY, 128, count, single, signs, shift);
    const rfi_turns turns = {signs, shift};
    const rfi_span span = {.rows = rows, .n = n, .count = count, .scratch = scratch};
    assert_true(kernels->residual(&span, &turns, room, squares, sketch));
    memset(want_squares, 0, sizeof want_squares);
    memset(want_sketch, 0, sizeof want_sketch);
    rfi_squares_add(&centred[0][0], LENGTH, n, count, want_squares);
    rfi_sketch_add(KEY, RFI_SKETCH_GROUP, &centred[0][0], LENGTH, n, 128, count, want_sketch);
    (void)snprintf(text, sizeof text, "%s, float%d, %td rows of %td", kernels->name, single ? 32 : 64, n, count);
    for (ptrdiff_t l = 0; l < n; l++) {
        double size = sqrt(want_squares[l]) + 1e-12;
        CHECK_CLOSE(squares[l], want_squares[l], (single ? 1e-5 : 1e-12) * size * size, text);
        for (ptrdiff_t i = 0; i < RFI_SKETCH_GROUP; i++) {
            double want = want_sketch[l * RFI_SKETCH_GROUP + i];
            CHECK_CLOSE(sketch[l * RFI_SKETCH_GROUP + i], want, (single ? 1e-5 : 1e-12) * size, text);
        }
    }
    free(scratch);
}

static void every_instruction_set(void **state)
{
    static const ptrdiff_t counts[] = {1, 17, 63, 64, 65, 200, 1024, 4000, 4096};
    static const ptrdiff_t rows[] = {2, 5, 16, 31, 32, 33};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(counts) * COUNT(rows); i++) {
        ptrdiff_t n = rows[i % COUNT(rows)];
        ptrdiff_t count = counts[i / COUNT(rows)];
        make_rows(n, count, (uint32_t)i);
        for (int single = 0; single < 2; single++) {
            for (int k = 0; rfi_kernels_at(single, k); k++) {
                check_kernel(rfi_kernels_at(single, k), single, n, count);
            }
        }
    }
}

/* The sketch keeps squared lengths on average, within its standard deviation of sqrt(2 / D), wherever they lie. */
static void lengths_are_kept(void **state)
{
    static const ptrdiff_t sizes[] = {16, 32, 64, 256};
    enum { WIDTH = 64, SPIKES = LENGTH / WIDTH };
    static double row[LENGTH];
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(sizes); i++) {
        enum { KEYS = 400 };
        double mean = 0;
        double variance = 0;
        memset(row, 0, sizeof row);
        for (ptrdiff_t m = 5; m < LENGTH; m += WIDTH) { /* one column of a matrix 64 wide */
            row[m] = 1;
        }
        for (uint64_t key = 1; key <= KEYS; key++) {
            double sketch[256] = {0};
            double squares = 0;
            rfi_sketch_add(key * UINT64_C(0xD1B54A32D192ED03), sizes[i], row, LENGTH, 1, 0, LENGTH, sketch);
            rfi_squares_add(sketch, 256, 1, 256, &squares);
            double ratio = squares / SPIKES;
            mean += ratio / KEYS;
            variance += (ratio - 1) * (ratio - 1) / KEYS;
        }
        CHECK_CLOSE(mean, 1, 0.06, "mean of the squared length");
        CHECK(variance < 1.5 * 2 / (double)sizes[i], "%td numbers: variance %g", sizes[i], variance);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_instruction_set), cmocka_unit_test(lengths_are_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
