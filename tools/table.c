/* A line per configuration: what varies, then every metric with its standard error, in decibels where the summary has them, then theory,
 * oracle and remarks. Columns in which no configuration has a number are left out. */
#include "table.h"

#include "commands.h"
#include "terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <reef/experiment.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 64, ROWS_MAX = 200, FIELD_SIZE = 256 };

typedef struct column {
    ptrdiff_t value;  /* column of the summary */
    ptrdiff_t linear; /* of a value in decibels: the same without; otherwise -1 */
    ptrdiff_t error;  /* its standard error, or -1 */
    int width;
} column;

typedef struct table {
    reef_summary *summary;
    ptrdiff_t rows; /* shown */
    const char *plus_minus;
    column columns[COLUMNS_MAX];
    int count;
} table;

static ptrdiff_t find(const reef_summary *s, const char *name, int length, const char *ending)
{
    char wanted[FIELD_SIZE];
    (void)snprintf(wanted, sizeof wanted, "%.*s%s", length, name, ending);
    ptrdiff_t i = reef_summary_columns(s) - 1;
    while (i >= 0 && strcmp(reef_summary_name(s, i), wanted) != 0) {
        i--;
    }
    return i;
}

static double number_at(const reef_summary *s, ptrdiff_t row, ptrdiff_t c)
{
    return strtod(reef_summary_field(s, row, c), NULL);
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name);
    size_t tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

/* Whether any configuration has something there. */
static bool has_content(const table *t, ptrdiff_t c)
{
    bool found = false;
    for (ptrdiff_t row = 0; row < t->rows && !found; row++) {
        const char *field = reef_summary_field(t->summary, row, c);
        found = field[0] && strcmp(field, "nan") != 0 && strcmp(field, "-nan") != 0;
    }
    return found;
}

/* ---- fields ---- */

/* "-47.71 ± 0.05": an error of e in a power p is 10 e / (ln(10) p) decibels. */
static void show_error(const table *t, ptrdiff_t row, const column *c, char *text, size_t size)
{
    double error = number_at(t->summary, row, c->error);
    if (c->linear >= 0) {
        error *= 10 / (log(10) * number_at(t->summary, row, c->linear));
    }
    size_t used = strlen(text);
    if (isfinite(error) && used < size) {
        (void)snprintf(text + used, size - used, c->linear >= 0 ? " %s %.2f" : " %s %.2g", t->plus_minus, error);
    }
}

static void show(const table *t, ptrdiff_t row, const column *c, char text[FIELD_SIZE])
{
    const char *field = reef_summary_field(t->summary, row, c->value);
    char *end = NULL;
    double number = strtod(field, &end);
    bool is_number = field[0] && *end == '\0';
    if (is_number && isfinite(number) && ends_with(reef_summary_name(t->summary, c->value), "_db")) {
        (void)snprintf(text, FIELD_SIZE, "%.2f", number);
    } else if (is_number && strlen(field) > 8) {
        (void)snprintf(text, FIELD_SIZE, "%.5g", number);
    } else {
        (void)snprintf(text, FIELD_SIZE, "%s", field);
    }
    if (is_number && isfinite(number) && c->error >= 0) {
        show_error(t, row, c, text, FIELD_SIZE);
    }
}

/* "msd_db" is shown as "msd [dB]". */
static void show_name(const table *t, const column *c, char text[FIELD_SIZE])
{
    const char *name = reef_summary_name(t->summary, c->value);
    bool decibels = ends_with(name, "_db");
    (void)snprintf(text, FIELD_SIZE, "%.*s%s", (int)strlen(name) - (decibels ? 3 : 0), name, decibels ? " [dB]" : "");
}

/* Characters, not bytes. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return width;
}

/* ---- columns ---- */

/* False: it is shown with another column, or not at all. */
static bool choose(const table *t, ptrdiff_t i, column *c)
{
    const reef_summary *s = t->summary;
    const char *name = reef_summary_name(s, i);
    int length = (int)strlen(name);
    bool decibels = ends_with(name, "_db");
    *c = (column){.value = i, .linear = -1, .error = -1};
    if (i <= reef_summary_axes(s) + 1) { /* configuration, what varies, repetitions */
        return true;
    }
    if (strncmp(name, "config.", 7) == 0 || ends_with(name, "_se") || find(s, name, length, "_db") >= 0) {
        return false;
    }
    c->linear = decibels ? find(s, name, length - 3, "") : -1;
    c->error = find(s, name, decibels ? length - 3 : length, "_se");
    return has_content(t, i);
}

static void choose_columns(table *t)
{
    char text[FIELD_SIZE];
    for (ptrdiff_t i = 0; i < reef_summary_columns(t->summary) && t->count < COLUMNS_MAX; i++) {
        column *c = &t->columns[t->count];
        if (!choose(t, i, c)) {
            continue;
        }
        show_name(t, c, text);
        c->width = width_of(text);
        for (ptrdiff_t row = 0; row < t->rows; row++) {
            show(t, row, c, text);
            c->width = width_of(text) > c->width ? width_of(text) : c->width;
        }
        t->count++;
    }
}

static void print_field(const char *text, int width, bool first)
{
    int blanks = width - width_of(text);
    printf("%s%*s%s", first ? "" : "  ", blanks > 0 ? blanks : 0, "", text);
}

static void print_lines(const table *t)
{
    char text[FIELD_SIZE];
    printf("%s", tint_on(stdout, TINT_HEADING));
    for (int i = 0; i < t->count; i++) {
        bool remark = strcmp(reef_summary_name(t->summary, t->columns[i].value), "note") == 0;
        show_name(t, &t->columns[i], text);
        print_field(text, remark ? 0 : t->columns[i].width, i == 0);
    }
    printf("%s\n", tint_off(stdout));
    for (ptrdiff_t row = 0; row < t->rows; row++) {
        for (int i = 0; i < t->count; i++) {
            bool remark = strcmp(reef_summary_name(t->summary, t->columns[i].value), "note") == 0;
            show(t, row, &t->columns[i], text);
            if (!remark) {
                print_field(text, t->columns[i].width, i == 0);
            } else if (text[0]) { /* the last column, of words */
                printf("  %s%s%s", tint_on(stdout, TINT_WARNING), text, tint_off(stdout));
            }
        }
        printf("\n");
    }
}

void print_table(const char *folder)
{
    table t = {.plus_minus = "+-"};
    if (reef_summary_load(NULL, &t.summary, folder, NULL) != REEF_OK) {
        return;
    }
    if (setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0) {
        t.plus_minus = "±";
    }
    ptrdiff_t all = reef_summary_rows(t.summary);
    t.rows = all < ROWS_MAX ? all : ROWS_MAX;
    choose_columns(&t);
    print_lines(&t);
    if (t.rows < all) {
        printf("... and %td more configuration%s in %s/summary.csv\n", all - t.rows, plural(all - t.rows),
               printable_path(folder));
    }
    reef_summary_destroy(&t.summary);
}
