/* Combination weights a_lk: how much receiver k gives to sender l.
 * The kinds are in weights/. */
#include "graph/weights/weights.h"

#include "base/error.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <string.h>

reef_status rfi_weighing_check(const double *x, ptrdiff_t count, const char *what, reef_error *error)
{
    for (ptrdiff_t k = 0; k < count; k++) {
        if (!(x[k] >= 1e-100 && x[k] <= 1e100)) {
            return rfi_fail(error, REEF_E_WEIGHTS, "the %s of agent %td is %g; it must be positive (1e-100 to 1e100)",
                            what, k, x[k]);
        }
    }
    return REEF_OK;
}

/* ---- filling and checking columns ---- */

static void fill_pull(const rfi_weighing *w, double (*pull)(const rfi_weighing *, ptrdiff_t), double *weight)
{
    const reef_graph *graph = w->graph;
    for (ptrdiff_t k = 0; k < graph->agents; k++) {
        double sum = 0;
        for (ptrdiff_t i = graph->start[k]; i < graph->start[k + 1]; i++) {
            weight[i] = pull(w, graph->senders[i]);
            sum += weight[i];
        }
        for (ptrdiff_t i = graph->start[k]; i < graph->start[k + 1]; i++) {
            weight[i] /= sum;
        }
    }
}

static reef_status fill_pair(const rfi_weighing *w, const rfi_weight_kind *kind, double *weight, reef_error *error)
{
    const reef_graph *graph = w->graph;
    if (!graph->symmetric) {
        return rfi_fail(error, REEF_E_WEIGHTS, "%s needs a symmetric graph: every link in both directions",
                        kind->kind.name);
    }
    for (ptrdiff_t k = 0; k < graph->agents; k++) {
        double others = 0;
        ptrdiff_t own = -1;
        for (ptrdiff_t i = graph->start[k]; i < graph->start[k + 1]; i++) {
            if (graph->senders[i] == k) {
                own = i;
            } else {
                weight[i] = kind->pair(w, graph->senders[i], k);
                others += weight[i];
            }
        }
        if (own < 0) {
            return rfi_fail(
                error, REEF_E_WEIGHTS,
                "%s gives the remaining weight to the agent itself, but agent %td does not hear itself; use loops=true",
                kind->kind.name, k);
        }
        weight[own] = fmax(0, 1 - others);
    }
    return REEF_OK;
}

void rfi_weigh_uniform(const reef_graph *graph, double *weight)
{
    rfi_weighing w = {graph, NULL, NULL};
    fill_pull(&w, rfi_weights_uniform.pull, weight);
}

/* Sum of column k, or NaN if an entry is negative or not finite. An agent without senders has an empty column, which is in order. */
static double column_sum(const reef_csr *csr, const double *weight, ptrdiff_t k)
{
    double sum = csr->start[k] == csr->start[k + 1] ? 1 : 0;
    for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
        sum += weight[i] >= 0 && weight[i] <= 1e300 ? weight[i] : (double)NAN;
    }
    return sum;
}

static reef_status check_column(const reef_csr *csr, const double *weight, ptrdiff_t k, double tolerance, double *sum,
                                reef_error *error)
{
    *sum = column_sum(csr, weight, k);
    if (isnan(*sum)) {
        return rfi_fail(error, REEF_E_WEIGHTS, "a weight that agent %td gives is negative or not finite", k);
    }
    if (!(fabs(*sum - 1) <= tolerance)) {
        return rfi_fail(error, REEF_E_WEIGHTS, "the weights that agent %td gives to its senders sum to %.9g, not to 1",
                        k, *sum);
    }
    return REEF_OK;
}

reef_status reef_graph_check_weights(const reef_csr *csr, double tolerance, reef_error *error)
{
    if (!csr) {
        return rfi_fail(error, REEF_E_ARG, "reef_graph_check_weights needs a csr");
    }
    double sum = 0;
    reef_status status = REEF_OK;
    for (ptrdiff_t k = 0; k < csr->agents && status == REEF_OK; k++) {
        status = check_column(csr, csr->weight, k, tolerance, &sum, error);
    }
    return status;
}

reef_status rfi_scale_columns(const reef_csr *csr, double *weight, reef_error *error)
{
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        double sum = 0;
        reef_status status = check_column(csr, weight, k, RFI_COLUMN_TOLERANCE, &sum, error);
        if (status != REEF_OK) {
            return status;
        }
        for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
            weight[i] /= sum;
        }
        assert(fabs(column_sum(csr, weight, k) - 1) <= 1e-9); /* what everything that uses weights relies on */
    }
    return REEF_OK;
}

/* ---- the interface ---- */

static const reef_kind *const kinds[] = {
#define RFI_WEIGHTS(name) &rfi_weights_##name.kind,
#include "graph/weights/weights_list.h"
#undef RFI_WEIGHTS
};

const rfi_family rfi_family_weights = {.number = REEF_FAMILY_WEIGHTS,
                                       .name = "weights",
                                       .what = "weight rule",
                                       .builtin = kinds,
                                       .builtin_count = RFI_COUNT(kinds)};

static reef_status fill(const rfi_weighing *w, const rfi_weight_kind *kind, double *weight, reef_error *error)
{
    reef_csr csr = reef_graph_csr(w->graph);
    reef_status status = kind->check ? kind->check(w, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    if (kind->pull) {
        fill_pull(w, kind->pull, weight);
    } else {
        status = kind->pair ? fill_pair(w, kind, weight, error) : kind->fill(w, weight, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return rfi_scale_columns(&csr, weight, error);
}

static double *new_weights(const reef_graph *graph, reef_error *error)
{
    double *weight = rfi_allocate_many(graph->context, reef_graph_links(graph), sizeof *weight);
    if (!weight) {
        (void)rfi_fail(error, REEF_E_NOMEM, "not enough memory for the weights of %td links", reef_graph_links(graph));
    }
    return weight;
}

/* New weights take the place of the old ones if all went well. */
static reef_status keep(reef_graph *graph, double *weight, reef_status status)
{
    rfi_release(graph->context, status == REEF_OK ? graph->weight : weight);
    if (status != REEF_OK) {
        return status;
    }
    graph->weight = weight;
    return REEF_OK;
}

reef_status reef_graph_set_weights(reef_graph *graph, const char *spec, const reef_weight_data *data, reef_error *error)
{
    const reef_kind *kind = NULL;
    void *params = NULL;
    if (!graph || !spec) {
        return rfi_fail(error, REEF_E_ARG, "reef_graph_set_weights: %s is NULL", graph ? "spec" : "graph");
    }
    reef_status status = rfi_check_size(data ? data->size : 0, sizeof *data, "reef_weight_data", error);
    if (status == REEF_OK) {
        status = rfi_spec_read(graph->context, &rfi_family_weights, spec, NULL, &kind, &params, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    rfi_weighing w = {graph, params, data};
    double *weight = new_weights(graph, error);
    status = weight ? fill(&w, (const void *)kind, weight, error) : REEF_E_NOMEM;
    rfi_release(graph->context, params);
    return keep(graph, weight, status);
}

reef_status reef_graph_put_weights(reef_graph *graph, const double *weight, reef_error *error)
{
    if (!graph || !weight) {
        return rfi_fail(error, REEF_E_ARG, "reef_graph_put_weights: %s is NULL", graph ? "weight" : "graph");
    }
    reef_csr csr = reef_graph_csr(graph);
    double *copy = new_weights(graph, error);
    if (!copy) {
        return REEF_E_NOMEM;
    }
    memcpy(copy, weight, (size_t)reef_graph_links(graph) * sizeof *copy);
    return keep(graph, copy, rfi_scale_columns(&csr, copy, error));
}
