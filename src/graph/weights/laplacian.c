/* a_lk = beta, the rest on a_kk: A = I - beta L */
#include "graph/weights/weights.h"

#include "base/error.h"

#include <math.h>

typedef struct laplacian_params {
    double beta;
} laplacian_params;

static const char *const auto_words[] = {"auto", NULL};

static const reef_field laplacian_fields[] = {
    {.name = "beta",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(laplacian_params, beta),
     .preset = "auto",
     .min = 1e-100,
     .max = 1,
     .unit = "",
     .help = "weight of every neighbour; auto: one over the largest neighbourhood",
     .words = auto_words},
};

static double laplacian_pair(const rfi_weighing *w, ptrdiff_t l, ptrdiff_t k)
{
    const laplacian_params *p = w->params;
    (void)l;
    (void)k;
    return isnan(p->beta) ? 1 / (double)w->graph->largest : p->beta;
}

static reef_status laplacian_check(const rfi_weighing *w, reef_error *error)
{
    const laplacian_params *p = w->params;
    double others = (double)(w->graph->largest - 1);
    if (p->beta * others > 1) { /* never for auto, which is NaN */
        return rfi_fail(
            error, REEF_E_WEIGHTS,
            "laplacian: beta = %g leaves an agent with %.0f neighbours a negative weight of its own; at most "
            "%.6g",
            p->beta, others, 1 / others);
    }
    return REEF_OK;
}

const rfi_weight_kind rfi_weights_laplacian = {
    .kind = {.name = "laplacian",
             .summary = "I - beta L: every neighbour the same weight beta; doubly stochastic",
             .citation = "Xiao, Boyd, Fast linear iterations for distributed averaging (2004)",
             .fields = laplacian_fields,
             .field_count = RFI_COUNT(laplacian_fields),
             .params_size = sizeof(laplacian_params)},
    .pair = laplacian_pair,
    .check = laplacian_check};
