/* a_lk = s_l^-2 / sum over N_k of s_j^-2 */
#include "graph/weights/weights.h"

#include "base/error.h"

static double relative_variance_pull(const rfi_weighing *w, ptrdiff_t l)
{
    return 1 / w->data->variance[l];
}

static reef_status relative_variance_check(const rfi_weighing *w, reef_error *error)
{
    if (!w->data || !w->data->variance) {
        return rfi_fail(error, REEF_E_WEIGHTS, "relative_variance needs the noise variance of every agent");
    }
    return rfi_weighing_check(w->data->variance, w->graph->agents, "noise variance", error);
}

const rfi_weight_kind rfi_weights_relative_variance = {
    .kind = {.name = "relative_variance",
             .summary = "senders by one over their noise variance, which must be given",
             .citation = RFI_WEIGHTS_SAYED},
    .pull = relative_variance_pull,
    .check = relative_variance_check};
