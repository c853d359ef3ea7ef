/* Elements of a file's array -> double or float, in C order. */
#include "io/array.h"

#include "base/memory.h"
#include "io/eighth.h"
#include "io/half.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

size_t rfi_type_size(rfi_type type)
{
    static const unsigned char sizes[] = {
#define TYPE_SIZE(code, letter, size) [code] = (size),
        RFI_TYPE_LIST(TYPE_SIZE)
#undef TYPE_SIZE
    };
    assert((size_t)type < sizeof sizes && sizes[type] > 0);
    return sizes[type];
}

bool rfi_array_measure(rfi_array *array)
{
    ptrdiff_t product = 1;
    ptrdiff_t bytes = 0;
    bool empty = false;
    for (int i = 0; i < array->rank; i++) {
        empty = empty || array->shape[i] == 0;
        if (array->shape[i] != 0 && !rfi_mul(product, array->shape[i], &product)) {
            return false;
        }
    }
    array->count = empty ? 0 : product;
    return rfi_mul(product, (ptrdiff_t)rfi_type_size(array->type), &bytes);
}

/* The bits of one element, byte by byte, so that neither alignment nor the machine's byte order matters. */
static uint64_t load(const unsigned char *place, size_t size, bool big_endian)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | place[big_endian ? i : size - 1 - i];
    }
    return bits;
}

/* Two's complement whose sign bit is `sign`. */
static double signed_value(uint64_t bits, uint64_t sign)
{
    return bits & sign ? -(double)((sign - 1 - (bits & (sign - 1))) + 1) : (double)bits;
}

static double real_value(uint64_t bits, rfi_type type)
{
    if (type == RFI_F16 || type == RFI_BF16) {
        uint16_t half = (uint16_t)bits;
        float value;
        if (type == RFI_F16) {
            rfi_widen_f16(&half, 1, &value);
        } else {
            rfi_widen_bf16(&half, 1, &value);
        }
        return (double)value;
    }
    if (type == RFI_F8_E4M3 || type == RFI_F8_E5M2) {
        uint8_t eighth = (uint8_t)bits;
        float value;
        if (type == RFI_F8_E4M3) {
            rfi_widen_e4m3(&eighth, 1, &value);
        } else {
            rfi_widen_e5m2(&eighth, 1, &value);
        }
        return (double)value;
    }
    if (type == RFI_F32) {
        uint32_t word = (uint32_t)bits;
        float value;
        memcpy(&value, &word, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double element(const rfi_array *array, ptrdiff_t place)
{
    size_t size = rfi_type_size(array->type);
    uint64_t bits = load(array->data + (size_t)place * size, size, array->big_endian);
    switch (array->type) {
    case RFI_I8:
        return signed_value(bits, UINT64_C(1) << 7);
    case RFI_I16:
        return signed_value(bits, UINT64_C(1) << 15);
    case RFI_I32:
        return signed_value(bits, UINT64_C(1) << 31);
    case RFI_I64:
        return signed_value(bits, UINT64_C(1) << 63);
    case RFI_F16:
    case RFI_BF16:
    case RFI_F8_E4M3:
    case RFI_F8_E5M2:
    case RFI_F32:
    case RFI_F64:
        return real_value(bits, array->type);
    case RFI_BOOL:
        return bits ? 1 : 0;
    case RFI_U8:
    case RFI_U16:
    case RFI_U32:
    case RFI_U64:
        break;
    }
    return (double)bits;
}

static void set_f64(void *out, ptrdiff_t i, double value)
{
    ((double *)out)[i] = value;
}

static void set_f32(void *out, ptrdiff_t i, double value)
{
    bool fits = !(fabs(value) > (double)FLT_MAX);
    ((float *)out)[i] = fits ? (float)value : copysignf(INFINITY, value > 0 ? 1.0F : -1.0F);
}

/* Counts through the elements in C order; `place` follows in the order of the file. */
static void get(const rfi_array *array, void *out, void (*set)(void *, ptrdiff_t, double))
{
    ptrdiff_t index[RFI_RANK_MAX] = {0};
    ptrdiff_t stride[RFI_RANK_MAX] = {0};
    ptrdiff_t place = 0;
    ptrdiff_t step = 1;
    for (int i = 0; i < array->rank; i++) {
        int axis = array->fortran ? i : array->rank - 1 - i;
        stride[axis] = step;
        step *= array->shape[axis];
    }
    assert(array->rank >= 0 && array->rank <= RFI_RANK_MAX && (array->count == 0 || step == array->count));
    for (ptrdiff_t i = 0; i < array->count; i++) {
        set(out, i, element(array, place));
        for (int axis = array->rank - 1; axis >= 0; axis--) {
            place += stride[axis];
            if (++index[axis] < array->shape[axis]) {
                break;
            }
            place -= array->shape[axis] * stride[axis];
            index[axis] = 0;
        }
    }
}

void rfi_array_get_f64(const rfi_array *array, double *out)
{
    get(array, out, set_f64);
}

void rfi_array_get_f32(const rfi_array *array, float *out)
{
    get(array, out, set_f32);
}
