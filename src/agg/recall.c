/* The plan's side of rules that remember senders: observing residuals, and passing them to the rule. */
#include "agg/recall.h"

#include "agg/plan.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* Bytes of residuals at a time: they should stay in the second cache. */
enum { CHUNK_BYTES = 1 << 18 };

/* Whether the library can keep what the rule asks for. */
static reef_status check_sizes(const reef_plan *plan, reef_error *error)
{
    const reef_memory_sizes *z = &plan->recall.sizes;
    const ptrdiff_t least = 16;
    const ptrdiff_t most = 1024;
    bool power = z->numbers >= least && z->numbers <= most && (z->numbers & (z->numbers - 1)) == 0;
    if (z->numbers != plan->total && !(power && z->numbers < plan->total)) {
        return rfi_fail(error, REEF_E_RANGE,
                        "%s keeps %td numbers of residuals of %td; it can keep all, or a power of two from %td to %td",
                        plan->rule->kind.name, z->numbers, plan->total, least, most);
    }
    bool pairs = z->pair_numbers == 0 ||
                 (z->pair_numbers > 0 && z->pair_block > 0 && z->pair_block <= INT16_MAX && z->pair_places > 0);
    if (z->vectors < 0 || !pairs || z->forget < 0 || !(z->largest >= 0)) {
        return rfi_fail(error, REEF_E_RANGE, "%s does not state how much it remembers: a size is negative or missing",
                        plan->rule->kind.name);
    }
    return REEF_OK;
}

reef_status rfi_recall_describe(reef_plan *plan, reef_error *error)
{
    rfi_recall *recall = &plan->recall;
    plan->rule->memory->sizes(plan->params, plan->rows, plan->total, &recall->sizes);
    reef_status status = check_sizes(plan, error);
    if (status != REEF_OK) {
        return status;
    }
    recall->numbers = recall->sizes.numbers;
    recall->full = recall->numbers == plan->total;
    recall->seen.kernels = plan->kernels ? rfi_kernels_find(false) : NULL;
    recall->sketches = plan->kernels && !recall->full && recall->numbers == RFI_SKETCH_GROUP;
    recall->chunk = RFI_GRAM_CHUNK;
    while (recall->chunk > RFI_CHUNK && recall->chunk * plan->rows > CHUNK_BYTES / (ptrdiff_t)sizeof(double)) {
        recall->chunk /= 2;
    }
    return REEF_OK;
}

void rfi_recall_lay_out(reef_plan *plan, rfi_arena *arena)
{
    rfi_recall *recall = &plan->recall;
    reef_recall *seen = &recall->seen;
    ptrdiff_t k = plan->rows;
    recall->residual = rfi_arena_take(arena, k, recall->numbers, sizeof(double));
    recall->norm = rfi_arena_take(arena, k, 1, sizeof(double));
    recall->who = rfi_arena_take(arena, k, 1, sizeof(rfi_sender));
    recall->ids = rfi_arena_take(arena, k, 1, sizeof(int64_t));
    recall->heard = rfi_arena_take(arena, k, 1, sizeof(int64_t));
    recall->place = rfi_arena_take(arena, k, 1, sizeof(ptrdiff_t));
    recall->spare = rfi_arena_take(arena, k, 1, sizeof(ptrdiff_t));
    recall->table.size = rfi_id_table_size(k);
    recall->table.places = rfi_arena_take(arena, recall->table.size, 1, sizeof(int32_t));
    seen->age = rfi_arena_take(arena, k, 1, sizeof(int64_t));
    seen->records = rfi_arena_take(arena, k, (ptrdiff_t)recall->sizes.record, 1);
    seen->shared = rfi_arena_take(arena, (ptrdiff_t)recall->sizes.shared, 1, 1);
    seen->factor = rfi_arena_take(arena, k, plan->rule->memory->factor_count, sizeof(double));
    seen->work = rfi_arena_take(arena, (ptrdiff_t)recall->sizes.work, 1, 1);
}

static int64_t id_of(const reef_plan *plan, ptrdiff_t l)
{
    ptrdiff_t row = plan->m.active[l];
    return plan->input.ids ? plan->input.ids[row] : row;
}

reef_status rfi_recall_begin(reef_plan *plan, reef_error *error)
{
    rfi_recall *recall = &plan->recall;
    rfi_senders *senders = plan->input.state ? rfi_state_senders(plan->input.state) : NULL;
    ptrdiff_t more = 0;
    recall->table.key = senders ? senders->table.key : 0;
    rfi_id_table_clear(&recall->table);
    for (ptrdiff_t l = 0; l < plan->n_raw; l++) {
        recall->who[l].id = id_of(plan, l);
        if (!rfi_id_enter(&recall->table, recall->who, l)) {
            return rfi_fail(error, REEF_E_ARG,
                            "agent %lld has two rows; %s remembers senders, so each may send only one",
                            (long long)recall->who[l].id, plan->rule->kind.name);
        }
        more += senders && rfi_senders_find(senders, recall->who[l].id) < 0;
    }
    uint64_t seed = senders ? senders->seed : 0;
    recall->seen.seed = seed;
    recall->key = plan->rule->memory->key ? plan->rule->memory->key(plan->params, seed) : seed;
    if (senders && !rfi_senders_reserve(senders, senders->count + more, plan->n_raw)) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory: cannot remember %td senders in addition to %td", more,
                        senders->count);
    }
    return REEF_OK;
}

/* Residuals of a chunk by the kernels; false if the scalar code must do it. */
static bool centre_fast(reef_plan *plan, rfi_worker *worker, ptrdiff_t m, ptrdiff_t count, ptrdiff_t m0,
                        const void *const *rows)
{
    double largest = 0;
    if (!plan->kernels) {
        return false;
    }
    rfi_rows_used(plan, worker, m, m0, rows);
    rfi_span span = {.rows = worker->used, .n = plan->n_raw, .count = count, .scratch = worker->scratch};
    unsigned flush = rfi_flush_begin();
    bool done = worker->row_kernels->centre(&span, worker->centred_rows, plan->recall.chunk, worker->medians, &largest);
    rfi_flush_end(flush);
    return done;
}

/* Residuals of at most RFI_CHUNK coordinates; entries that are left out have none. */
static void centre_scalar(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t m, ptrdiff_t count,
                          ptrdiff_t m0, const void *const *rows)
{
    const rfi_space *space = &plan->spaces[plan->pass];
    rfi_fetch(plan, worker, rows, m - m0, count);
    for (ptrdiff_t t = 0; t < count; t++) {
        (void)rfi_column_points(plan, worker, space, t, segment, m + t);
        double mu = rfi_points_median(worker, plan->n_raw);
        for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
            worker->centred[p * RFI_CHUNK + t] = worker->gap[p] ? 0 : worker->points[p] - mu;
        }
    }
}

static uint64_t segment_key(const rfi_recall *recall, ptrdiff_t segment)
{
    return recall->key + (uint64_t)segment * UINT64_C(0x9E3779B97F4A7C15);
}

/* Lengths and sketches, or the residuals themselves, from coordinate m on. */
static void take_residuals(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t m, const double *centred,
                           ptrdiff_t stride, ptrdiff_t count)
{
    rfi_recall *recall = &plan->recall;
    double *sum = rfi_treesum_leaf(&worker->gram);
    ptrdiff_t n = plan->n_raw;
    rfi_squares_add(centred, stride, n, count, sum);
    if (!recall->full) {
        rfi_sketch_add(segment_key(recall, segment), recall->numbers, centred, stride, n, m, count, sum + n);
        return;
    }
    for (ptrdiff_t p = 0; p < n; p++) {
        memcpy(recall->residual + p * recall->numbers + plan->m.offsets[segment] + m, centred + p * stride,
               (size_t)count * sizeof(double));
    }
}

/* Squares that are exact enough in float32, too. */
static bool in_range(const double *squares, ptrdiff_t n)
{
    for (ptrdiff_t l = 0; l < n; l++) {
        if (!(squares[l] < 1e30 && squares[l] > 1e-24)) {
            return false;
        }
    }
    return true;
}

/* A whole tile by the kernel for sketches of 64 numbers; false if it must be done step by step. */
static bool sketch_fast(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t m, ptrdiff_t count,
                        ptrdiff_t m0, const void *const *rows)
{
    ptrdiff_t n = plan->n_raw;
    unsigned char shift[RFI_SPAN_MAX / RFI_SKETCH_GROUP];
    if (!plan->recall.sketches) {
        return false;
    }
    double *sums = worker->room + RFI_RESIDUAL_ROOM(n);
    rfi_rows_used(plan, worker, m, m0, rows);
    rfi_sketch_turns(segment_key(&plan->recall, segment), m, count, plan->dtype == REEF_F32, worker->signs, shift);
    rfi_span span = {.rows = worker->used, .n = n, .count = count, .scratch = worker->scratch};
    rfi_turns turns = {worker->signs, shift};
    unsigned flush = rfi_flush_begin();
    bool done = worker->row_kernels->residual(&span, &turns, worker->room, sums, sums + n);
    rfi_flush_end(flush);
    if (!done || !in_range(sums, n)) {
        return false;
    }
    double *leaf = rfi_treesum_leaf(&worker->gram);
    for (ptrdiff_t i = 0; i < n * (1 + RFI_SKETCH_GROUP); i++) {
        leaf[i] += sums[i];
    }
    return true;
}

void rfi_recall_tile(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t m, ptrdiff_t count, ptrdiff_t m0,
                     const void *const *rows)
{
    if (sketch_fast(plan, worker, segment, m, count, m0, rows)) {
        return;
    }
    ptrdiff_t chunk = plan->recall.chunk;
    for (ptrdiff_t at = m; at < m + count; at += chunk) {
        ptrdiff_t end = m + count - at < chunk ? m + count : at + chunk;
        if (centre_fast(plan, worker, at, end - at, m0, rows)) {
            take_residuals(plan, worker, segment, at, worker->centred_rows, chunk, end - at);
            continue;
        }
        for (ptrdiff_t from = at; from < end; from += RFI_CHUNK) {
            ptrdiff_t part = end - from < RFI_CHUNK ? end - from : RFI_CHUNK;
            centre_scalar(plan, worker, segment, from, part, m0, rows);
            take_residuals(plan, worker, segment, from, worker->centred, RFI_CHUNK, part);
        }
    }
}

/* ---- solving ---- */

/* Lengths, and sketches where the sums hold them. A row out of reach has no direction: what it did is left to its length. */
static void read_sums(rfi_recall *recall, ptrdiff_t n, const double *sums)
{
    size_t width = (size_t)recall->numbers * sizeof(double);
    for (ptrdiff_t l = 0; l < n; l++) {
        double *residual = recall->residual + l * recall->numbers;
        recall->norm[l] = sqrt(sums[l]);
        if (!isfinite(recall->norm[l])) {
            recall->norm[l] = INFINITY;
            memset(residual, 0, width);
        } else if (!recall->full) {
            memcpy(residual, sums + n + l * recall->numbers, width);
        }
    }
}

/* The sender of row l, as it is remembered. */
static void remember_sender(reef_plan *plan, const rfi_senders *senders, ptrdiff_t l)
{
    rfi_recall *recall = &plan->recall;
    const reef_memory *memory = plan->rule->memory;
    size_t size = recall->sizes.record;
    unsigned char *record = (unsigned char *)recall->seen.records + (size_t)l * size;
    int64_t forget = recall->sizes.forget;
    recall->ids[l] = id_of(plan, l);
    ptrdiff_t place = senders ? rfi_senders_find(senders, recall->ids[l]) : -1;
    if (place >= 0 && forget > 0 && recall->seen.rounds - senders->who[place].heard > forget) {
        place = -1;
    }
    recall->place[l] = place;
    recall->heard[l] = place >= 0 ? senders->who[place].heard : 0;
    recall->seen.age[l] = 1 + (place >= 0 ? senders->who[place].age : 0);
    if (place >= 0) {
        memcpy(record, senders->records + (size_t)place * size, size);
        return;
    }
    memset(record, 0, size);
    if (memory->start) {
        memory->start(plan->params, record);
    }
}

static void remember(reef_plan *plan)
{
    rfi_recall *recall = &plan->recall;
    reef_recall *seen = &recall->seen;
    rfi_senders *senders = plan->input.state ? rfi_state_senders(plan->input.state) : NULL;
    seen->n = plan->n_raw;
    seen->numbers = recall->numbers;
    seen->self = plan->self;
    seen->step = plan->input.step;
    seen->rounds = (senders ? senders->rounds : 0) + 1;
    seen->residual = recall->residual;
    seen->norm = recall->norm;
    seen->ids = recall->ids;
    seen->heard = recall->heard;
    seen->place = recall->place;
    seen->number = recall->number;
    seen->memory = senders;
    seen->idle = false;
    memset(recall->number, 0, sizeof recall->number);
    if (senders) {
        memcpy(seen->shared, senders->shared, recall->sizes.shared);
    } else {
        memset(seen->shared, 0, recall->sizes.shared);
    }
    for (ptrdiff_t i = 0; i < seen->n * plan->rule->memory->factor_count; i++) {
        seen->factor[i] = 1;
    }
    for (ptrdiff_t l = 0; l < seen->n; l++) {
        remember_sender(plan, senders, l);
    }
}

reef_status rfi_recall_weigh(reef_plan *plan, const double *sums, double *share, reef_error *error)
{
    rfi_recall *recall = &plan->recall;
    rfi_worker *worker = &plan->m.workers[0];
    read_sums(recall, plan->n_raw, sums);
    remember(plan);
    const reef_points points = {.n = plan->n_raw,
                                .count = plan->n_raw,
                                .origin = -1,
                                .centre = -1,
                                .a = plan->m.raw_weights,
                                .equal = plan->equal_raw,
                                .f = plan->malicious_count[plan->agg->count - 1],
                                .size = (double)plan->total,
                                .round = plan->input.round,
                                .recall = &recall->seen};
    reef_effort effort = {0, true};
    reef_status status = plan->rule->weigh(plan->params, &points, share, &effort, error);
    worker->iterations += effort.iterations;
    worker->solved++;
    worker->unconverged += !effort.converged;
    worker->max_iterations = effort.iterations > worker->max_iterations ? effort.iterations : worker->max_iterations;
    return status;
}

void rfi_recall_commit(reef_plan *plan)
{
    rfi_recall *recall = &plan->recall;
    if (!recall->seen.memory || recall->seen.idle) {
        return;
    }
    for (ptrdiff_t l = 0; l < recall->seen.n; l++) { /* whatever the rule made of it */
        int64_t *age = &recall->seen.age[l];
        *age = *age < 1 ? 1 : (*age > recall->seen.rounds ? recall->seen.rounds : *age);
    }
    rfi_senders_commit(recall->seen.memory, &recall->seen, recall->place, recall->spare);
    if (plan->rule->memory->commit) {
        plan->rule->memory->commit(plan->params, &recall->seen);
    }
}
