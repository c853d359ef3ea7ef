/* Speed of the rules against the mean of the same rows: what robustness costs in time.
 *
 * Each line is one configuration (number of rows K, threads, data, alignment). In every repeat all rules run once, one after the
 * other, the mean among them, so that what else the machine does hits them alike; reported is the time of a rule over that of the mean, from
 * the smallest times and from the medians. Times are wall-clock times of the public call reef_plan_apply with its default options.
 *
 * usage: bench_rules [--megabytes N] [--repeats N] [--json FILE] [K...]
 */
#include <reef/reef.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS_MAX = 1024, REPEATS_MAX = 99, CASES_MAX = 24 };

typedef enum data_kind { CLEAN, FAR, TAILS, EDGE } data_kind;
static const char *const data_names[] = {"clean", "20% far", "t2 tails", "20% at edge"};

/* One thing to time. */
typedef struct bench_case {
    const char *name;
    const char *spec;
    data_kind data;
    bool shifted; /* rows at +16 bytes, as malloc and numpy give them */
    bool report;
    bool weighted;
    ptrdiff_t rows_max; /* skipped above: its cost grows like the square of K */
} bench_case;

static const bench_case cases[] = {
    {"mean", "mean", CLEAN, false, false, false, ROWS_MAX},
    {"median", "median", CLEAN, false, false, false, ROWS_MAX},
    {"median with trust", "median", CLEAN, false, true, false, ROWS_MAX},
    {"trimmed", "trimmed:f=20%", CLEAN, false, false, false, ROWS_MAX},
    {"meamed", "meamed:f=20%", CLEAN, false, false, false, ROWS_MAX},
    {"ref", "ref", CLEAN, false, false, false, ROWS_MAX},
    {"ref", "ref", FAR, false, false, false, ROWS_MAX},
    {"ref", "ref", TAILS, false, false, false, ROWS_MAX},
    {"ref", "ref", EDGE, false, false, false, ROWS_MAX},
    {"ref, rows at +16 bytes", "ref", CLEAN, true, false, false, ROWS_MAX},
    {"ref with trust", "ref", CLEAN, false, true, false, ROWS_MAX},
    {"ref, unequal weights", "ref", CLEAN, false, false, true, ROWS_MAX},
    {"huber", "huber", CLEAN, false, false, false, ROWS_MAX},
    {"krum", "krum:f=20%", CLEAN, false, false, false, 128},
    {"geomed", "geomed", CLEAN, false, false, false, 128},
    {"vref", "vref", CLEAN, false, false, false, 128},
    {"vref:block=4096", "vref:block=4096", CLEAN, false, false, false, 128},
};
enum { CASES = sizeof cases / sizeof cases[0] };

typedef struct bench {
    ptrdiff_t k;
    ptrdiff_t m;
    char *memory;  /* K rows, one behind the other with a gap */
    size_t stride; /* bytes from row to row */
    float *noise;  /* a table of normal numbers, and one of heavy-tailed ones behind it */
    float *out;
    double times[CASES][REPEATS_MAX];
    int repeats;
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

/* Centre 0.3 N(0,1) per coordinate, agents 0.01 N(0,1) around it; what liars and tails do depends on the kind. */
static float value_of(const bench *b, data_kind kind, ptrdiff_t l, ptrdiff_t m)
{
    float centre = 0.3F * b->noise[(m * 7919) & (NOISE - 1)];
    float own = b->noise[(kind == TAILS ? NOISE : 0) + ((m + l * 77773) & (NOISE - 1))];
    bool liar = l < b->k / 5;
    if (kind == FAR && liar) {
        return centre + 1 + 0.01F * (float)(l % 30);
    }
    if (kind == EDGE && liar) {
        return centre + 0.01F * (4.2F + 1.8F * (float)((m * 31 + l * 17) % 97) / 97);
    }
    return centre + 0.01F * own;
}

static const void *row_of(const bench *b, ptrdiff_t l, bool shifted)
{
    return b->memory + (size_t)l * b->stride + (shifted ? 16 : 0);
}

static void fill(bench *b, data_kind kind, bool shifted)
{
    for (ptrdiff_t l = 0; l < b->k; l++) {
        char *row = b->memory + (size_t)l * b->stride + (shifted ? 16 : 0);
        for (ptrdiff_t m = 0; m < b->m; m++) {
            float value = value_of(b, kind, l, m);
            memcpy(row + m * (ptrdiff_t)sizeof value, &value, sizeof value);
        }
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(reef_status status, const reef_error *error)
{
    if (status != REEF_OK) {
        fprintf(stderr, "bench_rules: %s\n", error->text);
        exit(1);
    }
}

/* Everything one case needs, made before its first run. */
typedef struct runner {
    reef_agg *agg;
    reef_plan *plan;
    reef_report *report;
    double weights[ROWS_MAX];
    const void *rows[ROWS_MAX];
    reef_input input;
} runner;

static void prepare(const bench *b, const bench_case *c, reef_context *context, runner *r)
{
    reef_error error;
    *r = (runner){0};
    check(reef_agg_create_in(context, &r->agg, c->spec, &error), &error);
    reef_shape shape = {.rows = b->k, .segments = 1, .lengths = &b->m, .dtype = REEF_F32};
    check(reef_plan_create(&r->plan, r->agg, &shape, &error), &error);
    if (c->report) {
        check(reef_report_create(&r->report, b->k, &error), &error);
    }
    for (ptrdiff_t l = 0; l < b->k; l++) {
        r->rows[l] = row_of(b, l, c->shifted);
        r->weights[l] = 1 + (double)(l % 5);
    }
    r->input = (reef_input){.rows = r->rows, .weights = c->weighted ? r->weights : NULL};
}

static void finish(runner *r)
{
    reef_report_destroy(&r->report);
    reef_plan_destroy(&r->plan);
    reef_agg_destroy(&r->agg);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the times of a case; the smallest stands first, the median in the middle. */
static void sort_times(bench *b, int i)
{
    qsort(b->times[i], (size_t)b->repeats, sizeof(double), by_value);
}

static void print_line(bench *b, int i, int base, int threads)
{
    const bench_case *c = &cases[i];
    double least = b->times[i][0] / b->times[base][0];
    double middle = b->times[i][b->repeats / 2] / b->times[base][b->repeats / 2];
    double nanoseconds = 1e9 * b->times[i][0] / (double)b->m;
    double gigabytes = 4e-9 * (double)(b->k * b->m) / b->times[i][0];
    printf("%5td  %7d  %-22s  %-11s  %6.2fx  %6.2fx  %9.2f  %7.1f\n", b->k, threads, c->name, data_names[c->data],
           least, middle, nanoseconds, gigabytes);
    if (b->json) {
        fprintf(b->json,
                "{\"rows\": %td, \"threads\": %d, \"case\": \"%s\", \"spec\": \"%s\", \"data\": \"%s\", \"ratio_min\": "
                "%.4f, "
                "\"ratio_median\": %.4f, \"ns_per_coordinate\": %.4f, \"gigabytes_per_second\": %.3f}\n",
                b->k, threads, c->name, c->spec, data_names[c->data], least, middle, nanoseconds, gigabytes);
    }
    fflush(stdout);
}

/* Reads all bytes once, as fast as one thread can: what the mean is measured against. */
static double read_bandwidth(const bench *b)
{
    double best = 1e9;
    for (int repeat = 0; repeat < 3; repeat++) {
        uint64_t sums[8] = {0};
        double start = now();
        for (ptrdiff_t l = 0; l < b->k; l++) {
            const uint64_t *words = (const uint64_t *)(const void *)(b->memory + (size_t)l * b->stride);
            for (ptrdiff_t i = 0; i + 8 <= b->m / 2; i += 8) {
                for (int j = 0; j < 8; j++) {
                    sums[j] ^= words[i + j];
                }
            }
        }
        double took = now() - start;
        volatile uint64_t sink = sums[0] ^ sums[1] ^ sums[2] ^ sums[3] ^ sums[4] ^ sums[5] ^ sums[6] ^ sums[7];
        (void)sink;
        best = took < best ? took : best;
    }
    return 4e-9 * (double)(b->k * b->m) / best;
}

/* All cases with the same data in one go; the mean of that data is the base. */
static void run_data(bench *b, reef_context *context, int threads, data_kind kind, bool shifted)
{
    static runner runners[CASES];
    int chosen[CASES];
    int count = 0;
    for (int i = 0; i < CASES; i++) {
        const bench_case *c = &cases[i];
        bool base = i == 0;
        if (base || (c->data == kind && c->shifted == shifted && b->k <= c->rows_max)) {
            bench_case actual = *c;
            actual.shifted = shifted;
            prepare(b, &actual, context, &runners[i]);
            chosen[count++] = i;
        }
    }
    for (int repeat = -1; repeat < b->repeats; repeat++) { /* one round to warm up */
        for (int j = 0; j < count; j++) {
            runner *r = &runners[chosen[j]];
            reef_error error;
            double start = now();
            check(reef_plan_apply(r->plan, &r->input, b->out, r->report, &error), &error);
            if (repeat >= 0) {
                b->times[chosen[j]][repeat] = now() - start;
            }
        }
    }
    for (int j = 0; j < count; j++) {
        sort_times(b, chosen[j]);
        bool repeated_base = chosen[j] == 0 && (kind != CLEAN || shifted);
        if (!repeated_base) {
            print_line(b, chosen[j], 0, threads);
        }
        finish(&runners[chosen[j]]);
    }
}

static void run_rows(bench *b, ptrdiff_t k, double bytes, const int *threads, int thread_counts)
{
    b->k = k;
    b->m = (ptrdiff_t)(bytes / 4 / (double)k) / 4096 * 4096;
    b->m = b->m < 4096 ? 4096 : b->m;
    b->stride =
        ((size_t)b->m * 4 + 16384) / 128 * 128 + 64; /* an odd multiple of 64: no two rows share their cache sets */
    b->memory = aligned_alloc(64, (b->stride * (size_t)k + 4096) / 64 * 64);
    b->out = aligned_alloc(64, (size_t)b->m * 4 + 64);
    if (!b->memory || !b->out) {
        fprintf(stderr, "bench_rules: no memory for %td rows\n", k);
        exit(1);
    }
    for (data_kind kind = CLEAN; kind <= EDGE; kind++) {
        for (int shifted = 0; shifted < (kind == CLEAN ? 2 : 1); shifted++) {
            fill(b, kind, shifted);
            if (kind == CLEAN && !shifted) {
                printf("\n%td rows of %td numbers, %.2f GB; one thread reads %.1f GB/s\n", k, b->m,
                       4e-9 * (double)(k * b->m), read_bandwidth(b));
                printf("%5s  %7s  %-22s  %-11s  %7s  %7s  %9s  %7s\n", "K", "threads", "rule", "data", "min", "median",
                       "ns/coord", "GB/s");
            }
            for (int t = 0; t < thread_counts; t++) {
                reef_context *context = NULL;
                reef_error error;
                check(reef_context_create(&context, NULL, &error), &error);
                check(reef_context_set_threads(context, threads[t], &error), &error);
                run_data(b, context, threads[t], kind, shifted);
                reef_context_destroy(&context);
            }
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

int main(int argc, char **argv)
{
    static const ptrdiff_t usual[] = {4, 8, 16, 31, 32, 33, 64, 128, 512, 1024};
    static bench b;
    static const int threads[] = {1, 0};
    double bytes = 0.5e9;
    ptrdiff_t wanted[64];
    int count = 0;
    b.repeats = 7;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--megabytes") == 0) {
            bytes = 1e6 * (double)number_after(argc, argv, &i);
        } else if (strcmp(argv[i], "--repeats") == 0) {
            b.repeats = (int)number_after(argc, argv, &i);
            b.repeats = b.repeats > REPEATS_MAX ? REPEATS_MAX : b.repeats;
        } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            b.json = fopen(argv[++i], "w");
        } else if (number_of(argv[i]) >= 1 && number_of(argv[i]) <= ROWS_MAX && count < 64) {
            wanted[count++] = (ptrdiff_t)number_of(argv[i]);
        } else {
            fprintf(stderr, "usage: bench_rules [--megabytes N] [--repeats N] [--json FILE] [K...], K up to %d\n",
                    ROWS_MAX);
            return 2;
        }
    }
    b.noise = malloc(sizeof(float) * 2 * NOISE);
    if (!b.noise) {
        return 1;
    }
    make_noise(b.noise);
    printf("Time of each rule over the time of the mean of the same rows, float32 (threads 0: all processors).\n");
    for (int i = 0; i < (count ? count : (int)(sizeof usual / sizeof usual[0])); i++) {
        run_rows(&b, count ? wanted[i] : usual[i], bytes, threads, 2);
    }
    free(b.noise);
    return b.json && fclose(b.json) != 0;
}
