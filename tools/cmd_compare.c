/* reef compare: where two results folders differ by more than their noise.
 *
 * Cells are matched by the values of the lists that both experiments have. Two means a and b with standard errors differ beyond noise
 * if |a - b| > z sqrt(se_a^2 + se_b^2). Runs with the same seed share their data, so their means are closer together than that formula
 * thinks: it then errs on the quiet side. */
#include "commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 160, LABEL_SIZE = 512 };
enum { FILE_LIMIT = 1 << 28 };

/* summary.csv in memory: fields[row * columns + column], row 0 is the head. */
typedef struct table {
    char *text;
    char **fields;
    int columns;
    int rows;
    int axes; /* columns 1 .. axes are what varies */
} table;

typedef struct request {
    double z;
    bool all;
} request;

enum { OPT_ALL = 256 };
static const option_row options[] = {
    {'z', "sigma", "Z", "standard errors that count as a difference; default: 4", VALUE_TEXT, NULL},
    {OPT_ALL, "all", NULL, "prints every cell and metric, not only those that differ", VALUE_NONE, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    request *r = user;
    if (code == OPT_ALL) {
        r->all = true;
        return EXIT_DONE;
    }
    char *end = NULL;
    r->z = strtod(value, &end);
    return end != value && *end == '\0' && r->z > 0
               ? EXIT_DONE
               : bad_usage(&command_compare, "--sigma takes a number above 0, not", value);
}

/* ---- reading ---- */

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = size >= 0 && size < FILE_LIMIT ? malloc((size_t)size + 1) : NULL;
    if (text) {
        rewind(file);
        size_t got = fread(text, 1, (size_t)size, file);
        text[got] = '\0';
    }
    if (file) {
        (void)fclose(file);
    }
    return text;
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text; text++) {
        lines += *text == '\n';
    }
    return lines;
}

/* Cuts a line into the fields of a row; false if it has not as many as the head. */
static bool cut_row(table *t, int row, char *line)
{
    int column = 0;
    for (char *field = next_field(&line); field; field = next_field(&line), column++) {
        if (column == COLUMNS_MAX || (row > 0 && column == t->columns)) {
            return false;
        }
        t->fields[(ptrdiff_t)row * (row ? t->columns : 0) + column] = field;
    }
    t->columns = row ? t->columns : column;
    return column == t->columns;
}

static bool cut_table(table *t)
{
    char *line = t->text;
    int lines = count_lines(t->text);
    t->fields = calloc((size_t)(lines + 1) * COLUMNS_MAX, sizeof *t->fields);
    for (; t->fields && t->rows < lines; t->rows++) {
        char *end = strchr(line, '\n');
        *end = '\0';
        if (!cut_row(t, t->rows, line)) {
            return false;
        }
        line = end + 1;
    }
    while (t->fields && t->axes + 1 < t->columns && strcmp(t->fields[t->axes + 1], "runs") != 0) {
        t->axes++;
    }
    return t->fields && t->rows > 1 && t->axes + 1 < t->columns && strcmp(t->fields[0], "cell") == 0;
}

static bool load(table *t, const char *folder)
{
    char path[4096];
    *t = (table){0};
    (void)snprintf(path, sizeof path, "%s/summary.csv", folder);
    t->text = read_text(path);
    if (!t->text || !cut_table(t)) {
        fprintf(stderr, "reef compare: %s %s\n", path, t->text ? "is no summary of a run" : "cannot be read");
        return false;
    }
    return true;
}

static void unload(table *t)
{
    free(t->fields);
    free(t->text);
}

/* ---- matching ---- */

static int column_of(const table *t, const char *name)
{
    int i = t->columns - 1;
    while (i >= 0 && strcmp(t->fields[i], name) != 0) {
        i--;
    }
    return i;
}

static const char *at(const table *t, int row, int column)
{
    return t->fields[(ptrdiff_t)row * t->columns + column];
}

/* Whether two rows have the same values of the lists that both tables have. */
static bool same_cell(const table *a, int row_a, const table *b, int row_b)
{
    bool same = true;
    for (int i = 1; i <= a->axes && same; i++) {
        int other = column_of(b, a->fields[i]);
        same = other < 1 || other > b->axes || strcmp(at(a, row_a, i), at(b, row_b, other)) == 0;
    }
    return same;
}

/* The row of b that row_a of a belongs to; 0: none or several. */
static int partner(const table *a, int row_a, const table *b)
{
    int found = 0;
    for (int i = 1; i < b->rows; i++) {
        if (same_cell(a, row_a, b, i)) {
            if (found) {
                return 0;
            }
            found = i;
        }
    }
    return found;
}

/* ---- comparing ---- */

typedef struct metric {
    int value_a, error_a, value_b, error_b; /* columns */
    int db_a, db_b;                         /* in decibels, or -1 */
} metric;

/* Metrics are columns NAME with NAME_se beside them, in both tables. */
static bool find_metric(const table *a, const table *b, int column, metric *m)
{
    char name[LABEL_SIZE];
    *m = (metric){.value_a = column, .value_b = column_of(b, a->fields[column])};
    (void)snprintf(name, sizeof name, "%s_se", a->fields[column]);
    m->error_a = column_of(a, name);
    m->error_b = column_of(b, name);
    (void)snprintf(name, sizeof name, "%s_db", a->fields[column]);
    m->db_a = column_of(a, name);
    m->db_b = column_of(b, name);
    return column > a->axes + 1 && m->value_b >= 0 && m->error_a >= 0 && m->error_b >= 0;
}

static void print_difference(const table *a, int row_a, const table *b, int row_b, const metric *m, double z)
{
    for (int i = 1; i <= a->axes; i++) {
        printf("%s=%s ", a->fields[i], at(a, row_a, i));
    }
    bool decibels = m->db_a >= 0 && m->db_b >= 0;
    double first = strtod(at(a, row_a, decibels ? m->db_a : m->value_a), NULL);
    double second = strtod(at(b, row_b, decibels ? m->db_b : m->value_b), NULL);
    printf(" %s: %.5g and %.5g%s, difference %.3g", a->fields[m->value_a], first, second, decibels ? " dB" : "",
           second - first);
    if (isfinite(z)) {
        printf(" (%.1f standard errors)\n", z);
    } else {
        printf(" (no standard error)\n");
    }
}

/* 1 if the cells differ in this metric. Without standard errors any difference is one. */
static int compare_metric(const request *r, const table *a, int row_a, const table *b, int row_b, const metric *m)
{
    double first = strtod(at(a, row_a, m->value_a), NULL);
    double second = strtod(at(b, row_b, m->value_b), NULL);
    double noise = hypot(strtod(at(a, row_a, m->error_a), NULL), strtod(at(b, row_b, m->error_b), NULL));
    bool equal = first == second || (isnan(first) && isnan(second));
    double z = equal ? 0 : fabs(first - second) / noise;
    bool differs = !equal && !(z <= r->z);
    if (differs || r->all) {
        print_difference(a, row_a, b, row_b, m, z);
    }
    return differs;
}

static int compare(const request *r, const table *a, const table *b)
{
    int differences = 0;
    int cells = 0;
    for (int i = 1; i < a->rows; i++) {
        int row = partner(a, i, b);
        cells += row > 0;
        for (int c = 0; row && c < a->columns; c++) {
            metric m;
            differences += find_metric(a, b, c, &m) ? compare_metric(r, a, i, b, row, &m) : 0;
        }
    }
    printf("%d of %d and %d cells belong together; %d %s beyond %.3g standard errors\n", cells, a->rows - 1,
           b->rows - 1, differences, differences == 1 ? "difference" : "differences", r->z);
    if (cells == 0) {
        fprintf(stderr, "reef compare: no cell of the one has one in the other\n");
        return EXIT_FAILED;
    }
    return differences ? EXIT_FAILED : EXIT_DONE;
}

static int run_compare(int argc, char **argv)
{
    request r = {.z = 4};
    table a = {0};
    table b = {0};
    int code = read_options(&command_compare, &argc, argv, take_option, &r);
    if (code != EXIT_DONE || argc != 3) {
        return code != EXIT_DONE ? code : bad_usage(&command_compare, "two results folders are expected", NULL);
    }
    code = load(&a, argv[1]) && load(&b, argv[2]) ? compare(&r, &a, &b) : EXIT_MALFORMED;
    unload(&a);
    unload(&b);
    return code;
}

const command command_compare = {
    "compare",
    "say where two results folders differ by more than their noise",
    "Usage: reef compare FOLDER FOLDER [OPTIONS]\n\n"
    "Matches the cells of two runs by what varies in both, and prints every metric whose steady states differ by more\n"
    "than the standard errors of the two explain. Among many cells a few exceed two or three of them by chance.\n",
    OPTIONS(options),
    "Exit codes: 0 no difference, 1 there are some, or nothing can be compared, 2 wrong usage, 3 no results folder.\n",
    VALUE_FOLDER,
    NULL,
    run_compare,
};
