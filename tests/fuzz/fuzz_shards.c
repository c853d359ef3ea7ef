/* Indices of models in shards: any bytes are either refused with a sentence, or name files of one folder; and what was read can be written
 * and read again. */
#include "check.h"
#include "io/shards.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_again(const rfi_shards *shards)
{
    rfi_shards again;
    reef_error error;
    size_t size = rfi_shards_write(shards->entries, shards->count, 1, NULL);
    char *text = malloc(size);
    CHECK(text && rfi_shards_write(shards->entries, shards->count, 1, text) == size);
    CHECK(rfi_shards_read(NULL, text, size, "fuzz", &again, &error) == REEF_OK);
    CHECK(again.count == shards->count && again.file_count == shards->file_count);
    for (ptrdiff_t i = 0; i < shards->count; i++) {
        CHECK(rfi_slice_compare(again.entries[i].tensor, shards->entries[i].tensor) == 0);
        CHECK(rfi_slice_compare(again.entries[i].file, shards->entries[i].file) == 0);
    }
    rfi_shards_free(NULL, &again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rfi_shards shards;
    reef_error error = {REEF_OK, ""};
    reef_status status = rfi_shards_read(NULL, data, size, "fuzz", &shards, &error);
    if (status != REEF_OK) {
        CHECK(error.status == status && strncmp(error.text, "fuzz: ", 6) == 0);
        return 0;
    }
    for (ptrdiff_t i = 0; i < shards.file_count; i++) {
        CHECK(shards.files[i].length > 0 && !memchr(shards.files[i].text, '/', shards.files[i].length));
        CHECK(i == 0 || rfi_slice_compare(shards.files[i - 1], shards.files[i]) < 0);
    }
    check_again(&shards);
    rfi_shards_free(NULL, &shards);
    return 0;
}
