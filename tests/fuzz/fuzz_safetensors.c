/* Safetensors files: any bytes are either refused with a sentence, or describe tensors that fill the data exactly. */
#include "check.h"
#include "io/foreign.h"
#include "io/safetensors.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_tensors(const rfi_safetensors *table, size_t room)
{
    size_t end = 0;
    for (ptrdiff_t i = 0; i < table->count; i++) {
        const rfi_tensor *tensor = &table->tensors[i];
        CHECK(tensor->start == end && tensor->bytes == (size_t)tensor->count * rfi_type_size(tensor->type));
        CHECK(tensor->name.length == 0 || memchr(tensor->name.text, 0xFF, tensor->name.length) == NULL);
        for (ptrdiff_t j = 0; j < tensor->rank; j++) {
            CHECK(tensor->shape[j] >= 0);
        }
        CHECK(i == 0 || rfi_tensor_compare(tensor, tensor - 1) != 0);
        end += tensor->bytes;
    }
    CHECK(end == room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rfi_safetensors table;
    reef_error error = {REEF_OK, ""};
    size_t length = 0;
    (void)rfi_foreign(data, size);
    reef_status status = rfi_safetensors_length(data, size, size, "fuzz", &length, &error);
    if (status == REEF_OK) {
        CHECK(length <= size - RFI_SAFETENSORS_START);
        size_t room = size - RFI_SAFETENSORS_START - length;
        status = rfi_safetensors_read(NULL, data + RFI_SAFETENSORS_START, length, room, "fuzz", &table, &error);
        if (status == REEF_OK) {
            CHECK(rfi_foreign(data, size) == NULL); /* no good file is taken for something else */
            check_tensors(&table, room);
            rfi_safetensors_free(NULL, &table);
        }
    }
    CHECK(status == REEF_OK || (error.status == status && strncmp(error.text, "fuzz: ", 6) == 0));
    return 0;
}
