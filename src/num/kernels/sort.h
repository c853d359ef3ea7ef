/* Reading rows and sorting the columns of a group of lanes. Part of template.h. */

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
} ahead;

KERNEL ahead look_ahead_of(const rfi_span *span)
{
    enum { FEW_ROWS = 8, FOOTPRINT = 65536, LEAST = 2 * RUN, MOST = 16 * RUN };
    ptrdiff_t window = MOST;
    while (window > LEAST && window * span->n > FOOTPRINT) {
        window /= 2;
    }
    bool pays = span->n > FEW_ROWS && span->count * (ptrdiff_t)sizeof(real) >= 2 * window;
    return (ahead){(const row *)span->rows, span->n, pays ? window : 0, window, 0, 0, 0};
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
        sum = v_add(sum, value);
        x[i] = k_of(value);
    }
    return sum;
}

/* The whole column sorted, or its two middle places alone (the compiler drops the comparators they do not need). */
#define LOAD_AND_SORT(n)                                                                                               \
    static __attribute__((noinline))                                                                                   \
    vec load_and_sort_##n(const row *rows, ptrdiff_t at, ptrdiff_t lanes, key *column)                                 \
    {                                                                                                                  \
        key x[n];                                                                                                      \
        vec sum = load_keys(rows, at, lanes, x, n);                                                                    \
        sort_##n(x);                                                                                                   \
        UNROLL                                                                                                         \
        for (int i = 0; i < (n); i++) {                                                                                \
            column[i] = x[i];                                                                                          \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static __attribute__((noinline)) vec load_middle_##n(const row *rows, ptrdiff_t at, ptrdiff_t lanes, key *column)  \
    {                                                                                                                  \
        key x[n];                                                                                                      \
        vec sum = load_keys(rows, at, lanes, x, n);                                                                    \
        sort_##n(x);                                                                                                   \
        column[((n)-1) / 2] = x[((n)-1) / 2];                                                                          \
        column[(n) / 2] = x[(n) / 2];                                                                                  \
        return sum;                                                                                                    \
    }
static vec load_and_sort_1(const row *rows, ptrdiff_t at, ptrdiff_t lanes, key *column)
{
    return load_keys(rows, at, lanes, column, 1);
}
FOR_EACH_NETWORK(LOAD_AND_SORT)

typedef vec (*load_and_sort)(const row *rows, ptrdiff_t at, ptrdiff_t lanes, key *column);

#define SORTER(n) load_and_sort_##n,
static const load_and_sort sorters[BLOCK + 1] = {NULL, load_and_sort_1, FOR_EACH_NETWORK(SORTER)};
#define MIDDLE(n) load_middle_##n,
static const load_and_sort middles[BLOCK + 1] = {NULL, load_and_sort_1, FOR_EACH_NETWORK(MIDDLE)};

/* Sorts a part of the column that is in memory already. */
#define RESORT(n)                                                                                                      \
    case n:                                                                                                            \
        sort_##n(x);                                                                                                   \
        break;

static __attribute__((noinline)) void sort_block(key *x, ptrdiff_t n)
{
    switch (n) {
        FOR_EACH_NETWORK(RESORT)
    default:
        break;
    }
}

static __attribute__((noinline)) void merge_block(key *column)
{
    key x[BLOCK];
    UNROLL
    for (int i = 0; i < BLOCK; i++) {
        x[i] = column[i];
    }
    merge_32(x);
    UNROLL
    for (int i = 0; i < BLOCK; i++) {
        column[i] = x[i];
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

/* Bitonic merge of two sorted runs x[0..run) and x[run..n), n <= 2 run, run a multiple of 32. Places beyond n count as
 * +infinity and never move, so comparators that touch them are left out. */
static void merge_runs(key *x, ptrdiff_t run, ptrdiff_t n)
{
    ptrdiff_t d = run / 2;
    if (n == 2 * run &&
        d >= BLOCK) { /* pairs from both ends, and the level d inside each half, whose upper one is mirrored */
        for (ptrdiff_t i = 0; i < d; i++) {
            two_levels_mirrored(x, i, i + d, run + d - 1 - i, n - 1 - i);
        }
        d /= 2;
    } else {
        for (ptrdiff_t i = 2 * run - n; i < run; i++) {
            SORT2(i, 2 * run - 1 - i);
        }
    }
    for (; n == 2 * run && d >= 2 * BLOCK; d /= 4) {
        for (ptrdiff_t start = 0; start < n; start += 2 * d) {
            for (ptrdiff_t i = start; i < start + d / 2; i++) {
                two_levels(x, i, i + d / 2, i + d, i + d + d / 2);
            }
        }
    }
    for (; d >= BLOCK; d /= 2) {
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

static vec load_sorted_long(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, key *column, ahead *a)
{
    vec sum = v_set(0);
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        ptrdiff_t size = n - start < BLOCK ? n - start : BLOCK;
        sum = v_add(sum, sorters[size](rows + start, at, lanes, column + start));
        look_ahead(a, size * (ptrdiff_t)sizeof(vec));
    }
    for (ptrdiff_t run = BLOCK; run < n; run *= 2) {
        for (ptrdiff_t start = 0; start + run < n; start += 2 * run) {
            ptrdiff_t size = n - start < 2 * run ? n - start : 2 * run;
            merge_runs(column + start, run, size);
        }
    }
    return sum;
}

/* The sorted column of the group of lanes at `at`, as keys. */
KERNEL vec load_sorted(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, key *column, ahead *a)
{
    if (n > BLOCK) {
        return load_sorted_long(rows, n, at, lanes, column, a);
    }
    look_ahead(a, n * (ptrdiff_t)sizeof(vec));
    return sorters[n](rows, at, lanes, column);
}

/* The same, when only the middle places are wanted. */
KERNEL vec load_middle(const row *rows, ptrdiff_t n, ptrdiff_t at, ptrdiff_t lanes, key *column, ahead *a)
{
    if (n > BLOCK) {
        return load_sorted_long(rows, n, at, lanes, column, a);
    }
    look_ahead(a, n * (ptrdiff_t)sizeof(vec));
    return middles[n](rows, at, lanes, column);
}
