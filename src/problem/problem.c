/* Making problems from strings and from the user's kinds, and querying them. */
#include "problem/problem.h"

#include "base/error.h"
#include "base/text.h"
#include "base/memory.h"
#include "base/spec.h"

struct reef_problem {
    const reef_context *context;
    const reef_problem_kind *kind;
    void *params;
    void *state;
    ptrdiff_t agents;
    ptrdiff_t dimension;
};

static const reef_kind *const kinds[] = {
#define RFI_PROBLEM(name) &rfi_problem_##name.kind,
#include "problem/problem_list.h"
#undef RFI_PROBLEM
};

static reef_status check_kind(const reef_kind *head, reef_error *error)
{
    const reef_problem_kind *kind = (const void *)head;
    bool calls = kind->create && kind->destroy && kind->dimension && kind->work_size && kind->gradients;
    if (!calls || (!kind->optimum && (kind->traits & REEF_PROBLEM_OPTIMUM))) {
        return rfi_fail(error, REEF_E_ARG,
                        "problem '%s' needs create, destroy, dimension, work_size, gradients and, if it says so, "
                        "optimum",
                        head->name);
    }
    return REEF_OK;
}

const rfi_family rfi_family_problem = {.number = REEF_FAMILY_PROBLEM,
                                       .size = sizeof(reef_problem_kind),
                                       .name = "problem",
                                       .what = "problem",
                                       .builtin = kinds,
                                       .builtin_count = RFI_COUNT(kinds),
                                       .check = check_kind,
                                       .absent = "python",
                                       .absent_text = "runs code that the file names; only `python -m reef run FILE "
                                                      "--allow-code` and reef.run(FILE, allow_code=True) do that"};

/* ---- making ---- */

/* The most agents: numbers of agents are int32_t. */
enum { AGENTS_MAX = INT32_MAX - 1 };

static reef_status make_state(reef_problem *p, uint64_t seed, reef_error *error)
{
    const char *name = p->kind->kind.name;
    reef_problem_setup setup = {.context = p->context, .agents = p->agents, .seed = seed, .kind = p->kind};
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
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a problem");
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
        return rfi_fail(error, REEF_E_RANGE, "%td agents; between 1 and %d are possible", agents, AGENTS_MAX);
    }
    return REEF_OK;
}

reef_status reef_problem_create(reef_context *context, reef_problem **problem, const char *spec, ptrdiff_t agents,
                                uint64_t seed, reef_error *error)
{
    const reef_kind *kind = NULL;
    void *params = NULL;
    if (!problem || !spec) {
        return rfi_fail(error, REEF_E_ARG,
                        "reef_problem_create: the problem's description or the pointer for the result is NULL");
    }
    *problem = NULL;
    reef_status status = check_agents(agents, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_spec_read(context, &rfi_family_problem, spec, NULL, &kind, &params, error);
    if (status != REEF_OK) {
        return status;
    }
    return make(context, problem, (const void *)kind, params, agents, seed, error);
}

reef_status reef_problem_create_own(reef_context *context, reef_problem **problem, const reef_problem_kind *kind,
                                    const void *params, ptrdiff_t agents, uint64_t seed, reef_error *error)
{
    void *copy = NULL;
    if (!problem || !kind) {
        return rfi_fail(error, REEF_E_ARG, "reef_problem_create_own: the kind or the pointer for the result is NULL");
    }
    *problem = NULL;
    reef_status status = rfi_kind_check(&rfi_family_problem, &kind->kind, error);
    if (status != REEF_OK) {
        return status;
    }
    status = check_agents(agents, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_spec_copy(context, &rfi_family_problem, &kind->kind, params, &copy, error);
    if (status != REEF_OK) {
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
    if (!problem) {
        return NULL;
    }
    return problem->kind;
}

const void *reef_problem_state(const reef_problem *problem)
{
    if (!problem) {
        return NULL;
    }
    return problem->state;
}

ptrdiff_t reef_problem_agents(const reef_problem *problem)
{
    if (!problem) {
        return 0;
    }
    return problem->agents;
}

ptrdiff_t reef_problem_dimension(const reef_problem *problem)
{
    if (!problem) {
        return 0;
    }
    return problem->dimension;
}

size_t reef_problem_print(const reef_problem *problem, char *text, size_t size)
{
    if (!problem) {
        return rfi_no_text(text, size);
    }
    size_t used = 0;
    rfi_spec_print(&rfi_family_problem, &problem->kind->kind, problem->params, NULL, text, size, &used);
    return used;
}
