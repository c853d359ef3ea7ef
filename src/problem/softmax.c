/* Softmax (multinomial logistic) regression: a row w_c of weights per class, one after the other (data=(...,bias=true) adds a constant). The
 * risk of agent k over its n_k samples is   J_k(w) = 1/n_k sum (log sum_c exp(x' w_c) - x' w_y) + l2/2 |w|^2. */
#include "base/fields.h"
#include "problem/network.h"
#include "problem/problem.h"

static const reef_field fields[] = {RFI_FINITE_FIELDS("digits")};

static reef_status create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    const rfi_network_plan plan = {.name = "softmax"};
    return rfi_network_create(params, &plan, setup, state, error);
}

const reef_problem_kind rfi_problem_softmax = {
    .kind =
        {
            .name = "softmax",
            .summary = "softmax regression on a data set",
            .citation = "",
            .fields = fields,
            .field_count = RFI_COUNT(fields),
            .params_size = sizeof(rfi_finite_params),
        },
    .traits = REEF_PROBLEM_CLASSES,
    .create = create,
    .destroy = rfi_network_destroy,
    .dimension = rfi_network_dimension,
    .work_size = rfi_network_work_size,
    .gradients = rfi_network_gradients,
    .score = rfi_network_score,
    .samples = rfi_network_samples,
};
