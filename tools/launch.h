/* Several processes started by mpirun or srun. libreef_mpi, and with it MPI, is loaded only then. */
#ifndef REEF_TOOLS_RANKS_H
#define REEF_TOOLS_RANKS_H

#include <reef/engine.h>
#include <stdbool.h>

/* Whether a launcher has started this process as one of several. */
bool ranks_wanted(void);
/* The engine of all of them; NULL with a message if there is no MPI. stop ends it; accepts NULL. */
reef_engine *ranks_start(reef_error *error);
void ranks_stop(reef_engine **engine);
/* One line on the MPI there is, for `reef doctor`; NULL: none, and why goes to error. */
const char *ranks_describe(reef_error *error);
/* This process's number as the launcher tells it, before anything else is known; 0 if it does not. */
int ranks_number(void);

#endif
