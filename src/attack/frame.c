/* frame: malicious agents that imitate the noise of some honest agents while they pull all in one direction. A rule that looks for agents that act together
 * puts these honest agents in their group; if that is then the majority, the remaining honest agents are the group that is cut. Needs to know each
 * honest row of the same round. */
#include "attack/attack.h"

#include <math.h>

typedef struct frame_params {
    double z;
    int64_t period;
    int64_t targets;
    double jitter;
} frame_params;

static const reef_field frame_fields[] = {
    {.name = "z",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(frame_params, z),
     .preset = "0.3",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "distance from the mean of the honest rows"},
    {.name = "period",
     .type = REEF_FIELD_INT,
     .offset = offsetof(frame_params, period),
     .preset = "100",
     .min = 0,
     .max = 1e12,
     .unit = "rounds",
     .help = "the side changes after this many rounds, again and again; 0: never"},
    {.name = "targets",
     .type = REEF_FIELD_INT,
     .offset = offsetof(frame_params, targets),
     .preset = "4",
     .min = 1,
     .max = 1e15,
     .unit = "",
     .help = "number of honest agents whose noise is imitated: the first of the known rows"},
    {.name = "jitter",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(frame_params, jitter),
     .preset = "0.3",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "noise that each malicious agent adds on its own, so that no two send the same"},
};

/* out = mean + (z + out) deviation + the targets' mean deviation from the mean, times the root of their number: as long as that of one. */
static void imitate(const reef_attack_view *view, double z, ptrdiff_t targets, float *out)
{
    double mean[RFI_ATTACK_BLOCK];
    double deviation[RFI_ATTACK_BLOCK];
    for (ptrdiff_t from = 0; from < view->length; from += RFI_ATTACK_BLOCK) {
        ptrdiff_t count = rfi_block_count(view, from);
        rfi_attack_moments(view, from, count, mean, deviation);
        for (ptrdiff_t i = 0; i < count; i++) {
            double noise = 0;
            for (ptrdiff_t l = 0; l < targets; l++) {
                noise += ((double)view->rows[l][from + i] - mean[i]) / sqrt((double)targets);
            }
            out[from + i] = rfi_to_float(mean[i] + (z + (double)out[from + i]) * deviation[i] + noise);
        }
    }
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const frame_params *p = params;
    bool other_side = p->period > 0 && view->round / p->period % 2;
    ptrdiff_t targets = p->targets < view->known ? (ptrdiff_t)p->targets : view->known;
    rfi_attack_normal(view, view->sender, p->jitter, out);
    imitate(view, other_side ? p->z : -p->z, targets, out);
    return true;
}

static unsigned traits_of(const void *params)
{
    const frame_params *p = params;
    return REEF_ATTACK_LANES | REEF_ATTACK_ROWS | (p->jitter > 0 ? 0 : REEF_ATTACK_SAME);
}

const reef_attack_kind rfi_attack_frame = {
    .kind = {.name = "frame",
             .summary =
                 "imitates the noise of some honest agents, so that others look like the minority that acts together",
             .citation = "",
             .fields = frame_fields,
             .field_count = RFI_COUNT(frame_fields),
             .params_size = sizeof(frame_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS,
    .message = message,
    .traits_of = traits_of,
};
