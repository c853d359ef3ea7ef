/* a_lk = n_l / sum over N_k of n_j */
#include "graph/weights/weights.h"

static double relative_degree_pull(const rfi_weighing *w, ptrdiff_t l)
{
    return rfi_weighing_size(w, l);
}

const rfi_weight_kind rfi_weights_relative_degree = {.kind = {.name = "relative_degree",
                                                              .summary = "senders by the size of their neighbourhood",
                                                              .citation = RFI_WEIGHTS_SAYED},
                                                     .pull = relative_degree_pull};
