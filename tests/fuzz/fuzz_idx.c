/* IDX files: any bytes are either refused with a sentence, or describe exactly the bytes they have. */
#include "check.h"
#include "io/idx.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rfi_array array;
    reef_error error = {REEF_OK, ""};
    if (rfi_idx_read(data, size, "fuzz", &array, &error) != REEF_OK) {
        CHECK(error.status != REEF_OK && strncmp(error.text, "fuzz: ", 6) == 0);
        return 0;
    }
    CHECK(array.data + (size_t)array.count * rfi_type_size(array.type) == data + size);
    float *values = malloc((size_t)array.count * sizeof *values + 1);
    CHECK(values);
    rfi_array_get_f32(&array, values);
    free(values);
    return 0;
}
