/* Memory: overflow-checked sizes, the context's allocator, and an arena that lays out one block.
 *
 * An arena with base == NULL only measures: the same layout code tells how much memory is needed and,
 * run again on real memory, assigns it. That is why the stated workspace size is exact.
 */
#ifndef RFI_BASE_MEMORY_H
#define RFI_BASE_MEMORY_H

#include <reef/context.h>
#include <stdbool.h>
#include <stddef.h>

/* Offsets inside an arena are multiples of this many bytes (a cache line). */
#define RFI_ALIGNMENT 64

/* *product = a * b; false if a or b is negative or the product exceeds PTRDIFF_MAX. */
bool rfi_mul(ptrdiff_t a, ptrdiff_t b, ptrdiff_t *product);
/* *sum = a + b under the same conditions. */
bool rfi_add(ptrdiff_t a, ptrdiff_t b, ptrdiff_t *sum);

typedef struct rfi_arena {
    unsigned char *base; /* NULL: measure only */
    ptrdiff_t used;
    bool overflow; /* a size did not fit; all later pointers are NULL */
} rfi_arena;

/* Room for count x width elements of `size` bytes; NULL when measuring or after an overflow. */
void *rfi_arena_take(rfi_arena *arena, ptrdiff_t count, ptrdiff_t width, size_t size);

/* The first address from memory on that is a multiple of RFI_ALIGNMENT. */
void *rfi_align(void *memory);

/* Memory from the context's allocator (context NULL: malloc). */
void *rfi_allocate(const reef_context *context, size_t bytes);
/* Room for count >= 0 elements of `size` bytes; NULL also if that overflows. */
void *rfi_allocate_many(const reef_context *context, ptrdiff_t count, size_t size);
void rfi_release(const reef_context *context, void *memory);

#endif
