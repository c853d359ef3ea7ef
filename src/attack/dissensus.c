/* dissensus: keeps the receiver from agreeing with those it hears. With w the receiver's model, x_i the honest rows it hears and f the
 * number of malicious agents among its senders, each of these sends
 *
 *   w - epsilon / f sum_i (x_i - w).
 *
 * With epsilon = 1 and equal weights the average over all senders is w: the receiver learns nothing from the others; with more it
 * moves away from them. Needs the receiver's model and rows; without them the malicious agent is honest. */
#include "attack/attack.h"

typedef struct dissensus_params {
    double epsilon;
} dissensus_params;

static const reef_field dissensus_fields[] = {
    {.name = "epsilon",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(dissensus_params, epsilon),
     .preset = "1",
     .min = 0,
     .max = 1e30,
     .unit = "",
     .help = "1 cancels what the receiver would learn from the others, more drives it away from them"},
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const dissensus_params *p = params;
    const float *w = view->receiver_model;
    double factor = p->epsilon * (double)view->known / (view->malicious_count > 0 ? (double)view->malicious_count : 1);
    double mean[RFI_ATTACK_BLOCK];
    if (!w || view->known == 0) {
        return rfi_attack_honest(view, out);
    }
    for (ptrdiff_t from = 0; from < view->length; from += RFI_ATTACK_BLOCK) {
        ptrdiff_t count = rfi_block_count(view, from);
        rfi_attack_moments(view, from, count, mean, NULL);
        for (ptrdiff_t i = 0; i < count; i++) {
            double origin = (double)w[from + i];
            out[from + i] = rfi_to_float(origin - factor * (mean[i] - origin));
        }
    }
    return true;
}

const reef_attack_kind rfi_attack_dissensus = {
    .kind = {.name = "dissensus",
             .summary = "sends every receiver the opposite of what its honest neighbours send",
             .citation = "He, Karimireddy, Jaggi, Byzantine-robust decentralized learning via ClippedGossip (2022)",
             .fields = dissensus_fields,
             .field_count = RFI_COUNT(dissensus_fields),
             .params_size = sizeof(dissensus_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_EDGE | REEF_ATTACK_ROWS | REEF_ATTACK_SAME,
    .knowledge = REEF_KNOW_NEIGHBOURS,
    .message = message,
};
