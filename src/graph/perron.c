/* The Perron vector: A p = p, sum 1.
 *
 * Reversible A (a_lk p_k = a_kl p_l for all links): p follows from one agent to the next, p_l = p_k a_lk / a_kl, along a walk over the
 * graph; every other link must then agree. No iteration, so a ring of a million agents costs no more than an expander. The product of
 * many ratios is kept as mantissa and exponent: it cannot overflow.
 * Otherwise: power iteration. */
#include "graph/spectrum.h"

#include "base/error.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>

/* Relative disagreement of a link that is rounding: errors add up along the walk. */
#define AGREES 1e-9

typedef struct ratio_walk {
    double *mantissa;  /* the p of solve */
    int32_t *exponent; /* K */
    int32_t *queue;    /* K */
    ptrdiff_t queued;
} ratio_walk;

/* a_lk / a_kl as operator entries; 0 if one of them is missing. */
static double ratio_of(const rfi_operator *op, ptrdiff_t k, ptrdiff_t place)
{
    int32_t l = op->csr->senders[place];
    ptrdiff_t back = reef_csr_find(op->csr, k, l);
    double forth = op->csr->weight[place] * op->scale[k];
    return back >= 0 && op->csr->weight[back] > 0 ? forth / (op->csr->weight[back] * op->scale[l]) : 0;
}

static void visit(ratio_walk *w, int32_t l, double value, int32_t exponent)
{
    int shift = 0;
    w->mantissa[l] = frexp(value, &shift);
    w->exponent[l] = exponent + shift;
    w->queue[w->queued++] = l;
}

/* False as soon as a link contradicts, or has no way back. Unvisited agents have mantissa 0. */
static bool walk(const rfi_operator *op, ratio_walk *w)
{
    for (ptrdiff_t i = 0; i < w->queued; i++) {
        int32_t k = w->queue[i];
        for (ptrdiff_t place = op->csr->start[k]; place < op->csr->start[k + 1]; place++) {
            int32_t l = op->csr->senders[place];
            if (l == k || rfi_operator_malicious(op, l) || !(op->csr->weight[place] > 0)) {
                continue;
            }
            double ratio = ratio_of(op, k, place);
            if (!(ratio > 1e-300 && ratio < 1e300)) {
                return false;
            }
            double want = w->mantissa[k] * ratio;
            if (w->mantissa[l] == 0) {
                visit(w, l, want, w->exponent[k]);
                continue;
            }
            double have = ldexp(w->mantissa[l], w->exponent[l] - w->exponent[k]);
            if (!(fabs(have - want) <= AGREES * want)) {
                return false;
            }
        }
    }
    return true;
}

static void normalise(double *p, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        assert(p[k] >= 0); /* columns are not negative, so the vector is not */
        sum += p[k];
    }
    assert(sum > 0);
    for (ptrdiff_t k = 0; k < n; k++) {
        p[k] /= sum;
    }
}

static void finish(const rfi_operator *op, const ratio_walk *w)
{
    int32_t largest = INT32_MIN;
    for (ptrdiff_t i = 0; i < w->queued; i++) {
        int32_t exponent = w->exponent[w->queue[i]];
        largest = exponent > largest ? exponent : largest;
    }
    for (ptrdiff_t i = 0; i < w->queued; i++) {
        int32_t k = w->queue[i];
        w->mantissa[k] = ldexp(w->mantissa[k], w->exponent[k] - largest);
    }
    normalise(w->mantissa, op->csr->agents);
}

reef_status rfi_perron_reversible(const rfi_operator *op, double *p, bool *reversible, reef_error *error)
{
    ptrdiff_t agents = op->csr->agents;
    int32_t *memory = rfi_allocate_many(op->context, agents, 2 * sizeof *memory);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to walk over %td agents", agents);
    }
    ratio_walk w = {p, memory, memory + agents, 0};
    int32_t root = 0;
    for (ptrdiff_t k = agents - 1; k >= 0; k--) {
        p[k] = 0;
        root = rfi_operator_malicious(op, k) ? root : (int32_t)k;
    }
    visit(&w, root, 1, 0);
    *reversible = walk(op, &w);
    if (*reversible) {
        finish(op, &w);
    }
    rfi_release(op->context, memory);
    return REEF_OK;
}

reef_status rfi_perron_power(const rfi_operator *op, bool lazy, double *p, reef_spectrum *spectrum, reef_error *error)
{
    ptrdiff_t agents = op->csr->agents;
    double *y = rfi_allocate_many(op->context, agents, sizeof *y);
    double change = INFINITY;
    if (!y) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for vectors of %td agents", agents);
    }
    for (ptrdiff_t k = 0; k < agents; k++) {
        p[k] = rfi_operator_malicious(op, k) ? 0 : 1 / (double)op->honest;
    }
    while (change > op->tolerance / 2 && spectrum->iterations < op->max_iterations) {
        rfi_operate(op, p, y);
        change = 0;
        for (ptrdiff_t k = 0; k < agents; k++) {
            change += fabs(y[k] - p[k]);
            p[k] = lazy ? 0.5 * (y[k] + p[k]) : y[k];
        }
        normalise(p, agents);
        spectrum->iterations++;
    }
    rfi_release(op->context, y);
    return REEF_OK;
}
