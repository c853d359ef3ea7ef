/* csv: a table of numbers in text; one column is the label, the others are the features. */
#include "io/csv.h"

#include "problem/source.h"

#include <float.h>
#include <math.h>

typedef struct csv_params {
    char path[REEF_TEXT_SIZE];
    char test_path[REEF_TEXT_SIZE];
    char label[REEF_TEXT_SIZE];
    int separator;
    int header;
} csv_params;

static const char *const separator_words[] = {"auto", "comma", "semicolon", "tab", "space", NULL};
static const char *const header_words[] = {"auto", "yes", "no", NULL};

static const reef_field csv_fields[] = {
    {.name = "path",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(csv_params, path),
     .preset = "",
     .unit = "",
     .help = "the file, one sample per line"},
    {.name = "test_path",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(csv_params, test_path),
     .preset = "",
     .unit = "",
     .help = "samples for testing; without it a share of the samples is taken"},
    {.name = "label",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(csv_params, label),
     .preset = "-1",
     .unit = "",
     .help = "column of the label: its name, its number from 0, or from the end (-1 is the last)"},
    {.name = "separator",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(csv_params, separator),
     .preset = "auto",
     .unit = "",
     .help = "what separates fields; auto: tab, semicolon or comma if the first line has one, else blanks",
     .words = separator_words},
    {.name = "header",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(csv_params, header),
     .preset = "auto",
     .unit = "",
     .help = "whether the first line has the column names; auto: if none of its fields is a number",
     .words = header_words},
};

static float to_float(double value)
{
    return fabs(value) > (double)FLT_MAX ? copysignf(INFINITY, value > 0 ? 1.0F : -1.0F) : (float)value;
}

/* Splits the table into features and label column. */
static reef_status take_columns(const reef_context *context, const rfi_csv *table, const char *path, const char *label,
                                rfi_samples *samples, reef_error *error)
{
    ptrdiff_t column = 0;
    reef_status status = rfi_csv_column(table, label, path, &column, error);
    if (status == REEF_OK) {
        status = rfi_samples_create(context, table->rows, table->columns - 1, path, samples, error);
    }
    for (ptrdiff_t i = 0; status == REEF_OK && i < table->rows; i++) {
        const double *cells = table->cells + i * table->columns;
        float *row = samples->features + i * samples->width;
        samples->labels[i] = cells[column];
        for (ptrdiff_t j = 0; j < samples->width; j++) {
            row[j] = to_float(cells[j + (j >= column ? 1 : 0)]);
        }
    }
    return status;
}

static reef_status load_one(const reef_context *context, const csv_params *p, const char *path, rfi_samples *samples,
                            reef_error *error)
{
    rfi_file file = {0};
    rfi_csv table = {0};
    reef_status status = rfi_file_read(context, path, RFI_DATA_BYTES_MAX, &file, error);
    if (status == REEF_OK) {
        status = rfi_csv_read(context, file.bytes, file.size, path, (rfi_csv_separator)p->separator,
                              (rfi_csv_header)p->header, &table, error);
    }
    if (status == REEF_OK) {
        status = take_columns(context, &table, path, p->label, samples, error);
    }
    rfi_csv_free(context, &table);
    rfi_file_free(context, &file);
    return status;
}

static reef_status csv_load(const reef_context *context, const void *params, uint64_t seed, rfi_loaded *loaded,
                            reef_error *error)
{
    const csv_params *p = params;
    (void)seed;
    reef_status status = rfi_need_path("csv", "path", p->path, error);
    if (status == REEF_OK) {
        status = load_one(context, p, p->path, &loaded->train, error);
    }
    if (status == REEF_OK && p->test_path[0]) {
        status = load_one(context, p, p->test_path, &loaded->test, error);
    }
    return status;
}

const rfi_source rfi_source_csv = {
    .kind =
        {
            .name = "csv",
            .summary = "a table of numbers in text, one column being the label",
            .citation = "",
            .fields = csv_fields,
            .field_count = RFI_COUNT(csv_fields),
            .params_size = sizeof(csv_params),
        },
    .load = csv_load,
};
