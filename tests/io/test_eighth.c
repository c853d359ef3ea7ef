/* 8-bit numbers against tables written down from the definition, and rounding against a search through all of them. */
#include "io/eighth.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

typedef void (*widen)(const uint8_t *, ptrdiff_t, float *);
typedef void (*narrow)(const float *, ptrdiff_t, uint8_t *);

/* From the tables of the paper: smallest and largest, denormal and normal, and what lies beside them. */
static const struct {
    uint8_t code;
    float e4m3, e5m2;
} known[] = {
    {0x00, 0, 0},
    {0x01, 0.001953125F, 1.52587890625e-05F},
    {0x03, 0.005859375F, 4.57763671875e-05F},
    {0x04, 0.0078125F, 6.103515625e-05F},
    {0x07, 0.013671875F, 0.0001068115234375F},
    {0x08, 0.015625F, 0.0001220703125F},
    {0x30, 0.5F, 0.125F},
    {0x38, 1, 0.5F},
    {0x3C, 1.5F, 1},
    {0x40, 2, 2},
    {0x77, 240, 28672},
    {0x78, 256, 32768},
    {0x7B, 352, 57344},
    {0x7E, 448, NAN},
    {0x7F, NAN, NAN},
};

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

static void tables(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        for (int sign = 0; sign < 2; sign++) {
            uint8_t code = (uint8_t)(known[i].code | sign << 7);
            float a = 0;
            float b = 0;
            rfi_widen_e4m3(&code, 1, &a);
            rfi_widen_e5m2(&code, 1, &b);
            float turn = sign ? -1 : 1;
            CHECK(same(a, turn * known[i].e4m3), "E4M3 %02x is %g", code, (double)a);
            CHECK(same(b, turn * known[i].e5m2), "E5M2 %02x is %g", code, (double)b);
        }
    }
    uint8_t infinite = 0xFC;
    float value = 0;
    rfi_widen_e5m2(&infinite, 1, &value);
    assert_true(isinf(value) && value < 0);
}

/* The nearest of all numbers, of two the one with an even code; `largest` is the last finite code. */
static uint8_t search(widen wide, float x, uint8_t largest)
{
    uint8_t best = 0;
    double nearest = INFINITY;
    for (int code = 0; code <= largest; code++) {
        uint8_t one = (uint8_t)code;
        float value = 0;
        wide(&one, 1, &value);
        double away = fabs((double)value - (double)x);
        if (away < nearest || (away == nearest && code % 2 == 0)) {
            nearest = away;
            best = one;
        }
    }
    return best;
}

static void check_rounding(widen wide, narrow to, uint8_t largest, const char *name)
{
    for (int code = 0; code < largest; code++) {
        uint8_t pair[2] = {(uint8_t)code, (uint8_t)(code + 1)};
        float ends[2];
        wide(pair, 2, ends);
        float middle = (ends[0] + ends[1]) / 2;
        const float tries[] = {ends[0],
                               ends[1],
                               middle,
                               nextafterf(middle, 0),
                               nextafterf(middle, INFINITY),
                               ends[0] + (ends[1] - ends[0]) * 0.3F,
                               ends[0] + (ends[1] - ends[0]) * 0.9F};
        for (ptrdiff_t i = 0; i < COUNT(tries); i++) {
            uint8_t got = 0;
            float below = -tries[i];
            to(&tries[i], 1, &got);
            uint8_t want = search(wide, tries[i], largest);
            CHECK(got == want, "%s: %a becomes %02x instead of %02x", name, (double)tries[i], got, want);
            to(&below, 1, &got);
            CHECK(got == (want | 0x80), "%s: %a becomes %02x", name, (double)below, got);
        }
    }
}

static void rounding(void **state)
{
    (void)state;
    check_rounding(rfi_widen_e4m3, rfi_narrow_e4m3, 0x7E, "E4M3");
    check_rounding(rfi_widen_e5m2, rfi_narrow_e5m2, 0x7B, "E5M2");
}

/* Beyond the largest: a half place more still rounds down to it. */
static void ends(void **state)
{
    static const float numbers[] = {464, 464.0001F, 1e30F, INFINITY, NAN, 61439, 61440, -INFINITY, 1e-30F, -1e-45F};
    static const uint8_t e4m3[] = {0x7E, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0xFF, 0x00, 0x80};
    static const uint8_t e5m2[] = {0x5F, 0x5F, 0x7C, 0x7C, 0x7E, 0x7B, 0x7C, 0xFC, 0x00, 0x80};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(numbers); i++) {
        uint8_t a = 0;
        uint8_t b = 0;
        rfi_narrow_e4m3(&numbers[i], 1, &a);
        rfi_narrow_e5m2(&numbers[i], 1, &b);
        CHECK(a == e4m3[i] || (i == 4 && (a & 0x7F) == 0x7F), "E4M3: %g becomes %02x", (double)numbers[i], a);
        CHECK(b == e5m2[i] || (i == 4 && (b & 0x7F) == 0x7E), "E5M2: %g becomes %02x", (double)numbers[i], b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables), cmocka_unit_test(rounding), cmocka_unit_test(ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
