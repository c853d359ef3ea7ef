/* Elementwise rules behind pre-aggregators, by kernels: mixed rows C X are made in double precision, some coordinates at a time, and
 * stay in the cache until the rule has seen them. */
#include "agg/plan.h"

#include <string.h>

static void widen(const reef_plan *plan, const void *row, ptrdiff_t count, double *to)
{
    for (ptrdiff_t t = 0; t < count; t++) {
        to[t] = rfi_load(plan->dtype, row, t);
    }
}

/* Mixed row k: a sum of raw rows, the rest of its weight being that of the origin. False: some value is not finite or extreme. */
static bool mix_row(const reef_plan *plan, rfi_worker *w, ptrdiff_t k, ptrdiff_t count, double *to)
{
    const double *c = plan->m.matrix + k * (plan->rows + 1);
    ptrdiff_t terms = 0;
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        if (c[p] > 0) {
            w->used[terms] = w->mixed + p * RFI_MIX_CHUNK;
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
    return plan->wide->sum(&span) == 0;
}

static void narrow(const reef_plan *plan, const double *from, ptrdiff_t count, void *out)
{
    for (ptrdiff_t t = 0; t < count; t++) {
        rfi_store(plan->dtype, out, t, from[t]);
    }
}

ptrdiff_t rfi_span_mixed(const reef_plan *plan, rfi_worker *w, const void *const *rows, ptrdiff_t count, double tuned,
                         double floor, void *out)
{
    double *mixed = w->mixed + plan->n_raw * RFI_MIX_CHUNK;
    double *result = w->mixed + 2 * plan->rows * RFI_MIX_CHUNK;
    bool usable = true;
    unsigned flush = rfi_flush_begin();
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        widen(plan, rows[p], count, w->mixed + p * RFI_MIX_CHUNK);
    }
    for (ptrdiff_t k = 0; usable && k < plan->n_mixed; k++) {
        usable = mix_row(plan, w, k, count, mixed + k * RFI_MIX_CHUNK);
    }
    for (ptrdiff_t k = 0; k < plan->n_mixed; k++) {
        w->used[k] = mixed + k * RFI_MIX_CHUNK;
    }
    reef_span span = {.rows = w->used,
                      .a = plan->m.mixed_weights,
                      .equal = plan->equal_mixed,
                      .n = plan->n_mixed,
                      .count = count,
                      .f = plan->liars[plan->agg->count - 1],
                      .self = -1,
                      .tuned = tuned,
                      .floor = floor,
                      .out = result,
                      .hard = w->hard,
                      .scratch = w->scratch,
                      .kernels = plan->wide};
    ptrdiff_t hard = usable ? plan->rule->span(plan->params, &span) : -1;
    rfi_flush_end(flush);
    if (hard >= 0) {
        narrow(plan, result, count, out);
    }
    if (hard >= 0 && !plan->report) {
        w->iterations += span.iterations;
        w->solved += count - hard;
        w->max_iterations = span.max_iterations > w->max_iterations ? span.max_iterations : w->max_iterations;
    }
    return hard;
}
