/* Overflow-checked sizes, allocator, arena. */
#include "base/memory.h"

#include "base/context.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

bool rfi_mul(ptrdiff_t a, ptrdiff_t b, ptrdiff_t *product)
{
    if (a < 0 || b < 0 || (b > 0 && a > PTRDIFF_MAX / b)) {
        return false;
    }
    *product = a * b;
    return true;
}

bool rfi_add(ptrdiff_t a, ptrdiff_t b, ptrdiff_t *sum)
{
    if (a < 0 || b < 0 || a > PTRDIFF_MAX - b) {
        return false;
    }
    *sum = a + b;
    return true;
}

void *rfi_arena_take(rfi_arena *arena, ptrdiff_t count, ptrdiff_t width, size_t size)
{
    assert(size > 0 && arena->used % RFI_ALIGNMENT == 0);
    ptrdiff_t bytes = 0;
    ptrdiff_t end = 0;
    ptrdiff_t start = arena->used;
    bool fits = !arena->overflow && rfi_mul(count, width, &bytes) && rfi_mul(bytes, (ptrdiff_t)size, &bytes) &&
                rfi_add(bytes, RFI_ALIGNMENT - 1, &bytes) &&
                rfi_add(start, bytes / RFI_ALIGNMENT * RFI_ALIGNMENT, &end);
    if (!fits) {
        arena->overflow = true;
        return NULL;
    }
    arena->used = end;
    return arena->base ? arena->base + start : NULL;
}

void *rfi_align(void *memory)
{
    uintptr_t past = (uintptr_t)memory % RFI_ALIGNMENT;
    return (unsigned char *)memory + (past ? RFI_ALIGNMENT - past : 0);
}

void *rfi_allocate(const reef_context *context, size_t bytes)
{
    if (!context) {
        return malloc(bytes);
    }
    return context->allocator.allocate(context->allocator.user, bytes);
}

void *rfi_allocate_many(const reef_context *context, ptrdiff_t count, size_t size)
{
    ptrdiff_t bytes = 0;
    if (!rfi_mul(count, (ptrdiff_t)size, &bytes)) {
        return NULL;
    }
    return rfi_allocate(context, bytes > 0 ? (size_t)bytes : 1);
}

void rfi_release(const reef_context *context, void *memory)
{
    if (!memory) {
        return;
    }
    if (!context) {
        free(memory);
    } else {
        context->allocator.release(context->allocator.user, memory);
    }
}
