/* Rows after pre-aggregators, by kernels: mixed rows C X are made in the type of the rows, some coordinates at a time, and stay in the
 * cache until the rule has seen them. Sums of float32 are taken in double precision and rounded once. */
#include "agg/plan.h"
#include "num/order.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* ---- how ---- */

static const double *weights_of(const reef_plan *plan, ptrdiff_t k)
{
    return plan->m.matrix + k * (plan->rows + 1);
}

/* What a mixed row is by itself: the parts of a mean have equal weights, and are at least half of the rows. */
static int way_of(const reef_plan *plan, const double *c, ptrdiff_t *first)
{
    ptrdiff_t parts = 0;
    bool equal = true;
    *first = 0;
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        if (c[p] > 0) {
            *first = parts ? *first : p;
            equal = equal && c[p] == c[*first];
            parts++;
        }
    }
    if (parts == 1) {
        return c[*first] == 1 ? RFI_MIX_RAW : RFI_MIX_SCALED;
    }
    bool few = plan->n_raw <= RFI_MEANS_ROWS && plan->n_mixed <= RFI_MEANS_ROWS;
    bool mean = equal && 2 * parts >= plan->n_raw && !(c[plan->n_raw] > 0);
    return few && mean && plan->kernels->means ? RFI_MIX_MEAN : RFI_MIX_SUM;
}

/* Marks the raw rows that are part of most means. */
static void find_core(const reef_plan *plan, ptrdiff_t means)
{
    const rfi_mixing *mixing = &plan->m.mixing;
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        ptrdiff_t with = 0;
        for (ptrdiff_t k = 0; k < plan->n_mixed; k++) {
            with += mixing->way[k] == RFI_MIX_MEAN && weights_of(plan, k)[p] > 0;
        }
        mixing->core[p] = 2 * with > means;
    }
}

/* What makes a mean of the sum over the core. */
static rfi_mean describe_mean(const reef_plan *plan, ptrdiff_t k, uint16_t *change)
{
    const double *c = weights_of(plan, k);
    const bool *core = plan->m.mixing.core;
    rfi_mean mean = {.part = c, .factor = c[plan->m.mixing.first[k]], .change = change, .place = k};
    for (int adds = 0; adds < 2; adds++) {
        for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
            if (adds ? c[p] > 0 && !core[p] : core[p] && !(c[p] > 0)) {
                *change++ = (uint16_t)p;
                mean.taken += !adds;
                mean.added += adds;
            }
        }
    }
    return mean;
}

/* A mean made earlier that has the same rows as the one made last; -1: none. Rows that see the same neighbours, as all honest ones do where
 * the others are far away, have the same mean. */
static ptrdiff_t same_mean(const rfi_mixing *mixing)
{
    const rfi_mean *last = &mixing->mean[mixing->means - 1];
    size_t bytes = (size_t)(last->taken + last->added) * sizeof *last->change;
    for (const rfi_mean *mean = mixing->mean; mean < last; mean++) {
        bool alike = mean->taken == last->taken && mean->added == last->added && mean->factor == last->factor;
        if (alike && memcmp(mean->change, last->change, bytes) == 0) {
            return mean->place;
        }
    }
    return -1;
}

static void add_mean(const reef_plan *plan, rfi_mixing *mixing, ptrdiff_t k)
{
    mixing->mean[mixing->means++] = describe_mean(plan, k, mixing->changes + k * plan->n_raw);
    ptrdiff_t same = same_mean(mixing);
    if (same >= 0) {
        mixing->means--;
        mixing->way[k] = RFI_MIX_COPY;
        mixing->first[k] = same;
    }
}

void rfi_mix_prepare(reef_plan *plan)
{
    rfi_mixing *mixing = &plan->m.mixing;
    ptrdiff_t means = 0;
    assert(plan->mixes);
    for (ptrdiff_t k = 0; k < plan->n_mixed; k++) {
        mixing->way[k] = (unsigned char)way_of(plan, weights_of(plan, k), &mixing->first[k]);
        means += mixing->way[k] == RFI_MIX_MEAN;
    }
    mixing->means = 0;
    if (means > 0) {
        find_core(plan, means);
    }
    for (ptrdiff_t k = 0; means > 0 && k < plan->n_mixed; k++) {
        if (mixing->way[k] == RFI_MIX_MEAN) {
            add_mean(plan, mixing, k);
        }
    }
}

/* ---- making them ---- */

static char *mixed_row(const reef_plan *plan, const rfi_worker *w, ptrdiff_t k)
{
    return (char *)w->mixed + k * plan->mix_stride * (ptrdiff_t)rfi_dtype_size(plan->dtype);
}

/* A weighted sum of rows, the rest of its weight being that of the origin. */
static bool sum_up(const reef_plan *plan, rfi_worker *w, const void *const *rows, const double *weights,
                   ptrdiff_t terms, ptrdiff_t k, ptrdiff_t count)
{
    const rfi_span span = {.rows = rows,
                           .weights = weights,
                           .with_zero = weights_of(plan, k)[plan->n_raw] > 0,
                           .n = terms,
                           .count = count,
                           .out = mixed_row(plan, w, k),
                           .scratch = w->scratch,
                           .hard = w->hard};
    return plan->kernels->sum(&span) == 0;
}

static bool sum_row(const reef_plan *plan, rfi_worker *w, const void *const *rows, ptrdiff_t k, ptrdiff_t count)
{
    const double *c = weights_of(plan, k);
    ptrdiff_t first = plan->m.mixing.first[k];
    ptrdiff_t terms = 0;
    if (plan->m.mixing.way[k] == RFI_MIX_SCALED) {
        return sum_up(plan, w, &rows[first], &c[first], 1, k, count);
    }
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        if (c[p] > 0) {
            w->used[terms] = rows[p];
            w->used_weights[terms++] = c[p];
        }
    }
    if (terms == 0) {
        memset(mixed_row(plan, w, k), 0, (size_t)count * rfi_dtype_size(plan->dtype));
        return true;
    }
    return sum_up(plan, w, w->used, w->used_weights, terms, k, count);
}

static bool make_means(const reef_plan *plan, rfi_worker *w, const void *const *rows, ptrdiff_t count)
{
    const rfi_mixing *mixing = &plan->m.mixing;
    const rfi_means means = {.rows = rows,
                             .core = mixing->core,
                             .n = plan->n_raw,
                             .count = count,
                             .mean = mixing->mean,
                             .means = mixing->means,
                             .out = w->mixed,
                             .stride = plan->mix_stride,
                             .scratch = w->scratch};
    return plan->kernels->means(&means);
}

/* Asks for the next chunk of raw rows, which need not exist: those from `from` on, before `to`. */
static void look_ahead(const reef_plan *plan, const void *const *rows, ptrdiff_t from, ptrdiff_t to)
{
    const ptrdiff_t line = 64;
    ptrdiff_t bytes = plan->mix_chunk * (ptrdiff_t)rfi_dtype_size(plan->dtype);
    for (ptrdiff_t p = from; p < to; p++) {
        uintptr_t next = (uintptr_t)rows[p] + (uintptr_t)bytes;
        for (ptrdiff_t at = 0; at < bytes; at += line) {
            __builtin_prefetch((const void *)(next + (uintptr_t)at), 0, 2);
        }
    }
}

bool rfi_mix_rows(const reef_plan *plan, rfi_worker *w, const void *const *rows, ptrdiff_t count)
{
    const rfi_mixing *mixing = &plan->m.mixing;
    assert(count >= 1 && count <= plan->mix_chunk && plan->mixes);
    bool usable = mixing->means == 0 || make_means(plan, w, rows, count);
    for (ptrdiff_t k = 0; usable && k < plan->n_mixed; k++) {
        if (mixing->means == 0 && count == plan->mix_chunk) { /* the means do so by themselves */
            look_ahead(plan, rows, plan->n_raw * k / plan->n_mixed, plan->n_raw * (k + 1) / plan->n_mixed);
        }
        bool sums = mixing->way[k] == RFI_MIX_SCALED || mixing->way[k] == RFI_MIX_SUM;
        usable = !sums || sum_row(plan, w, rows, k, count);
    }
    for (ptrdiff_t k = 0; k < plan->n_mixed; k++) {
        bool raw = mixing->way[k] == RFI_MIX_RAW;
        bool copy = mixing->way[k] == RFI_MIX_COPY;
        w->used[k] = raw ? rows[mixing->first[k]] : mixed_row(plan, w, copy ? mixing->first[k] : k);
    }
    return usable;
}

/* ---- rules of single coordinates ---- */

/* Coordinates at which no mixed row that a raw row is part of has a share. */
static int64_t count_none(const reef_plan *plan, rfi_worker *w, ptrdiff_t p, ptrdiff_t count, ptrdiff_t counted)
{
    unsigned char *all = w->none_at + plan->rows * RFI_MIX_CHUNK;
    bool part = false;
    int64_t none = 0;
    memset(all, 1, (size_t)count);
    for (ptrdiff_t k = 0; k < plan->n_mixed; k++) {
        if (plan->m.matrix[k * (plan->rows + 1) + p] > 0) {
            const unsigned char *theirs = w->none_at + k * count;
            part = true;
            if (w->mixed_none[k] == 0) {
                return 0;
            }
            for (ptrdiff_t t = 0; t < count; t++) {
                all[t] &= theirs[t];
            }
        }
    }
    for (ptrdiff_t t = 0; t < count; t++) {
        none += all[t];
    }
    return part ? none : counted;
}

/* From mixed rows to raw ones: shares go through the matrix, as in combine_column.c one by one. */
static void report_mixed(const reef_plan *plan, rfi_worker *w, ptrdiff_t count, ptrdiff_t counted)
{
    double *sum = rfi_treesum_leaf(&w->trust);
    for (ptrdiff_t p = 0; p <= plan->n_raw; p++) {
        for (ptrdiff_t k = 0; k < plan->n_mixed; k++) {
            sum[p] += w->mixed_sums[k] * plan->m.matrix[k * (plan->rows + 1) + p];
        }
    }
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        w->rejected[p] += count_none(plan, w, p, count, counted);
    }
}

/* Where the rule's report of the mixed rows goes. */
static void want_report(rfi_worker *w, ptrdiff_t n, ptrdiff_t count, reef_span *span)
{
    memset(w->mixed_sums, 0, (size_t)n * sizeof *w->mixed_sums);
    memset(w->mixed_none, 0, (size_t)n * sizeof *w->mixed_none);
    memset(w->none_at, 0, (size_t)(n * count));
    span->share = w->mixed_sums;
    span->rejected = w->mixed_none;
    span->none = w->none_at;
}

/* Whether the rule has given one; then it is carried over to the raw rows. */
static bool take_report(const reef_plan *plan, rfi_worker *w, const reef_span *span, ptrdiff_t counted)
{
    if (!span->fair && !(span->reported && span->marked)) {
        return false;
    }
    for (ptrdiff_t k = 0; span->fair && k < span->n; k++) {
        w->mixed_sums[k] = (double)counted * span->a[k];
    }
    report_mixed(plan, w, span->count, counted);
    return true;
}

ptrdiff_t rfi_span_mixed(const reef_plan *plan, rfi_worker *w, const void *const *rows, ptrdiff_t count,
                         const double *share, double tuned, double floor, void *out, bool *reported)
{
    unsigned flush = rfi_flush_begin();
    bool usable = rfi_mix_rows(plan, w, rows, count);
    reef_span span = {.rows = w->used,
                      .a = plan->m.mixed_weights,
                      .equal = plan->equal_mixed,
                      .single = plan->dtype == REEF_F32,
                      .n = plan->n_mixed,
                      .count = count,
                      .f = plan->malicious_count[plan->agg->count - 1],
                      .self = -1,
                      .tuned = tuned,
                      .floor = floor,
                      .half_tol = plan->dtype == REEF_F32 ? RFI_HALF_TOL_F32 : RFI_HALF_TOL_F64,
                      .mixed = true,
                      .out = out,
                      .hard = w->hard,
                      .scratch = w->scratch,
                      .kernels = plan->kernels};
    ptrdiff_t hard = -1;
    if (usable && share) {
        hard = rfi_span_chosen(plan, w, share, &span);
        *reported = false;
    } else if (usable) {
        if (*reported) {
            want_report(w, plan->n_mixed, count, &span);
        }
        hard = plan->rule->span(plan->params, &span);
    }
    rfi_flush_end(flush);
    *reported = *reported && hard >= 0 && take_report(plan, w, &span, count - hard);
    if (hard >= 0 && (*reported || !plan->report)) {
        w->iterations += span.iterations;
        w->solved += count - hard;
        w->max_iterations = span.max_iterations > w->max_iterations ? span.max_iterations : w->max_iterations;
    }
    return hard;
}
