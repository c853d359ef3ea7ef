/* .npy files: any bytes are either refused with a sentence, or describe exactly the bytes they have; then all elements can
 * be read, and a file of the same shape written here reads back. */
#include "check.h"
#include "io/npy.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_elements(const rfi_array *array)
{
    size_t count = (size_t)array->count;
    double *wide = malloc(count * sizeof *wide + 1);
    float *narrow = malloc(count * sizeof *narrow + 1);
    CHECK(wide && narrow);
    rfi_array_get_f64(array, wide);
    rfi_array_get_f32(array, narrow);
    free(wide);
    free(narrow);
}

static void check_header(const rfi_array *array)
{
    char header[RFI_NPY_HEADER_MAX];
    rfi_array again;
    size_t length = rfi_npy_header(array->type, array->rank, array->shape, header);
    size_t data = (size_t)array->count * rfi_type_size(array->type);
    unsigned char *bytes = malloc(length + data);
    CHECK(bytes && length % 64 == 0 && length <= sizeof header);
    memcpy(bytes, header, length);
    memset(bytes + length, 0, data);
    CHECK(rfi_npy_read(bytes, length + data, "again", &again, NULL) == REEF_OK);
    CHECK(again.rank == array->rank && again.count == array->count && again.type == array->type);
    CHECK(memcmp(again.shape, array->shape, sizeof again.shape) == 0);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rfi_array array;
    reef_error error = {REEF_OK, ""};
    if (rfi_npy_read(data, size, "fuzz", &array, &error) != REEF_OK) {
        CHECK(error.status != REEF_OK && strncmp(error.text, "fuzz: ", 6) == 0);
        return 0;
    }
    CHECK(array.data + (size_t)array.count * rfi_type_size(array.type) == data + size);
    check_elements(&array);
    check_header(&array);
    return 0;
}
