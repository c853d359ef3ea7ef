/* Rounds x parameter, one panel per series and one for the oracle: the paper's panels.
 *
 * heat.dat holds per panel two matrices: the values of the parameter resampled to evenly spaced rows (a pixel has the colour of the
 * nearest value), and a strip of two equal rows for the value zero where the axis is logarithmic. */
#include "experiment/present/figures.h"

#include <math.h>

enum { ROWS = 120, PANEL_WIDTH = 430, PANEL_HEIGHT = 260, BAR_WIDTH = 130, TITLE_HEIGHT = 50 };

/* The outcome of a panel at a value: a series, or the oracle behind the last. */
static const rfi_outcome *outcome_at(const rfi_figures *f, ptrdiff_t panel, ptrdiff_t v)
{
    if (panel == rfi_figure_shown_series(f, RFI_SERIES_MAX)) {
        return rfi_figure_oracle(f, rfi_figure_cell(f, 0, v));
    }
    return f->results->cells[rfi_figure_cell(f, rfi_figure_pick(f, RFI_SERIES_MAX, panel), v)];
}

/* Curves of unequal length do not make an image. */
static bool same_points(const rfi_figures *f)
{
    bool same = true;
    for (ptrdiff_t i = 1; i < f->experiment->cells; i++) {
        same = same && f->results->cells[i]->points == f->results->cells[0]->points;
    }
    return same && f->results->cells[0]->points > 1;
}

static bool has_oracle(const rfi_figures *f)
{
    bool all = rfi_figure_one_oracle(f);
    for (ptrdiff_t v = 0; v < rfi_figure_values(f) && all; v++) {
        all = rfi_figure_oracle(f, rfi_figure_cell(f, 0, v)) != NULL;
    }
    return all;
}

/* The value of the parameter whose place is nearest; zero: whether the strip is meant. -1: there is none. */
static ptrdiff_t nearest(const rfi_figures *f, const rfi_scale *scale, double place, bool zero)
{
    ptrdiff_t best = -1;
    double least = (double)INFINITY;
    for (ptrdiff_t v = 0; v < rfi_figure_values(f); v++) {
        double x = rfi_figure_number(f, rfi_figure_cell(f, 0, v));
        if (scale->has_zero && (x == 0) != zero) {
            continue;
        }
        double off = zero ? 0 : fabs(rfi_scale_at(scale, x) - place);
        if (off < least) {
            least = off;
            best = v;
        }
    }
    return best;
}

static double colour_at(const rfi_figures *f, const rfi_outcome *o, ptrdiff_t point)
{
    double value = rfi_figure_clipped(f, rfi_figure_at(f, o, point).mean);
    return round(1e4 * value) / 1e4;
}

/* Least and most of all panels: they share one scale. */
static void find_range(const rfi_figures *f, ptrdiff_t panels, double range[2])
{
    range[0] = (double)INFINITY;
    range[1] = -(double)INFINITY;
    for (ptrdiff_t i = 0; i < panels * rfi_figure_values(f); i++) {
        const rfi_outcome *o = outcome_at(f, i / rfi_figure_values(f), i % rfi_figure_values(f));
        for (ptrdiff_t p = 0; p < o->points; p++) {
            range[0] = fmin(range[0], colour_at(f, o, p));
            range[1] = fmax(range[1], colour_at(f, o, p));
        }
    }
    if (!(range[1] > range[0])) { /* all alike, or nothing but NaN */
        range[0] = isfinite(range[0]) ? range[0] : 0;
        range[1] = range[0] + 1;
    }
}

/* One row of the image; clipped at the top, so that what has diverged does not take all the colours. */
static void add_row(const rfi_figures *f, const rfi_outcome *o, rfi_text *data)
{
    for (ptrdiff_t p = 0; p < o->points; p++) {
        rfi_text_number(data, colour_at(f, o, p));
        rfi_text_add(data, " ");
    }
    rfi_text_add(data, "\n");
}

static void add_panel(const rfi_figures *f, const rfi_scale *scale, ptrdiff_t panel, rfi_text *data)
{
    double step = (scale->high - scale->low) / ROWS;
    for (int i = 0; i < ROWS; i++) {
        add_row(f, outcome_at(f, panel, nearest(f, scale, scale->low + (i + 0.5) * step, false)), data);
    }
    rfi_text_add(data, "\n\n");
    for (int i = 0; i < 2 && scale->has_zero; i++) {
        add_row(f, outcome_at(f, panel, nearest(f, scale, 0, true)), data);
    }
    rfi_text_add(data, "%s", scale->has_zero ? "\n\n" : "");
}

static void draw_panel(const rfi_figures *f, const rfi_scale *scale, ptrdiff_t panel, rfi_text *script)
{
    long long every = (long long)f->results->cells[0]->every;
    ptrdiff_t index = panel * (scale->has_zero ? 2 : 1);
    ptrdiff_t panels = rfi_figure_shown_series(f, RFI_SERIES_MAX) + has_oracle(f);
    /* one colour bar and one name of the vertical axes for all */
    rfi_text_add(script, "%s%s", panel == 1 ? "unset colorbox\nunset label 1\n" : "",
                 panel + 2 >= panels ? "set xlabel 'round'\n" : "unset xlabel\n");
    rfi_text_add(script, "set title '");
    if (panel == rfi_figure_shown_series(f, RFI_SERIES_MAX)) {
        rfi_text_add(script, "oracle (mean over honest)");
    } else {
        rfi_figure_label(f, f->first[rfi_figure_pick(f, RFI_SERIES_MAX, panel)], false, script);
    }
    rfi_text_add(script,
                 "'\nplot 'heat.dat' index %td matrix using ($1*%lld):(low + ($2 + 0.5)*step):3 with image notitle",
                 index, every);
    if (scale->has_zero) {
        rfi_text_add(script,
                     ", \\\n  '' index %td matrix using ($1*%lld):(zero + ($2 - 0.5)*half):3 with image notitle",
                     index + 1, every);
    }
    rfi_text_add(script, "\n");
}

/* The least of 1, 2, 2.5 and 5 times a power of ten that is not below this. */
static double even_step(double least)
{
    static const double mantissas[] = {1, 2, 2.5, 5};
    double power = pow(10, floor(log10(least)));
    for (ptrdiff_t i = 0; i < RFI_COUNT(mantissas); i++) {
        if (mantissas[i] * power >= least * (1 - 1e-9)) {
            return mantissas[i] * power;
        }
    }
    return 10 * power;
}

static void add_layout(const rfi_figures *f, const rfi_scale *scale, ptrdiff_t panels, rfi_text *script)
{
    const rfi_outcome *first = f->results->cells[0];
    ptrdiff_t columns = panels > 1 ? 2 : 1;
    ptrdiff_t rows = (panels + columns - 1) / columns;
    double width = (double)(columns * PANEL_WIDTH + BAR_WIDTH);
    double height = (double)(rows * PANEL_HEIGHT + TITLE_HEIGHT);
    rfi_figure_head("heat", (ptrdiff_t)width, (ptrdiff_t)height, script);
    rfi_figure_metric_label(f, "cb", script);
    rfi_text_add(script, "set label 1 '");
    rfi_figure_words(f->experiment->axes[f->parameter].path, script);
    rfi_text_add(script, "' at screen %.4f, screen 0.5 rotate by 90 center\n", 18 / width);
    rfi_scale_tics(f, scale, 'y', PANEL_HEIGHT - 90, script);
    rfi_text_add(script, "low = %.17g\nstep = %.17g\nzero = %.17g\nhalf = %.17g\n", scale->low,
                 (scale->high - scale->low) / ROWS, scale->zero, scale->zero_half);
    rfi_text_add(script, "set yrange [%s:%.17g]\nset xrange [0:%lld]\nset xtics %.17g\n",
                 scale->has_zero ? "zero - 1.2*half" : "low", scale->high, (long long)first->rounds,
                 even_step((double)first->rounds / 4));
    double range[2];
    find_range(f, panels, range);
    rfi_text_add(script,
                 "set cbrange [%.6g:%.6g]\nset tics out\nset cblabel offset 0.8\n"
                 "set colorbox user origin screen %.4f, screen 0.2 size screen %.4f, screen 0.6\n"
                 "set multiplot layout %td,%td margins screen %.4f, screen %.4f, screen %.4f, screen %.4f "
                 "spacing screen %.4f, screen %.4f ",
                 range[0], range[1], 1 - (BAR_WIDTH - 25) / width, 15 / width, rows, columns, 95 / width,
                 1 - (BAR_WIDTH + 15) / width, 75 / height, 1 - (TITLE_HEIGHT + 30) / height, 75 / width, 80 / height);
    bool top = range[1] >= RFI_COLOUR_TOP && rfi_metric_decibels(f->metric);
    rfi_figure_title(f, "over rounds, one panel per rule or setting", false,
                     top ? " (brightest: +20 dB and above)" : "", script);
    rfi_text_add(script, "\n");
}

reef_status rfi_figure_heat(const rfi_figures *f, reef_error *error)
{
    rfi_text data = {.context = f->experiment->context};
    rfi_text script = {.context = f->experiment->context};
    if (!same_points(f)) {
        return REEF_OK;
    }
    const rfi_scale scale = rfi_figure_scale(f);
    ptrdiff_t panels = rfi_figure_shown_series(f, RFI_SERIES_MAX) + has_oracle(f);
    add_layout(f, &scale, panels, &script);
    for (ptrdiff_t i = 0; i < panels; i++) {
        add_panel(f, &scale, i, &data);
        draw_panel(f, &scale, i, &script);
    }
    rfi_text_add(&script, "unset multiplot\n");
    return rfi_figure_write(f, "heat", &data, &script, error);
}
