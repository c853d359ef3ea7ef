/* a_lk = 1 / max(n_k, n_l), the rest on a_kk */
#include "graph/weights/weights.h"

#include <math.h>

static double metropolis_pair(const rfi_weighing *w, ptrdiff_t l, ptrdiff_t k)
{
    return 1 / fmax(rfi_weighing_size(w, l), rfi_weighing_size(w, k));
}

const rfi_weight_kind rfi_weights_metropolis = {
    .kind = {.name = "metropolis",
             .summary = "one over the larger of the two neighbourhoods; doubly stochastic",
             .citation = "Xiao, Boyd, Fast linear iterations for distributed averaging (2004)"},
    .pair = metropolis_pair};
