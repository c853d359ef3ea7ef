/* The rule's memory in a run: one state per receiver, or per class of receivers that hear the same; who the senders are; how fast the
 * recursion forgets; and the bytes of it all in a checkpoint. */
#include "base/error.h"
#include "learn/run.h"

#include <math.h>

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

reef_status rfi_memory_prepare(reef_run *run, reef_error *error)
{
    if (!(reef_agg_traits(run->setup.rule) & (REEF_TRAIT_CENTRE | REEF_TRAIT_SENDERS))) {
        return REEF_OK;
    }
    reef_status status = REEF_OK;
    const reef_shape shape = {.rows = run->largest, .segments = 1, .lengths = &run->length, .dtype = REEF_F32};
    run->states = rfi_run_take(run, run->classes, sizeof(reef_state *));
    if (!run->states) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the rule's state at %td receivers", run->classes);
    }
    for (ptrdiff_t i = 0; status == REEF_OK && i < run->workers; i++) {
        run->learners[i].ids = rfi_run_take(run, run->largest, sizeof(int64_t));
        status = run->learners[i].ids ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for the ids of senders");
    }
    for (ptrdiff_t i = 0; status == REEF_OK && i < run->classes; i++) {
        status = reef_state_create(&run->states[i], run->setup.rule, &shape, error);
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

/* ---- checkpoint ---- */

size_t rfi_memory_size(const reef_run *run)
{
    return run->states ? (size_t)run->classes * reef_state_size(run->states[0]) : 0;
}

void rfi_memory_save(const reef_run *run, unsigned char *bytes)
{
    for (ptrdiff_t i = 0; run->states && i < run->classes; i++) {
        size_t size = reef_state_size(run->states[i]);
        (void)reef_state_save(run->states[i], bytes + (size_t)i * size, size, NULL);
    }
}

reef_status rfi_memory_load(reef_run *run, const unsigned char *bytes, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; run->states && status == REEF_OK && i < run->classes; i++) {
        size_t size = reef_state_size(run->states[i]);
        status = reef_state_load(run->states[i], bytes + (size_t)i * size, size, error);
    }
    return status;
}
