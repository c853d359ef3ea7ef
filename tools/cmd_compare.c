/* reef compare: where two results folders differ by more than their statistical error.
 *
 * Configurations are matched by the values of the lists that both experiments have. Two means a and b with standard errors differ beyond noise
 * if |a - b| > z sqrt(se_a^2 + se_b^2). Runs with the same seed share their data, so their means are closer together than that formula
 * thinks: it then errs on the quiet side. */
#include "commands.h"
#include "json.h"
#include "terminal.h"

#include <math.h>
#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_SIZE = 512 };

typedef struct request {
    double z;
    bool all;
    json *out; /* or NULL: as text */
} request;

enum { OPT_ALL = 256, OPT_JSON };
static const option_row options[] = {
    {'z', "sigma", "Z", "standard errors that count as a difference; default: 4", VALUE_TEXT, NULL},
    {OPT_ALL, "all", NULL, "prints every configuration and metric, not only those that differ", VALUE_NONE, NULL},
    {OPT_JSON, "json", NULL, "prints JSON, described in reef-compare(1)", VALUE_NONE, NULL},
};

typedef struct arguments {
    double z;
    bool all, as_json;
} arguments;

static int take_option(void *user, int code, const char *value)
{
    arguments *r = user;
    if (code != 'z') {
        r->all = r->all || code == OPT_ALL;
        r->as_json = r->as_json || code == OPT_JSON;
        return EXIT_DONE;
    }
    char *end = NULL;
    r->z = strtod(value, &end);
    return end != value && *end == '\0' && r->z > 0
               ? EXIT_DONE
               : bad_usage(&command_compare, "--sigma takes a number above 0, not", value);
}

/* ---- matching ---- */

static ptrdiff_t column_of(const reef_summary *t, const char *name)
{
    ptrdiff_t i = reef_summary_columns(t) - 1;
    while (i >= 0 && strcmp(reef_summary_name(t, i), name) != 0) {
        i--;
    }
    return i;
}

static const char *at(const reef_summary *t, ptrdiff_t row, ptrdiff_t column)
{
    return reef_summary_field(t, row, column);
}

/* Whether two rows have the same values of the lists that both tables have. */
static bool same_cell(const reef_summary *a, ptrdiff_t row_a, const reef_summary *b, ptrdiff_t row_b)
{
    bool same = true;
    for (ptrdiff_t i = 1; i <= reef_summary_axes(a) && same; i++) {
        ptrdiff_t other = column_of(b, reef_summary_name(a, i));
        same = other < 1 || other > reef_summary_axes(b) || strcmp(at(a, row_a, i), at(b, row_b, other)) == 0;
    }
    return same;
}

/* The row of b that row_a of a belongs to; -1: none or several. */
static ptrdiff_t partner(const reef_summary *a, ptrdiff_t row_a, const reef_summary *b)
{
    ptrdiff_t found = -1;
    for (ptrdiff_t i = 0; i < reef_summary_rows(b); i++) {
        if (same_cell(a, row_a, b, i)) {
            if (found >= 0) {
                return -1;
            }
            found = i;
        }
    }
    return found;
}

/* ---- comparing ---- */

typedef struct metric {
    ptrdiff_t value_a, error_a, value_b, error_b; /* columns */
    ptrdiff_t db_a, db_b;                         /* in decibels, or -1 */
} metric;

/* Metrics are columns NAME with NAME_se beside them, in both tables. */
static bool find_metric(const reef_summary *a, const reef_summary *b, ptrdiff_t column, metric *m)
{
    char name[LABEL_SIZE];
    *m = (metric){.value_a = column, .value_b = column_of(b, reef_summary_name(a, column))};
    (void)snprintf(name, sizeof name, "%s_se", reef_summary_name(a, column));
    m->error_a = column_of(a, name);
    m->error_b = column_of(b, name);
    (void)snprintf(name, sizeof name, "%s_db", reef_summary_name(a, column));
    m->db_a = column_of(a, name);
    m->db_b = column_of(b, name);
    return column > reef_summary_axes(a) + 1 && m->value_b >= 0 && m->error_a >= 0 && m->error_b >= 0;
}

static void print_difference(const reef_summary *a, ptrdiff_t row_a, const reef_summary *b, ptrdiff_t row_b,
                             const metric *m, double z)
{
    for (ptrdiff_t i = 1; i <= reef_summary_axes(a); i++) {
        printf("%s=%s ", reef_summary_name(a, i), at(a, row_a, i));
    }
    bool decibels = m->db_a >= 0 && m->db_b >= 0;
    double first = strtod(at(a, row_a, decibels ? m->db_a : m->value_a), NULL);
    double second = strtod(at(b, row_b, decibels ? m->db_b : m->value_b), NULL);
    printf(" %s: A %.5g, B %.5g%s, difference %.3g", reef_summary_name(a, m->value_a), first, second,
           decibels ? " dB" : "", second - first);
    if (isfinite(z)) {
        printf(" (%.1f standard errors)\n", z);
    } else {
        printf(" (no standard error)\n");
    }
}

static void json_difference(json *j, const reef_summary *a, ptrdiff_t row_a, const reef_summary *b, ptrdiff_t row_b,
                            const metric *m, double z)
{
    json_open(j, NULL, '{');
    json_whole(j, "configuration_a", row_a);
    json_whole(j, "configuration_b", row_b);
    json_open(j, "parameters", '[');
    for (ptrdiff_t i = 1; i <= reef_summary_axes(a); i++) {
        json_open(j, NULL, '{');
        json_text(j, "name", reef_summary_name(a, i));
        json_text(j, "value", at(a, row_a, i));
        json_close(j);
    }
    json_close(j);
    json_text(j, "metric", reef_summary_name(a, m->value_a));
    json_number(j, "a", strtod(at(a, row_a, m->value_a), NULL));
    json_number(j, "b", strtod(at(b, row_b, m->value_b), NULL));
    json_number(j, "a_se", strtod(at(a, row_a, m->error_a), NULL));
    json_number(j, "b_se", strtod(at(b, row_b, m->error_b), NULL));
    json_number(j, "standard_errors", z);
    json_close(j);
}

/* 1 if the configurations differ in this metric. Without standard errors any difference is one. */
static int compare_metric(const request *r, const reef_summary *a, ptrdiff_t row_a, const reef_summary *b,
                          ptrdiff_t row_b, const metric *m)
{
    double first = strtod(at(a, row_a, m->value_a), NULL);
    double second = strtod(at(b, row_b, m->value_b), NULL);
    double noise = hypot(strtod(at(a, row_a, m->error_a), NULL), strtod(at(b, row_b, m->error_b), NULL));
    bool equal = first == second || (isnan(first) && isnan(second));
    double z = equal ? 0 : fabs(first - second) / noise;
    bool differs = !equal && !(z <= r->z);
    if ((differs || r->all) && r->out) {
        json_difference(r->out, a, row_a, b, row_b, m, z);
    } else if (differs || r->all) {
        print_difference(a, row_a, b, row_b, m, z);
    }
    return differs;
}

/* Whether all configurations that both have were found equal. */
typedef struct verdict {
    int matched, differences;
} verdict;

static verdict compare_all(const request *r, const reef_summary *a, const reef_summary *b)
{
    verdict v = {0, 0};
    for (ptrdiff_t i = 0; i < reef_summary_rows(a); i++) {
        ptrdiff_t row = partner(a, i, b);
        v.matched += row >= 0;
        for (ptrdiff_t c = 0; row >= 0 && c < reef_summary_columns(a); c++) {
            metric m;
            v.differences += find_metric(a, b, c, &m) ? compare_metric(r, a, i, b, row, &m) : 0;
        }
    }
    return v;
}

static void print_verdict(const request *r, const reef_summary *a, const reef_summary *b, verdict v)
{
    printf("%d configuration%s matched (A: %td, B: %td); %d difference%s beyond %.3g standard errors\n", v.matched,
           plural(v.matched), reef_summary_rows(a), reef_summary_rows(b), v.differences, plural(v.differences), r->z);
    if (v.matched == 0) {
        fprintf(stderr, "reef compare: the runs have no configuration in common\n");
    }
}

static int compare(const arguments *given, const reef_summary *a, const reef_summary *b)
{
    json j = json_start(stdout);
    const request r = {.z = given->z, .all = given->all, .out = given->as_json ? &j : NULL};
    if (r.out) {
        json_open(&j, NULL, '{');
        json_open(&j, "differences", '[');
    }
    verdict v = compare_all(&r, a, b);
    if (r.out) {
        json_close(&j);
        json_whole(&j, "matched", v.matched);
        json_whole(&j, "configurations_a", reef_summary_rows(a));
        json_whole(&j, "configurations_b", reef_summary_rows(b));
        json_whole(&j, "beyond_noise", v.differences);
        json_number(&j, "sigma", r.z);
        json_close(&j);
    } else {
        print_verdict(&r, a, b, v);
    }
    return v.matched == 0 || v.differences > 0 ? EXIT_FAILED : EXIT_DONE;
}

static int run_compare(int argc, char **argv)
{
    arguments given = {.z = 4};
    reef_summary *a = NULL;
    reef_summary *b = NULL;
    reef_error error;
    int code = read_options(&command_compare, &argc, argv, take_option, &given);
    if (code != EXIT_DONE || argc != 3) {
        return code != EXIT_DONE ? code : bad_usage(&command_compare, "two results folders are expected", NULL);
    }
    if (reef_summary_load(NULL, &a, argv[1], &error) == REEF_OK &&
        reef_summary_load(NULL, &b, argv[2], &error) == REEF_OK) {
        code = compare(&given, a, b);
    } else {
        fprintf(stderr, "reef compare: %s\n", error.text);
        code = EXIT_MALFORMED;
    }
    reef_summary_destroy(&a);
    reef_summary_destroy(&b);
    return code;
}

const command command_compare = {
    "compare",
    "show where two results folders differ beyond statistical error",
    "Usage: reef compare FOLDER_A FOLDER_B [OPTIONS]\n\n"
    "Matches the configurations of two runs by what varies in both, and prints every metric whose steady-state values\n"
    "differ by more than their standard errors explain. Among many configurations a few exceed two or three standard\n"
    "errors by chance.\n",
    OPTIONS(options),
    "Exit codes: 0 no difference, 1 there are differences, or nothing can be compared, 2 wrong usage, 3 a folder has "
    "no\n"
    "results.\n",
    VALUE_FOLDER,
    NULL,
    run_compare,
};
