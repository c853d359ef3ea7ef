/* MREF: what is remembered. Per sender a trace and its averages over three windows, per receiver spread and separation of these. */
#include "agg/rules/mref/mref.h"
#include "num/kernels/kernels.h"

#include <math.h>

enum { FULL_MAX = 1024, SKETCH = 64 };

ptrdiff_t rfi_mref_numbers(const rfi_mref_params *p, ptrdiff_t length)
{
    bool full =
        p->sketch == RFI_MREF_FULL_MEMORY || (p->sketch == RFI_MREF_AUTO && length <= FULL_MAX) || length <= p->sketch;
    if (full) {
        return length;
    }
    return p->sketch == RFI_MREF_AUTO ? SKETCH : (ptrdiff_t)p->sketch;
}

/* ---- scratch ---- */

/* The distances of a sample, or its Gram matrix; or the correlations of those looked at together; and room for the first vector. */
static ptrdiff_t matrix_size(ptrdiff_t sample, ptrdiff_t look)
{
    ptrdiff_t of_sample = (sample + RFI_MREF_SPLIT_STEPS + 1) * sample;
    ptrdiff_t of_look = (look + RFI_MREF_AXIS_STEPS + 1) * look;
    return of_sample > of_look ? of_sample : of_look;
}

/* At least 64, for servers that hear a few of many. */
ptrdiff_t rfi_mref_look_rows(ptrdiff_t n)
{
    enum { LEAST = 64 };
    return n < LEAST ? LEAST : n < RFI_MREF_BLOCK ? n : RFI_MREF_BLOCK;
}

/* Of an aggregation with n rows. */
static rfi_mref_view *lay_out(rfi_arena *arena, ptrdiff_t n, ptrdiff_t numbers)
{
    rfi_mref_view measured = {0};
    rfi_mref_view *view = rfi_arena_take(arena, 1, 1, sizeof *view);
    rfi_mref_view *v = view ? view : &measured;
    ptrdiff_t sample = n < RFI_MREF_SAMPLE ? n : RFI_MREF_SAMPLE;
    ptrdiff_t look = rfi_mref_look_rows(n);
    *v = (rfi_mref_view){.n = n, .numbers = numbers, .width = (numbers + 3) / 4 * 4};
    v->average = rfi_arena_take(arena, n, v->width, sizeof(double));
    v->clip = rfi_arena_take(arena, n, 1, sizeof(double));
    v->gate = rfi_arena_take(arena, n, 1, sizeof(double));
    v->weight = rfi_arena_take(arena, n, 1, sizeof(double));
    v->by_energy = rfi_arena_take(arena, n, 1, sizeof(double));
    v->by_copies = rfi_arena_take(arena, n, 1, sizeof(double));
    v->work = rfi_arena_take(arena, n, RFI_MREF_WORK, sizeof(double));
    v->by_age = rfi_arena_take(arena, n, 1, sizeof(double));
    v->by_opinion = rfi_arena_take(arena, n, 1, sizeof(double));
    v->matrix = rfi_arena_take(arena, matrix_size(sample, look), 1, sizeof(double));
    v->sample_rows = rfi_arena_take(arena, sample, 1, sizeof *v->sample_rows);
    v->sample_scratch = rfi_arena_take(arena, 1, 1, RFI_SPAN_SCRATCH(sample));
    v->sample_hard = rfi_arena_take(arena, RFI_SPAN_MAX, 1, sizeof(int32_t));
    v->look_raw = rfi_arena_take(arena, RFI_MREF_BLOCK, 1, sizeof(double));
    v->look_vector = rfi_arena_take(arena, look, 1, sizeof(double));
    v->look_variance = rfi_arena_take(arena, look, 1, sizeof(double));
    v->look_index = rfi_arena_take(arena, look, 3, sizeof(ptrdiff_t));
    v->look_goes = rfi_arena_take(arena, look, 1, sizeof(bool));
    v->line = rfi_arena_take(arena, 3, v->width, sizeof(double));
    v->index = rfi_arena_take(arena, n, 3, sizeof(ptrdiff_t));
    return view;
}

static void mref_sizes(const void *params, ptrdiff_t rows, ptrdiff_t length, reef_memory_sizes *sizes)
{
    const rfi_mref_params *p = params;
    rfi_arena arena = {0};
    ptrdiff_t numbers = rfi_mref_numbers(p, length);
    (void)lay_out(&arena, rows, numbers);
    *sizes = (reef_memory_sizes){
        .numbers = numbers,
        .vectors = RFI_WINDOWS,
        .record = sizeof(rfi_mref_trace),
        .shared = sizeof(rfi_mref_shared),
        .pair_numbers = rfi_mref_left_out(p, RFI_MREF_TOGETHER) ? 0 : RFI_MREF_PAIR_NUMBERS,
        .pair_block = RFI_MREF_BLOCK,
        .pair_places = RFI_MREF_PAIR_PLACES,
        .secret = p->seed == RFI_MREF_AUTO,
        .forget = p->forget,
        .largest = RFI_MREF_LARGEST,
        .work = arena.overflow ? PTRDIFF_MAX : (size_t)arena.used, /* which no plan has room for */
    };
}

/* Windows: shortest, geometric mean, longest. */
static void choose_windows(const rfi_mref_params *p, rfi_mref_view *view)
{
    int64_t longest = p->horizon;
    if (longest == RFI_MREF_AUTO) {
        double wanted = view->step > 0 ? RFI_MREF_HORIZON_STEPS / view->step : RFI_MREF_LONGEST;
        longest = 64;
        while ((double)longest < wanted && longest < RFI_MREF_HORIZON_MAX) {
            longest *= 2;
        }
    }
    view->window[0] = RFI_MREF_SHORTEST;
    view->window[1] = (int64_t)floor(sqrt((double)RFI_MREF_SHORTEST * (double)longest) + 0.5);
    view->window[2] = longest;
}

rfi_mref_view *rfi_mref_look(const rfi_mref_params *params, const reef_recall *recall)
{
    rfi_arena arena = {.base = recall->work};
    rfi_mref_view *view = lay_out(&arena, recall->n, recall->numbers);
    rfi_mref_shared *shared = recall->shared;
    view->memory = recall;
    view->self = recall->self;
    view->step = recall->step;
    view->rounds = recall->rounds;
    view->residual = recall->residual;
    view->norm = recall->norm;
    view->age = recall->age;
    view->traces = recall->records;
    view->shared = shared;
    view->spread = shared->spread;
    view->separation = shared->separation;
    view->own = view->self >= 0 && view->n <= RFI_MREF_OWN_ROWS;
    choose_windows(params, view);
    if (params->without != RFI_MREF_ADDITIONS) {
        rfi_mref_discount_absence(recall, view);
    }
    rfi_mref_count_presence(recall, view);
    return view;
}

/* ---- senders ---- */

static uint64_t mref_key(const void *params, uint64_t seed)
{
    const rfi_mref_params *p = params;
    uint64_t given = p->seed == RFI_MREF_AUTO ? (p->without == RFI_MREF_ADDITIONS ? 1 : seed) : (uint64_t)p->seed;
    return (given + 1) * UINT64_C(0xD1B54A32D192ED03);
}

static void mref_start(const void *params, void *record)
{
    rfi_mref_trace *trace = record;
    (void)params;
    trace->tail = RFI_MREF_TAIL_START;
    trace->believed = trace->voice = trace->together = trace->noise = 1;
    for (int j = 0; j < RFI_WINDOWS; j++) {
        for (int i = 0; i < RFI_BY_COUNT; i++) {
            trace->factor[j][i] = 1;
        }
    }
}

double rfi_mref_rate(const rfi_mref_view *view, int window, int64_t age)
{
    return fmax(1 / (double)view->window[window], 1 / (double)age);
}

static void mref_commit(const void *params, reef_recall *recall)
{
    const rfi_mref_view *view = recall->work;
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        for (int j = 0; j < RFI_WINDOWS; j++) {
            reef_recall_average(recall, l, j, rfi_mref_rate(view, j, recall->age[l]), view->clip[l]);
        }
    }
    if (!rfi_mref_left_out(params, RFI_MREF_TOGETHER)) {
        rfi_mref_move_pairs(recall, view);
        rfi_mref_look_together(params, recall, view);
    }
}

static bool in_range(double x, double least, double most)
{
    return x >= least && x <= most;
}

/* Squares of clipped numbers, and factors: nothing that a liar could have made larger. */
static bool is_sane(const void *record, int64_t age, int64_t rounds)
{
    const rfi_mref_trace *t = record;
    bool sane = in_range(t->tail, 0, RFI_MREF_LARGEST) && in_range(t->energy, 0, RFI_MREF_LARGEST);
    sane = sane && in_range(t->believed, 0, 1) && in_range(t->voice, 0, 1) && in_range(t->together, 0, 1) &&
           in_range(t->noise, 0, 1) && in_range(t->presence, 0, 1);
    (void)rounds;
    for (int j = 0; j < RFI_WINDOWS; j++) {
        sane = sane && t->judged[j] >= 0 && t->judged[j] <= age && in_range(t->rhythm[j], 0, RFI_MREF_LARGEST);
        for (int i = 0; i < RFI_BY_COUNT; i++) {
            sane = sane && in_range(t->factor[j][i], 0, 1);
        }
    }
    return sane;
}

static bool is_count(int64_t x, int64_t most)
{
    return x >= 0 && x <= most;
}

/* No count so large that one more would overflow, no sum that a look cannot reach. */
static bool is_sane_opinion(const rfi_mref_shared *s)
{
    bool counts = is_count(s->rounds, RFI_MREF_ROUNDS_MOST) && is_count(s->looks, RFI_MREF_ROUNDS_MOST) &&
                  is_count(s->trial, RFI_MREF_OPINION_MOST) && s->pause >= 0;
    double most = RFI_MREF_LARGEST;
    bool levels = in_range(s->level_sum, -most, most) && in_range(s->level_last, -most, most) &&
                  in_range(s->level_before, -most, most);
    return counts && levels && in_range(s->near_sum, 0, most) && in_range(s->near_last, 0, most) &&
           in_range(s->kept_sum, 0, most) && in_range(s->kept_last, 0, most);
}

static bool is_sane_shared(const void *shared)
{
    const rfi_mref_shared *s = shared;
    bool sane = in_range(s->together, 0, 1e300) && is_sane_opinion(s);
    for (int j = 0; j < RFI_WINDOWS; j++) {
        sane = sane && in_range(s->spread[j], 0, 1) && in_range(s->separation[j], 0, 1e300);
    }
    return sane;
}

/* ---- diagnostics ---- */

static const reef_diagnostic factors[RFI_MREF_FACTORS] = {
    {"gate", "far from the others in this round"},
    {"short window", "far from the others on average, over the shortest window"},
    {"middle window", "far from the others on average, over the middle window"},
    {"long window", "far from the others on average, over the longest window"},
    {"split", "belongs to a group away from the majority"},
    {"rhythm", "its averages oscillate more than the others'"},
    {"energy", "its messages scatter more than the others'"},
    {"copies", "others send the same vector, or have the same noise: one over the number of copies, itself included"},
    {"together", "what it sends depends on what others send, and together they are a minority"},
    {"probation", "heard for a shorter time than the others"},
    {"second opinion", "far from the others in this round, during a trial of whether the near ones then agree more"},
};

#define WINDOW_NUMBERS(which)                                                                                          \
    {which " window: rounds", "length of the " which " window"},                                                       \
        {which " window: spread", "0: averages over the " which                                                        \
                                  " window scatter like noise, to 1: honest senders are heterogeneous (non-IID)"},     \
    {                                                                                                                  \
        which " window: separation", "distance of the two groups that a split of the averages over the " which         \
                                     " window would make, in standard deviations; about 5 is not yet conspicuous"      \
    }
static const reef_diagnostic numbers[RFI_MREF_NUMBER_COUNT] = {
    WINDOW_NUMBERS("short"),
    WINDOW_NUMBERS("middle"),
    WINDOW_NUMBERS("long"),
    {"together: separation", "distance of the group whose messages depend on each other from the rest, over the "
                             "threshold: above 1 it loses weight"},
    {"balance: factor",
     "factor by which weights were raised, up to the gate's; above 1: so many senders were distrusted that half "
     "of its weight had to be kept"}};

const reef_memory rfi_mref_memory = {
    .version = 7,
    .sizes = mref_sizes,
    .key = mref_key,
    .start = mref_start,
    .commit = mref_commit,
    .is_sane = is_sane,
    .is_sane_shared = is_sane_shared,
    .factors = factors,
    .factor_count = sizeof factors / sizeof factors[0],
    .numbers = numbers,
    .number_count = sizeof numbers / sizeof numbers[0],
};
