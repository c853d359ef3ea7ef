/* Overflow-checked sizes, arenas, allocators. */
#include "base/memory.h"
#include "support/alloc.h"
#include "support/check.h"

#include <stdint.h>
#include <string.h>

static void products(void **state)
{
    ptrdiff_t p = 5;
    (void)state;
    assert_true(rfi_mul(6, 7, &p) && p == 42);
    assert_true(rfi_mul(0, PTRDIFF_MAX, &p) && p == 0);
    assert_true(rfi_mul(PTRDIFF_MAX, 0, &p) && p == 0);
    assert_true(rfi_mul(PTRDIFF_MAX, 1, &p) && p == PTRDIFF_MAX);
    assert_true(rfi_mul(1, PTRDIFF_MAX, &p) && p == PTRDIFF_MAX);
    p = 5;
    assert_false(rfi_mul(PTRDIFF_MAX, 2, &p));
    assert_false(rfi_mul(2, PTRDIFF_MAX / 2 + 1, &p));
    assert_false(rfi_mul((ptrdiff_t)1 << 32, (ptrdiff_t)1 << 31, &p));
    assert_false(rfi_mul(-1, 3, &p));
    assert_false(rfi_mul(3, -1, &p));
    assert_false(rfi_mul(PTRDIFF_MIN, PTRDIFF_MIN, &p));
    assert_int_equal(p, 5);
}

static void sums(void **state)
{
    ptrdiff_t s = 5;
    (void)state;
    assert_true(rfi_add(6, 7, &s) && s == 13);
    assert_true(rfi_add(PTRDIFF_MAX, 0, &s) && s == PTRDIFF_MAX);
    assert_true(rfi_add(PTRDIFF_MAX - 1, 1, &s) && s == PTRDIFF_MAX);
    s = 5;
    assert_false(rfi_add(PTRDIFF_MAX, 1, &s));
    assert_false(rfi_add(1, PTRDIFF_MAX, &s));
    assert_false(rfi_add(-1, 1, &s));
    assert_false(rfi_add(1, PTRDIFF_MIN, &s));
    assert_int_equal(s, 5);
}

/* Measuring and handing out go the same way. */
static void arenas(void **state)
{
    static const ptrdiff_t counts[] = {1, 0, 63, 64, 65, 1000};
    _Alignas(RFI_ALIGNMENT) static unsigned char memory[8192];
    (void)state;
    rfi_arena measure = {0};
    rfi_arena real = {.base = memory};
    for (ptrdiff_t i = 0; i < COUNT(counts); i++) {
        ptrdiff_t before = measure.used;
        assert_null(rfi_arena_take(&measure, counts[i], 1, sizeof(char)));
        unsigned char *got = rfi_arena_take(&real, counts[i], 1, sizeof(char));
        assert_ptr_equal(got, memory + before);
        assert_int_equal(((uintptr_t)got) % RFI_ALIGNMENT, 0);
        assert_int_equal(measure.used, real.used);
        assert_true(measure.used - before >= counts[i] && measure.used - before < counts[i] + RFI_ALIGNMENT);
    }
    assert_false(measure.overflow || real.overflow);
}

static void arenas_overflow_once_and_for_all(void **state)
{
    static const ptrdiff_t bad[][2] = {
        {PTRDIFF_MAX, 1}, {PTRDIFF_MAX / 2, 3}, {-1, 1}, {1, -1}, {PTRDIFF_MAX / 8 - 1, 1}};
    unsigned char memory[64];
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        rfi_arena arena = {.base = memory};
        assert_null(rfi_arena_take(&arena, bad[i][0], bad[i][1], sizeof(double)));
        assert_true(arena.overflow);
        assert_null(rfi_arena_take(&arena, 1, 1, 1));
        assert_int_equal(arena.used, 0);
    }
    rfi_arena arena = {0};
    (void)rfi_arena_take(&arena, PTRDIFF_MAX / 2, 1, 1);
    (void)rfi_arena_take(&arena, PTRDIFF_MAX / 2, 1, 1);
    (void)rfi_arena_take(&arena, 64, 1, 1);
    assert_true(arena.overflow);
}

static void allocators(void **state)
{
    alloc_log log;
    reef_context *context = alloc_context(&log, 1);
    (void)state;
    int live = atomic_load(&log.live);
    char *block = rfi_allocate(context, 100);
    assert_non_null(block);
    memset(block, 1, 100);
    assert_int_equal(atomic_load(&log.live), live + 1);
    rfi_release(context, block);
    rfi_release(context, NULL);
    assert_int_equal(atomic_load(&log.live), live);
    log.fail_at = atomic_load(&log.total);
    assert_null(rfi_allocate(context, 1));
    reef_context_destroy(&context);
    assert_int_equal(atomic_load(&log.live), 0);
    assert_false(atomic_load(&log.broken));
    assert_null(rfi_allocate_many(NULL, PTRDIFF_MAX, 8));
    assert_null(rfi_allocate_many(NULL, -1, 8));
    block = rfi_allocate_many(NULL, 0, 8); /* nothing is something to release */
    assert_non_null(block);
    rfi_release(NULL, block);
    block = rfi_allocate(NULL, 10);
    assert_non_null(block);
    rfi_release(NULL, block);
    rfi_release(NULL, NULL);
}

/* The guards of the tests' own allocator do see a stray byte. */
static void guards_see_stray_bytes(void **state)
{
    alloc_log log;
    reef_context *context = alloc_context(&log, 1);
    (void)state;
    for (int before = 0; before < 2; before++) {
        volatile unsigned char *block = rfi_allocate(context, 100);
        size_t offset = before ? (size_t)-1 : 100;
        block[offset] ^= 1;
        rfi_release(context, (void *)(uintptr_t)block);
        assert_true(atomic_load(&log.broken));
        atomic_store(&log.broken, false);
    }
    reef_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),   cmocka_unit_test(sums),
        cmocka_unit_test(arenas),     cmocka_unit_test(arenas_overflow_once_and_for_all),
        cmocka_unit_test(allocators), cmocka_unit_test(guards_see_stray_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
