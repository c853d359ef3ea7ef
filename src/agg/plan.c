/* Plans: shape checks, memory layout, create and destroy. */
#include "agg/plan.h"

#include "base/error.h"
#include "base/pool.h"

#include <assert.h>
#include <string.h>

/* Memory that Gram sums of different slots may take together, beyond the one slot every segment needs. */
static const ptrdiff_t slot_bytes_max = (ptrdiff_t)64 << 20;
/* More slots than this serve no thread count we know. */
enum { SLOTS_WANTED = 64 };

static const rfi_stage *last_stage(const reef_agg *agg)
{
    return &agg->stages[agg->count - 1];
}

static reef_status check_shape(const reef_agg *agg, const reef_shape *shape, reef_error *error)
{
    if (!agg || !shape) {
        return rfi_fail(error, REEF_E_ARG, "a plan needs an aggregator and a shape; one of them is NULL");
    }
    reef_status fits = rfi_check_size(shape->size, sizeof *shape, "reef_shape", error);
    if (fits != REEF_OK) {
        return fits;
    }
    if (shape->rows < 1) {
        return rfi_fail(error, REEF_E_ARG, "K = %td rows; there must be at least one", shape->rows);
    }
    if (shape->segments < 1 || !shape->lengths) {
        return rfi_fail(error, REEF_E_ARG, "a shape needs at least one segment, and the length of each");
    }
    if (shape->dtype != REEF_F32 && shape->dtype != REEF_F64) {
        return rfi_fail(error, REEF_E_ARG, "unknown dtype %d; use REEF_F32 or REEF_F64", (int)shape->dtype);
    }
    if (shape->workers < 0 || shape->workers > 4096) {
        return rfi_fail(error, REEF_E_ARG, "workers = %td is out of range; 0 to 4096 are possible", shape->workers);
    }
    ptrdiff_t total = 0;
    ptrdiff_t bytes = 0;
    for (ptrdiff_t s = 0; s < shape->segments; s++) {
        if (shape->lengths[s] < 1) {
            return rfi_fail(error, REEF_E_ARG, "M = %td coordinates in segment %td; there must be at least one",
                            shape->lengths[s], s);
        }
        if (!rfi_add(total, shape->lengths[s], &total)) {
            return rfi_fail(error, REEF_E_OVERFLOW, "the sum of the segment lengths overflows");
        }
    }
    if (!rfi_mul(total, shape->rows, &bytes) || !rfi_mul(bytes, (ptrdiff_t)sizeof(double), &bytes)) {
        return rfi_fail(error, REEF_E_OVERFLOW, "K x M = %td x %td numbers exceed the address space", shape->rows,
                        total);
    }
    return REEF_OK;
}

/* Which Gram passes the pipeline needs (see plan.h). */
static void choose_passes(reef_plan *plan)
{
    const reef_agg *agg = plan->agg;
    unsigned mix_needs = 0;
    for (ptrdiff_t i = 0; i + 1 < agg->count; i++) {
        mix_needs |= agg->stages[i].rule->needs(agg->stages[i].params);
    }
    bool piped = agg->count > 1;
    bool local = plan->scope > 0; /* blocks are solved inside combine, without a pass */
    bool weighs = plan->rule->weigh != NULL;
    bool own_rows = plan->scope == REEF_SCOPE_SEGMENT || (plan->needs & REEF_NEED_MEDIAN);
    bool own_pass = weighs && !local && piped && own_rows;
    bool shared = weighs && !local && !own_pass;
    unsigned first = mix_needs | (shared ? plan->needs : 0);
    plan->passes = 0;
    plan->mix_early = piped && !mix_needs && !shared;
    if ((piped && !plan->mix_early) || shared) {
        plan->spaces[plan->passes++] =
            (rfi_space){false, first & REEF_NEED_ORIGIN, shared && (plan->needs & REEF_NEED_CENTRE)};
    }
    if (own_pass) {
        plan->spaces[plan->passes++] =
            (rfi_space){true, plan->needs & REEF_NEED_ORIGIN, plan->needs & REEF_NEED_CENTRE};
    }
    plan->gram_any = !plan->recalls && (plan->passes > 0 || piped || (weighs && local));
}

static ptrdiff_t tiles_of(ptrdiff_t length)
{
    return (length - 1) / RFI_TILE + 1;
}

static ptrdiff_t slots_of(ptrdiff_t length, int levels)
{
    return ((tiles_of(length) - 1) >> levels) + 1;
}

static ptrdiff_t count_slots(const reef_shape *shape, int levels)
{
    ptrdiff_t slots = 0;
    for (ptrdiff_t s = 0; s < shape->segments; s++) {
        slots += slots_of(shape->lengths[s], levels);
    }
    return slots;
}

/* The smallest slots that keep their number and memory in bounds. */
static void choose_slots(reef_plan *plan, const reef_shape *shape)
{
    ptrdiff_t bytes = 0;
    ptrdiff_t length = rfi_sum_length(plan, shape->rows, shape->rows + 2);
    if (!plan->passes || !rfi_mul(length, (ptrdiff_t)sizeof(double), &bytes)) {
        bytes = (ptrdiff_t)sizeof(double);
    }
    ptrdiff_t extra = slot_bytes_max / bytes;
    extra = extra > SLOTS_WANTED ? SLOTS_WANTED : extra;
    plan->slot_levels = 0;
    while (count_slots(shape, plan->slot_levels) > shape->segments + extra) {
        plan->slot_levels++;
    }
}

/* Depth of the tree over the tiles of one block, for blocks solved inside combine. */
static void choose_block(reef_plan *plan, const reef_shape *shape)
{
    ptrdiff_t longest = 1;
    for (ptrdiff_t s = 0; s < shape->segments; s++) {
        longest = shape->lengths[s] > longest ? shape->lengths[s] : longest;
    }
    ptrdiff_t block = plan->scope < longest ? (ptrdiff_t)plan->scope : longest;
    plan->block_levels = 0;
    while (plan->scope > 0 && slots_of(block, plan->block_levels) > 1) {
        plan->block_levels++;
    }
}

/* The least common multiple; PTRDIFF_MAX if it is larger. */
static ptrdiff_t common_multiple(ptrdiff_t one, ptrdiff_t other)
{
    ptrdiff_t a = one;
    ptrdiff_t b = other;
    ptrdiff_t multiple = 0;
    while (b) {
        ptrdiff_t rest = a % b;
        a = b;
        b = rest;
    }
    return rfi_mul(one / a, other, &multiple) ? multiple : PTRDIFF_MAX;
}

/* Grain: whole slots and whole blocks; a block that shares no small multiple with a slot makes it the segment. */
static void choose_grain(reef_plan *plan)
{
    ptrdiff_t slot = (ptrdiff_t)RFI_TILE << plan->slot_levels;
    plan->grain = common_multiple(slot, plan->scope > 0 ? (ptrdiff_t)plan->scope : 1);
    plan->piece = plan->scope > 0 ? (ptrdiff_t)plan->scope : RFI_TILE;
    assert(plan->grain == PTRDIFF_MAX || (plan->grain % slot == 0 && plan->grain % plan->piece == 0));
}

/* The rows under way, as the kernels take them and as pre-aggregators mix them. */
static void lay_out_rows(const reef_plan *plan, rfi_arena *arena, rfi_worker *w)
{
    ptrdiff_t k = plan->rows;
    ptrdiff_t mixed = plan->mixes ? k : 0;
    bool fast = plan->kernels != NULL;
    bool at_median = (plan->needs & REEF_NEED_CENTRE) && (plan->needs & REEF_NEED_MEDIAN);
    bool chooses = fast && plan->rule->weigh && plan->rule->span;
    w->rows = rfi_arena_take(arena, k, 1, sizeof(void *));
    w->used = rfi_arena_take(arena, k + 1, 1, sizeof(void *));
    w->used_weights = rfi_arena_take(arena, k + 1, 1, sizeof(double));
    w->hard = rfi_arena_take(arena, fast ? RFI_SPAN_MAX : 0, 1, sizeof(int32_t));
    w->scratch = rfi_arena_take(arena, fast ? k : 0, 1, RFI_SPAN_SCRATCH(1));
    w->chosen_sums = rfi_arena_take(arena, chooses ? k : 0, 1, sizeof(double));
    w->chosen_rejected = rfi_arena_take(arena, chooses ? k : 0, 1, sizeof(int64_t));
    w->median_row = rfi_arena_take(arena, fast && at_median ? RFI_SPAN_MAX : 0, 1, rfi_dtype_size(plan->dtype));
    w->rows_mixed = rfi_arena_take(arena, mixed, 1, sizeof(void *));
    w->mixed = rfi_arena_take(arena, mixed, plan->mix_stride, rfi_dtype_size(plan->dtype));
    w->mixed_sums = rfi_arena_take(arena, mixed, 1, sizeof(double));
    w->mixed_none = rfi_arena_take(arena, mixed, 1, sizeof(int64_t));
    w->none_at = rfi_arena_take(arena, mixed ? mixed + 1 : 0, RFI_MIX_CHUNK, 1);
}

/* The scalar code's tile, and one column of it. */
static void lay_out_columns(const reef_plan *plan, rfi_arena *arena, rfi_worker *w)
{
    ptrdiff_t k = plan->rows;
    ptrdiff_t points = k + 2;
    w->tile = rfi_arena_take(arena, RFI_CHUNK, k, sizeof(double));
    w->hole = rfi_arena_take(arena, RFI_CHUNK, k, sizeof(bool));
    w->points = rfi_arena_take(arena, points, 1, sizeof(double));
    w->gap = rfi_arena_take(arena, k, 1, sizeof(bool));
    w->refill = rfi_arena_take(arena, k, 1, sizeof(double));
    w->share = rfi_arena_take(arena, points, 1, sizeof(double));
    w->raw_share = rfi_arena_take(arena, k + 1, 1, sizeof(double));
    w->x = rfi_arena_take(arena, k, 1, sizeof(double));
    w->a = rfi_arena_take(arena, k, 1, sizeof(double));
    w->x_share = rfi_arena_take(arena, k, 1, sizeof(double));
    w->where = rfi_arena_take(arena, k, 1, sizeof(ptrdiff_t));
    w->work = rfi_arena_take(arena, k, 4, sizeof(double));
    w->index = rfi_arena_take(arena, k, 2, sizeof(ptrdiff_t));
    w->scales = rfi_arena_take(arena, plan->rule->relative_floor ? RFI_TILE : 0, 1, sizeof(double));
    w->trust.memory = rfi_arena_take(arena, rfi_treesum_rows(plan->slot_levels), k + 1, sizeof(double));
    w->trust.length = k + 1;
    w->rejected = rfi_arena_take(arena, k, 1, sizeof(int64_t));
}

/* Sums over coordinates: Gram matrices, lengths and sketches. */
static void lay_out_sums(const reef_plan *plan, rfi_arena *arena, rfi_worker *w)
{
    ptrdiff_t k = plan->rows;
    ptrdiff_t points = k + 2;
    ptrdiff_t gram = plan->gram_any ? points : 0;
    ptrdiff_t centred = plan->recalls ? k : gram;
    ptrdiff_t packed = plan->gram_any || plan->recalls ? rfi_sum_length(plan, k, points) : 0;
    ptrdiff_t stride = plan->recalls ? plan->recall.chunk : RFI_GRAM_STRIDE;
    bool fast = plan->kernels != NULL;
    bool sketches = plan->recalls && plan->recall.sketches;
    ptrdiff_t single = fast && plan->kernels->gram_single ? gram : 0;
    int gram_levels = plan->block_levels > plan->slot_levels ? plan->block_levels : plan->slot_levels;
    w->centred_rows = rfi_arena_take(arena, fast ? centred : 0, stride, sizeof(double));
    w->centred = rfi_arena_take(arena, centred, RFI_CHUNK, sizeof(double));
    w->medians = rfi_arena_take(arena, fast && centred ? RFI_GRAM_CHUNK : 0, 1, sizeof(double));
    w->single_rows = (void *)w->centred_rows; /* never needed at the same time: gram.c */
    w->single_sums = rfi_arena_take(arena, single ? packed : 0, 1, sizeof(double));
    w->repaired_sums = rfi_arena_take(arena, single ? rfi_packed_length(gram / 2) : 0, 1, sizeof(double));
    w->close_rows = rfi_arena_take(arena, single, 1, sizeof(void *));
    w->close_points = rfi_arena_take(arena, single ? single + 1 : 0, 1, sizeof(ptrdiff_t));
    w->close = rfi_arena_take(arena, single, 1, sizeof(bool));
    w->room = rfi_arena_take(arena, sketches ? k : 0, RFI_RESIDUAL_ROOM(1) + 1 + RFI_SKETCH_GROUP, sizeof(double));
    w->signs = rfi_arena_take(arena, sketches ? RFI_SPAN_MAX : 0, 1, sizeof(double));
    w->gram.memory = rfi_arena_take(arena, rfi_treesum_rows(gram_levels), packed, sizeof(double));
    w->packed = rfi_arena_take(arena, packed, 1, sizeof(double));
    w->block_gram = rfi_arena_take(arena, plan->scope > 0 ? gram : 0, gram, sizeof(double));
    w->block_share = rfi_arena_take(arena, plan->scope > 0 ? points : 0, 1, sizeof(double));
    w->solve_work = rfi_arena_take(arena, gram + (gram ? 8 : 0), gram, sizeof(double));
    w->solve_index = rfi_arena_take(arena, gram, 4, sizeof(ptrdiff_t));
    w->far = rfi_arena_take(arena, gram, 1, sizeof(bool));
}

rfi_type rfi_plan_type(const reef_plan *plan)
{
    return plan->dtype == REEF_F32 ? RFI_F32 : RFI_F64;
}

bool rfi_plan_reads(const reef_plan *plan, rfi_type type)
{
    return type == rfi_plan_type(plan) || (type == RFI_F16 && plan->halved[0]) || (type == RFI_BF16 && plan->halved[1]);
}

void rfi_plan_rows(const reef_plan *plan, rfi_worker *worker, rfi_type type)
{
    assert(rfi_plan_reads(plan, type));
    worker->type = type;
    worker->row_kernels = type == rfi_plan_type(plan) ? plan->kernels : plan->halved[type == RFI_BF16];
}

static void lay_out_worker(const reef_plan *plan, rfi_arena *arena, rfi_worker *w)
{
    lay_out_rows(plan, arena, w);
    lay_out_columns(plan, arena, w);
    lay_out_sums(plan, arena, w);
}

/* Takes everything a plan needs from the arena; with a measuring arena all pointers stay NULL. */
static void lay_out(reef_plan *plan, rfi_arena *arena, const reef_shape *shape)
{
    rfi_memory *m = &plan->m;
    ptrdiff_t k = plan->rows;
    ptrdiff_t points = k + 2;
    ptrdiff_t slots = count_slots(shape, plan->slot_levels);
    bool piped = plan->agg->count > 1;
    m->offsets = rfi_arena_take(arena, plan->segments + 1, 1, sizeof(ptrdiff_t));
    m->lengths = rfi_arena_take(arena, plan->segments, 1, sizeof(ptrdiff_t));
    m->slot_starts = rfi_arena_take(arena, plan->segments + 1, 1, sizeof(ptrdiff_t));
    m->parts = rfi_arena_take(arena, plan->segments + 1, 1, sizeof(ptrdiff_t));
    m->weights = rfi_arena_take(arena, k, 1, sizeof(double));
    m->raw_weights = rfi_arena_take(arena, k, 1, sizeof(double));
    m->mixed_weights = rfi_arena_take(arena, k, 1, sizeof(double));
    m->stage_weights = rfi_arena_take(arena, k, 1, sizeof(double));
    m->active = rfi_arena_take(arena, k, 1, sizeof(ptrdiff_t));
    m->reason = rfi_arena_take(arena, k, 1, sizeof(unsigned char));
    m->suspect = rfi_arena_take(arena, k, 1, sizeof(atomic_bool));
    ptrdiff_t mixed = plan->mixes ? k : 0;
    m->mixing.way = rfi_arena_take(arena, mixed, 1, 1);
    m->mixing.first = rfi_arena_take(arena, mixed, 1, sizeof(ptrdiff_t));
    m->mixing.core = rfi_arena_take(arena, mixed, 1, sizeof(bool));
    m->mixing.mean = rfi_arena_take(arena, mixed, 1, sizeof(rfi_mean));
    ptrdiff_t changed = mixed < RFI_MEANS_ROWS ? mixed : RFI_MEANS_ROWS; /* of more rows so few may be in use */
    m->mixing.changes = rfi_arena_take(arena, changed, changed, sizeof(uint16_t));
    m->matrix = rfi_arena_take(arena, piped ? k : 0, k + 1, sizeof(double));
    m->stage_matrix = rfi_arena_take(arena, piped ? k : 0, points, sizeof(double));
    m->next_matrix = rfi_arena_take(arena, piped ? k : 0, k + 1, sizeof(double));
    m->gram = rfi_arena_take(arena, plan->gram_any ? points : 0, points, sizeof(double));
    m->next_gram = rfi_arena_take(arena, piped ? points : 0, points, sizeof(double));
    m->seen = rfi_arena_take(arena, slots, 1, sizeof(atomic_bool));
    m->gram_slots = rfi_arena_take(arena, plan->passes ? slots : 0, rfi_sum_length(plan, k, points), sizeof(double));
    m->trust_slots = rfi_arena_take(arena, slots, k + 1, sizeof(double));
    m->shares = rfi_arena_take(arena, plan->scope == REEF_SCOPE_SEGMENT ? plan->segments : 1, points, sizeof(double));
    if (plan->recalls) {
        rfi_recall_lay_out(plan, arena);
    }
    m->workers = rfi_arena_take(arena, plan->worker_count, 1, sizeof(rfi_worker));
    for (ptrdiff_t i = 0; i < plan->worker_count; i++) {
        rfi_worker measured = {0};
        rfi_worker *w = m->workers ? &m->workers[i] : &measured;
        *w = measured;
        rfi_plan_rows(plan, w, rfi_plan_type(plan));
        lay_out_worker(plan, arena, w);
    }
}

/* Not for rules that have float32 numbers beside the rows: a remembered centre, mixed rows, or the span of a rule from outside. */
static void choose_halved(reef_plan *plan)
{
    bool own_span = plan->rule->span && !rfi_rule_is_builtin(plan->rule);
    bool only_rows = !own_span && !plan->mixes && !(plan->needs & REEF_NEED_CENTRE);
    bool possible = plan->dtype == REEF_F32 && plan->kernels && only_rows;
    for (int brain = 0; possible && brain < 2; brain++) {
        plan->halved[brain] = rfi_kernels_halved(plan->kernels, brain);
    }
}

/* Gram sums of mixed rows, in a pass of their own or in blocks, need long chunks, whose pairs are looked at one by one. */
static void choose_mix_chunk(reef_plan *plan)
{
    bool own_pass = plan->passes > 0 && plan->spaces[plan->passes - 1].mixed;
    bool own_gram = plan->rule->weigh && (plan->scope > 0 || own_pass || plan->passes == 0);
    plan->mix_chunk = own_gram ? RFI_GRAM_CHUNK : RFI_MIX_CHUNK;
    plan->mix_stride = plan->mix_chunk + RFI_MIX_APART;
}

/* Whether one call of the rule's kernel can be all there is to do. */
static bool is_brief(const reef_plan *plan)
{
    const reef_rule *rule = plan->rule;
    bool floored = rule->relative_floor && rule->relative_floor(plan->params) > 0;
    return plan->kernels && plan->agg->count == 1 && plan->segments == 1 && plan->total <= RFI_SPAN_MAX &&
           !(plan->needs & REEF_NEED_SELF) && rule->span && rule->column && !rule->weigh && !rule->memory && !floored;
}

static reef_status describe(reef_plan *plan, const reef_agg *agg, const reef_shape *shape, reef_error *error)
{
    const rfi_stage *last = last_stage(agg);
    *plan = (reef_plan){.agg = agg, .rule = last->rule, .params = last->params};
    plan->rows = shape->rows;
    plan->segments = shape->segments;
    plan->dtype = shape->dtype;
    plan->worker_count = shape->workers ? shape->workers : rfi_context_workers(agg->context);
    plan->kernels = rfi_kernels_find(plan->dtype == REEF_F32);
    bool looks = plan->rule->span || plan->rule->weigh; /* at mixed rows */
    bool mixes = agg->count > 1 && looks && agg->nan != RFI_NAN_DROP_COORDINATE;
    plan->mixes = plan->kernels && mixes;
    plan->needs = plan->rule->needs ? plan->rule->needs(plan->params) : 0;
    choose_halved(plan);
    plan->scope = plan->rule->weigh && plan->rule->scope ? plan->rule->scope(plan->params) : REEF_SCOPE_WHOLE;
    for (ptrdiff_t s = 0; s < shape->segments; s++) {
        plan->total += shape->lengths[s];
    }
    plan->recalls = plan->rule->memory != NULL;
    reef_status status = plan->recalls ? rfi_recall_describe(plan, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    choose_passes(plan);
    choose_slots(plan, shape);
    choose_block(plan, shape);
    choose_grain(plan);
    choose_mix_chunk(plan);
    plan->brief = is_brief(plan);
    return REEF_OK;
}

/* Bytes for the plan struct itself, then its memory. */
static reef_status measure(reef_plan *plan, const reef_agg *agg, const reef_shape *shape, size_t *bytes,
                           reef_error *error)
{
    reef_status status = check_shape(agg, shape, error);
    if (status != REEF_OK) {
        return status;
    }
    status = describe(plan, agg, shape, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_arena arena = {0};
    (void)rfi_arena_take(&arena, 1, 1, sizeof(reef_plan));
    lay_out(plan, &arena, shape);
    if (arena.overflow) {
        return rfi_fail(error, REEF_E_OVERFLOW, "a plan for %td rows and %td segments exceeds the address space",
                        shape->rows, shape->segments);
    }
    *bytes = (size_t)arena.used + RFI_ALIGNMENT - 1; /* the caller's memory may start anywhere between cache lines */
    return REEF_OK;
}

reef_status reef_plan_size(const reef_agg *agg, const reef_shape *shape, size_t *bytes, reef_error *error)
{
    reef_plan plan;
    if (!bytes) {
        return rfi_fail(error, REEF_E_ARG, "reef_plan_size: bytes is NULL");
    }
    return measure(&plan, agg, shape, bytes, error);
}

static void fill_tables(reef_plan *plan, const reef_shape *shape)
{
    rfi_memory *m = &plan->m;
    m->offsets[0] = 0;
    m->slot_starts[0] = 0;
    for (ptrdiff_t s = 0; s < plan->segments; s++) {
        ptrdiff_t length = shape->lengths[s];
        m->lengths[s] = length;
        m->offsets[s + 1] = m->offsets[s] + length;
        m->slot_starts[s + 1] = m->slot_starts[s] + slots_of(length, plan->slot_levels);
    }
    rfi_walk_parts(m->lengths, plan->segments, plan->grain, m->parts);
}

reef_status reef_plan_init(reef_plan **plan, const reef_agg *agg, const reef_shape *shape, void *memory, size_t bytes,
                           reef_error *error)
{
    reef_plan described;
    size_t needed = 0;
    if (!plan || !memory) {
        return rfi_fail(error, REEF_E_ARG, "reef_plan_init: %s is NULL", plan ? "memory" : "plan");
    }
    reef_status status = measure(&described, agg, shape, &needed, error);
    if (status != REEF_OK) {
        return status;
    }
    if (bytes < needed) {
        return rfi_fail(error, REEF_E_ARG, "the plan needs %zu bytes (see reef_plan_size), but got %zu", needed, bytes);
    }
    rfi_arena arena = {.base = rfi_align(memory)};
    reef_plan *made = rfi_arena_take(&arena, 1, 1, sizeof *made);
    lay_out(&described, &arena, shape);
    assert((size_t)arena.used + RFI_ALIGNMENT - 1 == needed); /* the same layout as was measured */
    *made = described;
    fill_tables(made, shape);
    if (made->worker_count > 1) {
        rfi_pool_prepare(agg->context);
    }
    *plan = made;
    return REEF_OK;
}

reef_status reef_plan_create(reef_plan **plan, const reef_agg *agg, const reef_shape *shape, reef_error *error)
{
    size_t bytes = 0;
    if (!plan) {
        return rfi_fail(error, REEF_E_ARG, "reef_plan_create: plan is NULL");
    }
    reef_status status = reef_plan_size(agg, shape, &bytes, error);
    if (status != REEF_OK) {
        return status;
    }
    void *memory = rfi_allocate(agg->context, bytes);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory: the plan needs %zu bytes", bytes);
    }
    status = reef_plan_init(plan, agg, shape, memory, bytes, error);
    if (status != REEF_OK) {
        rfi_release(agg->context, memory);
        return status;
    }
    (*plan)->owned = memory;
    return REEF_OK;
}

void reef_plan_destroy(reef_plan **plan)
{
    if (!plan || !*plan) {
        return;
    }
    const reef_context *context = (*plan)->agg->context;
    void *memory = (*plan)->owned;
    *plan = NULL;
    rfi_release(context, memory);
}

ptrdiff_t reef_plan_passes(const reef_plan *plan)
{
    if (!plan) {
        return 0;
    }
    return plan->passes;
}

ptrdiff_t reef_plan_grain(const reef_plan *plan)
{
    if (!plan) {
        return 0;
    }
    return plan->grain;
}

ptrdiff_t reef_plan_piece(const reef_plan *plan)
{
    if (!plan) {
        return 0;
    }
    return plan->passes > 0 ? common_multiple(RFI_TILE, plan->piece) : plan->piece;
}

ptrdiff_t rfi_plan_room(const reef_plan *plan)
{
    return plan->passes > 0 && plan->piece < RFI_TILE ? RFI_TILE : plan->piece;
}

/* Whether nothing is summed, solved or scaled beyond a coordinate. */
static bool stands_alone(const reef_plan *plan, bool report)
{
    return plan->passes == 0 && plan->scope <= 0 && !plan->rule->relative_floor && !report;
}

ptrdiff_t rfi_plan_unit(const reef_plan *plan, bool report)
{
    return stands_alone(plan, report) ? RFI_TILE : plan->grain;
}

ptrdiff_t rfi_plan_step(const reef_plan *plan, bool report)
{
    enum { FEW = 512 };
    return stands_alone(plan, report) ? FEW : rfi_plan_room(plan);
}
