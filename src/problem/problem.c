/* Making problems from specs and from kinds of the user's, and asking them. */
#include "problem/problem.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/spec.h"

#include <string.h>

struct reef_problem {
    const reef_context *context;
    const reef_problem_kind *kind;
    void *params;
    void *state;
    ptrdiff_t agents;
    ptrdiff_t dimension;
};

static const reef_problem_kind *const kinds[] = {
#define RFI_PROBLEM(name) &rfi_problem_##name,
#include "problem/problem_list.h"
#undef RFI_PROBLEM
};

ptrdiff_t reef_problem_count(void)
{
    return RFI_COUNT(kinds);
}

const reef_problem_kind *reef_problem_at(ptrdiff_t index)
{
    return index >= 0 && index < RFI_COUNT(kinds) ? kinds[index] : NULL;
}

static const reef_kind *head_of(const void *user, ptrdiff_t index)
{
    (void)user;
    return &kinds[index]->kind;
}

static const char *name_of(const void *user, ptrdiff_t index)
{
    return head_of(user, index)->name;
}

static const rfi_catalogue catalogue = {"problem", name_of, head_of, NULL, RFI_COUNT(kinds)};

const reef_problem_kind *reef_problem_find(const char *name)
{
    return name ? reef_problem_at(rfi_catalogue_find(&catalogue, (rfi_slice){name, strlen(name)})) : NULL;
}

/* ---- making ---- */

/* The most agents: numbers of agents are int32_t. */
enum { AGENTS_MAX = INT32_MAX - 1 };

static reef_status make_state(reef_problem *p, uint64_t seed, reef_error *error)
{
    const char *name = p->kind->kind.name;
    reef_problem_setup setup = {.context = p->context, .agents = p->agents, .seed = seed};
    reef_status status = p->kind->create(p->params, &setup, &p->state, error);
    if (status != REEF_OK) {
        p->state = NULL;
        return status;
    }
    p->dimension = p->kind->dimension(p->state);
    if (p->dimension < 1) {
        return rfi_fail(error, REEF_E_ARG, "%s: a model needs at least one number, not %td", name, p->dimension);
    }
    return REEF_OK;
}

/* Takes params over, whatever happens. */
static reef_status make(const reef_context *context, reef_problem **problem, const reef_problem_kind *kind,
                        void *params, ptrdiff_t agents, uint64_t seed, reef_error *error)
{
    reef_problem *p = rfi_allocate(context, sizeof *p);
    if (!p) {
        rfi_release(context, params);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a problem");
    }
    *p = (reef_problem){.context = context, .kind = kind, .params = params, .agents = agents};
    reef_status status = make_state(p, seed, error);
    if (status != REEF_OK) {
        reef_problem_destroy(&p);
        return status;
    }
    *problem = p;
    return REEF_OK;
}

static reef_status check_agents(ptrdiff_t agents, reef_error *error)
{
    if (agents < 1 || agents > AGENTS_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%td agents cannot learn; between 1 and %d are possible", agents,
                        AGENTS_MAX);
    }
    return REEF_OK;
}

reef_status reef_problem_create(reef_context *context, reef_problem **problem, const char *spec, ptrdiff_t agents,
                                uint64_t seed, reef_error *error)
{
    ptrdiff_t index = 0;
    void *params = NULL;
    if (!problem || !spec) {
        return rfi_fail(error, REEF_E_ARG, "reef_problem_create needs a spec and a place for the problem");
    }
    *problem = NULL;
    reef_status status = check_agents(agents, error);
    if (status == REEF_OK) {
        status = rfi_spec_read(context, &catalogue, spec, NULL, &index, &params, error);
    }
    return status == REEF_OK ? make(context, problem, kinds[index], params, agents, seed, error) : status;
}

static bool is_complete(const reef_problem_kind *kind)
{
    bool head = kind && kind->kind.name && kind->kind.field_count >= 0 && kind->kind.field_count <= 32;
    bool calls = kind && kind->create && kind->destroy && kind->dimension && kind->work_size && kind->gradients;
    return head && calls && (kind->optimum || !(kind->traits & REEF_PROBLEM_OPTIMUM));
}

reef_status reef_problem_create_own(reef_context *context, reef_problem **problem, const reef_problem_kind *kind,
                                    const void *params, ptrdiff_t agents, uint64_t seed, reef_error *error)
{
    if (!problem || !is_complete(kind)) {
        return rfi_fail(
            error, REEF_E_ARG,
            "reef_problem_create_own needs a place for the problem, and a kind with a name and create, destroy, "
            "dimension, work_size, gradients and, if it says so, optimum");
    }
    *problem = NULL;
    reef_status status = check_agents(agents, error);
    if (status != REEF_OK) {
        return status;
    }
    size_t bytes = kind->kind.params_size ? kind->kind.params_size : 1;
    void *copy = rfi_allocate(context, bytes);
    if (!copy) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for problem '%s'", kind->kind.name);
    }
    memset(copy, 0, bytes);
    rfi_fields table = {kind->kind.name, kind->kind.fields, kind->kind.field_count};
    if (params) {
        memcpy(copy, params, kind->kind.params_size);
    } else {
        status = rfi_fields_preset(&table, copy, error);
    }
    if (status != REEF_OK) {
        rfi_release(context, copy);
        return status;
    }
    return make(context, problem, kind, copy, agents, seed, error);
}

void reef_problem_destroy(reef_problem **problem)
{
    reef_problem *p = problem ? *problem : NULL;
    if (!p) {
        return;
    }
    if (p->state) {
        p->kind->destroy(p->state);
    }
    rfi_release(p->context, p->params);
    rfi_release(p->context, p);
    *problem = NULL;
}

/* ---- asking ---- */

const reef_problem_kind *reef_problem_kind_of(const reef_problem *problem)
{
    return problem->kind;
}

const void *reef_problem_state(const reef_problem *problem)
{
    return problem->state;
}

ptrdiff_t reef_problem_agents(const reef_problem *problem)
{
    return problem->agents;
}

ptrdiff_t reef_problem_dimension(const reef_problem *problem)
{
    return problem->dimension;
}

size_t reef_problem_print(const reef_problem *problem, char *text, size_t size)
{
    size_t used = 0;
    rfi_spec_print(&problem->kind->kind, problem->params, NULL, text, size, &used);
    return used;
}
