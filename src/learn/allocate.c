/* The memory of a run: what it knows about its agents, rows for their models and messages, and what each thread works with. */
#include "base/error.h"
#include "learn/run.h"

#include <string.h>

void *rfi_run_take(const reef_run *run, ptrdiff_t count, size_t size)
{
    void *memory = rfi_allocate_many(run->context, count > 0 ? count : 1, size);
    if (memory) {
        memset(memory, 0, (size_t)(count > 0 ? count : 1) * size);
    }
    return memory;
}

/* The allocated pointer is stored just before the rows. */
float *rfi_run_rows(const reef_run *run, ptrdiff_t count)
{
    ptrdiff_t numbers = 0;
    ptrdiff_t bytes = 0;
    enum { EXTRA = RFI_ALIGNMENT + (int)sizeof(void *) };
    bool one = count < 1 || run->dry; /* nobody will look at the others */
    if (!rfi_mul(one ? 1 : count, run->stride, &numbers) || !rfi_mul(numbers, (ptrdiff_t)sizeof(float), &bytes) ||
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
    run->malicious = rfi_run_take(run, k_max, sizeof(bool));
    run->malicious_list = rfi_run_take(run, k_max, sizeof(int32_t));
    run->honest_list = rfi_run_take(run, k_max, sizeof(int32_t));
    run->home = rfi_run_take(run, k_max, sizeof(int32_t));
    run->step_factor = run->setup.step_factor ? rfi_run_take(run, k_max, sizeof(double)) : NULL;
    run->sent = rfi_run_take(run, k_max, sizeof(float *));
    run->class_failed = rfi_run_take(run, k_max, sizeof(bool));
    run->members = rfi_run_take(run, k_max, sizeof(int32_t));
    run->numbers = rfi_run_take(run, metric_room(run), sizeof(double));
    if (!run->malicious || !run->malicious_list || !run->honest_list || !run->home || !run->sent ||
        !run->class_failed || !run->members || !run->numbers || (run->setup.step_factor && !run->step_factor)) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a run of %td agents", k_max);
    }
    ptrdiff_t honest = 0;
    for (ptrdiff_t k = 0; k < k_max; k++) {
        ptrdiff_t id = rfi_id(run, k);
        run->malicious[k] = run->setup.malicious && run->setup.malicious[id];
        run->own_malicious += k < run->own && run->malicious[k];
        *(run->malicious[k] ? &run->malicious_list[run->malicious_count++] : &run->honest_list[honest++]) = (int32_t)k;
        run->home[k] = run->serves_all ? 0 : (int32_t)k;
        if (run->step_factor) {
            run->step_factor[k] = run->setup.step_factor[id];
        }
    }
    run->setup.malicious = run->malicious;
    run->setup.step_factor = run->step_factor;
    run->all_malicious = run->ranks ? run->all_malicious : run->malicious_count;
    return run->all_malicious < run->all ? REEF_OK
                                         : rfi_fail(error, REEF_E_ARG, "all %td agents are malicious", run->all);
}

/* The largest number of malicious agents that any receiver hears: rows made for one receiver. */
static ptrdiff_t most_malicious(const reef_run *run)
{
    return run->setup.links ? (run->malicious_count < run->largest ? run->malicious_count : run->largest) : 0;
}

static bool looks_at_rows(const reef_run *run)
{
    return run->setup.attack && run->all_malicious && (reef_attack_traits(run->setup.attack) & REEF_ATTACK_ROWS);
}

reef_status rfi_run_allocate_work(reef_run *run, reef_error *error)
{
    const reef_problem *problem = run->setup.problem;
    const reef_attack *attack = run->setup.attack;
    ptrdiff_t batch = run->adapt->batch;
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    size_t work = run->dry ? 0 : kind->work_size(reef_problem_state(problem), batch, run->lanes);
    size_t score_work = kind->score && !run->dry ? kind->work_size(reef_problem_state(problem), 0, 1) : 0;
    work = score_work > work ? score_work : work;
    ptrdiff_t attack_work = attack && run->malicious_count ? reef_attack_work(attack, run->length, run->agents) : 0;
    if (attack_work < 0) {
        return rfi_fail(error, REEF_E_OVERFLOW, "the attack needs more memory than can be addressed");
    }
    bool by_neighbours = looks_at_rows(run) && rfi_lies_can_differ(run) &&
                         reef_attack_common_of(attack)->knowledge == REEF_KNOW_NEIGHBOURS;
    run->known = looks_at_rows(run) && !by_neighbours ? rfi_run_take(run, run->agents, sizeof(float *)) : NULL;
    if (looks_at_rows(run) && !by_neighbours && !run->known) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a run of %td agents", run->agents);
    }
    ptrdiff_t stride = run->stride;
    for (ptrdiff_t i = 0; i < run->workers; i++) {
        rfi_learner *a = &run->learners[i];
        ptrdiff_t most = most_malicious(run);
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
            return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the work of %td threads", run->workers);
        }
    }
    return REEF_OK;
}

static reef_status prepare_rows(reef_run *run, reef_error *error)
{
    const reef_attack *attack = run->setup.attack;
    run->depth = attack ? reef_attack_delay(attack) + 1 : 0;
    ptrdiff_t past = 0;
    bool fits = run->depth <= 1 || rfi_mul((ptrdiff_t)run->depth, run->malicious_count, &past);
    run->models = run->serves_all ? 1 : run->agents;
    run->w = rfi_run_rows(run, run->models);
    run->phi = rfi_run_rows(run, run->agents);
    run->zeros = rfi_run_rows(run, 1);
    run->velocity = run->adapt->momentum > 0 ? rfi_run_rows(run, run->agents) : NULL;
    run->lies = rfi_run_rows(run, run->malicious_count);
    bool late = fits && run->depth > 1 && run->malicious_count;
    run->past = late ? rfi_run_rows(run, past) : NULL;
    run->past_sent = late ? rfi_run_take(run, past, 1) : NULL;
    run->server = run->strategy->has_server ? rfi_run_rows(run, 3) : NULL;
    run->heard = run->strategy->has_server ? rfi_run_take(run, run->all, sizeof(int32_t)) : NULL;
    if (!run->w || !run->phi || !run->zeros || !run->lies || (run->adapt->momentum > 0 && !run->velocity) || !fits ||
        (late && (!run->past || !run->past_sent)) || (run->strategy->has_server && (!run->server || !run->heard))) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the models of %td agents with %td numbers each",
                        run->agents, run->length);
    }
    return REEF_OK;
}

/* Everybody starts at the problem's starting point. */
static void start_models(reef_run *run)
{
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    if (!kind->start || run->dry) {
        return;
    }
    kind->start(reef_problem_state(run->setup.problem), run->lanes, run->setup.repetition, run->w);
    for (ptrdiff_t k = 1; k < run->models; k++) {
        memcpy(rfi_row(run, run->w, k), run->w, (size_t)run->length * sizeof(float));
    }
    if (run->server) {
        memcpy(run->server, run->w, (size_t)run->length * sizeof(float));
    }
}

reef_status rfi_run_allocate(reef_run *run, reef_error *error)
{
    reef_status status = copy_agents(run, error);
    if (status != REEF_OK) {
        return status;
    }
    status = prepare_rows(run, error);
    if (status != REEF_OK) {
        return status;
    }
    run->learners = rfi_run_take(run, run->workers, sizeof(rfi_learner));
    if (!run->learners) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the work of %td threads", run->workers);
    }
    start_models(run);
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

void rfi_run_free(reef_run *r)
{
    for (ptrdiff_t i = 0; r->learners && i < r->workers; i++) {
        free_learner(r, &r->learners[i]);
    }
    float *rows[] = {r->w, r->phi, r->zeros, r->gradient, r->velocity, r->lies, r->before, r->past, r->server};
    for (ptrdiff_t i = 0; i < RFI_COUNT(rows); i++) {
        release_rows(r, rows[i]);
    }
    void *arrays[] = {r->learners,    r->malicious, r->malicious_list, r->honest_list, r->heard,  r->past_sent,
                      r->known,       r->home,      r->extra,          r->sent,        r->params, r->class_failed,
                      r->step_factor, r->present,   r->server_weights, r->members,     r->numbers};
    for (ptrdiff_t i = 0; i < RFI_COUNT(arrays); i++) {
        rfi_release(r->context, arrays[i]);
    }
}
