/* silent: sends nothing, like an agent that has crashed. */
#include "attack/attack.h"

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    (void)view;
    (void)out;
    return false;
}

const reef_attack_kind rfi_attack_silent = {
    .kind = {.name = "silent", .summary = "sends nothing", .citation = ""},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_SAME,
    .message = message,
};
