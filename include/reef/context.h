/* A context owns what several aggregators share: the allocator, the threads, and the rules added by the user. Wherever a
 * context is asked for, NULL means malloc, the calling thread alone, and the built-in rules. */
#ifndef REEF_CONTEXT_H
#define REEF_CONTEXT_H

#include <reef/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reef_context reef_context;

/* Memory for everything the library keeps. `allocate` returns memory aligned for any type, or NULL;
 * `release` accepts what allocate returned, never NULL. Both may be called from any thread that calls the library. */
typedef struct reef_allocator {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *memory);
    void *user;
} reef_allocator;

/* allocator NULL: malloc and free. The struct is copied. */
REEF_API reef_status reef_context_create(reef_context **context, const reef_allocator *allocator, reef_error *error);
/* Threads that aggregations of this context may use, the calling one included: 0 (the default) means as many as the processor
 * affinity allows. Results do not depend on it. Must not be called while an aggregation is under way; plans made before keep the
 * number of workers they were made with. */
#define REEF_THREADS_MAX 1024
REEF_API reef_status reef_context_set_threads(reef_context *context, ptrdiff_t threads, reef_error *error);
/* Aggregators created in a context must be destroyed before it. Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_context_destroy(reef_context **context);

#ifdef __cplusplus
}
#endif
#endif
