/* A server over ranks: every rank has the server's model, and the rule is applied by slices of the coordinates (shard.c).
 *
 * Agents are in blocks, so that rank by rank is agent by agent. Who takes part, weights and what the rule remembers are the same on all
 * ranks; rank 0 counts. */
#include "base/error.h"
#include "learn/run.h"

#include <string.h>

static bool take_rooms(reef_run *run, rfi_ranks *r, ptrdiff_t *counts)
{
    r->rows = rfi_run_take(run, run->own, sizeof *r->rows);
    r->weights = rfi_run_take(run, run->all, sizeof *r->weights);
    r->ids = rfi_run_take(run, run->all, sizeof *r->ids);
    for (ptrdiff_t id = 0; r->ids && counts && id < run->all; id++) {
        r->ids[id] = (int64_t)id;
        counts[r->owner[id]]++;
    }
    return r->rows && r->weights && r->ids && counts;
}

/* The slice's length is known only now. */
static reef_status take_slice(reef_run *run, rfi_ranks *r, reef_error *error)
{
    ptrdiff_t m0 = 0;
    ptrdiff_t m1 = 0;
    reef_shard_range(r->shard, r->engine->rank, &m0, &m1);
    r->slice = rfi_run_take(run, m1 - m0, sizeof *r->slice);
    reef_status status =
        r->slice ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a slice of the model");
    if (status == REEF_OK && run->setup.trust) {
        status = reef_report_create(run->context, &r->report, run->all, error);
    }
    return status;
}

/* One aggregation of zeros: a clear refusal now instead of a server that never moves. */
static reef_status try_rule(reef_run *run, rfi_ranks *r, reef_error *error)
{
    reef_error inner = {REEF_OK, ""};
    for (ptrdiff_t k = 0; k < run->own; k++) {
        r->rows[k] = run->zeros;
    }
    for (ptrdiff_t id = 0; id < run->all; id++) {
        r->weights[id] = id < run->wanted;
    }
    const reef_input input = {.rows = r->rows, .weights = r->weights};
    reef_status status = reef_shard_apply(r->shard, &input, r->slice, NULL, &inner);
    return status == REEF_OK ? REEF_OK
                             : rfi_fail(error, status, "with %td inputs to combine: %s", run->wanted, inner.text);
}

reef_status rfi_ranks_open_server(reef_run *run, reef_status status, reef_error *error)
{
    rfi_ranks *r = run->ranks;
    const reef_engine *e = run->setup.engine;
    ptrdiff_t *counts = status == REEF_OK ? rfi_run_take(run, e->size, sizeof *counts) : NULL;
    if (status == REEF_OK && !take_rooms(run, r, counts)) {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory for a server of %td agents", run->all);
    }
    status = e->ops->agree(e, status, error);
    if (status == REEF_OK && counts) {
        const reef_shard_shape shape = {
            .length = run->length, .dtype = REEF_F32, .rows = counts, .report = run->setup.trust};
        status = reef_shard_create(&r->shard, run->setup.rule, e, &shape, error);
    }
    rfi_release(run->context, counts);
    if (status == REEF_OK) {
        status = e->ops->agree(e, take_slice(run, r, error), error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return try_rule(run, r, error);
}

void rfi_ranks_close_server(reef_run *run)
{
    rfi_ranks *r = run->ranks;
    reef_shard_destroy(&r->shard);
    reef_report_destroy(&r->report);
    void *arrays[] = {r->slice, (void *)r->rows, r->weights, r->ids};
    for (ptrdiff_t i = 0; i < RFI_COUNT(arrays); i++) {
        rfi_release(run->context, arrays[i]);
    }
}

void rfi_ranks_share_sent(reef_run *run)
{
    rfi_ranks *r = run->ranks;
    reef_error error = {REEF_OK, ""};
    bool lies = run->setup.attack && run->all_malicious;
    for (ptrdiff_t id = 0; id < run->all; id++) {
        bool here = !run->present || run->present[id];
        bool own = r->owner[id] == r->engine->rank;
        r->sent[id] = here && (own ? rfi_sent(run, r->local[id]) != NULL : !(lies && r->malicious[id]));
    }
    if (lies) { /* all ranks know it for honest agents */
        rfi_ranks_fail(r, r->engine->ops->merge(r->engine, r->sent, (size_t)run->all, &error), &error);
    }
}

/* Who is heard, with weights: in run->heard and the learner's arrays as in one process, and by agent in ranks->weights. */
static ptrdiff_t list_heard(reef_run *run, const double *weights, ptrdiff_t *used)
{
    rfi_ranks *r = run->ranks;
    rfi_learner *learner = &run->learners[0];
    ptrdiff_t count = 0;
    *used = 0;
    for (ptrdiff_t id = 0; id < run->all; id++) {
        r->weights[id] = 0;
        if (!run->present[id]) {
            continue;
        }
        ptrdiff_t i = count++;
        run->heard[i] = (int32_t)id;
        learner->expected[i] = run->uniform ? weights[id] > 0 : weights[id];
        learner->weights[i] = r->sent[id] ? learner->expected[i] : 0;
        r->weights[id] = learner->weights[i];
        if (r->engine->rank == 0) {
            learner->counts.messages += r->sent[id];
            learner->counts.silent += !r->sent[id];
        }
        *used += learner->weights[i] > 0;
    }
    return count;
}

/* The rule on all that was sent; false: it cannot. */
static bool apply(reef_run *run, bool equal, float *out)
{
    rfi_ranks *r = run->ranks;
    reef_error error = {REEF_OK, ""};
    for (ptrdiff_t k = 0; k < run->own; k++) {
        const float *row = run->present[run->ids[k]] ? rfi_sent(run, k) : NULL;
        r->rows[k] = row ? row : run->zeros;
    }
    for (ptrdiff_t id = 0; id < run->all; id++) {
        r->ids[id] = rfi_sender_id(run, id);
    }
    const reef_input input = {.rows = r->rows,
                              .weights = equal ? NULL : r->weights,
                              .ids = run->states ? r->ids : NULL,
                              .round = run->round,
                              .step = run->states ? rfi_memory_step(run) : 0,
                              .state = run->states ? run->states[0] : NULL};
    reef_status status = reef_shard_apply(r->shard, &input, r->slice, r->report, &error);
    if (r->engine->rank == 0) {
        run->learners[0].counts.dropped += rfi_shard_dropped(r->shard);
    }
    bool refused = status != REEF_OK && status != REEF_E_ENGINE && status != REEF_E_NOMEM;
    if (status == REEF_OK) {
        status = reef_shard_gather(r->shard, r->slice, out, &error);
    }
    if (status == REEF_OK && run->states && (reef_agg_traits(run->setup.rule) & REEF_TRAIT_CENTRE)) {
        /* Each rank has remembered its slice of it. A centre that is not finite is refused; the one before then stays. */
        reef_status kept = reef_state_set_centre(run->states[0], 0, out, NULL);
        (void)kept;
    }
    if (!refused) {
        rfi_ranks_fail(r, status, &error);
    }
    return status == REEF_OK;
}

bool rfi_ranks_serve(reef_run *run, const double *weights, float *out)
{
    rfi_ranks *r = run->ranks;
    rfi_learner *learner = &run->learners[0];
    ptrdiff_t used = 0;
    rfi_ranks_share_sent(run);
    ptrdiff_t count = list_heard(run, weights, &used);
    bool done = used > 0 && apply(run, run->uniform && used == run->all, out);
    if (run->trust) {
        for (ptrdiff_t i = 0; done && i < count; i++) {
            learner->live[i] = reef_report_trust(r->report)[run->heard[i]];
        }
        rfi_keep_trust(run, learner, 0, run->heard, count, done ? learner->live : NULL);
        rfi_keep_factors(run, 0, count, done ? r->report : NULL, run->heard);
    }
    learner->counts.kept += !done && r->engine->rank == 0;
    return done;
}
