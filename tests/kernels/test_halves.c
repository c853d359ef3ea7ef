/* Half precision by the processor's instruction: every number as io/half.c has it, at any place and in any count. */
#include "io/half.h"
#include "num/kernels/halves.h"
#include "support/check.h"

#include <math.h>
#include <string.h>

enum { ALL = 1 << 16 };
static uint16_t half[ALL + 8];
static float fast[ALL + 8], plain[ALL];

static void all_numbers(void **state)
{
    (void)state;
    for (ptrdiff_t shift = 0; shift < 8; shift++) {
        for (int i = 0; i < ALL; i++) {
            half[i + shift] = (uint16_t)i;
        }
        if (!rfi_halves_widen(half + shift, ALL - shift, fast + shift)) {
            skip(); /* no such instruction */
        }
        rfi_widen_f16(half + shift, ALL - shift, plain);
        for (int i = 0; i < ALL - shift; i++) {
            bool same = memcmp(&fast[i + shift], &plain[i], sizeof plain[i]) == 0;
            CHECK(same || (isnan(fast[i + shift]) && isnan(plain[i])), "number %d with a shift of %td", i, shift);
        }
    }
}

static void any_count(void **state)
{
    (void)state;
    for (ptrdiff_t count = 0; count < 40; count++) {
        for (int i = 0; i < 48; i++) {
            half[i] = 0x3C00;
            fast[i] = -1;
        }
        if (!rfi_halves_widen(half, count, fast)) {
            skip();
        }
        for (int i = 0; i < 48; i++) {
            CHECK(fast[i] == (i < count ? 1.0F : -1.0F), "number %d of %td", i, count);
        }
    }
}

/* bfloat16: all of them, and single precision near all of them, ties and NaN included; bit by bit. */
static void brain_floats(void **state)
{
    static const uint32_t below[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
    static uint16_t narrow[ALL + 8];
    static uint16_t want[ALL];
    (void)state;
    for (ptrdiff_t shift = 0; shift < 8; shift++) {
        for (int i = 0; i < ALL; i++) {
            uint32_t bits = (uint32_t)i << 16 | below[((ptrdiff_t)i + shift) % COUNT(below)];
            half[i + shift] = (uint16_t)i;
            memcpy(&plain[i], &bits, sizeof bits);
        }
        if (!rfi_bf16_narrow(plain + shift, ALL - shift, narrow + shift)) {
            skip();
        }
        rfi_narrow_bf16(plain + shift, ALL - shift, want);
        assert_memory_equal(narrow + shift, want, (size_t)(ALL - shift) * sizeof *want);
        assert_true(rfi_bf16_widen(half + shift, ALL - shift, fast + shift));
        rfi_widen_bf16(half + shift, ALL - shift, plain);
        assert_memory_equal(fast + shift, plain, (size_t)(ALL - shift) * sizeof *plain);
    }
}

/* Single precision near all numbers of half precision and halfway between them, to half precision: bit by bit. */
static void half_numbers(void **state)
{
    static const int32_t beside[] = {0, 1, -1, 0x1000, 0xFFF, 0x1001, 0x800};
    static uint16_t narrow[ALL + 8];
    static uint16_t want[ALL];
    (void)state;
    for (ptrdiff_t shift = 0; shift < 8; shift++) {
        for (int i = 0; i < ALL; i++) {
            half[i] = (uint16_t)i;
        }
        rfi_widen_f16(half, ALL, plain);
        for (int i = 0; i < ALL; i++) {
            uint32_t bits;
            memcpy(&bits, &plain[i], sizeof bits);
            bits += isnan(plain[i]) ? 0 : (uint32_t)beside[((ptrdiff_t)i + shift) % COUNT(beside)];
            memcpy(&plain[i], &bits, sizeof bits);
        }
        if (!rfi_halves_narrow(plain + shift, ALL - shift, narrow + shift)) {
            skip();
        }
        rfi_narrow_f16(plain + shift, ALL - shift, want);
        for (ptrdiff_t i = shift; i < ALL; i++) {
            bool nan = isnan(plain[i]) && (narrow[i] & 0x7C00) == 0x7C00 && (narrow[i] & 0x3FF);
            CHECK(nan || narrow[i] == want[i - shift], "%a: %04x instead of %04x", (double)plain[i],
                  (unsigned)narrow[i], (unsigned)want[i - shift]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_numbers), cmocka_unit_test(any_count),
                                       cmocka_unit_test(brain_floats), cmocka_unit_test(half_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
