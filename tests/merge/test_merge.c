/* Merging model files: the bits of the same aggregation in memory, whatever the blocks and threads; what is refused; what is left
 * behind. */
#include "io/file.h"
#include "io/half.h"
#include "num/rng.h"
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"
#include "support/trial.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 7, TENSORS = 5, PATHS_MAX = 16 };

typedef enum element { F64, F32, F16, BF16, I64, BOOL, ELEMENTS } element;
static const char *const element_names[] = {"F64", "F32", "F16", "BF16", "I64", "BOOL"};
static const size_t widths[] = {8, 4, 2, 2, 8, 1};

/* A model of a test: what every file has. */
typedef struct layout {
    int count;
    element type[TENSORS];
    ptrdiff_t length[TENSORS];
} layout;

/* Files of one layout; values[file][tensor]. */
typedef struct world {
    scratch s;
    layout l;
    ptrdiff_t files;
    double *values[FILES][TENSORS];
    char paths[FILES][SCRATCH_PATH];
    const char *list[FILES];
    char out[SCRATCH_PATH];
} world;

/* ---- files ---- */

static double widened(element type, uint16_t half)
{
    float single = 0;
    if (type == F16) {
        rfi_widen_f16(&half, 1, &single);
    } else {
        rfi_widen_bf16(&half, 1, &single);
    }
    return (double)single;
}

/* The 16-bit number nearest to a double; of two the even one. */
static uint16_t nearest_half(element type, double value)
{
    uint16_t near = 0;
    float single = (float)value;
    if (type == F16) {
        rfi_narrow_f16(&single, 1, &near);
    } else {
        rfi_narrow_bf16(&single, 1, &near);
    }
    uint16_t best = near;
    for (int step = -1; step <= 1; step += 2) {
        uint16_t other = (uint16_t)(near + step);
        double gain = fabs(widened(type, best) - value) - fabs(widened(type, other) - value);
        best = gain > 0 || (gain == 0 && other % 2 == 0) ? other : best;
    }
    return best;
}

static void encode(element type, const double *values, ptrdiff_t count, unsigned char *bytes)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        float single = (float)values[i];
        int64_t whole = type == I64 ? (int64_t)values[i] : 0;
        uint16_t half = type == F16 || type == BF16 ? nearest_half(type, values[i]) : 0;
        unsigned char truth = values[i] != 0;
        const void *from[] = {&values[i], &single, &half, &half, &whole, &truth};
        memcpy(bytes + (size_t)i * widths[type], from[type], widths[type]);
    }
}

static double decode(element type, const unsigned char *bytes, ptrdiff_t i)
{
    float single = 0;
    uint16_t half;
    double number;
    int64_t whole;
    const unsigned char *place = bytes + (size_t)i * widths[type];
    switch (type) {
    case F64:
        memcpy(&number, place, sizeof number);
        return number;
    case F32:
        memcpy(&single, place, sizeof single);
        return (double)single;
    case I64:
        memcpy(&whole, place, sizeof whole);
        return (double)whole;
    case BOOL:
        return *place;
    default:
        memcpy(&half, place, sizeof half);
        return widened(type, half);
    }
}

/* A safetensors file; `turned` puts the tensors in the opposite order. */
static void save(const world *w, ptrdiff_t file, bool turned)
{
    char header[1024];
    size_t used = 0;
    size_t bytes = 0;
    unsigned char *data;
    for (int i = 0; i < w->l.count; i++) {
        bytes += (size_t)w->l.length[i] * widths[w->l.type[i]];
    }
    data = malloc(bytes + 1);
    bytes = 0;
    used += (size_t)snprintf(header + 8, sizeof header - 8, "{\"__metadata__\":{\"from\":\"%td\"}", file);
    for (int j = 0; j < w->l.count; j++) {
        int i = turned ? w->l.count - 1 - j : j;
        size_t end = bytes + (size_t)w->l.length[i] * widths[w->l.type[i]];
        used += (size_t)snprintf(header + 8 + used, sizeof header - 8 - used,
                                 ",\"t%d\":{\"dtype\":\"%s\",\"shape\":[%td],\"data_offsets\":[%zu,%zu]}", i,
                                 element_names[w->l.type[i]], w->l.length[i], bytes, end);
        encode(w->l.type[i], w->values[file][i], w->l.length[i], data + bytes);
        bytes = end;
    }
    header[8 + used++] = '}';
    for (int i = 0; i < 8; i++) {
        header[i] = (char)(used >> (8 * i) & 0xFF);
    }
    rfi_piece pieces[] = {{header, used + 8}, {data, bytes}};
    assert_int_equal(rfi_file_write(NULL, w->paths[file], pieces, 2, NULL), REEF_OK);
    free(data);
}

/* Values that the types can hold; the last file lies. */
static void open_world(world *w, const layout *l, ptrdiff_t files, uint32_t seed)
{
    rfi_rng rng;
    *w = (world){.l = *l, .files = files};
    scratch_open(&w->s);
    scratch_path(&w->s, "out", w->out);
    rfi_rng_init(&rng, seed, 81, 0, 0, 0);
    for (ptrdiff_t f = 0; f < files; f++) {
        char name[16];
        (void)snprintf(name, sizeof name, "m%td", f);
        scratch_path(&w->s, name, w->paths[f]);
        w->list[f] = w->paths[f];
        for (int i = 0; i < l->count; i++) {
            unsigned char bytes[8];
            w->values[f][i] = malloc((size_t)(l->length[i] + 1) * sizeof(double));
            for (ptrdiff_t m = 0; m < l->length[i]; m++) {
                double x = rfi_rng_normal(&rng) + (f == files - 1 ? 40.0 : 0.0) + (double)(m % 10);
                x = l->type[i] == I64 ? floor(x) : l->type[i] == BOOL ? (double)(x > 4) : x;
                encode(l->type[i], &x, 1, bytes);
                w->values[f][i][m] = decode(l->type[i], bytes, 0);
            }
        }
        save(w, f, f == 1);
    }
}

static void close_world(world *w)
{
    for (ptrdiff_t f = 0; f < w->files; f++) {
        for (int i = 0; i < w->l.count; i++) {
            free(w->values[f][i]);
        }
    }
    scratch_close(&w->s);
}

static reef_context *make_context(ptrdiff_t threads)
{
    reef_context *context = NULL;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, threads, NULL), REEF_OK);
    return context;
}

static reef_status merge(world *w, ptrdiff_t threads, const reef_merge_options *options, reef_merge_report *report,
                         reef_error *error)
{
    reef_context *context = make_context(threads);
    reef_status status = reef_merge_files(context, options, w->list, w->files, w->out, report, error);
    reef_context_destroy(&context);
    return status;
}

/* The output: its data, behind the header, which must be that of file `header_of`. */
static rfi_file take_output(const world *w, ptrdiff_t header_of, size_t *data)
{
    rfi_file out;
    rfi_file first;
    assert_int_equal(rfi_file_read(NULL, w->out, SIZE_MAX, &out, NULL), REEF_OK);
    assert_int_equal(rfi_file_read(NULL, w->paths[header_of], SIZE_MAX, &first, NULL), REEF_OK);
    assert_int_equal(out.size, first.size);
    *data = 8 + first.bytes[0] + ((size_t)first.bytes[1] << 8);
    assert_memory_equal(out.bytes, first.bytes, *data);
    rfi_file_free(NULL, &first);
    return out;
}

/* ---- the same in memory ---- */

static bool is_real(element type)
{
    return type != I64 && type != BOOL;
}

/* An aggregation in memory: some tensors of a world. */
typedef struct memory {
    const world *w;
    bool wide; /* in double */
    ptrdiff_t count;
    int which[TENSORS];
    ptrdiff_t lengths[TENSORS];
    void *rows[TENSORS][FILES];
    void *outs[TENSORS];
} memory;

static void add_tensor(memory *in, int tensor)
{
    ptrdiff_t n = in->count++;
    ptrdiff_t length = in->w->l.length[tensor];
    in->which[n] = tensor;
    in->lengths[n] = length;
    in->outs[n] = malloc((size_t)length * sizeof(double));
    for (ptrdiff_t f = 0; f < in->w->files; f++) {
        const double *values = in->w->values[f][tensor];
        double *row = malloc((size_t)length * sizeof *row);
        float *single = (float *)(void *)row;
        for (ptrdiff_t m = 0; m < length; m++) {
            if (in->wide) {
                row[m] = values[m];
            } else {
                single[m] = (float)values[m];
            }
        }
        in->rows[n][f] = row;
    }
}

/* Aggregates what was added, and forgets it; adds to trust. Returns how many numbers there were. */
static double run_memory(memory *in, const reef_agg *agg, const double *weights, double *out[TENSORS], double *trust)
{
    reef_report *report = NULL;
    reef_plan *plan = NULL;
    reef_error error = {REEF_OK, ""};
    const void *const *pointers[TENSORS];
    double numbers = 0;
    ptrdiff_t files = in->w->files;
    reef_shape shape = {.rows = files,
                        .segments = in->count,
                        .lengths = in->lengths,
                        .dtype = in->wide ? REEF_F64 : REEF_F32,
                        .workers = 1};
    for (ptrdiff_t n = 0; n < in->count; n++) {
        pointers[n] = (const void *const *)in->rows[n];
        numbers += (double)in->lengths[n];
    }
    assert_int_equal(reef_report_create(NULL, &report, files, NULL), REEF_OK);
    assert_int_equal(reef_plan_create(&plan, agg, &shape, NULL), REEF_OK);
    reef_status status =
        reef_plan_apply_segments(plan, &(reef_input){.weights = weights}, pointers, in->outs, report, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    for (ptrdiff_t f = 0; f < files; f++) {
        trust[f] += numbers * reef_report_trust(report)[f];
    }
    for (ptrdiff_t n = 0; n < in->count; n++) {
        for (ptrdiff_t m = 0; m < in->lengths[n]; m++) {
            out[in->which[n]][m] = in->wide ? ((double *)in->outs[n])[m] : (double)((float *)in->outs[n])[m];
        }
        free(in->outs[n]);
        for (ptrdiff_t f = 0; f < files; f++) {
            free(in->rows[n][f]);
        }
    }
    in->count = 0;
    reef_plan_destroy(&plan);
    reef_report_destroy(&report);
    return numbers;
}

/* out[tensor] = the aggregate of float tensors; whole model, or each by itself. trust: FILES numbers. */
static void aggregate(const world *w, const char *spec, const double *weights, bool per_tensor, double *out[TENSORS],
                      double *trust)
{
    reef_agg *agg = make_agg(spec);
    memory in = {.w = w};
    double total = 0;
    memset(trust, 0, FILES * sizeof *trust);
    for (int i = 0; i < w->l.count; i++) {
        in.wide = in.wide || w->l.type[i] == F64;
    }
    for (int i = 0; i < w->l.count; i++) {
        if (is_real(w->l.type[i])) {
            add_tensor(&in, i);
            total += per_tensor ? run_memory(&in, agg, weights, out, trust) : 0;
        }
    }
    total += per_tensor ? 0 : run_memory(&in, agg, weights, out, trust);
    for (ptrdiff_t f = 0; f < w->files; f++) {
        trust[f] /= total;
    }
    reef_agg_destroy(&agg);
}

static void compare(const world *w, double *want[TENSORS], const char *what)
{
    size_t data = 0;
    rfi_file out = take_output(w, 0, &data);
    for (int i = 0; i < w->l.count; i++) {
        size_t bytes = (size_t)w->l.length[i] * widths[w->l.type[i]];
        if (is_real(w->l.type[i])) {
            unsigned char *encoded = malloc(bytes + 1);
            encode(w->l.type[i], want[i], w->l.length[i], encoded);
            CHECK(memcmp(encoded, out.bytes + data, bytes) == 0, "%s: tensor %d differs from memory", what, i);
            free(encoded);
        }
        data += bytes;
    }
    rfi_file_free(NULL, &out);
}

static void check_same(world *w, const char *spec, const double *weights, const reef_merge_options *more)
{
    double *want[TENSORS];
    double trust[FILES];
    for (int i = 0; i < w->l.count; i++) {
        want[i] = calloc((size_t)w->l.length[i] + 1, sizeof(double));
    }
    aggregate(w, spec, weights, more->per_tensor, want, trust);
    for (int variant = 0; variant < 3; variant++) {
        reef_merge_options options = *more;
        reef_merge_file fates[FILES];
        reef_merge_report report = {.files = fates};
        reef_error error = {REEF_OK, ""};
        options.rule = spec;
        options.weights = weights;
        options.memory = variant == 1 ? (size_t)1 << 19 : 0;
        reef_status status = merge(w, variant == 2 ? 3 : 1, &options, &report, &error);
        CHECK(status == REEF_OK, "%s: %s", spec, error.text);
        compare(w, want, spec);
        assert_int_equal(scratch_count(&w->s), w->files + 1);
        for (ptrdiff_t f = 0; f < w->files; f++) {
            CHECK_CLOSE(fates[f].trust, trust[f], 1e-12 * (double)w->files, spec);
        }
    }
    for (int i = 0; i < w->l.count; i++) {
        free(want[i]);
    }
}

/* ---- tests ---- */

static const char *const specs[] = {"mean",
                                    "median",
                                    "ref",
                                    "ref:scale_floor_rel=0.1",
                                    "vref",
                                    "vref:block=segment",
                                    "vref:block=6000",
                                    "krum",
                                    "geomed:max_iter=30",
                                    "cclip:tau=3,L=2,start=median",
                                    "nnm:f=1 | ref",
                                    "nnm:f=1 | vref",
                                    "nnm:f=1 | vref:block=1000",
                                    "bucketing | geomed:max_iter=20"};

static void same_bits_as_in_memory(void **state)
{
    static const layout layouts[] = {{3, {F32, F32, F32}, {9000, 1, 4097}},
                                     {2, {F64, F64}, {5000, 8192}},
                                     {4, {F16, I64, BF16, F32}, {4096, 2, 5001, 77}},
                                     {3, {F64, F16, F32}, {4100, 300, 5000}}};
    static const layout halves = {5, {BF16, F16, F32, BF16, F16}, {9001, 4097, 33, 1, 6000}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        for (int half = 0; half < 2; half++) { /* every rule on 16-bit numbers, too */
            world w;
            open_world(&w, half ? &halves : &layouts[i % COUNT(layouts)], FILES, (uint32_t)i);
            check_same(&w, specs[i], NULL, &(reef_merge_options){0});
            check_same(&w, specs[i], NULL, &(reef_merge_options){.per_tensor = true});
            close_world(&w);
        }
    }
}

/* Ranges of several tiles, handed over in pieces. */
static void large_tensors(void **state)
{
    static const layout large = {2, {F32, F16}, {400001, 9999}};
    static const double weights[] = {1, 2, 0, 3};
    world w;
    (void)state;
    open_world(&w, &large, 4, 3);
    check_same(&w, "mean", weights, &(reef_merge_options){0});
    check_same(&w, "ref", NULL, &(reef_merge_options){0});
    check_same(&w, "vref", weights, &(reef_merge_options){0});
    check_same(&w, "vref:block=10000", NULL, &(reef_merge_options){0});
    close_world(&w);
}

/* With doubles in between, results are rounded to 16 bits at once: 2049 + 2^-30 is above the tie between 2048 and 2050. */
static void rounded_once(void **state)
{
    static const layout mixed = {2, {F64, F16}, {1, 1}};
    world w;
    size_t data = 0;
    (void)state;
    open_world(&w, &mixed, 3, 1);
    for (int f = 0; f < 3; f++) {
        w.values[f][1][0] = f == 0 ? 2050 : 2048;
        save(&w, f, false);
    }
    /* 2048 + 2 (1/2 + tiny) */
    double weights[] = {0.5 + 0x1p-30, 0.25 - 0x1p-31, 0.25 - 0x1p-31};
    assert_int_equal(merge(&w, 1, &(reef_merge_options){.rule = "mean", .weights = weights}, NULL, NULL), REEF_OK);
    rfi_file out = take_output(&w, 0, &data);
    assert_true(decode(F16, out.bytes + data + 8, 0) == 2050);
    rfi_file_free(NULL, &out);
    close_world(&w);
}

static const layout small = {2, {F32, F16}, {5000, 100}};

static void files_with_nan_are_left_out_as_a_whole(void **state)
{
    static const char *const few[] = {"mean", "ref", "vref", "krum", "nnm:f=2 | ref"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(few) * 2; i++) {
        world w;
        reef_merge_file fates[FILES];
        reef_merge_report report = {.files = fates};
        reef_merge_options options = {.rule = few[i / 2], .per_tensor = i % 2};
        double *want[TENSORS] = {calloc(5000, 8), calloc(100, 8)};
        double trust[FILES];
        open_world(&w, &small, FILES, (uint32_t)i);
        w.values[2][1][99] = NAN;
        w.values[4][0][17] = INFINITY;
        save(&w, 2, false);
        save(&w, 4, false);
        assert_int_equal(merge(&w, 2, &options, &report, NULL), REEF_OK);
        for (int f = 0; f < FILES; f++) {
            assert_int_equal(fates[f].reason, f == 2 || f == 4 ? REEF_MERGE_NONFINITE : REEF_MERGE_USED);
            assert_true((fates[f].trust == 0) == (f == 2 || f == 4) || few[i / 2][0] != 'm');
            assert_true(!strstr(fates[f].why, "holds NaN or Inf") == (f != 2 && f != 4));
        }
        /* NaN in every tensor of both: the rule itself drops the same rows everywhere */
        for (int t = 0; t < 2; t++) {
            w.values[2][t][0] = NAN;
            w.values[4][t][0] = NAN;
        }
        aggregate(&w, few[i / 2], NULL, i % 2, want, trust);
        compare(&w, want, few[i / 2]);
        close_world(&w);
        free(want[0]);
        free(want[1]);
    }
}

static void other_policies_for_nan(void **state)
{
    world w;
    reef_error error = {REEF_OK, ""};
    reef_merge_report report = {0};
    double *want[TENSORS] = {calloc(5000, 8), calloc(100, 8)};
    double trust[FILES];
    (void)state;
    open_world(&w, &small, FILES, 5);
    w.values[3][1][9] = NAN;
    save(&w, 3, false);
    assert_int_equal(merge(&w, 2, &(reef_merge_options){.rule = "ref:nan=error"}, &report, &error), REEF_E_NONFINITE);
    CHECK(strstr(error.text, "m3: holds NaN or Inf in 't1', and the policy is nan=error"), "%s", error.text);
    assert_int_equal(scratch_count(&w.s), FILES); /* no output */
    aggregate(&w, "ref:nan=drop-coordinate", NULL, false, want, trust);
    assert_int_equal(merge(&w, 2, &(reef_merge_options){.rule = "ref:nan=drop-coordinate"}, &report, NULL), REEF_OK);
    compare(&w, want, "drop-coordinate");
    assert_int_equal(report.masked, 1);
    for (int f = 0; f < FILES; f++) {
        w.values[f][0][0] = NAN;
        save(&w, f, false);
    }
    assert_int_equal(merge(&w, 2, &(reef_merge_options){.rule = "vref"}, &report, &error), REEF_E_NO_ROWS);
    close_world(&w);
    free(want[0]);
    free(want[1]);
}

/* ---- whole numbers ---- */

static const layout counters = {3, {F32, I64, BOOL}, {100, 3, 2}};

static void set_counters(world *w, int file, double a, double b, double c, double d, double e)
{
    const double values[] = {a, b, c};
    memcpy(w->values[file][1], values, sizeof values);
    w->values[file][2][0] = d;
    w->values[file][2][1] = e;
    save(w, file, file % 2);
}

static void check_counters(const world *w, double a, double b, double c, double d, double e)
{
    size_t data = 0;
    rfi_file out = take_output(w, 0, &data);
    const double want[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        CHECK_CLOSE(decode(I64, out.bytes + data + 400, i), want[i], 0, "counter");
    }
    assert_true(out.bytes[data + 424] == d && out.bytes[data + 425] == e);
    rfi_file_free(NULL, &out);
}

static void integers_by_majority(void **state)
{
    world w;
    reef_merge_report report = {0};
    double weights[] = {1, 1, 1, 1, 10};
    (void)state;
    open_world(&w, &counters, 5, 4); /* file 4 lies: least trusted */
    for (int f = 0; f < 5; f++) {
        set_counters(&w, f, 7, f < 2 ? -1e15 : 3, f, f > 0, f != 1);
        memcpy(w.values[f][0], w.values[f ? f : 1][0], 100 * sizeof(double));
        save(&w, f, f == 1);
    }
    assert_int_equal(merge(&w, 2, &(reef_merge_options){.rule = "krum:f=1"}, &report, NULL), REEF_OK);
    assert_int_equal(report.integer_tensors, 2);
    assert_int_equal(report.integers, 5);
    assert_int_equal(report.disputed, 4);
    assert_int_equal(report.undecided, 1);
    check_counters(&w, 7, 3, (double)report.trusted, 1, 1);
    /* by weight file 4 alone has a majority */
    assert_int_equal(merge(&w, 2, &(reef_merge_options){.rule = "mean", .weights = weights}, &report, NULL), REEF_OK);
    check_counters(&w, 7, 3, 4, 1, 1);
    assert_int_equal(report.undecided, 0);
    weights[0] = 30;
    assert_int_equal(merge(&w, 2, &(reef_merge_options){.rule = "mean", .weights = weights}, &report, NULL), REEF_OK);
    check_counters(&w, 7, -1e15, 0, 0, 1);
    close_world(&w);
}

static void integers_of_the_most_trusted(void **state)
{
    world w;
    reef_merge_report report = {0};
    static const double weights[] = {0, 1, 2, 2, 1};
    reef_merge_options options = {.rule = "mean", .weights = weights, .integers = REEF_MERGE_TRUSTED};
    (void)state;
    open_world(&w, &counters, 5, 4);
    for (int f = 0; f < 5; f++) {
        set_counters(&w, f, f, f, f, f == 2, 0);
    }
    /* all are trusted alike by the mean: the weight decides, then the order */
    assert_int_equal(merge(&w, 1, &options, &report, NULL), REEF_OK);
    assert_int_equal(report.trusted, 2);
    check_counters(&w, 2, 2, 2, 1, 0);
    /* without any judgement too */
    options.no_trust = true;
    reef_merge_file fates[FILES];
    report.files = fates;
    assert_int_equal(merge(&w, 1, &options, &report, NULL), REEF_OK);
    assert_int_equal(report.trusted, 2);
    assert_true(isnan(fates[1].trust) && fates[0].trust == 0);
    assert_int_equal(fates[0].reason, REEF_MERGE_ZERO_WEIGHT);
    close_world(&w);
}

static void models_without_numbers(void **state)
{
    static const layout only = {1, {BOOL}, {3}};
    static const layout none = {1, {F32}, {0}};
    world w;
    size_t data = 0;
    (void)state;
    open_world(&w, &only, 3, 4);
    assert_int_equal(merge(&w, 1, &(reef_merge_options){0}, NULL, NULL), REEF_OK);
    close_world(&w);
    open_world(&w, &none, 3, 4);
    assert_int_equal(merge(&w, 1, &(reef_merge_options){0}, NULL, NULL), REEF_OK);
    rfi_file out = take_output(&w, 0, &data);
    assert_int_equal(out.size, data);
    rfi_file_free(NULL, &out);
    close_world(&w);
}

/* ---- what is refused ---- */

static void check_refused(world *w, reef_status want, const char *says)
{
    reef_error error = {REEF_OK, ""};
    int before = scratch_count(&w->s);
    assert_int_equal(merge(w, 1, &(reef_merge_options){0}, NULL, &error), want);
    CHECK(strstr(error.text, says), "'%s' should say '%s'", error.text, says);
    assert_int_equal(scratch_count(&w->s), before);
}

static void differences(void **state)
{
    world w;
    (void)state;
    open_world(&w, &small, 3, 1);
    layout right = w.l;
    w.l.length[1] = 99;
    save(&w, 2, false);
    check_refused(&w, REEF_E_FORMAT, "m2: tensor 't1' has shape [99]; in ");
    w.l = right;
    w.l.type[1] = BF16;
    save(&w, 2, false);
    check_refused(&w, REEF_E_FORMAT, "m2: tensor 't1' has type BF16; in ");
    w.l = right;
    w.l.count = 1;
    save(&w, 2, false);
    check_refused(&w, REEF_E_FORMAT, "m2: lacks the tensor 't1'; ");
    w.l = right;
    save(&w, 2, false);
    w.l.count = 1;
    save(&w, 0, false);
    check_refused(&w, REEF_E_FORMAT, "m1: has the tensor 't1'; ");
    w.l = right;
    (void)scratch_file(&w.s, "m0", "junk", 4, w.paths[0]);
    check_refused(&w, REEF_E_FORMAT, "m0: has 4 bytes, too few");
    (void)scratch_file(&w.s, "m0", "PK\3\4 and so on", 14, w.paths[0]);
    check_refused(&w, REEF_E_FORMAT, "m0: is a zip archive");
    assert_int_equal(unlink(w.paths[0]), 0);
    check_refused(&w, REEF_E_FILE, "m0: cannot open: No such file");
    close_world(&w);
}

/* The model that most files have, even if the first one is another. */
static void bad_files_are_dropped(void **state)
{
    world w;
    reef_merge_file fates[FILES];
    reef_merge_report report = {.files = fates};
    size_t data = 0;
    (void)state;
    open_world(&w, &small, FILES, 1);
    w.l.length[1] = 99;
    save(&w, 0, false);
    save(&w, 3, false);
    w.l.length[1] = 100;
    (void)scratch_file(&w.s, "m5", "junk", 4, w.paths[5]);
    assert_int_equal(merge(&w, 1, &(reef_merge_options){.drop_bad = true}, &report, NULL), REEF_OK);
    for (int f = 0; f < FILES; f++) {
        bool good = f != 0 && f != 3 && f != 5;
        assert_int_equal(fates[f].reason, good ? REEF_MERGE_USED : REEF_MERGE_BAD);
        assert_true(good == (fates[f].why[0] == '\0'));
        assert_true(good || (fates[f].trust == 0 && fates[f].rejected == 1));
    }
    assert_non_null(strstr(fates[3].why, "has shape [99]"));
    rfi_file out = take_output(&w, 1, &data);
    rfi_file_free(NULL, &out);
    close_world(&w);
}

/* What is no fault of a file's content ends the job, and so does it when too few are left. */
static void what_is_not_dropped(void **state)
{
    world w;
    reef_error error;
    reef_merge_file fates[FILES];
    reef_merge_report report = {.files = fates};
    const reef_merge_options drop = {.drop_bad = true};
    (void)state;
    open_world(&w, &small, 4, 1);
    w.l.length[1] = 99; /* two models of two files each, as shards would be */
    save(&w, 1, false);
    save(&w, 3, false);
    w.l.length[1] = 100;
    assert_int_equal(merge(&w, 1, &drop, &report, &error), REEF_E_FORMAT);
    CHECK(strstr(error.text, "only 2 of 4 files belong together"), "%s", error.text);
    save(&w, 1, false);
    assert_int_equal(merge(&w, 1, &drop, &report, &error), REEF_OK);
    for (int f = 0; f < 3; f++) {
        (void)scratch_file(&w.s, (const char *[]){"m0", "m1", "m2"}[f], "junk", 4, w.paths[f]);
    }
    assert_int_equal(merge(&w, 1, &drop, &report, &error), REEF_E_FORMAT);
    CHECK(strstr(error.text, "only 1 of 4 files belong together"), "%s", error.text);
    (void)scratch_file(&w.s, "m3", "junk", 4, w.paths[3]);
    assert_int_equal(merge(&w, 1, &drop, &report, &error), REEF_E_FORMAT);
    assert_int_equal(unlink(w.paths[1]), 0);
    assert_int_equal(merge(&w, 1, &drop, &report, &error), REEF_E_FILE);
    CHECK(strstr(error.text, "m1: cannot open: No such file"), "%s", error.text);
    close_world(&w);
}

/* All of our descriptors are taken: that is not the files' fault. */
static void no_descriptors(void **state)
{
    world w;
    reef_error error;
    struct rlimit before;
    (void)state;
    open_world(&w, &small, FILES, 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int used = open("/dev/null", O_RDONLY);
    assert_true(used >= 0);
    struct rlimit few = {(rlim_t)used + 4, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    reef_status status = merge(&w, 1, &(reef_merge_options){.drop_bad = true}, NULL, &error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    (void)close(used);
    assert_int_equal(status, REEF_E_FILE);
    CHECK(strstr(error.text, "Too many open files"), "%s", error.text);
    close_world(&w);
}

/* What somebody does to a file while it is merged. */
typedef struct meddling {
    const char *path;
    char how; /* a: appends, t: changes the time, s: writes and sets the time back, r: replaces, n: nothing */
    bool done;
} meddling;

/* As somebody would who wants to be trusted for one model and heard with another. */
static void write_secretly(const char *path)
{
    struct stat about;
    const struct timespec tick = {.tv_nsec = 50 * 1000 * 1000}; /* longer than that of file times */
    (void)nanosleep(&tick, NULL);
    int file = open(path, O_RDWR);
    assert_true(file >= 0 && fstat(file, &about) == 0);
    assert_int_equal(pwrite(file, "x", 1, about.st_size - 1), 1);
    assert_int_equal(futimens(file, (const struct timespec[]){about.st_atim, about.st_mtim}), 0);
    assert_int_equal(close(file), 0);
}

static void meddle(void *user, double share)
{
    meddling *m = user;
    char other[SCRATCH_PATH + 8];
    (void)share;
    if (m->done) {
        return;
    }
    m->done = true;
    if (m->how == 's') {
        write_secretly(m->path);
    } else if (m->how == 't') {
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};
        assert_int_equal(utimensat(AT_FDCWD, m->path, times, 0), 0);
    } else if (m->how != 'n') {
        (void)snprintf(other, sizeof other, "%s.other", m->path);
        FILE *file = fopen(m->how == 'a' ? m->path : other, "ab");
        assert_true(file && fputc('x', file) != EOF && fclose(file) == 0);
        assert_true(m->how == 'a' || rename(other, m->path) == 0);
    }
}

static void files_that_change(void **state)
{
    static const struct {
        char how;
        const char *says; /* NULL: all is well */
    } cases[] = {{'n', NULL},
                 {'a', "m1: the file was changed"},
                 {'t', "m1: the file was changed"},
                 {'s', "m1: the file was changed"},
                 {'r', "m1: the file was replaced"}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        world w;
        reef_error error = {REEF_OK, ""};
        open_world(&w, &small, 3, 1);
        meddling m = {.path = w.paths[1], .how = cases[i].how};
        const reef_merge_options options = {.drop_bad = true, .progress = meddle, .user = &m};
        reef_status status = merge(&w, 1, &options, NULL, &error);
        assert_true(m.done);
        assert_int_equal(status, cases[i].says ? REEF_E_FILE : REEF_OK);
        CHECK(!cases[i].says || strstr(error.text, cases[i].says), "%s", error.text);
        assert_int_equal(scratch_count(&w.s), cases[i].says ? 3 : 4); /* no output, no temporary file */
        close_world(&w);
    }
}

static volatile sig_atomic_t stop;

static void stop_now(void *user, double share)
{
    (void)user;
    (void)share;
    stop = 1;
}

/* Told to stop on the way: a failure without a trace. */
static void stopped(void **state)
{
    world w;
    reef_error error;
    (void)state;
    open_world(&w, &small, 3, 1);
    const reef_merge_options options = {.rule = "vref", .progress = stop_now, .stop = &stop}; /* two passes */
    stop = 0;
    assert_int_equal(merge(&w, 1, &options, NULL, &error), REEF_E_FILE);
    CHECK(strstr(error.text, "stopped before it was done"), "%s", error.text);
    assert_int_equal(scratch_count(&w.s), 3);
    close_world(&w);
}

static void bad_arguments(void **state)
{
    world w;
    static const double zeros[] = {0, 0, 0};
    static const double bad[] = {1, -1, 1};
    (void)state;
    open_world(&w, &small, 3, 1);
    reef_merge_options o = {.rule = "nonsense"};
    assert_int_equal(merge(&w, 1, &o, NULL, NULL), REEF_E_NAME);
    assert_int_equal(merge(&w, 1, NULL, NULL, NULL), REEF_E_ARG);
    assert_int_equal(merge(&w, 1, &(reef_merge_options){.weights = zeros}, NULL, NULL), REEF_E_WEIGHTS);
    assert_int_equal(merge(&w, 1, &(reef_merge_options){.weights = bad}, NULL, NULL), REEF_E_WEIGHTS);
    assert_int_equal(merge(&w, 1, &(reef_merge_options){.memory = 1000}, NULL, NULL), REEF_E_RANGE);
    assert_int_equal(merge(&w, 1, &(reef_merge_options){.rule = "krum:f=2"}, NULL, NULL), REEF_E_MALICIOUS);
    assert_int_equal(merge(&w, 1, &(reef_merge_options){.integers = 7}, NULL, NULL), REEF_E_ARG);
    assert_int_equal(reef_merge_files(NULL, &(reef_merge_options){0}, w.list, 0, w.out, NULL, NULL), REEF_E_ARG);
    assert_int_equal(scratch_count(&w.s), 3);
    close_world(&w);
}

/* ---- what is left behind ---- */

static void output_stays_as_it_was(void **state)
{
    world w;
    rfi_file file;
    reef_error error = {REEF_OK, ""};
    (void)state;
    open_world(&w, &small, 3, 1);
    (void)scratch_file(&w.s, "out", "precious", 8, w.out);
    w.values[2][0][4999] = NAN;
    save(&w, 2, false);
    assert_int_equal(merge(&w, 2, &(reef_merge_options){.rule = "mean:nan=error"}, NULL, NULL), REEF_E_NONFINITE);
    assert_int_equal(rfi_file_read(NULL, w.out, 100, &file, NULL), REEF_OK);
    assert_int_equal(file.size, 8);
    assert_memory_equal(file.bytes, "precious", 8);
    rfi_file_free(NULL, &file);
    assert_int_equal(scratch_count(&w.s), 4);
    (void)snprintf(w.out, sizeof w.out, "%s/nowhere/out", w.s.folder);
    assert_int_equal(merge(&w, 2, &(reef_merge_options){0}, NULL, &error), REEF_E_FILE);
    CHECK(strstr(error.text, "nowhere/out: cannot make a file beside it"), "%s", error.text);
    (void)snprintf(w.out, sizeof w.out, "%s", w.s.folder);
    assert_int_equal(merge(&w, 2, &(reef_merge_options){0}, NULL, &error), REEF_E_FILE);
    CHECK(strstr(error.text, "is a folder, and single files are merged into one file"), "%s", error.text);
    assert_int_equal(scratch_count(&w.s), 4);
    close_world(&w);
}

/* The output must not take the place of an input, whatever it is called, nor is anything read or written. */
static void over_an_input(void **state)
{
    world w;
    reef_error error;
    (void)state;
    open_world(&w, &small, 3, 1);
    w.list[0] = "nowhere"; /* reading would fail with another status */
    (void)snprintf(w.out, sizeof w.out, "%s/./m2", w.s.folder);
    assert_int_equal(merge(&w, 2, &(reef_merge_options){0}, NULL, &error), REEF_E_ARG);
    CHECK(strstr(error.text, "is an input"), "%s", error.text);
    scratch_path(&w.s, "link", w.out);
    assert_int_equal(symlink("m2", w.out), 0);
    assert_int_equal(merge(&w, 2, &(reef_merge_options){0}, NULL, &error), REEF_E_ARG);
    assert_int_equal(unlink(w.out), 0);
    assert_int_equal(link(w.list[2], w.out), 0);
    assert_int_equal(merge(&w, 2, &(reef_merge_options){0}, NULL, &error), REEF_E_ARG);
    assert_int_equal(scratch_count(&w.s), 4);
    close_world(&w);
}

/* Fails one allocation after the other until a merge needs no more of them. */
static void fail_allocations(const world *w, bool lenient)
{
    alloc_log log;
    reef_context *context = alloc_context(&log, 1);
    reef_status status = REEF_E_NOMEM;
    int before = scratch_count(&w->s);
    int n = 0;
    for (; status != REEF_OK && n < 1000; n++) {
        const reef_merge_options options = {.rule = "vref", .drop_bad = lenient || n % 2, .ignore_missing = lenient};
        log.total = 0;
        log.fail_at = n;
        int live = log.live;
        status = reef_merge_files(context, &options, w->list, 4, w->out, NULL, NULL);
        CHECK(status == REEF_OK || status == REEF_E_NOMEM, "allocation %d: status %d", n, (int)status);
        assert_int_equal(log.live, live);
        assert_int_equal(scratch_count(&w->s), status == REEF_OK ? 5 : before);
    }
    assert_true(n > 15);
    reef_context_destroy(&context);
    assert_false(log.broken);
}

static void failing_allocations(void **state)
{
    world w;
    (void)state;
    open_world(&w, &counters, 4, 1);
    fail_allocations(&w, false);
    fail_allocations(&w, true);
    close_world(&w);
}

/* ---- copies ---- */

/* The same file by another name, the same bytes under another header, and one that differs in its last number only. */
static void copies_are_told(void **state)
{
    static const layout large = {2, {F32, I64}, {200000, 3}};
    world w;
    reef_merge_file fates[FILES];
    reef_merge_report report = {.files = fates};
    (void)state;
    open_world(&w, &large, 5, 1);
    for (int t = 0; t < 2; t++) {
        size_t bytes = (size_t)large.length[t] * sizeof(double);
        memcpy(w.values[2][t], w.values[0][t], bytes);
        memcpy(w.values[3][t], w.values[0][t], bytes);
    }
    w.values[3][0][199998] += 1;
    save(&w, 2, true); /* in another order, with other metadata */
    save(&w, 3, false);
    assert_int_equal(unlink(w.paths[4]), 0);
    assert_int_equal(link(w.paths[1], w.paths[4]), 0);
    assert_int_equal(merge(&w, 1, &(reef_merge_options){0}, &report, NULL), REEF_OK);
    static const ptrdiff_t want[] = {-1, -1, 0, -1, 1};
    for (int f = 0; f < 5; f++) {
        assert_int_equal(fates[f].copy_of, want[f]);
        assert_int_equal(fates[f].reason, REEF_MERGE_USED);
    }
    close_world(&w);
}

/* ---- npy, progress ---- */

static void npy_files(void **state)
{
    static const char header[] = "\x93NUMPY\1\0\x46\0{'descr': '%cf4', 'fortran_order': %s, 'shape': (2, 2), }";
    scratch s;
    char paths[3][SCRATCH_PATH];
    char out[SCRATCH_PATH];
    const char *list[3] = {paths[0], paths[1], paths[2]};
    float values[4] = {1, 2, 3, 4};
    reef_error error = {REEF_OK, ""};
    (void)state;
    scratch_open(&s);
    scratch_path(&s, "out.npy", out);
    for (int variant = 0; variant < 3; variant++) { /* plain; the second big endian; the third in Fortran order */
        for (int f = 0; f < 3; f++) {
            unsigned char bytes[96];
            char name[8];
            (void)snprintf(name, sizeof name, "%d", f);
            memset(bytes, ' ', 80);
            memcpy(bytes, header, 10);
            int used = snprintf((char *)bytes + 10, 70, header + 10, variant == 1 && f == 1 ? '>' : '<',
                                variant == 2 && f == 2 ? "True" : "False");
            bytes[10 + used] = ' ';
            bytes[79] = '\n';
            for (int i = 0; i < 16; i++) {
                const unsigned char *from = (const unsigned char *)values;
                bytes[80 + i] = from[variant == 1 && f == 1 ? i / 4 * 4 + 3 - i % 4 : i];
            }
            (void)scratch_file(&s, name, bytes, 96, paths[f]);
        }
        reef_status status = reef_merge_files(NULL, &(reef_merge_options){.rule = "mean"}, list, 3, out, NULL, &error);
        if (variant == 2) {
            assert_int_equal(status, REEF_E_FORMAT);
            CHECK(strstr(error.text, "/2: is in Fortran order"), "%s", error.text);
            continue;
        }
        rfi_file file;
        assert_int_equal(status, REEF_OK);
        assert_int_equal(rfi_file_read(NULL, out, 1000, &file, NULL), REEF_OK);
        assert_int_equal(file.size, 96);
        assert_memory_equal(file.bytes + 80, values, 16);
        rfi_file_free(NULL, &file);
    }
    scratch_close(&s);
}

typedef struct witness {
    int calls;
    double last;
} witness;

static void see(void *user, double share)
{
    witness *seen = user;
    assert_true(share > seen->last && share <= 1);
    seen->last = share;
    seen->calls++;
}

static void progress_is_told(void **state)
{
    static const layout large = {2, {F32, I64}, {100000, 2000}};
    world w;
    (void)state;
    open_world(&w, &large, 3, 1);
    witness seen = {0, 0};
    reef_merge_options options = {.rule = "vref", .progress = see, .user = &seen, .memory = (size_t)1 << 18};
    assert_int_equal(merge(&w, 1, &options, NULL, NULL), REEF_OK);
    assert_true(seen.calls > 10);
    CHECK_CLOSE(seen.last, 1, 1e-9, "the last share told");
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_as_in_memory),
        cmocka_unit_test(large_tensors),
        cmocka_unit_test(rounded_once),
        cmocka_unit_test(files_with_nan_are_left_out_as_a_whole),
        cmocka_unit_test(other_policies_for_nan),
        cmocka_unit_test(integers_by_majority),
        cmocka_unit_test(integers_of_the_most_trusted),
        cmocka_unit_test(models_without_numbers),
        cmocka_unit_test(differences),
        cmocka_unit_test(bad_files_are_dropped),
        cmocka_unit_test(what_is_not_dropped),
        cmocka_unit_test(no_descriptors),
        cmocka_unit_test(files_that_change),
        cmocka_unit_test(stopped),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(output_stays_as_it_was),
        cmocka_unit_test(over_an_input),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(copies_are_told),
        cmocka_unit_test(npy_files),
        cmocka_unit_test(progress_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
