/* Loading libreef_mpi. */
#include "launch.h"

#include <reef/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef REEF_MPI_LIBRARY
#include <dlfcn.h>

/* The library's functions, by the types of the header. */
typedef struct functions {
    reef_status (*start)(reef_engine **engine, reef_error *error);
    void (*stop)(reef_engine **engine);
    const char *(*describe)(void);
} functions;

/* POSIX promises that a function's address survives the way through void *. */
static bool find(void *library, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, size);
    return symbol != NULL;
}

/* From the build folder or beside the installed command, or where REEF_MPI says. Never unloaded: MPI does not survive that. */
static bool load(functions *f, reef_error *error)
{
    const char *path = getenv("REEF_MPI");
    void *library = dlopen(path && path[0] ? path : REEF_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    if (!library || !find(library, "reef_mpi_start", &f->start, sizeof f->start) ||
        !find(library, "reef_mpi_stop", &f->stop, sizeof f->stop) ||
        !find(library, "reef_mpi_describe", &f->describe, sizeof f->describe)) {
        const char *why = dlerror();
        error->status = REEF_E_FILE;
        (void)snprintf(error->text, sizeof error->text, "MPI cannot be loaded: %s", why ? why : "not a Reef library");
        return false;
    }
    return true;
}

reef_engine *ranks_start(reef_error *error)
{
    functions f;
    reef_engine *engine = NULL;
    return load(&f, error) && f.start(&engine, error) == REEF_OK ? engine : NULL;
}

void ranks_stop(reef_engine **engine)
{
    functions f;
    reef_error error;
    if (engine && *engine && load(&f, &error)) {
        f.stop(engine);
    }
}

const char *ranks_describe(reef_error *error)
{
    functions f;
    return load(&f, error) ? f.describe() : NULL;
}

#else

static void refuse(reef_error *error)
{
    error->status = REEF_E_ENGINE;
    (void)snprintf(error->text, sizeof error->text, "this reef was built without MPI");
}

reef_engine *ranks_start(reef_error *error)
{
    refuse(error);
    return NULL;
}

void ranks_stop(reef_engine **engine)
{
    (void)engine;
}

const char *ranks_describe(reef_error *error)
{
    refuse(error);
    return NULL;
}

#endif

/* What Open MPI, MPICH and srun tell the processes they start. */
static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"};
static const char *const numbers[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

bool ranks_wanted(void)
{
    bool wanted = false;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        wanted = wanted || getenv(sizes[i]);
    }
    return wanted;
}

int ranks_number(void)
{
    const char *text = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !text; i++) {
        text = getenv(numbers[i]);
    }
    return text ? (int)strtol(text, NULL, 10) : 0;
}
