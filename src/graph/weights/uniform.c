/* a_lk = 1 / n_k */
#include "graph/weights/weights.h"

static double uniform_pull(const rfi_weighing *w, ptrdiff_t l)
{
    (void)w;
    (void)l;
    return 1;
}

const rfi_weight_kind rfi_weights_uniform = {
    .kind = {.name = "uniform", .summary = "averaging: all senders have the same weight", .citation = ""},
    .pull = uniform_pull};
