/* reef bench: the time that each rule takes on this machine, as a multiple of that of the mean. */
#include "commands.h"
#include "json.h"
#include "plugins.h"
#include "terminal.h"

#include <math.h>
#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS_MAX = 1024, REPEATS_MAX = 99, SPEC_SIZE = 64 };

typedef struct request {
    long rows, length, repeats, threads;
    bool as_json;
} request;

enum { OPT_REPEATS = 256, OPT_THREADS, OPT_JSON };
static const option_row options[] = {
    {'k', "rows", "K", "vectors to combine, 3 to 1024; default: 32", VALUE_TEXT, NULL},
    {'m', "length", "M", "numbers per vector; default: 500000", VALUE_TEXT, NULL},
    {OPT_REPEATS, "repeats", "N", "repetitions, of which the fastest counts; default: 5", VALUE_TEXT, NULL},
    {OPT_THREADS, "threads", "N", "threads to use; default: all processors", VALUE_TEXT, NULL},
    {OPT_JSON, "json", NULL, "prints JSON, described in reef-bench(1)", VALUE_NONE, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    request *r = user;
    switch (code) {
    case OPT_JSON:
        r->as_json = true;
        return EXIT_DONE;
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
    reef_status status = reef_agg_create(context, &agg, spec, error);
    if (status == REEF_OK) {
        status = reef_plan_create(&plan, agg, &shape, error);
    }
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

/* Rules that need the number of malicious inputs get a tenth. */
static void spec_of(const reef_rule *rule, long rows, char spec[SPEC_SIZE])
{
    bool needs = false;
    for (ptrdiff_t i = 0; i < rule->kind.field_count; i++) {
        needs = needs || (rule->kind.fields[i].name[0] == 'f' && rule->kind.fields[i].name[1] == '\0');
    }
    (void)snprintf(spec, SPEC_SIZE, needs ? "%s:f=%ld" : "%s", rule->kind.name, rows / 10);
}

/* One rule: its time, or why there is none. */
static void report_text(const char *spec, double took, double mean, double bytes, const char *trouble)
{
    if (took < 0) {
        printf("%-16s %s\n", spec, trouble);
    } else {
        printf("%-16s %10.2f %8.2f %8.1f\n", spec, 1e3 * took, took / mean, 1e-9 * bytes / took);
    }
    (void)fflush(stdout);
}

static void report_json(json *j, const char *spec, double took, double mean, double bytes, const char *trouble)
{
    json_open(j, NULL, '{');
    json_text(j, "rule", spec);
    json_number(j, "seconds", took < 0 ? (double)NAN : took);
    json_number(j, "times_mean", took < 0 ? (double)NAN : took / mean);
    json_number(j, "bytes_per_second", took < 0 ? (double)NAN : bytes / took);
    json_text(j, "error", took < 0 ? trouble : NULL);
    json_close(j);
}

static void bench_all(reef_context *context, const request *r, const void *const *rows, float *out, json *j)
{
    reef_error error = {REEF_OK, ""};
    double mean = time_rule(context, r, "mean", rows, out, &error);
    double bytes = (double)r->rows * (double)r->length * sizeof(float);
    for (ptrdiff_t i = 0; i < reef_kind_count(context, REEF_FAMILY_RULE); i++) {
        char spec[SPEC_SIZE];
        const reef_rule *rule = (const void *)reef_kind_at(context, REEF_FAMILY_RULE, i);
        if (rule->mix) {
            continue;
        }
        spec_of(rule, r->rows, spec);
        double took = time_rule(context, r, spec, rows, out, &error);
        if (j) {
            report_json(j, spec, took, mean, bytes, error.text);
        } else {
            report_text(spec, took, mean, bytes, error.text);
        }
    }
}

static void bench_as_text(reef_context *context, const request *r, const void *const *rows, float *out,
                          ptrdiff_t threads)
{
    printf("%ld vectors of %ld float32, %s instructions, %td thread%s\n", r->rows, r->length,
           reef_system_facts().instructions, threads, plural(threads));
    printf("%s%-16s %10s %8s %8s%s\n", tint_on(stdout, TINT_HEADING), "rule", "ms", "x mean", "GB/s", tint_off(stdout));
    bench_all(context, r, rows, out, NULL);
}

static void bench_as_json(reef_context *context, const request *r, const void *const *rows, float *out,
                          ptrdiff_t threads)
{
    json j = json_start(stdout);
    json_open(&j, NULL, '{');
    json_text(&j, "version", reef_version());
    json_text(&j, "instructions", reef_system_facts().instructions);
    json_whole(&j, "threads", threads);
    json_whole(&j, "vectors", r->rows);
    json_whole(&j, "length", r->length);
    json_open(&j, "rules", '[');
    bench_all(context, r, rows, out, &j);
    json_close(&j);
    json_close(&j);
}

static int bench(const request *r)
{
    reef_error error;
    reef_context *context = NULL;
    const void *rows[ROWS_MAX];
    float *data = malloc((size_t)r->rows * (size_t)r->length * sizeof *data);
    float *out = malloc((size_t)r->length * sizeof *out);
    reef_status status = plugins_context(&context, &error);
    if (status == REEF_OK) {
        status = reef_context_set_threads(context, r->threads, &error);
    }
    if (!data || !out || status != REEF_OK) {
        fprintf(stderr, "reef bench: %s\n", status == REEF_OK ? "not enough memory for so many numbers" : error.text);
    } else {
        fill(data, (size_t)r->rows * (size_t)r->length);
        for (long k = 0; k < r->rows; k++) {
            rows[k] = data + k * r->length;
        }
        ptrdiff_t threads = r->threads ? (ptrdiff_t)r->threads : reef_system_facts().threads;
        if (r->as_json) {
            bench_as_json(context, r, rows, out, threads);
        } else {
            bench_as_text(context, r, rows, out, threads);
        }
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
        return code != EXIT_DONE ? code : bad_usage(&command_bench, "it takes no arguments, not", argv[1]);
    }
    return bench(&r);
}

const command command_bench = {
    "bench",
    "measure the time that each rule takes on this machine",
    "Usage: reef bench [OPTIONS]\n\n"
    "Aggregates vectors of random float32 numbers by every rule and prints the time, also as a multiple of the "
    "mean's,\n"
    "and the bytes read per second. `make bench` in the source tree measures more.\n",
    OPTIONS(options),
    "Exit codes: 0 done, 1 not enough memory, or a plug-in cannot be loaded, 2 wrong usage.\n",
    VALUE_NONE,
    NULL,
    run_bench,
};
