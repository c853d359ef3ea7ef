/* Aggregation of K = 64 rows of M = 1e7 numbers over ranks: seconds, and the memory of each rank beside what is stated.
 *     ranks.sh 4 bench_shard [--length M] [--rule SPEC]
 * Fails if a rank takes more than its rows, its slice of the result, what reef_shard_size says, and 128 MB for the program and MPI. */
#include <mpi.h>
#include <reef/mpi.h>
#include <reef/reef.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { K = 64 };

static reef_engine *engine;

static void must(bool good, const char *what, const reef_error *error)
{
    if (!good) {
        fprintf(stderr, "bench_shard: %s: %s\n", what, error ? error->text : "failed");
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
}

static double megabytes(double bytes)
{
    return bytes / (1024 * 1024);
}

static double peak(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return 1024 * (double)usage.ru_maxrss;
}

static void fill(float *row, ptrdiff_t number, ptrdiff_t length)
{
    uint32_t x = (uint32_t)number * 2654435761U + 1;
    for (ptrdiff_t m = 0; m < length; m++) {
        x = x * 1664525U + 1013904223U;
        row[m] = (float)(x >> 8) * 0x1p-24F + (number < 6 ? 100.0F : 0.0F);
    }
}

static int measure(const char *rule, ptrdiff_t length)
{
    reef_error error;
    reef_agg *agg = NULL;
    reef_shard *shard = NULL;
    ptrdiff_t m0 = 0;
    ptrdiff_t m1 = 0;
    ptrdiff_t counts[1024] = {0};
    const void *rows[K] = {NULL};
    ptrdiff_t own = 0;
    must(engine->size <= 1024, "too many ranks", NULL);
    for (ptrdiff_t l = 0; l < K; l++) {
        int32_t owner = (int32_t)(l * engine->size / K);
        counts[owner]++;
        if (owner == engine->rank) {
            float *row = malloc((size_t)length * sizeof *row);
            must(row != NULL, "no memory for rows", NULL);
            fill(row, l, length);
            rows[own++] = row;
        }
    }
    const reef_shard_shape shape = {.length = length, .dtype = REEF_F32, .rows = counts};
    must(reef_agg_create(NULL, &agg, rule, &error) == REEF_OK, rule, &error);
    must(reef_shard_create(&shard, agg, engine, &shape, &error) == REEF_OK, rule, &error);
    reef_shard_range(shard, engine->rank, &m0, &m1);
    float *slice = malloc((size_t)(m1 - m0 + 1) * sizeof *slice);
    must(slice != NULL, "no memory for a slice", NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    must(reef_shard_apply(shard, &(reef_input){.rows = rows}, slice, NULL, &error) == REEF_OK, rule, &error);
    double seconds = MPI_Wtime() - start;
    double mine = (double)own * (double)length * sizeof(float);
    double held = (double)reef_shard_size(shard);
    double result = (double)(m1 - m0) * sizeof(float);
    double stated = mine + held + result + 128.0 * 1024 * 1024;
    int within = peak() <= stated;
    for (int32_t r = 0; r < engine->size; r++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (r == engine->rank) {
            printf("%s, M = %td, rank %d of %d: %.2f s; rows %.0f MB, shard %.0f MB, stated %.0f MB, peak %.0f MB%s\n",
                   rule, length, (int)r, (int)engine->size, seconds, megabytes(mine), megabytes(held),
                   megabytes(stated), megabytes(peak()), within ? "" : "  TOO MUCH");
            (void)fflush(stdout);
        }
    }
    free(slice);
    reef_shard_destroy(&shard);
    reef_agg_destroy(&agg);
    for (ptrdiff_t i = 0; i < own; i++) {
        free((void *)(uintptr_t)rows[i]);
    }
    return within ? 0 : 1;
}

int main(int argc, char **argv)
{
    reef_error error;
    ptrdiff_t length = 10000000;
    const char *rule = NULL;
    static const char *const rules[] = {"median", "vref", "krum:f=6"};
    int code = 0;
    must(reef_mpi_start(&engine, &error) == REEF_OK, "MPI", &error);
    for (int i = 1; i + 1 < argc; i += 2) {
        length = strcmp(argv[i], "--length") == 0 ? strtol(argv[i + 1], NULL, 10) : length;
        rule = strcmp(argv[i], "--rule") == 0 ? argv[i + 1] : rule;
    }
    for (size_t i = 0; i < (rule ? 1 : sizeof rules / sizeof *rules); i++) {
        code |= measure(rule ? rule : rules[i], length);
    }
    reef_mpi_stop(&engine);
    return code;
}
