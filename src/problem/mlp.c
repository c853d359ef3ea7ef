/* A multilayer perceptron: fully connected layers, relu or tanh in between, cross-entropy (problem/network.h has the formulas). */
#include "base/error.h"
#include "base/fields.h"
#include "base/number.h"
#include "problem/network.h"
#include "problem/problem.h"

#include <math.h>
#include <string.h>

typedef struct mlp_params {
    rfi_finite_params finite;
    char hidden[REEF_TEXT_SIZE];
    int activation;
} mlp_params;

static const char *const activation_words[] = {"relu", "tanh", NULL};

static const reef_field fields[] = {
    RFI_FINITE_FIELDS("digits"),
    {.name = "hidden",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(mlp_params, hidden),
     .preset = "64",
     .unit = "units",
     .help = "sizes of the hidden layers, from input to output: 64, or (64,32), up to 7 of them"},
    {.name = "activation",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(mlp_params, activation),
     .preset = "relu",
     .unit = "",
     .help = "activation function of the hidden layers",
     .words = activation_words},
};

/* "64,32" -> 64, 32. */
static reef_status read_hidden(const char *text, ptrdiff_t *hidden, ptrdiff_t *count, reef_error *error)
{
    rfi_slice rest = {text, strlen(text)};
    bool more = true;
    for (*count = 0; more; ++*count) {
        double units = 0;
        rfi_slice word = rfi_trim(rfi_cut(rest, ',', &rest, &more));
        if (*count == RFI_LAYERS_MAX - 1) {
            return rfi_fail(error, REEF_E_RANGE, "mlp: hidden = '%.40s' has more than %d layers", text,
                            RFI_LAYERS_MAX - 1);
        }
        if (!rfi_read_real(word, &units) || units != floor(units) || units < 1 || units > 1e6) {
            return rfi_fail(
                error, REEF_E_SYNTAX,
                "mlp: hidden = '%.40s' is not allowed; it takes whole numbers from 1 to 1000000, as (64,32)", text);
        }
        hidden[*count] = (ptrdiff_t)units;
    }
    return REEF_OK;
}

static reef_status create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    const mlp_params *p = params;
    ptrdiff_t hidden[RFI_LAYERS_MAX];
    rfi_network_plan plan = {.name = "mlp", .hidden = hidden, .biased = true, .activation = p->activation};
    reef_status status = read_hidden(p->hidden, hidden, &plan.hidden_count, error);
    if (status != REEF_OK) {
        return status;
    }
    return rfi_network_create(&p->finite, &plan, setup, state, error);
}

const reef_problem_kind rfi_problem_mlp = {
    .kind =
        {
            .name = "mlp",
            .summary = "multilayer perceptron on a data set",
            .citation = "",
            .fields = fields,
            .field_count = RFI_COUNT(fields),
            .params_size = sizeof(mlp_params),
        },
    .traits = REEF_PROBLEM_CLASSES,
    .create = create,
    .destroy = rfi_network_destroy,
    .dimension = rfi_network_dimension,
    .work_size = rfi_network_work_size,
    .start = rfi_network_start,
    .gradients = rfi_network_gradients,
    .score = rfi_network_score,
    .samples = rfi_network_samples,
};
