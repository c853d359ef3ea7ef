/* Runs whose gradients come from the caller, all agents in one call. */
#include "ffi/handles.h"

#include "base/error.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

/* What the problem is made of; texts and arrays are the caller's until create has copied them. */
typedef struct params {
    ptrdiff_t dimension;
    const float *start;
    const int64_t *samples;
    reef_ffi_gradients gradients;
    void *user;
} params;

typedef struct state {
    const reef_context *context;
    ptrdiff_t agents, dimension;
    reef_ffi_gradients gradients;
    void *user;
    float *start;     /* or NULL */
    int64_t *samples; /* or NULL */
    /* One block each for a call: K x M numbers. Written by gradients, which REEF_PROBLEM_WHOLE keeps to one thread. */
    float *models, *results;
} state;

static void destroy(void *memory)
{
    state *s = memory;
    rfi_release(s->context, s->start);
    rfi_release(s->context, s->samples);
    rfi_release(s->context, s->models);
    rfi_release(s->context, s->results);
    rfi_release(s->context, s);
}

static void *copy(const reef_context *context, const void *from, ptrdiff_t count, size_t size)
{
    void *to = rfi_allocate_many(context, count, size);
    if (to) {
        memcpy(to, from, (size_t)count * size);
    }
    return to;
}

static reef_status create(const void *given, const reef_problem_setup *setup, void **place, reef_error *error)
{
    const params *p = given;
    ptrdiff_t numbers = 0;
    state *s = rfi_mul(setup->agents, p->dimension, &numbers) ? rfi_allocate(setup->context, sizeof *s) : NULL;
    if (!s) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td models of %td numbers", setup->agents,
                        p->dimension);
    }
    assert(setup->agents >= 1 && p->dimension >= 1 && p->gradients);
    *s = (state){.context = setup->context,
                 .agents = setup->agents,
                 .dimension = p->dimension,
                 .gradients = p->gradients,
                 .user = p->user};
    s->start = p->start ? copy(s->context, p->start, p->dimension, sizeof *s->start) : NULL;
    s->samples = p->samples ? copy(s->context, p->samples, setup->agents, sizeof *s->samples) : NULL;
    s->models = rfi_allocate_many(s->context, numbers, sizeof *s->models);
    s->results = rfi_allocate_many(s->context, numbers, sizeof *s->results);
    if ((p->start && !s->start) || (p->samples && !s->samples) || !s->models || !s->results) {
        destroy(s);
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td models of %td numbers", setup->agents,
                        p->dimension);
    }
    *place = s;
    return REEF_OK;
}

static ptrdiff_t dimension_of(const void *memory)
{
    return ((const state *)memory)->dimension;
}

static size_t work_size(const void *memory, ptrdiff_t size, ptrdiff_t lanes)
{
    (void)memory;
    (void)size;
    (void)lanes;
    return 0;
}

static void start_at(const void *memory, ptrdiff_t lanes, ptrdiff_t repetition, float *model)
{
    const state *s = memory;
    (void)lanes;
    (void)repetition;
    if (s->start) {
        memcpy(model, s->start, (size_t)s->dimension * sizeof *model);
    }
}

static void ask(const void *memory, const reef_batch *batch)
{
    const state *s = memory;
    size_t row = (size_t)s->dimension * sizeof(float);
    assert(batch->count <= s->agents); /* room for so many models */
    for (ptrdiff_t i = 0; i < batch->count; i++) {
        memcpy(s->models + i * s->dimension, batch->models[i], row);
    }
    s->gradients(s->user, batch->count, batch->agents, s->models, s->results, (const unsigned char *)batch->flipped,
                 batch->round, batch->step, batch->size);
    for (ptrdiff_t i = 0; i < batch->count; i++) {
        memcpy(batch->gradients[i], s->results + i * s->dimension, row);
    }
}

static ptrdiff_t samples_of(const void *memory, ptrdiff_t agent)
{
    const state *s = memory;
    assert(agent >= 0 && agent < s->agents);
    return s->samples ? (ptrdiff_t)s->samples[agent] : 1;
}

static const reef_problem_kind kind = {
    .kind = {.name = "callback", .summary = "gradients of the caller's", .citation = "", .params_size = sizeof(params)},
    .traits = REEF_PROBLEM_WHOLE | REEF_PROBLEM_CLASSES,
    .create = create,
    .destroy = destroy,
    .dimension = dimension_of,
    .work_size = work_size,
    .start = start_at,
    .gradients = ask,
    .samples = samples_of,
};

static reef_status check_samples(const int64_t *samples, ptrdiff_t agents, reef_error *error)
{
    for (ptrdiff_t k = 0; samples && k < agents; k++) {
        if (samples[k] < 1) {
            return rfi_fail(error, REEF_E_ARG, "agent %td has %lld samples; at least 1 is needed", k,
                            (long long)samples[k]);
        }
    }
    return REEF_OK;
}

reef_status reef_ffi_problem(reef_context *context, reef_problem **place, ptrdiff_t agents, ptrdiff_t dimension,
                             const float *start, const int64_t *samples, reef_ffi_gradients gradients, void *user,
                             char *text, size_t room)
{
    reef_error error = {0};
    reef_status status = REEF_OK;
    params p = {dimension, start, samples, gradients, user};
    if (!gradients || dimension < 1) {
        status = rfi_fail(&error, REEF_E_ARG, "a problem needs gradients and models of at least one number, not %td",
                          dimension);
    }
    if (status == REEF_OK) {
        status = check_samples(samples, agents, &error);
    }
    if (status == REEF_OK) {
        status = reef_problem_create_own(context, place, &kind, &p, agents, 0, &error);
    }
    return rfi_ffi_tell(status, &error, text, room);
}

reef_status reef_ffi_graph(reef_context *context, reef_graph **place, const char *spec, const char *weights,
                           ptrdiff_t agents, uint64_t seed, char *text, size_t room)
{
    reef_error error = {0};
    reef_status status = reef_graph_create(context, place, spec, agents, seed, &error);
    if (status == REEF_OK && weights) {
        status = reef_graph_set_weights(*place, weights, NULL, &error);
        if (status != REEF_OK) {
            reef_graph_destroy(place);
        }
    }
    return rfi_ffi_tell(status, &error, text, room);
}

reef_status reef_ffi_links(reef_context *context, reef_links **place, const char *spec, const reef_graph *graph,
                           uint64_t seed, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_ffi_tell(reef_links_create(context, place, spec, &graph, 1, seed, &error), &error, text, room);
}

reef_status reef_ffi_attack(reef_context *context, reef_attack **place, const char *spec, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_ffi_tell(reef_attack_create(context, place, spec, &error), &error, text, room);
}

reef_status reef_ffi_run(reef_context *context, reef_run **place, const reef_problem *problem, const char *strategy,
                         const reef_agg *rule, const reef_links *links, const reef_attack *attack,
                         const unsigned char *malicious, const double *step_factor, uint64_t seed, int trust,
                         char *text, size_t room)
{
    reef_error error = {0};
    reef_status status = REEF_OK;
    ptrdiff_t agents = problem ? reef_problem_agents(problem) : 0;
    bool *flags = malicious && problem ? rfi_allocate_many(context, agents, sizeof *flags) : NULL;
    if (malicious && problem && !flags) {
        status = rfi_fail(&error, REEF_E_NOMEM, "not enough memory for %td agents", agents);
    }
    for (ptrdiff_t k = 0; flags && k < agents; k++) {
        flags[k] = malicious[k] != 0;
    }
    if (status == REEF_OK) {
        reef_run_setup setup = {.problem = problem,
                                .strategy = strategy,
                                .rule = rule,
                                .links = links,
                                .attack = attack,
                                .malicious = flags,
                                .step_factor = step_factor,
                                .seed = seed,
                                .trust = trust != 0};
        status = reef_run_create(context, place, &setup, &error);
    }
    rfi_release(context, flags);
    return rfi_ffi_tell(status, &error, text, room);
}

reef_status reef_ffi_run_step(reef_run *run, int64_t rounds, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_ffi_tell(reef_run_step(run, rounds, &error), &error, text, room);
}

void reef_ffi_run_counts(const reef_run *run, int64_t *counts)
{
    reef_run_counts c = reef_run_counts_of(run);
    const int64_t all[] = {c.rounds, c.messages, c.bytes, c.gradients, c.kept, c.dropped, c.silent, c.late};
    if (counts) {
        memcpy(counts, all, sizeof all);
    }
}
