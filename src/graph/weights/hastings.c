/* a_lk = min(1 / n_k, p_l / (p_k n_l)), the rest on a_kk: p is the Perron vector */
#include "graph/weights/weights.h"

#include <math.h>

static double hastings_pair(const rfi_weighing *w, ptrdiff_t l, ptrdiff_t k)
{
    const double *p = w->data ? w->data->perron : NULL;
    double ratio = p ? p[l] / p[k] : 1;
    return fmin(1 / rfi_weighing_size(w, k), ratio / rfi_weighing_size(w, l));
}

static reef_status hastings_check(const rfi_weighing *w, reef_error *error)
{
    bool given = w->data && w->data->perron;
    return given ? rfi_weighing_check(w->data->perron, w->graph->agents, "wanted share", error) : REEF_OK;
}

const rfi_weight_kind rfi_weights_hastings = {
    .kind = {.name = "hastings",
             .summary = "the Perron vector is the one given; without one, equal shares",
             .citation = "Hastings, Monte Carlo sampling methods using Markov chains, Biometrika 57 (1970)"},
    .pair = hastings_pair,
    .check = hastings_check};
