/* The median of many coordinates and who made it.
 *
 * The report of a median is a count: the row or rows at the middle value, or half and half at the two of them, have the coordinate.
 * So the kernel is asked for the middle values and the rows are compared with them, TALLY coordinates at a time: `hits` counts the
 * coordinates per row, and as many hits as coordinates mean that no rows tie. Otherwise `ties` counts the rows per coordinate; where
 * several tie, or the scalar rule is to decide (hard), the hits are taken back and the shares settled one by one. All of this runs in
 * the floating-point mode of the kernels. */
#include "agg/fast.h"

#include <stdbool.h>
#include <string.h>

enum { TALLY = 256, LOWER = 1 };

typedef struct tally {
    reef_span *span;
    ptrdiff_t at, count;     /* coordinates under way */
    ptrdiff_t ends;          /* 1: one middle value, 2: two of them */
    double middle[2][TALLY]; /* in the type of the rows */
    double row[TALLY];       /* a row, aligned */
    int32_t ties[2][TALLY];  /* rows at that middle value */
    bool hard[TALLY];
    int32_t *hits;      /* n */
    const void **moved; /* n: the rows from `at` on */
} tally;

static size_t width_of(const reef_span *span)
{
    return span->single ? sizeof(float) : sizeof(double);
}

/* A row from the first coordinate under way on, aligned. */
static const void *row_at(tally *t, ptrdiff_t l)
{
    size_t width = width_of(t->span);
    if ((uintptr_t)t->moved[l] % width == 0) {
        return t->moved[l];
    }
    memcpy(t->row, t->moved[l], (size_t)t->count * width);
    return t->row;
}

#define COUNT_HITS(real)                                                                                               \
    static int32_t hits_##real(const real *x, const real *middle, ptrdiff_t count)                                     \
    {                                                                                                                  \
        int32_t hits = 0;                                                                                              \
        for (ptrdiff_t i = 0; i < count; i++) {                                                                        \
            hits += x[i] == middle[i];                                                                                 \
        }                                                                                                              \
        return hits;                                                                                                   \
    }                                                                                                                  \
    static void ties_##real(const real *x, const real *middle, ptrdiff_t count, int32_t *ties)                         \
    {                                                                                                                  \
        for (ptrdiff_t i = 0; i < count; i++) {                                                                        \
            ties[i] += x[i] == middle[i];                                                                              \
        }                                                                                                              \
    }
COUNT_HITS(float)
COUNT_HITS(double)

/* Returns the number of hits of all rows. */
static ptrdiff_t count_hits(tally *t)
{
    ptrdiff_t total = 0;
    for (ptrdiff_t l = 0; l < t->span->n; l++) {
        const void *x = row_at(t, l);
        t->hits[l] = 0;
        for (ptrdiff_t e = 0; e < t->ends; e++) {
            const void *middle = t->middle[e];
            t->hits[l] += t->span->single ? hits_float(x, middle, t->count) : hits_double(x, middle, t->count);
        }
        total += t->hits[l];
    }
    return total;
}

static void count_ties(tally *t)
{
    memset(t->ties, 0, sizeof t->ties);
    for (ptrdiff_t l = 0; l < t->span->n; l++) {
        const void *x = row_at(t, l);
        for (ptrdiff_t e = 0; e < t->ends; e++) {
            const void *middle = t->middle[e];
            if (t->span->single) {
                ties_float(x, middle, t->count, t->ties[e]);
            } else {
                ties_double(x, middle, t->count, t->ties[e]);
            }
        }
    }
}

static double number_at(const reef_span *span, const void *numbers, ptrdiff_t i)
{
    float single;
    double number;
    const char *place = (const char *)numbers + (size_t)i * width_of(span);
    if (span->single) {
        memcpy(&single, place, sizeof single);
        return (double)single;
    }
    memcpy(&number, place, sizeof number);
    return number;
}

/* One coordinate with ties, or a hard one: its hits are taken back and, unless hard, its shares settled. */
static void settle(tally *t, ptrdiff_t i)
{
    reef_span *span = t->span;
    double part = 1 / (double)t->ends;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        double x = number_at(span, span->rows[l], t->at + i);
        double share = 0;
        for (ptrdiff_t e = 0; e < t->ends; e++) {
            bool same = x == number_at(span, t->middle[e], i);
            t->hits[l] -= same;
            share += same ? part / (double)t->ties[e][i] : 0;
        }
        if (!t->hard[i]) {
            span->share[l] += share;
            span->rejected[l] += share == 0;
        }
    }
}

/* Coordinates that are not clear, with one row at each middle value: settled, or counted in *even if all rows agree there (a frozen
 * layer, zeros). Returns the number of clear ones. */
static ptrdiff_t settle_all(tally *t, ptrdiff_t *even)
{
    ptrdiff_t clear = t->count;
    count_ties(t);
    for (ptrdiff_t i = 0; i < t->count; i++) {
        bool tied = t->ties[0][i] != 1 || (t->ends == 2 && t->ties[1][i] != 1);
        if (!t->hard[i] && t->ties[0][i] == t->span->n) {
            *even += 1;
            clear--;
        } else if (tied || t->hard[i]) {
            settle(t, i);
            clear--;
        }
    }
    return clear;
}

/* `found` coordinates are hard. */
static void report(tally *t, ptrdiff_t found)
{
    reef_span *span = t->span;
    ptrdiff_t even = 0;
    ptrdiff_t clear = t->count;
    if (count_hits(t) != t->count * t->ends || found > 0) {
        clear = settle_all(t, &even);
    }
    for (ptrdiff_t l = 0; l < span->n; l++) {
        ptrdiff_t own = t->hits[l] - t->ends * even;
        span->share[l] += (double)own / (double)t->ends + (double)even / (double)span->n;
        span->rejected[l] += clear - own;
    }
}

/* Midpoints as the kernels have them. */
static void midpoints_float(const float *lower, const float *upper, ptrdiff_t count, float *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        out[i] = 0.5F * (lower[i] + upper[i]);
    }
}

static void midpoints_double(const double *lower, const double *upper, ptrdiff_t count, double *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        out[i] = 0.5 * (lower[i] + upper[i]);
    }
}

/* The result from the middle values, the same bits as without a report. */
static void store(tally *t)
{
    size_t width = width_of(t->span);
    if (t->ends == 1) {
        memcpy(t->row, t->middle[0], (size_t)t->count * width);
    } else if (t->span->single) {
        midpoints_float((const float *)(const void *)t->middle[0], (const float *)(const void *)t->middle[1], t->count,
                        (float *)(void *)t->row);
    } else {
        midpoints_double(t->middle[0], t->middle[1], t->count, t->row);
    }
    memcpy((char *)t->span->out + (size_t)t->at * width, t->row, (size_t)t->count * width);
}

/* Middle values of the coordinates under way; the hard ones are added to the list, and their number is returned. */
static ptrdiff_t find_middle(tally *t, int kind, ptrdiff_t listed)
{
    reef_span *span = t->span;
    memset(t->hard, 0, sizeof t->hard);
    for (ptrdiff_t l = 0; l < span->n; l++) {
        t->moved[l] = (const char *)span->rows[l] + (size_t)t->at * width_of(span);
    }
    rfi_span inner = rfi_span_of(span);
    inner.rows = t->moved;
    inner.count = t->count;
    inner.out = t->middle[0];
    inner.upper = t->ends == 2 ? t->middle[1] : NULL;
    inner.hard = span->hard + listed;
    ptrdiff_t found = span->kernels->median(&inner, kind ? kind : LOWER);
    for (ptrdiff_t i = listed; i < listed + found; i++) {
        t->hard[span->hard[i]] = true;
        span->hard[i] += (int32_t)t->at;
    }
    return found;
}

ptrdiff_t rfi_span_median(reef_span *span, int kind)
{
    if (!span->share) {
        rfi_span inner = rfi_span_of(span);
        return span->kernels->median(&inner, kind);
    }
    /* the kernel uses the first n vectors of the scratch */
    char *scratch = span->scratch;
    tally t = {.span = span, .ends = kind || span->n % 2 ? 1 : 2};
    t.moved = (const void **)(void *)(scratch + (ptrdiff_t)64 * (RFI_SPAN_COLUMNS - 2) * span->n);
    t.hits = (int32_t *)(void *)(scratch + (ptrdiff_t)64 * (RFI_SPAN_COLUMNS - 1) * span->n);
    ptrdiff_t listed = 0;
    for (t.at = 0; t.at < span->count; t.at += TALLY) {
        t.count = span->count - t.at < TALLY ? span->count - t.at : TALLY;
        ptrdiff_t found = find_middle(&t, kind, listed);
        store(&t);
        report(&t, found);
        listed += found;
    }
    span->reported = true;
    return listed;
}
