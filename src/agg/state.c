/* States: what a receiver remembers between aggregations.
 *
 * The centre is kept twice. Combine writes the new one beside the old one, which the aggregation still reads; end swaps them, so an
 * aggregation that fails leaves the memory as it was. */
#include "agg/state.h"

#include "base/entropy.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

static void lay_out(reef_state *state, rfi_arena *arena, const reef_shape *shape, ptrdiff_t total)
{
    state->offsets = rfi_arena_take(arena, shape->segments + 1, 1, sizeof(ptrdiff_t));
    state->given = rfi_arena_take(arena, shape->segments, 1, sizeof(bool));
    if (state->recalls) {
        return;
    }
    state->now = rfi_arena_take(arena, total, 1, rfi_dtype_size(shape->dtype));
    state->next = rfi_arena_take(arena, total, 1, rfi_dtype_size(shape->dtype));
}

/* Room for the senders that one aggregation has; more comes with them. */
static reef_status create_senders(reef_state *state, const reef_agg *agg, const reef_shape *shape, ptrdiff_t total,
                                  reef_error *error)
{
    rfi_senders *senders = &state->senders;
    *senders = (rfi_senders){.context = state->context};
    state->rule->memory->sizes(agg->stages[agg->count - 1].params, shape->rows, total, &senders->sizes);
    senders->single = shape->dtype == REEF_F32 || senders->sizes.numbers < total;
    senders->limit = shape->rows > REEF_SENDERS_LIMIT ? shape->rows : REEF_SENDERS_LIMIT;
    if (senders->sizes.secret && !rfi_entropy(&senders->seed)) {
        return rfi_fail(error, REEF_E_FILE, "the system provides no random numbers for the seed of a state");
    }
    return rfi_senders_create(senders, shape->rows)
               ? REEF_OK
               : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a state of %td senders", shape->rows);
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
    if (shape->rows > INT32_MAX) {
        return rfi_fail(error, REEF_E_OVERFLOW, "a state for %td senders is too large", shape->rows);
    }
    rfi_arena sizes = {0};
    reef_state parts = {
        .context = agg->context, .rule = reef_agg_rule(agg), .dtype = shape->dtype, .segments = shape->segments};
    parts.recalls = parts.rule->memory != NULL;
    (void)rfi_arena_take(&sizes, 1, 1, sizeof(reef_state));
    lay_out(&parts, &sizes, shape, total);
    if (sizes.overflow) {
        return rfi_fail(error, REEF_E_OVERFLOW, "a state of %td coordinates exceeds the address space", total);
    }
    rfi_arena arena = {.base = rfi_allocate(agg->context, (size_t)sizes.used)};
    if (!arena.base) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a state of %td bytes", sizes.used);
    }
    reef_state *made = rfi_arena_take(&arena, 1, 1, sizeof *made);
    lay_out(&parts, &arena, shape, total);
    *made = parts;
    status = made->recalls ? create_senders(made, agg, shape, total, error) : REEF_OK;
    if (status != REEF_OK) {
        rfi_release(agg->context, arena.base);
        return status;
    }
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
    if ((*state)->recalls) {
        rfi_senders_destroy(&(*state)->senders);
    }
    rfi_release(context, *state);
    *state = NULL;
}

void reef_state_reset(reef_state *state)
{
    if (!state) {
        return;
    }
    state->known = false;
    memset(state->given, 0, (size_t)state->segments * sizeof *state->given);
    if (state->recalls) {
        rfi_senders_reset(&state->senders);
    }
}

static unsigned char *place(const reef_state *state, unsigned char *buffer, ptrdiff_t segment)
{
    return buffer + state->offsets[segment] * (ptrdiff_t)rfi_dtype_size(state->dtype);
}

const void *reef_state_centre(const reef_state *state, ptrdiff_t segment)
{
    if (!state) {
        return NULL;
    }
    bool exists = state->known && segment >= 0 && segment < state->segments;
    return exists ? place(state, state->now, segment) : NULL;
}

reef_status reef_state_set_centre(reef_state *state, ptrdiff_t segment, const void *centre, reef_error *error)
{
    if (!state || !centre || segment < 0 || segment >= state->segments) {
        return rfi_fail(error, REEF_E_ARG, "reef_state_set_centre: no such state, centre or segment");
    }
    if (state->recalls) {
        return rfi_fail(error, REEF_E_ARG, "this rule remembers senders; it has no centre to set");
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

static bool same_sizes(const reef_memory_sizes *a, const reef_memory_sizes *b)
{
    return a->numbers == b->numbers && a->vectors == b->vectors && a->record == b->record && a->shared == b->shared &&
           a->pair_numbers == b->pair_numbers && a->pair_block == b->pair_block && a->pair_places == b->pair_places;
}

bool rfi_state_fits(const reef_state *state, const reef_plan *plan)
{
    bool fits = state->segments == plan->segments && state->dtype == plan->dtype && state->recalls == plan->recalls;
    fits = fits &&
           (!state->recalls || (state->rule == plan->rule && same_sizes(&state->senders.sizes, &plan->recall.sizes)));
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

rfi_senders *rfi_state_senders(const reef_state *state)
{
    return state->recalls ? (rfi_senders *)(uintptr_t)&state->senders : NULL;
}

uint64_t *rfi_state_first_seed(reef_state *state)
{
    return state && state->recalls && state->senders.rounds == 0 ? &state->senders.seed : NULL;
}

int64_t reef_state_age(const reef_state *state, int64_t id)
{
    if (!state) {
        return 0;
    }
    ptrdiff_t place = state->recalls ? rfi_senders_find(&state->senders, id) : -1;
    return place >= 0 ? state->senders.who[place].age : 0;
}

ptrdiff_t reef_state_senders(const reef_state *state)
{
    if (!state) {
        return 0;
    }
    return state->recalls ? state->senders.count : 0;
}

void reef_state_set_limit(reef_state *state, ptrdiff_t senders)
{
    if (!state) {
        return;
    }
    state->senders.limit = senders > state->senders.capacity ? senders : state->senders.capacity;
}

void reef_state_set_seed(reef_state *state, uint64_t seed)
{
    if (!state) {
        return;
    }
    state->senders.seed = seed;
}
