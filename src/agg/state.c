/* States: what a receiver remembers between aggregations: the last result (centre of centered clipping), or its senders (mref).
 *
 * The centre is kept twice. Combine writes the new one beside the old one, which the aggregation still reads; end swaps them, so an
 * aggregation that fails leaves the memory as it was. */
#include "agg/mref.h"
#include "agg/plan.h"
#include "base/error.h"

#include <limits.h>
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
    bool recalls;
    rfi_senders senders; /* with it, instead of a centre */
};

static void lay_out(reef_state *state, rfi_arena *arena, const reef_shape *shape, ptrdiff_t total)
{
    state->offsets = rfi_arena_take(arena, shape->segments + 1, 1, sizeof(ptrdiff_t));
    state->given = rfi_arena_take(arena, shape->segments, 1, sizeof(bool));
    if (state->recalls) {
        rfi_senders_lay_out(&state->senders, arena);
        return;
    }
    state->now = rfi_arena_take(arena, total, 1, rfi_dtype_size(shape->dtype));
    state->next = rfi_arena_take(arena, total, 1, rfi_dtype_size(shape->dtype));
}

static void describe_senders(reef_state *state, const reef_agg *agg, const reef_shape *shape, ptrdiff_t total)
{
    const rfi_stage *last = &agg->stages[agg->count - 1];
    state->recalls = last->rule->traits & REEF_TRAIT_SENDERS;
    if (state->recalls) {
        ptrdiff_t numbers = rfi_mref_numbers(last->params, total);
        bool single = shape->dtype == REEF_F32 || numbers < total;
        state->senders = (rfi_senders){.capacity = shape->rows, .numbers = numbers, .single = single};
    }
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
    reef_state parts = {.context = agg->context, .dtype = shape->dtype, .segments = shape->segments};
    describe_senders(&parts, agg, shape, total);
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
    bool exists = state->known && segment >= 0 && segment < state->segments;
    return exists ? place(state, state->now, segment) : NULL;
}

reef_status reef_state_set_centre(reef_state *state, ptrdiff_t segment, const void *centre, reef_error *error)
{
    if (!state || !centre || segment < 0 || segment >= state->segments) {
        return rfi_fail(error, REEF_E_ARG, "reef_state_set_centre: no such state, centre or segment");
    }
    if (state->recalls) {
        return rfi_fail(error, REEF_E_ARG, "a memory of senders has no centre to set");
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
    bool fits = state->segments == plan->segments && state->dtype == plan->dtype && state->recalls == plan->recalls;
    fits = fits && (!state->recalls ||
                    (state->senders.numbers == plan->recall.numbers && state->senders.capacity >= plan->rows));
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

int64_t reef_state_age(const reef_state *state, int64_t id)
{
    ptrdiff_t place = state->recalls ? rfi_senders_find(&state->senders, id) : -1;
    return place >= 0 ? state->senders.traces[place].age : 0;
}

/* ---- bytes ---- */

/* What stands before them: the kind of state, the byte order of the machine and the shape. */
typedef struct mark {
    char magic[8];
    int64_t one, recalls, dtype, total, known;
} mark;

static mark mark_of(const reef_state *state)
{
    mark m = {.magic = "REEFMEM", .one = 1, .recalls = state->recalls, .dtype = state->dtype};
    m.total = state->offsets[state->segments];
    m.known = state->known;
    return m;
}

static size_t centre_size(const reef_state *state)
{
    return (size_t)state->offsets[state->segments] * rfi_dtype_size(state->dtype);
}

size_t reef_state_size(const reef_state *state)
{
    return sizeof(mark) + (state->recalls ? rfi_senders_size(&state->senders) : centre_size(state));
}

reef_status reef_state_save(const reef_state *state, void *bytes, size_t size, reef_error *error)
{
    if (!state || !bytes || size != reef_state_size(state)) {
        return rfi_fail(error, REEF_E_ARG, "reef_state_save: no such state, or not the size it has (reef_state_size)");
    }
    mark m = mark_of(state);
    unsigned char *rest = (unsigned char *)bytes + sizeof m;
    memcpy(bytes, &m, sizeof m);
    if (state->recalls) {
        rfi_senders_save(&state->senders, rest);
    } else if (state->known) {
        memcpy(rest, state->now, centre_size(state));
    } else {
        memset(rest, 0, centre_size(state));
    }
    return REEF_OK;
}

static bool is_finite(const reef_state *state, const unsigned char *centre)
{
    for (ptrdiff_t m = 0; m < state->offsets[state->segments]; m++) {
        if (!isfinite(rfi_load(state->dtype, centre, m))) {
            return false;
        }
    }
    return true;
}

reef_status reef_state_load(reef_state *state, const void *bytes, size_t size, reef_error *error)
{
    if (!state || !bytes || size != reef_state_size(state)) {
        return rfi_fail(error, REEF_E_ARG, "reef_state_load: no such state, or not the size it has (reef_state_size)");
    }
    mark found;
    mark own = mark_of(state);
    memcpy(&found, bytes, sizeof found);
    own.known = found.known;
    const unsigned char *rest = (const unsigned char *)bytes + sizeof own;
    bool sane = memcmp(&found, &own, sizeof own) == 0 && (found.known == 0 || found.known == 1);
    sane = sane && (state->recalls ? rfi_senders_load(&state->senders, rest) : is_finite(state, rest));
    if (!sane) {
        return rfi_fail(error, REEF_E_FORMAT, "these bytes are not a state of this rule, shape and machine");
    }
    if (!state->recalls) {
        memcpy(state->now, rest, centre_size(state));
        state->known = found.known;
        memset(state->given, found.known ? 1 : 0, (size_t)state->segments * sizeof *state->given);
    }
    return REEF_OK;
}
