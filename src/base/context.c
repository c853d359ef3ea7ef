/* Contexts: create and destroy. The kinds added to them are handled by registry.c. */
#include "base/context.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>

static void *standard_allocate(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void standard_release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

reef_status reef_context_create(reef_context **context, const reef_allocator *allocator, reef_error *error)
{
    static const reef_allocator standard = {.allocate = standard_allocate, .release = standard_release};
    if (!context) {
        return rfi_fail(error, REEF_E_ARG, "reef_context_create: context is NULL");
    }
    if (!allocator) {
        allocator = &standard;
    }
    reef_status fits = rfi_check_size(allocator->size, sizeof *allocator, "reef_allocator", error);
    if (fits != REEF_OK) {
        return fits;
    }
    if (!allocator->allocate || !allocator->release) {
        return rfi_fail(error, REEF_E_ARG, "reef_context_create: the allocator needs both allocate and release");
    }
    reef_context *made = allocator->allocate(allocator->user, sizeof *made);
    if (!made) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a context");
    }
    *made = (reef_context){.allocator = *allocator, .threads = rfi_processor_count(), .busy = ATOMIC_FLAG_INIT};
    *context = made;
    return REEF_OK;
}

reef_status reef_context_set_threads(reef_context *context, ptrdiff_t threads, reef_error *error)
{
    if (!context || threads < 0 || threads > REEF_THREADS_MAX) {
        return rfi_fail(error, REEF_E_ARG,
                        context ? "threads = %td is out of range; 0 (all processors) to %d are possible"
                                : "reef_context_set_threads: context is NULL",
                        threads, REEF_THREADS_MAX);
    }
    rfi_pool_destroy(context);
    context->threads = threads ? threads : rfi_processor_count();
    return REEF_OK;
}

void reef_context_destroy(reef_context **context)
{
    if (!context || !*context) {
        return;
    }
    reef_allocator allocator = (*context)->allocator;
    rfi_pool_destroy(*context);
    rfi_release(*context, (*context)->added);
    allocator.release(allocator.user, *context);
    *context = NULL;
}

void rfi_context_borrow(reef_context *to, const reef_context *from)
{
    to->added = from ? from->added : NULL;
    to->added_count = from ? from->added_count : 0;
}
