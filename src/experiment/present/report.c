/* report.html: one page from a folder of results.
 *
 * Everything on it is taken from the files beside it, so that it can be made again after figures were redrawn. Words from files are
 * escaped; figures are the svg that gnuplot draws, without scripts. A content policy in the head forbids the page every address, so
 * that opening it touches no network, whatever is in the files. */
#include "base/error.h"
#include "base/number.h"
#include "experiment/run/outcome.h"
#include "io/csv.h"
#include "io/file.h"

#include "report_page.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS_MAX = 5000, PATH_SIZE = 4096, COLUMNS_MAX = 128, WARNINGS_MAX = 50, CELLS_SHOWN = 8 };
enum { FILE_LIMIT = 1 << 28 };

/* Text that may be wider than the page: the keyboard can scroll it, too. */
#define PRE(label) "<pre tabindex=\"0\" role=\"region\" aria-label=\"" label "\">"

/* Figures in their order on the page, and what is said below them. */
static const struct {
    const char *name, *caption;
} figures[] = {
    {"matrix", "Rules against attacks, steady state. The worst attack on each rule is framed."},
    {"final", "Steady state against the parameter that varies, with error bars of two standard errors."},
    {"curves", "Learning curves with bands of two standard errors."},
    {"heat", "Every value of the parameter (vertical) over rounds (horizontal). All panels share one colour scale."},
    {"graph", "The network: agents coloured by the trust they receive (1 is the fair share). Squares with a red frame "
              "are malicious."},
};

typedef struct page {
    const reef_context *context;
    const char *folder;
    rfi_text text;
} page;

/* False, with *file empty, if the folder has no such file. */
static bool read_file(const page *p, const char *name, rfi_file *file)
{
    char path[PATH_SIZE];
    *file = (rfi_file){0};
    return (size_t)snprintf(path, sizeof path, "%s/%s", p->folder, name) < sizeof path &&
           rfi_file_read(p->context, path, FILE_LIMIT, file, NULL) == REEF_OK;
}

static rfi_slice slice_of(const rfi_file *file)
{
    return (rfi_slice){(const char *)file->bytes, file->size};
}

static void add_escaped(page *p, rfi_slice words)
{
    rfi_text_html(&p->text, words.text, words.length);
}

/* The place of `word` in a slice, or NULL. */
static const char *find(rfi_slice in, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= in.length; i++) {
        if (memcmp(in.text + i, word, length) == 0) {
            return in.text + i;
        }
    }
    return NULL;
}

/* ---- head ---- */

/* The text of a member of our manifest, which has one per line. */
static rfi_slice member(rfi_slice manifest, const char *name)
{
    char start[64];
    (void)snprintf(start, sizeof start, "\n  \"%s\": ", name);
    const char *at = find(manifest, start);
    if (!at) {
        return (rfi_slice){"?", 1};
    }
    at += strlen(start);
    rfi_slice rest = {at, (size_t)(manifest.text + manifest.length - at)};
    bool found = false;
    rfi_slice value = rfi_cut(rest, '\n', &rest, &found);
    if (value.length > 0 && value.text[value.length - 1] == ',') {
        value.length--;
    }
    if (value.length > 1 && value.text[0] == '"' && value.text[value.length - 1] == '"') {
        value = (rfi_slice){value.text + 1, value.length - 2};
    }
    return value;
}

static void add_head(page *p, rfi_slice manifest)
{
    rfi_slice name = member(manifest, "name");
    rfi_text_add(&p->text,
                 "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                 "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>");
    add_escaped(p, name);
    rfi_text_add(&p->text, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header><h1>", page_style);
    add_escaped(p, name);
    rfi_text_add(&p->text, "</h1><p class=\"facts\">Reef ");
    add_escaped(p, member(manifest, "version"));
    rfi_text_add(&p->text, ", finished ");
    add_escaped(p, member(manifest, "finished"));
    rfi_text_add(&p->text, ", ");
    add_escaped(p, member(manifest, "seconds"));
    rfi_text_add(&p->text, " s on ");
    add_escaped(p, member(manifest, "threads"));
    rfi_slice threads = member(manifest, "threads");
    bool one = threads.length == 1 && threads.text[0] == '1';
    rfi_text_add(&p->text, " thread%s of ", one ? "" : "s");
    add_escaped(p, member(manifest, "processor"));
    rfi_text_add(&p->text, "</p><button class=\"theme\" type=\"button\">light / dark</button></header>\n");
}

/* ---- figures ---- */

static void add_figure(page *p, const char *name, const char *caption)
{
    char path[64];
    rfi_file file;
    (void)snprintf(path, sizeof path, "figures/%s.svg", name);
    if (!read_file(p, path, &file)) {
        return;
    }
    const rfi_slice all = slice_of(&file);
    const char *start = find(all, "<svg"); /* what comes before it belongs to separate files */
    if (start && !find(all, "<script") && find(all, "</svg>")) {
        rfi_text_add(
            &p->text,
            "<figure id=\"figure-%s\">\n<div class=\"picture\" role=\"img\" tabindex=\"0\" aria-label=\"%s\">\n", name,
            caption);
        rfi_text_bytes(&p->text, start, (size_t)(all.text + all.length - start));
        rfi_text_add(&p->text,
                     "</div>\n<figcaption>%s <span class=\"links\"><a href=\"figures/%s.png\">PNG</a> <a "
                     "href=\"figures/%s.pdf\">PDF</a> "
                     "<a href=\"figures/%s.dat\">data</a></span></figcaption>\n</figure>\n",
                     caption, name, name, name);
    }
    rfi_file_free(p->context, &file);
}

/* ---- tables ---- */

/* The next field of a line; what is longer than any that Reef writes is cut. False at the end. */
static bool next_field(rfi_slice *rest, bool *more, char *value)
{
    if (!*more) {
        return false;
    }
    rfi_csv_field field = rfi_csv_next(rest, ',', more);
    field.text.length = field.text.length < RFI_SPEC_LENGTH_MAX ? field.text.length : RFI_SPEC_LENGTH_MAX;
    (void)rfi_csv_copy(field, value);
    return true;
}

typedef struct table {
    const char *id;
    const char *stop; /* the columns between the first and this one are what varies */
    ptrdiff_t axes;
    bool shown[COLUMNS_MAX];
} table;

/* Columns beyond what fits, and the configuration, which has its own place. */
static void add_table_head(page *p, table *t, rfi_slice line)
{
    char value[RFI_SPEC_LENGTH_MAX + 1];
    bool more = true;
    bool axes = true;
    ptrdiff_t column = 0;
    rfi_text_add(&p->text, "<thead><tr>");
    for (; column < COLUMNS_MAX && next_field(&line, &more, value); column++) {
        axes = axes && strcmp(value, t->stop) != 0;
        t->axes += axes && column > 0;
        t->shown[column] = strncmp(value, "config.", 7) != 0;
        if (!t->shown[column]) {
            continue;
        }
        rfi_text_add(&p->text, "<th scope=\"col\"");
        if (axes && column > 0) {
            rfi_text_add(&p->text, " data-axis=\"");
            add_escaped(p, (rfi_slice){value, strlen(value)});
            rfi_text_add(&p->text, "\"");
        }
        rfi_text_add(&p->text, "><button type=\"button\">");
        add_escaped(p, (rfi_slice){value, strlen(value)});
        rfi_text_add(&p->text, "</button></th>");
    }
    rfi_text_add(&p->text, "</tr></thead>\n<tbody>\n");
}

static double five_digits(double number)
{
    double scale = number == 0 ? 1 : pow(10, 4 - floor(log10(fabs(number))));
    return isfinite(scale) && scale > 0 ? round(number * scale) / scale : number;
}

/* A number is shown with five digits and keeps all of them beside; words are left-aligned; a dash means unknown. */
static void add_value(page *p, const char *value, bool axis)
{
    double number = 0;
    bool unknown = strcmp(value, "nan") == 0;
    bool numeric = rfi_read_real((rfi_slice){value, strlen(value)}, &number);
    rfi_text_add(&p->text, "<td%s data-value=\"", numeric || unknown ? "" : " class=\"word\"");
    add_escaped(p, (rfi_slice){value, strlen(value)});
    rfi_text_add(&p->text, "\">");
    if (unknown && !axis) {
        rfi_text_add(&p->text, "&ndash;");
    } else if (numeric && !axis) {
        rfi_text_number(&p->text, five_digits(number));
    } else {
        add_escaped(p, (rfi_slice){value, strlen(value)});
    }
    rfi_text_add(&p->text, "</td>");
}

static void add_table_row(page *p, const table *t, rfi_slice line)
{
    char value[RFI_SPEC_LENGTH_MAX + 1];
    bool more = true;
    rfi_text_add(&p->text, "<tr>");
    for (ptrdiff_t column = 0; column < COLUMNS_MAX && next_field(&line, &more, value); column++) {
        if (t->shown[column]) {
            add_value(p, value, column <= t->axes);
        }
    }
    rfi_text_add(&p->text, "</tr>\n");
}

static void add_table(page *p, table *t, const char *file_name, const char *title)
{
    rfi_file file;
    if (!read_file(p, file_name, &file)) {
        return;
    }
    bool more = true;
    rfi_slice rest = slice_of(&file);
    rfi_slice line = rfi_cut(rest, '\n', &rest, &more);
    rfi_text_add(
        &p->text,
        "<h2>%s</h2>\n<p class=\"count\"><span data-count-of=\"%s\" role=\"status\"></span> <a "
        "href=\"%s\">CSV</a></p>\n"
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table class=\"data\" id=\"%s\">\n",
        title, t->id, file_name, title, t->id);
    add_table_head(p, t, line);
    ptrdiff_t rows = 0;
    for (; more && rest.length > 0; rows++) {
        line = rfi_cut(rest, '\n', &rest, &more);
        if (rows < ROWS_MAX) {
            add_table_row(p, t, line);
        }
    }
    rfi_text_add(&p->text, "</tbody></table></div>\n");
    if (rows > ROWS_MAX) {
        rfi_text_add(&p->text, "<p class=\"count\">The first %d of %td rows; %s has them all.</p>\n", ROWS_MAX, rows,
                     file_name);
    }
    rfi_file_free(p->context, &file);
}

/* ---- warnings ---- */

/* Warnings that say the same, and the first cells that have them. */
typedef struct warning {
    rfi_slice what;
    rfi_slice cells[CELLS_SHOWN];
    ptrdiff_t count;
} warning;

/* Adds the warning of a cell; false if there are too many different ones. */
static bool gather(warning *list, ptrdiff_t *count, rfi_slice what, rfi_slice cell)
{
    ptrdiff_t i = 0;
    while (i < *count &&
           (list[i].what.length != what.length || memcmp(list[i].what.text, what.text, what.length) != 0)) {
        i++;
    }
    if (i == WARNINGS_MAX) {
        return false;
    }
    if (i == *count) {
        list[(*count)++] = (warning){.what = what};
    }
    if (list[i].count < CELLS_SHOWN) {
        list[i].cells[list[i].count] = cell;
    }
    list[i].count++;
    return true;
}

static void add_warning(page *p, const warning *w)
{
    rfi_text_add(&p->text, "<li>");
    add_escaped(p, w->what);
    rfi_text_add(&p->text, " <span class=\"where\">(");
    for (ptrdiff_t i = 0; i < w->count && i < CELLS_SHOWN; i++) {
        rfi_text_add(&p->text, "%s", i ? "; " : "");
        add_escaped(p, w->cells[i]);
    }
    if (w->count > CELLS_SHOWN) {
        rfi_text_add(&p->text, " and %td more", w->count - CELLS_SHOWN);
    }
    rfi_text_add(&p->text, ")</span></li>\n");
}

static void add_warnings(page *p)
{
    static const char label[] = "  WARNING";
    static const char place[] = "configuration ";
    rfi_file file;
    warning list[WARNINGS_MAX];
    ptrdiff_t count = 0;
    bool all = true;
    bool more = true;
    rfi_slice cell = {"", 0};
    if (!read_file(p, "check.txt", &file)) {
        return;
    }
    for (rfi_slice rest = slice_of(&file); more && rest.length > 0;) {
        rfi_slice line = rfi_cut(rest, '\n', &rest, &more);
        if (line.length >= sizeof place && memcmp(line.text, place, sizeof place - 1) == 0) {
            cell = line;
        } else if (line.length >= sizeof label && memcmp(line.text, label, sizeof label - 1) == 0) {
            const rfi_slice what = {line.text + sizeof label - 1, line.length - (sizeof label - 1)};
            all = gather(list, &count, rfi_trim(what), cell) && all;
        }
    }
    rfi_text_add(&p->text, "<section id=\"check\"><h2>Warnings of reef check</h2>\n<ul class=\"warnings\">\n");
    for (ptrdiff_t i = 0; i < count; i++) {
        add_warning(p, &list[i]);
    }
    rfi_text_add(&p->text,
                 "</ul>\n%s%s<details><summary>Full output of reef check</summary>" PRE("full output of reef check"),
                 count ? "" : "<p>None.</p>\n", all ? "" : "<p>There are more; see below.</p>\n");
    add_escaped(p, slice_of(&file));
    rfi_text_add(&p->text, "</pre></details></section>\n");
    rfi_file_free(p->context, &file);
}

/* ---- the whole ---- */

static void add_config(page *p, rfi_slice manifest)
{
    rfi_file file;
    if (!read_file(p, "config.yaml", &file)) {
        return;
    }
    rfi_text_add(&p->text, "<section id=\"config\"><h2>Configuration</h2>\n<p>Overrides: ");
    add_escaped(p, member(manifest, "overrides"));
    rfi_text_add(&p->text, "</p>\n" PRE("configuration"));
    add_escaped(p, slice_of(&file));
    rfi_text_add(&p->text, "</pre></section>\n");
    rfi_file_free(p->context, &file);
}

/* A folder may come from anybody: where a link in it leads, nothing is written. */
static void remove_link(const char *folder)
{
    char path[4096];
    struct stat found;
    if ((size_t)snprintf(path, sizeof path, "%s/report.html", folder) < sizeof path && lstat(path, &found) == 0 &&
        S_ISLNK(found.st_mode)) {
        (void)unlink(path);
    }
}

reef_status reef_experiment_report(reef_context *context, const char *folder, reef_error *error)
{
    if (!folder) {
        return rfi_fail(error, REEF_E_ARG, "reef_experiment_report: folder is NULL");
    }
    page p = {.context = context, .folder = folder, .text = {.context = context}};
    rfi_file manifest;
    if (!read_file(&p, "manifest.json", &manifest)) {
        return rfi_fail(error, REEF_E_FILE, "%s has no manifest.json: it is not the results folder of a finished run",
                        rfi_path_show(folder));
    }
    table summary = {.id = "summary", .stop = "repetitions"};
    table trust = {.id = "trust", .stop = "agent"};
    add_head(&p, slice_of(&manifest));
    /* the script fills in the filters and the headline table, from the summary below */
    rfi_text_add(&p.text, "<main>\n<div class=\"filters\" role=\"group\" aria-label=\"Filters\"></div>\n"
                          "<section id=\"headline\"></section>\n<section id=\"figures\"><h2>Figures</h2>\n");
    for (ptrdiff_t i = 0; i < RFI_COUNT(figures); i++) {
        add_figure(&p, figures[i].name, figures[i].caption);
    }
    rfi_text_add(&p.text, "</section>\n");
    add_warnings(&p);
    rfi_text_add(&p.text, "<section id=\"tables\">\n");
    add_table(&p, &summary, "summary.csv", "Steady state");
    add_table(&p, &trust, "trust.csv", "Trust that agents receive");
    rfi_text_add(&p.text, "</section>\n");
    add_config(&p, slice_of(&manifest));
    rfi_text_add(&p.text, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", page_script);
    rfi_file_free(context, &manifest);
    remove_link(folder);
    reef_status status = rfi_text_write(&p.text, folder, "report.html", error);
    rfi_text_free(&p.text);
    return status;
}
