/* Robust aggregation inside an MPI program: every rank trains a model of its own, and one rank is malicious. REF over all ranks is computed
 * slice by slice, so that no rank ever holds all models.
 *     mpicc shard.c -lreef_mpi -lreef && mpirun -n 4 ./a.out
 * ranks: 4 5 */
#include <mpi.h>
#include <reef/mpi.h>
#include <reef/reef.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 100000 };

static int give_up(const char *what, const reef_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->text);
    return EXIT_FAILURE;
}

/* What training would give: nearly the same model everywhere, except nonsense on rank 0. */
static void train(int rank, float *model)
{
    for (int m = 0; m < M; m++) {
        model[m] = rank == 0 ? 1000.0F : (float)(m % 7) + 0.01F * (float)rank;
    }
}

static int aggregate(reef_engine *engine, const reef_agg *agg, const float *model, float *result)
{
    reef_error error;
    reef_shard *shard = NULL;
    ptrdiff_t m0 = 0;
    ptrdiff_t m1 = 0;
    ptrdiff_t *rows = malloc((size_t)engine->size * sizeof *rows);
    float *slice = malloc(M * sizeof *slice);
    int code = rows && slice ? EXIT_SUCCESS : EXIT_FAILURE;
    for (int32_t r = 0; rows && r < engine->size; r++) {
        rows[r] = 1; /* every rank contributes one model */
    }
    const reef_shard_shape shape = {.length = M, .dtype = REEF_F32, .rows = rows};
    if (code == EXIT_SUCCESS && reef_shard_create(&shard, agg, engine, &shape, &error) != REEF_OK) {
        code = give_up("reef_shard_create", &error);
    }
    if (code == EXIT_SUCCESS) {
        const void *own[1] = {model};
        reef_shard_range(shard, engine->rank, &m0, &m1);
        if (reef_shard_apply(shard, &(reef_input){.rows = own}, slice, NULL, &error) != REEF_OK ||
            reef_shard_gather(shard, slice, result, &error) != REEF_OK) {
            code = give_up("reef_shard_apply", &error);
        }
        printf("rank %d of %d: coordinates %td to %td, %zu bytes\n", (int)engine->rank, (int)engine->size, m0, m1,
               reef_shard_size(shard));
    }
    reef_shard_destroy(&shard);
    free(rows);
    free(slice);
    return code;
}

int main(int argc, char **argv)
{
    static float model[M];
    static float result[M];
    reef_error error;
    reef_engine *engine = NULL;
    reef_agg *agg = NULL;
    int code = EXIT_SUCCESS;
    MPI_Init(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD;
    if (reef_mpi_engine_create(&engine, &world, &error) != REEF_OK ||
        reef_agg_create(NULL, &agg, "ref", &error) != REEF_OK) {
        code = give_up("reef", &error);
    } else {
        train(engine->rank, model);
        code = aggregate(engine, agg, model, result);
        for (int m = 0; m < M && engine->size > 3; m++) { /* the malicious rank has not moved any coordinate far */
            code = fabsf(result[m] - (float)(m % 7)) < 0.1F ? code : EXIT_FAILURE;
        }
    }
    reef_agg_destroy(&agg);
    reef_mpi_engine_destroy(&engine);
    MPI_Finalize();
    return code;
}
