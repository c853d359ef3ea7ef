/* Two walks over the text: the first checks that all lines have as many cells as the first one, which bounds the memory by
 * the size of the file, the second reads the numbers. */
#include "io/csv.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "io/file.h"
#include "io/lines.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static char separator_of(rfi_csv_separator separator, rfi_slice line)
{
    static const char marks[] = {
        [RFI_CSV_COMMA] = ',', [RFI_CSV_SEMICOLON] = ';', [RFI_CSV_TAB] = '\t', [RFI_CSV_SPACE] = ' '};
    static const char tried[] = {'\t', ';', ','};
    if (separator != RFI_CSV_AUTO) {
        return marks[separator];
    }
    for (size_t i = 0; i < sizeof tried; i++) {
        if (memchr(line.text, tried[i], line.length)) {
            return tried[i];
        }
    }
    return ' ';
}

static void drop(rfi_slice *text, size_t length)
{
    text->text += length;
    text->length -= length;
}

static void skip_blanks(rfi_slice *text, char mark)
{
    while (text->length > 0 && is_blank(text->text[0]) && (mark == ' ' || text->text[0] != mark)) {
        drop(text, 1);
    }
}

/* The quotation mark that ends a field which begins with one, or NULL; two of them stand for one within it. */
static const char *closing_mark(rfi_slice text, bool *doubled)
{
    for (size_t i = 1; i < text.length; i++) {
        if (text.text[i] != '"') {
            continue;
        }
        if (i + 1 == text.length || text.text[i + 1] != '"') {
            return text.text + i;
        }
        *doubled = true;
        i++;
    }
    return NULL;
}

/* A field in quotation marks, if one begins here and is closed before the next separator: the marks are taken off. */
static bool take_quoted(rfi_slice *rest, char mark, rfi_csv_field *field)
{
    bool doubled = false;
    const char *close = rest->length > 0 && rest->text[0] == '"' ? closing_mark(*rest, &doubled) : NULL;
    if (!close) {
        return false;
    }
    rfi_slice after = *rest;
    drop(&after, (size_t)(close - rest->text) + 1);
    if (mark != ' ') {
        skip_blanks(&after, mark);
    }
    if (after.length > 0 && after.text[0] != mark && !(mark == ' ' && after.text[0] == '\t')) {
        return false;
    }
    *field = (rfi_csv_field){{rest->text + 1, (size_t)(close - rest->text) - 1}, doubled};
    *rest = after;
    return true;
}

rfi_csv_field rfi_csv_next(rfi_slice *rest, char mark, bool *more)
{
    rfi_csv_field field = {{NULL, 0}, false};
    skip_blanks(rest, mark);
    if (!take_quoted(rest, mark, &field)) {
        size_t length = 0;
        while (length < rest->length && rest->text[length] != mark && !(mark == ' ' && rest->text[length] == '\t')) {
            length++;
        }
        field.text = (rfi_slice){rest->text, length};
        drop(rest, length);
        while (field.text.length > 0 && is_blank(field.text.text[field.text.length - 1])) {
            field.text.length--;
        }
    }
    *more = rest->length > 0;
    if (*more) {
        drop(rest, 1);
    }
    if (mark == ' ') {
        skip_blanks(rest, mark);
    }
    return field;
}

size_t rfi_csv_copy(rfi_csv_field field, char *to)
{
    size_t used = 0;
    for (size_t i = 0; i < field.text.length; i++) {
        to[used++] = field.text.text[i];
        i += field.doubled && field.text.text[i] == '"';
    }
    to[used] = '\0';
    return used;
}

static rfi_slice take_cell(rfi_slice *rest, char mark, bool *more)
{
    return rfi_csv_next(rest, mark, more).text;
}

static ptrdiff_t count_cells(rfi_slice line, char mark)
{
    ptrdiff_t cells = 0;
    bool more = true;
    for (; more; cells++) {
        (void)take_cell(&line, mark, &more);
    }
    return cells;
}

/* How many cells of a line are numbers. */
static ptrdiff_t count_numbers(rfi_slice line, char mark)
{
    ptrdiff_t numbers = 0;
    bool more = true;
    while (more) {
        double value;
        numbers += rfi_read_real(take_cell(&line, mark, &more), &value) ? 1 : 0;
    }
    return numbers;
}

/* Looks at the whole text: sizes, separator, whether there is a line of names. */
static reef_status survey(rfi_lines lines, rfi_csv_separator separator, rfi_csv_header header, rfi_csv *table,
                          char *mark, bool *names, reef_error *error)
{
    if (!rfi_lines_next(&lines)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: the file has no data", rfi_path_show(lines.name));
    }
    *mark = separator_of(separator, lines.line);
    table->columns = count_cells(lines.line, *mark);
    ptrdiff_t numbers = count_numbers(lines.line, *mark);
    if (header == RFI_CSV_HEADER_AUTO && numbers > 0 && numbers < table->columns) {
        return rfi_lines_fail(&lines, lines.line.text, error,
                              "%td of %td fields are numbers: state whether this line has the names of the columns "
                              "(header=true or false)",
                              numbers, table->columns);
    }
    *names = header == RFI_CSV_HEADER_YES || (header == RFI_CSV_HEADER_AUTO && numbers == 0);
    table->rows = *names ? 0 : 1;
    while (rfi_lines_next(&lines)) {
        ptrdiff_t cells = count_cells(lines.line, *mark);
        if (cells != table->columns) {
            return rfi_lines_fail(&lines, lines.line.text, error, "%td fields, but the first line has %td", cells,
                                  table->columns);
        }
        table->rows++;
    }
    return table->rows > 0 ? REEF_OK
                           : rfi_fail(error, REEF_E_FORMAT, "%s: the file has no data", rfi_path_show(lines.name));
}

static reef_status read_row(const rfi_lines *lines, char mark, double *cells, reef_error *error)
{
    rfi_slice rest = lines->line;
    bool more = true;
    for (ptrdiff_t i = 0; more; i++) {
        rfi_slice cell = take_cell(&rest, mark, &more);
        if (cell.length == 0) {
            return rfi_lines_fail(lines, cell.text, error, "empty cell");
        }
        if (!rfi_read_real(cell, &cells[i])) {
            return rfi_lines_fail(lines, cell.text, error, "this field is not a finite decimal number");
        }
    }
    return REEF_OK;
}

static void read_names(rfi_slice line, char mark, rfi_slice *names)
{
    bool more = true;
    for (ptrdiff_t i = 0; more; i++) {
        names[i] = take_cell(&line, mark, &more);
    }
}

static reef_status fill(rfi_lines lines, char mark, rfi_csv *table, reef_error *error)
{
    reef_status status = REEF_OK;
    if (table->names) {
        (void)rfi_lines_next(&lines);
        read_names(lines.line, mark, table->names);
    }
    for (double *row = table->cells; status == REEF_OK && rfi_lines_next(&lines); row += table->columns) {
        assert(row < table->cells + table->rows * table->columns); /* as many lines as the first walk saw */
        status = read_row(&lines, mark, row, error);
    }
    return status;
}

reef_status rfi_csv_read(const reef_context *context, const void *bytes, size_t size, const char *name,
                         rfi_csv_separator separator, rfi_csv_header header, rfi_csv *table, reef_error *error)
{
    rfi_lines lines;
    rfi_csv found = {0};
    char mark = ',';
    bool names = false;
    ptrdiff_t cells = 0;
    rfi_lines_start(&lines, bytes, size, name);
    reef_status status = survey(lines, separator, header, &found, &mark, &names, error);
    if (status != REEF_OK) {
        return status;
    }
    if (!rfi_mul(found.rows, found.columns, &cells) || !rfi_mul(cells, sizeof(double), &cells)) {
        return rfi_fail(error, REEF_E_OVERFLOW, "%s: more fields than memory can hold", rfi_path_show(name));
    }
    found.cells = rfi_allocate(context, (size_t)cells);
    found.names = names ? rfi_allocate(context, (size_t)found.columns * sizeof *found.names) : NULL;
    if (!found.cells || (names && !found.names)) {
        status = rfi_fail(error, REEF_E_NOMEM, "%s: not enough memory for %td x %td numbers", rfi_path_show(name),
                          found.rows, found.columns);
    } else {
        status = fill(lines, mark, &found, error);
    }
    if (status != REEF_OK) {
        rfi_csv_free(context, &found);
        return status;
    }
    *table = found;
    return REEF_OK;
}

void rfi_csv_free(const reef_context *context, rfi_csv *table)
{
    rfi_release(context, table->cells);
    rfi_release(context, table->names);
    *table = (rfi_csv){0};
}

reef_status rfi_csv_column(const rfi_csv *table, const char *column, const char *name, ptrdiff_t *index,
                           reef_error *error)
{
    double number = 0;
    double columns = (double)table->columns;
    for (ptrdiff_t i = 0; table->names && i < table->columns; i++) {
        if (rfi_equals(table->names[i], column)) {
            *index = i;
            return REEF_OK;
        }
    }
    if (!rfi_read_real((rfi_slice){column, strlen(column)}, &number) || number != floor(number)) {
        return rfi_fail(error, REEF_E_NAME, "%s: there is no column '%.40s'%s", rfi_path_show(name), column,
                        table->names ? "" : ", and no header line");
    }
    if (number < -columns || number >= columns) {
        return rfi_fail(error, REEF_E_RANGE, "%s: there is no column %.0f; it has %td", rfi_path_show(name), number,
                        table->columns);
    }
    *index = (ptrdiff_t)(number < 0 ? number + columns : number);
    return REEF_OK;
}
