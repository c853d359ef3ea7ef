/* Conversions by bit patterns, without branches in the loops that read, so that compilers make vector code of them. */
#include "io/half.h"

#include <string.h>

/* Bit patterns of float. */
static const uint32_t sign_bit = UINT32_C(0x80000000);
static const uint32_t infinite = UINT32_C(0x7F800000);

static uint32_t bits_of(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static float number_of(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Exponent and fraction moved to their places in a float make a number 2^112 too small, denormal ones included: integers times
 * 2^-24. Those are converted as integers, since a denormal float may count as zero in the caller's floating-point mode. */
void rfi_widen_f16(const uint16_t *half, ptrdiff_t count, float *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint32_t magnitude = half[i] & UINT32_C(0x7FFF);
        uint32_t sign = (uint32_t)(half[i] & UINT32_C(0x8000)) << 16;
        uint32_t normal = (magnitude << 13) + (UINT32_C(112) << 23);
        uint32_t special = (magnitude << 13) | infinite;
        uint32_t small = bits_of((float)(int32_t)magnitude * 0x1p-24F);
        uint32_t bits = magnitude < 0x400 ? small : normal;
        bits = magnitude >= 0x7C00 ? special : bits;
        out[i] = number_of(bits | sign);
    }
}

void rfi_widen_bf16(const uint16_t *half, ptrdiff_t count, float *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        out[i] = number_of((uint32_t)half[i] << 16);
    }
}

/* Drops the last `places` bits of a pattern, to nearest, ties to even. A carry into the exponent is right as it is. */
static uint32_t round_off(uint32_t bits, int places)
{
    uint32_t odd = (bits >> places) & 1;
    return (bits + (UINT32_C(1) << (places - 1)) - 1 + odd) >> places;
}

static uint16_t narrow_f16(float number)
{
    uint32_t bits = bits_of(number);
    uint32_t sign = (bits & sign_bit) >> 16;
    uint32_t magnitude = bits & ~sign_bit;
    if (magnitude > infinite) {
        return (uint16_t)(sign | 0x7E00);
    }
    if (magnitude >= UINT32_C(0x47800000)) { /* 2^16 */
        return (uint16_t)(sign | 0x7C00);
    }
    if (magnitude >= UINT32_C(0x38800000)) { /* 2^-14, the smallest normal one; 65520 and more round up to infinity */
        return (uint16_t)(sign | round_off(magnitude - (UINT32_C(112) << 23), 13));
    }
    if (magnitude <= UINT32_C(0x33000000)) { /* 2^-25, half of the smallest: to even, which is 0 */
        return (uint16_t)sign;
    }
    int places = 126 - (int)(magnitude >> 23); /* fraction with its leading 1 -> multiples of 2^-24 */
    uint32_t fraction = (magnitude & UINT32_C(0x7FFFFF)) | UINT32_C(0x800000);
    return (uint16_t)(sign | round_off(fraction, places));
}

void rfi_narrow_f16(const float *number, ptrdiff_t count, uint16_t *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        out[i] = narrow_f16(number[i]);
    }
}

void rfi_narrow_bf16(const float *number, ptrdiff_t count, uint16_t *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(number[i]);
        out[i] = (uint16_t)((bits & ~sign_bit) > infinite ? (bits >> 16) | 0x40 : round_off(bits, 16));
    }
}
