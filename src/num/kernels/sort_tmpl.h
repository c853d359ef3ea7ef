/* Reading rows and sorting the columns of a group of lanes. Part of kernels_tmpl.h, and for 16-bit numbers of sort_16_tmpl.h. */

/* Loops over a column that is to stay in registers. */
#if defined(__clang__)
#define UNROLL /* it does so by itself, and complains where it cannot */
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* ---- reading ahead ----
 *
 * More rows than some ten are too many streams for the processor's own prefetching when each is visited one cache line at a time. So
 * while one window of coordinates is worked on, the next is fetched into the second-level cache: row by row, a long run of each, the
 * requests spread over the work (a burst of them would be dropped). Behind the span the next one is fetched; addresses are only hints. */

enum { LINE = 64, RUN = 4 * LINE };

typedef struct ahead {
    const row *rows;
    ptrdiff_t n;
    ptrdiff_t window; /* bytes per row, a multiple of RUN; 0: the span is too short to bother, or the rows are few */
    ptrdiff_t from;   /* bytes from the start of the rows to the window being fetched */
    ptrdiff_t row, at;
    ptrdiff_t credit; /* bytes that may be fetched by now */
#ifdef ROWS_STORED
    ptrdiff_t count;                  /* coordinates of the span */
    ptrdiff_t sorted_from, sorted_to; /* of these the columns are sorted, */
    stored *sorted;                   /* as vectors of SORT_16_LANES numbers */
    bool large;                       /* a sum of their numbers might not be finite */
#endif
} ahead;

KERNEL ahead look_ahead_of(const rfi_span *span)
{
    enum { FEW_ROWS = 8, FOOTPRINT = 65536, LEAST = 2 * RUN, MOST = 16 * RUN };
    ptrdiff_t window = MOST;
    while (window > LEAST && window * span->n > FOOTPRINT) {
        window /= 2;
    }
    bool pays = span->n > FEW_ROWS && span->count * (ptrdiff_t)sizeof(stored) >= 2 * window;
    ahead a = {.rows = (const row *)span->rows, .n = span->n, .window = pays ? window : 0, .from = window};
#ifdef ROWS_STORED
    a.count = span->count;
    a.sorted = (stored *)(void *)((char *)span->scratch + RFI_SPAN_COLUMNS * span->n * 64);
#endif
    return a;
}

/* `bytes` of the present window have been worked on: as many of the next are fetched. */
KERNEL void look_ahead(ahead *a, ptrdiff_t bytes)
{
    if (!a->window) {
        return;
    }
    a->credit += bytes;
    for (; a->credit >= RUN; a->credit -= RUN) {
        row p = a->rows[a->row] + a->from + a->at;
        v_prefetch(p);
        v_prefetch(p + LINE);
        v_prefetch(p + 2 * LINE);
        v_prefetch(p + 3 * LINE);
        a->at += RUN;
        if (a->at == a->window) {
            a->at = 0;
            a->row++;
        }
        if (a->row == a->n) {
            a->row = 0;
            a->from += a->window;
        }
    }
}

/* ---- sorting ----
 *
 * Numbers are sorted as keys: the numbers themselves, or integers in the same order where the processor compares those faster. */

#define SORT2(i, j)                                                                                                    \
    do {                                                                                                               \
        const key low = k_min(x[i], x[j]);                                                                             \
        x[j] = k_max(x[i], x[j]);                                                                                      \
        x[i] = low;                                                                                                    \
    } while (0)
#include "num/kernels/networks.h"

enum { BLOCK = 32 };

/* Loads n <= 32 rows into keys x. Returns their sum, which is not finite if one of them is not (or if the sum overflows: harmless, the
 * coordinate is then done by the scalar rule). */
KERNEL vec load_keys(const row *rows, ptrdiff_t at, ptrdiff_t lanes, key *x, int n)
{
    vec sum = v_set(0);
    UNROLL
    for (int i = 0; i < n; i++) {
        vec value = load_lanes(rows[i], at, lanes);
        sum = gathered(sum, value);
        x[i] = k_of(value);
    }
    return sum;
}

/* Keys, or the values they stand for, into the column. */
KERNEL void store_keys(const key *x, int n, bool as_values, void *column)
{
    key *keys = column;
    vec *values = column;
    UNROLL
    for (int i = 0; i < n; i++) {
        if (as_values) {
            values[i] = k_value(x[i]);
        } else {
            keys[i] = x[i];
        }
    }
}

/* Up to 16 rows are sorted at once; of more, the first 16 are sorted before the others are loaded, to keep them in registers. */
#define SORT_SHORT(n, rest)                                                                                            \
    KERNEL vec sorted_##n(const row *rows, ptrdiff_t at, ptrdiff_t lanes, key *x)                                      \
    {                                                                                                                  \
        vec sum = load_keys(rows, at, lanes, x, n);                                                                    \
        sort_##n(x);                                                                                                   \
        return sum;                                                                                                    \
    }                                                                                                                  \
    KERNEL void resort_##n(key *x)                                                                                     \
    {                                                                                                                  \
        sort_##n(x);                                                                                                   \
    }
#define SORT_LONG(n, rest)                                                                                             \
    KERNEL vec sorted_##n(const row *rows, ptrdiff_t at, ptrdiff_t lanes, key *x)                                      \
    {                                                                                                                  \
        vec sum = load_keys(rows, at, lanes, x, (n) - (rest));                                                         \
        sort_16(x);                                                                                                    \
        sum = gathered(sum, load_keys(rows + ((n) - (rest)), at, lanes, x + ((n) - (rest)), rest));                    \
        sort_##rest(x + ((n) - (rest)));                                                                               \
        join_##n(x);                                                                                                   \
        return sum;                                                                                                    \
    }                                                                                                                  \
    KERNEL void resort_##n(key *x)                                                                                     \
    {                                                                                                                  \
        sort_16(x);                                                                                                    \
        sort_##rest(x + ((n) - (rest)));                                                                               \
        join_##n(x);                                                                                                   \
    }
FOR_EACH_SHORT(SORT_SHORT)
FOR_EACH_LONG(SORT_LONG)

/* The whole column sorted, as keys or values; or the values of its two middle places alone (the compiler drops the comparators they do
 * not need). */
#define LOAD_AND_SORT(n, rest)                                                                                         \
    static __attribute__((noinline))                                                                                   \
    vec load_and_sort_##n(const row *rows, ptrdiff_t at, ptrdiff_t lanes, void *column, bool as_values)                \
    {                                                                                                                  \
        key x[n];                                                                                                      \
        vec sum = sorted_##n(rows, at, lanes, x);                                                                      \
        store_keys(x, n, as_values, column);                                                                           \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static __attribute__((noinline)) vec load_middle_##n(const row *rows, ptrdiff_t at, ptrdiff_t lanes, vec *column)  \
    {                                                                                                                  \
        key x[n];                                                                                                      \
        vec sum = sorted_##n(rows, at, lanes, x);                                                                      \
        column[((n)-1) / 2] = k_value(x[((n)-1) / 2]);                                                                 \
        column[(n) / 2] = k_value(x[(n) / 2]);                                                                         \
        return sum;                                                                                                    \
    }
FOR_EACH_SHORT(LOAD_AND_SORT)
FOR_EACH_LONG(LOAD_AND_SORT)

typedef vec (*load_and_sort)(const row *rows, ptrdiff_t at, ptrdiff_t lanes, void *column, bool as_values);
typedef vec (*load_the_middle)(const row *rows, ptrdiff_t at, ptrdiff_t lanes, vec *column);

#define SORTER(n, rest) load_and_sort_##n,
static const load_and_sort sorters[BLOCK + 1] = {NULL, FOR_EACH_SHORT(SORTER) FOR_EACH_LONG(SORTER)};
#define MIDDLE(n, rest) load_middle_##n,
static const load_the_middle middles[BLOCK + 1] = {NULL, FOR_EACH_SHORT(MIDDLE) FOR_EACH_LONG(MIDDLE)};

/* ---- merging, above 32 rows ---- */

/* Sorts fewer than 32 places that are in memory already. */
#define RESORT(n, rest)                                                                                                \
    case n:                                                                                                            \
        resort_##n(x);                                                                                                 \
        store_keys(x, n, as_values, x);                                                                                \
        break;

static __attribute__((noinline)) void sort_block(key *x, ptrdiff_t n, bool as_values)
{
    switch (n) {
        FOR_EACH_SHORT(RESORT)
        FOR_EACH_LONG(RESORT)
    default:
        break;
    }
}

static __attribute__((noinline)) void merge_block(key *column, bool as_values)
{
    key x[BLOCK];
    UNROLL
    for (int i = 0; i < BLOCK; i++) {
        x[i] = column[i];
    }
    merge_32(x);
    store_keys(x, BLOCK, as_values, column);
}

/* One level that compares a block with another, upwards (step 1) or downwards (-1) from *b, and the rest of the merge for the lesser or
 * the greater half. Not inlined: the compiler would keep all 64 values for the other half. */
KERNEL void merge_half(const key *a, const key *b, ptrdiff_t step, bool greater, bool as_values, void *half)
{
    key x[BLOCK];
    UNROLL
    for (int i = 0; i < BLOCK; i++) {
        x[i] = greater ? k_max(a[i], b[i * step]) : k_min(a[i], b[i * step]);
    }
    merge_32(x);
    store_keys(x, BLOCK, as_values, half);
}

static __attribute__((noinline)) void merge_less(const key *a, const key *b, ptrdiff_t step, bool as_values, void *half)
{
    merge_half(a, b, step, false, as_values, half);
}

static __attribute__((noinline)) void merge_greater(const key *a, const key *b, ptrdiff_t step, bool as_values,
                                                    void *half)
{
    merge_half(a, b, step, true, as_values, half);
}

/* Two blocks of 32, compared from both ends (mirrored) or place by place. The lesser half waits aside. */
KERNEL void merge_two_blocks(key *column, bool mirrored, bool as_values)
{
    key less[BLOCK];
    const key *other = column + (mirrored ? 2 * BLOCK - 1 : BLOCK);
    merge_less(column, other, mirrored ? -1 : 1, as_values, less);
    merge_greater(column, other, mirrored ? -1 : 1, as_values, column + BLOCK);
    UNROLL
    for (int i = 0; i < BLOCK; i++) {
        column[i] = less[i];
    }
}

/* Comparators (i, k), (j, l) and then (i, j), (k, l): two levels of a merge while the values are in registers. */
KERNEL void two_levels(key *column, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k, ptrdiff_t l)
{
    key x[4] = {column[i], column[j], column[k], column[l]};
    SORT2(0, 2);
    SORT2(1, 3);
    SORT2(0, 1);
    SORT2(2, 3);
    column[i] = x[0];
    column[j] = x[1];
    column[k] = x[2];
    column[l] = x[3];
}

/* Comparators (i, l), (j, k) and then (i, j), (k, l). */
KERNEL void two_levels_mirrored(key *column, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k, ptrdiff_t l)
{
    key x[4] = {column[i], column[j], column[k], column[l]};
    SORT2(0, 3);
    SORT2(1, 2);
    SORT2(0, 1);
    SORT2(2, 3);
    column[i] = x[0];
    column[j] = x[1];
    column[k] = x[2];
    column[l] = x[3];
}

/* Bitonic merge of two sorted runs of the same length, a multiple of 32. Levels are taken two at a time, the last ones in registers;
 * where one is left over it goes with those. */
static void merge_equal_runs(key *x, ptrdiff_t run, bool as_values)
{
    ptrdiff_t n = 2 * run;
    if (run == BLOCK) {
        merge_two_blocks(x, true, as_values);
        return;
    }
    ptrdiff_t d = run / 2;
    for (ptrdiff_t i = 0; i < d;
         i++) { /* pairs from both ends, and level d inside each half, whose upper one is mirrored */
        two_levels_mirrored(x, i, i + d, run + d - 1 - i, n - 1 - i);
    }
    for (d /= 2; d >= 2 * BLOCK; d /= 4) {
        for (ptrdiff_t start = 0; start < n; start += 2 * d) {
            for (ptrdiff_t i = start; i < start + d / 2; i++) {
                two_levels(x, i, i + d / 2, i + d, i + d + d / 2);
            }
        }
    }
    for (ptrdiff_t start = 0; d == BLOCK && start < n; start += 2 * BLOCK) {
        merge_two_blocks(x + start, false, as_values);
    }
    for (ptrdiff_t start = 0; d < BLOCK && start < n; start += BLOCK) {
        merge_block(x + start, as_values);
    }
}

/* The same of sorted runs x[0..run) and x[run..n), n < 2 run. Places beyond n count as +infinity and never move, so comparators that
 * touch them are left out. */
static void merge_unequal_runs(key *x, ptrdiff_t run, ptrdiff_t n, bool as_values)
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
            merge_block(x + start, as_values);
        } else {
            sort_block(x + start, n - start, as_values);
        }
    }
}

/* Sorts n > 32 rows up to two runs: x[0..run) and x[run..n). Returns their sum. */
static vec load_two_runs(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, key *x, ahead *a, ptrdiff_t *run)
{
    vec sum = v_set(0);
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        ptrdiff_t size = n - start < BLOCK ? n - start : BLOCK;
        sum = gathered(sum, sorters[size](rows + start, at, lanes, x + start, false));
        look_ahead(a, size * ROW_BYTES);
    }
    for (*run = BLOCK; 2 * *run < n; *run *= 2) {
        for (ptrdiff_t start = 0; start + *run < n; start += 2 * *run) {
            if (n - start >= 2 * *run) {
                merge_equal_runs(x + start, *run, false);
            } else {
                merge_unequal_runs(x + start, *run, n - start, false);
            }
        }
    }
    return sum;
}

static vec load_sorted_long(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, void *column, ahead *a)
{
    ptrdiff_t run = 0;
    vec sum = load_two_runs(rows, n, at, lanes, column, a, &run);
    if (n == 2 * run) {
        merge_equal_runs(column, run, true);
    } else {
        merge_unequal_runs(column, run, n, true);
    }
    return sum;
}

/* Of two sorted runs the k = n/2 smallest values are the smaller ones of the pairs (i, k-1-i): no need to merge. The greatest of them
 * and the smallest of the others are the middle places. */
static vec load_middle_long(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, void *column, ahead *a)
{
    const key *first = column;
    vec *values = column;
    ptrdiff_t run = 0;
    vec sum = load_two_runs(rows, n, at, lanes, column, a, &run);
    const key *second = first + run;
    ptrdiff_t k = n / 2; /* <= run, >= length of the second run */
    ptrdiff_t unpaired = k - (n - run);
    key low = first[unpaired ? unpaired - 1 : 0];
    key high = k_max(first[k - 1], second[0]);
    low = unpaired ? low : k_min(first[0], second[k - 1]);
    for (ptrdiff_t i = unpaired; i < k; i++) {
        low = k_max(low, k_min(first[i], second[k - 1 - i]));
        high = k_min(high, k_max(first[i], second[k - 1 - i]));
    }
    high = k < run ? k_min(high, first[k]) : high;
    values[k - 1] = k_value(low);
    values[k] = k_value(high);
    return sum;
}

/* The sorted column of the group of lanes at `at`. */
KERNEL vec load_sorted_here(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, vec *column, ahead *a)
{
    if (n > BLOCK) {
        return load_sorted_long(rows, n, at, lanes, column, a);
    }
    look_ahead(a, n * ROW_BYTES);
    return sorters[n](rows, at, lanes, column, true);
}

/* The same, when only the middle places (n-1)/2 and n/2 are wanted. */
KERNEL vec load_middle_here(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, vec *column, ahead *a)
{
    if (n > BLOCK) {
        return load_middle_long(rows, n, at, lanes, column, a);
    }
    look_ahead(a, n * ROW_BYTES);
    return middles[n](rows, at, lanes, column);
}
