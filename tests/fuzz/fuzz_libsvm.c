/* Sparse text: any bytes are either refused with a sentence, or give a matrix of finite numbers within the limit. */
#include "check.h"
#include "io/libsvm.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rfi_libsvm read;
    reef_error error = {REEF_OK, ""};
    if (rfi_libsvm_read(NULL, data, size, "fuzz", 2, MOST, &read, &error) != REEF_OK) {
        CHECK(error.status != REEF_OK && strncmp(error.text, "fuzz:", 5) == 0);
        return 0;
    }
    CHECK(read.rows > 0 && read.columns >= 2 && read.rows <= MOST / read.columns);
    for (ptrdiff_t i = 0; i < read.rows * read.columns; i++) {
        CHECK(isfinite(read.values[i]));
    }
    for (ptrdiff_t i = 0; i < read.rows; i++) {
        CHECK(isfinite(read.labels[i]));
    }
    rfi_libsvm_free(NULL, &read);
    return 0;
}
