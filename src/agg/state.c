/* States: what a receiver remembers between aggregations. For now the centre of centered clipping: the last result.
 *
 * The centre is kept twice. Combine writes the new one beside the old one, which the aggregation still reads; end swaps them, so an
 * aggregation that fails leaves the memory as it was. */
#include "agg/plan.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

struct reef_state {
    const reef_context *context;
    reef_dtype dtype;
    ptrdiff_t segments;
    ptrdiff_t *offsets; /* segments + 1 */
    bool *given;        /* segments: set by the user since the last reset */
    bool known;
    unsigned char *now; /* the centre, all segments end to end */
    unsigned char *next;
};

static void lay_out(reef_state *state, rfi_arena *arena, const reef_shape *shape, ptrdiff_t total)
{
    state->offsets = rfi_arena_take(arena, shape->segments + 1, 1, sizeof(ptrdiff_t));
    state->given = rfi_arena_take(arena, shape->segments, 1, sizeof(bool));
    state->now = rfi_arena_take(arena, total, 1, rfi_dtype_size(shape->dtype));
    state->next = rfi_arena_take(arena, total, 1, rfi_dtype_size(shape->dtype));
}

static void fill_state(reef_state *state, const reef_shape *shape)
{
    state->offsets[0] = 0;
    for (ptrdiff_t s = 0; s < shape->segments; s++) {
        state->offsets[s + 1] = state->offsets[s] + shape->lengths[s];
    }
    reef_state_reset(state);
}

reef_status reef_state_create(reef_state **state, const reef_agg *agg, const reef_shape *shape, reef_error *error)
{
    size_t unused = 0;
    if (!state) {
        return rfi_fail(error, REEF_E_ARG, "reef_state_create: state is NULL");
    }
    reef_status status = reef_plan_size(agg, shape, &unused, error); /* checks the shape */
    if (status != REEF_OK) {
        return status;
    }
    ptrdiff_t total = 0;
    for (ptrdiff_t s = 0; s < shape->segments; s++) {
        total += shape->lengths[s];
    }
    rfi_arena sizes = {0};
    reef_state parts = {.context = agg->context, .dtype = shape->dtype, .segments = shape->segments};
    (void)rfi_arena_take(&sizes, 1, 1, sizeof(reef_state));
    lay_out(&parts, &sizes, shape, total);
    if (sizes.overflow) {
        return rfi_fail(error, REEF_E_OVERFLOW, "a state of %td coordinates does not fit in memory addresses", total);
    }
    rfi_arena arena = {.base = rfi_allocate(agg->context, (size_t)sizes.used)};
    if (!arena.base) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a state of %td bytes", sizes.used);
    }
    reef_state *made = rfi_arena_take(&arena, 1, 1, sizeof *made);
    lay_out(&parts, &arena, shape, total);
    *made = parts;
    fill_state(made, shape);
    *state = made;
    return REEF_OK;
}

void reef_state_destroy(reef_state **state)
{
    if (!state || !*state) {
        return;
    }
    const reef_context *context = (*state)->context;
    rfi_release(context, *state);
    *state = NULL;
}

void reef_state_reset(reef_state *state)
{
    state->known = false;
    memset(state->given, 0, (size_t)state->segments * sizeof *state->given);
}

static unsigned char *place(const reef_state *state, unsigned char *buffer, ptrdiff_t segment)
{
    return buffer + state->offsets[segment] * (ptrdiff_t)rfi_dtype_size(state->dtype);
}

const void *reef_state_centre(const reef_state *state, ptrdiff_t segment)
{
    bool exists = state->known && segment >= 0 && segment < state->segments;
    return exists ? place(state, state->now, segment) : NULL;
}

reef_status reef_state_set_centre(reef_state *state, ptrdiff_t segment, const void *centre, reef_error *error)
{
    if (!state || !centre || segment < 0 || segment >= state->segments) {
        return rfi_fail(error, REEF_E_ARG, "reef_state_set_centre: no such state, centre or segment");
    }
    ptrdiff_t length = state->offsets[segment + 1] - state->offsets[segment];
    for (ptrdiff_t m = 0; m < length; m++) {
        if (!isfinite(rfi_load(state->dtype, centre, m))) {
            return rfi_fail(error, REEF_E_NONFINITE, "the centre is not finite at coordinate %td of segment %td", m,
                            segment);
        }
    }
    memcpy(place(state, state->now, segment), centre, (size_t)length * rfi_dtype_size(state->dtype));
    state->given[segment] = true;
    state->known = true;
    for (ptrdiff_t s = 0; s < state->segments; s++) {
        state->known = state->known && state->given[s];
    }
    return REEF_OK;
}

bool rfi_state_fits(const reef_state *state, const reef_plan *plan)
{
    bool fits = state->segments == plan->segments && state->dtype == plan->dtype;
    for (ptrdiff_t s = 0; fits && s < plan->segments; s++) {
        fits = state->offsets[s + 1] == plan->m.offsets[s + 1];
    }
    return fits;
}

bool rfi_state_known(const reef_state *state)
{
    return state->known;
}

double rfi_state_value(const reef_state *state, ptrdiff_t segment, ptrdiff_t m)
{
    return rfi_load(state->dtype, place(state, state->now, segment), m);
}

void rfi_state_propose(reef_state *state, ptrdiff_t segment, ptrdiff_t m, double value)
{
    rfi_store(state->dtype, place(state, state->next, segment), m, value);
}

const void *rfi_state_place(const reef_state *state, ptrdiff_t segment, ptrdiff_t m)
{
    return place(state, state->now, segment) + m * (ptrdiff_t)rfi_dtype_size(state->dtype);
}

void rfi_state_commit(reef_state *state)
{
    unsigned char *old = state->now;
    state->now = state->next;
    state->next = old;
    state->known = true;
    memset(state->given, true, (size_t)state->segments * sizeof *state->given);
}
