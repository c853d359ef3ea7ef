/* What the figures have in common: the choice of parameter and series, texts, files. */
#include "experiment/figures.h"

#include "base/error.h"
#include "base/number.h"

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

static void find_series(rfi_figures *f)
{
    const reef_experiment *e = f->experiment;
    ptrdiff_t stride = f->parameter < 0 ? 1 : rfi_figure_stride(e, e->axes[f->parameter].dimension);
    for (ptrdiff_t i = 0; i < e->cells && f->series_count < RFI_SERIES_ROOM; i++) {
        if (i / stride % rfi_figure_values(f) == 0) {
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

void rfi_figure_label(const rfi_figures *f, ptrdiff_t cell, bool with_parameter, rfi_text *text)
{
    const reef_experiment *e = f->experiment;
    bool first = true;
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        char value[RFI_LABEL_SIZE];
        bool zipped = f->parameter >= 0 && e->axes[a].dimension == e->axes[f->parameter].dimension;
        if (zipped && !(with_parameter && a == f->parameter)) {
            continue;
        }
        (void)reef_experiment_value(e, cell, a, value, sizeof value);
        bool plain = strcmp(e->axes[a].path, "rule") == 0 || strcmp(e->axes[a].path, "attack") == 0;
        rfi_text_add(text, "%s", first ? "" : ", ");
        rfi_figure_safe(text, plain ? "" : e->axes[a].path);
        rfi_text_add(text, "%s", plain ? "" : " ");
        rfi_figure_safe(text, value);
        first = false;
    }
    if (first) {
        rfi_figure_safe(text, e->name);
    }
}

void rfi_figure_head(const rfi_figures *f, const char *name, ptrdiff_t width, ptrdiff_t height, rfi_text *text)
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
    /* Colours that the colour-blind can tell apart too, and a scale that is as even in grey. */
    rfi_text_add(text,
                 "set linetype 1 lc rgb '#0072b2'\nset linetype 2 lc rgb '#e69f00'\nset linetype 3 lc rgb '#009e73'\n"
                 "set linetype 4 lc rgb '#d55e00'\nset linetype 5 lc rgb '#cc79a7'\nset linetype 6 lc rgb '#56b4e9'\n"
                 "set linetype 7 lc rgb '#8a6d3b'\nset linetype 8 lc rgb '#7f7f7f'\nset linetype cycle 8\n"
                 "set palette defined (0 '#440154', 1 '#482878', 2 '#3e4989', 3 '#31688e', 4 '#26828e', "
                 "5 '#1f9e89', 6 '#35b779', 7 '#6ece58', 8 '#b5de2b', 9 '#fde725')\n"
                 "set border lw 1\nset tics nomirror\nset title '");
    rfi_figure_safe(text, f->experiment->name);
    rfi_text_add(text, "'\n");
}

void rfi_figure_metric_label(const rfi_figures *f, const char *which, rfi_text *text)
{
    bool decibels = rfi_metric_decibels(f->metric);
    const char *name = f->metric == RFI_MSD ? "MSD" : rfi_metric_name(f->metric);
    rfi_text_add(text, "set %slabel '%s%s'\n", which, name, decibels ? " [dB], cut at +20" : "");
}

void rfi_figure_line(rfi_text *text, const double *numbers, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        rfi_text_number(text, numbers[i]);
        rfi_text_add(text, "%s", i + 1 < count ? " " : "\n");
    }
}

void rfi_figure_point(const rfi_figures *f, const rfi_outcome *o, ptrdiff_t point, double x, rfi_text *text)
{
    rfi_moments m = rfi_figure_at(f, o, point);
    double error = 2 * rfi_outcome_error(o, m);
    error = isnan(error) ? 0 : error;
    double low = m.mean - error;
    if (rfi_metric_decibels(f->metric)) { /* a band that reaches zero has no end in decibels */
        low = fmax(low, 0.01 * m.mean);
    }
    const double numbers[] = {x, rfi_figure_clipped(f, m.mean), rfi_figure_clipped(f, low),
                              rfi_figure_clipped(f, m.mean + error)};
    rfi_figure_line(text, numbers, RFI_COUNT(numbers));
}

reef_status rfi_figure_write(const rfi_figures *f, const char *name, rfi_text *data, rfi_text *script,
                             reef_error *error)
{
    char file[64];
    (void)snprintf(file, sizeof file, "%s.dat", name);
    reef_status status = rfi_text_write(data, f->folder, file, error);
    (void)snprintf(file, sizeof file, "%s.gp", name);
    status = status == REEF_OK ? rfi_text_write(script, f->folder, file, error) : status;
    rfi_text_free(data);
    rfi_text_free(script);
    return status;
}

/* ---- all of them ---- */

/* Figures of an earlier run in this folder would be taken for those of this one. */
static void remove_old(const char *folder)
{
    static const char *const names[] = {"curves", "final", "heat", "matrix", "graph"};
    static const char *const endings[] = {"gp", "dat", "svg", "png", "pdf"};
    for (ptrdiff_t i = 0; i < RFI_COUNT(names); i++) {
        for (ptrdiff_t k = 0; k < RFI_COUNT(endings); k++) {
            char path[4200];
            (void)snprintf(path, sizeof path, "%s/%s.%s", folder, names[i], endings[k]);
            (void)unlink(path);
        }
    }
}

reef_status rfi_figures_write(const rfi_results *results, const char *folder, reef_error *error)
{
    char path[4096];
    rfi_figures f = {.results = results, .experiment = results->experiment, .folder = path};
    if ((size_t)snprintf(path, sizeof path, "%s/figures", folder) >= sizeof path) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results is too long");
    }
    remove_old(path);
    while (f.metric < RFI_METRICS - 1 && !results->cells[0]->wanted[f.metric]) {
        f.metric++;
    }
    if (results->cells[0]->wanted[RFI_ACCURACY]) { /* easier to read than a loss */
        f.metric = RFI_ACCURACY;
    }
    for (ptrdiff_t i = 0; i < results->experiment->cells; i++) {
        if (!results->cells[i]->wanted[f.metric]) {
            return REEF_OK; /* cells with nothing in common have no figure */
        }
    }
    f.parameter = choose_parameter(results->experiment);
    find_series(&f);
    reef_status status = rfi_make_folder(path, error);
    status = status == REEF_OK ? rfi_figure_curves(&f, error) : status;
    status = status == REEF_OK ? rfi_figure_matrix(&f, error) : status;
    status = status == REEF_OK ? rfi_figure_graph(&f, error) : status;
    if (status == REEF_OK && f.parameter >= 0) {
        status = rfi_figure_final(&f, error);
        status = status == REEF_OK ? rfi_figure_heat(&f, error) : status;
    }
    return status;
}
