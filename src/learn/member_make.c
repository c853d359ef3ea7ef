/* Making a member: checks of its setup, its memory, its rule. */
#include "learn/member.h"

#include "base/error.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static reef_status check_senders(const reef_member_setup *s, reef_error *error)
{
    bool self = false;
    if (s->senders < 1 || !s->sender || !s->weights) {
        return rfi_fail(error, REEF_E_GRAPH,
                        "a member needs at least itself as a sender: senders or their weights are missing");
    }
    for (ptrdiff_t i = 0; i < s->senders; i++) {
        self = self || s->sender[i] == s->agent;
        if (i > 0 && s->sender[i] <= s->sender[i - 1]) {
            return rfi_fail(error, REEF_E_GRAPH, "senders must be ascending, but %d follows %d", (int)s->sender[i],
                            (int)s->sender[i - 1]);
        }
        if (!(s->weights[i] > 0) || !isfinite(s->weights[i])) {
            return rfi_fail(error, REEF_E_WEIGHTS, "the weight of agent %d is %g; it must be positive and finite",
                            (int)s->sender[i], s->weights[i]);
        }
        if (s->malicious && (s->sender[i] < 0 || s->sender[i] >= s->agents)) {
            return rfi_fail(error, REEF_E_ARG, "agent %d is not one of %td", (int)s->sender[i], s->agents);
        }
    }
    if (!self) {
        return rfi_fail(error, REEF_E_GRAPH, "agent %td does not hear itself", s->agent);
    }
    return REEF_OK;
}

static bool is_malicious(const reef_member_setup *s)
{
    return s->malicious && s->agent < s->agents && s->malicious[s->agent];
}

static reef_status check_attack(const reef_member_setup *s, reef_error *error)
{
    if (!s->attack || !is_malicious(s)) {
        return REEF_OK;
    }
    unsigned traits = reef_attack_traits(s->attack);
    const char *name = reef_attack_kind_of(s->attack)->kind.name;
    if (s->dtype != REEF_F32) {
        return rfi_fail(error, REEF_E_ARG, "attacks work on float32 models");
    }
    if ((traits & (REEF_ATTACK_EDGE | REEF_ATTACK_RULE)) || reef_attack_delay(s->attack) > 0) {
        return rfi_fail(error, REEF_E_ARG,
                        "%s is not available to a single agent: it needs to send different vectors to different "
                        "receivers, to try the rule, or to be late",
                        name);
    }
    return REEF_OK;
}

static reef_status check_problem(const reef_member_setup *s, const rfi_adapt *adapt, reef_error *error)
{
    if (!s->problem) {
        return s->dimension > 0 ? REEF_OK
                                : rfi_fail(error, REEF_E_ARG, "a member without a problem needs the models' dimension");
    }
    const reef_problem_kind *kind = reef_problem_kind_of(s->problem);
    if (s->dtype != REEF_F32 || (s->dimension && s->dimension != reef_problem_dimension(s->problem))) {
        return rfi_fail(error, REEF_E_ARG, "models of %s are %td float32 numbers", kind->kind.name,
                        reef_problem_dimension(s->problem));
    }
    if (!adapt) {
        return rfi_fail(error, REEF_E_ARG, "a member with a problem needs a strategy");
    }
    if (kind->traits & REEF_PROBLEM_WHOLE) {
        return rfi_fail(error, REEF_E_ARG, "%s computes all agents at once and cannot be learned by one alone",
                        kind->kind.name);
    }
    if (s->agent < 0 || s->agent >= reef_problem_agents(s->problem)) {
        return rfi_fail(error, REEF_E_ARG, "agent %td is not one of the problem's %td", s->agent,
                        reef_problem_agents(s->problem));
    }
    if (adapt->batch == 0 && !kind->samples) {
        return rfi_fail(error, REEF_E_ARG, "batch=0 means all data of an agent, but %s generates data without end",
                        kind->kind.name);
    }
    return REEF_OK;
}

static reef_status read_strategy(reef_member *m, reef_error *error)
{
    const reef_kind *kind = NULL;
    if (!m->setup.strategy) {
        return REEF_OK;
    }
    reef_status status =
        rfi_spec_read(m->context, &rfi_family_strategy, m->setup.strategy, NULL, &kind, &m->params, error);
    if (status != REEF_OK) {
        return status;
    }
    const rfi_strategy *strategy = (const void *)kind;
    if (!strategy->sends_adapted || !strategy->sends_adapted(m->params)) {
        return rfi_fail(error, REEF_E_ARG,
                        "a single agent supports only adapt-then-combine: use diffusion with order=atc");
    }
    m->adapt = (const void *)((const char *)m->params + strategy->adapt_offset);
    return REEF_OK;
}

/* Lays the member's arrays out; measures when the arena has no memory. */
static void lay_out(reef_member *m, rfi_arena *arena)
{
    const reef_member_setup *s = &m->setup;
    ptrdiff_t bytes = (ptrdiff_t)m->bytes;
    size_t work = 0;
    if (s->problem) {
        work = reef_problem_kind_of(s->problem)->work_size(reef_problem_state(s->problem), m->adapt->batch, 1);
    }
    bool attacks = s->attack && is_malicious(s);
    ptrdiff_t attack_work = attacks ? reef_attack_work(s->attack, m->dimension, s->senders) : 0;
    m->w = rfi_arena_take(arena, bytes, 1, 1);
    m->phi = rfi_arena_take(arena, bytes, 1, 1);
    m->out = rfi_arena_take(arena, bytes, 1, 1);
    m->lie = rfi_arena_take(arena, attacks ? bytes : 0, 1, 1);
    float *velocity = rfi_arena_take(arena, m->adapt && m->adapt->momentum > 0 ? bytes : 0, 1, 1);
    m->velocity = m->adapt && m->adapt->momentum > 0 ? velocity : NULL;
    m->ids = rfi_arena_take(arena, s->senders, 1, sizeof *m->ids);
    m->expected = rfi_arena_take(arena, s->senders, 1, sizeof *m->expected);
    m->weights = rfi_arena_take(arena, s->senders, 1, sizeof *m->weights);
    m->rows = rfi_arena_take(arena, s->senders, 1, sizeof *m->rows);
    m->known = rfi_arena_take(arena, s->senders, 1, sizeof *m->known);
    m->malicious = rfi_arena_take(arena, s->senders, 1, sizeof *m->malicious);
    m->batch_work = rfi_arena_take(arena, work > PTRDIFF_MAX ? PTRDIFF_MAX : (ptrdiff_t)work, 1, 1);
    m->attack_work = rfi_arena_take(arena, attack_work < 0 ? PTRDIFF_MAX : attack_work, 1, sizeof(float));
}

static reef_status allocate(reef_member *m, reef_error *error)
{
    rfi_arena arena = {NULL, 0, false};
    lay_out(m, &arena);
    size_t bytes = (size_t)arena.used + RFI_ALIGNMENT;
    m->memory = arena.overflow ? NULL : rfi_allocate(m->context, bytes);
    if (!m->memory) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a member with models of %td numbers", m->dimension);
    }
    memset(m->memory, 0, bytes);
    arena = (rfi_arena){rfi_align(m->memory), 0, false};
    lay_out(m, &arena);
    assert((size_t)arena.used + RFI_ALIGNMENT == bytes); /* the same layout as was measured */
    return REEF_OK;
}

static void copy_senders(reef_member *m)
{
    reef_member_setup *s = &m->setup;
    for (ptrdiff_t i = 0; i < s->senders; i++) {
        m->ids[i] = s->sender[i];
        m->expected[i] = m->uniform ? 1 : s->weights[i];
        m->malicious[i] = s->malicious && s->malicious[s->sender[i]];
        m->self = s->sender[i] == s->agent ? i : m->self;
    }
    for (ptrdiff_t k = 0; s->malicious && k < s->agents; k++) {
        m->honest_all += !s->malicious[k];
    }
    assert(m->ids[m->self] == s->agent); /* check_senders */
    m->setup.attack = is_malicious(s) ? s->attack : NULL;
    s->sender = NULL;
    s->weights = NULL;
    s->malicious = NULL;
    s->strategy = NULL;
}

static reef_status make_rule(reef_member *m, reef_error *error)
{
    const reef_agg *rule = m->setup.rule;
    const reef_shape shape = {
        .rows = m->setup.senders, .segments = 1, .lengths = &m->dimension, .dtype = m->setup.dtype};
    reef_status status = reef_plan_create(&m->plan, rule, &shape, error);
    if (status == REEF_OK && (reef_agg_traits(rule) & (REEF_TRAIT_CENTRE | REEF_TRAIT_SENDERS))) {
        status = reef_state_create(&m->state, rule, &shape, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return reef_report_create(m->context, &m->report, m->setup.senders, error);
}

static reef_status build(reef_member *m, reef_error *error)
{
    reef_member_setup *s = &m->setup;
    reef_status status = s->rule ? check_senders(s, error) : rfi_fail(error, REEF_E_ARG, "a member needs a rule");
    if (status != REEF_OK) {
        return status;
    }
    status = check_attack(s, error);
    if (status != REEF_OK) {
        return status;
    }
    status = read_strategy(m, error);
    if (status != REEF_OK) {
        return status;
    }
    status = check_problem(s, m->adapt, error);
    if (status != REEF_OK) {
        return status;
    }
    m->dimension = s->problem ? reef_problem_dimension(s->problem) : s->dimension;
    ptrdiff_t bytes = 0;
    if (!rfi_mul(m->dimension, s->dtype == REEF_F32 ? sizeof(float) : sizeof(double), &bytes)) {
        return rfi_fail(error, REEF_E_OVERFLOW, "models of %td numbers are too large", m->dimension);
    }
    m->bytes = (size_t)bytes;
    m->uniform = !(reef_agg_traits(s->rule) & REEF_TRAIT_WEIGHTS);
    m->keeps_self = reef_agg_traits(s->rule) & REEF_TRAIT_SELF;
    status = allocate(m, error);
    if (status == REEF_OK) {
        copy_senders(m);
        status = make_rule(m, error);
    }
    if (status == REEF_OK && s->problem && reef_problem_kind_of(s->problem)->start) {
        reef_problem_kind_of(s->problem)
            ->start(reef_problem_state(s->problem), 1, s->repetition, (float *)(void *)m->w);
    }
    return status;
}

reef_status reef_member_create(reef_context *context, reef_member **member, const reef_member_setup *setup,
                               reef_error *error)
{
    if (!member || !setup) {
        return rfi_fail(error, REEF_E_ARG, "reef_member_create: %s is NULL", member ? "setup" : "member");
    }
    reef_status status = rfi_check_size(setup->size, sizeof *setup, "reef_member_setup", error);
    if (status != REEF_OK) {
        return status;
    }
    *member = NULL;
    reef_member *made = rfi_allocate(context, sizeof *made);
    if (!made) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a member");
    }
    *made = (reef_member){.context = context, .setup = *setup};
    status = build(made, error);
    if (status != REEF_OK) {
        reef_member_destroy(&made);
        return status;
    }
    made->sent = made->phi;
    *member = made;
    return REEF_OK;
}

void reef_member_destroy(reef_member **member)
{
    if (!member || !*member) {
        return;
    }
    reef_member *m = *member;
    reef_report_destroy(&m->report);
    reef_state_destroy(&m->state);
    reef_plan_destroy(&m->plan);
    rfi_release(m->context, m->params);
    rfi_release(m->context, m->memory);
    rfi_release(m->context, m);
    *member = NULL;
}
