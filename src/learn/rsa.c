/* Byzantine-robust stochastic aggregation by a penalty instead of a rule: models may differ, and are pulled together by a norm whose
 * gradient is bounded, so that the pull of one malicious agent is bounded.
 *
 *   rsa     server (Li et al. 2019):  w_k -= mu (g_k + lambda d|w_k - w_0|),  w_0 -= mu (decay w_0 + lambda sum_k d|w_0 - z_k|)
 *   rsa_tv  neighbours (Peng, Li and Ling 2021; total variation):  w_k -= mu (g_k + lambda sum_l d|w_k - z_l|)
 *
 * z: what is received; d|.|: a subgradient of the l1, l2 or linf norm; differences that are not finite have no effect. */
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
     .help = "norm of the penalty"},
    {.name = "weight_decay",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(rsa_params, decay),
     .preset = "0",
     .min = 0,
     .max = 1e6,
     .unit = "",
     .help = "weight decay of the server's own model (rsa)"},
    RFI_ADAPT_FIELDS(rsa_params),
};

/* What the subgradient needs to know of the whole of a - b in one repetition. */
typedef struct extent {
    double squares, largest;
    double ties;   /* coordinates that are the largest: they share a pull of 1 */
    double finite; /* 1: all of them are */
} extent;

static extent extent_of(const reef_run *run, const float *a, const float *b, ptrdiff_t lane)
{
    extent e = {.finite = 1};
    for (ptrdiff_t i = lane; i < run->length; i += run->lanes) {
        double d = (double)a[i] - (double)b[i];
        e.finite = isfinite(d) ? e.finite : 0;
        e.squares += d * d;
        e.ties = fabs(d) > e.largest ? 1 : e.ties + (fabs(d) >= e.largest);
        e.largest = fmax(e.largest, fabs(d));
    }
    return e;
}

/* Subgradient of |a - b| at a coordinate with difference d. */
static double slope(norm which, const extent *e, double d)
{
    double sign = (double)((d > 0) - (d < 0));
    if (which == L1) {
        return isfinite(d) ? sign : 0;
    }
    if (which == L2) {
        return e->finite > 0 && e->squares > 0 ? d / sqrt(e->squares) : 0;
    }
    return e->finite > 0 && fabs(d) >= e->largest ? sign / e->ties : 0;
}

/* sum_r += factor * subgradient of |a - b| for each repetition r. */
static void pull(const reef_run *run, const float *a, const float *b, double factor, float *sum)
{
    const rsa_params *p = run->params;
    for (ptrdiff_t r = 0; r < run->lanes; r++) {
        extent e = {0};
        if (p->norm != L1) {
            e = extent_of(run, a, b, r);
        }
        for (ptrdiff_t i = r; i < run->length; i += run->lanes) {
            sum[i] += (float)(factor * slope((norm)p->norm, &e, (double)a[i] - (double)b[i]));
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

/* Sums of the server over ranks: each has all rows of some coordinates, and what is to be known of whole rows from their owners. */
typedef struct summing {
    const extent *extents; /* K x R */
    float *penalty;        /* 0 on the other ranks */
} summing;

static void pull_piece(const reef_run *run, void *job, const float *rows, ptrdiff_t piece, ptrdiff_t from,
                       ptrdiff_t count)
{
    const rsa_params *p = run->params;
    const summing *s = job;
    for (ptrdiff_t i = 0; i < count; i++) {
        s->penalty[from + i] = (float)p->decay * run->server[from + i];
    }
    for (ptrdiff_t id = 0; id < run->all; id++) {
        for (ptrdiff_t i = 0; i < count && run->ranks->sent[id]; i++) {
            const extent *e = &s->extents[id * run->lanes + (from + i) % run->lanes];
            double d = (double)run->server[from + i] - (double)rows[id * piece + i];
            s->penalty[from + i] += (float)(p->lambda * slope((norm)p->norm, e, d));
        }
    }
}

/* What has been sent by this rank's agents, and how it differs from the server's model. */
static void look_at_own(reef_run *run, const float **rows, extent *extents)
{
    const rsa_params *p = run->params;
    for (ptrdiff_t k = 0; k < run->own; k++) {
        rows[k] = rfi_sent(run, k);
        for (ptrdiff_t r = 0; r < run->lanes && rows[k] && p->norm != L1; r++) {
            extents[rfi_id(run, k) * run->lanes + r] = extent_of(run, run->server, rows[k], r);
        }
        run->learners[0].counts.messages += rows[k] != NULL;
        run->learners[0].counts.silent += rows[k] == NULL;
    }
}

static void sum_over_ranks(reef_run *run, float *penalty)
{
    const reef_engine *e = run->ranks->engine;
    const rsa_params *p = run->params;
    reef_error error = {REEF_OK, ""};
    extent *extents = rfi_run_take(run, run->all * run->lanes, sizeof *extents);
    const float **rows = rfi_run_take(run, run->own, sizeof *rows);
    bool ready = extents && rows;
    reef_status status =
        ready ? REEF_OK : rfi_fail(&error, REEF_E_NOMEM, "not enough memory for the server of %td agents", run->all);
    status = e->ops->agree(e, status, &error);
    memset(penalty, 0, (size_t)run->length * sizeof *penalty);
    if (status == REEF_OK && ready) {
        rfi_ranks_share_sent(run);
        look_at_own(run, rows, extents);
        if (p->norm != L1) {
            status = e->ops->merge(e, extents, (size_t)(run->all * run->lanes) * sizeof *extents, &error);
        }
        summing job = {extents, penalty};
        if (status == REEF_OK) {
            status = rfi_ranks_pieces(run, rows, run->ranks->sent, pull_piece, &job, &error);
        }
        if (status == REEF_OK) {
            status = e->ops->merge(e, penalty, (size_t)run->length * sizeof *penalty, &error);
        }
    }
    rfi_ranks_fail(run->ranks, status, &error);
    rfi_release(run->context, extents);
    rfi_release(run->context, (void *)rows);
}

static void sum_here(reef_run *run, float *penalty)
{
    const rsa_params *p = run->params;
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
}

static void move_server(reef_run *run)
{
    float *penalty = run->server + 2 * run->stride;
    if (run->ranks) {
        sum_over_ranks(run, penalty);
    } else {
        sum_here(run, penalty);
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
    rfi_run_ranges(run, run->own, RFI_CHUNK_AGENTS, rsa_range, NULL);
    move_server(run);
    swap_models(run);
}

const rfi_strategy rfi_strategy_rsa = {
    .kind = {.name = "rsa",
             "a penalty pulls the agents' models and the server's together; no rule",
             "Li, Xu, Chen, Giannakis and Ling, RSA: Byzantine-robust stochastic aggregation methods, 2019",
             fields,
             RFI_COUNT(fields),
             sizeof(rsa_params)},
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
    ptrdiff_t count = run->ranks ? rfi_ranks_hear(run, k, learner->senders, learner->weights)
                                 : reef_links_eval(run->setup.links, run->round, k, learner->senders, learner->weights);
    memset(learner->spare, 0, (size_t)run->length * sizeof(float));
    for (ptrdiff_t i = 0; i < count; i++) {
        ptrdiff_t l = learner->senders[i];
        const float *z = rfi_sent(run, l);
        if (l == k) {
            continue;
        }
        if (by_receiver && run->malicious[l]) {
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
    if (run->ranks) {
        rfi_ranks_receive(run);
    }
    rfi_run_ranges(run, run->own, RFI_CHUNK_AGENTS, tv_range, NULL);
    swap_models(run);
    rfi_before_keep(run, run->phi);
}

const rfi_strategy rfi_strategy_rsa_tv = {
    .kind = {.name = "rsa_tv",
             "a total-variation penalty pulls the models of neighbours together; no rule",
             "Peng, Li and Ling, Byzantine-robust decentralized stochastic optimization over static and time-varying "
             "networks, 2021",
             fields,
             RFI_COUNT(fields),
             sizeof(rsa_params)},
    .needs_links = true,
    .adapt_offset = offsetof(rsa_params, adapt),
    .prepare = rfi_before_prepare,
    .step = tv_step,
};
