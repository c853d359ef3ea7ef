/* The rule's memory in a run: one state per receiver, or per class of receivers that hear the same; who the senders are; how fast the
 * recursion forgets; and the bytes of it all in a checkpoint. */
#include "base/error.h"
#include "base/hash.h"
#include "learn/run.h"

#include <assert.h>
#include <math.h>
#include <string.h>

bool rfi_memory_by_receiver(const reef_run *run)
{
    const reef_links *links = run->setup.links;
    if (!run->setup.rule || !(reef_agg_traits(run->setup.rule) & REEF_TRAIT_SENDERS)) {
        return false;
    }
    reef_csr csr = reef_graph_csr(reef_links_graph(links, 0));
    for (ptrdiff_t k = 0; k < run->all; k++) {
        if (csr.start[k + 1] - csr.start[k] <= REEF_FEW_ROWS) {
            return true;
        }
    }
    return false;
}

/* Senders that a receiver remembers at most: all there are, and as many again under ids that they no longer have (attack whitewash). */
static ptrdiff_t senders_most(const reef_run *run)
{
    return 2 * run->all;
}

reef_status rfi_memory_prepare(reef_run *run, reef_error *error)
{
    if (!(reef_agg_traits(run->setup.rule) & (REEF_TRAIT_CENTRE | REEF_TRAIT_SENDERS))) {
        return REEF_OK;
    }
    reef_status status = REEF_OK;
    const reef_shape shape = {.rows = run->largest, .segments = 1, .lengths = &run->length, .dtype = REEF_F32};
    run->states = rfi_run_take(run, run->classes, sizeof(reef_state *));
    if (!run->states) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the rule's state at %td receivers", run->classes);
    }
    assert(run->classes >= 1 && !run->dry);
    for (ptrdiff_t i = 0; status == REEF_OK && i < run->workers; i++) {
        run->learners[i].ids = rfi_run_take(run, run->largest, sizeof(int64_t));
        status =
            run->learners[i].ids ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for the ids of senders");
    }
    for (ptrdiff_t i = 0; status == REEF_OK && i < run->classes; i++) {
        status = reef_state_create(&run->states[i], run->setup.rule, &shape, error);
        if (status == REEF_OK) { /* reproducible, and the same wherever the receiver is */
            reef_state_set_limit(run->states[i], senders_most(run));
            reef_state_set_seed(run->states[i], rfi_hash_number(rfi_hash_number(RFI_HASH_START, run->setup.seed),
                                                                (uint64_t)run->setup.repetition));
        }
    }
    return status;
}

void rfi_memory_free(reef_run *run)
{
    for (ptrdiff_t i = 0; run->states && i < run->classes; i++) {
        reef_state_destroy(&run->states[i]);
    }
    for (ptrdiff_t i = 0; run->learners && i < run->workers; i++) {
        rfi_release(run->context, run->learners[i].ids);
    }
    rfi_release(run->context, run->states);
}

double rfi_memory_step(const reef_run *run)
{
    double step = rfi_step_size(run, -1, run->round) * (run->step_scale > 0 ? run->step_scale : 1);
    return isfinite(step) ? step : 0;
}

/* ---- checkpoint: a length and the bytes, state after state ---- */

size_t rfi_memory_room(const reef_state *state)
{
    return sizeof(uint64_t) + reef_state_size(state);
}

void rfi_memory_put(const reef_state *state, unsigned char *bytes)
{
    uint64_t size = reef_state_size(state);
    memcpy(bytes, &size, sizeof size);
    rfi_certain(reef_state_save(state, bytes + sizeof size, (size_t)size, NULL));
}

reef_status rfi_memory_take(reef_state *state, const unsigned char *bytes, size_t room, size_t *used, reef_error *error)
{
    uint64_t size = 0;
    if (room >= sizeof size) {
        memcpy(&size, bytes, sizeof size);
    }
    if (room < sizeof size || size > room - sizeof size) {
        return rfi_fail(error, REEF_E_FORMAT, "the checkpoint ends within the rule's memory");
    }
    *used = sizeof size + (size_t)size;
    return reef_state_load(state, bytes + sizeof size, (size_t)size, error);
}

size_t rfi_memory_size(const reef_run *run)
{
    size_t size = 0;
    for (ptrdiff_t i = 0; run->states && i < run->classes; i++) {
        size += rfi_memory_room(run->states[i]);
    }
    return size;
}

size_t rfi_memory_most(const reef_run *run)
{
    size_t one = run->states ? sizeof(uint64_t) + reef_state_room(run->states[0], senders_most(run)) : 0;
    ptrdiff_t most = 0;
    return rfi_mul(run->states ? run->classes : 0, (ptrdiff_t)one, &most) ? (size_t)most : PTRDIFF_MAX;
}

void rfi_memory_save(const reef_run *run, unsigned char *bytes)
{
    for (ptrdiff_t i = 0; run->states && i < run->classes; i++) {
        rfi_memory_put(run->states[i], bytes);
        bytes += rfi_memory_room(run->states[i]);
    }
}

reef_status rfi_memory_load(reef_run *run, const unsigned char *bytes, size_t size, reef_error *error)
{
    reef_status status = REEF_OK;
    size_t at = 0;
    for (ptrdiff_t i = 0; run->states && status == REEF_OK && i < run->classes; i++) {
        size_t used = 0;
        status = rfi_memory_take(run->states[i], bytes + at, size - at, &used, error);
        at += used;
    }
    if (status == REEF_OK && at != size) {
        status = rfi_fail(error, REEF_E_FORMAT, "the checkpoint has %zu bytes more than the rule's memory", size - at);
    }
    return status;
}
