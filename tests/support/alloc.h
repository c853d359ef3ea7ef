/* An allocator for contexts that counts, fails on demand and surrounds every block with guard bytes. Thread-safe. */
#ifndef TESTS_SUPPORT_ALLOC_H
#define TESTS_SUPPORT_ALLOC_H

#include <reef/context.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct alloc_log {
    atomic_int live;    /* blocks not yet released */
    atomic_int total;   /* calls so far, failed ones too */
    int fail_at;        /* number of the call that fails (from 0), or -1 */
    atomic_bool broken; /* a guard byte was overwritten */
    atomic_size_t held; /* bytes not yet released */
    atomic_size_t peak; /* the most that were held; exact with one thread */
} alloc_log;

/* The hook; `log` must outlive the context. */
reef_allocator alloc_hook(alloc_log *log);
/* A context on that hook, one thread unless told otherwise; the log then counts from zero. */
reef_context *alloc_context(alloc_log *log, ptrdiff_t threads);

/* A block with guards on both sides whose user part has exactly `bytes` bytes. */
void *guarded_new(size_t bytes);
/* True if the guards are as they were. */
bool guarded_intact(const void *memory, size_t bytes);
void guarded_free(void *memory);

#endif
