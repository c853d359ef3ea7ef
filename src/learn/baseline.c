/* Baselines: no cooperation at all, and the oracle, which knows who is malicious and averages the others. */
#include "learn/run.h"

#include <string.h>

typedef struct baseline_params {
    rfi_adapt adapt;
} baseline_params;

static const reef_field fields[] = {RFI_ADAPT_FIELDS(baseline_params)};

static void local_step(reef_run *run)
{
    rfi_adapt_all(run, &(rfi_adaption){.at = run->w, .base = run->w, .to = run->phi});
    float *spare = run->w;
    run->w = run->phi;
    run->phi = spare;
}

const rfi_strategy rfi_strategy_local = {
    .kind = {.name = "local",
             "no cooperation: every agent by itself",
             "",
             fields,
             RFI_COUNT(fields),
             sizeof(baseline_params)},
    .adapt_offset = offsetof(baseline_params, adapt),
    .step = local_step,
};

/* w_k = weighted mean of the phi_l of honest neighbours; weights scaled to sum one. Sums in double precision. False: there are none,
 * and w_k = phi_k. */
static bool average_honest(reef_run *run, ptrdiff_t k, const int32_t *senders, const double *weights, ptrdiff_t count,
                           float *to)
{
    double total = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        total += run->malicious[senders[i]] ? 0 : weights[i];
    }
    if (!(total > 0)) {
        memcpy(to, rfi_row(run, run->phi, k), (size_t)run->length * sizeof *to);
        return false;
    }
    for (ptrdiff_t m = 0; m < run->length; m++) {
        double sum = 0;
        for (ptrdiff_t i = 0; i < count; i++) {
            sum += run->malicious[senders[i]] ? 0 : weights[i] * (double)rfi_row(run, run->phi, senders[i])[m];
        }
        to[m] = (float)(sum / total);
    }
    return true;
}

static void oracle_range(reef_run *run, void *job, ptrdiff_t from, ptrdiff_t to, rfi_learner *learner)
{
    (void)job;
    for (ptrdiff_t class = from; class < to; class ++) {
        ptrdiff_t k = run->class_first[class];
        rfi_hearing h = rfi_hear(run, learner, k);
        bool done = average_honest(run, k, h.senders, h.weights, h.count, rfi_row(run, run->w, k));
        for (ptrdiff_t i = 0; i < h.count; i++) {
            learner->counts.messages += rfi_others(run, class, h.senders[i]);
        }
        run->class_failed[class] = !done;
        learner->counts.kept += done ? 0 : run->class_size[class];
    }
}

static void oracle_step(reef_run *run)
{
    rfi_adapt_all(run, &(rfi_adaption){.at_models = true, .to = run->phi});
    if (run->ranks) {
        rfi_ranks_publish(run, run->phi);
        rfi_ranks_receive(run);
    }
    rfi_run_ranges(run, run->classes, 1, oracle_range, NULL);
    rfi_hand_out(run, run->phi, run->w);
}

const rfi_strategy rfi_strategy_oracle = {
    .kind = {.name = "oracle",
             "diffusion that knows the malicious agents and averages the others: the best possible reference",
             "",
             fields,
             RFI_COUNT(fields),
             sizeof(baseline_params)},
    .needs_links = true,
    .adapt_offset = offsetof(baseline_params, adapt),
    .step = oracle_step,
};
