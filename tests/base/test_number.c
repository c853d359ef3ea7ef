/* Text to double: right to the last bit, whatever the locale. */
#include "base/number.h"
#include "num/rng.h"
#include "support/check.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_text(const char *text, double *number)
{
    return rfi_read_real((rfi_slice){text, strlen(text)}, number);
}

static void known_values(void **state)
{
    static const struct {
        const char *text;
        double value;
    } known[] = {
        {"0", 0.0},
        {"-0", -0.0},
        {"1", 1.0},
        {"+.5", 0.5},
        {"5.", 5.0},
        {"007", 7.0},
        {"-1.25e2", -125.0},
        {"1E+22", 1e22},
        {"1e23", 1e23}, /* the first power of ten that is no double */
        {"9007199254740993", 9007199254740992.0},
        {"9007199254740993.0000000000000000000001", 9007199254740994.0},
        {"1.7976931348623157e308", DBL_MAX},
        {"4.9e-324", 0x1p-1074},
        {"1e-400", 0.0},
        {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022},
        {"0.000000000000000000000000000000000000000000000000000000000000000000000000000000001e80", 0.1},
        {"0e999999999999999999999", 0.0},
        {"12345678901234567890123456789", 12345678901234567890123456789.0},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        double number = 77;
        CHECK(read_text(known[i].text, &number), "%s is refused", known[i].text);
        CHECK(number == known[i].value && signbit(number) == signbit(known[i].value), "%s reads as %.17g",
              known[i].text, number);
    }
}

static void refusals(void **state)
{
    static const char *const bad[] = {"",     " ",     "+",     "-",      ".",        "e5",  "1e",  "1e+", "1e1.5",
                                      "--1",  "1 ",    " 1",    "1,5",    "nan",      "inf", "0x1", "1f",  "1e5e",
                                      "1..2", "1.2.3", "1e999", "-1e309", "Infinity", "1_0", "1e5 "};
    double number = 77;
    char long_text[RFI_NUMBER_LENGTH_MAX + 2];
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        CHECK(!read_text(bad[i], &number) && number == 77, "'%s' is taken as %g", bad[i], number);
    }
    memset(long_text, '1', sizeof long_text);
    assert_false(rfi_read_real((rfi_slice){long_text, RFI_NUMBER_LENGTH_MAX + 1}, &number));
    assert_false(rfi_read_real((rfi_slice){"1\0", 2}, &number));
    memset(long_text, '0', sizeof long_text);
    assert_true(rfi_read_real((rfi_slice){long_text, RFI_NUMBER_LENGTH_MAX}, &number) && number == 0);
}

/* Any double printed with 17 digits reads back, and a few digits read as strtod reads them. */
static void random_values_read_back(void **state)
{
    rfi_rng rng;
    (void)state;
    rfi_rng_init(&rng, 5, 1, 0, 0, 0);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        double number = 0;
        uint64_t bits = (uint64_t)rfi_rng_u32(&rng) << 32 | rfi_rng_u32(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) {
            continue;
        }
        (void)snprintf(text, sizeof text, "%.17g", value);
        CHECK(read_text(text, &number) && number == value, "%s reads as %.17g", text, number);
        (void)snprintf(text, sizeof text, "%.*g", 1 + i % 15, (rfi_rng_uniform(&rng) - 0.5) * 1e6);
        CHECK(read_text(text, &number) && number == strtod(text, NULL), "%s reads as %.17g", text, number);
    }
}

static void printed_values_read_back(void **state)
{
    static const double values[] = {0, -0.0, 1, 0.1, 1.0 / 3, -2.5e-300, DBL_MAX, 0x1p-1074, 123456, 1e22, 2 - 0x1p-52};
    char text[RFI_REAL_SIZE];
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(values); i++) {
        double number = 77;
        rfi_print_real(values[i], text);
        CHECK(read_text(text, &number) && number == values[i], "%.17g is printed as %s", values[i], text);
    }
    rfi_print_real(0.1, text);
    assert_string_equal(text, "0.1");
    rfi_print_real(-1e22, text);
    assert_string_equal(text, "-1e+22");
}

/* Where the system has a locale with a decimal comma; the slow path is the one at risk. */
static void comma_locales(void **state)
{
    static const char *const names[] = {"de_DE.utf8", "de_DE.UTF-8", "fr_FR.utf8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    const char *found = NULL;
    double number = 0;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(names) && !found; i++) {
        found = setlocale(LC_ALL, names[i]);
    }
    if (!found) {
        skip();
    }
    assert_true(read_text("1.5", &number) && number == 1.5);
    assert_true(read_text("1.50000000000000000000001", &number) && number == 1.5);
    assert_false(read_text("1,5", &number));
    char text[RFI_REAL_SIZE];
    rfi_print_real(-1.5, text);
    assert_string_equal(text, "-1.5");
    assert_string_equal(localeconv()->decimal_point, ",");
    setlocale(LC_ALL, "C");
}

static void hexadecimal(void **state)
{
    static const char *const wrong[] = {
        "", "0", "00000000000000000", "000000000000000g", "000000000000000A", "0x00000000000000"};
    uint64_t number = 7;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(wrong); i++) {
        assert_false(rfi_read_hex((rfi_slice){wrong[i], strlen(wrong[i])}, &number));
    }
    assert_false(rfi_read_hex((rfi_slice){"000000000000000\0", 16}, &number));
    assert_true(number == 7);
    assert_true(rfi_read_hex((rfi_slice){"fedcba9876543210", 16}, &number));
    assert_true(number == UINT64_C(0xfedcba9876543210));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hexadecimal),
        cmocka_unit_test(known_values),
        cmocka_unit_test(refusals),
        cmocka_unit_test(random_values_read_back),
        cmocka_unit_test(printed_values_read_back),
        cmocka_unit_test(comma_locales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
