/* Finite data: loading, spreading, drawing mini-batches.
 *
 *   replace   sample s of a mini-batch is the agent's sample number floor(n_k U_s), U_s from the stream of
 *             (agent, repetition, round) with the key of (seed, step)
 *   epochs    sample s is number t = (round * steps + step) * size + s of the run; epoch t / n_k has a permutation of its own, and
 *             t mod n_k is the place in it
 */
#include "problem/finite.h"

#include "base/error.h"
#include "num/rng.h"

#include <assert.h>

const char *const rfi_sampling_words[] = {"replace", "epochs", NULL};

static reef_status load(rfi_finite *f, const char *name, const rfi_finite_params *params,
                        const reef_problem_setup *setup, reef_error *error)
{
    reef_status status = rfi_dataset_create(setup->context, params->data, &f->data, error);
    if (status != REEF_OK) {
        return status;
    }
    if (f->data->classes < 2) {
        return rfi_fail(error, REEF_E_ARG, "%s needs data with at least 2 classes, but %.40s has %td", name,
                        params->data, f->data->classes);
    }
    rfi_partition_input input = {.samples = f->data->train,
                                 .labels = f->data->labels,
                                 .classes = f->data->classes,
                                 .agents = setup->agents,
                                 .seed = setup->seed};
    return rfi_partition_create(setup->context, params->partition, &input, &f->partition, error);
}

reef_status rfi_finite_init(rfi_finite *finite, const char *name, const rfi_finite_params *params,
                            const reef_problem_setup *setup, reef_error *error)
{
    *finite = (rfi_finite){.context = setup->context,
                           .l2 = params->l2,
                           .sampling = params->sampling,
                           .steps = params->steps,
                           .key = rfi_rng_key(setup->seed, RFI_PURPOSE_BATCH)};
    reef_status status = load(finite, name, params, setup, error);
    if (status != REEF_OK) {
        rfi_finite_clear(finite);
    }
    return status;
}

void rfi_finite_clear(rfi_finite *finite)
{
    rfi_partition_destroy(&finite->partition);
    rfi_dataset_destroy(&finite->data);
}

/* ---- mini-batches ---- */

static ptrdiff_t samples_of(const rfi_finite *f, ptrdiff_t agent)
{
    return f->partition->start[agent + 1] - f->partition->start[agent];
}

ptrdiff_t rfi_minibatch_count(const rfi_finite *finite, const rfi_minibatch *batch)
{
    return batch->size > 0 ? batch->size : samples_of(finite, batch->agent);
}

/* Words 0, 1, 2, ... of a stream are blocks of four, so any can be asked for. */
static ptrdiff_t draw_one(const rfi_rng *rng, ptrdiff_t s, ptrdiff_t n)
{
    const uint32_t counter[4] = {(uint32_t)(s / 2), rng->counter[1], rng->counter[2], rng->counter[3]};
    uint32_t word[4];
    rfi_philox(counter, rng->key, word);
    const int half = (int)(s % 2) * 2;
    const uint64_t wide = (uint64_t)word[half] << 32 | word[half + 1];
    /* n < 2^32, so that a sample is favoured by less than 2^-32. */
    return (ptrdiff_t)(((wide >> 32) * (uint64_t)n + ((wide & UINT32_MAX) * (uint64_t)n >> 32)) >> 32);
}

/* Number t of the run, as a place among the agent's n samples. */
static ptrdiff_t epoch_place(const rfi_finite *f, const rfi_minibatch *batch, uint64_t t, ptrdiff_t n)
{
    const uint64_t epoch = t / (uint64_t)n;
    const uint64_t who = (uint64_t)(uint32_t)batch->repetition << 32 | (uint32_t)batch->agent;
    return rfi_permuted(rfi_rng_key(rfi_rng_key(f->key, who), epoch), n, (ptrdiff_t)(t % (uint64_t)n));
}

void rfi_minibatch_draw(const rfi_finite *finite, const rfi_minibatch *batch, ptrdiff_t from, ptrdiff_t count,
                        ptrdiff_t *index)
{
    rfi_rng rng;
    const ptrdiff_t n = samples_of(finite, batch->agent);
    assert(n >= 1 && from >= 0 && from + count <= rfi_minibatch_count(finite, batch));
    const ptrdiff_t *own = finite->partition->index + finite->partition->start[batch->agent];
    const uint64_t place = (uint64_t)batch->round >> 32 << 32 | (uint32_t)batch->step;
    const uint64_t before = (uint64_t)batch->round * (uint64_t)finite->steps + (uint32_t)batch->step;
    rfi_rng_init(&rng, finite->key, place, (uint32_t)batch->agent, (uint32_t)batch->repetition,
                 (uint32_t)(uint64_t)batch->round);
    for (ptrdiff_t i = 0; i < count; i++) {
        const ptrdiff_t s = from + i;
        if (batch->size == 0) {
            index[i] = own[s];
        } else if (finite->sampling == RFI_SAMPLE_EPOCHS) {
            index[i] = own[epoch_place(finite, batch, before * (uint64_t)batch->size + (uint64_t)s, n)];
        } else {
            index[i] = own[draw_one(&rng, s, n)];
        }
        assert(index[i] >= 0 && index[i] < finite->data->train); /* test samples are never learned from */
    }
}
