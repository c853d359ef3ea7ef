/* Headers of safetensors files, measured and then written by the same code. */
#include "io/json.h"
#include "io/safetensors.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void put_number(char *to, size_t *used, size_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%zu", number);
    rfi_json_put(to, used, digits);
}

static void put_tensor(char *to, size_t *used, const rfi_tensor *tensor)
{
    rfi_json_put_text(to, used, tensor->name);
    rfi_json_put(to, used, ":{\"dtype\":\"");
    rfi_json_put(to, used, rfi_safetensors_type(tensor->type));
    rfi_json_put(to, used, "\",\"shape\":[");
    for (ptrdiff_t i = 0; i < tensor->rank; i++) {
        rfi_json_put(to, used, i ? "," : "");
        put_number(to, used, (size_t)tensor->shape[i]);
    }
    rfi_json_put(to, used, "],\"data_offsets\":[");
    put_number(to, used, tensor->start);
    rfi_json_put(to, used, ",");
    put_number(to, used, tensor->start + tensor->bytes);
    rfi_json_put(to, used, "]}");
}

static void put_metadata(char *to, size_t *used, const rfi_safetensors *table)
{
    rfi_json_put(to, used, "\"__metadata__\":{");
    for (ptrdiff_t i = 0; i < table->pairs; i++) {
        rfi_json_put(to, used, i ? "," : "");
        rfi_json_put_text(to, used, table->metadata[2 * i]);
        rfi_json_put(to, used, ":");
        rfi_json_put_text(to, used, table->metadata[2 * i + 1]);
    }
    rfi_json_put(to, used, "}");
}

size_t rfi_safetensors_write(const rfi_safetensors *table, char *to)
{
    size_t used = RFI_SAFETENSORS_START;
    rfi_json_put(to, &used, "{");
    if (table->pairs > 0) {
        put_metadata(to, &used, table);
    }
    for (ptrdiff_t i = 0; i < table->count; i++) {
        rfi_json_put(to, &used, i > 0 || table->pairs > 0 ? "," : "");
        put_tensor(to, &used, &table->tensors[i]);
    }
    rfi_json_put(to, &used, "}");
    while (used % RFI_SAFETENSORS_START != 0) { /* the data are aligned, for those who map them */
        rfi_json_put(to, &used, " ");
    }
    assert(used % RFI_SAFETENSORS_START == 0 && used > RFI_SAFETENSORS_START);
    uint64_t length = used - RFI_SAFETENSORS_START;
    for (int i = 0; to && i < RFI_SAFETENSORS_START; i++) {
        to[i] = (char)(unsigned char)(length >> (8 * i) & 0xFF);
    }
    return used;
}
