/* Reports: how much weight each row had. */
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
    double *shares;   /* the caller's, or NULL */
    double *centre;   /* the caller's, or NULL */
    double *segments; /* segments x rows, the caller's, or NULL */
    double centre_share;
    double mean_iterations;
    int max_iterations;
    int64_t unconverged;
    int64_t masked;
    ptrdiff_t dropped;
    ptrdiff_t dominant;
    double efficiency;
    const reef_memory *told; /* by the rule of the last aggregation; NULL: it has no diagnostics */
    double *factors;         /* rows x REEF_FACTORS_MAX */
    double numbers[REEF_NUMBERS_MAX];
};

reef_status reef_report_create(reef_context *context, reef_report **report, ptrdiff_t rows, reef_error *error)
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
        parts.factors = rfi_arena_take(&sizes, rows, REEF_FACTORS_MAX, sizeof(double));
        parts.reason = rfi_arena_take(&sizes, rows, 1, 1);
        if (sizes.overflow) {
            return rfi_fail(error, REEF_E_OVERFLOW, "a report for %td rows exceeds the address space", rows);
        }
        if (round == 0) {
            size_t bytes = (size_t)sizes.used;
            sizes = (rfi_arena){.base = rfi_allocate(context, bytes)};
            if (!sizes.base) {
                return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a report on %td rows", rows);
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
    if (!report) {
        return;
    }
    report->shares = shares;
    report->centre = centre;
}

void reef_report_keep_segments(reef_report *report, double *trust)
{
    if (!report) {
        return;
    }
    report->segments = trust;
}

const double *reef_report_trust(const reef_report *report)
{
    if (!report) {
        return NULL;
    }
    return report->trust;
}

const double *reef_report_rejected(const reef_report *report)
{
    if (!report) {
        return NULL;
    }
    return report->rejected;
}

reef_reason reef_report_reason(const reef_report *report, ptrdiff_t row)
{
    if (!report) {
        return REEF_USED;
    }
    return row >= 0 && row < report->rows ? (reef_reason)report->reason[row] : REEF_ZERO_WEIGHT;
}

ptrdiff_t reef_report_dropped(const reef_report *report)
{
    if (!report) {
        return 0;
    }
    return report->dropped;
}

int64_t reef_report_masked(const reef_report *report)
{
    if (!report) {
        return 0;
    }
    return report->masked;
}

double reef_report_centre_share(const reef_report *report)
{
    if (!report) {
        return NAN;
    }
    return report->centre_share;
}

double reef_report_efficiency(const reef_report *report)
{
    if (!report) {
        return NAN;
    }
    return report->efficiency;
}

ptrdiff_t reef_report_dominant(const reef_report *report)
{
    if (!report) {
        return -1;
    }
    return report->dominant;
}

double reef_report_mean_iterations(const reef_report *report)
{
    if (!report) {
        return NAN;
    }
    return report->mean_iterations;
}

int reef_report_max_iterations(const reef_report *report)
{
    if (!report) {
        return 0;
    }
    return report->max_iterations;
}

int64_t reef_report_unconverged(const reef_report *report)
{
    if (!report) {
        return 0;
    }
    return report->unconverged;
}

ptrdiff_t reef_report_factor_count(const reef_report *report)
{
    if (!report) {
        return 0;
    }
    return report->told ? report->told->factor_count : 0;
}

static bool is_factor(const reef_report *report, ptrdiff_t i)
{
    return i >= 0 && i < reef_report_factor_count(report);
}

const char *reef_report_factor_name(const reef_report *report, ptrdiff_t factor)
{
    if (!report) {
        return NULL;
    }
    return is_factor(report, factor) ? report->told->factors[factor].name : NULL;
}

const char *reef_report_factor_meaning(const reef_report *report, ptrdiff_t factor)
{
    if (!report) {
        return NULL;
    }
    return is_factor(report, factor) ? report->told->factors[factor].meaning : NULL;
}

double reef_report_factor(const reef_report *report, ptrdiff_t row, ptrdiff_t factor)
{
    if (!report) {
        return NAN;
    }
    bool exists = row >= 0 && row < report->rows && is_factor(report, factor);
    return exists ? report->factors[row * REEF_FACTORS_MAX + factor] : 1;
}

ptrdiff_t reef_report_cause(const reef_report *report, ptrdiff_t row)
{
    if (!report) {
        return -1;
    }
    ptrdiff_t cause = -1;
    double least = 1;
    for (ptrdiff_t i = 0; i < reef_report_factor_count(report); i++) {
        double factor = reef_report_factor(report, row, i);
        cause = factor < least ? i : cause;
        least = factor < least ? factor : least;
    }
    return cause;
}

size_t reef_report_explain(const reef_report *report, ptrdiff_t row, char *text, size_t size)
{
    if (!report) {
        return rfi_no_text(text, size);
    }
    ptrdiff_t cause = reef_report_cause(report, row);
    size_t used = 0;
    if (size > 0) {
        text[0] = '\0';
    }
    if (cause >= 0) {
        rfi_append(text, size, &used, "%s leaves %.2f", reef_report_factor_name(report, cause),
                   reef_report_factor(report, row, cause));
    }
    return used;
}

ptrdiff_t reef_report_number_count(const reef_report *report)
{
    if (!report) {
        return 0;
    }
    return report->told ? report->told->number_count : 0;
}

static bool is_number(const reef_report *report, ptrdiff_t i)
{
    return i >= 0 && i < reef_report_number_count(report);
}

const char *reef_report_number_name(const reef_report *report, ptrdiff_t number)
{
    if (!report) {
        return NULL;
    }
    return is_number(report, number) ? report->told->numbers[number].name : NULL;
}

const char *reef_report_number_meaning(const reef_report *report, ptrdiff_t number)
{
    if (!report) {
        return NULL;
    }
    return is_number(report, number) ? report->told->numbers[number].meaning : NULL;
}

double reef_report_number(const reef_report *report, ptrdiff_t number)
{
    if (!report) {
        return NAN;
    }
    return is_number(report, number) ? report->numbers[number] : (double)NAN;
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

/* The mean shares of one segment, over the rows' weights. */
static void keep_segment(const reef_plan *plan, ptrdiff_t segment, const double *sum)
{
    double *trust = plan->report->segments + segment * plan->rows;
    double length = (double)plan->m.lengths[segment];
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        trust[l] = length > 0 ? 0 : (double)NAN;
    }
    for (ptrdiff_t p = 0; length > 0 && p < plan->n_raw; p++) {
        ptrdiff_t l = plan->m.active[p];
        trust[l] = sum[p] / length / plan->m.weights[l];
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
        if (plan->report->segments) {
            keep_segment(plan, s, slots + first * length);
        }
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

void rfi_report_tests(const reef_plan *plan)
{
    reef_report *report = plan->report;
    const rfi_recall *recall = &plan->recall;
    report->told = plan->recalls ? plan->rule->memory : NULL;
    ptrdiff_t count = reef_report_factor_count(report);
    for (ptrdiff_t i = 0; i < plan->rows * REEF_FACTORS_MAX; i++) {
        report->factors[i] = 1;
    }
    for (ptrdiff_t l = 0; count > 0 && l < recall->seen.n; l++) {
        memcpy(report->factors + plan->m.active[l] * REEF_FACTORS_MAX, recall->seen.factor + l * count,
               (size_t)count * sizeof(double));
    }
    memcpy(report->numbers, recall->number, sizeof report->numbers);
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
