/* Short vectors: what one call costs when there are few numbers and many calls, as with sensors.
 *
 * Each line is one rule on K = 8 rows of M float32 numbers, through a plan that is made once; all of it stays in the first cache. Reported
 * is the smallest processor time of a call over batches of calls, and beside it that of a plain loop over the same rows that takes their
 * mean: what the arithmetic alone would cost without any checks. The goal of a call is little more than its own arithmetic.
 *
 * usage: bench_short [--repeats N] [--json FILE]     (other flags are for other benchmarks and are ignored)
 *   --repeats N     batches, 50 unless told
 *   --json FILE     each line also there, as JSON
 */
#include <reef/reef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 8, LONGEST = 64, BATCH = 500 };

static const ptrdiff_t lengths[] = {4, 16, 64};
static const char *const specs[] = {"mean", "median", "trimmed:f=20%", "ref", "krum:f=20%", "vref", "mref"};
enum { LENGTHS = sizeof lengths / sizeof lengths[0], SPECS = sizeof specs / sizeof specs[0] };

typedef struct bench {
    float data[ROWS][LONGEST];
    float out[LONGEST];
    const void *rows[ROWS];
    ptrdiff_t length;
    reef_agg *agg;
    reef_plan *plan; /* NULL: the plain loop */
    reef_state *state;
    int repeats;
    FILE *json;
} bench;

static void check(reef_status status, const reef_error *error)
{
    if (status != REEF_OK) {
        fprintf(stderr, "bench_short: %s\n", error->text);
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fill(bench *b)
{
    uint64_t state = 1;
    for (int l = 0; l < ROWS; l++) {
        b->rows[l] = b->data[l];
        for (int m = 0; m < LONGEST; m++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            b->data[l][m] = (float)(state >> 40) * 0x1p-24F;
        }
    }
}

/* Not inlined, so that the compiler cannot know that all calls do the same. */
static __attribute__((noinline)) void plain_mean(bench *b)
{
    for (ptrdiff_t m = 0; m < b->length; m++) {
        float sum = 0;
        for (int l = 0; l < ROWS; l++) {
            sum += ((const float *)b->rows[l])[m];
        }
        b->out[m] = sum / ROWS;
    }
}

static void call(bench *b)
{
    reef_error error;
    reef_input input = {.rows = b->rows, .state = b->state};
    if (b->plan) {
        check(reef_plan_apply(b->plan, &input, b->out, NULL, &error), &error);
    } else {
        plain_mean(b);
    }
}

/* Nanoseconds per call. */
static double measure(bench *b)
{
    double least = 1e9;
    for (int repeat = 0; repeat < b->repeats; repeat++) {
        double start = now();
        for (int i = 0; i < BATCH; i++) {
            call(b);
        }
        double time = 1e9 * (now() - start) / BATCH;
        least = time < least ? time : least;
    }
    return least;
}

static double measure_rule(bench *b, const char *spec, reef_context *context)
{
    reef_error error;
    reef_shape shape = {.rows = ROWS, .segments = 1, .lengths = &b->length, .dtype = REEF_F32};
    check(reef_agg_create(context, &b->agg, spec, &error), &error);
    check(reef_plan_create(&b->plan, b->agg, &shape, &error), &error);
    if (strcmp(spec, "mref") == 0) {
        check(reef_state_create(&b->state, b->agg, &shape, &error), &error);
    }
    double time = measure(b);
    reef_state_destroy(&b->state);
    reef_plan_destroy(&b->plan);
    reef_agg_destroy(&b->agg);
    return time;
}

static void measure_line(bench *b, const char *spec, reef_context *context)
{
    const char *isa = reef_system_facts().instructions;
    double plain = measure(b);
    double time = measure_rule(b, spec, context);
    printf("%-14s  %4td  %9.0f  %10.1f  %9.1fx\n", spec, b->length, time, plain, time / plain);
    fflush(stdout);
    if (b->json) {
        fprintf(b->json, "{\"rows\": %d, \"length\": %td, \"spec\": \"%s\", \"isa\": \"%s\", ", ROWS, b->length, spec,
                isa);
        fprintf(b->json, "\"ns_per_call\": %.2f, \"ns_plain_mean\": %.2f}\n", time, plain);
    }
}

int main(int argc, char **argv)
{
    static bench b;
    reef_context *context = NULL;
    reef_error error;
    b.repeats = 50;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--repeats") == 0) {
            b.repeats = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--json") == 0) {
            b.json = fopen(argv[i + 1], "w");
        }
    }
    fill(&b);
    check(reef_context_create(&context, NULL, &error), &error);
    check(reef_context_set_threads(context, 1, &error), &error);
    printf("Short vectors, %d rows, %s: nanoseconds per prepared call\n\n%-14s  %4s  %9s  %10s  %10s\n", ROWS,
           reef_system_facts().instructions, "rule", "M", "call", "plain mean", "over it");
    for (int s = 0; s < SPECS; s++) {
        for (int i = 0; i < LENGTHS; i++) {
            b.length = lengths[i];
            measure_line(&b, specs[s], context);
        }
    }
    reef_context_destroy(&context);
    return b.json && fclose(b.json) != 0;
}
