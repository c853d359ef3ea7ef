/* Figures as gnuplot scripts with their data beside them; whoever wants pictures runs gnuplot on the scripts (`reef plot`).
 *
 *   curves   learning curves with bands of two standard errors
 *   final    steady state against the parameter that varies
 *   heat     rounds x parameter, one panel per value of everything else; the paper's panels
 *
 * The parameter is the axis with the most values that are numbers, at least 3; what else varies are the series. */
#include "base/error.h"
#include "base/number.h"
#include "experiment/outcome.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* More lines or panels than these nobody can tell apart. */
enum { SERIES_MAX = 12, LABELS_MAX = 24, COLOUR_TOP = 20 };

typedef struct figures {
    const rfi_results *results;
    const reef_experiment *experiment;
    const char *folder;
    rfi_metric metric;   /* the first that all cells have */
    ptrdiff_t parameter; /* axis, or -1 */
    ptrdiff_t series_count;
    ptrdiff_t first[SERIES_MAX]; /* a cell of each series */
} figures;

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

static ptrdiff_t choose_parameter(const reef_experiment *e)
{
    ptrdiff_t best = -1;
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        bool more = e->axes[a].count > (best < 0 ? 2 : e->axes[best].count);
        best = more && is_numeric(e, a) ? a : best;
    }
    return best;
}

/* Distance between cells that are neighbours along a dimension. */
static ptrdiff_t stride_of(const reef_experiment *e, ptrdiff_t dimension)
{
    ptrdiff_t stride = 1;
    for (ptrdiff_t d = dimension + 1; d < e->dimensions; d++) {
        stride *= e->sizes[d];
    }
    return stride;
}

static ptrdiff_t values_of(const figures *f)
{
    return f->parameter < 0 ? 1 : f->experiment->axes[f->parameter].count;
}

/* Cell number v of a series. */
static ptrdiff_t cell_of(const figures *f, ptrdiff_t series, ptrdiff_t v)
{
    ptrdiff_t stride = f->parameter < 0 ? 0 : stride_of(f->experiment, f->experiment->axes[f->parameter].dimension);
    return f->first[series] + v * stride;
}

static void find_series(figures *f)
{
    const reef_experiment *e = f->experiment;
    ptrdiff_t stride = f->parameter < 0 ? 1 : stride_of(e, e->axes[f->parameter].dimension);
    for (ptrdiff_t i = 0; i < e->cells && f->series_count < SERIES_MAX; i++) {
        if (i / stride % values_of(f) == 0) {
            f->first[f->series_count++] = i;
        }
    }
}

/* ---- texts ---- */

/* Text from outside within quotes: gnuplot would run what stands in backquotes, and a quote would end the string. */
static void add_safe(rfi_text *text, const char *words)
{
    for (; *words; words++) {
        bool bad = strchr("'\"`\\", *words) || (unsigned char)*words < ' ';
        rfi_text_add(text, "%c", bad ? '_' : *words);
    }
}

/* What of a cell varies beside the parameter, for legends. */
static void series_label(const figures *f, ptrdiff_t cell, bool with_parameter, rfi_text *text)
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
        bool plain = strcmp(e->axes[a].path, "rule") == 0;
        rfi_text_add(text, "%s", first ? "" : ", ");
        add_safe(text, plain ? "" : e->axes[a].path);
        rfi_text_add(text, "%s", plain ? "" : " ");
        add_safe(text, value);
        first = false;
    }
}

static void script_head(const figures *f, const char *name, ptrdiff_t height, rfi_text *text)
{
    rfi_text_add(text,
                 "# gnuplot -e \"kind='png'\" %s.gp    or svg, pdf\n"
                 "if (!exists(\"kind\")) kind = 'svg'\n"
                 "if (kind eq 'svg') set terminal svg size 900,%td background 'white'\n"
                 "if (kind eq 'png') set terminal pngcairo size 1350,%td fontscale 1.3\n"
                 "if (kind eq 'pdf') set terminal pdfcairo size 18cm,%td.0cm\n"
                 "set output '%s.'.kind\nset termoption noenhanced\nset encoding utf8\nset grid\n",
                 name, height, height * 3 / 2, height / 50, name);
    rfi_text_add(text, "set title '");
    add_safe(text, f->experiment->name);
    rfi_text_add(text, "' noenhanced\n");
}

static void axis_label(const figures *f, const char *which, rfi_text *text)
{
    bool decibels = rfi_metric_decibels(f->metric);
    const char *name = f->metric == RFI_MSD ? "MSD" : rfi_metric_name(f->metric);
    rfi_text_add(text, "set %slabel '%s%s'\n", which, name, decibels ? " [dB]" : "");
}

/* Place of the metric among those of an outcome. */
static ptrdiff_t row_of(const figures *f, const rfi_outcome *o)
{
    ptrdiff_t row = 0;
    for (int m = 0; m < (int)f->metric; m++) {
        row += o->wanted[m];
    }
    return row;
}

static double shown(const figures *f, double value)
{
    return rfi_metric_decibels(f->metric) ? 10 * log10(value > 1e-300 ? value : 1e-300) : value;
}

/* "x mean low high"; x is a number or a text. */
static void add_point(const figures *f, ptrdiff_t cell, ptrdiff_t point, double x, rfi_text *text)
{
    const rfi_outcome *o = f->results->cells[cell];
    rfi_moments m = rfi_outcome_at(o, row_of(f, o), point);
    double error = 2 * rfi_outcome_error(o, m);
    error = isnan(error) ? 0 : error;
    const double numbers[] = {x, shown(f, m.mean), shown(f, m.mean - error), shown(f, m.mean + error)};
    for (ptrdiff_t i = 0; i < RFI_COUNT(numbers); i++) {
        rfi_text_number(text, numbers[i]);
        rfi_text_add(text, "%s", i + 1 < RFI_COUNT(numbers) ? " " : "\n");
    }
}

/* Writes NAME.dat and NAME.gp and frees both texts. */
static reef_status write_pair(const figures *f, const char *name, rfi_text *data, rfi_text *script, reef_error *error)
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

/* ---- learning curves ---- */

/* All cells if they are few, otherwise those with the middle value of the parameter. */
static reef_status write_curves(const figures *f, reef_error *error)
{
    rfi_text data = {.context = f->experiment->context};
    rfi_text script = {.context = f->experiment->context};
    bool all = f->experiment->cells <= SERIES_MAX;
    ptrdiff_t lines = all ? f->experiment->cells : f->series_count;
    script_head(f, "curves", 560, &script);
    axis_label(f, "y", &script);
    rfi_text_add(
        &script,
        "set xlabel 'iteration'\nset key outside right top\nset style fill transparent solid 0.25 noborder\nplot ");
    for (ptrdiff_t i = 0; i < lines; i++) {
        ptrdiff_t cell = all ? i : cell_of(f, i, values_of(f) / 2);
        const rfi_outcome *o = f->results->cells[cell];
        for (ptrdiff_t p = 0; p < o->points; p++) {
            add_point(f, cell, p, (double)rfi_outcome_round(o, p), &data);
        }
        rfi_text_add(&data, "\n\n");
        rfi_text_add(&script, "%s\\\n  'curves.dat' index %td using 1:3:4 with filledcurves lc %td notitle, \\\n",
                     i ? ", " : "", i, i + 1);
        rfi_text_add(&script, "  '' index %td using 1:2 with lines lw 2 lc %td title '", i, i + 1);
        series_label(f, cell, true, &script);
        rfi_text_add(&script, "'");
    }
    rfi_text_add(&script, "\n");
    return write_pair(f, "curves", &data, &script, error);
}

/* ---- steady state against the parameter ---- */

/* A log axis when the positive values span a factor of 100; zeros then stand a step left of the least. */
static bool is_logarithmic(const figures *f, double *zero_at)
{
    double least = INFINITY;
    double most = 0;
    for (ptrdiff_t v = 0; v < values_of(f); v++) {
        double x = 0;
        (void)number_at(f->experiment, cell_of(f, 0, v), f->parameter, &x);
        if (x < 0) {
            return false;
        }
        least = x > 0 ? fmin(least, x) : least;
        most = fmax(most, x);
    }
    *zero_at = least / 10;
    return most >= 100 * least;
}

static void add_references(const figures *f, double zero_at, bool logarithmic, rfi_text *data)
{
    for (ptrdiff_t v = 0; v < values_of(f); v++) {
        ptrdiff_t cell = cell_of(f, 0, v);
        const rfi_outcome *oracle = f->results->oracles[cell];
        double x = 0;
        (void)number_at(f->experiment, cell, f->parameter, &x);
        rfi_text_number(data, logarithmic && x == 0 ? zero_at : x);
        rfi_text_add(data, " ");
        rfi_text_number(data, 10 * log10(f->results->cells[cell]->theory));
        rfi_text_add(data, " ");
        rfi_text_number(data, oracle && oracle->wanted[RFI_MSD]
                                  ? 10 * log10(rfi_outcome_at(oracle, 0, oracle->points).mean)
                                  : (double)NAN);
        rfi_text_add(data, "\n");
    }
}

static reef_status write_final(const figures *f, reef_error *error)
{
    rfi_text data = {.context = f->experiment->context};
    rfi_text script = {.context = f->experiment->context};
    double zero_at = 0;
    bool logarithmic = is_logarithmic(f, &zero_at);
    script_head(f, "final", 560, &script);
    axis_label(f, "y", &script);
    rfi_text_add(&script, "set key outside right top\nset xlabel '");
    add_safe(&script, f->experiment->axes[f->parameter].path);
    rfi_text_add(&script, "' noenhanced\n");
    if (logarithmic) {
        rfi_text_add(&script, "set logscale x\nset format x '10^{%%T}'\nset termoption enhanced\nset xtics add ('0' ");
        rfi_text_number(&script, zero_at);
        rfi_text_add(&script, ")\n");
    }
    rfi_text_add(&script, "plot ");
    for (ptrdiff_t s = 0; s < f->series_count; s++) {
        for (ptrdiff_t v = 0; v < values_of(f); v++) {
            ptrdiff_t cell = cell_of(f, s, v);
            double x = 0;
            (void)number_at(f->experiment, cell, f->parameter, &x);
            add_point(f, cell, f->results->cells[cell]->points, logarithmic && x == 0 ? zero_at : x, &data);
        }
        rfi_text_add(&data, "\n\n");
        rfi_text_add(&script, "\\\n  'final.dat' index %td using 1:2:3:4 with yerrorlines lw 2 pt %td lc %td title '",
                     s, s + 4, s + 1);
        series_label(f, cell_of(f, s, 0), false, &script);
        rfi_text_add(&script, "' noenhanced, ");
    }
    bool msd = f->metric == RFI_MSD;
    add_references(f, zero_at, logarithmic, &data);
    rfi_text_add(&script,
                 msd ? "\\\n  'final.dat' index %td using 1:2 with lines dt 2 lc 'black' title 'theory (mean of "
                       "benign)', \\\n  '' index %td using 1:3 with lines dt 3 lw 2 lc 'black' title 'oracle'\n"
                     : "\\\n  'final.dat' index %td using 1:(NaN):(%td) notitle\n",
                 f->series_count, f->series_count);
    return write_pair(f, "final", &data, &script, error);
}

/* ---- heat maps ---- */

/* Rows of numbers, one per value of the parameter; clipped at the top, so that what has diverged does not take all the colours. */
static void add_panel(const figures *f, ptrdiff_t series, rfi_text *data)
{
    for (ptrdiff_t v = 0; v < values_of(f); v++) {
        const rfi_outcome *o = f->results->cells[cell_of(f, series, v)];
        for (ptrdiff_t p = 0; p < o->points; p++) {
            double value = shown(f, rfi_outcome_at(o, row_of(f, o), p).mean);
            rfi_text_number(data, rfi_metric_decibels(f->metric) ? fmin(value, COLOUR_TOP) : value);
            rfi_text_add(data, " ");
        }
        rfi_text_add(data, "\n");
    }
    rfi_text_add(data, "\n\n");
}

static void add_labels(const figures *f, rfi_text *script)
{
    ptrdiff_t step = (values_of(f) + LABELS_MAX - 1) / LABELS_MAX;
    rfi_text_add(script, "set ytics (");
    for (ptrdiff_t v = 0; v < values_of(f); v += step) {
        char value[RFI_LABEL_SIZE];
        (void)reef_experiment_value(f->experiment, cell_of(f, 0, v), f->parameter, value, sizeof value);
        rfi_text_add(script, "%s'", v ? ", " : "");
        add_safe(script, value);
        rfi_text_add(script, "' %td", v);
    }
    rfi_text_add(script, ")\n");
}

/* Curves of unequal length do not make an image. */
static bool same_points(const figures *f)
{
    bool same = true;
    for (ptrdiff_t i = 1; i < f->experiment->cells; i++) {
        same = same && f->results->cells[i]->points == f->results->cells[0]->points;
    }
    return same && f->results->cells[0]->points > 1;
}

static reef_status write_heat(const figures *f, reef_error *error)
{
    rfi_text data = {.context = f->experiment->context};
    rfi_text script = {.context = f->experiment->context};
    ptrdiff_t labels = values_of(f) < LABELS_MAX ? values_of(f) : LABELS_MAX;
    script_head(f, "heat", f->series_count * (110 + 18 * labels), &script);
    rfi_text_add(&script, "unset title\nunset grid\nset xlabel 'iteration'\nset ylabel '");
    add_safe(&script, f->experiment->axes[f->parameter].path);
    rfi_text_add(&script, "'\n");
    axis_label(f, "cb", &script);
    rfi_text_add(&script, "set cblabel offset 1.5\n");
    add_labels(f, &script);
    rfi_text_add(&script,
                 "stats 'heat.dat' matrix nooutput\nset cbrange [STATS_min:STATS_max]\nset yrange [-0.5:%td.5]\n"
                 "set palette defined (0 '#20124d', 1 '#2166ac', 2 '#67a9cf', 3 '#f7f7f7', 4 '#ef8a62', 5 '#b2182b')\n"
                 "set xrange [0:%lld]\nset multiplot layout %td,1\n",
                 values_of(f) - 1, (long long)f->results->cells[0]->iterations, f->series_count);
    for (ptrdiff_t s = 0; s < f->series_count; s++) {
        add_panel(f, s, &data);
        rfi_text_add(&script, "set title '");
        add_safe(&script, f->experiment->name);
        rfi_text_add(&script, ": ");
        series_label(f, f->first[s], false, &script);
        rfi_text_add(&script, "'\nplot 'heat.dat' index %td matrix using ($1*%lld):2:3 with image notitle\n", s,
                     (long long)f->results->cells[0]->every);
    }
    rfi_text_add(&script, "unset multiplot\n");
    return write_pair(f, "heat", &data, &script, error);
}

reef_status rfi_figures_write(const rfi_results *results, const char *folder, reef_error *error)
{
    char path[4096];
    figures f = {.results = results, .experiment = results->experiment, .folder = path};
    if ((size_t)snprintf(path, sizeof path, "%s/figures", folder) >= sizeof path) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results is too long");
    }
    while (f.metric < RFI_METRICS - 1 && !results->cells[0]->wanted[f.metric]) {
        f.metric++;
    }
    for (ptrdiff_t i = 0; i < results->experiment->cells; i++) {
        if (!results->cells[i]->wanted[f.metric]) {
            return REEF_OK; /* cells with nothing in common have no figure */
        }
    }
    f.parameter = choose_parameter(results->experiment);
    find_series(&f);
    reef_status status = rfi_make_folder(path, error);
    status = status == REEF_OK ? write_curves(&f, error) : status;
    if (status == REEF_OK && f.parameter >= 0) {
        status = write_final(&f, error);
    }
    return status == REEF_OK && f.parameter >= 0 && same_points(&f) ? write_heat(&f, error) : status;
}
