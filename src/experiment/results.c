/* Tables and manifest of an experiment. */
#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "experiment/outcome.h"
#include "io/file.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- texts ---- */

static bool grow(rfi_text *text, size_t more)
{
    if (text->failed || more < text->room - text->size) {
        return !text->failed;
    }
    size_t room = 2 * (text->room + more) + 256;
    char *bytes = rfi_allocate(text->context, room);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    if (text->bytes) {
        memcpy(bytes, text->bytes, text->size);
    }
    rfi_release(text->context, text->bytes);
    text->bytes = bytes;
    text->room = room;
    return true;
}

void rfi_text_add(rfi_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !grow(text, (size_t)length + 1)) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text->bytes + text->size, text->room - text->size, format, arguments);
    va_end(arguments);
    text->size += (size_t)length;
}

void rfi_text_number(rfi_text *text, double number)
{
    char digits[RFI_REAL_SIZE];
    if (isfinite(number)) {
        rfi_print_real(number, digits);
        rfi_text_add(text, "%s", digits);
    } else {
        rfi_text_add(text, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
    }
}

void rfi_text_free(rfi_text *text)
{
    rfi_release(text->context, text->bytes);
    *text = (rfi_text){.context = text->context};
}

reef_status rfi_text_write(const rfi_text *text, const char *folder, const char *name, reef_error *error)
{
    char path[4096];
    if (text->failed) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %s", name);
    }
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        return rfi_fail(error, REEF_E_FILE, "%s: the path is too long", rfi_path_show(folder));
    }
    return rfi_file_write(text->context, path, &(rfi_piece){text->bytes, text->size}, 1, error);
}

reef_status rfi_make_folder(const char *path, reef_error *error)
{
    char part[4096];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) {
        return rfi_fail(error, REEF_E_FILE, "'%s' cannot be a folder", rfi_path_show(path));
    }
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            return rfi_fail(error, REEF_E_FILE, "%s: cannot make this folder: %s", rfi_path_show(part),
                            strerror(errno));
        }
    }
    return REEF_OK;
}

/* ---- tables ---- */

/* A field of a csv file: in quotes if it has to be. */
static void add_field(rfi_text *text, const char *value)
{
    if (!strpbrk(value, ",\"\n\r")) {
        rfi_text_add(text, "%s", value);
        return;
    }
    rfi_text_add(text, "\"");
    for (; *value; value++) {
        if (*value == '"') {
            rfi_text_add(text, "\"");
        }
        rfi_text_add(text, "%c", *value);
    }
    rfi_text_add(text, "\"");
}

/* ",x" in decibels to 4 places; the same text in every locale. */
static void add_decibels(rfi_text *text, double power)
{
    rfi_text_add(text, ",");
    rfi_text_number(text, round(1e4 * 10 * log10(power)) / 1e4);
}

/* Metrics that some cell has; the columns of the tables. */
static void all_metrics(const rfi_results *r, bool wanted[RFI_METRICS])
{
    memset(wanted, 0, RFI_METRICS * sizeof *wanted);
    for (ptrdiff_t i = 0; i < reef_experiment_cells(r->experiment); i++) {
        for (int m = 0; m < RFI_METRICS; m++) {
            wanted[m] = wanted[m] || r->cells[i]->wanted[m];
        }
    }
}

static void add_head(const rfi_results *r, const bool wanted[RFI_METRICS], const char *after, rfi_text *text)
{
    rfi_text_add(text, "cell");
    for (ptrdiff_t a = 0; a < reef_experiment_axes(r->experiment); a++) {
        rfi_text_add(text, ",");
        add_field(text, reef_experiment_axis(r->experiment, a));
    }
    rfi_text_add(text, "%s", after);
    for (int m = 0; m < RFI_METRICS; m++) {
        const char *name = rfi_metric_name((rfi_metric)m);
        if (wanted[m] && rfi_metric_decibels((rfi_metric)m)) {
            rfi_text_add(text, ",%s_db,%s,%s_se", name, name, name);
        } else if (wanted[m]) {
            rfi_text_add(text, ",%s,%s_se", name, name);
        }
    }
}

static void add_cell(const rfi_results *r, ptrdiff_t cell, rfi_text *text)
{
    char value[RFI_SPEC_LENGTH_MAX + 1];
    rfi_text_add(text, "%td", cell);
    for (ptrdiff_t a = 0; a < reef_experiment_axes(r->experiment); a++) {
        (void)reef_experiment_value(r->experiment, cell, a, value, sizeof value);
        rfi_text_add(text, ",");
        add_field(text, value);
    }
}

static void add_number(rfi_text *text, double number)
{
    rfi_text_add(text, ",");
    rfi_text_number(text, number);
}

/* Decibels where usual, mean and standard error of every metric at a point (points: the steady state). */
static void add_metrics(const rfi_outcome *o, const bool wanted[RFI_METRICS], ptrdiff_t point, rfi_text *text)
{
    ptrdiff_t row = 0;
    for (int m = 0; m < RFI_METRICS; m++) {
        if (!wanted[m]) {
            continue;
        }
        rfi_moments moments = {(double)NAN, (double)NAN};
        double error = (double)NAN;
        if (o->wanted[m]) {
            moments = rfi_outcome_at(o, row++, point);
            error = rfi_outcome_error(o, moments);
        }
        if (rfi_metric_decibels((rfi_metric)m)) {
            add_decibels(text, moments.mean);
        }
        add_number(text, moments.mean);
        add_number(text, error);
    }
}

static reef_status write_summary(const rfi_results *r, const char *folder, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    rfi_text text = {.context = e->context};
    bool wanted[RFI_METRICS];
    all_metrics(r, wanted);
    add_head(r, wanted, ",runs", &text);
    rfi_text_add(&text, ",theory_db,oracle_db\n");
    for (ptrdiff_t i = 0; i < e->cells; i++) {
        const rfi_outcome *o = r->cells[i];
        const rfi_outcome *oracle = r->oracles[i];
        add_cell(r, i, &text);
        rfi_text_add(&text, ",%td", o->repetitions);
        add_metrics(o, wanted, o->points, &text);
        bool known = oracle && oracle->wanted[RFI_MSD];
        add_decibels(&text, o->theory);
        add_decibels(&text, known ? rfi_outcome_at(oracle, 0, oracle->points).mean : (double)NAN);
        rfi_text_add(&text, "\n");
    }
    reef_status status = rfi_text_write(&text, folder, "summary.csv", error);
    rfi_text_free(&text);
    return status;
}

static reef_status write_curves(const rfi_results *r, const char *folder, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    rfi_text text = {.context = e->context};
    bool wanted[RFI_METRICS];
    all_metrics(r, wanted);
    add_head(r, wanted, ",round", &text);
    rfi_text_add(&text, "\n");
    for (ptrdiff_t i = 0; i < e->cells; i++) {
        for (ptrdiff_t p = 0; p < r->cells[i]->points; p++) {
            add_cell(r, i, &text);
            rfi_text_add(&text, ",%lld", (long long)rfi_outcome_round(r->cells[i], p));
            add_metrics(r->cells[i], wanted, p, &text);
            rfi_text_add(&text, "\n");
        }
    }
    reef_status status = rfi_text_write(&text, folder, "curves.csv", error);
    rfi_text_free(&text);
    return status;
}

/* ---- manifest ---- */

static void add_string(rfi_text *text, const char *value, size_t length)
{
    rfi_text_add(text, "\"");
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)value[i];
        if (c == '"' || c == '\\') {
            rfi_text_add(text, "\\%c", c);
        } else if (c < ' ') {
            rfi_text_add(text, "\\u%04x", c);
        } else {
            rfi_text_add(text, "%c", c);
        }
    }
    rfi_text_add(text, "\"");
}

static void add_member(rfi_text *text, const char *name, const char *value)
{
    rfi_text_add(text, "  \"%s\": ", name);
    add_string(text, value, strlen(value));
    rfi_text_add(text, ",\n");
}

/* The lines "key value" of a cell's description as members of an object. */
static void add_description(rfi_text *text, const char *key)
{
    rfi_slice rest = {key, strlen(key)};
    bool more = true;
    for (bool first = true; more && rest.length > 0; first = false) {
        bool found = false;
        rfi_slice value;
        rfi_slice line = rfi_cut(rest, '\n', &rest, &more);
        rfi_slice name = rfi_cut(line, ' ', &value, &found);
        rfi_text_add(text, "%s", first ? "" : ", ");
        add_string(text, name.text, name.length);
        rfi_text_add(text, ": ");
        add_string(text, value.text, value.length);
    }
}

static void read_processor(char *name, size_t size)
{
    static const char label[] = "model name";
    char line[512];
    (void)snprintf(name, size, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, label, sizeof label - 1) == 0 && colon) {
            (void)snprintf(name, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
}

static void add_facts(const rfi_results *r, rfi_text *text)
{
    char value[256];
    struct tm now;
    time_t seconds = time(NULL);
    add_member(text, "name", r->experiment->name);
    add_member(text, "version", reef_version());
    add_member(text, "source", r->experiment->source);
    read_processor(value, sizeof value);
    add_member(text, "processor", value);
    if (gmtime_r(&seconds, &now) && strftime(value, sizeof value, "%Y-%m-%dT%H:%M:%SZ", &now) > 0) {
        add_member(text, "finished", value);
    }
    rfi_text_add(text, "  \"seconds\": ");
    rfi_text_number(text, round(1e3 * r->seconds) / 1e3);
    rfi_text_add(text, ",\n  \"threads\": %td,\n  \"overrides\": [", r->threads);
    for (ptrdiff_t i = 0; i < r->experiment->override_count; i++) {
        const char *override = r->experiment->override_texts[i];
        rfi_text_add(text, "%s", i ? ", " : "");
        add_string(text, override, strlen(override));
    }
    rfi_text_add(text, "],\n");
}

static reef_status write_manifest(const rfi_results *r, const char *folder, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    rfi_text text = {.context = e->context};
    char value[RFI_SPEC_LENGTH_MAX + 1];
    rfi_text_add(&text, "{\n");
    add_facts(r, &text);
    rfi_text_add(&text, "  \"cells\": [");
    for (ptrdiff_t i = 0; i < e->cells; i++) {
        rfi_text_add(&text, "%s\n    {\"cell\": %td, \"parameters\": {", i ? "," : "", i);
        for (ptrdiff_t a = 0; a < e->axis_count; a++) {
            (void)reef_experiment_value(e, i, a, value, sizeof value);
            rfi_text_add(&text, "%s", a ? ", " : "");
            add_string(&text, e->axes[a].path, strlen(e->axes[a].path));
            rfi_text_add(&text, ": ");
            add_string(&text, value, strlen(value));
        }
        rfi_text_add(&text, "}, \"config\": {");
        add_description(&text, r->keys[i]);
        rfi_text_add(&text, "}}");
    }
    rfi_text_add(&text, "\n  ]\n}\n");
    reef_status status = rfi_text_write(&text, folder, "manifest.json", error);
    rfi_text_free(&text);
    return status;
}

static reef_status write_config(const rfi_results *r, const char *folder, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    const rfi_text text = {.context = e->context, .bytes = e->text, .size = e->text_size};
    return rfi_text_write(&text, folder, "config.yaml", error);
}

reef_status rfi_results_write(const rfi_results *results, const char *folder, reef_error *error)
{
    reef_status status = write_config(results, folder, error);
    status = status == REEF_OK ? write_summary(results, folder, error) : status;
    status = status == REEF_OK ? write_curves(results, folder, error) : status;
    status = status == REEF_OK ? rfi_figures_write(results, folder, error) : status;
    return status == REEF_OK ? write_manifest(results, folder, error) : status;
}
