/* Engines over MPI: the library libreef_mpi, separate from libreef, which knows nothing about MPI. Not included by <reef/reef.h>.
 *
 *     MPI_Comm comm = MPI_COMM_WORLD;
 *     reef_mpi_engine_create(&engine, &comm, &error);
 *     reef_shard_create(&shard, agg, engine, &shape, &error);       aggregation over ranks (reef/shard.h)
 *     reef_run_create(context, &run, &setup_with_engine, &error);   or a run whose agents are spread over them (reef/learn.h)
 *
 * MPI must be initialised with MPI_THREAD_FUNNELED if the context of whatever uses the engine has more than one thread.
 */
#ifndef REEF_MPI_H
#define REEF_MPI_H

#include <reef/engine.h>
#include <reef/shard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* communicator: the address of an MPI_Comm, which is duplicated. Collective, and so is destroy. */
REEF_API REEF_MUST_CHECK reef_status reef_mpi_engine_create(reef_engine **engine, const void *communicator,
                                                            reef_error *error);
/* Collective. Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_mpi_engine_destroy(reef_engine **engine);

/* For programs that leave MPI to Reef: initialises it, unless that was done already, and makes an engine of all ranks. reef_mpi_stop destroys
 * the engine, and finalises MPI if this call initialised it. */
REEF_API REEF_MUST_CHECK reef_status reef_mpi_start(reef_engine **engine, reef_error *error);
/* Collective; the last MPI call of the program if reef_mpi_start initialised MPI. */
REEF_API void reef_mpi_stop(reef_engine **engine);

/* The MPI library's description of itself, in one line, and whether METIS is there to distribute agents. May be called before anything else. */
REEF_API const char *reef_mpi_describe(void);

#ifdef __cplusplus
}
#endif
#endif
