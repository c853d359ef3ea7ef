/* mimic: malicious agents copy one honest agent, which then counts as many, or several of them, one each. agent: the place of the first among
 * the known rows, or the row farthest from their mean (lane by lane; the first of equals). */
#include "attack/attack.h"

typedef struct mimic_params {
    int64_t agent;
    int64_t targets;
    double jitter;
} mimic_params;

enum { FARTHEST = -1 };
static const char *const words[] = {"farthest", NULL};

static const reef_field mimic_fields[] = {
    {.name = "agent",
     .type = REEF_FIELD_INT,
     .offset = offsetof(mimic_params, agent),
     .preset = "0",
     .min = 0,
     .max = 1e15,
     .unit = "",
     .help = "which of the known vectors is copied (modulo their number), or the one farthest from their mean",
     .words = words},
    {.name = "targets",
     .type = REEF_FIELD_INT,
     .offset = offsetof(mimic_params, targets),
     .preset = "1",
     .min = 1,
     .max = 1e15,
     .unit = "",
     .help = "honest agents that are copied, from `agent` on: a malicious agent copies the one of its own number "
             "modulo this"},
    {.name = "jitter",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(mimic_params, jitter),
     .preset = "0",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "noise that each malicious agent adds on its own, so that no two send the same"},
};

/* out holds the mean and receives the farthest row of each lane of the group. */
static void copy_farthest(const reef_attack_view *view, ptrdiff_t first, float *out)
{
    ptrdiff_t chosen[RFI_LANE_GROUP] = {0};
    double best[RFI_LANE_GROUP];
    double distance[RFI_LANE_GROUP];
    ptrdiff_t count = rfi_lane_count(view, first);
    for (ptrdiff_t j = 0; j < count; j++) {
        best[j] = -1;
    }
    for (ptrdiff_t l = 0; l < view->known; l++) {
        rfi_lane_products(view, first, count, view->rows[l], out, NULL, distance);
        for (ptrdiff_t j = 0; j < count; j++) {
            chosen[j] = distance[j] > best[j] ? l : chosen[j];
            best[j] = distance[j] > best[j] ? distance[j] : best[j];
        }
    }
    for (ptrdiff_t i = first; i < view->length; i += view->lanes) {
        for (ptrdiff_t j = 0; j < count; j++) {
            out[i + j] = view->rows[chosen[j]][i + j];
        }
    }
}

/* out = from + out times the deviation of the rows known. */
static void add_to_scaled(const reef_attack_view *view, const float *from, float *out)
{
    double mean[RFI_ATTACK_BLOCK];
    double deviation[RFI_ATTACK_BLOCK];
    for (ptrdiff_t at = 0; at < view->length; at += RFI_ATTACK_BLOCK) {
        ptrdiff_t count = rfi_block_count(view, at);
        rfi_attack_moments(view, at, count, mean, deviation);
        for (ptrdiff_t i = 0; i < count; i++) {
            out[at + i] = rfi_to_float((double)from[at + i] + (double)out[at + i] * deviation[i]);
        }
    }
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const mimic_params *p = params;
    if (view->known > 0 && p->agent == FARTHEST) {
        rfi_attack_mean(view, out);
        for (ptrdiff_t first = 0; first < view->lanes; first += RFI_LANE_GROUP) {
            copy_farthest(view, first, out);
        }
        return true;
    }
    ptrdiff_t target = view->known > 0 ? (p->agent % view->known + view->sender % p->targets) % view->known : 0;
    const float *from = view->known > 0 ? view->rows[target] : view->own;
    if (p->jitter > 0) {
        rfi_attack_normal(view, view->sender, p->jitter, out);
        add_to_scaled(view, from, out);
        return true;
    }
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = from[i];
    }
    return true;
}

static unsigned traits_of(const void *params)
{
    const mimic_params *p = params;
    bool same = p->agent == FARTHEST || (p->targets == 1 && !(p->jitter > 0));
    return REEF_ATTACK_LANES | REEF_ATTACK_ROWS | (same ? REEF_ATTACK_SAME : 0);
}

const reef_attack_kind rfi_attack_mimic = {
    .kind = {.name = "mimic",
             .summary = "malicious agents copy honest ones",
             .citation =
                 "Karimireddy, He, Jaggi, Byzantine-robust learning on heterogeneous datasets via bucketing (2022)",
             .fields = mimic_fields,
             .field_count = RFI_COUNT(mimic_fields),
             .params_size = sizeof(mimic_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS,
    .message = message,
    .traits_of = traits_of,
};
