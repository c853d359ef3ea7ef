/* Two walks over the text: the first checks every line and finds the largest index, the second fills the matrix. */
#include "io/libsvm.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "io/file.h"
#include "io/lines.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Far more than any real set; keeps sums of indices and widths small. */
enum { INDEX_MAX = 1 << 30 };

/* The next word of a line; empty at its end. */
static rfi_slice take_word(rfi_slice *rest)
{
    size_t length = 0;
    while (rest->length > 0 && (rest->text[0] == ' ' || rest->text[0] == '\t')) {
        rest->text++;
        rest->length--;
    }
    while (length < rest->length && rest->text[length] != ' ' && rest->text[length] != '\t') {
        length++;
    }
    rfi_slice word = {rest->text, length};
    rest->text += length;
    rest->length -= length;
    return word;
}

static bool read_index(rfi_slice text, ptrdiff_t *index)
{
    *index = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.text[i] < '0' || text.text[i] > '9' || *index > INDEX_MAX) {
            return false;
        }
        *index = 10 * *index + (text.text[i] - '0');
    }
    return *index >= 1 && *index <= INDEX_MAX;
}

/* index:value; the index must be larger than *last, which it replaces. */
static reef_status read_pair(const rfi_lines *lines, rfi_slice word, ptrdiff_t *last, double *value, reef_error *error)
{
    rfi_slice number;
    bool found = false;
    ptrdiff_t index = 0;
    rfi_slice key = rfi_cut(word, ':', &number, &found);
    if (!found) {
        return rfi_lines_fail(lines, word.text, error, "index:value is expected here");
    }
    if (!read_index(key, &index)) {
        return rfi_lines_fail(lines, word.text, error, "indices are whole numbers from 1 to %d", INDEX_MAX);
    }
    if (index <= *last) {
        return rfi_lines_fail(lines, word.text, error, "index %td follows index %td; they must ascend", index, *last);
    }
    if (!rfi_read_real(number, value) || fabs(*value) > (double)FLT_MAX) {
        return rfi_lines_fail(lines, number.text, error, "this is not a finite decimal number of single precision");
    }
    *last = index;
    return REEF_OK;
}

/* One line; `row` is NULL when only *label and the largest index, *last, are wanted. */
static reef_status read_line(const rfi_lines *lines, float *row, double *label, ptrdiff_t *last, reef_error *error)
{
    rfi_slice rest = lines->line;
    rfi_slice word = take_word(&rest);
    if (!rfi_read_real(word, label)) {
        return rfi_lines_fail(lines, word.text, error, "a label is expected here, one finite number");
    }
    *last = 0;
    for (word = take_word(&rest); word.length > 0; word = take_word(&rest)) {
        double value = 0;
        reef_status status = read_pair(lines, word, last, &value, error);
        if (status != REEF_OK) {
            return status;
        }
        if (row) {
            row[*last - 1] = (float)value;
        }
    }
    return REEF_OK;
}

static reef_status survey(rfi_lines lines, rfi_libsvm *data, reef_error *error)
{
    while (rfi_lines_next(&lines)) {
        double label = 0;
        ptrdiff_t last = 0;
        reef_status status = read_line(&lines, NULL, &label, &last, error);
        if (status != REEF_OK) {
            return status;
        }
        data->rows++;
        data->columns = last > data->columns ? last : data->columns;
    }
    return data->rows > 0 ? REEF_OK
                          : rfi_fail(error, REEF_E_FORMAT, "%s: the file has no data", rfi_path_show(lines.name));
}

static void fill(rfi_lines lines, rfi_libsvm *data)
{
    memset(data->values, 0, (size_t)(data->rows * data->columns) * sizeof *data->values);
    for (ptrdiff_t i = 0; rfi_lines_next(&lines); i++) {
        ptrdiff_t last = 0;
        assert(i < data->rows);
        (void)read_line(&lines, data->values + i * data->columns, &data->labels[i], &last, NULL);
        assert(last <= data->columns); /* survey has seen the largest */
    }
}

reef_status rfi_libsvm_read(const reef_context *context, const void *bytes, size_t size, const char *name,
                            ptrdiff_t columns_least, ptrdiff_t values_most, rfi_libsvm *data, reef_error *error)
{
    rfi_lines lines;
    rfi_libsvm found = {.columns = columns_least};
    ptrdiff_t values = 0;
    rfi_lines_start(&lines, bytes, size, name);
    reef_status status = survey(lines, &found, error);
    if (status != REEF_OK) {
        return status;
    }
    if (!rfi_mul(found.rows, found.columns, &values) || values > values_most ||
        values > PTRDIFF_MAX / (ptrdiff_t)sizeof(float)) {
        return rfi_fail(error, REEF_E_RANGE, "%s: %td x %td values; at most %td are supported", rfi_path_show(name),
                        found.rows, found.columns, values_most);
    }
    found.values = rfi_allocate(context, values > 0 ? (size_t)values * sizeof(float) : 1);
    found.labels = rfi_allocate(context, (size_t)found.rows * sizeof(double));
    if (!found.values || !found.labels) {
        rfi_libsvm_free(context, &found);
        return rfi_fail(error, REEF_E_NOMEM, "%s: not enough memory for its values", rfi_path_show(name));
    }
    fill(lines, &found);
    *data = found;
    return REEF_OK;
}

void rfi_libsvm_free(const reef_context *context, rfi_libsvm *data)
{
    rfi_release(context, data->values);
    rfi_release(context, data->labels);
    *data = (rfi_libsvm){0};
}
