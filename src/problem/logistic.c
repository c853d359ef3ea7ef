/* Logistic regression: two classes, one weight per feature (data=(...,bias=true) adds a constant). The risk of agent k over its n_k samples,
 * y = -1 or 1, is   J_k(w) = 1/n_k sum log(1 + exp(-y x' w)) + l2/2 |w|^2. */
#include "base/fields.h"
#include "problem/network.h"
#include "problem/problem.h"

static const reef_field fields[] = {RFI_FINITE_FIELDS("gaussian:classes=2")};

static reef_status create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    const rfi_network_plan plan = {.name = "logistic", .single = true};
    return rfi_network_create(params, &plan, setup, state, error);
}

const reef_problem_kind rfi_problem_logistic = {
    .kind =
        {
            .name = "logistic",
            .summary = "logistic regression on a data set of two classes",
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
