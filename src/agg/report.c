/* Reports: who was believed. */
#include "agg/plan.h"
#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

struct reef_report {
    const reef_context *context;
    ptrdiff_t rows;
    double *trust;    /* rows */
    double *rejected; /* rows */
    unsigned char *reason;
    double *shares; /* the caller's, or NULL */
    double *centre; /* the caller's, or NULL */
    double centre_share;
    double mean_iterations;
    int max_iterations;
    int64_t unconverged;
    int64_t masked;
    ptrdiff_t dropped;
    ptrdiff_t dominant;
    double efficiency;
    double *factors; /* rows x REEF_TESTS */
    reef_window windows[REEF_WINDOWS];
};

reef_status reef_report_create_in(reef_context *context, reef_report **report, ptrdiff_t rows, reef_error *error)
{
    if (!report || rows < 1) {
        return rfi_fail(error, REEF_E_ARG, report ? "a report needs at least one row" : "report is NULL");
    }
    rfi_arena sizes = {0};
    reef_report *made = NULL;
    for (int round = 0; round < 2; round++) { /* measure, then take */
        reef_report parts = {.context = context, .rows = rows};
        reef_report *head = rfi_arena_take(&sizes, 1, 1, sizeof *head);
        parts.trust = rfi_arena_take(&sizes, rows, 1, sizeof(double));
        parts.rejected = rfi_arena_take(&sizes, rows, 1, sizeof(double));
        parts.factors = rfi_arena_take(&sizes, rows, REEF_TESTS, sizeof(double));
        parts.reason = rfi_arena_take(&sizes, rows, 1, 1);
        if (sizes.overflow) {
            return rfi_fail(error, REEF_E_OVERFLOW, "a report for %td rows does not fit in memory addresses", rows);
        }
        if (round == 0) {
            size_t bytes = (size_t)sizes.used;
            sizes = (rfi_arena){.base = rfi_allocate(context, bytes)};
            if (!sizes.base) {
                return rfi_fail(error, REEF_E_NOMEM, "no memory for a report on %td rows", rows);
            }
            memset(sizes.base, 0, bytes);
        } else {
            *head = parts;
            made = head;
        }
    }
    *report = made;
    return REEF_OK;
}

reef_status reef_report_create(reef_report **report, ptrdiff_t rows, reef_error *error)
{
    return reef_report_create_in(NULL, report, rows, error);
}

void reef_report_destroy(reef_report **report)
{
    if (!report || !*report) {
        return;
    }
    const reef_context *context = (*report)->context;
    rfi_release(context, *report);
    *report = NULL;
}

void reef_report_keep_shares(reef_report *report, double *shares, double *centre)
{
    report->shares = shares;
    report->centre = centre;
}

const double *reef_report_trust(const reef_report *report)
{
    return report->trust;
}

const double *reef_report_rejected(const reef_report *report)
{
    return report->rejected;
}

reef_reason reef_report_reason(const reef_report *report, ptrdiff_t row)
{
    return row >= 0 && row < report->rows ? (reef_reason)report->reason[row] : REEF_ZERO_WEIGHT;
}

ptrdiff_t reef_report_dropped(const reef_report *report)
{
    return report->dropped;
}

int64_t reef_report_masked(const reef_report *report)
{
    return report->masked;
}

double reef_report_centre_share(const reef_report *report)
{
    return report->centre_share;
}

double reef_report_efficiency(const reef_report *report)
{
    return report->efficiency;
}

ptrdiff_t reef_report_dominant(const reef_report *report)
{
    return report->dominant;
}

double reef_report_mean_iterations(const reef_report *report)
{
    return report->mean_iterations;
}

int reef_report_max_iterations(const reef_report *report)
{
    return report->max_iterations;
}

int64_t reef_report_unconverged(const reef_report *report)
{
    return report->unconverged;
}

double reef_report_factor(const reef_report *report, ptrdiff_t row, reef_test test)
{
    bool exists = row >= 0 && row < report->rows && test >= 0 && test < REEF_TESTS;
    return exists ? report->factors[row * REEF_TESTS + test] : 1;
}

reef_test reef_report_cause(const reef_report *report, ptrdiff_t row)
{
    reef_test cause = REEF_TESTS;
    double least = 1;
    for (int test = 0; test < REEF_TESTS; test++) {
        double factor = reef_report_factor(report, row, (reef_test)test);
        cause = factor < least ? (reef_test)test : cause;
        least = factor < least ? factor : least;
    }
    return cause;
}

const char *reef_test_name(reef_test test)
{
    static const char *const names[REEF_TESTS] = {"gate",  "short window", "middle window", "long window",
                                                  "split", "rhythm",       "energy",        "copies"};
    return (int)test >= 0 && test < REEF_TESTS ? names[test] : NULL;
}

size_t reef_report_explain(const reef_report *report, ptrdiff_t row, char *text, size_t size)
{
    reef_test cause = reef_report_cause(report, row);
    size_t used = 0;
    if (size > 0) {
        text[0] = '\0';
    }
    if (cause == REEF_TESTS) {
        return 0;
    }
    if (cause >= REEF_TEST_SHORT && cause <= REEF_TEST_LONG) { /* its length says more than its name */
        rfi_append(text, size, &used, "window %lld", (long long)report->windows[cause - REEF_TEST_SHORT].rounds);
    } else {
        rfi_append(text, size, &used, "%s", reef_test_name(cause));
    }
    rfi_append(text, size, &used, " leaves %.2f", reef_report_factor(report, row, cause));
    return used;
}

reef_window reef_report_window(const reef_report *report, ptrdiff_t i)
{
    return i >= 0 && i < REEF_WINDOWS ? report->windows[i] : (reef_window){0, 0, 0};
}

bool rfi_report_wants_shares(const reef_report *report)
{
    return report->shares || report->centre;
}

reef_status rfi_report_fits(const reef_report *report, ptrdiff_t rows, reef_error *error)
{
    if (report && report->rows != rows) {
        return rfi_fail(error, REEF_E_ARG, "the report was made for %td rows, the plan for %td", report->rows, rows);
    }
    return REEF_OK;
}

void rfi_report_begin(reef_plan *plan)
{
    for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
        rfi_worker *w = &plan->m.workers[i];
        w->masked = 0;
        w->iterations = 0;
        w->solved = 0;
        w->unconverged = 0;
        w->max_iterations = 0;
        memset(w->rejected, 0, (size_t)plan->rows * sizeof *w->rejected);
    }
    if (plan->report && plan->report->shares) { /* rows that are left out keep share 0 */
        size_t count = (size_t)plan->rows * (size_t)plan->total;
        memset(plan->report->shares, 0, count * sizeof(double));
    }
}

void rfi_report_share(reef_plan *plan, ptrdiff_t raw_row, ptrdiff_t segment, ptrdiff_t m, double share)
{
    ptrdiff_t place = plan->m.offsets[segment] + m;
    if (raw_row < 0) {
        if (plan->report->centre) {
            plan->report->centre[place] = share;
        }
    } else if (plan->report->shares) {
        plan->report->shares[plan->m.active[raw_row] * plan->total + place] = share;
    }
}

/* Sum of trust over all coordinates, along the canonical tree, left in slot 0. */
static const double *sum_trust(reef_plan *plan)
{
    double *slots = plan->m.trust_slots;
    ptrdiff_t length = plan->rows + 1;
    for (ptrdiff_t s = 0; s < plan->segments; s++) {
        ptrdiff_t first = plan->m.slot_starts[s];
        rfi_treesum_slots(slots + first * length, plan->m.slot_starts[s + 1] - first, length);
        memmove(slots + s * length, slots + first * length, (size_t)length * sizeof *slots);
    }
    rfi_treesum_slots(slots, plan->segments, length);
    return slots;
}

static void sum_effort(reef_plan *plan)
{
    reef_report *report = plan->report;
    double iterations = 0;
    double solved = 0;
    report->max_iterations = 0;
    report->unconverged = 0;
    report->masked = 0;
    for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
        const rfi_worker *w = &plan->m.workers[i];
        iterations += (double)w->iterations;
        solved += (double)w->solved;
        report->unconverged += w->unconverged;
        report->masked += w->masked;
        if (w->max_iterations > report->max_iterations) {
            report->max_iterations = w->max_iterations;
        }
    }
    report->mean_iterations = solved > 0 ? iterations / solved : 0;
}

static void note_tuning(reef_plan *plan)
{
    reef_report *report = plan->report;
    bool tuned = plan->rule->efficiency && plan->agg->count == 1;
    double n = rfi_effective_count(plan->m.raw_weights, plan->n_raw, plan->equal_raw);
    report->efficiency = tuned ? plan->rule->efficiency(plan->params, n) : (double)NAN;
    report->dominant = -1;
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        if (plan->n_raw > 1 && plan->m.raw_weights[p] >= 0.5 && report->dominant < 0) {
            report->dominant = plan->m.active[p];
        }
    }
}

static void note_factors(const rfi_recall *recall, ptrdiff_t l, double *factor)
{
    const rfi_trace *trace = &recall->traces[l];
    factor[REEF_TEST_GATE] = recall->gate[l];
    factor[REEF_TEST_ENERGY] = recall->by_energy[l];
    factor[REEF_TEST_COPIES] = recall->by_copies[l];
    for (int j = 0; j < RFI_WINDOWS; j++) {
        factor[REEF_TEST_SHORT + j] = trace->factor[j][RFI_BY_WINDOW];
        factor[REEF_TEST_SPLIT] = fmin(factor[REEF_TEST_SPLIT], trace->factor[j][RFI_BY_SPLIT]);
        factor[REEF_TEST_RHYTHM] = fmin(factor[REEF_TEST_RHYTHM], trace->factor[j][RFI_BY_RHYTHM]);
    }
}

void rfi_report_tests(const reef_plan *plan)
{
    reef_report *report = plan->report;
    const rfi_recall *recall = &plan->recall;
    bool tested = plan->recalls && !recall->idle;
    for (ptrdiff_t i = 0; i < plan->rows * REEF_TESTS; i++) {
        report->factors[i] = 1;
    }
    for (ptrdiff_t l = 0; tested && l < recall->n; l++) {
        note_factors(recall, l, report->factors + plan->m.active[l] * REEF_TESTS);
    }
    for (int j = 0; j < REEF_WINDOWS; j++) {
        report->windows[j] = (reef_window){0, 0, 0};
        if (plan->recalls) {
            report->windows[j] = (reef_window){recall->window[j], recall->spread[j], recall->separation[j]};
        }
    }
}

void rfi_report_end(reef_plan *plan)
{
    reef_report *report = plan->report;
    const double *sum = sum_trust(plan);
    double total = (double)plan->total;
    sum_effort(plan);
    note_tuning(plan);
    rfi_report_tests(plan);
    report->dropped = plan->dropped;
    report->centre_share = sum[plan->n_raw] / total;
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        report->reason[l] = plan->m.reason[l];
        report->trust[l] = 0;
        report->rejected[l] = 1;
    }
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        ptrdiff_t l = plan->m.active[p];
        int64_t rejected = 0;
        for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
            rejected += plan->m.workers[i].rejected[p];
        }
        report->trust[l] = sum[p] / total / plan->m.weights[l];
        report->rejected[l] = (double)rejected / total;
    }
}
