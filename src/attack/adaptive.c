/* adaptive: ALIE by malicious agents that watch how much weight they get. As long as receivers give them their fair share, they deviate by z
 * standard deviations; the less they get, the less they deviate, until they are honest except for independent noise and wait to be trusted again. */
#include "attack/attack.h"

#include <math.h>

typedef struct adaptive_params {
    double z;
    double least;
    int64_t period;
    double jitter;
} adaptive_params;

static const reef_field adaptive_fields[] = {
    {.name = "z",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(adaptive_params, z),
     .preset = "0.5",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "distance from the mean of the honest rows at full trust"},
    {.name = "least",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(adaptive_params, least),
     .preset = "0.5",
     .min = 0,
     .max = 0.999,
     .unit = "",
     .help =
         "trust (effective weight over fair share) up to which they do not deviate; from there z grows in proportion"},
    {.name = "period",
     .type = REEF_FIELD_INT,
     .offset = offsetof(adaptive_params, period),
     .preset = "0",
     .min = 0,
     .max = 1e12,
     .unit = "rounds",
     .help = "the side changes after this many rounds, again and again; 0: never"},
    {.name = "jitter",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(adaptive_params, jitter),
     .preset = "1",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "noise that each malicious agent adds on its own, so that no two send the same"},
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const adaptive_params *p = params;
    double strength = (view->trust - p->least) / (1 - p->least);
    bool other_side = p->period > 0 && view->round / p->period % 2;
    double z = p->z * fmin(fmax(strength, 0), 1);
    rfi_attack_normal(view, view->sender, p->jitter, out);
    rfi_attack_shift(view, other_side ? z : -z, out);
    return true;
}

static unsigned traits_of(const void *params)
{
    const adaptive_params *p = params;
    return REEF_ATTACK_ROWS | REEF_ATTACK_TRUST | (p->jitter > 0 ? 0 : REEF_ATTACK_SAME);
}

const reef_attack_kind rfi_attack_adaptive = {
    .kind = {.name = "adaptive",
             .summary = "as far from the mean of the honest rows as the weight they get allows",
             .citation = "",
             .fields = adaptive_fields,
             .field_count = RFI_COUNT(adaptive_fields),
             .params_size = sizeof(adaptive_params)},
    .traits = REEF_ATTACK_ROWS | REEF_ATTACK_TRUST,
    .message = message,
    .traits_of = traits_of,
};
