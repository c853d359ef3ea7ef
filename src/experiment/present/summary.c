/* summary.csv of a results folder, read into memory for those who compare or print it. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/csv.h"
#include "io/file.h"

#include <reef/experiment.h>
#include <stdio.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 28, PATH_SIZE = 4096 };

struct reef_summary {
    reef_context *context;
    ptrdiff_t rows, columns, axes;
    const char **fields; /* (rows + 1) x columns, the head first; they point into text */
    char *text;
};

/* Cuts a line into fields; false if there are not exactly `columns` of them. */
static bool cut_line(rfi_slice line, const char **fields, ptrdiff_t columns, char **to)
{
    bool more = true;
    ptrdiff_t column = 0;
    for (; more && column < columns; column++) {
        fields[column] = *to;
        *to += rfi_csv_copy(rfi_csv_next(&line, ',', &more), *to) + 1;
    }
    return !more && column == columns;
}

static ptrdiff_t count_fields(rfi_slice line)
{
    ptrdiff_t count = 0;
    for (bool more = true; more; count++) {
        (void)rfi_csv_next(&line, ',', &more);
    }
    return count;
}

static ptrdiff_t count_lines(rfi_slice text)
{
    ptrdiff_t count = 0;
    for (bool more = true; more && text.length > 0; count++) {
        (void)rfi_cut(text, '\n', &text, &more);
    }
    return count;
}

/* A field never takes more room than it has in the file, with its separator for the zero. */
static bool cut_table(reef_summary *s, rfi_slice text)
{
    char *to = s->text;
    bool more = true;
    for (ptrdiff_t row = 0; row <= s->rows; row++) {
        rfi_slice line = rfi_cut(text, '\n', &text, &more);
        if (!cut_line(line, s->fields + row * s->columns, s->columns, &to)) {
            return false;
        }
        for (ptrdiff_t i = 0; i < s->columns; i++) {
            rfi_hide_control((char *)s->fields[row * s->columns + i]); /* in s->text */
        }
    }
    while (s->axes + 1 < s->columns && strcmp(s->fields[s->axes + 1], "repetitions") != 0) {
        s->axes++;
    }
    return s->rows > 0 && s->axes + 1 < s->columns && strcmp(s->fields[0], "cell") == 0;
}

static reef_status read_table(reef_summary *s, const rfi_file *file, const char *path, reef_error *error)
{
    const rfi_slice text = {(const char *)file->bytes, file->size};
    bool more = false;
    rfi_slice rest;
    ptrdiff_t fields = 0;
    s->rows = count_lines(text) - 1;
    s->columns = count_fields(rfi_cut(text, '\n', &rest, &more));
    if (s->rows < 1 || memchr(file->bytes, '\0', file->size)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is not the summary of a run", rfi_path_show(path));
    }
    if (s->columns > (ptrdiff_t)file->size || !rfi_mul(s->rows + 1, s->columns, &fields) ||
        fields > (ptrdiff_t)file->size + s->rows) { /* every field but the last of a line has a separator */
        return rfi_fail(error, REEF_E_FORMAT, "%s is not the summary of a run", rfi_path_show(path));
    }
    s->fields = rfi_allocate_many(s->context, fields, sizeof *s->fields);
    s->text = rfi_allocate(s->context, file->size + (size_t)s->rows + 2);
    if (!s->fields || !s->text) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %s", rfi_path_show(path));
    }
    return cut_table(s, text) ? REEF_OK
                              : rfi_fail(error, REEF_E_FORMAT, "%s is not the summary of a run", rfi_path_show(path));
}

reef_status reef_summary_load(reef_context *context, reef_summary **summary, const char *folder, reef_error *error)
{
    char path[PATH_SIZE];
    rfi_file file = {0};
    if (!summary || !folder) {
        return rfi_fail(error, REEF_E_ARG, "reef_summary_load: %s is NULL", summary ? "folder" : "summary");
    }
    if ((size_t)snprintf(path, sizeof path, "%s/summary.csv", folder) >= sizeof path) {
        return rfi_fail(error, REEF_E_FILE, "%s: the path is too long", rfi_path_show(folder));
    }
    reef_status status = rfi_file_read(context, path, FILE_LIMIT, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    reef_summary *s = rfi_allocate(context, sizeof *s);
    if (s) {
        *s = (reef_summary){.context = context};
        status = read_table(s, &file, path, error);
    } else {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory for %s", rfi_path_show(path));
    }
    rfi_file_free(context, &file);
    if (status != REEF_OK) {
        reef_summary_destroy(&s);
        return status;
    }
    *summary = s;
    return REEF_OK;
}

void reef_summary_destroy(reef_summary **summary)
{
    if (!summary || !*summary) {
        return;
    }
    reef_summary *s = *summary;
    rfi_release(s->context, (void *)s->fields);
    rfi_release(s->context, s->text);
    rfi_release(s->context, s);
    *summary = NULL;
}

ptrdiff_t reef_summary_rows(const reef_summary *summary)
{
    if (!summary) {
        return 0;
    }
    return summary->rows;
}

ptrdiff_t reef_summary_columns(const reef_summary *summary)
{
    if (!summary) {
        return 0;
    }
    return summary->columns;
}

ptrdiff_t reef_summary_axes(const reef_summary *summary)
{
    if (!summary) {
        return 0;
    }
    return summary->axes;
}

static const char *field_at(const reef_summary *s, ptrdiff_t line, ptrdiff_t column)
{
    bool there = line >= 0 && line <= s->rows && column >= 0 && column < s->columns;
    return there ? s->fields[line * s->columns + column] : NULL;
}

const char *reef_summary_name(const reef_summary *summary, ptrdiff_t column)
{
    if (!summary) {
        return NULL;
    }
    return field_at(summary, 0, column);
}

const char *reef_summary_field(const reef_summary *summary, ptrdiff_t row, ptrdiff_t column)
{
    if (!summary) {
        return NULL;
    }
    return row < 0 ? NULL : field_at(summary, row + 1, column);
}
