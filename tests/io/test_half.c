/* 16-bit numbers: every one of them to float and back, and rounding to nearest, ties to even, everywhere between two of them. */
#include "io/half.h"
#include "support/check.h"

#include <math.h>
#include <string.h>

enum { ALL = 65536 };

/* By definition: sign, e exponent bits, the rest fraction. */
static double value_of(uint32_t bits, int e)
{
    int f = 15 - e;
    int exponent = (int)(bits >> f) & ((1 << e) - 1);
    double fraction = (double)(bits & ((1U << f) - 1));
    int bias = (1 << (e - 1)) - 1;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1 << e) - 1) {
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    }
    return sign * (exponent ? ldexp(1 + ldexp(fraction, -f), exponent - bias) : ldexp(fraction, 1 - bias - f));
}

typedef struct kind {
    int exponent_bits;
    uint16_t largest; /* finite */
    void (*widen)(const uint16_t *, ptrdiff_t, float *);
    void (*narrow)(const float *, ptrdiff_t, uint16_t *);
} kind;

static const kind kinds[] = {{5, 0x7BFF, rfi_widen_f16, rfi_narrow_f16}, {8, 0x7F7F, rfi_widen_bf16, rfi_narrow_bf16}};

static void all_there_and_back(void **state)
{
    static uint16_t half[ALL];
    static uint16_t back[ALL];
    static float wide[ALL];
    (void)state;
    for (ptrdiff_t k = 0; k < COUNT(kinds); k++) {
        for (uint32_t i = 0; i < ALL; i++) {
            half[i] = (uint16_t)i;
        }
        kinds[k].widen(half, ALL, wide);
        kinds[k].narrow(wide, ALL, back);
        for (uint32_t i = 0; i < ALL; i++) {
            double want = value_of(i, kinds[k].exponent_bits);
            if (isnan(want)) {
                CHECK(isnan(wide[i]) && isnan(value_of(back[i], kinds[k].exponent_bits)), "%x is no NaN", i);
                continue;
            }
            CHECK((double)wide[i] == want && !signbit(wide[i]) == !signbit(want), "%x: %g instead of %g", i,
                  (double)wide[i], want);
            CHECK(back[i] == i, "%x comes back as %x", i, (unsigned)back[i]);
        }
    }
}

static void check_rounds(const kind *k, float number, uint16_t want)
{
    uint16_t got = 0;
    k->narrow(&number, 1, &got);
    CHECK(got == want, "%a becomes %x instead of %x", (double)number, (unsigned)got, (unsigned)want);
    number = -number;
    k->narrow(&number, 1, &got);
    CHECK(got == (want | 0x8000), "%a becomes %x instead of %x", (double)number, (unsigned)got, (unsigned)want);
}

static void to_nearest_ties_to_even(void **state)
{
    (void)state;
    for (ptrdiff_t k = 0; k < COUNT(kinds); k++) {
        for (uint16_t low = 0; low < kinds[k].largest; low++) {
            uint16_t high = (uint16_t)(low + 1);
            float a = 0;
            float b = 0;
            kinds[k].widen(&low, 1, &a);
            kinds[k].widen(&high, 1, &b);
            float middle = a + (b - a) / 2; /* exact: both have far fewer bits than a float */
            check_rounds(&kinds[k], middle, low % 2 ? high : low);
            check_rounds(&kinds[k], nextafterf(middle, a), low);
            check_rounds(&kinds[k], nextafterf(middle, b), high);
        }
    }
    check_rounds(&kinds[0], 65519.0F, 0x7BFF);
    check_rounds(&kinds[0], 65520.0F, 0x7C00);
    check_rounds(&kinds[0], 1e38F, 0x7C00);
    check_rounds(&kinds[0], 1e-30F, 0);
    check_rounds(&kinds[1], 3.4e38F, 0x7F80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_there_and_back),
        cmocka_unit_test(to_nearest_ties_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
