/* The whole aggregate call. The bytes choose a spec, a shape, weights, a state and rows of any bit patterns; then
 *
 *   it fails    with a status and a sentence; an argument error leaves the output alone
 *   it works    the output is finite and inside the hull of the rows in use, shares are >= 0 and sum to 1, the report
 *               is finite and agrees with the shares
 *   either way  nothing around the output is written, and the same bits come from a second call, with or without a
 *               report, or from streaming the same rows through a plan with two workers: one of these, which the bytes choose
 *
 * Bytes that run out are continued by a generator seeded by all of them, so that short inputs reach everything too. */
#include "num/kernels/kernels.h"

#include <reef/reef.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 40, SEGMENTS_MAX = 3, SPEC_SIZE = 1024, GUARD = 32, CHUNK = 64, TILE = 4096 };

/* --- Bytes --- */

typedef struct source {
    const uint8_t *data;
    size_t left;
    uint64_t state;
} source;

static source source_of(const uint8_t *data, size_t size)
{
    source s = {data, size, 0xcbf29ce484222325U};
    for (size_t i = 0; i < size; i++) {
        s.state = (s.state ^ data[i]) * 0x100000001b3U;
    }
    return s;
}

static uint64_t take(source *s, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        uint8_t byte = 0;
        if (s->left) {
            byte = *s->data++;
            s->left--;
        } else {
            s->state = s->state * 6364136223846793005U + 1442695040888963407U;
            byte = (uint8_t)(s->state >> 56);
        }
        value = value << 8 | byte;
    }
    return value;
}

static ptrdiff_t below(source *s, ptrdiff_t limit)
{
    return (ptrdiff_t)take(s, 1) % limit;
}

/* --- One call and its answer --- */

typedef struct call {
    char spec[SPEC_SIZE];
    bool listed; /* the spec is one of the list below: its tolerances are tight */
    reef_agg *agg;
    reef_dtype dtype;
    size_t size; /* of one number */
    ptrdiff_t rows, length, segments;
    ptrdiff_t lengths[SEGMENTS_MAX];
    ptrdiff_t starts[SEGMENTS_MAX];
    unsigned char *block[ROWS_MAX]; /* each row in memory of its own, so that reading one byte too far is seen */
    const void *row[ROWS_MAX];
    double weights[ROWS_MAX];
    reef_input input;
    int memory;            /* 0: no state, 1: a new one, 2: with the centre below */
    unsigned char *centre; /* length numbers */
    size_t skew;           /* misalignment of the output in bytes */
} call;

typedef struct answer {
    reef_status status;
    reef_error error;
    unsigned char *block;
    unsigned char *out;
    reef_report *report;
    double *shares;       /* rows x length */
    double *centre_share; /* length */
    reef_state *state;
} answer;

static _Noreturn void fail(const call *c, int line, const char *format, ...)
{
    va_list args;
    (void)fprintf(stderr, "fuzz_aggregate.c:%d: spec \"%s\", K = %td, M = %td in %td segments, %s, %s weights: ", line,
                  c->spec, c->rows, c->length, c->segments, c->dtype == REEF_F32 ? "float32" : "float64",
                  c->input.weights ? "given" : "equal");
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fprintf(stderr, "\n");
    abort();
}

#define CHECK(c, condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fail((c), __LINE__, "not true: %s", #condition);                                                           \
        }                                                                                                              \
    } while (0)

static void *allocate(const call *c, size_t bytes)
{
    void *memory = malloc(bytes);
    CHECK(c, memory);
    return memory;
}

static double load(const call *c, const void *base, ptrdiff_t index)
{
    if (c->dtype == REEF_F32) {
        float value;
        memcpy(&value, (const char *)base + index * (ptrdiff_t)sizeof value, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, (const char *)base + index * (ptrdiff_t)sizeof value, sizeof value);
    return value;
}

static void store_bits(const call *c, void *base, ptrdiff_t index, uint64_t bits)
{
    uint32_t half = (uint32_t)bits;
    memcpy((char *)base + index * (ptrdiff_t)c->size, c->size == 4 ? (void *)&half : (void *)&bits, c->size);
}

static void store(const call *c, void *base, ptrdiff_t index, double value)
{
    uint64_t bits = 0;
    float narrow = (float)value;
    memcpy(&bits, c->size == 4 ? (void *)&narrow : (void *)&value, c->size);
    store_bits(c, base, index, bits);
}

/* --- Specs --- */

static const char *const specs[] = {
    "mean",
    "median",
    "median:even=lower",
    "median:even=upper,nan=drop-coordinate",
    "median:keep_self=true",
    "trimmed:f=1",
    "trimmed:f=max,nan=drop-coordinate",
    "trimmed:beta=0.1",
    "trimmed:f=max,keep_self=true",
    "meamed",
    "meamed:f=1,nan=drop-coordinate",
    "geomed",
    "geomed:dialect=byzfl",
    "geomed:nan=drop-coordinate",
    "krum",
    "krum:dialect=byzfl",
    "krum:f=1,nan=drop-coordinate",
    "multikrum",
    "multikrum:f=2,m=2,dialect=byzfl",
    "bulyan",
    "bulyan:f=1,nan=drop-coordinate",
    "mda:f=2",
    "mda:f=3,dialect=byzfl",
    "cclip",
    "cclip:start=median,L=5,tau=1",
    "cclip:tau=1e30,nan=drop-coordinate",
    "huber",
    "huber:start=mean,scale=qn",
    "tukey",
    "tukey:start=mean,scale=s,init=weighted",
    "ref",
    "ref:n=auto",
    "ref:scale=mad-finite,n=auto",
    "ref:scale=s,init=weighted",
    "ref:scale=qn,nan=drop-coordinate",
    "ref:scale_floor=1e-6,scale_floor_rel=0.1",
    "ref:efficiency=0.98,nan=error",
    "vref",
    "vref:block=segment",
    "vref:block=1",
    "vref:block=7,nan=drop-coordinate",
    "vref:block=64,efficiency=0.9",
    "nnm | ref",
    "nnm:f=1 | mean:nan=drop-coordinate",
    "nnm | krum",
    "nnm | bulyan",
    "nnm:f=2 | cclip:start=median",
    "nnm | trimmed:f=1",
    "bucketing | median",
    "bucketing:s=3 | vref:block=segment",
    "bucketing:s=7,seed=5 | geomed:nan=drop-coordinate",
    "clip:c=1 | mean",
    "clip:c=0 | vref",
    "clip:c=1e30 | geomed",
    "arc | trimmed:f=1",
    "arc:f=1 | vref:block=5",
    "clip:c=3 | arc | bucketing | nnm | ref",
    "arc | cclip:nan=drop-coordinate",
};
enum { SPECS = sizeof specs / sizeof specs[0] };

static void append(call *c, const char *format, ...)
{
    size_t used = strlen(c->spec);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(c->spec + used, sizeof c->spec - used, format, args);
    va_end(args);
}

/* A value for a field: its limits, its words, or something between. Steps stay few, to stay quick. */
static void append_value(call *c, source *s, const reef_field *field)
{
    static const char *const malicious_count[] = {"0", "1", "2", "3", "6", "10%", "0.3", "0.49", "max"};
    static const double reals[] = {0, 1e-300, 1e-30, 1e-9, 1e-3, 0.3, 0.9, 0.95, 1, 2.5, 40, 1e9, 1e38, 1e300};
    ptrdiff_t words = 0;
    while (field->words && field->words[words]) {
        words++;
    }
    double number = reals[below(s, sizeof reals / sizeof reals[0])];
    ptrdiff_t choice = below(s, 8);
    if (field->type == REEF_FIELD_BOOL) {
        append(c, "%s", choice & 1 ? "true" : "false");
    } else if (field->type == REEF_FIELD_MALICIOUS) {
        append(c, "%s", malicious_count[below(s, sizeof malicious_count / sizeof malicious_count[0])]);
    } else if (words && (choice < 2 || field->type == REEF_FIELD_WORD)) {
        append(c, "%s", field->words[below(s, words)]);
    } else if (field->type == REEF_FIELD_INT) {
        bool largest = choice == 2 && strcmp(field->unit, "steps") != 0;
        append(c, "%.0f", largest ? field->max : fmax(field->min, (double)below(s, 20)));
    } else {
        number = choice == 2 ? field->min : (choice == 3 ? field->max : number);
        append(c, "%.17g", fmin(fmax(number, field->min), field->max));
    }
}

/* One stage from the registry with some of its fields; rules added later are met here without further ado. */
static void append_stage(call *c, source *s, bool last)
{
    static const char *const policies[] = {"drop-row", "drop-coordinate", "error"};
    const reef_rule *rule =
        (const void *)reef_kind_at(NULL, REEF_FAMILY_RULE, below(s, reef_kind_count(NULL, REEF_FAMILY_RULE)));
    while ((rule->mix == NULL) != last) {
        rule = (const void *)reef_kind_at(NULL, REEF_FAMILY_RULE, below(s, reef_kind_count(NULL, REEF_FAMILY_RULE)));
    }
    append(c, "%s", rule->kind.name);
    char mark = ':';
    for (ptrdiff_t i = 0; i < rule->kind.field_count; i++) {
        if (take(s, 1) % 3 == 0) {
            append(c, "%c%s=", mark, rule->kind.fields[i].name);
            append_value(c, s, &rule->kind.fields[i]);
            mark = ',';
        }
    }
    if (last) {
        append(c, "%cnan=%s", mark, policies[below(s, 3)]);
    } else {
        append(c, " | ");
    }
}

static bool choose_spec(call *c, source *s)
{
    ptrdiff_t choice = below(s, 2 * SPECS);
    c->listed = choice < SPECS;
    if (c->listed) {
        append(c, "%s", specs[choice]);
    } else {
        for (ptrdiff_t stages = (choice - SPECS) % 4; stages > 0; stages--) {
            append_stage(c, s, false);
        }
        append_stage(c, s, true);
    }
    reef_error error = {REEF_OK, ""};
    reef_status status = reef_agg_create(NULL, &c->agg, c->spec, &error);
    if (c->listed && status != REEF_OK) {
        fail(c, __LINE__, "%s", error.text);
    }
    return status == REEF_OK; /* a generated one may hold fields that exclude each other */
}

/* --- Shapes, weights, rows --- */

/* Short rows mostly; lengths around a chunk, and now and then around a tile, with few rows. */
static void choose_shape(call *c, source *s)
{
    ptrdiff_t kind = below(s, 64);
    c->dtype = kind & 1 ? REEF_F32 : REEF_F64;
    c->size = kind & 1 ? sizeof(float) : sizeof(double);
    /* Mostly small, so that more inputs are tried. */
    c->rows = 1 + below(s, below(s, 8) ? 12 : ROWS_MAX);
    c->length = 1 + below(s, below(s, 8) ? 12 : 130);
    if (kind < 4) {
        c->length = CHUNK - 2 + below(s, 5);
    } else if (kind == 4 && below(s, 8) == 0) {
        c->rows = 1 + c->rows % 5;
        c->length = TILE - 2 + below(s, 5) + TILE * below(s, 2);
    }
    ptrdiff_t wanted = 1 + (below(s, 4) == 0 ? below(s, SEGMENTS_MAX) : 0);
    ptrdiff_t start = 0;
    for (c->segments = 0; start < c->length; c->segments++) {
        bool last = c->segments + 1 == wanted;
        ptrdiff_t left = c->length - start;
        c->starts[c->segments] = start;
        c->lengths[c->segments] = last || left < 2 ? left : 1 + (left - 1) * below(s, 100) / 100;
        start += c->lengths[c->segments];
    }
}

static double special(source *s)
{
    static const double values[] = {0,       -0.0,     1,        -1,       0x1p-1074, -0x1p-1022,  FLT_MIN, 0x1p-149,
                                    1e-30,   1e38,     -1e38,    FLT_MAX,  -FLT_MAX,  1e150,       -1e155,  1e300,
                                    DBL_MAX, -DBL_MAX, 0x1p1000, 0x1p-530, 3,         1 + 0x1p-52, NAN,     INFINITY};
    return values[below(s, sizeof values / sizeof values[0])];
}

static void choose_weights(call *c, source *s)
{
    ptrdiff_t kind = below(s, 10);
    double same = special(s);
    for (ptrdiff_t l = 0; l < c->rows; l++) {
        if (kind < 6) { /* small whole numbers, zeros among them */
            c->weights[l] = (double)below(s, 4);
        } else if (kind == 6) {
            c->weights[l] = fabs(same);
        } else if (kind == 7) {
            c->weights[l] = special(s);
        } else { /* finite and positive over the whole range */
            c->weights[l] = ldexp(1 + (double)below(s, 64), (int)take(s, 2) % 2090 - 1074);
        }
    }
    c->input.weights = kind < 4 ? NULL : c->weights;
}

typedef enum row_kind { SMALL, CONSTANT, COPY, BITS, FINITE_BITS, TINY, HUGE_VALUES, SPECIAL, KINDS } row_kind;

/* One bit of the exponent is cleared: it cannot be that of NaN or Inf. */
static uint64_t finite_bits(const call *c, uint64_t bits)
{
    return bits & ~(c->size == 4 ? UINT64_C(1) << 23 : UINT64_C(1) << 52);
}

static void fill_number(const call *c, source *s, row_kind kind, void *row, ptrdiff_t m)
{
    double top = c->size == 4 ? (double)FLT_MAX : DBL_MAX;
    double step = (double)(int8_t)take(s, 1);
    switch (kind) {
    case BITS:
        store_bits(c, row, m, take(s, (int)c->size));
        break;
    case FINITE_BITS:
        store_bits(c, row, m, finite_bits(c, take(s, (int)c->size)));
        break;
    case TINY: /* denormal numbers */
        store_bits(c, row, m, (uint64_t)fabs(step) | (step < 0 ? UINT64_C(1) << (8 * c->size - 1) : 0));
        break;
    case HUGE_VALUES:
        store(c, row, m, top * (step / 128));
        break;
    case SPECIAL:
        store(c, row, m, fmin(fmax(special(s), -top), top));
        break;
    default:
        store(c, row, m, step / 16);
        break;
    }
}

static void fill_row(const call *c, source *s, ptrdiff_t l, row_kind kind)
{
    unsigned char *row = c->block[l] + (c->row[l] == c->block[l] ? 0 : 1);
    size_t bytes = (size_t)c->length * c->size;
    if (kind == COPY && l > 0) {
        memcpy(row, c->row[below(s, l)], bytes);
        return;
    }
    fill_number(c, s, kind, row, 0);
    for (ptrdiff_t m = 1; m < c->length; m++) {
        if (kind == CONSTANT || (m >= 2 * CHUNK && m % CHUNK)) { /* long rows are mostly repetition */
            memcpy(row + m * (ptrdiff_t)c->size, row + (m - 1) * (ptrdiff_t)c->size, c->size);
        } else {
            fill_number(c, s, kind, row, m);
        }
    }
}

/* Most rows of one kind, the others of any: malicious ones of all sorts. */
static void choose_rows(call *c, source *s)
{
    row_kind common = (row_kind)below(s, KINDS);
    ptrdiff_t others = below(s, 6);
    size_t bytes = (size_t)c->length * c->size;
    for (ptrdiff_t l = 0; l < c->rows; l++) {
        size_t skew = (size_t)below(s, 4) == 0;
        c->block[l] = allocate(c, bytes + skew);
        c->row[l] = c->block[l] + skew;
        fill_row(c, s, l, below(s, 6) < others ? (row_kind)below(s, KINDS) : common);
        if (below(s, 32) == 0) { /* one number that is none */
            store(c, c->block[l] + skew, below(s, c->length), take(s, 1) & 1 ? (double)NAN : -(double)INFINITY);
        }
    }
}

static void choose_input(call *c, source *s)
{
    c->input.has_self = below(s, 4) > 0;
    c->input.self = below(s, c->rows);
    if (below(s, 64) == 0) {
        c->input.self = c->rows;
    }
    c->input.round = (int64_t)take(s, 1);
    c->skew = (size_t)below(s, 8);
    c->memory = reef_agg_traits(c->agg) & REEF_TRAIT_CENTRE ? (int)below(s, 3) : 0;
    c->centre = allocate(c, (size_t)c->length * c->size);
    for (ptrdiff_t m = 0; m < c->length; m++) {
        fill_number(c, s, c->memory & 1 ? SMALL : FINITE_BITS, c->centre, m);
    }
}

/* --- Running it --- */

static reef_shape shape_of(const call *c, ptrdiff_t workers)
{
    return (reef_shape){
        .rows = c->rows, .segments = c->segments, .lengths = c->lengths, .dtype = c->dtype, .workers = workers};
}

/* Everything is filled with a pattern first, so that what is written, and what is not, can be seen. */
static answer prepare(const call *c)
{
    answer a = {.status = REEF_OK};
    reef_shape shape = shape_of(c, 1);
    size_t count = (size_t)c->length;
    size_t bytes = count * c->size + c->skew + GUARD;
    a.block = allocate(c, bytes);
    memset(a.block, 0xa5, bytes);
    a.out = a.block + c->skew;
    a.shares = allocate(c, count * (size_t)c->rows * sizeof(double));
    a.centre_share = allocate(c, count * sizeof(double));
    memset(a.centre_share, 0, count * sizeof(double));
    CHECK(c, reef_report_create(NULL, &a.report, c->rows, NULL) == REEF_OK);
    reef_report_keep_shares(a.report, a.shares, a.centre_share);
    if (c->memory) {
        CHECK(c, reef_state_create(&a.state, c->agg, &shape, NULL) == REEF_OK);
    }
    for (ptrdiff_t i = 0; c->memory == 2 && i < c->segments; i++) {
        const unsigned char *from = c->centre + c->starts[i] * (ptrdiff_t)c->size;
        CHECK(c, reef_state_set_centre(a.state, i, from, NULL) == REEF_OK);
    }
    memset(&a.error, 0x5a, sizeof a.error);
    return a;
}

static void discard(answer *a)
{
    reef_report_destroy(&a->report);
    reef_state_destroy(&a->state);
    free(a->block);
    free(a->shares);
    free(a->centre_share);
}

/* How much of a report is asked for; the output must not depend on it. */
typedef enum detail { SHARES, TRUST, NOTHING } detail;

static answer run_whole(const call *c, detail wanted)
{
    answer a = prepare(c);
    reef_report *report = wanted == NOTHING ? NULL : a.report;
    reef_input input = c->input;
    if (wanted == TRUST) {
        reef_report_keep_shares(a.report, NULL, NULL);
    }
    input.rows = c->row;
    input.state = a.state;
    if (c->segments == 1) {
        a.status = reef_agg_apply(c->agg, &input, c->rows, c->length, c->dtype, a.out, report, &a.error);
        return a;
    }
    const void *rows[SEGMENTS_MAX][ROWS_MAX];
    const void *const *by_segment[SEGMENTS_MAX];
    void *out[SEGMENTS_MAX];
    for (ptrdiff_t i = 0; i < c->segments; i++) {
        ptrdiff_t start = c->starts[i] * (ptrdiff_t)c->size;
        for (ptrdiff_t l = 0; l < c->rows; l++) {
            rows[i][l] = (const char *)c->row[l] + start;
        }
        by_segment[i] = rows[i];
        out[i] = a.out + start;
    }
    reef_plan *plan = NULL;
    reef_shape shape = shape_of(c, 0);
    a.status = reef_plan_create(&plan, c->agg, &shape, &a.error);
    if (a.status == REEF_OK) {
        a.status = reef_plan_apply_segments(plan, &input, by_segment, out, report, &a.error);
    }
    reef_plan_destroy(&plan);
    return a;
}

typedef enum visit_kind { OBSERVE, COMBINE, SCAN } visit_kind;

static reef_status visit(const call *c, reef_plan *plan, answer *a, visit_kind kind, ptrdiff_t segment, ptrdiff_t m0,
                         ptrdiff_t m1, ptrdiff_t worker)
{
    const void *rows[ROWS_MAX];
    ptrdiff_t start = (c->starts[segment] + m0) * (ptrdiff_t)c->size;
    for (ptrdiff_t l = 0; l < c->rows; l++) {
        rows[l] = (const char *)c->row[l] + start;
    }
    if (kind == OBSERVE) {
        return reef_plan_observe(plan, worker, segment, m0, m1, rows, &a->error);
    }
    return kind == SCAN ? reef_plan_scan(plan, segment, m0, m1, rows, &a->error)
                        : reef_plan_combine(plan, worker, segment, m0, m1, rows, a->out + start, &a->error);
}

/* All ranges, the last first, by two workers in turn. */
static reef_status visit_all(const call *c, reef_plan *plan, answer *a, visit_kind kind, ptrdiff_t step)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t i = c->segments - 1; i >= 0; i--) {
        ptrdiff_t length = c->lengths[i];
        for (ptrdiff_t range = (length - 1) / step; range >= 0; range--) {
            ptrdiff_t m0 = range * step;
            ptrdiff_t m1 = length - m0 < step ? length : m0 + step;
            reef_status one = visit(c, plan, a, kind, i, m0, m1, (range + i) & 1);
            status = status == REEF_OK ? one : status;
        }
    }
    return status;
}

static reef_status observe_and_combine(const call *c, reef_plan *plan, answer *a, ptrdiff_t step)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t pass = 0; status == REEF_OK && pass < reef_plan_passes(plan); pass++) {
        status = visit_all(c, plan, a, OBSERVE, reef_plan_grain(plan));
        if (status == REEF_OK) {
            status = reef_plan_solve(plan, &a->error);
        }
    }
    return status == REEF_OK ? visit_all(c, plan, a, COMBINE, step) : status;
}

/* step 0: by the grain, with a report; else ranges of any length, without one. */
static answer run_stream(const call *c, ptrdiff_t step)
{
    answer a = prepare(c);
    reef_plan *plan = NULL;
    reef_shape shape = shape_of(c, 2);
    reef_input input = c->input;
    input.state = a.state;
    a.status = reef_plan_create(&plan, c->agg, &shape, &a.error);
    if (a.status == REEF_OK) {
        a.status = reef_plan_begin(plan, &input, step ? NULL : a.report, &a.error);
    }
    bool begun = a.status == REEF_OK;
    for (int round = 0; begun; round++) {
        CHECK(c, round < 2); /* rows are dropped at most once */
        a.status = observe_and_combine(c, plan, &a, step ? step : reef_plan_grain(plan));
        if (!reef_plan_suspect(plan)) {
            break;
        }
        a.status = visit_all(c, plan, &a, SCAN, 5);
        a.status = a.status == REEF_OK ? reef_plan_drop(plan, &a.error) : a.status;
        begun = a.status == REEF_OK;
    }
    if (a.status == REEF_OK) {
        a.status = reef_plan_end(plan, &a.error);
    }
    reef_plan_destroy(&plan);
    return a;
}

/* --- Judging the answer --- */

static void check_guards(const call *c, const answer *a)
{
    for (size_t i = 0; i < c->skew; i++) {
        CHECK(c, a->block[i] == 0xa5);
    }
    for (size_t i = 0; i < GUARD; i++) {
        CHECK(c, a->out[(size_t)c->length * c->size + i] == 0xa5);
    }
}

static void check_failure(const call *c, const answer *a)
{
    bool argument = a->status == REEF_E_ARG || a->status == REEF_E_WEIGHTS || a->status == REEF_E_MALICIOUS ||
                    a->status == REEF_E_RANGE || a->status == REEF_E_OVERFLOW;
    CHECK(c, a->error.status == a->status);
    CHECK(c, a->error.text[0] != '\0');
    CHECK(c, memchr(a->error.text, '\0', sizeof a->error.text));
    CHECK(c, a->status != REEF_E_ORDER && a->status != REEF_E_NOMEM);
    for (size_t i = 0; argument && i < (size_t)c->length * c->size; i++) {
        CHECK(c, a->out[i] == 0xa5);
    }
}

static double sum_of_weights(const call *c, double *largest)
{
    double sum = 0;
    *largest = 1;
    for (ptrdiff_t l = 0; c->input.weights && l < c->rows; l++) {
        *largest = l == 0 || c->weights[l] > *largest ? c->weights[l] : *largest;
    }
    for (ptrdiff_t l = 0; l < c->rows; l++) {
        sum += c->input.weights ? c->weights[l] / *largest : 1;
    }
    return sum;
}

static bool is_used(const answer *a, ptrdiff_t l)
{
    return reef_report_reason(a->report, l) == REEF_USED;
}

/* Why rows were left out follows from weights and data; tiny weights may count as none. */
static void check_reasons(const call *c, const answer *a)
{
    bool by_entry = strstr(c->spec, "drop-coordinate") != NULL;
    double largest = 1;
    int64_t masked = 0;
    ptrdiff_t dropped = 0;
    (void)sum_of_weights(c, &largest);
    for (ptrdiff_t l = 0; l < c->rows; l++) {
        reef_reason reason = reef_report_reason(a->report, l);
        double weight = c->input.weights ? c->weights[l] / largest : 1;
        int64_t bad = 0;
        for (ptrdiff_t m = 0; m < c->length; m++) {
            bad += !isfinite(load(c, c->row[l], m));
        }
        CHECK(c, reason == REEF_ZERO_WEIGHT ? weight < 1e-100 : weight > 0);
        CHECK(c, reason == REEF_ZERO_WEIGHT || (reason == REEF_NONFINITE) == (bad > 0 && !by_entry));
        dropped += reason == REEF_NONFINITE;
        masked += reason == REEF_USED ? bad : 0;
    }
    CHECK(c, reef_report_dropped(a->report) == dropped);
    CHECK(c, reef_report_masked(a->report) == masked);
}

static double next(const call *c, double x, double towards)
{
    return c->dtype == REEF_F32 ? (double)nextafterf((float)x, (float)towards) : nextafter(x, towards);
}

/* Inside the hull of the rows in use and, for rules that shorten or remember, of 0 and the centre. */
static void check_hull(const call *c, const answer *a, ptrdiff_t m)
{
    bool strict = reef_agg_traits(c->agg) & REEF_TRAIT_HULL;
    double least = c->dtype == REEF_F32 ? (double)FLT_MIN : DBL_MIN;
    double low = strict ? (double)INFINITY : 0;
    double high = strict ? -(double)INFINITY : 0;
    for (ptrdiff_t l = 0; l <= c->rows; l++) {
        bool is_centre = l == c->rows;
        double x = load(c, is_centre ? c->centre : c->row[l], m);
        if (is_centre ? c->memory == 2 : is_used(a, l) && isfinite(x)) {
            low = fmin(low, x);
            high = fmax(high, x);
        }
    }
    double value = load(c, a->out, m);
    double from = next(c, next(c, low, -(double)INFINITY), -(double)INFINITY) - least;
    double to = next(c, next(c, high, (double)INFINITY), (double)INFINITY) + least;
    if (!isfinite(value) || !(value >= from && value <= to)) {
        fail(c, __LINE__, "out(%td) = %.17g, the rows from %.17g to %.17g", m, value, low, high);
    }
}

/* Shares are >= 0 and sum to 1, only on entries that exist, and give the output again: to a part of the largest entry,
 * which may set the scale; not beside numbers so large that shares underflow, nor when other columns set the scale. */
static void check_shares(const call *c, const answer *a, ptrdiff_t m)
{
    double sum = a->centre_share[m];
    double again = 0;
    double largest = 0;
    CHECK(c, sum >= 0);
    for (ptrdiff_t l = 0; l < c->rows; l++) {
        double share = a->shares[l * c->length + m];
        double x = load(c, c->row[l], m);
        CHECK(c, share >= 0);
        CHECK(c, share == 0 || (is_used(a, l) && isfinite(x)));
        sum += share;
        again += share > 0 ? share * x : 0;
        largest = is_used(a, l) && isfinite(x) ? fmax(largest, fabs(x)) : largest;
    }
    /* before cclip, what clip and arc take away goes to the origin, and that is not named beside the centre */
    bool all_named = !(strstr(c->spec, "cclip") && strchr(c->spec, '|'));
    if (!(all_named ? fabs(sum - 1) <= 1e-6 : sum <= 1 + 1e-6)) {
        fail(c, __LINE__, "the shares of coordinate %td sum to %.17g", m, sum);
    }
    double off = fabs(load(c, a->out, m) - again);
    double tolerance = c->dtype == REEF_F32 ? 1e-5 * largest + (double)FLT_MIN : 1e-9 * largest + DBL_MIN;
    bool exact = c->listed && !strstr(c->spec, "scale_floor_rel") && largest < 0x1p500 &&
                 reef_report_unconverged(a->report) == 0 && a->centre_share[m] == 0;
    if (exact && !(off <= tolerance)) {
        fail(c, __LINE__, "out(%td) = %.17g, by the shares %.17g", m, load(c, a->out, m), again);
    }
}

static void check_trust(const call *c, const answer *a)
{
    double largest = 1;
    double sum = sum_of_weights(c, &largest);
    double centre = 0;
    for (ptrdiff_t l = 0; l < c->rows; l++) {
        double trust = reef_report_trust(a->report)[l];
        double weight = (c->input.weights ? c->weights[l] / largest : 1) / sum;
        double mean = 0;
        ptrdiff_t rejected = 0;
        for (ptrdiff_t m = 0; m < c->length; m++) {
            mean += a->shares[l * c->length + m] / (double)c->length;
            rejected += a->shares[l * c->length + m] == 0;
        }
        if (!isfinite(trust) || trust < 0 || fabs(trust * weight - mean) > 1e-9) {
            fail(c, __LINE__, "trust of row %td is %g, its weight %g, its mean share %g", l, trust, weight, mean);
        }
        CHECK(c, fabs(reef_report_rejected(a->report)[l] - (double)rejected / (double)c->length) < 1e-12);
    }
    for (ptrdiff_t m = 0; m < c->length; m++) {
        centre += a->centre_share[m] / (double)c->length;
    }
    CHECK(c, fabs(reef_report_centre_share(a->report) - centre) < 1e-9);
    CHECK(c, isfinite(reef_report_mean_iterations(a->report)) && reef_report_max_iterations(a->report) >= 0);
}

static void check_success(const call *c, const answer *a)
{
    for (size_t i = 0; i < sizeof a->error.text; i++) {
        CHECK(c, a->error.text[i] == 0x5a); /* untouched when nothing is wrong */
    }
    check_reasons(c, a);
    for (ptrdiff_t m = 0; m < c->length; m++) {
        check_hull(c, a, m);
        check_shares(c, a, m);
    }
    check_trust(c, a);
}

/* A state remembers the result, and nothing of a call that failed. */
static void check_state(const call *c, const answer *a)
{
    for (ptrdiff_t i = 0; a->state && i < c->segments; i++) {
        const void *kept = reef_state_centre(a->state, i);
        ptrdiff_t start = c->starts[i] * (ptrdiff_t)c->size;
        const unsigned char *expected = a->status == REEF_OK ? a->out : c->centre;
        CHECK(c, (kept != NULL) == (a->status == REEF_OK || c->memory == 2));
        CHECK(c, !kept || memcmp(kept, expected + start, (size_t)c->lengths[i] * c->size) == 0);
    }
}

/* Whether each row's trust is the same without shares, but for rounding. Not behind pre-aggregators: mixed rows that differ by rounding
 * alone are ordered by it. Nor with both huge and tiny numbers: the scalar rules shrink huge columns, where tiny values become ties. */
static bool has_one_trust(const call *c)
{
    bool huge = false;
    bool tiny = false;
    for (ptrdiff_t i = 0; i < c->rows * c->length; i++) {
        double value = fabs(load(c, c->row[i / c->length], i % c->length));
        huge = huge || value > 0x1p990;
        tiny = tiny || (value > 0 && value < 0x1p-950);
    }
    return !strchr(c->spec, '|') && !(huge && tiny);
}

/* What was reported beside the output; without shares sums may be rounded elsewhere. */
static void check_same_report(const call *c, const answer *a, const answer *b, detail wanted)
{
    size_t count = (size_t)c->rows;
    const double *trust = reef_report_trust(a->report);
    const double *other = reef_report_trust(b->report);
    if (wanted == SHARES) {
        CHECK(c, memcmp(a->shares, b->shares, count * (size_t)c->length * sizeof(double)) == 0);
        CHECK(c, memcmp(trust, other, count * sizeof(double)) == 0);
        CHECK(c, memcmp(reef_report_rejected(a->report), reef_report_rejected(b->report), count * sizeof(double)) == 0);
        CHECK(c, reef_report_max_iterations(a->report) == reef_report_max_iterations(b->report));
    }
    bool strict = wanted == TRUST && has_one_trust(c);
    for (ptrdiff_t l = 0; wanted == TRUST && l < c->rows; l++) {
        CHECK(c, reef_report_reason(a->report, l) == reef_report_reason(b->report, l));
        CHECK(c, other[l] >= 0 && isfinite(other[l]));
        if (strict && !(fabs(trust[l] - other[l]) <= 1e-4 * fmax(trust[l], 1))) {
            fail(c, __LINE__, "trust of row %td is %g, without shares %g", l, trust[l], other[l]);
        }
    }
}

static void check_same(const call *c, const answer *a, const answer *b, detail wanted)
{
    static const char *const names[] = {"shares again", "trust only", "no report"};
    if (a->status != b->status) {
        fail(c, __LINE__, "status %d, with %s %d (%.100s)", (int)a->status, names[wanted], (int)b->status,
             b->status == REEF_OK ? a->error.text : b->error.text);
    }
    for (ptrdiff_t m = 0; a->status == REEF_OK && m < c->length; m++) {
        ptrdiff_t at = m * (ptrdiff_t)c->size;
        if (memcmp(a->out + at, b->out + at, c->size) != 0) {
            fail(c, __LINE__, "out(%td) = %.17g, with %s %.17g", m, load(c, a->out, m), names[wanted],
                 load(c, b->out, m));
        }
    }
    if (a->status == REEF_OK) {
        check_same_report(c, a, b, wanted);
    }
}

/* Rules whose ranges may start anywhere when there is no report. */
static bool is_elementwise(const call *c)
{
    char name[SPEC_SIZE];
    memcpy(name, c->spec, sizeof name);
    name[strcspn(name, ": |")] = '\0';
    const reef_rule *rule = (const void *)reef_kind_find(NULL, REEF_FAMILY_RULE, name);
    return rule && rule->column && !rule->weigh && !rule->relative_floor;
}

static answer run_otherwise(const call *c, ptrdiff_t way, detail *wanted)
{
    *wanted = way == 0 || way == 3 ? SHARES : (way == 1 ? TRUST : NOTHING);
    return way < 3 ? run_whole(c, *wanted) : run_stream(c, way == 3 ? 0 : 13);
}

static void try_call(const call *c, source *s)
{
    answer first = run_whole(c, SHARES);
    check_guards(c, &first);
    check_state(c, &first);
    if (first.status == REEF_OK) {
        check_success(c, &first);
    } else {
        check_failure(c, &first);
    }
    detail wanted = SHARES;
    answer other = run_otherwise(c, below(s, is_elementwise(c) ? 5 : 4), &wanted);
    check_guards(c, &other);
    check_state(c, &other);
    check_same(c, &first, &other, wanted);
    discard(&other);
    discard(&first);
}

/* The scalar rules or one of the sets this processor runs. */
static void choose_kernels(source *s)
{
    int sets = 0;
    while (rfi_kernels_at(true, sets)) {
        sets++;
    }
    int set = (int)below(s, sets + 1);
    (void)setenv("REEF_ISA", set ? rfi_kernels_at(true, set - 1)->name : "scalar", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static call c;
    source s = source_of(data, size);
    memset(&c, 0, sizeof c);
    if (choose_spec(&c, &s)) {
        choose_kernels(&s);
        choose_shape(&c, &s);
        choose_weights(&c, &s);
        choose_rows(&c, &s);
        choose_input(&c, &s);
        try_call(&c, &s);
    }
    for (ptrdiff_t l = 0; l < c.rows; l++) {
        free(c.block[l]);
    }
    free(c.centre);
    reef_agg_destroy(&c.agg);
    return 0;
}
