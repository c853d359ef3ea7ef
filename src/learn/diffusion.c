/* Diffusion (Chen and Sayed 2012) with any rule in the combine step: REF-Diffusion is adapt-then-combine with the rule ref.
 *
 *   atc         phi_k = w_k - mu g_k(w_k);                w_k = rule(phi_l)
 *   cta         psi_k = rule(w_l);                        w_k = psi_k - mu g_k(psi_k)
 *   consensus   psi_k = rule(w_l);                        w_k = psi_k - mu g_k(w_k)
 *
 * BRIDGE (Fang, Yang and Bajwa 2022) is consensus (gradient at the own model) or cta (at the screened one) with a rule that keeps the
 * own value: trimmed:keep_self=true, median:keep_self=true, or krum. */
#include "learn/run.h"

#include "base/error.h"

typedef enum order { ATC, CTA, CONSENSUS } order;
static const char *const order_words[] = {"atc", "cta", "consensus", NULL};

typedef struct diffusion_params {
    rfi_adapt adapt;
    int order;
} diffusion_params;

static const reef_field fields[] = {
    {.name = "order",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(diffusion_params, order),
     .preset = "atc",
     .words = order_words,
     .unit = "",
     .help = "adapt then combine; combine then adapt; or consensus: the gradient of the old model"},
    RFI_ADAPT_FIELDS(diffusion_params),
};

static reef_status prepare(reef_run *run, reef_error *error)
{
    const diffusion_params *p = run->params;
    if (p->order == CONSENSUS) {
        run->gradient = rfi_run_rows(run, run->agents);
        if (!run->gradient) {
            return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the gradients of %td agents", run->agents);
        }
    }
    return p->order == ATC ? REEF_OK : rfi_before_prepare(run, error);
}

static void adapt_then_combine(reef_run *run)
{
    rfi_adapt_all(run, &(rfi_adaption){.at_models = true, .to = run->phi});
    rfi_lie(run, run->phi);
    rfi_combine_all(run, run->phi, run->w);
}

/* Here w has one row per agent: the models are never shared. */
static void combine_then_adapt(reef_run *run)
{
    rfi_lie(run, run->w);
    rfi_combine_all(run, run->w, run->phi);
    rfi_adapt_all(run, &(rfi_adaption){.at = run->phi, .base = run->phi, .to = run->w});
    rfi_before_keep(run, run->phi);
}

static void consensus(reef_run *run)
{
    rfi_lie(run, run->w);
    rfi_combine_all(run, run->w, run->phi);
    rfi_adapt_all(run, &(rfi_adaption){.at = run->w, .base = run->phi, .to = run->gradient});
    float *spare = run->w;
    run->w = run->gradient;
    run->gradient = spare;
    rfi_before_keep(run, spare);
}

static void step(reef_run *run)
{
    const diffusion_params *p = run->params;
    switch ((order)p->order) {
    case ATC:
        adapt_then_combine(run);
        break;
    case CTA:
        combine_then_adapt(run);
        break;
    case CONSENSUS:
        consensus(run);
        break;
    }
}

static bool sends_adapted(const void *params)
{
    return ((const diffusion_params *)params)->order == ATC;
}

const rfi_strategy rfi_strategy_diffusion = {
    .kind = {.name = "diffusion",
             "agents combine what their neighbours send (REF-Diffusion: with the rule ref)",
             "Chen and Sayed, Diffusion adaptation strategies for distributed optimization, 2012",
             fields,
             RFI_COUNT(fields),
             sizeof(diffusion_params)},
    .needs_links = true,
    .needs_rule = true,
    .adapt_offset = offsetof(diffusion_params, adapt),
    .prepare = prepare,
    .step = step,
    .sends_adapted = sends_adapted,
};
