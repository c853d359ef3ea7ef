/* Conversions between the types of numbers, in two steps where one of them has 8 or 16 bits and the other 64. */
#include "io/precision.h"

#include "io/eighth.h"
#include "io/half.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Numbers converted at a time where that takes two steps. */
enum { STEP = 256 };

void rfi_widen_to_f32(rfi_type type, const void *raw, ptrdiff_t count, float *out)
{
    if (type == RFI_F16) {
        rfi_widen_f16(raw, count, out);
    } else if (type == RFI_BF16) {
        rfi_widen_bf16(raw, count, out);
    } else if (type == RFI_F8_E4M3) {
        rfi_widen_e4m3(raw, count, out);
    } else if (type == RFI_F8_E5M2) {
        rfi_widen_e5m2(raw, count, out);
    } else {
        assert(type == RFI_F32);
        memcpy(out, raw, (size_t)count * sizeof *out);
    }
}

void rfi_widen_to_f64(rfi_type type, const void *raw, ptrdiff_t count, double *out)
{
    const unsigned char *bytes = raw;
    float step[STEP];
    size_t width = rfi_type_size(type);
    if (type == RFI_F64) {
        memcpy(out, raw, (size_t)count * sizeof *out);
        return;
    }
    for (ptrdiff_t i = 0; i < count; i += STEP) {
        ptrdiff_t part = count - i < STEP ? count - i : STEP;
        rfi_widen_to_f32(type, bytes + (size_t)i * width, part, step);
        for (ptrdiff_t j = 0; j < part; j++) {
            out[i + j] = (double)step[j];
        }
    }
}

/* To nearest; beyond the range of float to infinity, which begins half a place above its largest number. */
static float to_single(double number)
{
    if (!(fabs(number) > (double)FLT_MAX)) {
        return (float)number;
    }
    return copysignf(fabs(number) < 0x1.FFFFFFp127 ? FLT_MAX : INFINITY, number < 0 ? -1.0F : 1.0F);
}

/* To odd: so that rounding once more, to 16 or 8 bits, is as if done at once. */
static float to_odd(double number)
{
    float nearest = to_single(number);
    if (!isfinite(nearest) || (double)nearest == number) {
        return nearest;
    }
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    bits -= fabs((double)nearest) > fabs(number) ? 1 : 0; /* toward zero */
    bits |= 1;
    memcpy(&nearest, &bits, sizeof nearest);
    return nearest;
}

void rfi_narrow_from_f32(rfi_type type, const float *numbers, ptrdiff_t count, void *raw)
{
    if (type == RFI_F16) {
        rfi_narrow_f16(numbers, count, raw);
    } else if (type == RFI_BF16) {
        rfi_narrow_bf16(numbers, count, raw);
    } else if (type == RFI_F8_E4M3) {
        rfi_narrow_e4m3(numbers, count, raw);
    } else if (type == RFI_F8_E5M2) {
        rfi_narrow_e5m2(numbers, count, raw);
    } else {
        assert(type == RFI_F32);
        memcpy(raw, numbers, (size_t)count * sizeof *numbers);
    }
}

void rfi_narrow_from_f64(rfi_type type, const double *numbers, ptrdiff_t count, void *raw)
{
    unsigned char *bytes = raw;
    float step[STEP];
    size_t width = rfi_type_size(type);
    if (type == RFI_F64) {
        memcpy(raw, numbers, (size_t)count * sizeof *numbers);
        return;
    }
    for (ptrdiff_t i = 0; i < count; i += STEP) {
        ptrdiff_t part = count - i < STEP ? count - i : STEP;
        for (ptrdiff_t j = 0; j < part; j++) {
            step[j] = type == RFI_F32 ? to_single(numbers[i + j]) : to_odd(numbers[i + j]);
        }
        rfi_narrow_from_f32(type, step, part, bytes + (size_t)i * width);
    }
}
