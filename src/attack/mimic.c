/* mimic: all liars copy one honest agent, which then counts for many. agent: its place among the rows known, or the row farthest from
 * their mean (lane by lane; the first of equals). */
#include "attack/attack.h"

typedef struct mimic_params {
    int64_t agent;
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
     .help = "which of the rows known is copied, counted round if there are fewer; or the one farthest from their mean",
     .words = words},
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
    const float *from = view->known > 0 ? view->rows[p->agent % view->known] : view->own;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = from[i];
    }
    return true;
}

const reef_attack_kind rfi_attack_mimic = {
    .kind = {.name = "mimic",
             .summary = "all liars copy one honest agent",
             .citation =
                 "Karimireddy, He, Jaggi, Byzantine-robust learning on heterogeneous datasets via bucketing (2022)",
             .fields = mimic_fields,
             .field_count = RFI_COUNT(mimic_fields),
             .params_size = sizeof(mimic_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS | REEF_ATTACK_SAME,
    .message = message,
};
