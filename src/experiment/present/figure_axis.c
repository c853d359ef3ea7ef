/* Axes of a parameter: plain or logarithmic, zero apart. */
#include "experiment/present/figures.h"

#include <math.h>
#include <string.h>

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

/* Labels along an axis of so many pixels. One that would run into the last one is left out. */
typedef struct row {
    rfi_text *script;
    double pixels_per_unit, last;
    bool upright; /* the axis: labels are as high as a line, not as wide as they are long */
    ptrdiff_t count;
} row;

static double label_size(const row *r, size_t letters)
{
    enum { LETTER = 9, LINE = 18, GAP = 8 };
    return r->upright ? LINE : LETTER * (double)letters + GAP;
}

static void add_label(row *r, const char *text, double place)
{
    double distance = fabs(place - r->last) * r->pixels_per_unit;
    if (r->count > 0 && distance < label_size(r, strlen(text))) {
        return;
    }
    rfi_text_add(r->script, "%s'", r->count++ ? ", " : "");
    rfi_figure_safe(r->script, text);
    rfi_text_add(r->script, "' ");
    rfi_text_number(r->script, place);
    r->last = place;
}

/* Zero, if it stands apart, and powers of ten within a logarithmic axis; with 2 and 5 between them where all of these have room. */
static void decades(const rfi_scale *scale, row *r)
{
    if (scale->has_zero) {
        add_label(r, "0", scale->zero);
    }
    static const double mantissas[] = {1, 2, 5};
    const bool fine = log10(2) * r->pixels_per_unit >= label_size(r, 5);
    for (int d = (int)floor(scale->low); d <= (int)floor(scale->high); d++) {
        for (int m = 0; m < (fine ? RFI_COUNT(mantissas) : 1); m++) {
            double place = d + log10(mantissas[m]);
            if (place >= scale->low && place <= scale->high) {
                char text[32];
                size_t used = 0;
                rfi_append(text, sizeof text, &used, "%g", mantissas[m] * pow(10, d));
                add_label(r, text, place);
            }
        }
    }
    if (r->count == 0) {
        add_label(r, "", scale->low);
    }
}

static void all_values(const rfi_figures *f, row *r)
{
    for (ptrdiff_t v = 0; v < rfi_figure_values(f); v++) {
        char value[RFI_LABEL_SIZE];
        ptrdiff_t cell = rfi_figure_cell(f, 0, v);
        (void)reef_experiment_value(f->experiment, cell, f->parameter, value, sizeof value);
        add_label(r, value, rfi_figure_number(f, cell));
    }
}

void rfi_scale_tics(const rfi_figures *f, const rfi_scale *scale, char axis, double pixels, rfi_text *script)
{
    double low = scale->has_zero ? scale->zero : scale->low;
    row r = {.script = script, .pixels_per_unit = pixels / (scale->high - low), .upright = axis == 'y'};
    rfi_text_add(script, "set %ctics (", axis);
    if (scale->logarithmic) {
        decades(scale, &r);
    } else {
        all_values(f, &r);
    }
    rfi_text_add(script, ")\n");
}

void rfi_scale_label(const rfi_figures *f, char axis, rfi_text *script)
{
    rfi_text_add(script, "set %clabel '", axis);
    rfi_figure_words(f->experiment->axes[f->parameter].path, script);
    rfi_text_add(script, "'\n");
}
