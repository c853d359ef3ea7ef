/* Tests on several ranks. A failed check ends the whole job at once, since the other ranks would wait for this one. */
#ifndef TESTS_MPI_RANKS_H
#define TESTS_MPI_RANKS_H

#include <reef/mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) ((ptrdiff_t)(sizeof(array) / sizeof(array)[0]))

static reef_engine *engine;

#define REQUIRE(condition, ...)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: rank %d: ", __FILE__, __LINE__, engine ? (int)engine->rank : -1);                  \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fprintf(stderr, "\n");                                                                                     \
            if (engine) {                                                                                              \
                engine->ops->abort(engine, 1);                                                                         \
            }                                                                                                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
