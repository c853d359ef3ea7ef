/* a_lk = 1 / K, the rest on a_kk */
#include "graph/weights/weights.h"

static double max_degree_pair(const rfi_weighing *w, ptrdiff_t l, ptrdiff_t k)
{
    (void)l;
    (void)k;
    return 1 / (double)w->graph->agents;
}

const rfi_weight_kind rfi_weights_max_degree = {
    .kind = {.name = "max_degree",
             .summary = "I - L / K: needs to know only the number of agents; doubly stochastic, slow",
             .citation = RFI_WEIGHTS_SAYED},
    .pair = max_degree_pair};
