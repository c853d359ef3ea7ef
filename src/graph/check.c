/* What the theory requires of a network: honest majorities, a connected and primitive honest subgraph, and no agent that hears only itself.
 *
 * Assumption 1: for every honest agent k more than half of N_k is honest; by number of senders (which count-based starts need) and by
 * their weight (which rules that use weights need). */
#include "graph/graph.h"

#include "base/error.h"
#include "base/memory.h"
#include "num/order.h"

#include <math.h>

/* One column, as the checks see it: links of weight > 0 only. */
typedef struct tally {
    ptrdiff_t count, malicious_count;
    double weight, lied; /* weight of all, and of malicious agents */
    double own;
} tally;

static tally tally_column(const reef_csr *csr, const bool *malicious, ptrdiff_t k)
{
    tally t = {0};
    for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
        int32_t l = csr->senders[i];
        double weight = csr->weight[i];
        bool lies = malicious && malicious[l];
        if (!(weight > 0)) {
            continue;
        }
        t.count++;
        t.malicious_count += lies;
        t.weight += weight;
        t.lied += lies ? weight : 0;
        t.own += l == k ? weight : 0;
    }
    return t;
}

/* Malicious agents that n senders tolerate: a strict majority remains. */
static ptrdiff_t tolerated(ptrdiff_t n)
{
    return n > 0 ? (n - 1) / 2 : 0;
}

static void count_majority(reef_majority *majority, ptrdiff_t k, double share, bool holds)
{
    majority->failing += !holds;
    majority->holds = majority->failing == 0;
    if (majority->worst < 0 || share < majority->share) {
        majority->worst = k;
        majority->share = share;
    }
}

/* An agent that hears nobody hears no malicious agent. */
static void add_honest(reef_graph_facts *facts, ptrdiff_t k, const tally *t)
{
    double by_count = t->count > 0 ? (double)(t->count - t->malicious_count) / (double)t->count : 1;
    double by_weight = t->weight > 0 ? (t->weight - t->lied) / t->weight : 1;
    ptrdiff_t spare = tolerated(t->count) - t->malicious_count;
    count_majority(&facts->by_count, k, by_count, t->count == 0 || 2 * t->malicious_count < t->count);
    count_majority(&facts->by_weight, k, by_weight, by_weight > 0.5 + RFI_HALF_TOL_F64);
    if (facts->least_spare_agent < 0 || spare < facts->least_spare) {
        facts->least_spare = spare;
        facts->least_spare_agent = k;
    }
}

static void add_agent(reef_graph_facts *facts, ptrdiff_t k, const tally *t)
{
    facts->links += t->count;
    facts->largest = t->count > facts->largest ? t->count : facts->largest;
    facts->smallest = k == 0 || t->count < facts->smallest ? t->count : facts->smallest;
    facts->largest_self = fmax(facts->largest_self, t->own);
    facts->column_error = t->count > 0 ? fmax(facts->column_error, fabs(t->weight - 1)) : facts->column_error;
    if (t->own >= 0.5) {
        facts->self_heavy_first = facts->self_heavy == 0 ? k : facts->self_heavy_first;
        facts->self_heavy++;
    }
}

static reef_status check_paths(const reef_context *context, const reef_csr *csr, const bool *malicious,
                               reef_graph_facts *facts, reef_error *error)
{
    facts->components = rfi_components(context, csr, malicious);
    facts->connected = facts->components == 1;
    facts->period = facts->connected ? rfi_period(context, csr, malicious) : 0;
    facts->primitive = facts->period == 1;
    if (facts->components < 0 || facts->period < 0) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to walk over %td agents", csr->agents);
    }
    return REEF_OK;
}

static reef_status check_csr(const reef_csr *csr, const char *caller, reef_error *error)
{
    if (!csr || !csr->start || !csr->senders || !csr->weight || csr->agents < 1) {
        return rfi_fail(error, REEF_E_ARG, "%s: the graph is missing or incomplete", caller);
    }
    return REEF_OK;
}

reef_status reef_graph_check(const reef_context *context, const reef_csr *csr, const bool *malicious,
                             reef_graph_facts *facts, reef_error *error)
{
    reef_status status = check_csr(csr, "reef_graph_check", error);
    if (status != REEF_OK || !facts) {
        return facts ? status : rfi_fail(error, REEF_E_ARG, "reef_graph_check: facts is NULL");
    }
    reef_graph_facts made = {.agents = csr->agents,
                             .by_count = {true, 0, -1, 1},
                             .by_weight = {true, 0, -1, 1},
                             .least_spare_agent = -1,
                             .self_heavy_first = -1};
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        tally t = tally_column(csr, malicious, k);
        add_agent(&made, k, &t);
        if (malicious && malicious[k]) {
            made.malicious_count++;
        } else {
            add_honest(&made, k, &t);
        }
    }
    status = check_paths(context, csr, malicious, &made, error);
    if (status != REEF_OK) {
        return status;
    }
    *facts = made;
    return REEF_OK;
}

/* Others of k by weight, heaviest first, as long as they have less than half. */
static int32_t tolerated_weight(const reef_csr *csr, ptrdiff_t k, double *sorted)
{
    ptrdiff_t count = 0;
    double total = 0;
    double taken = 0;
    int32_t bears = 0;
    for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
        total += csr->weight[i];
        if (csr->senders[i] != k && csr->weight[i] > 0) {
            sorted[count++] = csr->weight[i];
        }
    }
    rfi_sort(sorted, count);
    while (count > 0) {
        taken += sorted[--count];
        if (!(taken < (0.5 - RFI_HALF_TOL_F64) * total)) {
            break;
        }
        bears++;
    }
    return bears;
}

reef_status reef_graph_tolerated(const reef_context *context, const reef_csr *csr, int32_t *by_count,
                                 int32_t *by_weight, reef_error *error)
{
    reef_status status = check_csr(csr, "reef_graph_tolerated", error);
    ptrdiff_t largest = 0;
    for (ptrdiff_t k = 0; status == REEF_OK && k < csr->agents; k++) {
        ptrdiff_t size = csr->start[k + 1] - csr->start[k];
        largest = size > largest ? size : largest;
    }
    double *sorted = status == REEF_OK && by_weight ? rfi_allocate_many(context, largest, sizeof *sorted) : NULL;
    if (status == REEF_OK && by_weight && !sorted) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to sort %td weights", largest);
    }
    for (ptrdiff_t k = 0; status == REEF_OK && k < csr->agents; k++) {
        if (by_count) {
            by_count[k] = (int32_t)tolerated(tally_column(csr, NULL, k).count);
        }
        if (by_weight) {
            by_weight[k] = tolerated_weight(csr, k, sorted);
        }
    }
    rfi_release(context, sorted);
    return status;
}
