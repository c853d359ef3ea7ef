/* Rows of 16 bits: the time of an aggregation over that of as many float32 numbers.
 *
 * The call is reef_ffi_apply, the one that the Python package makes; 16-bit rows are widened where they are read, in the kernels. In every repeat all
 * types of a rule run once, one after the other; reported are ratios of the smallest times. The goal is 0.8: half the bytes, and the same
 * arithmetic.
 *
 * usage: bench_halves [--megabytes N] [--repeats N] [--cpu] [--json FILE]     (others are ignored)
 *   --megabytes N   of float32 rows, 200 unless told
 *   --repeats N     7 unless told
 *   --cpu           processor time per thread
 */
#include <reef/ffi.h>
#include <reef/reef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 32, TYPES = 3, TEXT = 300 };

static const char *const specs[] = {"mean", "median", "trimmed:f=20%", "ref", "krum:f=20%", "vref"};
static const int types[TYPES] = {REEF_FFI_F32, REEF_FFI_F16, REEF_FFI_BF16};
static const char *const type_names[TYPES] = {"float32", "float16", "bfloat16"};
static const double aimed_at = 0.8;

typedef struct bench {
    ptrdiff_t length;
    unsigned char *memory[TYPES];
    const void *rows[TYPES][ROWS];
    void *out;
    int repeats;
    int threads;
    bool cpu;
    FILE *json;
} bench;

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "bench_halves: %s\n", why);
    exit(1);
}

static double now(const bench *b)
{
    struct timespec t;
    clock_gettime(b->cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / (b->cpu ? b->threads : 1);
}

/* Between 1 and 2 in every type: patterns with the exponent of 1 and a random fraction. */
static void fill(bench *b)
{
    uint32_t state = 1;
    for (int k = 0; k < TYPES; k++) {
        size_t width = types[k] == REEF_FFI_F32 ? 4 : 2;
        size_t row = ((size_t)b->length * width + 4096) / 128 * 128 + 64;
        b->memory[k] = aligned_alloc(64, row * ROWS);
        if (!b->memory[k]) {
            stop("no memory");
        }
        for (ptrdiff_t l = 0; l < ROWS; l++) {
            unsigned char *to = b->memory[k] + (size_t)l * row;
            b->rows[k][l] = to;
            for (ptrdiff_t m = 0; m < b->length; m++) {
                state = state * 1664525 + 1013904223;
                uint32_t single = UINT32_C(0x3F800000) | (state >> 9);
                uint16_t half = (uint16_t)(types[k] == REEF_FFI_F16 ? 0x3C00 | (state >> 22) : 0x3F80 | (state >> 25));
                memcpy(to + (size_t)m * width, width == 4 ? (const void *)&single : &half, width);
            }
        }
    }
    b->out = aligned_alloc(64, ((size_t)b->length * 4 + 64) / 64 * 64);
    if (!b->out) {
        stop("no memory");
    }
}

static void apply(const bench *b, const reef_agg *agg, int k)
{
    char text[TEXT] = "";
    if (reef_ffi_apply(agg, ROWS, 1, &b->length, &types[k], b->rows[k], &b->out, NULL, -1, 0, NULL, NULL, text,
                       sizeof text) != REEF_OK) {
        stop(text);
    }
}

static void run_rule(const bench *b, reef_context *context, const char *spec)
{
    reef_agg *agg = NULL;
    char text[TEXT] = "";
    double least[TYPES] = {1e9, 1e9, 1e9};
    if (reef_ffi_agg(context, &agg, spec, text, sizeof text) != REEF_OK) {
        stop(text);
    }
    for (int repeat = -1; repeat < b->repeats; repeat++) { /* one round to warm up */
        for (int k = 0; k < TYPES; k++) {
            double start = now(b);
            apply(b, agg, k);
            double time = now(b) - start;
            least[k] = repeat >= 0 && time < least[k] ? time : least[k];
        }
    }
    const char *isa = reef_system_facts().instructions;
    for (int k = 0; k < TYPES; k++) {
        double ratio = least[k] / least[0];
        double nanoseconds = 1e9 * least[k] / (double)b->length;
        char aim[16] = "";
        if (k > 0) {
            snprintf(aim, sizeof aim, "%.2fx", aimed_at);
        }
        printf("%7d  %-14s  %-8s  %-8s  %6.2fx  %6s  %9.2f\n", b->threads, spec, type_names[k], isa, ratio, aim,
               nanoseconds);
        if (b->json) {
            fprintf(b->json, "{\"threads\": %d, \"spec\": \"%s\", \"type\": \"%s\", \"isa\": \"%s\", \"ratio\": %.4f, ",
                    b->threads, spec, type_names[k], isa, ratio);
            fprintf(b->json, "\"goal\": %.2f, \"ns_per_coordinate\": %.4f}\n", k ? aimed_at : 1, nanoseconds);
        }
    }
    fflush(stdout);
    reef_agg_destroy(&agg);
}

static long number_after(int argc, char **argv, int i)
{
    long number = i + 1 < argc ? strtol(argv[i + 1], NULL, 10) : 0;
    if (number < 1) {
        stop("an option needs a positive number");
    }
    return number;
}

int main(int argc, char **argv)
{
    static bench b = {.repeats = 7};
    double megabytes = 200;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--megabytes") == 0) {
            megabytes = (double)number_after(argc, argv, i);
        } else if (strcmp(argv[i], "--repeats") == 0) {
            b.repeats = (int)number_after(argc, argv, i);
        } else if (strcmp(argv[i], "--cpu") == 0) {
            b.cpu = true;
        } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            b.json = fopen(argv[i + 1], "w");
        }
    }
    b.length = (ptrdiff_t)(1e6 * megabytes / 4 / ROWS) / 4096 * 4096 + 4096;
    fill(&b);
    printf("16-bit rows: time over that of float32, %d rows of %td numbers.\n\n", ROWS, b.length);
    printf("%7s  %-14s  %-8s  %-8s  %7s  %6s  %9s\n", "threads", "rule", "type", "ISA", "min", "goal", "ns/coord");
    int most = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (b.threads = 1; b.threads <= most; b.threads += most > 1 ? most - 1 : 1) {
        reef_context *context = NULL;
        char text[TEXT] = "";
        if (reef_ffi_context(&context, b.threads, text, sizeof text) != REEF_OK) {
            stop(text);
        }
        for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
            run_rule(&b, context, specs[s]);
        }
        reef_context_destroy(&context);
    }
    for (int k = 0; k < TYPES; k++) {
        free(b.memory[k]);
    }
    free(b.out);
    return b.json && fclose(b.json) != 0;
}
