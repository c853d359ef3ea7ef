/* What the figures have in common: the choice of parameter and series, texts, files. */
#include "experiment/present/figures.h"

#include "base/error.h"
#include "base/number.h"
#include "io/stream.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- choosing ---- */

static bool number_at(const reef_experiment *e, ptrdiff_t cell, ptrdiff_t axis, double *number)
{
    char value[RFI_LABEL_SIZE];
    size_t length = reef_experiment_value(e, cell, axis, value, sizeof value);
    return length < sizeof value && rfi_read_real((rfi_slice){value, length}, number);
}

static bool is_numeric(const reef_experiment *e, ptrdiff_t axis)
{
    bool numeric = true;
    for (ptrdiff_t i = 0; i < e->cells && numeric; i++) {
        double number = 0;
        numeric = number_at(e, i, axis, &number);
    }
    return numeric;
}

/* The seed is no parameter: its order means nothing. */
static ptrdiff_t choose_parameter(const reef_experiment *e)
{
    ptrdiff_t best = -1;
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        bool more = e->axes[a].count > (best < 0 ? 2 : e->axes[best].count);
        best = more && strcmp(e->axes[a].path, "seed") != 0 && is_numeric(e, a) ? a : best;
    }
    return best;
}

ptrdiff_t rfi_figure_stride(const reef_experiment *e, ptrdiff_t dimension)
{
    ptrdiff_t stride = 1;
    for (ptrdiff_t d = dimension + 1; d < e->dimensions; d++) {
        stride *= e->sizes[d];
    }
    return stride;
}

ptrdiff_t rfi_figure_values(const rfi_figures *f)
{
    return f->parameter < 0 ? 1 : f->experiment->axes[f->parameter].count;
}

ptrdiff_t rfi_figure_cell(const rfi_figures *f, ptrdiff_t series, ptrdiff_t v)
{
    const reef_experiment *e = f->experiment;
    return f->first[series] + (f->parameter < 0 ? 0 : v * rfi_figure_stride(e, e->axes[f->parameter].dimension));
}

static bool begins_series(const rfi_figures *f, ptrdiff_t cell)
{
    const reef_experiment *e = f->experiment;
    ptrdiff_t stride = f->parameter < 0 ? 1 : rfi_figure_stride(e, e->axes[f->parameter].dimension);
    return cell / stride % rfi_figure_values(f) == 0;
}

/* Whether everything but the rule and the parameter has its middle value in a cell. */
static bool is_middle(const rfi_figures *f, ptrdiff_t cell)
{
    const reef_experiment *e = f->experiment;
    ptrdiff_t rule = e->axes[rfi_figure_axis(e, "rule")].dimension;
    bool middle = true;
    for (ptrdiff_t d = 0; d < e->dimensions; d++) {
        bool varies = d == rule || (f->parameter >= 0 && d == e->axes[f->parameter].dimension);
        middle = middle && (varies || cell / rfi_figure_stride(e, d) % e->sizes[d] == e->sizes[d] / 2);
    }
    return middle;
}

/* Lines picked from a large grid here and there would compare one rule under one attack with another rule under another attack, so of
 * too many series only those that differ in the rule are shown. */
static void find_series(rfi_figures *f)
{
    const reef_experiment *e = f->experiment;
    ptrdiff_t axis = rfi_figure_axis(e, "rule");
    bool own = axis >= 0 && (f->parameter < 0 || e->axes[axis].dimension != e->axes[f->parameter].dimension);
    f->held = own && e->cells / rfi_figure_values(f) > RFI_SERIES_MAX &&
              e->cells / rfi_figure_values(f) > e->sizes[e->axes[axis].dimension];
    for (ptrdiff_t i = 0; i < e->cells && f->series_count < RFI_SERIES_ROOM; i++) {
        if (begins_series(f, i) && (!f->held || is_middle(f, i))) {
            f->first[f->series_count++] = i;
        }
    }
}

ptrdiff_t rfi_figure_shown_series(const rfi_figures *f, ptrdiff_t most)
{
    return f->series_count < most ? f->series_count : most;
}

ptrdiff_t rfi_figure_pick(const rfi_figures *f, ptrdiff_t most, ptrdiff_t i)
{
    return i * f->series_count / rfi_figure_shown_series(f, most);
}

ptrdiff_t rfi_figure_axis(const reef_experiment *e, const char *path)
{
    ptrdiff_t a = e->axis_count - 1;
    while (a >= 0 && strcmp(e->axes[a].path, path) != 0) {
        a--;
    }
    return a;
}

double rfi_figure_number(const rfi_figures *f, ptrdiff_t cell)
{
    double number = 0;
    (void)number_at(f->experiment, cell, f->parameter, &number);
    return number;
}

double rfi_figure_shown(const rfi_figures *f, double value)
{
    return rfi_metric_decibels(f->metric) ? 10 * log10(value > 1e-300 ? value : 1e-300) : value;
}

bool rfi_figure_beyond(const rfi_figures *f, double value)
{
    return rfi_metric_decibels(f->metric) && !(rfi_figure_shown(f, value) <= RFI_COLOUR_TOP);
}

double rfi_figure_clipped(const rfi_figures *f, double value)
{
    double shown = rfi_figure_shown(f, value);
    return rfi_metric_decibels(f->metric) ? fmin(shown, RFI_COLOUR_TOP) : shown;
}

rfi_moments rfi_figure_at(const rfi_figures *f, const rfi_outcome *o, ptrdiff_t point)
{
    ptrdiff_t row = 0;
    for (int m = 0; m < (int)f->metric; m++) {
        row += o->wanted[m];
    }
    return rfi_outcome_at(o, row, point);
}

bool rfi_figure_one_oracle(const rfi_figures *f)
{
    const reef_experiment *e = f->experiment;
    bool rule_alone = true;
    if (f->held) {
        return true;
    }
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        bool zipped = f->parameter >= 0 && e->axes[a].dimension == e->axes[f->parameter].dimension;
        rule_alone = rule_alone && (zipped || strcmp(e->axes[a].path, "rule") == 0);
    }
    return rule_alone;
}

const rfi_outcome *rfi_figure_oracle(const rfi_figures *f, ptrdiff_t cell)
{
    const rfi_outcome *oracle = f->results->oracles[cell];
    return oracle && oracle->wanted[f->metric] ? oracle : NULL;
}

/* ---- texts ---- */

void rfi_figure_safe(rfi_text *text, const char *words)
{
    for (; *words; words++) {
        bool bad = strchr("'\"`\\", *words) || (unsigned char)*words < ' ';
        rfi_text_add(text, "%c", bad ? '_' : *words);
    }
}

/* "mean delay" of "strategy.mean_delay": short enough for a legend. */
static void add_key(const char *path, rfi_text *text)
{
    char words[RFI_LABEL_SIZE];
    size_t used = 0;
    const char *point = strrchr(path, '.');
    rfi_append(words, sizeof words, &used, "%s", point ? point + 1 : path);
    for (char *c = words; *c; c++) {
        if (*c == '_') {
            *c = ' ';
        }
    }
    rfi_figure_safe(text, words);
}

void rfi_figure_setting(const reef_experiment *e, ptrdiff_t axis, ptrdiff_t cell, rfi_text *text)
{
    const char *path = e->axes[axis].path;
    char value[RFI_LABEL_SIZE];
    (void)reef_experiment_value(e, cell, axis, value, sizeof value);
    bool plain = strcmp(path, "rule") == 0 || strcmp(path, "attack") == 0;
    bool counts = strcmp(path, "malicious") == 0 || strcmp(path, "agents") == 0;
    if (!plain && !counts) {
        add_key(path, text);
        rfi_text_add(text, " = ");
    }
    rfi_figure_safe(text, value);
    if (counts) {
        rfi_text_add(text, " %s", path);
    }
}

static bool is_zipped(const rfi_figures *f, ptrdiff_t axis)
{
    const reef_experiment *e = f->experiment;
    return f->parameter >= 0 && e->axes[axis].dimension == e->axes[f->parameter].dimension;
}

static bool is_held(const rfi_figures *f, ptrdiff_t axis)
{
    const reef_experiment *e = f->experiment;
    return f->held && !is_zipped(f, axis) && e->axes[axis].dimension != e->axes[rfi_figure_axis(e, "rule")].dimension;
}

void rfi_figure_label(const rfi_figures *f, ptrdiff_t cell, bool with_parameter, rfi_text *text)
{
    const reef_experiment *e = f->experiment;
    bool first = true;
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        if (is_held(f, a) || (is_zipped(f, a) && !(with_parameter && a == f->parameter))) {
            continue;
        }
        rfi_text_add(text, "%s", first ? "" : ", ");
        rfi_figure_setting(e, a, cell, text);
        first = false;
    }
    if (first) {
        rfi_figure_safe(text, e->name);
    }
}

void rfi_figure_title(const rfi_figures *f, const char *what, bool with_parameter, const char *remark, rfi_text *text)
{
    const reef_experiment *e = f->experiment;
    ptrdiff_t cell = rfi_figure_cell(f, 0, rfi_figure_values(f) / 2);
    rfi_text_add(text, "title '");
    rfi_figure_safe(text, e->name);
    rfi_text_add(text, ": %s", what);
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        if (is_held(f, a) || (with_parameter && a == f->parameter)) {
            rfi_text_add(text, ", %s", strcmp(e->axes[a].path, "attack") == 0 ? "attack " : "");
            rfi_figure_setting(e, a, cell, text);
        }
    }
    rfi_text_add(text, "%s'", remark);
}

void rfi_figure_head(const char *name, ptrdiff_t width, ptrdiff_t height, rfi_text *text)
{
    rfi_text_add(
        text,
        "# gnuplot -e \"kind='png'\" %s.gp    or svg, pdf\n"
        "if (!exists(\"kind\")) kind = 'svg'\n"
        "if (kind eq 'svg') set terminal svg size %td,%td font 'Helvetica,13' background 'white'\n"
        "if (kind eq 'png') set terminal pngcairo size %td,%td font 'Helvetica,13' fontscale 1.4 linewidth 1.4\n"
        "if (kind eq 'pdf') set terminal pdfcairo size %.2fcm,%.2fcm font 'Helvetica,9'\n"
        "set output '%s.'.kind\nset termoption noenhanced\nset encoding utf8\n",
        name, width, height, width * 3 / 2, height * 3 / 2, (double)width / 45, (double)height / 45, name);
    /* A scale that the colour-blind can read too, and that is as even in grey. */
    rfi_text_add(text, "set palette defined (0 '#440154', 1 '#482878', 2 '#3e4989', 3 '#31688e', 4 '#26828e', "
                       "5 '#1f9e89', 6 '#35b779', 7 '#6ece58', 8 '#b5de2b', 9 '#fde725')\n"
                       "set border lw 1\nset tics nomirror\n");
}

void rfi_figure_legend(const rfi_figures *f, const ptrdiff_t *cells, ptrdiff_t count, bool with_parameter,
                       rfi_text *text)
{
    enum { SHORT_LABEL = 26 };
    size_t longest = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        rfi_text label = {.context = f->experiment->context};
        rfi_figure_label(f, cells[i], with_parameter, &label);
        longest = label.size > longest ? label.size : longest;
        rfi_text_free(&label);
    }
    rfi_text_add(text, "set key %s Left reverse noopaque\n",
                 longest <= SHORT_LABEL ? "outside right top" : "below center maxcols 2 height 1");
}

void rfi_figure_edge(bool beyond, rfi_text *text)
{
    if (beyond) {
        rfi_text_add(text, "set yrange [*:%d]\n", RFI_COLOUR_TOP);
    }
}

void rfi_figure_arrows(const char *name, ptrdiff_t block, rfi_look look, rfi_text *text)
{
    rfi_text_add(text, ", \\\n  '%s.dat' index %td using 1:5 with points pt 9 ps 1.7 lc rgb '%s' notitle", name, block,
                 look.colour);
}

void rfi_figure_metric_label(const rfi_figures *f, const char *which, rfi_text *text)
{
    rfi_text_add(text, "set %slabel '%s'\n", which, rfi_figure_metric_words(f->metric));
}

void rfi_figure_line(rfi_text *text, const double *numbers, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        rfi_text_number(text, numbers[i]);
        rfi_text_add(text, "%s", i + 1 < count ? " " : "\n");
    }
}

void rfi_figure_point(const rfi_figures *f, const rfi_outcome *o, ptrdiff_t point, double x, bool arrow, rfi_text *text)
{
    enum { FAR = 60 }; /* dB; lines leave through the edge on their way there */
    rfi_moments m = rfi_figure_at(f, o, point);
    double error = 2 * rfi_outcome_error(o, m);
    error = isnan(error) ? 0 : error;
    double low = m.mean - error;
    if (rfi_metric_decibels(f->metric)) { /* a band that reaches zero has no end in decibels */
        low = fmax(low, 0.01 * m.mean);
    }
    double mean = rfi_figure_shown(f, m.mean);
    double high = rfi_figure_shown(f, m.mean + error);
    low = rfi_figure_shown(f, low);
    if (rfi_metric_decibels(f->metric)) {
        mean = fmin(mean, FAR);
        low = fmin(low, FAR);
        high = fmin(high, FAR);
    }
    double edge = arrow && rfi_figure_beyond(f, m.mean) ? RFI_COLOUR_TOP : (double)NAN;
    const double numbers[] = {x, mean, low, high, edge};
    rfi_figure_line(text, numbers, RFI_COUNT(numbers));
}

reef_status rfi_figure_write(const rfi_figures *f, const char *name, rfi_text *data, rfi_text *script,
                             reef_error *error)
{
    char file[64];
    (void)snprintf(file, sizeof file, "%s.dat", name);
    reef_status status = rfi_text_write(data, f->folder, file, error);
    (void)snprintf(file, sizeof file, "%s.gp", name);
    if (status == REEF_OK) {
        status = rfi_text_write(script, f->folder, file, error);
    }
    rfi_text_free(data);
    rfi_text_free(script);
    return status;
}

/* ---- all of them ---- */

/* Figures of an earlier run in this folder would be taken for those of this one, and scripts that somebody else has left would be run. */
static reef_status remove_old(const char *folder, reef_error *error)
{
    static const char *const names[] = {"curves", "final", "heat", "matrix", "graph"};
    static const char *const endings[] = {"gp", "dat", "svg", "png", "pdf"};
    for (ptrdiff_t i = 0; i < RFI_COUNT(names); i++) {
        for (ptrdiff_t k = 0; k < RFI_COUNT(endings); k++) {
            char path[4200];
            (void)snprintf(path, sizeof path, "%s/%s.%s", folder, names[i], endings[k]);
            if (unlink(path) != 0 && errno != ENOENT) {
                return rfi_fail_errno(error, path, "remove", errno);
            }
        }
    }
    return REEF_OK;
}

/* Whether the metric has a number anywhere: problems of others may leave accuracies out, and gnuplot fails where there is nothing to draw. */
static bool measured(const rfi_figures *f)
{
    for (ptrdiff_t i = 0; i < f->experiment->cells; i++) {
        const rfi_outcome *o = f->results->cells[i];
        for (ptrdiff_t point = 0; o->wanted[f->metric] && point <= o->points; point++) {
            if (!isnan(rfi_figure_at(f, o, point).mean)) {
                return true;
            }
        }
    }
    return false;
}

/* Accuracies are easier to read than a loss. */
static void choose_metric(rfi_figures *f)
{
    const bool *wanted = f->results->cells[0]->wanted;
    f->metric = RFI_ACCURACY;
    if (wanted[f->metric] && measured(f)) {
        return;
    }
    f->metric = 0;
    while (f->metric < RFI_METRICS - 1 && !wanted[f->metric]) {
        f->metric++;
    }
}

reef_status rfi_figures_write(const rfi_results *results, const char *folder, reef_error *error)
{
    char path[4096];
    rfi_figures f = {.results = results, .experiment = results->experiment, .folder = path};
    if ((size_t)snprintf(path, sizeof path, "%s/figures", folder) >= sizeof path) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results folder is too long");
    }
    assert(results->experiment->cells >= 1);
    reef_status status = remove_old(path, error);
    if (status != REEF_OK) {
        return status;
    }
    choose_metric(&f);
    if (!measured(&f)) {
        return REEF_OK;
    }
    for (ptrdiff_t i = 0; i < results->experiment->cells; i++) {
        if (!results->cells[i]->wanted[f.metric]) {
            return REEF_OK; /* cells with nothing in common have no figure */
        }
    }
    f.parameter = choose_parameter(results->experiment);
    find_series(&f);
    status = rfi_make_folder(path, error);
    if (status == REEF_OK) {
        status = rfi_figure_curves(&f, error);
    }
    if (status == REEF_OK) {
        status = rfi_figure_matrix(&f, error);
    }
    if (status == REEF_OK) {
        status = rfi_figure_graph(&f, error);
    }
    if (status == REEF_OK && f.parameter >= 0) {
        status = rfi_figure_final(&f, error);
        if (status == REEF_OK) {
            status = rfi_figure_heat(&f, error);
        }
    }
    return status;
}
