/* reef bench: what each rule costs on this machine, as a multiple of the mean of the same rows. */
#include "commands.h"

#include <math.h>
#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS_MAX = 1024, REPEATS_MAX = 99, SPEC_SIZE = 64 };

typedef struct request {
    long rows, length, repeats, threads;
} request;

enum { OPT_REPEATS = 256, OPT_THREADS };
static const option_row options[] = {
    {'k', "rows", "K", "vectors to combine, 3 to 1024; default: 32", VALUE_TEXT, NULL},
    {'m', "length", "M", "numbers per vector; default: 500000", VALUE_TEXT, NULL},
    {OPT_REPEATS, "repeats", "N", "the shortest time of so many counts; default: 5", VALUE_TEXT, NULL},
    {OPT_THREADS, "threads", "N", "default: all processors", VALUE_TEXT, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    request *r = user;
    switch (code) {
    case 'k':
        return read_whole(value, 3, ROWS_MAX, &r->rows)
                   ? EXIT_DONE
                   : bad_usage(&command_bench, "--rows takes 3 to 1024, not", value);
    case 'm':
        return read_whole(value, 1, 100000000, &r->length)
                   ? EXIT_DONE
                   : bad_usage(&command_bench, "--length takes 1 to 100000000, not", value);
    case OPT_REPEATS:
        return read_whole(value, 1, REPEATS_MAX, &r->repeats)
                   ? EXIT_DONE
                   : bad_usage(&command_bench, "--repeats takes 1 to 99, not", value);
    default:
        return read_whole(value, 0, REEF_THREADS_MAX, &r->threads)
                   ? EXIT_DONE
                   : bad_usage(&command_bench, "--threads takes 0 to 1024, not", value);
    }
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Nearly Gaussian numbers: sums of four uniform ones. */
static void fill(float *data, size_t count)
{
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int j = 0; j < 4; j++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            sum += (float)(state >> 40) * 0x1p-24F - 0.5F;
        }
        data[i] = sum;
    }
}

/* Shortest of some times; negative with a message if the rule cannot do it. */
static double time_rule(reef_context *context, const request *r, const char *spec, const void *const *rows, float *out,
                        reef_error *error)
{
    reef_agg *agg = NULL;
    reef_plan *plan = NULL;
    const ptrdiff_t length = r->length;
    const reef_shape shape = {.rows = r->rows, .segments = 1, .lengths = &length, .dtype = REEF_F32};
    double best = -1;
    reef_status status = reef_agg_create_in(context, &agg, spec, error);
    status = status == REEF_OK ? reef_plan_create(&plan, agg, &shape, error) : status;
    for (long i = 0; i <= r->repeats && status == REEF_OK; i++) { /* the first one warms up */
        double start = seconds();
        status = reef_plan_apply(plan, &(reef_input){.rows = rows}, out, NULL, error);
        double took = seconds() - start;
        best = i > 0 && (best < 0 || took < best) ? took : best;
    }
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
    return status == REEF_OK ? best : -1;
}

/* Rules that need to know the number of liars are told a tenth. */
static void spec_of(const reef_rule *rule, long rows, char spec[SPEC_SIZE])
{
    bool needs = false;
    for (ptrdiff_t i = 0; i < rule->field_count; i++) {
        needs = needs || (rule->fields[i].name[0] == 'f' && rule->fields[i].name[1] == '\0');
    }
    (void)snprintf(spec, SPEC_SIZE, needs ? "%s:f=%ld" : "%s", rule->name, rows / 10);
}

static void bench_all(reef_context *context, const request *r, const void *const *rows, float *out)
{
    reef_error error;
    double mean = time_rule(context, r, "mean", rows, out, &error);
    double bytes = (double)r->rows * (double)r->length * sizeof(float);
    printf("%-16s %10s %8s %8s\n", "rule", "ms", "x mean", "GB/s");
    for (ptrdiff_t i = 0; i < reef_rule_count(NULL); i++) {
        char spec[SPEC_SIZE];
        const reef_rule *rule = reef_rule_at(NULL, i);
        if (rule->mix) {
            continue;
        }
        spec_of(rule, r->rows, spec);
        double took = time_rule(context, r, spec, rows, out, &error);
        if (took < 0) {
            printf("%-16s %s\n", spec, error.text);
        } else {
            printf("%-16s %10.2f %8.2f %8.1f\n", spec, 1e3 * took, took / mean, 1e-9 * bytes / took);
        }
        (void)fflush(stdout);
    }
}

static int bench(const request *r)
{
    reef_error error;
    reef_context *context = NULL;
    const void *rows[ROWS_MAX];
    float *data = malloc((size_t)r->rows * (size_t)r->length * sizeof *data);
    float *out = malloc((size_t)r->length * sizeof *out);
    reef_status status = reef_context_create(&context, NULL, &error);
    status = status == REEF_OK ? reef_context_set_threads(context, r->threads, &error) : status;
    if (!data || !out || status != REEF_OK) {
        fprintf(stderr, "reef bench: %s\n", status == REEF_OK ? "no memory for so many numbers" : error.text);
    } else {
        fill(data, (size_t)r->rows * (size_t)r->length);
        for (long k = 0; k < r->rows; k++) {
            rows[k] = data + k * r->length;
        }
        printf("%ld vectors of %ld float32, %s instructions, %td threads\n", r->rows, r->length,
               reef_system_facts().instructions, r->threads ? (ptrdiff_t)r->threads : reef_system_facts().threads);
        bench_all(context, r, rows, out);
    }
    int code = data && out && status == REEF_OK ? EXIT_DONE : EXIT_FAILED;
    reef_context_destroy(&context);
    free(data);
    free(out);
    return code;
}

static int run_bench(int argc, char **argv)
{
    request r = {.rows = 32, .length = 500000, .repeats = 5};
    int code = read_options(&command_bench, &argc, argv, take_option, &r);
    if (code != EXIT_DONE || argc > 1) {
        return code != EXIT_DONE ? code : bad_usage(&command_bench, "no argument is expected, not", argv[1]);
    }
    return bench(&r);
}

const command command_bench = {
    "bench",
    "what each rule costs on this machine, against the mean",
    "Usage: reef bench [OPTIONS]\n\n"
    "Aggregates vectors of random float32 numbers by every rule and prints the time, also as a multiple of the "
    "mean's,\n"
    "and the bytes read per second. `make bench` in the source tree measures more.\n",
    OPTIONS(options),
    "Exit codes: 0 done, 1 it failed, 2 wrong usage.\n",
    VALUE_NONE,
    NULL,
    run_bench,
};
