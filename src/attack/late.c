/* late: honest, but what arrives in a round was sent `delay` rounds before. */
#include "attack/attack.h"

typedef struct late_params {
    int64_t delay;
} late_params;

static const reef_field late_fields[] = {
    {.name = "delay",
     .type = REEF_FIELD_INT,
     .offset = offsetof(late_params, delay),
     .preset = "5",
     .min = 1,
     .max = 1e6,
     .unit = "rounds",
     .help = "age of what arrives; nothing arrives before that round"},
};

static int64_t delay(const void *params)
{
    const late_params *p = params;
    return p->delay;
}

const reef_attack_kind rfi_attack_late = {
    .kind = {.name = "late",
             .summary = "sends its model with a delay of some rounds",
             .citation = "",
             .fields = late_fields,
             .field_count = RFI_COUNT(late_fields),
             .params_size = sizeof(late_params)},
    .traits = REEF_ATTACK_LANES,
    .delay = delay,
};
