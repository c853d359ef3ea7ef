/* MREF: what one round says about each sender. The gate learns the tail of honest distances (heavy for single samples, light for
 * batches); the energy sees those whose messages are too restless in the long run. */
#include "agg/rules/mref/mref.h"

#include <math.h>

/* tau^2 = median T, then T moves on. */
static void learn_tail(rfi_mref_round *round)
{
    rfi_mref_view *recall = round->recall;
    double *tail = rfi_mref_work(round, 0);
    for (ptrdiff_t l = 0; l < round->n; l++) {
        rfi_mref_trace *trace = &recall->traces[l];
        tail[l] = trace->tail;
        double beyond = fmin(round->q[l], RFI_MREF_TAIL_CAP) - 1;
        double rate = fmax(1 / ((double)recall->age[l] + RFI_MREF_TAIL_DELAY), RFI_MREF_TAIL_RATE);
        trace->tail += rate * (beyond * beyond - trace->tail);
    }
    bool learns = round->params->without != RFI_MREF_TAIL;
    round->tau2 = learns ? rfi_mref_median(tail, round->n, rfi_mref_work(round, 1)) : RFI_MREF_TAIL_START;
    if (round->params->without != RFI_MREF_ADDITIONS) {
        round->tau2 = fmin(round->tau2, RFI_MREF_TAIL_MOST);
    }
    round->excess = fmax(round->tau2 - round->h0, 0);
}

void rfi_mref_gate(rfi_mref_round *round, double scale)
{
    rfi_mref_view *recall = round->recall;
    double *size = rfi_mref_work(round, 0);
    learn_tail(round);
    double tau = sqrt(round->tau2);
    double full = 1 + RFI_MREF_GATE_FULL * tau;
    double none = 1 + RFI_MREF_GATE_NONE * tau;
    round->gate_full = full;
    for (ptrdiff_t l = 0; l < round->n; l++) {
        rfi_mref_trace *trace = &recall->traces[l];
        double q = round->q[l];
        double clipped = fmin(q, full);
        double rate = fmax(1 / (double)recall->window[RFI_WINDOWS - 1], 1 / (double)recall->age[l]);
        trace->energy += rate * (clipped * clipped - trace->energy);
        size[l] = sqrt(trace->energy);
        recall->gate[l] = round->params->without == RFI_MREF_GATE ? 1 : rfi_mref_flat(q, full, none);
        recall->weight[l] = recall->gate[l];
        recall->by_copies[l] = 0;
        recall->clip[l] = isfinite(q) ? fmin(1, full / fmax(q, 1e-300)) / scale : 0;
    }
    round->typical = rfi_mref_vote(recall, size, rfi_mref_work(round, 1));
}

void rfi_mref_energy(rfi_mref_round *round)
{
    rfi_mref_view *recall = round->recall;
    double spread = 0;
    for (int j = 0; j < RFI_WINDOWS; j++) {
        spread = fmax(spread, recall->spread[j]);
    }
    double full = 1 + (RFI_MREF_ENERGY_FULL + RFI_MREF_ENERGY_FULL_SPREAD * spread) * round->few;
    double none = 1 + (RFI_MREF_ENERGY_NONE + RFI_MREF_ENERGY_NONE_SPREAD * spread) * round->few;
    for (ptrdiff_t l = 0; l < round->n; l++) {
        const rfi_mref_trace *trace = &recall->traces[l];
        int64_t age = recall->age[l] < round->age ? recall->age[l] : round->age;
        double rounds = fmin((double)age, (double)recall->window[RFI_WINDOWS - 1]);
        double h = sqrt((round->tau2 + round->h0) / rounds) * round->few;
        double factor = rfi_mref_flat(sqrt(trace->energy) / round->typical, fmax(1 + RFI_MREF_FULL * h, full),
                                      fmax(1 + RFI_MREF_NONE * h, none));
        bool used = round->params->without != RFI_MREF_ENERGY && round->typical > 0;
        recall->by_energy[l] = used ? factor : 1;
        recall->weight[l] = fmin(recall->weight[l], recall->by_energy[l]);
    }
}
