/* reef aggregate: trust by tensor, as csv and summed up by common prefix for people. */
#include "cmd_aggregate.h"
#include "commands.h"
#include "files.h"
#include "terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_SHOWN = 5, PREFIX_SHOWN = 100 };

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

/* How many bytes two names begin with in common. */
static size_t common_length(const char *a, const char *b)
{
    size_t length = 0;
    while (a[length] && a[length] == b[length]) {
        length++;
    }
    return length;
}

/* Neighbours [first, end) that are low, with those on both sides that are not. */
typedef struct run {
    const tensor_table *table;
    ptrdiff_t first, end;
} run;

/* The shortest prefix of row t, up to a dot and with it, that no row outside the run has; the whole name if there is none. */
static size_t prefix_length(const run *low, ptrdiff_t t)
{
    const tensor_row *rows = low->table->rows;
    const char *name = rows[t].name;
    size_t before = low->first > 0 ? common_length(name, rows[low->first - 1].name) : 0;
    size_t after = low->end < low->table->count ? common_length(name, rows[low->end].name) : 0;
    const char *dot = strchr(name + (before > after ? before : after), '.');
    return dot ? (size_t)(dot - name) + 1 : strlen(name);
}

/* Rows of a run from t on that are shown together: *length: of their common prefix. */
static ptrdiff_t find_group(const run *low, ptrdiff_t t, size_t *length)
{
    const tensor_row *rows = low->table->rows;
    ptrdiff_t end = t + 1;
    *length = prefix_length(low, t);
    while (end < low->end && strncmp(rows[end].name, rows[t].name, *length) == 0) {
        end++;
    }
    *length = end - t > 1 ? *length : strlen(rows[t].name);
    return end - t;
}

/* The beginning of a name, whole characters of it, and nothing that a terminal would obey. */
static void print_prefix(FILE *to, const char *name, size_t length, const char *end)
{
    char begin[PREFIX_SHOWN + 1];
    char shown[PREFIX_SHOWN + 1];
    bool all = length <= PREFIX_SHOWN;
    length = all ? length : PREFIX_SHOWN;
    while (!all && length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80) {
        length--;
    }
    memcpy(begin, name, length);
    begin[length] = '\0';
    fprintf(to, "%s%s%s", length > 0 ? printable(begin, shown, sizeof shown) : "\"\"", all ? "" : "...", end);
}

/* The groups of a run; returns how many were shown before and are now. */
static ptrdiff_t print_run(const request *r, const run *low, ptrdiff_t groups)
{
    size_t length = 0;
    for (ptrdiff_t t = low->first, count; t < low->end; t += count, groups++) {
        count = find_group(low, t, &length);
        if (groups < GROUPS_SHOWN) {
            fprintf(r->say, "%s ", groups ? "," : "");
            print_prefix(r->say, low->table->rows[t].name, length, count > 1 ? "*" : "");
        }
    }
    return groups;
}

static void print_file(const request *r, const tensor_table *table, ptrdiff_t file, ptrdiff_t low)
{
    ptrdiff_t groups = 0;
    char shown[PREFIX_SHOWN];
    run found = {.table = table};
    fprintf(r->say, "%s: down-weighted in", printable(r->paths[file], shown, sizeof shown));
    for (; found.first < table->count; found.first = found.end + 1) {
        found.end = found.first;
        while (found.end < table->count && is_low(&table->rows[found.end], file)) {
            found.end++;
        }
        groups = print_run(r, &found, groups);
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
            fprintf(r->say, "%s: down-weighted in all %td tensor%s\n", printable(r->paths[i], shown, sizeof shown), low,
                    plural(low));
        }
    }
}
