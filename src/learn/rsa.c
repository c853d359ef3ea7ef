/* Byzantine-robust stochastic aggregation by a penalty instead of a rule: models may differ, and are pulled together by a norm whose
 * gradient is bounded, so that one liar can pull only so hard.
 *
 *   rsa     server (Li et al. 2019):  w_k -= mu (g_k + lambda d|w_k - w_0|),  w_0 -= mu (decay w_0 + lambda sum_k d|w_0 - z_k|)
 *   rsa_tv  neighbours (Peng, Li and Ling 2021; total variation):  w_k -= mu (g_k + lambda sum_l d|w_k - z_l|)
 *
 * z: what is received; d|.|: a subgradient of the l1, l2 or linf norm; differences that are not finite pull nowhere. */
#include "learn/run.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

typedef enum norm { L1, L2, LINF } norm;
static const char *const norm_words[] = {"l1", "l2", "linf", NULL};

typedef struct rsa_params {
    rfi_adapt adapt;
    double lambda;
    int norm;
    double decay;
} rsa_params;

static const reef_field fields[] = {
    {.name = "lambda",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(rsa_params, lambda),
     .preset = "0.1",
     .min = 0,
     .max = 1e9,
     .unit = "",
     .help = "weight of the penalty per message"},
    {.name = "norm",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(rsa_params, norm),
     .preset = "l1",
     .words = norm_words,
     .unit = "",
     .help = "of the penalty"},
    {.name = "weight_decay",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(rsa_params, decay),
     .preset = "0",
     .min = 0,
     .max = 1e6,
     .unit = "",
     .help = "of the server's own model (rsa)"},
    RFI_ADAPT_FIELDS(rsa_params),
};

/* sum_r += factor * subgradient of |a - b| for each repetition r. */
static void pull(const reef_run *run, const float *a, const float *b, double factor, float *sum)
{
    const rsa_params *p = run->params;
    ptrdiff_t lanes = run->lanes;
    for (ptrdiff_t r = 0; r < lanes; r++) {
        double squares = 0;
        double largest = 0;
        double ties = 0; /* coordinates that are the largest: they share a pull of 1 */
        bool finite = true;
        for (ptrdiff_t i = r; i < run->length; i += lanes) {
            double d = (double)a[i] - (double)b[i];
            finite = finite && isfinite(d);
            squares += d * d;
            ties = fabs(d) > largest ? 1 : ties + (fabs(d) >= largest);
            largest = fmax(largest, fabs(d));
        }
        for (ptrdiff_t i = r; i < run->length; i += lanes) {
            double d = (double)a[i] - (double)b[i];
            double sign = (double)((d > 0) - (d < 0));
            double g = p->norm == L1 ? (isfinite(d) ? sign : 0) : 0;
            if (p->norm == L2 && finite && squares > 0) {
                g = d / sqrt(squares);
            }
            if (p->norm == LINF && finite && fabs(d) >= largest) {
                g = sign / ties;
            }
            sum[i] += (float)(factor * g);
        }
    }
}

/* What all agents send: their models, as they are before this round. */
static void publish(reef_run *run)
{
    rfi_lie(run, run->w);
}

static void add_penalty(float *to, const float *penalty, float mu, ptrdiff_t length)
{
    for (ptrdiff_t i = 0; i < length; i++) {
        to[i] -= mu * penalty[i];
    }
}

static void swap_models(reef_run *run)
{
    float *spare = run->w;
    run->w = run->phi;
    run->phi = spare;
}

/* ---- with a server ---- */

static void rsa_range(reef_run *run, void *job, ptrdiff_t from, ptrdiff_t to, rfi_learner *learner)
{
    const rsa_params *p = run->params;
    (void)job;
    for (ptrdiff_t k = from; k < to; k++) {
        memset(learner->spare, 0, (size_t)run->length * sizeof(float));
        pull(run, rfi_row(run, run->w, k), run->server, p->lambda, learner->spare);
        add_penalty(rfi_row(run, run->phi, k), learner->spare, (float)rfi_step_size(run, k, run->round), run->length);
        learner->counts.messages++; /* the server's model to the agent */
    }
}

static void move_server(reef_run *run)
{
    const rsa_params *p = run->params;
    float *penalty = run->server + 2 * run->stride;
    for (ptrdiff_t i = 0; i < run->length; i++) {
        penalty[i] = (float)p->decay * run->server[i];
    }
    for (ptrdiff_t k = 0; k < run->agents; k++) { /* in the order of agents: same bits on any number of threads */
        const float *z = rfi_sent(run, k);
        if (z) {
            pull(run, run->server, z, p->lambda, penalty);
            run->learners[0].counts.messages++;
        } else {
            run->learners[0].counts.silent++;
        }
    }
    add_penalty(run->server, penalty, (float)rfi_step_size(run, -1, run->round), run->length);
}

static reef_status rsa_prepare(reef_run *run, reef_error *error)
{
    (void)error;
    run->origin = run->server;
    return REEF_OK;
}

static void rsa_step(reef_run *run)
{
    publish(run);
    rfi_adapt_all(run, &(rfi_adaption){.at = run->w, .base = run->w, .to = run->phi});
    rfi_run_ranges(run, run->agents, RFI_CHUNK_AGENTS, rsa_range, NULL);
    move_server(run);
    swap_models(run);
}

const rfi_strategy rfi_strategy_rsa = {
    .head = {"rsa", "a penalty pulls the agents' models and the server's together; no rule",
             "Li, Xu, Chen, Giannakis and Ling, RSA: Byzantine-robust stochastic aggregation methods, 2019", fields,
             RFI_COUNT(fields), sizeof(rsa_params)},
    .has_server = true,
    .adapt_offset = offsetof(rsa_params, adapt),
    .prepare = rsa_prepare,
    .step = rsa_step,
};

/* ---- between neighbours ---- */

static void tv_receiver(reef_run *run, rfi_learner *learner, ptrdiff_t k)
{
    const rsa_params *p = run->params;
    bool by_receiver = rfi_lies_by_receiver(run);
    ptrdiff_t count = reef_links_eval(run->setup.links, run->round, k, learner->senders, learner->weights);
    memset(learner->spare, 0, (size_t)run->length * sizeof(float));
    for (ptrdiff_t i = 0; i < count; i++) {
        ptrdiff_t l = learner->senders[i];
        const float *z = rfi_sent(run, l);
        if (l == k) {
            continue;
        }
        if (by_receiver && run->liar[l]) {
            z = rfi_lie_to(run, learner, run->w, l, k, learner->senders, count, learner->lies) ? learner->lies : NULL;
        }
        learner->counts.messages += z != NULL;
        learner->counts.silent += !z;
        if (z) {
            pull(run, rfi_row(run, run->w, k), z, p->lambda, learner->spare);
        }
    }
    add_penalty(rfi_row(run, run->phi, k), learner->spare, (float)rfi_step_size(run, k, run->round), run->length);
}

static void tv_range(reef_run *run, void *job, ptrdiff_t from, ptrdiff_t to, rfi_learner *learner)
{
    (void)job;
    for (ptrdiff_t k = from; k < to; k++) {
        tv_receiver(run, learner, k);
    }
}

static void tv_step(reef_run *run)
{
    publish(run);
    rfi_adapt_all(run, &(rfi_adaption){.at = run->w, .base = run->w, .to = run->phi});
    rfi_run_ranges(run, run->agents, RFI_CHUNK_AGENTS, tv_range, NULL);
    swap_models(run);
    rfi_before_keep(run, run->phi);
}

const rfi_strategy rfi_strategy_rsa_tv = {
    .head = {"rsa_tv", "a total-variation penalty pulls the models of neighbours together; no rule",
             "Peng, Li and Ling, Byzantine-robust decentralized stochastic optimization over static and time-varying "
             "networks, 2021",
             fields, RFI_COUNT(fields), sizeof(rsa_params)},
    .needs_links = true,
    .adapt_offset = offsetof(rsa_params, adapt),
    .prepare = rfi_before_prepare,
    .step = tv_step,
};
