/* Numbers of one type to another: exact where they fit, rounded once where not. */
#include "io/precision.h"
#include "support/check.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static void everything_fits_into_double(void **state)
{
    static const uint16_t half[] = {0x3C00, 0xC000};  /* float16: 1, -2 */
    static const uint16_t brain[] = {0x3F80, 0xC000}; /* bfloat16: 1, -2 */
    static const float single[] = {1, -2};
    static const double number[] = {1, -2};
    static const struct {
        rfi_type type;
        const void *raw;
    } cases[] = {{RFI_F16, half}, {RFI_BF16, brain}, {RFI_F32, single}, {RFI_F64, number}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        double wide[2] = {0};
        unsigned char back[sizeof wide];
        rfi_widen_to_f64(cases[i].type, cases[i].raw, 2, wide);
        CHECK(wide[0] == 1 && wide[1] == -2, "type %td: %g and %g", i, wide[0], wide[1]);
        rfi_narrow_from_f64(cases[i].type, wide, 2, back);
        assert_memory_equal(back, cases[i].raw, 2 * rfi_type_size(cases[i].type));
    }
}

/* 1 + 2^-11 lies halfway between two float16 and goes to the even one; a little more must not be lost on the way through float. */
static void rounded_once(void **state)
{
    const double numbers[] = {1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40, -1 - 0x1p-11 - 0x1p-40, 1e300};
    static const uint16_t wanted[] = {0x3C00, 0x3C01, 0x3C00, 0xBC01, 0x7C00};
    uint16_t half[COUNT(numbers)];
    float single[COUNT(numbers)];
    (void)state;
    rfi_narrow_from_f64(RFI_F16, numbers, COUNT(numbers), half);
    for (ptrdiff_t i = 0; i < COUNT(numbers); i++) {
        CHECK(half[i] == wanted[i], "%a becomes %x instead of %x", numbers[i], half[i], wanted[i]);
    }
    rfi_narrow_from_f64(RFI_F32, numbers, COUNT(numbers), single);
    assert_true(single[1] == (float)(1 + 0x1p-11) && isinf(single[4]));
}

/* Infinity begins half a place above the largest float. */
static void largest_float(void **state)
{
    const double half = 0x1.FFFFFFp127;
    const double numbers[] = {(double)FLT_MAX, nextafter(half, 0), -nextafter(half, 0), half, -half};
    static const float wanted[] = {FLT_MAX, FLT_MAX, -FLT_MAX, INFINITY, -INFINITY};
    float single[COUNT(numbers)];
    (void)state;
    rfi_narrow_from_f64(RFI_F32, numbers, COUNT(numbers), single);
    assert_memory_equal(single, wanted, sizeof wanted);
}

static void long_rows(void **state)
{
    static double numbers[1000];
    static double back[1000];
    static float single[1000];
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(numbers); i++) {
        numbers[i] = (double)((float)i / 3.0F);
    }
    rfi_narrow_from_f64(RFI_F32, numbers, COUNT(numbers), single);
    rfi_widen_to_f64(RFI_F32, single, COUNT(numbers), back);
    assert_memory_equal(back, numbers, sizeof numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_fits_into_double),
        cmocka_unit_test(rounded_once),
        cmocka_unit_test(largest_float),
        cmocka_unit_test(long_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
