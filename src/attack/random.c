/* random: numbers that have nothing to do with the data, N(0, scale^2) or uniform in (-scale, scale), drawn again in every round. */
#include "attack/attack.h"

typedef struct random_params {
    double scale;
    int distribution;
} random_params;

enum { GAUSSIAN, UNIFORM };
static const char *const distributions[] = {"gaussian", "uniform", NULL};

static const reef_field random_fields[] = {
    {.name = "scale",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(random_params, scale),
     .preset = "200",
     .min = 0,
     .max = 1e37,
     .unit = "",
     .help = "standard deviation, or bound of the uniform numbers"},
    {.name = "distribution",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(random_params, distribution),
     .preset = "gaussian",
     .unit = "",
     .help = "what the numbers are drawn from",
     .words = distributions},
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const random_params *p = params;
    for (ptrdiff_t r = 0; r < view->lanes; r++) {
        rfi_rng rng;
        rfi_attack_rng(view, r, view->sender, view->round, &rng);
        for (ptrdiff_t i = r; i < view->length; i += view->lanes) {
            double x = p->distribution == UNIFORM ? 2 * rfi_rng_uniform(&rng) - 1 : rfi_rng_normal(&rng);
            out[i] = rfi_to_float(p->scale * x);
        }
    }
    return true;
}

const reef_attack_kind rfi_attack_random = {
    .kind = {.name = "random",
             .summary = "random numbers instead of a model",
             .citation = "Blanchard, El Mhamdi, Guerraoui, Stainer, Machine learning with adversaries (2017)",
             .fields = random_fields,
             .field_count = RFI_COUNT(random_fields),
             .params_size = sizeof(random_params)},
    .traits = REEF_ATTACK_LANES,
    .message = message,
};
