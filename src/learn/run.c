/* Runs: created from a setup, stepped round by round. */
#include "learn/run.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

#define REEF_STRATEGY(name) extern const rfi_strategy rfi_strategy_##name;
#include "learn/strategy_list.h"
#undef REEF_STRATEGY

static const rfi_strategy *const strategies[] = {
#define REEF_STRATEGY(name) &rfi_strategy_##name,
#include "learn/strategy_list.h"
#undef REEF_STRATEGY
};

/* ---- the list ---- */

ptrdiff_t reef_strategy_count(void)
{
    return RFI_COUNT(strategies);
}

const reef_kind *reef_strategy_at(ptrdiff_t index)
{
    return index >= 0 && index < RFI_COUNT(strategies) ? &strategies[index]->head : NULL;
}

static const reef_kind *kind_of(const void *user, ptrdiff_t index)
{
    (void)user;
    return reef_strategy_at(index);
}

static const char *name_of(const void *user, ptrdiff_t index)
{
    return kind_of(user, index)->name;
}

static const rfi_catalogue catalogue = {"strategy", name_of, kind_of, NULL, RFI_COUNT(strategies)};

const reef_kind *reef_strategy_find(const char *name)
{
    return name ? reef_strategy_at(rfi_catalogue_find(&catalogue, (rfi_slice){name, strlen(name)})) : NULL;
}

/* ---- memory ---- */

void *rfi_run_take(const reef_run *run, ptrdiff_t count, size_t size)
{
    void *memory = rfi_allocate_many(run->context, count > 0 ? count : 1, size);
    if (memory) {
        memset(memory, 0, (size_t)(count > 0 ? count : 1) * size);
    }
    return memory;
}

/* The pointer that was allocated stands just before the rows. */
float *rfi_run_rows(const reef_run *run, ptrdiff_t count)
{
    ptrdiff_t numbers = 0;
    ptrdiff_t bytes = 0;
    enum { EXTRA = RFI_ALIGNMENT + (int)sizeof(void *) };
    if (!rfi_mul(count > 0 ? count : 1, run->stride, &numbers) || !rfi_mul(numbers, (ptrdiff_t)sizeof(float), &bytes) ||
        !rfi_add(bytes, EXTRA, &bytes)) {
        return NULL;
    }
    char *memory = rfi_allocate(run->context, (size_t)bytes);
    if (!memory) {
        return NULL;
    }
    char *rows = rfi_align(memory + sizeof(void *));
    memcpy(rows - sizeof(void *), &memory, sizeof memory);
    memset(rows, 0, (size_t)numbers * sizeof(float));
    return (float *)(void *)rows;
}

static void release_rows(const reef_run *run, float *rows)
{
    if (rows) {
        void *memory;
        memcpy(&memory, (char *)rows - sizeof(void *), sizeof memory);
        rfi_release(run->context, memory);
    }
}

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
    if (!setup || !setup->problem || !setup->strategy) {
        return rfi_fail(error, REEF_E_ARG, "a run needs a problem and a strategy");
    }
    if (setup->lanes < 0 || setup->lanes > LANES_MAX || setup->repetition < 0 ||
        setup->repetition > INT32_MAX - LANES_MAX) {
        return rfi_fail(error, REEF_E_ARG, "%td lanes from repetition %td; 1 to %d lanes, repetitions from 0 to %d",
                        setup->lanes, setup->repetition, LANES_MAX, INT32_MAX - LANES_MAX);
    }
    return REEF_OK;
}

static reef_status check_lanes(const reef_run *run, reef_error *error)
{
    const reef_run_setup *s = &run->setup;
    bool problem = reef_problem_kind_of(s->problem)->traits & REEF_PROBLEM_LANES;
    bool attack = !s->attack || (reef_attack_traits(s->attack) & REEF_ATTACK_LANES);
    bool rule = !run->uses_rule || (reef_agg_traits(s->rule) & REEF_TRAIT_ELEMENTWISE);
    if (run->lanes > 1 && (!problem || !attack || !rule)) {
        return rfi_fail(error, REEF_E_ARG, "%td lanes, but the %s works on one repetition at a time", run->lanes,
                        problem ? (attack ? "rule" : "attack") : "problem");
    }
    return REEF_OK;
}

static reef_status check_parts(const reef_run *run, reef_error *error)
{
    const reef_run_setup *s = &run->setup;
    const char *name = run->strategy->head.name;
    if (run->strategy->needs_rule && !s->rule) {
        return rfi_fail(error, REEF_E_ARG, "%s needs a rule", name);
    }
    if (run->strategy->needs_links && !s->links) {
        return rfi_fail(error, REEF_E_ARG, "%s needs links: who hears whom", name);
    }
    if (s->links && reef_graph_agents(reef_links_graph(s->links, 0)) != run->agents) {
        return rfi_fail(error, REEF_E_ARG, "the graph has %td agents, the problem %td",
                        reef_graph_agents(reef_links_graph(s->links, 0)), run->agents);
    }
    if (run->adapt->batch == 0 && !reef_problem_kind_of(s->problem)->samples) {
        return rfi_fail(error, REEF_E_ARG, "%s: batch=0 means all data of an agent, but %s has no end of them", name,
                        reef_problem_kind_of(s->problem)->kind.name);
    }
    for (ptrdiff_t k = 0; s->step_factor && k < run->agents; k++) {
        if (!(s->step_factor[k] >= 0) || !isfinite(s->step_factor[k])) {
            return rfi_fail(error, REEF_E_ARG, "the step factor of agent %td is %g; it must be >= 0 and finite", k,
                            s->step_factor[k]);
        }
    }
    return check_lanes(run, error);
}

/* Numbers for metrics of every agent. */
static ptrdiff_t metric_room(const reef_run *run)
{
    enum { AT_LEAST = 6 };
    ptrdiff_t room = 0;
    bool fits = rfi_mul(run->all, run->lanes > AT_LEAST ? run->lanes : AT_LEAST, &room) &&
                rfi_add(room, run->length, &room) && rfi_add(room, run->dimension, &room);
    return fits ? room : PTRDIFF_MAX;
}

static reef_status copy_agents(reef_run *run, reef_error *error)
{
    ptrdiff_t k_max = run->agents;
    run->liar = rfi_run_take(run, k_max, sizeof(bool));
    run->liar_list = rfi_run_take(run, k_max, sizeof(int32_t));
    run->honest_list = rfi_run_take(run, k_max, sizeof(int32_t));
    run->home = rfi_run_take(run, k_max, sizeof(int32_t));
    run->step_factor = run->setup.step_factor ? rfi_run_take(run, k_max, sizeof(double)) : NULL;
    run->sent = rfi_run_take(run, k_max, sizeof(float *));
    run->class_failed = rfi_run_take(run, k_max, sizeof(bool));
    run->members = rfi_run_take(run, k_max, sizeof(int32_t));
    run->numbers = rfi_run_take(run, metric_room(run), sizeof(double));
    if (!run->liar || !run->liar_list || !run->honest_list || !run->home || !run->sent || !run->class_failed ||
        !run->members || !run->numbers || (run->setup.step_factor && !run->step_factor)) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a run of %td agents", k_max);
    }
    ptrdiff_t honest = 0;
    for (ptrdiff_t k = 0; k < k_max; k++) {
        ptrdiff_t id = rfi_id(run, k);
        run->liar[k] = run->setup.liar && run->setup.liar[id];
        run->own_liars += k < run->own && run->liar[k];
        *(run->liar[k] ? &run->liar_list[run->liars++] : &run->honest_list[honest++]) = (int32_t)k;
        run->home[k] = (int32_t)k;
        if (run->step_factor) {
            run->step_factor[k] = run->setup.step_factor[id];
        }
    }
    run->setup.liar = run->liar;
    run->setup.step_factor = run->step_factor;
    run->all_liars = run->ranks ? run->all_liars : run->liars;
    return run->all_liars < run->all ? REEF_OK : rfi_fail(error, REEF_E_ARG, "all %td agents lie", run->all);
}

/* The most liars any receiver hears: rows of lies made for one receiver. */
static ptrdiff_t most_liars(const reef_run *run)
{
    return run->setup.links ? (run->liars < run->largest ? run->liars : run->largest) : 0;
}

static bool looks_at_rows(const reef_run *run)
{
    return run->setup.attack && run->all_liars && (reef_attack_traits(run->setup.attack) & REEF_ATTACK_ROWS);
}

static reef_status prepare_threads(reef_run *run, reef_error *error)
{
    const reef_problem *problem = run->setup.problem;
    const reef_attack *attack = run->setup.attack;
    ptrdiff_t batch = run->adapt->batch;
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    size_t work = kind->work_size(reef_problem_state(problem), batch, run->lanes);
    size_t score_work = kind->score ? kind->work_size(reef_problem_state(problem), 0, 1) : 0;
    work = score_work > work ? score_work : work;
    ptrdiff_t attack_work = attack ? reef_attack_work(attack, run->length, run->agents) : 0;
    if (attack_work < 0) {
        return rfi_fail(error, REEF_E_OVERFLOW, "the attack needs more memory than can be addressed");
    }
    bool by_neighbours = looks_at_rows(run) && rfi_lies_can_differ(run) &&
                         reef_attack_common_of(attack)->knowledge == REEF_KNOW_NEIGHBOURS;
    run->known = looks_at_rows(run) && !by_neighbours ? rfi_run_take(run, run->agents, sizeof(float *)) : NULL;
    if (looks_at_rows(run) && !by_neighbours && !run->known) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a run of %td agents", run->agents);
    }
    ptrdiff_t stride = run->stride;
    for (ptrdiff_t i = 0; i < run->workers; i++) {
        rfi_learner *a = &run->learners[i];
        ptrdiff_t most = most_liars(run);
        a->batch_work = rfi_run_rows(run, (ptrdiff_t)(work / sizeof(float)) / stride + 2);
        a->agents = rfi_run_take(run, run->chunk, sizeof(int32_t));
        a->numbers = rfi_run_take(run, run->chunk, sizeof(int32_t));
        a->models = rfi_run_take(run, run->chunk, sizeof(float *));
        a->gradients = rfi_run_take(run, run->chunk, sizeof(float *));
        a->flipped = rfi_run_take(run, run->chunk, sizeof(bool));
        a->attack_work = rfi_run_rows(run, attack_work / stride + 1);
        a->lies = rfi_run_rows(run, most);
        a->spare = rfi_run_rows(run, 1);
        a->rows = rfi_run_take(run, run->largest, sizeof(void *));
        a->senders = rfi_run_take(run, run->largest, sizeof(int32_t));
        a->weights = rfi_run_take(run, run->largest, sizeof(double));
        a->expected = rfi_run_take(run, run->largest, sizeof(double));
        a->live = rfi_run_take(run, run->largest, sizeof(double));
        a->known = by_neighbours ? rfi_run_take(run, run->largest, sizeof(float *)) : NULL;
        if (!a->batch_work || !a->attack_work || !a->lies || !a->spare || !a->rows || !a->senders || !a->weights ||
            !a->expected || !a->live || (by_neighbours && !a->known) || !a->agents || !a->models || !a->gradients ||
            !a->flipped || !a->numbers) {
            return rfi_fail(error, REEF_E_NOMEM, "no memory for the work of %td threads", run->workers);
        }
    }
    return REEF_OK;
}

static reef_status prepare_rows(reef_run *run, reef_error *error)
{
    const reef_attack *attack = run->setup.attack;
    run->depth = attack ? reef_attack_delay(attack) + 1 : 0;
    ptrdiff_t past = 0;
    bool fits = run->depth <= 1 || rfi_mul((ptrdiff_t)run->depth, run->liars, &past);
    run->w = rfi_run_rows(run, run->agents);
    run->phi = rfi_run_rows(run, run->agents);
    run->zeros = rfi_run_rows(run, 1);
    run->velocity = run->adapt->momentum > 0 ? rfi_run_rows(run, run->agents) : NULL;
    run->lies = rfi_run_rows(run, run->liars);
    bool late = fits && run->depth > 1 && run->liars;
    run->past = late ? rfi_run_rows(run, past) : NULL;
    run->past_sent = late ? rfi_run_take(run, past, 1) : NULL;
    run->server = run->strategy->has_server ? rfi_run_rows(run, 3) : NULL;
    run->heard = run->strategy->has_server ? rfi_run_take(run, run->agents, sizeof(int32_t)) : NULL;
    if (!run->w || !run->phi || !run->zeros || !run->lies || (run->adapt->momentum > 0 && !run->velocity) || !fits ||
        (late && (!run->past || !run->past_sent)) || (run->strategy->has_server && (!run->server || !run->heard))) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the models of %td agents with %td numbers each",
                        run->agents, run->length);
    }
    return REEF_OK;
}

/* Everybody starts at the problem's starting point. */
static void start_models(reef_run *run)
{
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    if (!kind->start) {
        return;
    }
    kind->start(reef_problem_state(run->setup.problem), run->lanes, run->setup.repetition, run->w);
    for (ptrdiff_t k = 1; k < run->agents; k++) {
        memcpy(rfi_row(run, run->w, k), run->w, (size_t)run->length * sizeof(float));
    }
    if (run->server) {
        memcpy(run->server, run->w, (size_t)run->length * sizeof(float));
    }
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
    run->stride = padded / LINE * LINE;
    run->workers = rfi_context_workers(run->context);
    bool whole = reef_problem_kind_of(run->setup.problem)->traits & REEF_PROBLEM_WHOLE;
    run->chunk = whole ? run->agents : RFI_CHUNK_AGENTS;
    return REEF_OK;
}

/* What can be said without memory for models. */
static reef_status read_setup(reef_run *run, reef_error *error)
{
    ptrdiff_t index = 0;
    reef_status status =
        rfi_spec_read(run->context, &catalogue, run->setup.strategy, NULL, &index, &run->params, error);
    if (status != REEF_OK) {
        return status;
    }
    run->strategy = strategies[index];
    run->adapt = (const void *)((const char *)run->params + run->strategy->adapt_offset);
    run->uses_rule = run->strategy->needs_rule;
    run->setup.strategy = NULL; /* the caller's */
    status = measure(run, error);
    status = status == REEF_OK ? check_parts(run, error) : status;
    run->setup.links = run->strategy->needs_links ? run->setup.links : NULL; /* a server hears everybody */
    return status;
}

static reef_status build(reef_run *run, reef_error *error)
{
    reef_status status = run->setup.engine ? rfi_ranks_create(run, error) : REEF_OK;
    status = status == REEF_OK ? copy_agents(run, error) : status;
    status = status == REEF_OK ? prepare_rows(run, error) : status;
    if (status != REEF_OK) {
        return status;
    }
    run->learners = rfi_run_take(run, run->workers, sizeof(rfi_learner));
    if (!run->learners) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the work of %td threads", run->workers);
    }
    start_models(run);
    status = rfi_combine_prepare(run, error);
    status = status == REEF_OK ? prepare_threads(run, error) : status;
    status = status == REEF_OK && run->uses_rule ? rfi_combine_try(run, error) : status;
    return status == REEF_OK && run->strategy->prepare ? run->strategy->prepare(run, error) : status;
}

reef_status reef_run_create(reef_context *context, reef_run **run, const reef_run_setup *setup, reef_error *error)
{
    if (!run) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_create: run is NULL");
    }
    *run = NULL;
    reef_status status = check_setup(setup, error);
    const reef_engine *engine = setup ? setup->engine : NULL;
    reef_run *made = status == REEF_OK ? rfi_allocate(context, sizeof *made) : NULL;
    if (made) {
        *made = (reef_run){.context = context, .setup = *setup};
        status = read_setup(made, error);
    } else if (status == REEF_OK) {
        status = rfi_fail(error, REEF_E_NOMEM, "no memory for a run");
    }
    status = engine ? engine->ops->agree(engine, status, error) : status; /* all ranks go on, or none */
    if (status == REEF_OK && made) {
        status = build(made, error);
        status = engine ? engine->ops->agree(engine, status, error) : status;
    }
    if (status != REEF_OK) {
        reef_run_destroy(&made);
        return status;
    }
    rfi_pool_prepare(context);
    *run = made;
    return REEF_OK;
}

static void free_learner(reef_run *run, rfi_learner *a)
{
    release_rows(run, a->batch_work);
    rfi_release(run->context, a->agents);
    rfi_release(run->context, a->numbers);
    rfi_release(run->context, (void *)a->models);
    rfi_release(run->context, (void *)a->gradients);
    rfi_release(run->context, a->flipped);
    release_rows(run, a->attack_work);
    release_rows(run, a->lies);
    release_rows(run, a->spare);
    rfi_release(run->context, a->rows);
    rfi_release(run->context, a->senders);
    rfi_release(run->context, a->weights);
    rfi_release(run->context, a->expected);
    rfi_release(run->context, a->live);
    rfi_release(run->context, a->known);
    rfi_release(run->context, a->trial_rows);
    rfi_release(run->context, a->trial_weights);
}

void reef_run_destroy(reef_run **run)
{
    if (!run || !*run) {
        return;
    }
    reef_run *r = *run;
    rfi_combine_free(r);
    for (ptrdiff_t i = 0; r->learners && i < r->workers; i++) {
        free_learner(r, &r->learners[i]);
    }
    float *rows[] = {r->w, r->phi, r->zeros, r->gradient, r->velocity, r->lies, r->before, r->past, r->server};
    for (ptrdiff_t i = 0; i < RFI_COUNT(rows); i++) {
        release_rows(r, rows[i]);
    }
    void *arrays[] = {r->learners,    r->liar,    r->liar_list,      r->honest_list, r->heard,  r->past_sent,
                      r->known,       r->home,    r->extra,          r->sent,        r->params, r->class_failed,
                      r->step_factor, r->present, r->server_weights, r->members,     r->numbers};
    for (ptrdiff_t i = 0; i < RFI_COUNT(arrays); i++) {
        rfi_release(r->context, arrays[i]);
    }
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

reef_status reef_run_step(reef_run *run, int64_t rounds, reef_error *error)
{
    if (!run || rounds < 0 || rounds > INT64_MAX / 4 - run->round) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_step: %s", run ? "a bad number of rounds" : "run is NULL");
    }
    for (int64_t i = 0; i < rounds; i++) {
        run->strategy->step(run);
        add_counts(run);
        run->round++;
        run->counts.rounds++;
        if (run->ranks && run->ranks->status != REEF_OK) {
            return rfi_fail(error, run->ranks->status, "%s", run->ranks->error.text);
        }
    }
    return REEF_OK;
}

/* ---- asking ---- */

int64_t reef_run_round(const reef_run *run)
{
    return run->round;
}

ptrdiff_t reef_run_agents(const reef_run *run)
{
    return run->all;
}

bool reef_run_holds(const reef_run *run, ptrdiff_t agent)
{
    return !run->ranks || run->ranks->owner[agent] == run->ranks->engine->rank;
}

ptrdiff_t reef_run_dimension(const reef_run *run)
{
    return run->dimension;
}

ptrdiff_t reef_run_lanes(const reef_run *run)
{
    return run->lanes;
}

const float *reef_run_model(const reef_run *run, ptrdiff_t agent)
{
    if (run->ranks) {
        return reef_run_holds(run, agent) ? rfi_model(run, run->ranks->local[agent]) : NULL;
    }
    return run->serves_all ? run->server : rfi_model(run, agent);
}

reef_run_counts reef_run_counts_of(const reef_run *run)
{
    return run->counts;
}

bool reef_run_uniform(const reef_run *run)
{
    return run->uses_rule && run->uniform;
}

size_t reef_run_print(const reef_run *run, char *text, size_t size)
{
    size_t used = 0;
    if (size > 0) {
        text[0] = '\0';
    }
    rfi_spec_print(&run->strategy->head, run->params, NULL, text, size, &used);
    return used;
}

ptrdiff_t reef_run_trust(const reef_run *run, ptrdiff_t receiver, int32_t *senders, double *share, ptrdiff_t room)
{
    if (!run->trust || receiver < 0 || receiver >= (run->server ? 1 : run->all) || !reef_run_holds(run, receiver)) {
        return 0;
    }
    ptrdiff_t local = run->ranks ? run->ranks->local[receiver] : receiver;
    ptrdiff_t class = run->server ? 0 : run->class_of[local];
    ptrdiff_t count = run->trust_counts[class] < room ? run->trust_counts[class] : room;
    for (ptrdiff_t i = 0; i < count; i++) {
        senders[i] = (int32_t)rfi_id(run, run->trust_senders[class * run->largest + i]);
        share[i] = run->trust[class * run->largest + i];
    }
    return count;
}
