/* Text -> double, and back.
 *
 * Most numbers have few digits: m 10^e with an integer m <= 2^53 and |e| <= 22 is one exact product or quotient of two
 * exact doubles, so a single rounding gives the right answer (Clinger 1990, "How to read floating point numbers accurately").
 * The rest go to strtod in the C locale, set for this thread alone.
 */
#include "base/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POWER_EXACT = 22, EXPONENT_CAP = 100000 };

/* A number taken apart: (-1)^negative mantissa 10^exponent. */
typedef struct parts {
    bool negative;
    bool cut; /* there were more digits than the mantissa holds */
    int digits;
    uint64_t mantissa;
    long exponent;
} parts;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes a sign off the front; true if it was a minus. */
static bool take_sign(rfi_slice *text)
{
    bool minus = text->length > 0 && text->text[0] == '-';
    if (minus || (text->length > 0 && text->text[0] == '+')) {
        text->text++;
        text->length--;
    }
    return minus;
}

/* Takes digits off the front into the mantissa; each shifts the exponent by `shift`. */
static void take_digits(rfi_slice *text, parts *p, int shift)
{
    while (text->length > 0 && is_digit(text->text[0])) {
        int digit = text->text[0] - '0';
        p->digits++;
        if (p->mantissa < UINT64_C(1000000000000000000)) {
            p->mantissa = 10 * p->mantissa + (uint64_t)digit;
            p->exponent += shift;
        } else {
            p->cut = true;
        }
        text->text++;
        text->length--;
    }
}

static bool take_exponent(rfi_slice *text, parts *p)
{
    if (text->length == 0 || (text->text[0] != 'e' && text->text[0] != 'E')) {
        return text->length == 0;
    }
    text->text++;
    text->length--;
    bool minus = take_sign(text);
    bool any = text->length > 0;
    long exponent = 0;
    for (; text->length > 0; text->text++, text->length--) {
        if (!is_digit(text->text[0])) {
            return false;
        }
        exponent = exponent < EXPONENT_CAP ? 10 * exponent + (text->text[0] - '0') : EXPONENT_CAP;
    }
    p->exponent += minus ? -exponent : exponent;
    return any;
}

static bool take_apart(rfi_slice text, parts *p)
{
    *p = (parts){0};
    p->negative = take_sign(&text);
    take_digits(&text, p, 0);
    if (text.length > 0 && text.text[0] == '.') {
        text.text++;
        text.length--;
        take_digits(&text, p, -1);
    }
    return p->digits > 0 && take_exponent(&text, p);
}

static bool read_exact(const parts *p, double *number)
{
    static const double powers[POWER_EXACT + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    /* Arithmetic in more than double precision would round twice. */
    bool plain = FLT_EVAL_METHOD == 0 && !p->cut && p->mantissa <= UINT64_C(1) << 53;
    if (!plain || p->exponent > POWER_EXACT || p->exponent < -POWER_EXACT) {
        return false;
    }
    double m = (double)p->mantissa;
    *number = p->exponent < 0 ? m / powers[-p->exponent] : m * powers[p->exponent];
    *number = p->negative ? -*number : *number;
    return true;
}

/* `text` is known to be well formed. */
static bool read_any(rfi_slice text, double *number)
{
    char copy[RFI_NUMBER_LENGTH_MAX + 1];
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) {
        return false;
    }
    memcpy(copy, text.text, text.length);
    copy[text.length] = '\0';
    locale_t before = uselocale(c_locale);
    double value = strtod(copy, NULL);
    (void)uselocale(before);
    freelocale(c_locale);
    if (!isfinite(value)) {
        return false;
    }
    *number = value;
    return true;
}

bool rfi_read_real(rfi_slice text, double *number)
{
    parts p;
    if (text.length > RFI_NUMBER_LENGTH_MAX || !take_apart(text, &p)) {
        return false;
    }
    return read_exact(&p, number) || read_any(text, number);
}

/* The decimal point of the locale is the only thing in such a text that may be something else than [0-9e+-]. */
static void plain_point(char *text)
{
    size_t head = strspn(text, "0123456789e+-");
    size_t tail = strcspn(text + head, "0123456789e+-");
    if (tail > 0) {
        text[head] = '.';
        memmove(text + head + 1, text + head + tail, strlen(text + head + tail) + 1);
    }
}

bool rfi_read_hex(rfi_slice text, uint64_t *number)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t read = 0;
    for (size_t i = 0; i < text.length; i++) {
        const char *digit = text.text[i] ? strchr(digits, text.text[i]) : NULL;
        if (!digit) {
            return false;
        }
        read = read << 4 | (uint64_t)(digit - digits);
    }
    if (text.length != 16) {
        return false;
    }
    *number = read;
    return true;
}

void rfi_print_real(double number, char text[RFI_REAL_SIZE])
{
    for (int digits = 6; digits <= 17; digits++) {
        double again = 0;
        (void)snprintf(text, RFI_REAL_SIZE, "%.*g", digits, number);
        plain_point(text);
        if (rfi_read_real((rfi_slice){text, strlen(text)}, &again) && again == number) {
            return;
        }
    }
}
