/* Gradient steps: phi_k = w_k - mu_k v_k, where v_k is the gradient or, with momentum, v_k = beta v_k + (1 - beta) g_k. */
#include "learn/run.h"

#include <assert.h>
#include <math.h>

const char *const rfi_schedule_words[] = {"constant", "inverse", "sqrt", "piecewise", NULL};

double rfi_step_at(const rfi_adapt *a, double factor, int64_t round)
{
    double mu = a->mu * factor;
    const int64_t whole = round / a->every; /* periods that are over */
    switch ((rfi_schedule)a->schedule) {
    case RFI_INVERSE:
        return mu / (1 + (double)round / a->decay);
    case RFI_SQRT:
        return mu / sqrt(1 + (double)round / a->decay);
    case RFI_PIECEWISE:
        return mu * pow(a->factor, (double)whole);
    case RFI_CONSTANT:
        break;
    }
    return mu;
}

double rfi_step_size(const reef_run *run, ptrdiff_t k, int64_t round)
{
    return rfi_step_at(run->adapt, run->step_factor && k >= 0 ? run->step_factor[k] : 1, round);
}

void rfi_step_move(ptrdiff_t length, const float *restrict base, float mu, float *restrict to)
{
    for (ptrdiff_t i = 0; i < length; i++) {
        to[i] = base[i] - mu * to[i];
    }
}

void rfi_step_smooth(ptrdiff_t length, float beta, float *restrict velocity, float *restrict gradient)
{
    for (ptrdiff_t i = 0; i < length; i++) {
        velocity[i] = beta * velocity[i] + (1 - beta) * gradient[i];
        gradient[i] = velocity[i];
    }
}

static bool learns_from_flipped(const reef_run *run, int64_t round)
{
    const reef_attack *attack = run->setup.attack;
    return attack && run->malicious_count && (reef_attack_traits(attack) & REEF_ATTACK_LABELS) &&
           reef_attack_active(attack, round);
}

/* The gradients of the learner's batch of `count` agents. */
static void gradients(const reef_run *run, rfi_learner *learner, ptrdiff_t count, int64_t step)
{
    bool any = learns_from_flipped(run, run->round);
    for (ptrdiff_t i = 0; any && i < count; i++) {
        learner->flipped[i] = run->malicious[learner->agents[i]];
    }
    for (ptrdiff_t i = 0; run->ids && i < count; i++) {
        learner->numbers[i] = run->ids[learner->agents[i]];
    }
    const reef_batch batch = {.count = count,
                              .agents = run->ids ? learner->numbers : learner->agents,
                              .models = learner->models,
                              .gradients = learner->gradients,
                              .flipped = any ? learner->flipped : NULL,
                              .round = run->round,
                              .step = (int32_t)step,
                              .size = (int32_t)run->adapt->batch,
                              .lanes = (int32_t)run->lanes,
                              .repetition = (int32_t)run->setup.repetition,
                              .work = learner->batch_work};
    reef_problem_kind_of(run->setup.problem)->gradients(reef_problem_state(run->setup.problem), &batch);
    learner->counts.gradients += count;
}

static void adapt_range(reef_run *run, void *job, ptrdiff_t from, ptrdiff_t to, rfi_learner *learner)
{
    const rfi_adaption *how = job;
    const float **models = learner->models;
    float **rows = learner->gradients;
    for (ptrdiff_t k = from; k < to; k++) {
        learner->agents[k - from] = (int32_t)k;
        models[k - from] = how->at_models ? rfi_model(run, k) : rfi_row(run, how->at, k);
        rows[k - from] = rfi_row(run, how->to, k);
    }
    gradients(run, learner, to - from, how->step);
    for (ptrdiff_t k = from; k < to; k++) {
        if (run->velocity) {
            rfi_step_smooth(run->length, (float)run->adapt->momentum, rfi_row(run, run->velocity, k), rows[k - from]);
        }
        const float *base = how->at_models ? models[k - from] : rfi_row(run, how->base, k);
        rfi_step_move(run->length, base, (float)rfi_step_size(run, k, run->round), rows[k - from]);
    }
}

void rfi_adapt_all(reef_run *run, const rfi_adaption *how)
{
    rfi_adaption job = *how;
    rfi_run_ranges(run, run->own, run->chunk, adapt_range, &job);
}

void rfi_adapt_some(reef_run *run, rfi_learner *learner, ptrdiff_t count, int64_t step, float *models, float *rows)
{
    assert(count <= run->chunk);
    for (ptrdiff_t i = 0; i < count; i++) {
        learner->models[i] = rfi_row(run, models, learner->agents[i]);
        learner->gradients[i] = rfi_row(run, rows, i);
    }
    gradients(run, learner, count, step);
    for (ptrdiff_t i = 0; i < count; i++) {
        ptrdiff_t k = learner->agents[i];
        float *model = rfi_row(run, models, k);
        float *gradient = learner->gradients[i];
        float mu = (float)rfi_step_size(run, k, run->round);
        if (run->velocity) {
            rfi_step_smooth(run->length, (float)run->adapt->momentum, rfi_row(run, run->velocity, k), gradient);
        }
        for (ptrdiff_t m = 0; m < run->length; m++) {
            model[m] -= mu * gradient[m];
        }
    }
}
