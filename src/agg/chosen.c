/* Rules that first choose rows (weigh) and then look at each coordinate (column): the fast path on the rows that were chosen. */
#include "agg/plan.h"

#include <assert.h>
#include <string.h>

/* Moves the rows that have a share to the front of worker->used, their weights to worker->used_weights. */
static ptrdiff_t list_chosen(rfi_worker *w, const double *share, ptrdiff_t rows, bool *equal)
{
    ptrdiff_t n = 0;
    double sum = 0;
    *equal = true;
    for (ptrdiff_t k = 0; k < rows; k++) {
        if (share[k] > 0) {
            w->used[n] = w->used[k];
            w->used_weights[n] = share[k];
            w->where[n] = k;
            *equal = *equal && share[k] == w->used_weights[0];
            sum += share[k];
            n++;
        }
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        w->used_weights[i] = *equal ? 1 / (double)n : w->used_weights[i] / sum;
    }
    return n;
}

/* The report on n chosen rows, to where that on all rows is kept; whoever was not chosen had no share anywhere. */
static void spread_report(const rfi_worker *w, const reef_span *span, ptrdiff_t rows, ptrdiff_t counted, double *sums,
                          int64_t *rejected)
{
    ptrdiff_t next = 0;
    for (ptrdiff_t k = 0; k < rows; k++) {
        bool chosen = next < span->n && w->where[next] == k;
        sums[k] += chosen ? span->share[next] : 0;
        rejected[k] += chosen ? span->rejected[next] : counted;
        next += chosen;
    }
}

ptrdiff_t rfi_span_chosen(const reef_plan *plan, rfi_worker *w, const double *share, reef_span *span)
{
    ptrdiff_t rows = span->n;
    double *sums = span->share;
    int64_t *rejected = span->rejected;
    assert(span->rows == w->used && rows <= plan->rows);
    span->n = list_chosen(w, share, rows, &span->equal);
    span->a = w->used_weights;
    if (span->n == 0) {
        return -1;
    }
    if (plan->rule->tune) {
        span->tuned = plan->rule->tune(plan->params, rfi_effective_count(span->a, span->n, span->equal));
    }
    if (sums) {
        span->share = w->chosen_sums;
        span->rejected = w->chosen_rejected;
        memset(w->chosen_sums, 0, (size_t)rows * sizeof *w->chosen_sums);
        memset(w->chosen_rejected, 0, (size_t)rows * sizeof *w->chosen_rejected);
    }
    ptrdiff_t hard = plan->rule->span(plan->params, span);
    if (sums && hard >= 0 && span->reported) {
        spread_report(w, span, rows, span->count - hard, sums, rejected);
    }
    span->fair = false;
    return hard;
}
