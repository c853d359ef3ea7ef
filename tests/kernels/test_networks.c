/* Sorting: the generated networks and the merges above them.
 *
 * A network that sorts every column of zeros and ones sorts everything (Knuth, 0-1 principle). The networks are run
 * here on 64 such columns at a time, one per bit, with "and" for the smaller and "or" for the larger; then through the
 * kernels of every instruction set, where the median must be the exact order statistic. */
#include "num/kernels/kernels.h"
#include "num/order.h"
#include "num/rng.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

/* ---- the networks themselves, on bits ---- */

typedef uint64_t key;
#define KERNEL static inline
#define SORT2(i, j)                                                                                                    \
    do {                                                                                                               \
        const key low = x[i] & x[j];                                                                                   \
        x[j] |= x[i];                                                                                                  \
        x[i] = low;                                                                                                    \
    } while (0)
#include "num/kernels/networks.h"

enum { LARGEST = 32 };

#define WHOLE(n, rest) [n] = sort_##n,
#define REST(n, rest) [n] = sort_##rest,
#define JOINED(n, rest) [n] = join_##n,
enum { HALF = 16 };
static void (*const sort_first[HALF + 1])(key *) = {FOR_EACH_SHORT(WHOLE)};
static void (*const sort_rest[LARGEST + 1])(key *) = {FOR_EACH_LONG(REST)};
static void (*const join[LARGEST + 1])(key *) = {FOR_EACH_LONG(JOINED)};

static void sort_network(key *x, int n)
{
    sort_first[n < HALF ? n : HALF](x);
    if (n > HALF) {
        sort_rest[n](x + HALF);
        join[n](x);
    }
}

/* Columns that are not ascending, one bit each. */
static uint64_t unsorted(const key *x, int n)
{
    uint64_t wrong = 0;
    for (int i = 0; i + 1 < n; i++) {
        wrong |= x[i] & ~x[i + 1];
    }
    return wrong;
}

/* Bit c of row i is bit i of the column number first + c. */
static void count_up(key *x, int n, uint64_t first)
{
    static const uint64_t patterns[] = {0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC, 0xF0F0F0F0F0F0F0F0,
                                        0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000, 0xFFFFFFFF00000000};
    for (int i = 0; i < n; i++) {
        x[i] = i < 6 ? patterns[i] : 0 - (first >> i & 1);
    }
}

static void every_column_of_bits_is_sorted(void **state)
{
    (void)state;
    for (int n = 2; n <= MONTE_CARLO(24, 18); n++) {
        for (uint64_t first = 0; first < (uint64_t)1 << n; first += 64) {
            key x[LARGEST];
            count_up(x, n, first);
            sort_network(x, n);
            CHECK(!unsorted(x, n), "sort_%d fails on a column of bits from %llu on", n, (unsigned long long)first);
        }
    }
}

/* Too many to try all: random ones with every number of ones, and those next to sorted, where networks usually fail. */
static void random_columns_of_bits_are_sorted(void **state)
{
    rfi_rng rng;
    (void)state;
    rfi_rng_init(&rng, 1, 2, 3, 4, 5);
    for (int n = 17; n <= LARGEST; n++) {
        for (int repeat = 0; repeat < MONTE_CARLO(20000, 500); repeat++) {
            key x[LARGEST];
            int bias = repeat % 5;
            for (int i = 0; i < n; i++) {
                uint64_t a = (uint64_t)rfi_rng_u32(&rng) << 32 | rfi_rng_u32(&rng);
                uint64_t b = (uint64_t)rfi_rng_u32(&rng) << 32 | rfi_rng_u32(&rng);
                x[i] = bias == 0 ? a
                                 : (bias == 1 ? a & b
                                              : (bias == 2                    ? a | b
                                                 : (i < n / 2) == (bias == 3) ? a & b
                                                                              : ~(a & b)));
            }
            sort_network(x, n);
            CHECK(!unsorted(x, n), "sort_%d", n);
        }
    }
}

/* All bitonic columns: ones in one stretch, around the corner or not. */
static void every_bitonic_column_is_merged(void **state)
{
    (void)state;
    for (int start = 0; start < LARGEST; start++) {
        key x[LARGEST] = {0};
        for (int length = 0; length <= LARGEST; length++) {
            for (int i = 0; i < length; i++) {
                x[(start + i) % LARGEST] |= (key)1 << length;
            }
        }
        merge_32(x);
        CHECK(!unsorted(x, LARGEST), "merge_32, ones from %d on", start);
    }
}

/* ---- through the kernels ---- */

enum { ROWS_LIMIT = 300 };

typedef struct sheet {
    double x[ROWS_LIMIT][RFI_SPAN_MAX];
    float narrow[ROWS_LIMIT][RFI_SPAN_MAX];
    ptrdiff_t n, count;
} sheet;

static sheet *s;

static int make_sheet(void **state)
{
    (void)state;
    s = malloc(sizeof *s);
    return s ? 0 : -1;
}

static int free_sheet(void **state)
{
    (void)state;
    free(s);
    return 0;
}

static void run_median(bool single, const rfi_kernels *kernels, int kind, void *out)
{
    static _Alignas(64) unsigned char scratch[RFI_SPAN_SCRATCH(ROWS_LIMIT)];
    static int32_t hard[RFI_SPAN_MAX];
    const void *rows[ROWS_LIMIT];
    for (ptrdiff_t l = 0; l < s->n; l++) {
        rows[l] = single ? (const void *)s->narrow[l] : (const void *)s->x[l];
    }
    rfi_span span = {.rows = rows, .n = s->n, .count = s->count, .out = out, .scratch = scratch, .hard = hard};
    assert_int_equal(kernels->median(&span, kind, &(rfi_kernel_report){0}), 0);
}

/* want[kind][t]: the exact order statistics. */
static void check_medians(double (*want)[RFI_SPAN_MAX], const char *what)
{
    static double out[RFI_SPAN_MAX];
    static float narrow_out[RFI_SPAN_MAX];
    for (ptrdiff_t l = 0; l < s->n; l++) {
        for (ptrdiff_t t = 0; t < s->count; t++) {
            s->narrow[l][t] = (float)s->x[l][t];
        }
    }
    for (int c = 0; c < 6; c++) {
        bool single = c % 2;
        int kind = c / 2;
        for (int k = 0; rfi_kernels_at(single, k); k++) {
            run_median(single, rfi_kernels_at(single, k), kind, single ? (void *)narrow_out : (void *)out);
            for (ptrdiff_t t = 0; t < s->count; t++) {
                double got = single ? (double)narrow_out[t] : out[t];
                CHECK(got == want[kind][t], "%s, %s, float%d, K = %td, kind %d, column %td of %td: %g instead of %g",
                      what, rfi_kernels_at(single, k)->name, single ? 32 : 64, s->n, kind, t, s->count, got,
                      want[kind][t]);
            }
        }
    }
}

static double wanted[3][RFI_SPAN_MAX];

/* All 2^K columns of zeros and ones at once: the median follows from the number of ones. */
static void kernels_on_every_column_of_bits(void **state)
{
    (void)state;
    for (s->n = 1; s->n <= 12; s->n++) {
        s->count = (ptrdiff_t)1 << s->n;
        for (ptrdiff_t t = 0; t < s->count; t++) {
            ptrdiff_t zeros = s->n - __builtin_popcountll((unsigned long long)t);
            for (ptrdiff_t l = 0; l < s->n; l++) {
                s->x[l][t] = (double)(t >> l & 1);
            }
            wanted[RFI_MEDIAN_LOWER][t] = (s->n - 1) / 2 >= zeros;
            wanted[RFI_MEDIAN_UPPER][t] = s->n / 2 >= zeros;
            wanted[RFI_MEDIAN_AVERAGE][t] = (wanted[RFI_MEDIAN_LOWER][t] + wanted[RFI_MEDIAN_UPPER][t]) / 2;
        }
        check_medians(wanted, "all bits");
    }
}

/* Zeros and ones with just enough zeros, or one too few, to make the median 0: where a wrong comparator shows. */
static void fill_bits(rfi_rng *rng, ptrdiff_t t)
{
    ptrdiff_t order[ROWS_LIMIT];
    ptrdiff_t zeros = t % 4 ? s->n / 2 - 1 + t % 4 : (ptrdiff_t)rfi_rng_below(rng, (uint32_t)s->n + 1);
    rfi_rng_permutation(rng, order, s->n);
    for (ptrdiff_t l = 0; l < s->n; l++) {
        s->x[l][t] = order[l] >= zeros;
    }
}

static void fill_column(rfi_rng *rng, ptrdiff_t t)
{
    ptrdiff_t order[ROWS_LIMIT];
    if (t % 3 < 2) {
        fill_bits(rng, t);
        return;
    }
    rfi_rng_permutation(rng, order, s->n);
    for (ptrdiff_t l = 0; l < s->n; l++) { /* distinct numbers, also ascending and descending */
        ptrdiff_t rank = t == 2 ? l : (t == 5 ? s->n - 1 - l : order[l]);
        s->x[l][t] = (double)(2 * rank - s->n);
    }
}

static void check_rows(ptrdiff_t n, ptrdiff_t count, uint32_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 6, (uint32_t)n, 0, 0);
    s->n = n;
    s->count = count;
    for (ptrdiff_t t = 0; t < count; t++) {
        double column[ROWS_LIMIT];
        fill_column(&rng, t);
        for (ptrdiff_t l = 0; l < n; l++) {
            column[l] = s->x[l][t];
        }
        rfi_sort(column, n);
        for (int kind = 0; kind < 3; kind++) {
            wanted[kind][t] = rfi_median_sorted(column, n, (rfi_median_kind)kind);
        }
    }
    check_medians(wanted, "random");
}

static void kernels_on_any_number_of_rows(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 200; n += n > 70 ? MONTE_CARLO(1, 7) : 1) {
        check_rows(n, 60 + n % 40, (uint32_t)n);
    }
    check_rows(255, 300, 1);
    check_rows(256, 300, 1);
    check_rows(257, 300, 1);
    check_rows(300, 300, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_column_of_bits_is_sorted), cmocka_unit_test(random_columns_of_bits_are_sorted),
        cmocka_unit_test(every_bitonic_column_is_merged), cmocka_unit_test(kernels_on_every_column_of_bits),
        cmocka_unit_test(kernels_on_any_number_of_rows),
    };
    return cmocka_run_group_tests(tests, make_sheet, free_sheet);
}
