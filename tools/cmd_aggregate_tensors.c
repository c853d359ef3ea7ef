/* reef aggregate: trust by tensor, as csv and summed up by common prefix for people. */
#include "cmd_aggregate.h"
#include "commands.h"
#include "files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_SHOWN = 5, PREFIX_SHOWN = 80 };

const char tensors_head[] = "tensor,numbers";

/* Room for one row more; false if there is none. */
static bool make_room(tensor_table *table)
{
    if (table->count < table->room) {
        return true;
    }
    ptrdiff_t room = table->room ? 2 * table->room : 64;
    tensor_row *rows = realloc(table->rows, (size_t)room * sizeof *rows);
    if (!rows) {
        return false;
    }
    table->rows = rows;
    table->room = room;
    return true;
}

void note_tensor(tensor_table *table, const char *name, int64_t numbers, const double *trust)
{
    if (table->failed || !make_room(table)) {
        table->failed = true;
        return;
    }
    tensor_row row = {strdup(name), numbers, calloc((size_t)table->files, sizeof *row.trust)};
    table->failed = !row.name || !row.trust;
    if (row.trust) {
        memcpy(row.trust, trust, (size_t)table->files * sizeof *trust);
    }
    table->rows[table->count++] = row;
}

void free_tensors(tensor_table *table)
{
    for (ptrdiff_t i = 0; i < table->count; i++) {
        free(table->rows[i].name);
        free(table->rows[i].trust);
    }
    free(table->rows);
}

/* ---- csv ---- */

static void print_tensors(const request *r, const tensor_table *table, FILE *to)
{
    (void)fputs(tensors_head, to);
    for (ptrdiff_t i = 0; i < r->count; i++) {
        (void)fputc(',', to);
        put_quoted(to, r->paths[i]);
    }
    (void)fputc('\n', to);
    for (ptrdiff_t t = 0; t < table->count; t++) {
        put_quoted(to, table->rows[t].name);
        (void)fprintf(to, ",%lld", (long long)table->rows[t].numbers);
        for (ptrdiff_t i = 0; i < r->count; i++) {
            (void)fprintf(to, ",%.17g", table->rows[t].trust[i]);
        }
        (void)fputc('\n', to);
    }
}

int write_tensors(const request *r, const tensor_table *table)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = table->failed ? NULL : open_memstream(&text, &size);
    if (to) {
        print_tensors(r, table, to);
    }
    bool good = to && !ferror(to);
    good = to && fclose(to) == 0 && good;
    int code = good ? write_output("aggregate", r->trust_tensors, text, size) : EXIT_FAILED;
    if (!good) {
        fprintf(stderr, "reef aggregate: no memory for trust by tensor\n");
    }
    free(text);
    return code;
}

/* ---- by common prefix ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tensor_row *)a)->name, ((const tensor_row *)b)->name);
}

static bool is_low(const tensor_row *row, ptrdiff_t file)
{
    return row->trust[file] < DOWN_WEIGHTED;
}

/* Length of the first `parts` parts of a name with their dots; the whole name if it has no more. */
static size_t prefix_length(const char *name, int parts)
{
    const char *at = name;
    for (int i = 0; i < parts; i++) {
        const char *dot = strchr(at, '.');
        if (!dot) {
            return strlen(name);
        }
        at = dot + 1;
    }
    return (size_t)(at - name);
}

/* From row `first` on: how many rows have this prefix, and whether all of them, before it too, are low. Rows are sorted by name. */
static ptrdiff_t count_group(const tensor_table *table, ptrdiff_t first, ptrdiff_t file, size_t length)
{
    const char *prefix = table->rows[first].name;
    ptrdiff_t end = first;
    if (first > 0 && strncmp(table->rows[first - 1].name, prefix, length) == 0) {
        return 0;
    }
    while (end < table->count && strncmp(table->rows[end].name, prefix, length) == 0) {
        if (!is_low(&table->rows[end], file)) {
            return 0;
        }
        end++;
    }
    return end - first;
}

/* The largest group of neighbours with a common prefix that begins at a low row and is low throughout; *length: of the prefix. */
static ptrdiff_t find_group(const tensor_table *table, ptrdiff_t first, ptrdiff_t file, size_t *length)
{
    const char *name = table->rows[first].name;
    for (int parts = 1; prefix_length(name, parts) < strlen(name); parts++) {
        *length = prefix_length(name, parts);
        ptrdiff_t count = count_group(table, first, file, *length);
        if (count > 1) {
            return count;
        }
    }
    *length = strlen(name);
    return 1;
}

static void print_file(const request *r, const tensor_table *table, ptrdiff_t file, ptrdiff_t low)
{
    ptrdiff_t groups = 0;
    char shown[PREFIX_SHOWN];
    fprintf(r->say, "%s: down-weighted in", printable(r->paths[file], shown, sizeof shown));
    for (ptrdiff_t t = 0; t < table->count;) {
        size_t length = 0;
        ptrdiff_t count = is_low(&table->rows[t], file) ? find_group(table, t, file, &length) : 0;
        if (count > 0 && groups < GROUPS_SHOWN) {
            fprintf(r->say, "%s %.*s%s", groups ? "," : "", (int)length, table->rows[t].name, count > 1 ? "*" : "");
        }
        groups += count > 0;
        t += count > 0 ? count : 1;
    }
    if (groups > GROUPS_SHOWN) {
        fprintf(r->say, " and %td more places", groups - GROUPS_SHOWN);
    }
    fprintf(r->say, " (%td of %td tensors)\n", low, table->count);
}

void print_by_tensor(const request *r, tensor_table *table)
{
    if (table->failed || table->count == 0) {
        return;
    }
    qsort(table->rows, (size_t)table->count, sizeof *table->rows, by_name);
    for (ptrdiff_t i = 0; i < r->count; i++) {
        ptrdiff_t low = 0;
        for (ptrdiff_t t = 0; t < table->count; t++) {
            low += is_low(&table->rows[t], i);
        }
        if (low > 0 && low < table->count) {
            print_file(r, table, i, low);
        } else if (low > 0) {
            char shown[PREFIX_SHOWN];
            fprintf(r->say, "%s: down-weighted in all %td tensors\n", printable(r->paths[i], shown, sizeof shown), low);
        }
    }
}
