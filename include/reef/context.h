/* A context owns what several objects share: the allocator, the threads, and the rules, attacks and problems that were added to it
 * (registry.h). Wherever a context is expected, NULL means malloc, the calling thread alone, and the built-in kinds. */
#ifndef REEF_CONTEXT_H
#define REEF_CONTEXT_H

#include <reef/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A context: its functions may be called by one thread at a time. Objects made in it may be used from several threads as documented for each;
 * one aggregation at a time gets the context's threads, others run on the calling thread. It must outlive everything made in it. */
typedef struct reef_context reef_context;

/* Memory for everything the library keeps. `allocate` returns memory aligned for any type, or NULL;
 * `release` accepts what allocate returned, never NULL. Both may be called from any thread that calls the library. */
typedef struct reef_allocator {
    size_t size; /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    /* Returns NULL if there is no memory. */
    void *(*allocate)(void *user, size_t bytes);
    /* Frees what allocate returned. */
    void (*release)(void *user, void *memory);
    void *user; /* passed to both */
} reef_allocator;

/* Makes a context. allocator NULL: malloc and free. The struct is copied. */
REEF_API REEF_MUST_CHECK reef_status reef_context_create(reef_context **context, const reef_allocator *allocator,
                                                         reef_error *error);
/* The largest number of threads of a context. */
#define REEF_THREADS_MAX 1024
/* Sets how many threads aggregations of this context may use, including the calling one, 0 to REEF_THREADS_MAX: 0 (the default) means as
 * many as the processor affinity allows. Results do not depend on it. Must not be called during an aggregation; existing plans keep the number
 * of workers they were made with. */
REEF_API REEF_MUST_CHECK reef_status reef_context_set_threads(reef_context *context, ptrdiff_t threads,
                                                              reef_error *error);
/* Aggregators created in a context must be destroyed before it. Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_context_destroy(reef_context **context);

#ifdef __cplusplus
}
#endif
#endif
