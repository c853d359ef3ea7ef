/* There are few such numbers and much time: by arithmetic, exactly. */
#include "io/eighth.h"

#include "io/half.h"

#include <math.h>

void rfi_widen_e4m3(const uint8_t *eighth, ptrdiff_t count, float *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        int exponent = eighth[i] >> 3 & 15;
        int fraction = eighth[i] & 7;
        float magnitude = exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
        magnitude = (eighth[i] & 0x7F) == 0x7F ? NAN : magnitude;
        out[i] = eighth[i] & 0x80 ? -magnitude : magnitude;
    }
}

void rfi_widen_e5m2(const uint8_t *eighth, ptrdiff_t count, float *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint16_t half = (uint16_t)(eighth[i] << 8);
        rfi_widen_f16(&half, 1, &out[i]);
    }
}

/* The code without its sign: multiples of the last place of the number's exponent, which are rounded, on top of the exponent. A carry
 * into the exponent, and the denormal numbers, come out right by themselves. beyond: the code of what is too large. */
static uint8_t narrow(float number, int places, int bias, uint8_t beyond)
{
    float magnitude = fabsf(number);
    int exponent = 0;
    if (magnitude > 0x1p+20F) {
        return beyond;
    }
    (void)frexpf(magnitude, &exponent); /* magnitude = [0.5, 1) 2^exponent */
    exponent = magnitude > 0 && exponent - 1 > 1 - bias ? exponent - 1 : 1 - bias;
    long multiple = lrintf(ldexpf(magnitude, places - exponent));
    long code = ((long)(exponent + bias - 1) << places) + multiple;
    return code < beyond ? (uint8_t)code : beyond;
}

static uint8_t sign_of(float number)
{
    return signbit(number) ? 0x80 : 0;
}

void rfi_narrow_e4m3(const float *number, ptrdiff_t count, uint8_t *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint8_t code = isnan(number[i]) ? 0x7F : narrow(number[i], 3, 7, 0x7F);
        out[i] = (uint8_t)(sign_of(number[i]) | code);
    }
}

void rfi_narrow_e5m2(const float *number, ptrdiff_t count, uint8_t *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint8_t code = isnan(number[i]) ? 0x7E : narrow(number[i], 2, 15, 0x7C);
        out[i] = (uint8_t)(sign_of(number[i]) | code);
    }
}
