/* Perron vector and spectral gap: sets up the operator and chooses the method.
 *
 * Every undirected graph with one of our weight rules is reversible; then both are found by methods for symmetric matrices, which is
 * faster and more reliable. Directed graphs and the effective weights of robust rules need the general methods. */
#include "graph/spectrum.h"

#include "base/error.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>

void rfi_operate(const rfi_operator *op, const double *x, double *y)
{
    const reef_csr *csr = op->csr;
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        y[k] = 0;
    }
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        double xk = x[k] * op->scale[k];
        for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1] && op->scale[k] > 0; i++) {
            y[csr->senders[i]] += csr->weight[i] * xk;
        }
    }
    for (ptrdiff_t k = 0; k < csr->agents && op->malicious; k++) {
        y[k] = op->malicious[k] ? 0 : y[k];
    }
}

double rfi_dot(const double *x, const double *y, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        sum += x[k] * y[k];
    }
    return sum;
}

void rfi_random_direction(const rfi_operator *op, double *x)
{
    rfi_rng rng;
    rfi_rng_init(&rng, 0, RFI_PURPOSE_GRAPH, 0, 0, 1);
    for (ptrdiff_t k = 0; k < op->csr->agents; k++) {
        double value = rfi_rng_uniform(&rng) - 0.5;
        x[k] = rfi_operator_malicious(op, k) ? 0 : value;
    }
}

static double honest_weight(const rfi_operator *op, ptrdiff_t k)
{
    double sum = 0;
    for (ptrdiff_t i = op->csr->start[k]; i < op->csr->start[k + 1]; i++) {
        sum += rfi_operator_malicious(op, op->csr->senders[i]) ? 0 : op->csr->weight[i];
    }
    return sum;
}

static reef_status set_scales(rfi_operator *op, reef_error *error)
{
    for (ptrdiff_t k = 0; k < op->csr->agents; k++) {
        op->scale[k] = 0;
        if (rfi_operator_malicious(op, k)) {
            continue;
        }
        double sum = honest_weight(op, k);
        if (!(sum > 0 && sum <= 1e300)) {
            return rfi_fail(error, REEF_E_GRAPH, "agent %td gives the honest agents it hears a total weight of %g", k,
                            sum);
        }
        op->scale[k] = 1 / sum;
        op->honest++;
    }
    return REEF_OK;
}

static reef_status check_connected(const rfi_operator *op, ptrdiff_t *period, reef_error *error)
{
    ptrdiff_t components = rfi_components(op->context, op->csr, op->malicious);
    if (components > 1 || components == 0) {
        return rfi_fail(
            error, REEF_E_GRAPH,
            components
                ? "the honest agents fall into %td strongly connected components, so there is no unique Perron vector"
                : "there are no honest agents (%td components)",
            components);
    }
    *period = components < 0 ? -1 : rfi_period(op->context, op->csr, op->malicious);
    if (*period < 0) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to walk over %td agents", op->csr->agents);
    }
    return REEF_OK;
}

static double residual_of(const rfi_operator *op, const double *p, double *y)
{
    double sum = 0;
    rfi_operate(op, p, y);
    for (ptrdiff_t k = 0; k < op->csr->agents; k++) {
        sum += fabs(y[k] - p[k]);
    }
    return sum;
}

/* p holds room for the vector, behind it as much scratch. */
static reef_status solve(const rfi_operator *op, const reef_spectrum_options *options, double *p, reef_spectrum *result,
                         reef_error *error)
{
    ptrdiff_t period = 0;
    reef_status status = check_connected(op, &period, error);
    if (status == REEF_OK) {
        status = rfi_perron_reversible(op, p, &result->reversible, error);
    }
    if (status == REEF_OK && !result->reversible) {
        status = rfi_perron_power(op, period > 1, p, result, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    result->residual = residual_of(op, p, p + op->csr->agents);
    result->converged = result->residual <= op->tolerance;
    if (options && options->no_second) {
        return REEF_OK;
    }
    if (op->honest == 1 || period > 1) { /* no other eigenvalue; or the roots of unity among them */
        result->second = op->honest == 1 ? 0 : 1;
        result->second_converged = true;
    } else {
        status = (result->reversible ? rfi_second_reversible : rfi_second_general)(op, p, result, error);
    }
    assert(status != REEF_OK || (result->second >= 0 && result->second <= 1)); /* columns sum to one */
    result->gap = 1 - result->second;
    return status;
}

static rfi_operator make_operator(const reef_context *context, const reef_csr *csr, const bool *malicious,
                                  const reef_spectrum_options *options, double *scale)
{
    bool tolerance = options && options->tolerance > 0;
    bool iterations = options && options->max_iterations > 0;
    return (rfi_operator){.context = context,
                          .csr = csr,
                          .malicious = malicious,
                          .scale = scale,
                          .tolerance = tolerance ? options->tolerance : 1e-10,
                          .max_iterations = iterations ? options->max_iterations : 5000};
}

reef_status reef_graph_spectrum(const reef_context *context, const reef_csr *csr, const bool *malicious,
                                const reef_spectrum_options *options, double *perron, reef_spectrum *spectrum,
                                reef_error *error)
{
    if (!csr || !csr->start || !csr->senders || !csr->weight || csr->agents < 1) {
        return rfi_fail(error, REEF_E_ARG, "reef_graph_spectrum: the graph is missing or incomplete");
    }
    reef_status fits = rfi_check_size(options ? options->size : 0, sizeof *options, "reef_spectrum_options", error);
    if (fits != REEF_OK) {
        return fits;
    }
    ptrdiff_t agents = csr->agents;
    reef_spectrum result = {.second = NAN, .gap = NAN};
    double *memory = rfi_allocate_many(context, agents, 3 * sizeof *memory);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for vectors of %td agents", agents);
    }
    double *p = memory + agents;
    rfi_operator op = make_operator(context, csr, malicious, options, memory);
    reef_status status = set_scales(&op, error);
    if (status == REEF_OK) {
        status = solve(&op, options, p, &result, error);
    }
    for (ptrdiff_t k = 0; status == REEF_OK && perron && k < agents; k++) {
        perron[k] = p[k];
    }
    if (status == REEF_OK && spectrum) {
        *spectrum = result;
    }
    rfi_release(context, memory);
    return status;
}
