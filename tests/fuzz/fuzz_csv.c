/* Tables in text: any bytes are either refused with a sentence, or give finite numbers, no more of them than there are
 * bytes. The first byte chooses separator and header. */
#include "check.h"
#include "io/csv.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_table(const rfi_csv *table, const uint8_t *data, size_t size)
{
    ptrdiff_t index = -1;
    CHECK(table->rows > 0 && table->columns > 0 && (size_t)table->rows * (size_t)table->columns <= size);
    for (ptrdiff_t i = 0; i < table->rows * table->columns; i++) {
        CHECK(isfinite(table->cells[i]));
    }
    for (ptrdiff_t i = 0; table->names && i < table->columns; i++) {
        const char *text = table->names[i].text;
        CHECK(text >= (const char *)data && text + table->names[i].length <= (const char *)data + size);
    }
    CHECK(rfi_csv_column(table, "-1", "fuzz", &index, NULL) == REEF_OK && index >= 0 && index < table->columns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rfi_csv table;
    reef_error error = {REEF_OK, ""};
    if (size == 0) {
        return 0;
    }
    rfi_csv_separator separator = (rfi_csv_separator)(data[0] % 5);
    rfi_csv_header header = (rfi_csv_header)(data[0] / 5 % 3);
    if (rfi_csv_read(NULL, data + 1, size - 1, "fuzz", separator, header, &table, &error) != REEF_OK) {
        CHECK(error.status != REEF_OK && strncmp(error.text, "fuzz:", 5) == 0);
        return 0;
    }
    check_table(&table, data + 1, size - 1);
    rfi_csv_free(NULL, &table);
    return 0;
}
