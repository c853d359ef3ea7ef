/* Runs: created from a setup, stepped round by round. */
#include "learn/played.h"
#include "learn/run.h"

#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define REEF_STRATEGY(name) extern const rfi_strategy rfi_strategy_##name;
#include "learn/strategy_list.h"
#undef REEF_STRATEGY

static const reef_kind *const strategies[] = {
#define REEF_STRATEGY(name) &rfi_strategy_##name.kind,
#include "learn/strategy_list.h"
#undef REEF_STRATEGY
};

const rfi_family rfi_family_strategy = {.number = REEF_FAMILY_STRATEGY,
                                        .name = "strategy",
                                        .what = "strategy",
                                        .builtin = strategies,
                                        .builtin_count = RFI_COUNT(strategies)};

/* ---- threads ---- */

typedef struct ranges {
    reef_run *run;
    ptrdiff_t count, grain;
    rfi_range_job work;
    void *job;
} ranges;

static void run_part(void *job, ptrdiff_t part, ptrdiff_t worker)
{
    const ranges *r = job;
    ptrdiff_t from = part * r->grain;
    ptrdiff_t to = r->count - from < r->grain ? r->count : from + r->grain;
    assert(from < to && to <= r->count && worker < r->run->workers);
    r->work(r->run, r->job, from, to, &r->run->learners[worker]);
}

/* Waking threads costs some microseconds: below this many numbers the caller does it all. */
enum { WORTH_WAKING = 1 << 16 };

void rfi_run_ranges(reef_run *run, ptrdiff_t count, ptrdiff_t grain, rfi_range_job work, void *job)
{
    ranges r = {run, count, grain, work, job};
    ptrdiff_t parts = count > 0 ? (count - 1) / grain + 1 : 0;
    bool small = run->agents * run->length < WORTH_WAKING;
    rfi_pool_run(run->context, small ? 1 : run->workers, parts, run_part, &r);
}

/* ---- create ---- */

enum { LANES_MAX = 4096 };

static reef_status check_setup(const reef_run_setup *setup, reef_error *error)
{
    reef_status fits = rfi_check_size(setup ? setup->size : 0, sizeof *setup, "reef_run_setup", error);
    if (fits != REEF_OK) {
        return fits;
    }
    if (!setup || !setup->problem || !setup->strategy) {
        return rfi_fail(error, REEF_E_ARG, "a run needs a problem and a strategy");
    }
    if (setup->lanes < 0 || setup->lanes > LANES_MAX || setup->repetition < 0 ||
        setup->repetition > INT32_MAX - LANES_MAX) {
        return rfi_fail(error, REEF_E_ARG, "%td lanes from repetition %td; 1 to %d lanes, repetitions from 0 to %d",
                        setup->lanes, setup->repetition, LANES_MAX, INT32_MAX - LANES_MAX);
    }
    const reef_engine_ops *ops = setup->engine ? setup->engine->ops : NULL;
    return rfi_check_size(ops ? ops->size : 0, sizeof *ops, "reef_engine_ops", error);
}

static reef_status check_lanes(const reef_run *run, reef_error *error)
{
    const reef_run_setup *s = &run->setup;
    bool problem = reef_problem_kind_of(s->problem)->traits & REEF_PROBLEM_LANES;
    bool attack = !s->attack || (reef_attack_traits(s->attack) & REEF_ATTACK_LANES);
    bool rule = !run->uses_rule || (reef_agg_traits(s->rule) & REEF_TRAIT_ELEMENTWISE);
    if (run->lanes > 1 && (!problem || !attack || !rule)) {
        return rfi_fail(error, REEF_E_ARG, "%td lanes requested, but the %s works on one repetition at a time",
                        run->lanes, problem ? (attack ? "rule" : "attack") : "problem");
    }
    return REEF_OK;
}

static reef_status check_parts(const reef_run *run, reef_error *error)
{
    const reef_run_setup *s = &run->setup;
    const char *name = run->strategy->kind.name;
    if (run->strategy->needs_rule && !s->rule) {
        return rfi_fail(error, REEF_E_NO_RULE, "%s needs a rule", name);
    }
    if (run->strategy->needs_links && !s->links) {
        return rfi_fail(error, REEF_E_NO_LINKS, "%s needs links: set graph", name);
    }
    if (s->links && reef_graph_agents(reef_links_graph(s->links, 0)) != run->agents) {
        return rfi_fail(error, REEF_E_ARG, "the graph has %td agents, the problem %td",
                        reef_graph_agents(reef_links_graph(s->links, 0)), run->agents);
    }
    if (run->adapt->batch == 0 && !reef_problem_kind_of(s->problem)->samples) {
        return rfi_fail(error, REEF_E_ARG, "%s: batch=0 means all data of an agent, but %s generates data without end",
                        name, reef_problem_kind_of(s->problem)->kind.name);
    }
    for (ptrdiff_t k = 0; s->step_factor && k < run->agents; k++) {
        if (!(s->step_factor[k] >= 0) || !isfinite(s->step_factor[k])) {
            return rfi_fail(error, REEF_E_ARG, "the step factor of agent %td is %g; it must be finite and >= 0", k,
                            s->step_factor[k]);
        }
    }
    return check_lanes(run, error);
}

static reef_status measure(reef_run *run, reef_error *error)
{
    enum { LINE = RFI_ALIGNMENT / (int)sizeof(float) };
    ptrdiff_t padded = 0;
    run->agents = run->all = run->own = reef_problem_agents(run->setup.problem);
    run->dimension = reef_problem_dimension(run->setup.problem);
    run->lanes = run->setup.lanes > 0 ? run->setup.lanes : 1;
    if (!rfi_mul(run->dimension, run->lanes, &run->length) || !rfi_add(run->length, LINE - 1, &padded)) {
        return rfi_fail(error, REEF_E_OVERFLOW, "models of %td numbers in %td lanes are too large", run->dimension,
                        run->lanes);
    }
    if (run->dry) {
        run->dimension = run->length = padded = 1;
        padded = LINE;
    }
    run->stride = padded / LINE * LINE;
    run->workers = rfi_context_workers(run->context);
    bool whole = reef_problem_kind_of(run->setup.problem)->traits & REEF_PROBLEM_WHOLE;
    run->chunk = whole ? run->agents : RFI_CHUNK_AGENTS;
    return REEF_OK;
}

/* An attack that watches its trust makes the run keep it. */
static reef_status watch(reef_run *run, reef_error *error)
{
    bool watches = run->setup.attack && (reef_attack_traits(run->setup.attack) & REEF_ATTACK_TRUST);
    run->watched = 1;
    run->setup.trust = run->setup.trust || watches;
    return !watches || !run->setup.engine
               ? REEF_OK
               : rfi_fail(
                     error, REEF_E_ARG,
                     "attack '%s' watches its trust, which needs all agents in one process; distribute cells instead",
                     reef_attack_kind_of(run->setup.attack)->kind.name);
}

/* What can be said without memory for models. */
static reef_status read_setup(reef_run *run, reef_error *error)
{
    const reef_kind *kind = NULL;
    reef_status status =
        rfi_spec_read(run->context, &rfi_family_strategy, run->setup.strategy, NULL, &kind, &run->params, error);
    if (status != REEF_OK) {
        return status;
    }
    run->strategy = (const void *)kind;
    run->serves_all = run->strategy->serves_all;
    run->adapt = (const void *)((const char *)run->params + run->strategy->adapt_offset);
    run->uses_rule = run->strategy->needs_rule;
    run->setup.strategy = NULL; /* the caller's */
    status = measure(run, error);
    if (status == REEF_OK) {
        status = check_parts(run, error);
    }
    if (status == REEF_OK) {
        status = watch(run, error);
    }
    run->setup.links = run->strategy->needs_links ? run->setup.links : NULL; /* a server hears everybody */
    return status;
}

static reef_status build(reef_run *run, reef_error *error)
{
    reef_status status = run->setup.engine ? rfi_ranks_create(run, error) : REEF_OK;
    if (status == REEF_OK) {
        status = rfi_run_allocate(run, error);
    }
    if (status == REEF_OK) {
        status = rfi_combine_prepare(run, error);
    }
    if (status == REEF_OK) {
        status = rfi_run_allocate_work(run, error);
    }
    if (status == REEF_OK && run->uses_rule) {
        status = rfi_combine_try(run, error);
    }
    if (status == REEF_OK && run->strategy->prepare) {
        status = run->strategy->prepare(run, error);
    }
    return run->strategy->has_server && run->uses_rule ? rfi_combine_try_server(run, status, error) : status;
}

typedef enum purpose { STEPPED, DESCRIBED, PLAYED } purpose;

static reef_status create(reef_context *context, reef_run **run, const reef_run_setup *setup, purpose what,
                          reef_error *error)
{
    *run = NULL;
    reef_status status = check_setup(setup, error);
    const reef_engine *engine = setup && what == STEPPED ? setup->engine : NULL;
    reef_run *made = status == REEF_OK ? rfi_allocate(context, sizeof *made) : NULL;
    if (made) {
        *made = (reef_run){.context = context, .setup = *setup, .dry = what == DESCRIBED, .played = what == PLAYED};
        made->setup.engine = engine;
        status = read_setup(made, error);
    } else if (status == REEF_OK) {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory for a run");
    }
    status = engine ? engine->ops->agree(engine, status, error) : status; /* all ranks go on, or none */
    if (status == REEF_OK && made) {
        status = build(made, error);
        if (engine) {
            status = engine->ops->agree(engine, status, error);
        }
    }
    if (status != REEF_OK) {
        reef_run_destroy(&made);
        return status;
    }
    *run = made;
    return REEF_OK;
}

reef_status reef_run_create(reef_context *context, reef_run **run, const reef_run_setup *setup, reef_error *error)
{
    if (!run) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_create: run is NULL");
    }
    reef_status status = create(context, run, setup, STEPPED, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_pool_prepare(context);
    return REEF_OK;
}

reef_status rfi_run_describe(reef_context *context, reef_run **run, const reef_run_setup *setup, reef_error *error)
{
    return create(context, run, setup, DESCRIBED, error);
}

reef_status rfi_played_create(reef_context *context, reef_run **run, const reef_run_setup *setup, reef_error *error)
{
    return create(context, run, setup, PLAYED, error);
}

void reef_run_destroy(reef_run **run)
{
    if (!run || !*run) {
        return;
    }
    reef_run *r = *run;
    rfi_combine_free(r);
    rfi_run_free(r);
    rfi_ranks_destroy(r);
    rfi_release(r->context, r);
    *run = NULL;
}

/* ---- rounds ---- */

static void add_counts(reef_run *run)
{
    for (ptrdiff_t i = 0; i < run->workers; i++) {
        reef_run_counts *c = &run->learners[i].counts;
        run->counts.messages += c->messages;
        run->counts.bytes += c->messages * run->dimension * (int64_t)sizeof(float);
        run->counts.gradients += c->gradients;
        run->counts.kept += c->kept;
        run->counts.dropped += c->dropped;
        run->counts.silent += c->silent;
        run->counts.late += c->late;
        *c = (reef_run_counts){0};
    }
}

reef_status rfi_run_check_problem(const reef_run *run, reef_error *error)
{
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    const reef_engine *engine = run->ranks ? run->ranks->engine : NULL;
    if (!kind->failure) {
        return REEF_OK;
    }
    const char *why = kind->failure(reef_problem_state(run->setup.problem));
    reef_status status = why ? rfi_fail(error, REEF_E_ARG, "%s: %s", kind->kind.name, why) : REEF_OK;
    return engine ? engine->ops->agree(engine, status, error) : status; /* all ranks go on, or none */
}

reef_status reef_run_step(reef_run *run, int64_t rounds, reef_error *error)
{
    if (!run || rounds < 0 || rounds > INT64_MAX / 4 - run->round) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_step: %s",
                        run ? "the number of rounds is out of range" : "run is NULL");
    }
    reef_status status = rfi_run_check_problem(run, error); /* its start may have failed */
    for (int64_t i = 0; i < rounds && status == REEF_OK; i++) {
        run->strategy->step(run);
        add_counts(run);
        rfi_watch_trust(run);
        run->round++;
        run->counts.rounds++;
        if (run->ranks && run->ranks->status != REEF_OK) {
            return rfi_fail(error, run->ranks->status, "%s", run->ranks->error.text);
        }
        status = rfi_run_check_problem(run, error);
    }
    return status;
}

/* ---- asking ---- */

int64_t reef_run_round(const reef_run *run)
{
    if (!run) {
        return 0;
    }
    return run->round;
}

ptrdiff_t reef_run_agents(const reef_run *run)
{
    if (!run) {
        return 0;
    }
    return run->all;
}

bool reef_run_holds(const reef_run *run, ptrdiff_t agent)
{
    if (!run || agent < 0 || agent >= run->all) {
        return false;
    }
    return !run->ranks || run->ranks->owner[agent] == run->ranks->engine->rank;
}

ptrdiff_t reef_run_dimension(const reef_run *run)
{
    if (!run) {
        return 0;
    }
    return run->dimension;
}

ptrdiff_t reef_run_lanes(const reef_run *run)
{
    if (!run) {
        return 0;
    }
    return run->lanes;
}

const float *reef_run_model(const reef_run *run, ptrdiff_t agent)
{
    if (!reef_run_holds(run, agent)) {
        return NULL;
    }
    return run->serves_all ? run->server : rfi_model(run, run->ranks ? run->ranks->local[agent] : agent);
}

reef_run_counts reef_run_counts_of(const reef_run *run)
{
    if (!run) {
        return (reef_run_counts){0};
    }
    return run->counts;
}

bool reef_run_uniform(const reef_run *run)
{
    if (!run) {
        return false;
    }
    return run->uses_rule && run->uniform;
}

size_t reef_run_print(const reef_run *run, char *text, size_t size)
{
    if (!run) {
        return rfi_no_text(text, size);
    }
    size_t used = 0;
    if (size > 0) {
        text[0] = '\0';
    }
    rfi_spec_print(&rfi_family_strategy, &run->strategy->kind, run->params, NULL, text, size, &used);
    return used;
}

ptrdiff_t reef_run_trust(const reef_run *run, ptrdiff_t receiver, int32_t *senders, double *share, ptrdiff_t room)
{
    if (!run) {
        return 0;
    }
    if (!run->trust || receiver < 0 || receiver >= (run->server ? 1 : run->all) ||
        !(run->server || reef_run_holds(run, receiver))) {
        return 0;
    }
    ptrdiff_t local = run->ranks ? run->ranks->local[receiver] : receiver;
    ptrdiff_t class = run->server ? 0 : run->class_of[local];
    ptrdiff_t count = run->trust_counts[class] < room ? run->trust_counts[class] : room;
    for (ptrdiff_t i = 0; i < count; i++) {
        int32_t sender = run->trust_senders[class * run->largest + i];
        senders[i] = run->server ? sender : (int32_t)rfi_id(run, sender);
        share[i] = run->trust[class * run->largest + i];
    }
    return count;
}
