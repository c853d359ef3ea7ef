/* Axes of a parameter: plain or logarithmic, zero apart. */
#include "experiment/figures.h"

#include <math.h>
#include <string.h>

enum { LABELS_MAX = 24 };

/* Of the values above zero (or all of them), in order of the grid: least, most, and the smallest step between neighbours. */
typedef struct span {
    double least, most;
    bool zero, negative;
    ptrdiff_t count;
} span;

static span measure(const rfi_figures *f)
{
    span s = {.least = (double)INFINITY, .most = -(double)INFINITY};
    for (ptrdiff_t v = 0; v < rfi_figure_values(f); v++) {
        double x = rfi_figure_number(f, rfi_figure_cell(f, 0, v));
        s.zero = s.zero || x == 0;
        s.negative = s.negative || x < 0;
        if (x != 0) {
            s.least = fmin(s.least, x);
            s.most = fmax(s.most, x);
            s.count++;
        }
    }
    return s;
}

rfi_scale rfi_figure_scale(const rfi_figures *f)
{
    rfi_scale scale = {0};
    span s = measure(f);
    scale.logarithmic = s.count > 1 && !s.negative && s.most >= 100 * s.least;
    scale.has_zero = scale.logarithmic && s.zero;
    if (s.zero && !scale.logarithmic) {
        s.least = fmin(s.least, 0);
        s.most = fmax(s.most, 0);
        s.count++;
    }
    scale.low = scale.logarithmic ? log10(s.least) : s.least;
    scale.high = scale.logarithmic ? log10(s.most) : s.most;
    double half = s.count > 1 ? 0.5 * (scale.high - scale.low) / (double)(s.count - 1) : 0.5;
    scale.low -= half;
    scale.high += half;
    scale.zero_half = 0.03 * (scale.high - scale.low);
    scale.zero = scale.low - 2 * scale.zero_half;
    return scale;
}

double rfi_scale_at(const rfi_scale *scale, double value)
{
    if (!scale->logarithmic) {
        return value;
    }
    return value > 0 ? log10(value) : scale->zero;
}

/* Powers of ten within a logarithmic axis. */
static void decades(const rfi_scale *scale, rfi_text *script)
{
    for (int d = (int)ceil(scale->low); d <= (int)floor(scale->high); d++) {
        rfi_text_add(script, "'");
        rfi_text_number(script, pow(10, d));
        rfi_text_add(script, "' %d, ", d);
    }
    if (scale->has_zero) {
        rfi_text_add(script, "'0' ");
        rfi_text_number(script, scale->zero);
    } else {
        rfi_text_add(script, "'' ");
        rfi_text_number(script, scale->low);
    }
}

static void all_values(const rfi_figures *f, rfi_text *script)
{
    ptrdiff_t step = (rfi_figure_values(f) + LABELS_MAX - 1) / LABELS_MAX;
    for (ptrdiff_t v = 0; v < rfi_figure_values(f); v += step) {
        char value[RFI_LABEL_SIZE];
        ptrdiff_t cell = rfi_figure_cell(f, 0, v);
        (void)reef_experiment_value(f->experiment, cell, f->parameter, value, sizeof value);
        rfi_text_add(script, "%s'", v ? ", " : "");
        rfi_figure_safe(script, value);
        rfi_text_add(script, "' ");
        rfi_text_number(script, rfi_figure_number(f, cell));
    }
}

void rfi_scale_tics(const rfi_figures *f, const rfi_scale *scale, char axis, rfi_text *script)
{
    rfi_text_add(script, "set %ctics (", axis);
    if (scale->logarithmic) {
        decades(scale, script);
    } else {
        all_values(f, script);
    }
    rfi_text_add(script, ")\n");
}

void rfi_scale_label(const rfi_figures *f, char axis, rfi_text *script)
{
    rfi_text_add(script, "set %clabel '", axis);
    rfi_figure_safe(script, f->experiment->axes[f->parameter].path);
    rfi_text_add(script, "'\n");
}
