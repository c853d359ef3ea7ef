/* Combining by shares of whole rows: one weighted sum of raw rows, and of the centre if there is one, by a kernel. */
#include "agg/combine.h"
#include "num/order.h"

#include <math.h>
#include <string.h>

bool rfi_combine_at_median(const rfi_combining *j)
{
    return j->space.centre && !j->plan->centre_known && (j->plan->needs & REEF_NEED_MEDIAN);
}

/* The median of the rule's rows, made of the raw ones in worker->used, in worker->median_row; false: it must be done by the scalar code. */
static bool find_median_row(const rfi_combining *j, ptrdiff_t count)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    rfi_kernel_report none = {0};
    bool mixed = plan->agg->count > 1;
    if (mixed && !plan->mixes) {
        return false;
    }
    if (mixed) {
        memcpy(w->rows_mixed, w->used, (size_t)plan->n_raw * sizeof *w->used);
    }
    if (mixed && !rfi_mix_rows(plan, w, w->rows_mixed, count)) {
        return false;
    }
    const rfi_span span = {.rows = w->used,
                           .n = rfi_space_rows(plan, &j->space),
                           .count = count,
                           .out = w->median_row,
                           .scratch = w->scratch,
                           .hard = w->hard};
    ptrdiff_t hard = plan->kernels->median(&span, RFI_MEDIAN_AVERAGE, &none);
    for (ptrdiff_t i = 0; i < hard; i++) { /* hard for the sum too, then */
        rfi_store(plan->dtype, w->median_row, w->hard[i], INFINITY);
    }
    if (mixed) {
        memcpy(w->used, w->rows_mixed, (size_t)plan->n_raw * sizeof *w->used);
    }
    return true;
}

static double centre_share(const rfi_combining *j)
{
    return j->space.centre ? j->share[rfi_space_points(j->plan, &j->space) - 1] : 0;
}

/* Shares of the rule on raw rows and centre, as one weighted sum: rows without a share are not even read. */
static ptrdiff_t list_terms(const rfi_combining *j, ptrdiff_t from)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    double centre = centre_share(j);
    ptrdiff_t terms = 0;
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        /* a row without a share may have entries to count as left out */
        if (w->raw_share[p] > 0 || plan->agg->nan == RFI_NAN_DROP_COORDINATE) {
            w->used[terms] = w->used[p];
            w->used_weights[terms++] = w->raw_share[p];
        }
    }
    if (centre > 0 && (plan->centre_known || rfi_combine_at_median(j))) {
        w->used[terms] = plan->centre_known ? rfi_state_place(plan->input.state, j->segment, from) : w->median_row;
        w->used_weights[terms++] = centre;
    }
    return terms;
}

/* The shares as a weighted sum of raw rows, in worker->raw_share. */
static void trace_shares(const rfi_combining *j)
{
    rfi_worker *w = j->worker;
    memcpy(w->share, j->share, (size_t)rfi_space_points(j->plan, &j->space) * sizeof(double));
    for (ptrdiff_t k = 0; k < rfi_space_rows(j->plan, &j->space); k++) {
        w->refill[k] = 1;
    }
    rfi_combine_trace(j);
}

static void report_sum(const rfi_combining *j, ptrdiff_t counted)
{
    const reef_plan *plan = j->plan;
    rfi_worker *w = j->worker;
    double *sum = rfi_treesum_leaf(&w->trust);
    for (ptrdiff_t p = 0; p <= plan->n_raw; p++) {
        sum[p] += (double)counted * w->raw_share[p];
        if (p < plan->n_raw && w->raw_share[p] == 0) {
            w->rejected[p] += counted;
        }
    }
}

/* The weighted sum of the first `terms` rows listed, from coordinate `from` on. */
static ptrdiff_t sum_terms(const rfi_combining *j, ptrdiff_t from, ptrdiff_t count, ptrdiff_t terms)
{
    const rfi_worker *w = j->worker;
    double weight = 0;
    for (ptrdiff_t i = 0; i < terms; i++) {
        weight += w->used_weights[i];
    }
    rfi_span span = {.rows = w->used,
                     .weights = w->used_weights,
                     .with_zero = weight < 1 - 1e-9,
                     .n = terms,
                     .count = count,
                     .out = rfi_combining_out(j, from),
                     .scratch = w->scratch,
                     .hard = w->hard};
    return w->row_kernels->sum(&span);
}

ptrdiff_t rfi_combine_sum(const rfi_combining *j, ptrdiff_t from, ptrdiff_t to, const bool *reported)
{
    rfi_worker *w = j->worker;
    if (!j->share) {
        return -1;
    }
    rfi_rows_used(j->plan, w, from, j->m0, j->rows);
    trace_shares(j);
    unsigned flush = rfi_flush_begin();
    bool there = !rfi_combine_at_median(j) || centre_share(j) == 0 || find_median_row(j, to - from);
    ptrdiff_t terms = there ? list_terms(j, from) : 0;
    ptrdiff_t hard = terms > 0 ? sum_terms(j, from, to - from, terms) : -1;
    rfi_flush_end(flush);
    if (*reported && hard >= 0) {
        report_sum(j, to - from - hard);
    }
    return hard;
}
