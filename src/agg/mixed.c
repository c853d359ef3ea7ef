/* Elementwise rules behind pre-aggregators, by kernels: mixed rows C X are made in double precision, some coordinates at a time, and
 * stay in the cache until the rule has seen them. */
#include "agg/plan.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Mixed row k: a sum of raw rows, the rest of its weight being that of the origin. False: some value is not finite or extreme. */
static bool mix_row(const reef_plan *plan, rfi_worker *w, const void *const *rows, ptrdiff_t k, ptrdiff_t count,
                    double *to)
{
    const double *c = plan->m.matrix + k * (plan->rows + 1);
    ptrdiff_t terms = 0;
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        if (c[p] > 0) {
            w->used[terms] = rows[p];
            w->used_weights[terms++] = c[p];
        }
    }
    if (terms == 0) {
        memset(to, 0, (size_t)count * sizeof *to);
        return true;
    }
    const rfi_span span = {.rows = w->used,
                           .weights = w->used_weights,
                           .with_zero = c[plan->n_raw] > 0,
                           .n = terms,
                           .count = count,
                           .out = to,
                           .scratch = w->scratch,
                           .hard = w->hard};
    return w->row_kernels->sum_wide(&span);
}

/* Asks for the next chunk of raw rows, which need not exist: those from `from` on, before `to`. */
static void look_ahead(const rfi_worker *w, const void *const *rows, ptrdiff_t from, ptrdiff_t to)
{
    const ptrdiff_t line = 64;
    ptrdiff_t bytes = RFI_MIX_CHUNK * (ptrdiff_t)rfi_type_size(w->type);
    for (ptrdiff_t p = from; p < to; p++) {
        uintptr_t next = (uintptr_t)rows[p] + (uintptr_t)bytes;
        for (ptrdiff_t at = 0; at < bytes; at += line) {
            __builtin_prefetch((const void *)(next + (uintptr_t)at), 0, 2);
        }
    }
}

bool rfi_mix_rows(const reef_plan *plan, rfi_worker *w, const void *const *rows, ptrdiff_t count)
{
    bool usable = true;
    assert(count >= 1 && count <= RFI_MIX_CHUNK && plan->wide);
    for (ptrdiff_t k = 0; usable && k < plan->n_mixed; k++) {
        if (count == RFI_MIX_CHUNK) {
            look_ahead(w, rows, plan->n_raw * k / plan->n_mixed, plan->n_raw * (k + 1) / plan->n_mixed);
        }
        usable = mix_row(plan, w, rows, k, count, w->mixed + k * RFI_MIX_CHUNK);
    }
    for (ptrdiff_t k = 0; k < plan->n_mixed; k++) {
        w->used[k] = w->mixed + k * RFI_MIX_CHUNK;
    }
    return usable;
}

static void narrow(const reef_plan *plan, const double *restrict from, ptrdiff_t count, void *out)
{
    assert(count <= RFI_MIX_CHUNK);
    if (plan->dtype == REEF_F64) {
        memcpy(out, from, (size_t)count * sizeof *from);
        return;
    }
    for (ptrdiff_t t = 0; t < count; t++) { /* the caller's memory need not be aligned */
        float number = (float)from[t];
        memcpy((char *)out + (size_t)t * sizeof number, &number, sizeof number);
    }
}

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

/* From mixed rows to raw ones: shares go through the matrix, as in combine.c one by one. */
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

/* By the rule's kernel: the number of hard coordinates, or -1. *reported: a report is wanted, and after the call whether there is one. With
 * unequal weights some coordinates (ties) may be hard for their report alone; then there is none, since the scalar rule's result for
 * them could differ in its last bit, and the result does not depend on whether a report is wanted. */
static ptrdiff_t solve_span(const reef_plan *plan, rfi_worker *w, reef_span *span, bool *reported)
{
    reef_span plain = *span;
    if (*reported) {
        want_report(w, plan->n_mixed, span->count, span);
    }
    ptrdiff_t hard = plan->rule->span(plan->params, span);
    if (*reported && !span->equal && hard > 0) {
        ptrdiff_t without = plan->rule->span(plan->params, &plain);
        *reported = without == hard;
        hard = without;
    }
    return hard;
}

ptrdiff_t rfi_span_mixed(const reef_plan *plan, rfi_worker *w, const void *const *rows, ptrdiff_t count,
                         const double *share, double tuned, double floor, void *out, bool *reported)
{
    assert(count >= 1 && count <= RFI_MIX_CHUNK && plan->wide);
    double *result = w->mixed + plan->rows * RFI_MIX_CHUNK;
    unsigned flush = rfi_flush_begin();
    bool usable = rfi_mix_rows(plan, w, rows, count);
    reef_span span = {.rows = w->used,
                      .a = plan->m.mixed_weights,
                      .equal = plan->equal_mixed,
                      .n = plan->n_mixed,
                      .count = count,
                      .f = plan->malicious_count[plan->agg->count - 1],
                      .self = -1,
                      .tuned = tuned,
                      .floor = floor,
                      .mixed = true,
                      .out = result,
                      .hard = w->hard,
                      .scratch = w->scratch,
                      .kernels = plan->wide};
    ptrdiff_t hard = -1;
    if (usable && share) {
        hard = rfi_span_chosen(plan, w, share, &span);
        *reported = false;
    } else if (usable) {
        hard = solve_span(plan, w, &span, reported);
    }
    rfi_flush_end(flush);
    if (hard >= 0) {
        narrow(plan, result, count, out);
    }
    *reported = *reported && hard >= 0 && take_report(plan, w, &span, count - hard);
    if (hard >= 0 && (*reported || !plan->report)) {
        w->iterations += span.iterations;
        w->solved += count - hard;
        w->max_iterations = span.max_iterations > w->max_iterations ? span.max_iterations : w->max_iterations;
    }
    return hard;
}
