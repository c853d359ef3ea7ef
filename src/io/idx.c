/* IDX headers. */
#include "io/idx.h"

#include "base/error.h"
#include "io/file.h"

#include <stdint.h>

enum { RANK_MAX = 4 };

static bool find_type(unsigned char code, rfi_type *type)
{
    static const struct {
        unsigned char code;
        rfi_type type;
    } types[] = {{8, RFI_U8}, {9, RFI_I8}, {11, RFI_I16}, {12, RFI_I32}, {13, RFI_F32}, {14, RFI_F64}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].code == code) {
            *type = types[i].type;
            return true;
        }
    }
    return false;
}

static reef_status read_start(const unsigned char *b, size_t size, const char *shown, rfi_array *array,
                              reef_error *error)
{
    if (size >= 2 && b[0] == 0x1F && b[1] == 0x8B) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: the file is compressed; unpack it with gunzip first", shown);
    }
    if (size < 4 || b[0] != 0 || b[1] != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte 0: this is not an IDX file", shown);
    }
    if (!find_type(b[2], &array->type)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte 2: unknown type %d; 8, 9, 11, 12, 13 and 14 are supported",
                        shown, b[2]);
    }
    if (b[3] < 1 || b[3] > RANK_MAX) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte 3: %d dimensions; 1 to 4 are supported", shown, b[3]);
    }
    array->rank = b[3];
    array->big_endian = true;
    return REEF_OK;
}

static ptrdiff_t load_dimension(const unsigned char *b)
{
    return (ptrdiff_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
}

reef_status rfi_idx_read(const void *bytes, size_t size, const char *name, rfi_array *array, reef_error *error)
{
    const unsigned char *b = bytes;
    const char *shown = rfi_path_show(name);
    rfi_array found = {0};
    reef_status status = read_start(b, size, shown, &found, error);
    if (status != REEF_OK) {
        return status;
    }
    size_t start = 4 + 4 * (size_t)found.rank;
    if (size < start) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte %zu: the file ends within its header", shown, size);
    }
    for (int i = 0; i < found.rank; i++) {
        found.shape[i] = load_dimension(b + 4 + 4 * (size_t)i);
    }
    if (!rfi_array_measure(&found)) {
        return rfi_fail(error, REEF_E_OVERFLOW, "%s: byte 4: its shape has more elements than memory can hold", shown);
    }
    size_t want = (size_t)found.count * rfi_type_size(found.type);
    if (want != size - start) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte %zu: %zu bytes of data, expected %zu", shown, start,
                        size - start, want);
    }
    found.data = b + start;
    *array = found;
    return REEF_OK;
}
