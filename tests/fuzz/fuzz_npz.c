/* .npz files: any bytes are either refused with a sentence, or are arrays whose data lie within the file and do not overlap; their names can be
 * written into a safetensors header. */
#include "folder.h"
#include "io/json.h"
#include "io/npz.h"

#include <stdint.h>

static void check_tensors(const rfi_safetensors *table, size_t size)
{
    size_t end = 0;
    for (ptrdiff_t i = 0; i < table->count; i++) {
        const rfi_tensor *tensor = &table->tensors[i];
        CHECK(tensor->start >= end && tensor->start <= size && tensor->bytes <= size - tensor->start);
        CHECK(tensor->bytes == (size_t)tensor->count * rfi_type_size(tensor->type));
        CHECK(rfi_json_is_text(tensor->name));
        end = tensor->start + tensor->bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[96];
    rfi_reader file;
    rfi_safetensors table;
    reef_error error = {REEF_OK, ""};
    make_folder();
    (void)snprintf(path, sizeof path, "%s/x.npz", folder);
    write_all(path, data, size);
    CHECK(rfi_reader_open(&file, path, NULL) == REEF_OK);
    if (rfi_npz_read(NULL, &file, &table, &error) == REEF_OK) {
        check_tensors(&table, size);
        rfi_safetensors_free(NULL, &table);
    } else {
        CHECK(error.status != REEF_OK && error.text[0]);
    }
    rfi_reader_close(&file);
    return 0;
}
