/* Starting an aggregation: weights, rows in use, malicious rows to expect, order of calls. */
#include "agg/plan.h"
#include "base/error.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Below this part of the largest a weight counts as none: quotients with it would overflow. */
static const double weight_least = 1e-100;

/* a_l = weight / sum, over rows of positive weight. */
static reef_status read_weights(reef_plan *plan, const double *given, reef_error *error)
{
    double *a = plan->m.weights;
    double largest = 0;
    double sum = 0;
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        double weight = given ? given[l] : 1;
        if (!isfinite(weight) || weight < 0) {
            return rfi_fail(error, REEF_E_WEIGHTS, "weight %td is %g; weights are finite and not negative", l, weight);
        }
        largest = weight > largest ? weight : largest;
        a[l] = weight;
    }
    if (largest == 0) {
        return rfi_fail(error, REEF_E_WEIGHTS, "all %td weights are zero; at least one must be positive", plan->rows);
    }
    /* dividing by the largest first keeps huge weights from overflowing the sum */
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        a[l] = a[l] / largest < weight_least ? 0 : a[l] / largest;
        sum += a[l];
    }
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        a[l] /= sum;
    }
    return REEF_OK;
}

bool rfi_weights_equal(const reef_plan *plan, const double *given)
{
    if (!given) {
        return true;
    }
    bool equal = given[0] > 0 && isfinite(given[0]);
    for (ptrdiff_t l = 1; equal && l < plan->rows; l++) {
        equal = given[l] == given[0];
    }
    return equal;
}

static bool all_equal(const double *a, ptrdiff_t n)
{
    for (ptrdiff_t i = 1; i < n; i++) {
        if (a[i] != a[0]) {
            return false;
        }
    }
    return true;
}

static reef_status list_active(reef_plan *plan, reef_error *error)
{
    rfi_memory *m = &plan->m;
    ptrdiff_t n = 0;
    double sum = 0;
    plan->n_positive = 0;
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        plan->n_positive += m->weights[l] > 0;
        if (m->reason[l] == REEF_USED) {
            m->active[n] = l;
            m->raw_weights[n] = m->weights[l];
            sum += m->weights[l];
            n++;
        }
    }
    if (n == 0) {
        return rfi_fail(error, REEF_E_NO_ROWS, "none of the %td inputs can be used: every one contains NaN or Inf",
                        plan->n_positive);
    }
    plan->equal_raw = all_equal(m->raw_weights, n);
    for (ptrdiff_t i = 0; i < n; i++) {
        /* equal weights are exactly equal, whatever the rounding of the sum */
        m->raw_weights[i] = plan->equal_raw ? 1 / (double)n : m->raw_weights[i] / sum;
    }
    plan->n_raw = n;
    return REEF_OK;
}

static reef_status check_malicious(const rfi_stage *stage, ptrdiff_t malicious_count, ptrdiff_t n, reef_error *error)
{
    ptrdiff_t most = stage->rule->bound(stage->params, n);
    if (malicious_count <= most) {
        return REEF_OK;
    }
    return rfi_fail(error, REEF_E_MALICIOUS,
                    "%s: f = %td malicious inputs of n = %td are too many; it needs %s, so at most f = %td",
                    stage->rule->kind.name, malicious_count, n, stage->rule->bound_text, most);
}

/* f of each stage: as set for all rows of positive weight, less those already found out. */
static reef_status count_malicious(reef_plan *plan, reef_error *error)
{
    ptrdiff_t n_before = plan->n_positive;
    ptrdiff_t n = plan->n_raw;
    for (ptrdiff_t i = 0; i < plan->agg->count; i++) {
        const rfi_stage *stage = &plan->agg->stages[i];
        if (stage->malicious_count) {
            const reef_malicious *set = (const void *)((const char *)stage->params + stage->malicious_count->offset);
            ptrdiff_t malicious_count = rfi_stage_malicious(stage, set->kind == REEF_MALICIOUS_MAX ? n : n_before);
            if (set->kind != REEF_MALICIOUS_MAX) {
                malicious_count = malicious_count > plan->dropped ? malicious_count - plan->dropped : 0;
            }
            reef_status status = check_malicious(stage, malicious_count, n, error);
            if (status != REEF_OK) {
                return status;
            }
            plan->malicious_count[i] = malicious_count;
        }
        if (stage->rule->feasible && !stage->rule->feasible(stage->params, n, plan->malicious_count[i])) {
            return rfi_fail(error, REEF_E_RANGE, "%s: n = %td inputs with f = %td would take too long; %s",
                            stage->rule->kind.name, n, plan->malicious_count[i], stage->rule->limit_text);
        }
        if (stage->rule->mixed) {
            n_before = stage->rule->mixed(stage->params, n_before);
            n = stage->rule->mixed(stage->params, n);
        }
    }
    plan->n_mixed = n;
    return REEF_OK;
}

static reef_status check_weights_used(const reef_plan *plan, reef_error *error)
{
    if (plan->equal_raw) {
        return REEF_OK;
    }
    for (ptrdiff_t i = 0; i < plan->agg->count; i++) {
        const rfi_stage *stage = &plan->agg->stages[i];
        unsigned traits = stage->rule->traits_of ? stage->rule->traits_of(stage->params) : stage->rule->traits;
        if (!(traits & REEF_TRAIT_WEIGHTS)) {
            return rfi_fail(error, REEF_E_WEIGHTS,
                            "%s does not support unequal weights; use equal weights, or a rule that supports them (see "
                            "`reef list RULE`)",
                            stage->rule->kind.name);
        }
    }
    return REEF_OK;
}

static ptrdiff_t find_self(const reef_plan *plan)
{
    if (plan->settled) { /* all rows are in use */
        return plan->input.has_self ? plan->input.self : -1;
    }
    for (ptrdiff_t i = 0; plan->input.has_self && i < plan->n_raw; i++) {
        if (plan->m.active[i] == plan->input.self) {
            return i;
        }
    }
    return -1;
}

void rfi_plan_unsee(reef_plan *plan)
{
    /* no other thread is at work now, and whatever starts one orders these */
    for (ptrdiff_t i = 0; i < plan->m.slot_starts[plan->segments]; i++) {
        atomic_store_explicit(&plan->m.seen[i], false, memory_order_relaxed);
    }
    for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
        plan->m.workers[i].covered = 0;
        plan->m.workers[i].open_segment = -1;
    }
}

static reef_status count_rows(reef_plan *plan, reef_error *error)
{
    reef_status status = list_active(plan, error);
    if (status != REEF_OK) {
        return status;
    }
    status = check_weights_used(plan, error);
    if (status != REEF_OK) {
        return status;
    }
    return count_malicious(plan, error);
}

/* No row is under suspicion. If none was, the flags need not be cleared one by one. */
static void acquit_all(reef_plan *plan)
{
    if (plan->settled && !atomic_load_explicit(&plan->any_suspect, memory_order_relaxed)) {
        return;
    }
    atomic_store_explicit(&plan->any_suspect, false, memory_order_relaxed);
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        atomic_store_explicit(&plan->m.suspect[l], false, memory_order_relaxed);
    }
}

/* (Re)computes everything that depends on which rows are in use: with it an aggregation is begun. */
static reef_status select_rows(reef_plan *plan, reef_error *error)
{
    plan->begun = false;
    reef_status status = plan->settled ? REEF_OK : count_rows(plan, error);
    if (status != REEF_OK) {
        return status;
    }
    assert(plan->n_raw >= 1 && plan->n_raw + plan->dropped <= plan->n_positive && plan->n_positive <= plan->rows);
    assert(plan->n_mixed >= 1 && plan->n_mixed <= plan->rows);
    memcpy(plan->m.mixed_weights, plan->m.raw_weights, (size_t)plan->n_raw * sizeof(double));
    plan->equal_mixed = plan->equal_raw;
    plan->self = find_self(plan);
    plan->pass = 0;
    acquit_all(plan);
    if (!plan->settled && plan->brief) {
        rfi_short_begin(plan);
    }
    plan->settled = !plan->input.weights && plan->dropped == 0;
    rfi_plan_unsee(plan);
    rfi_report_begin(plan);
    status = plan->mix_early ? rfi_mix_all(plan, false, error) : REEF_OK;
    if (status == REEF_OK && plan->recalls) {
        status = rfi_recall_begin(plan, error);
    }
    plan->begun = status == REEF_OK;
    return status;
}

static reef_status check_input(const reef_plan *plan, const reef_input *input, const reef_report *report,
                               reef_error *error)
{
    reef_status fits = rfi_check_size(input->size, sizeof *input, "reef_input", error);
    if (fits != REEF_OK) {
        return fits;
    }
    if (input->has_self && (input->self < 0 || input->self >= plan->rows)) {
        return rfi_fail(error, REEF_E_ARG, "self = %td is not one of the rows 0 to %td", input->self, plan->rows - 1);
    }
    if ((plan->needs & REEF_NEED_SELF) && !input->has_self) {
        return rfi_fail(error, REEF_E_ARG,
                        "%s with keep_self needs to know which row is the receiver's own (set self in reef_input)",
                        plan->rule->kind.name);
    }
    if (!(input->step >= 0) || !isfinite(input->step)) {
        return rfi_fail(error, REEF_E_ARG, "step = %g; a step size must be finite and positive, or 0 if unknown",
                        input->step);
    }
    if (input->state && !rfi_state_fits(input->state, plan)) {
        return rfi_fail(error, REEF_E_ARG, "the state was created for a shape other than the plan's");
    }
    return rfi_report_fits(report, plan->rows, error);
}

reef_status reef_plan_begin(reef_plan *plan, const reef_input *input, reef_report *report, reef_error *error)
{
    if (!plan || !input) {
        return rfi_fail(error, REEF_E_ARG, "reef_plan_begin: %s is NULL", plan ? "input" : "plan");
    }
    plan->begun = false;
    reef_status status = check_input(plan, input, report, error);
    if (status != REEF_OK) {
        return status;
    }
    bool equal = rfi_weights_equal(plan, input->weights);
    plan->settled = plan->settled && equal;
    status = plan->settled ? REEF_OK : read_weights(plan, input->weights, error);
    if (status != REEF_OK) {
        return status;
    }
    plan->input = *input;
    plan->input.weights = equal ? NULL : input->weights;
    plan->report = report;
    plan->dropped = 0;
    plan->centre_known = input->state && rfi_state_known(input->state);
    plan->keeps_centre = input->state && !plan->recalls;
    for (ptrdiff_t l = 0; !plan->settled && l < plan->rows; l++) {
        plan->m.reason[l] = plan->m.weights[l] > 0 ? REEF_USED : REEF_ZERO_WEIGHT;
    }
    return select_rows(plan, error);
}

bool reef_plan_suspect(const reef_plan *plan)
{
    if (!plan) {
        return false;
    }
    return atomic_load(&((reef_plan *)(uintptr_t)plan)->any_suspect);
}

reef_status rfi_plan_scan(reef_plan *plan, rfi_type type, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1,
                          const void *const *rows, reef_error *error)
{
    reef_status status = rfi_check_range(plan, 0, segment, m0, m1, rows, 0, error);
    for (ptrdiff_t i = 0; status == REEF_OK && i < plan->n_raw; i++) {
        ptrdiff_t l = plan->m.active[i];
        for (ptrdiff_t m = 0; m < m1 - m0; m++) {
            if (!isfinite(rfi_load_from(type, rows[l], m))) {
                atomic_store(&plan->m.suspect[l], true);
                break;
            }
        }
    }
    return status;
}

reef_status reef_plan_scan(reef_plan *plan, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1, const void *const *rows,
                           reef_error *error)
{
    return rfi_plan_scan(plan, plan ? rfi_plan_type(plan) : RFI_F32, segment, m0, m1, rows, error);
}

static reef_status refuse_rows(const reef_plan *plan, reef_error *error)
{
    ptrdiff_t first = -1;
    ptrdiff_t bad = 0;
    for (ptrdiff_t l = plan->rows - 1; l >= 0; l--) {
        if (atomic_load(&plan->m.suspect[l])) {
            first = l;
            bad++;
        }
    }
    int64_t id = plan->input.ids ? plan->input.ids[first] : first;
    return rfi_fail(error, REEF_E_NONFINITE,
                    "%td of %td inputs contain NaN or Inf (the first is from agent %lld), and the policy is nan=error",
                    bad, plan->n_positive, (long long)id);
}

static void leave_out(reef_plan *plan, ptrdiff_t row)
{
    if (plan->m.reason[row] == REEF_USED) {
        plan->m.reason[row] = REEF_NONFINITE;
        plan->dropped++;
        plan->settled = false;
    }
}

reef_status reef_plan_drop(reef_plan *plan, reef_error *error)
{
    if (!plan || !plan->begun) {
        return rfi_fail(error, REEF_E_ORDER,
                        "reef_plan_drop: no aggregation is in progress; call reef_plan_begin first");
    }
    if (plan->agg->nan == RFI_NAN_ERROR) {
        plan->begun = false;
        return refuse_rows(plan, error);
    }
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        if (atomic_load(&plan->m.suspect[l])) {
            leave_out(plan, l);
        }
    }
    return select_rows(plan, error);
}

reef_status rfi_plan_exclude(reef_plan *plan, const bool *rows, reef_error *error)
{
    ptrdiff_t before = plan->dropped;
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        if (rows[l]) {
            leave_out(plan, l);
        }
    }
    return plan->dropped > before ? select_rows(plan, error) : REEF_OK;
}

ptrdiff_t rfi_plan_dropped(const reef_plan *plan)
{
    return plan->dropped;
}

bool rfi_plan_uses(const reef_plan *plan, ptrdiff_t row)
{
    return plan->m.reason[row] == REEF_USED;
}

/* Shares say all only if they are those of the rows themselves, and entries left out are not counted; a centre that is a median takes all rows. */
static bool shares_say_all(const reef_plan *plan)
{
    return plan->passes > 0 && plan->pass == plan->passes && plan->rule->weigh && plan->scope <= 0 &&
           plan->agg->count == 1 && plan->agg->nan != RFI_NAN_DROP_COORDINATE && !(plan->needs & REEF_NEED_CENTRE);
}

void rfi_plan_rows_read(const reef_plan *plan, ptrdiff_t segment, bool *read)
{
    assert(plan->begun && segment >= 0 && segment < plan->segments);
    bool some = false;
    for (ptrdiff_t l = 0; l < plan->rows; l++) {
        read[l] = rfi_plan_uses(plan, l);
    }
    if (!shares_say_all(plan)) {
        return;
    }
    const double *share = plan->m.shares + (plan->scope == REEF_SCOPE_SEGMENT ? segment * (plan->rows + 2) : 0);
    for (ptrdiff_t i = 0; i < plan->n_raw; i++) {
        some = some || share[i] > 0;
    }
    for (ptrdiff_t i = 0; some && i < plan->n_raw; i++) {
        read[plan->m.active[i]] = share[i] > 0;
    }
}

reef_status rfi_check_range(const reef_plan *plan, ptrdiff_t worker, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1,
                            const void *const *rows, ptrdiff_t piece, reef_error *error)
{
    if (!plan || !rows) {
        return rfi_fail(error, REEF_E_ARG, "the %s is NULL", plan ? "array of rows" : "plan");
    }
    if (!plan->begun) {
        return rfi_fail(error, REEF_E_ORDER, "no aggregation is in progress on this plan; call reef_plan_begin first");
    }
    if (worker < 0 || worker >= plan->worker_count) {
        return rfi_fail(error, REEF_E_ARG, "there is no worker %td; the plan has %td workers", worker,
                        plan->worker_count);
    }
    if (segment < 0 || segment >= plan->segments) {
        return rfi_fail(error, REEF_E_ARG, "there is no segment %td; the plan has %td segments", segment,
                        plan->segments);
    }
    ptrdiff_t length = plan->m.lengths[segment];
    if (m0 < 0 || m0 >= m1 || m1 > length) {
        return rfi_fail(error, REEF_E_ARG, "the range %td to %td is outside a segment of %td coordinates", m0, m1,
                        length);
    }
    const rfi_worker *w = &plan->m.workers[worker];
    bool goes_on = w->open_segment == segment && w->open_at == m0;
    if (piece > 0 && ((m0 % plan->grain && !goes_on) || (m1 % piece && m1 != length))) {
        return rfi_fail(error, REEF_E_ARG,
                        "range %td to %td must start at a multiple of the grain %td or where this worker's last one "
                        "ended, and end at a multiple of the piece %td",
                        m0, m1, plan->grain, piece);
    }
    for (ptrdiff_t i = 0; i < plan->n_raw; i++) {
        if (!rows[plan->m.active[i]]) {
            return rfi_fail(error, REEF_E_ARG, "row %td is NULL", plan->m.active[i]);
        }
    }
    return REEF_OK;
}
