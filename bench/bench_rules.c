/* Speed of the rules against the mean of the same rows: what robustness costs in time.
 *
 * Each line is one rule on one configuration (number of rows K, threads, data, type, alignment). In every repeat all rules of a
 * configuration run once, one after the other, the mean and a plain reading of all bytes among them, so that what else the machine does
 * hits them alike; reported is the time of a rule over that of the mean, from the smallest times and from the medians. Times are
 * wall-clock times of the public call reef_plan_apply with its default options. Beside each line are the instruction set of its kernels
 * (REEF_ISA caps it) and the goal that docs/performance.md speaks of, where there is one.
 *
 * usage: bench_rules [--megabytes N] [--repeats N] [--cpu] [--rules TEXT] [--json FILE] [K...]
 *   --megabytes N   of rows, 500 unless told: more than the caches hold
 *   --repeats N     7 unless told
 *   --cpu           processor time per thread, where other programs keep the machine busy
 *   --rules TEXT    only the rules (and the mean) whose name contains TEXT
 *   --json FILE     each line also there, as JSON
 *   K...            numbers of rows, 4 8 16 31 32 33 64 128 512 1024 unless told
 */
#include <reef/reef.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS_MAX = 1024, REPEATS_MAX = 99, THREADS_MAX = 64 };

typedef enum data_kind { CLEAN, FAR, TAILS, EDGE, PAIRS } data_kind;
static const char *const data_names[] = {"clean", "20% far", "t2 tails", "20% at edge", "in pairs"};

/* Data in memory: what all cases of one configuration share. */
typedef struct layout {
    data_kind kind;
    bool shifted; /* rows at +16 bytes, as malloc and numpy give them */
    bool wide;    /* float64 */
} layout;

static const layout layouts[] = {
    {CLEAN, false, false}, {CLEAN, true, false}, {FAR, false, false},   {TAILS, false, false},
    {EDGE, false, false},  {CLEAN, false, true}, {PAIRS, false, false},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* Numbers of rows that a rule is timed for: ALWAYS, or USUAL: not 4, 31 and 33; SQUARE: of these no more than 128, because its cost grows like
 * K^2; PIPE: 8 and 32. */
enum { ALWAYS = 0, USUAL = 1, SQUARE = 2, PIPE = 3 };

/* One thing to time. */
typedef struct bench_case {
    const char *name;
    const char *spec; /* NULL: reading alone */
    int layout;       /* index into layouts, -1: every one */
    int when;
    bool report;
    bool weighted;
    bool memory;     /* with a state */
    const char *isa; /* REEF_ISA, NULL: the best */
} bench_case;

static const bench_case cases[] = {
    {.name = "mean", .spec = "mean", .layout = -1},
    {.name = "(reading)", .layout = -1},
    {.name = "median", .spec = "median"},
    {.name = "median, trust", .spec = "median", .report = true, .when = USUAL},
    {.name = "trimmed", .spec = "trimmed:f=20%"},
    {.name = "meamed", .spec = "meamed:f=20%", .when = USUAL},
    {.name = "ref", .spec = "ref"},
    {.name = "ref, trust", .spec = "ref", .report = true},
    {.name = "ref, weights", .spec = "ref", .weighted = true},
    {.name = "huber", .spec = "huber", .when = USUAL},
    {.name = "krum", .spec = "krum:f=20%", .when = SQUARE},
    {.name = "geomed", .spec = "geomed", .when = SQUARE},
    {.name = "vref", .spec = "vref", .when = SQUARE},
    {.name = "vref, blocks", .spec = "vref:block=4096", .when = SQUARE},
    {.name = "mref, sketch", .spec = "mref:sketch=64", .when = USUAL, .memory = true},
    {.name = "multikrum", .spec = "multikrum:f=20%", .when = PIPE},
    {.name = "bulyan", .spec = "bulyan:f=20%", .when = PIPE},
    {.name = "cclip", .spec = "cclip", .when = PIPE},
    {.name = "cclip, memory", .spec = "cclip", .when = PIPE, .memory = true},
    {.name = "cclip, median", .spec = "cclip:start=median", .when = PIPE},
    {.name = "nnm | mean", .spec = "nnm:f=20% | mean", .when = PIPE},
    {.name = "nnm | median", .spec = "nnm:f=20% | median", .when = PIPE},
    {.name = "nnm | ref", .spec = "nnm:f=20% | ref", .when = PIPE},
    {.name = "nnm | krum", .spec = "nnm:f=20% | krum:f=20%", .when = PIPE},
    {.name = "nnm | vref", .spec = "nnm:f=20% | vref", .when = PIPE},
    {.name = "nnm | cclip", .spec = "nnm:f=20% | cclip", .when = PIPE},
    {.name = "bucketing | mean", .spec = "bucketing | mean", .when = PIPE},
    {.name = "bucketing | median", .spec = "bucketing | median", .when = PIPE},
    {.name = "bucketing | ref", .spec = "bucketing | ref", .when = PIPE},
    {.name = "bucketing | krum", .spec = "bucketing | krum:f=20%", .when = PIPE},
    {.name = "bucketing | vref", .spec = "bucketing | vref", .when = PIPE},
    {.name = "bucketing | bulyan", .spec = "bucketing | bulyan:f=10%", .when = PIPE},
    {.name = "clip | ref", .spec = "clip:c=1 | ref", .when = PIPE},
    {.name = "arc | mean", .spec = "arc:f=20% | mean", .when = PIPE},
    {.name = "arc | median", .spec = "arc:f=20% | median", .when = PIPE},
    {.name = "arc | ref", .spec = "arc:f=20% | ref", .when = PIPE},
    {.name = "arc | krum", .spec = "arc:f=20% | krum:f=20%", .when = PIPE},
    {.name = "median, AVX2", .spec = "median", .when = USUAL, .isa = "avx2"},
    {.name = "ref, AVX2", .spec = "ref", .when = USUAL, .isa = "avx2"},
    {.name = "ref", .spec = "ref", .layout = 1},
    {.name = "ref", .spec = "ref", .layout = 2},
    {.name = "ref", .spec = "ref", .layout = 3},
    {.name = "ref", .spec = "ref", .layout = 4},
    {.name = "ref", .spec = "ref", .layout = 5},
    {.name = "krum", .spec = "krum:f=20%", .layout = 2, .when = SQUARE},
    {.name = "krum", .spec = "krum:f=20%", .layout = 6, .when = SQUARE},
};

/* A ratio aimed at, for so many rows of some data: over the mean, or over another case; with `other`, over the slower of the two. */
typedef struct goal {
    const char *name, *data, *over;
    ptrdiff_t rows;
    double avx2, avx512;
    const char *other;
} goal;

static const goal goals[] = {
    {"krum", "clean", "mean", 32, 2.4, 2.0, NULL},
    {"geomed", "clean", "mean", 32, 3.0, 2.6, NULL},
    {"vref", "clean", "mean", 32, 3.0, 2.6, NULL},
    {"vref, blocks", "clean", "mean", 32, 2.5, 2.0, NULL},
    {"mref, sketch", "clean", "mean", 32, 2.0, 1.8, NULL},
    {"ref", "clean", "mean", 32, 1.6, 1.4, NULL},
    {"ref, AVX2", "clean", "mean", 32, 1.6, 1.4, NULL},
    {"ref", "clean", "mean", 16, 2.0, 2.0, NULL},
    {"ref", "clean", "mean", 8, 2.4, 2.4, NULL},
    {"ref, trust", "clean", "ref", 32, 1.15, 1.15, NULL},
    {"median, trust", "clean", "median", 32, 1.25, 1.25, NULL},
    {"median, trust", "clean", "median", 8, 1.5, 1.5, NULL},
    {"ref", "20% at edge", "mean", 32, 2.0, 2.0, NULL},
    /* within twice the slower part: for pre-aggregators that look at distances that is krum, whose pass over the rows is the same */
    {"multikrum", "clean", "krum", 32, 2, 2, NULL},
    {"bulyan", "clean", "krum", 32, 2, 2, "meamed"},
    {"cclip", "clean", "krum", 32, 2, 2, NULL},
    {"cclip, memory", "clean", "krum", 32, 2, 2, NULL},
    {"cclip, median", "clean", "krum", 32, 2, 2, "median"},
    {"nnm | mean", "clean", "krum", 32, 2, 2, "mean"},
    {"nnm | median", "clean", "krum", 32, 2, 2, "median"},
    {"nnm | ref", "clean", "krum", 32, 2, 2, "ref"},
    {"nnm | krum", "clean", "krum", 32, 2, 2, "krum"},
    {"nnm | vref", "clean", "krum", 32, 2, 2, "vref"},
    {"nnm | cclip", "clean", "krum", 32, 2, 2, "cclip"},
    {"arc | mean", "clean", "krum", 32, 2, 2, "mean"},
    {"arc | median", "clean", "krum", 32, 2, 2, "median"},
    {"arc | ref", "clean", "krum", 32, 2, 2, "ref"},
    {"arc | krum", "clean", "krum", 32, 2, 2, "krum"},
    {"clip | ref", "clean", "krum", 32, 2, 2, "ref"},
    {"bucketing | mean", "clean", "mean", 32, 2, 2, "mean"},
    {"bucketing | median", "clean", "mean", 32, 2, 2, "median"},
    {"bucketing | ref", "clean", "mean", 32, 2, 2, "ref"},
    {"bucketing | krum", "clean", "mean", 32, 2, 2, "krum"},
    {"bucketing | vref", "clean", "mean", 32, 2, 2, "vref"},
    {"bucketing | bulyan", "clean", "mean", 32, 2, 2, "bulyan"},
};
enum { GOALS = sizeof goals / sizeof goals[0] };
enum { CASES = sizeof cases / sizeof cases[0], MEAN = 0 };

typedef struct bench {
    ptrdiff_t k;
    ptrdiff_t m; /* numbers in a row: half as many of float64 */
    int layout;  /* now in memory */
    int threads;
    char *memory;  /* K rows, one behind the other with a gap */
    size_t stride; /* bytes from row to row */
    float *noise;  /* a table of normal numbers, and one of heavy-tailed ones behind it */
    double *out;
    double times[CASES][REPEATS_MAX];
    ptrdiff_t passes[CASES]; /* over the rows */
    const char *isa[CASES];  /* instruction set of the kernels */
    int repeats;
    bool cpu;         /* processor time per thread, not wall-clock time */
    const char *only; /* rules whose name contains it */
    char *usual_isa;  /* REEF_ISA as it was, NULL: not set */
    FILE *json;
} bench;

enum { NOISE = 1 << 20 };

static double uniform(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static void make_noise(float *noise)
{
    uint64_t state = 7;
    for (ptrdiff_t i = 0; i < NOISE; i++) {
        double normal = sqrt(-2 * log(uniform(&state))) * cos(6.283185307179586 * uniform(&state));
        noise[i] = (float)normal;
        noise[NOISE + i] = (float)(normal / sqrt(-log(uniform(&state)))); /* Student t, 2 degrees of freedom */
    }
}

/* Centre 0.3 N(0,1) per coordinate, agents 0.01 N(0,1) around it; what malicious rows and tails do depends on the kind. */
static float value_of(const bench *b, data_kind kind, ptrdiff_t l, ptrdiff_t m)
{
    float centre = 0.3F * b->noise[(m * 7919) & (NOISE - 1)];
    float own = b->noise[(kind == TAILS ? NOISE : 0) + ((m + l * 77773) & (NOISE - 1))];
    bool malicious = l < b->k / 5;
    if (kind == FAR && malicious) {
        return centre + 1 + 0.01F * (float)(l % 30);
    }
    if (kind == PAIRS) { /* every row has another close to it */
        return centre + 0.01F * b->noise[(m + l / 2 * 77773) & (NOISE - 1)] + 1e-6F * own;
    }
    if (kind == EDGE && malicious) {
        return centre + 0.01F * (4.2F + 1.8F * (float)((m * 31 + l * 17) % 97) / 97);
    }
    return centre + 0.01F * own;
}

static size_t width(const bench *b)
{
    return layouts[b->layout].wide ? sizeof(double) : sizeof(float);
}

static char *row_of(const bench *b, ptrdiff_t l)
{
    return b->memory + (size_t)l * b->stride + (layouts[b->layout].shifted ? 16 : 0);
}

static void fill(bench *b)
{
    const layout *form = &layouts[b->layout];
    for (ptrdiff_t l = 0; l < b->k; l++) {
        char *row = row_of(b, l);
        for (ptrdiff_t m = 0; m < b->m; m++) {
            float value = value_of(b, form->kind, l, m);
            double wide = (double)value;
            memcpy(row + (size_t)m * width(b), form->wide ? (const void *)&wide : &value, width(b));
        }
    }
}

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(const bench *b)
{
    return b->cpu ? seconds_of(CLOCK_PROCESS_CPUTIME_ID) / b->threads : seconds_of(CLOCK_MONOTONIC);
}

static void check(reef_status status, const reef_error *error)
{
    if (status != REEF_OK) {
        fprintf(stderr, "bench_rules: %s\n", error->text);
        exit(1);
    }
}

/* ---- reading: what memory can do ---- */

/* A part of every row for one thread. */
typedef struct reading {
    const bench *b;
    ptrdiff_t from, to; /* 64-bit words */
    uint64_t sink;
} reading;

/* One row after the other, 256 bytes at a time, so that the processor's own prefetching does its best. */
static void *read_part(void *argument)
{
    enum { WORDS = 32 };
    reading *r = argument;
    uint64_t sums[WORDS] = {0};
    for (ptrdiff_t l = 0; l < r->b->k; l++) {
        const char *row = row_of(r->b, l);
        for (ptrdiff_t i = r->from; i + WORDS <= r->to; i += WORDS) {
            uint64_t words[WORDS];
            memcpy(words, row + i * (ptrdiff_t)sizeof(uint64_t), sizeof words);
            for (int j = 0; j < WORDS; j++) {
                sums[j] ^= words[j];
            }
        }
    }
    for (int j = 0; j < WORDS; j++) {
        r->sink ^= sums[j];
    }
    return NULL;
}

/* All rows read once by all threads of the configuration. */
static void read_rows(const bench *b)
{
    pthread_t threads[THREADS_MAX] = {0};
    reading parts[THREADS_MAX] = {{.b = b}};
    ptrdiff_t words = b->m * (ptrdiff_t)width(b) / (ptrdiff_t)sizeof(uint64_t);
    for (int t = 0; t < b->threads; t++) {
        parts[t] = (reading){b, words * t / b->threads / 32 * 32, words * (t + 1) / b->threads / 32 * 32, 0};
        if (t > 0 && pthread_create(&threads[t], NULL, read_part, &parts[t]) != 0) {
            fprintf(stderr, "bench_rules: no thread\n");
            exit(1);
        }
    }
    read_part(&parts[0]);
    volatile uint64_t sink = parts[0].sink;
    for (int t = 1; t < b->threads; t++) {
        pthread_join(threads[t], NULL);
        sink ^= parts[t].sink;
    }
    (void)sink; /* the sums are used, so that no compiler drops the reading */
}

/* ---- running ---- */

/* Everything one case needs, made before its first run. */
typedef struct runner {
    reef_agg *agg;
    reef_plan *plan;
    reef_report *report;
    reef_state *state;
    double weights[ROWS_MAX];
    const void *rows[ROWS_MAX];
    reef_input input;
} runner;

static void prepare(bench *b, int i, reef_context *context, runner *r)
{
    const bench_case *c = &cases[i];
    reef_error error;
    *r = (runner){0};
    if (!c->spec) {
        return;
    }
    check(reef_agg_create(context, &r->agg, c->spec, &error), &error);
    reef_shape shape = {
        .rows = b->k, .segments = 1, .lengths = &b->m, .dtype = layouts[b->layout].wide ? REEF_F64 : REEF_F32};
    if (c->isa) {
        setenv("REEF_ISA", c->isa, 1);
    }
    b->isa[i] = reef_system_facts().instructions;
    check(reef_plan_create(&r->plan, r->agg, &shape, &error), &error);
    if (b->usual_isa) {
        setenv("REEF_ISA", b->usual_isa, 1);
    } else {
        unsetenv("REEF_ISA");
    }
    if (c->report) {
        check(reef_report_create(NULL, &r->report, b->k, &error), &error);
    }
    for (ptrdiff_t l = 0; l < b->k; l++) {
        r->rows[l] = row_of(b, l);
        r->weights[l] = 1 + (double)(l % 5);
    }
    if (c->memory) {
        check(reef_state_create(&r->state, r->agg, &shape, &error), &error);
    }
    r->input = (reef_input){.rows = r->rows, .weights = c->weighted ? r->weights : NULL, .state = r->state};
    b->passes[i] = reef_plan_passes(r->plan) + 1;
}

static void run(const bench *b, runner *r)
{
    reef_error error;
    if (r->plan) {
        check(reef_plan_apply(r->plan, &r->input, b->out, r->report, &error), &error);
    } else {
        read_rows(b);
    }
}

static void finish(runner *r)
{
    reef_report_destroy(&r->report);
    reef_state_destroy(&r->state);
    reef_plan_destroy(&r->plan);
    reef_agg_destroy(&r->agg);
}

static bool wanted(const bench *b, int i)
{
    const bench_case *c = &cases[i];
    bool unusual = b->k < 8 || b->k == 31 || b->k == 33;
    if (c->layout == -1) {
        return true;
    }
    if (c->layout != b->layout || (b->only && !strstr(c->name, b->only))) {
        return false;
    }
    if (c->when == PIPE) {
        return b->k == 8 || b->k == 32;
    }
    return c->when == ALWAYS || (!unusual && (c->when == USUAL || b->k <= 128));
}

/* All cases with the same data in one go; the mean of that data is the base. */
static int run_layout(bench *b, reef_context *context, int *chosen)
{
    static runner runners[CASES];
    int count = 0;
    for (int i = 0; i < CASES; i++) {
        if (wanted(b, i)) {
            prepare(b, i, context, &runners[i]);
            chosen[count++] = i;
        }
    }
    for (int repeat = -1; repeat < b->repeats; repeat++) { /* one round to warm up */
        for (int j = 0; j < count; j++) {
            double start = now(b);
            run(b, &runners[chosen[j]]);
            b->times[chosen[j]][repeat < 0 ? 0 : repeat] = now(b) - start;
        }
    }
    for (int j = 0; j < count; j++) {
        finish(&runners[chosen[j]]);
    }
    return count;
}

/* ---- the table ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double ratio_of(const bench *b, int i)
{
    return b->times[i][0] / b->times[MEAN][0];
}

/* The same of another case with the same data, 0: it was not run. */
static double ratio_named(const bench *b, const char *name)
{
    for (int j = 0; j < CASES; j++) {
        if (strcmp(cases[j].name, name) == 0 && wanted(b, j)) {
            return ratio_of(b, j);
        }
    }
    return 0;
}

/* The goal of a line as a multiple of the mean, 0: none. One over another case is taken from what that one took in this run. */
static double goal_of(const bench *b, int i, const char *data)
{
    for (int g = 0; g < GOALS; g++) {
        if (goals[g].rows != b->k || strcmp(goals[g].name, cases[i].name) != 0 || strcmp(goals[g].data, data) != 0) {
            continue;
        }
        double ratio = strncmp(b->isa[i], "avx512", 6) == 0 ? goals[g].avx512 : goals[g].avx2;
        double over = ratio_named(b, goals[g].over);
        double other = goals[g].other ? ratio_named(b, goals[g].other) : 0;
        return ratio * (other > over ? other : over);
    }
    return 0;
}

static void print_line(const bench *b, int i)
{
    const bench_case *c = &cases[i];
    const layout *form = &layouts[b->layout];
    const double *times = b->times[i];
    double least = ratio_of(b, i);
    double middle = times[b->repeats / 2] / b->times[MEAN][b->repeats / 2];
    double nanoseconds = 1e9 * times[0] / (double)b->m;
    double gigabytes = 1e-9 * (double)width(b) * (double)(b->k * b->m) / times[0];
    char data[40];
    snprintf(data, sizeof data, "%s%s%s", data_names[form->kind], form->shifted ? ", +16 bytes" : "",
             form->wide ? ", float64" : "");
    char aim[16] = "";
    double aimed = goal_of(b, i, data);
    if (aimed > 0) {
        snprintf(aim, sizeof aim, "%.2fx", aimed);
    }
    printf("%5td  %7d  %-18s  %-18s  %-8s  %6.2fx  %6s  %6.2fx  %9.2f  %6.1f", b->k, b->threads, c->name, data,
           b->isa[i] ? b->isa[i] : "", least, aim, middle, nanoseconds, gigabytes);
    printf(b->passes[i] > 1 ? "  %6td\n" : "\n", b->passes[i]);
    fflush(stdout);
    if (b->json) {
        fprintf(b->json,
                "{\"rows\": %td, \"threads\": %d, \"case\": \"%s\", \"spec\": \"%s\", \"data\": \"%s\", \"isa\": "
                "\"%s\", \"passes\": "
                "%td, \"ratio_min\": %.4f, \"goal\": %.4f, \"ratio_median\": %.4f, \"ns_per_coordinate\": %.4f, "
                "\"gigabytes_per_second\": %.3f}\n",
                b->k, b->threads, c->name, c->spec ? c->spec : "", data, b->isa[i] ? b->isa[i] : "", b->passes[i],
                least, aimed, middle, nanoseconds, gigabytes);
        fflush(b->json);
    }
}

static void run_threads(bench *b)
{
    reef_context *context = NULL;
    reef_error error;
    int chosen[CASES];
    check(reef_context_create(&context, NULL, &error), &error);
    check(reef_context_set_threads(context, b->threads, &error), &error);
    fprintf(stderr, "bench_rules: %td rows, layout %d of %d, %d threads\n", b->k, b->layout + 1, LAYOUTS, b->threads);
    int count = run_layout(b, context, chosen);
    for (int j = 0; j < count; j++) {
        qsort(b->times[chosen[j]], (size_t)b->repeats, sizeof(double), by_value);
    }
    for (int j = 0; j < count; j++) {
        print_line(b, chosen[j]);
    }
    reef_context_destroy(&context);
}

static void run_rows(bench *b, ptrdiff_t k, double bytes, int most_threads)
{
    ptrdiff_t numbers = (ptrdiff_t)(bytes / sizeof(float) / (double)k) / 8192 * 8192;
    numbers = numbers < 8192 ? 8192 : numbers;
    b->k = k;
    /* an odd multiple of 64: no two rows share their cache sets */
    b->stride = ((size_t)numbers * sizeof(float) + 16384) / 128 * 128 + 64;
    b->memory = aligned_alloc(64, (b->stride * (size_t)k + 4096) / 64 * 64);
    b->out = aligned_alloc(64, (size_t)numbers * sizeof(float) + 64);
    if (!b->memory || !b->out) {
        fprintf(stderr, "bench_rules: no memory for %td rows\n", k);
        exit(1);
    }
    for (b->layout = 0; b->layout < LAYOUTS; b->layout++) {
        b->m = layouts[b->layout].wide ? numbers / 2 : numbers;
        fill(b);
        for (b->threads = 1; b->threads <= most_threads; b->threads += most_threads > 1 ? most_threads - 1 : 1) {
            run_threads(b);
        }
    }
    free(b->memory);
    free(b->out);
}

/* A positive number, or 0 if the text is none. */
static long number_of(const char *text)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);
    return *text && !*end && number > 0 ? number : 0;
}

static long number_after(int argc, char **argv, int *i)
{
    if (*i + 1 >= argc || !number_of(argv[*i + 1])) {
        fprintf(stderr, "bench_rules: %s needs a positive number\n", argv[*i]);
        exit(2);
    }
    return number_of(argv[++*i]);
}

static ptrdiff_t processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (count > THREADS_MAX ? THREADS_MAX : (ptrdiff_t)count);
}

static _Noreturn void explain(void)
{
    fprintf(
        stderr,
        "usage: bench_rules [--megabytes N] [--repeats N] [--cpu] [--rules TEXT] [--json FILE] [K...], K up to %d\n",
        ROWS_MAX);
    exit(2);
}

int main(int argc, char **argv)
{
    static const ptrdiff_t usual[] = {4, 8, 16, 31, 32, 33, 64, 128, 512, 1024};
    static bench b;
    double bytes = 0.5e9;
    ptrdiff_t rows[64];
    int count = 0;
    b.repeats = 7;
    const char *isa = getenv("REEF_ISA");
    b.usual_isa = isa ? strdup(isa) : NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--megabytes") == 0) {
            bytes = 1e6 * (double)number_after(argc, argv, &i);
        } else if (strcmp(argv[i], "--repeats") == 0) {
            b.repeats = (int)number_after(argc, argv, &i);
            b.repeats = b.repeats > REPEATS_MAX ? REPEATS_MAX : b.repeats;
        } else if (strcmp(argv[i], "--cpu") == 0) {
            b.cpu = true;
        } else if (strcmp(argv[i], "--rules") == 0 && i + 1 < argc) {
            b.only = argv[++i];
        } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            b.json = fopen(argv[++i], "w");
        } else if (number_of(argv[i]) >= 1 && number_of(argv[i]) <= ROWS_MAX && count < 64) {
            rows[count++] = (ptrdiff_t)number_of(argv[i]);
        } else {
            explain();
        }
    }
    b.noise = malloc(sizeof(float) * 2 * NOISE);
    if (!b.noise) {
        return 1;
    }
    make_noise(b.noise);
    printf("Time of each rule over the time of the mean of the same rows, %.0f MB.\n\n", 1e-6 * bytes);
    printf("%5s  %7s  %-18s  %-18s  %-8s  %7s  %6s  %7s  %9s  %6s  %6s\n", "K", "threads", "rule", "data", "ISA", "min",
           "goal", "median", "ns/coord", "GB/s", "passes");
    for (int i = 0; i < (count ? count : (int)(sizeof usual / sizeof usual[0])); i++) {
        run_rows(&b, count ? rows[i] : usual[i], bytes, (int)processors());
    }
    free(b.noise);
    free(b.usual_isa);
    return b.json && fclose(b.json) != 0;
}
