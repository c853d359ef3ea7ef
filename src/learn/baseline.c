/* Baselines: no cooperation at all, and the oracle that knows who lies and averages the others. */
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
    .head = {"local", "no cooperation: every agent by itself", "", fields, RFI_COUNT(fields), sizeof(baseline_params)},
    .adapt_offset = offsetof(baseline_params, adapt),
    .step = local_step,
};

/* w_k = weighted mean of the phi_l of benign neighbours; weights scaled to sum one. Sums in double precision. */
static void average_benign(reef_run *run, ptrdiff_t k, const int32_t *senders, const double *weights, ptrdiff_t count,
                           float *to)
{
    double total = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        total += run->liar[senders[i]] ? 0 : weights[i];
    }
    if (!(total > 0)) {
        memcpy(to, rfi_row(run, run->phi, k), (size_t)run->length * sizeof *to);
        return;
    }
    for (ptrdiff_t m = 0; m < run->length; m++) {
        double sum = 0;
        for (ptrdiff_t i = 0; i < count; i++) {
            sum += run->liar[senders[i]] ? 0 : weights[i] * (double)rfi_row(run, run->phi, senders[i])[m];
        }
        to[m] = (float)(sum / total);
    }
}

static void oracle_range(reef_run *run, void *job, ptrdiff_t from, ptrdiff_t to, rfi_learner *learner)
{
    (void)job;
    for (ptrdiff_t class = from; class < to; class ++) {
        ptrdiff_t k = run->class_first[class];
        ptrdiff_t count = reef_links_eval(run->setup.links, run->round, k, learner->senders, learner->weights);
        average_benign(run, k, learner->senders, learner->weights, count, rfi_row(run, run->w, k));
        learner->counts.messages += (count > 0 ? count - 1 : 0) * run->class_size[class];
        learner->counts.kept += count == 0 ? run->class_size[class] : 0;
    }
}

static void oracle_step(reef_run *run)
{
    rfi_adapt_all(run, &(rfi_adaption){.at_models = true, .to = run->phi});
    rfi_run_ranges(run, run->classes, 1, oracle_range, NULL);
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        run->home[k] = run->class_first[run->class_of[k]];
    }
}

const rfi_strategy rfi_strategy_oracle = {
    .head = {"oracle", "diffusion that knows the liars and averages the others: the best one could hope for", "",
             fields, RFI_COUNT(fields), sizeof(baseline_params)},
    .needs_links = true,
    .adapt_offset = offsetof(baseline_params, adapt),
    .step = oracle_step,
};
