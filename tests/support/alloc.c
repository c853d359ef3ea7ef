/* Counting, failing, guarding. */
#include "support/alloc.h"

#include "support/check.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0x5A, FRESH_BYTE = 0xCD };

void *guarded_new(size_t bytes)
{
    unsigned char *block = malloc(bytes + 2 * GUARD);
    if (!block) {
        return NULL;
    }
    memset(block, GUARD_BYTE, bytes + 2 * GUARD);
    memset(block + GUARD, FRESH_BYTE, bytes); /* nothing is zero by luck */
    return block + GUARD;
}

bool guarded_intact(const void *memory, size_t bytes)
{
    const unsigned char *user = memory;
    for (size_t i = 0; i < GUARD; i++) {
        if (user[-1 - (ptrdiff_t)i] != GUARD_BYTE || user[bytes + i] != GUARD_BYTE) {
            return false;
        }
    }
    return true;
}

void guarded_free(void *memory)
{
    free(memory ? (unsigned char *)memory - GUARD : NULL);
}

/* Each block starts with its size; that is not part of what the library sees. */
typedef union head {
    size_t bytes;
    unsigned char space[GUARD];
} head;

static void *hook_allocate(void *user, size_t bytes)
{
    alloc_log *log = user;
    int number = atomic_fetch_add(&log->total, 1);
    if (number == log->fail_at) {
        return NULL;
    }
    unsigned char *block = guarded_new(bytes + sizeof(head));
    assert_non_null(block);
    ((head *)(void *)block)->bytes = bytes;
    memset(block + sizeof(size_t), GUARD_BYTE, sizeof(head) - sizeof(size_t));
    atomic_fetch_add(&log->live, 1);
    size_t held = atomic_fetch_add(&log->held, bytes) + bytes;
    if (held > atomic_load(&log->peak)) {
        atomic_store(&log->peak, held);
    }
    return block + sizeof(head);
}

static void hook_release(void *user, void *memory)
{
    alloc_log *log = user;
    unsigned char *block = (unsigned char *)memory - sizeof(head);
    const head *start = (const head *)(const void *)block;
    bool intact = guarded_intact(block, start->bytes + sizeof(head));
    for (size_t i = sizeof(size_t); i < sizeof(head); i++) {
        intact = intact && block[i] == GUARD_BYTE;
    }
    if (!intact) {
        atomic_store(&log->broken, true);
    }
    atomic_fetch_sub(&log->held, start->bytes);
    guarded_free(block);
    atomic_fetch_sub(&log->live, 1);
}

reef_allocator alloc_hook(alloc_log *log)
{
    atomic_store(&log->live, 0);
    atomic_store(&log->total, 0);
    atomic_store(&log->broken, false);
    atomic_store(&log->held, 0);
    atomic_store(&log->peak, 0);
    log->fail_at = -1;
    return (reef_allocator){.allocate = hook_allocate, .release = hook_release, .user = log};
}

reef_context *alloc_context(alloc_log *log, ptrdiff_t threads)
{
    reef_context *context = NULL;
    reef_allocator hook = alloc_hook(log);
    assert_int_equal(reef_context_create(&context, &hook, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, threads, NULL), REEF_OK);
    atomic_store(&log->total, 0);
    return context;
}
