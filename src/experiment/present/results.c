/* Tables and manifest of an experiment. */
#include "base/error.h"
#include "base/number.h"
#include "experiment/run/outcome.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CONFIG_MAX = 32 };

/* ---- tables ---- */

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
        rfi_text_field(text, reef_experiment_axis(r->experiment, a));
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
        rfi_text_field(text, value);
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

/* The first of all metrics, in which the oracle is reported. */
static int first_metric(const bool wanted[RFI_METRICS])
{
    int metric = 0;
    while (metric < RFI_METRICS - 1 && !wanted[metric]) {
        metric++;
    }
    return metric;
}

/* Theory, and the oracle's steady state of the first metric with its standard error. */
static void add_references(const rfi_outcome *o, const rfi_outcome *oracle, int metric, rfi_text *text)
{
    rfi_moments m = {(double)NAN, (double)NAN};
    double error = (double)NAN;
    if (oracle && oracle->wanted[metric]) { /* it is the first of the oracle's too */
        m = rfi_outcome_at(oracle, 0, oracle->points);
        error = rfi_outcome_error(oracle, m);
    }
    add_decibels(text, o->theory);
    if (rfi_metric_decibels((rfi_metric)metric)) {
        add_decibels(text, m.mean);
    }
    add_number(text, m.mean);
    add_number(text, error);
}

/* The value of `name` in a cell's description, lines "key value"; empty if it has none. */
static rfi_slice described(const char *key, rfi_slice name)
{
    rfi_slice rest = {key, strlen(key)};
    bool more = true;
    while (more && rest.length > 0) {
        bool found = false;
        rfi_slice value;
        rfi_slice line = rfi_cut(rest, '\n', &rest, &more);
        rfi_slice word = rfi_cut(line, ' ', &value, &found);
        if (word.length == name.length && memcmp(word.text, name.text, name.length) == 0) {
            return value;
        }
    }
    return (rfi_slice){"", 0};
}

/* Why the first metric's steady state may not be one, or nothing. */
static void add_note(const rfi_outcome *o, const char *key, int metric, rfi_text *text)
{
    char note[RFI_NOTE_SIZE] = "";
    double steady = 0;
    if (o->wanted[metric] && rfi_read_real(described(key, (rfi_slice){"steady", 6}), &steady)) {
        rfi_steady_note(o, 0, (rfi_metric)metric, (int64_t)steady, note, sizeof note);
    }
    rfi_text_add(text, ",");
    rfi_text_field(text, note);
}

/* Names of everything that determines a cell, those of all cells: columns behind the results. */
typedef struct config_columns {
    rfi_slice names[CONFIG_MAX];
    ptrdiff_t count;
} config_columns;

static void find_columns(const rfi_results *r, config_columns *columns)
{
    for (ptrdiff_t i = 0; i < r->experiment->cells; i++) {
        rfi_slice rest = {r->keys[i], strlen(r->keys[i])};
        bool more = true;
        while (more && rest.length > 0) {
            bool found = false;
            rfi_slice value;
            rfi_slice name = rfi_cut(rfi_cut(rest, '\n', &rest, &more), ' ', &value, &found);
            ptrdiff_t c = 0;
            while (c < columns->count && (columns->names[c].length != name.length ||
                                          memcmp(columns->names[c].text, name.text, name.length) != 0)) {
                c++;
            }
            if (c == columns->count && c < CONFIG_MAX) {
                columns->names[columns->count++] = name;
            }
        }
    }
}

static void add_config(const config_columns *columns, const char *key, rfi_text *text)
{
    char value[RFI_SPEC_LENGTH_MAX + 1];
    for (ptrdiff_t c = 0; c < columns->count; c++) {
        rfi_slice words = described(key, columns->names[c]);
        size_t length = words.length < sizeof value ? words.length : sizeof value - 1;
        memcpy(value, words.text, length);
        value[length] = '\0';
        rfi_text_add(text, ",");
        rfi_text_field(text, value);
    }
}

static reef_status write_summary(const rfi_results *r, const char *folder, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    rfi_text text = {.context = e->context};
    bool wanted[RFI_METRICS];
    all_metrics(r, wanted);
    add_head(r, wanted, ",repetitions", &text);
    int metric = first_metric(wanted);
    rfi_text_add(&text, ",theory_db%s,oracle,oracle_se,note",
                 rfi_metric_decibels((rfi_metric)metric) ? ",oracle_db" : "");
    config_columns columns = {.count = 0};
    find_columns(r, &columns);
    for (ptrdiff_t c = 0; c < columns.count; c++) {
        rfi_text_add(&text, ",config.%.*s", (int)columns.names[c].length, columns.names[c].text);
    }
    rfi_text_add(&text, "\n");
    for (ptrdiff_t i = 0; i < e->cells; i++) {
        const rfi_outcome *o = r->cells[i];
        add_cell(r, i, &text);
        rfi_text_add(&text, ",%td", o->repetitions);
        add_metrics(o, wanted, o->points, &text);
        add_references(o, r->oracles[i], metric, &text);
        add_note(o, r->keys[i], metric, &text);
        add_config(&columns, r->keys[i], &text);
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

reef_status rfi_results_write(const rfi_results *results, const char *folder, reef_error *error)
{
    reef_status status = write_summary(results, folder, error);
    if (status == REEF_OK) {
        status = write_curves(results, folder, error);
    }
    if (status == REEF_OK) {
        status = rfi_trust_write(results, folder, error);
    }
    if (status == REEF_OK && results->arrays) {
        status = rfi_arrays_write(results, folder, error);
    }
    if (status == REEF_OK && results->models) {
        status = rfi_models_write(results, folder, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_check_write(results, folder, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_figures_write(results, folder, error);
    if (status != REEF_OK) {
        return status;
    }
    return write_manifest(results, folder, error);
}
