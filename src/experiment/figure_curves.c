/* Learning curves with bands of two standard errors; the oracle and the theory beside them where one serves all. */
#include "experiment/figures.h"

#include <math.h>

static void add_curve(const rfi_figures *f, const rfi_outcome *o, rfi_text *data)
{
    for (ptrdiff_t p = 0; p < o->points; p++) {
        rfi_figure_point(f, o, p, (double)rfi_outcome_round(o, p), data);
    }
    rfi_text_add(data, "\n\n");
}

/* What one could reach: both are those of the first curve's cell. */
static void add_references(const rfi_figures *f, ptrdiff_t cell, ptrdiff_t index, rfi_text *data, rfi_text *script)
{
    const rfi_outcome *oracle = rfi_figure_oracle(f, cell);
    double theory = f->metric == RFI_MSD ? f->results->cells[cell]->theory : (double)NAN;
    if (oracle) {
        add_curve(f, oracle, data);
        rfi_text_add(script, ", \\\n  'curves.dat' index %td using 1:2 with lines dt 2 lw 2 lc 'black' title 'oracle'",
                     index);
    }
    if (!isnan(theory)) {
        rfi_text_add(script, ", \\\n  ");
        rfi_text_number(script, 10 * log10(theory));
        rfi_text_add(script, " with lines dt 3 lw 2 lc 'black' title 'theory (mean of benign)'");
    }
}

/* All cells if they are few, otherwise those with the middle value of the parameter. */
reef_status rfi_figure_curves(const rfi_figures *f, reef_error *error)
{
    rfi_text data = {.context = f->experiment->context};
    rfi_text script = {.context = f->experiment->context};
    bool all = f->experiment->cells <= RFI_SERIES_MAX;
    ptrdiff_t lines = all ? f->experiment->cells : rfi_figure_shown_series(f, RFI_SERIES_MAX);
    ptrdiff_t middle = rfi_figure_values(f) / 2;
    rfi_figure_head(f, "curves", 900, 520, &script);
    rfi_figure_metric_label(f, "y", &script);
    rfi_text_add(&script,
                 "set grid lc rgb '#bbbbbb' lw 0.5\nset xlabel 'iteration'\nset key outside right top Left reverse\n"
                 "set style fill transparent solid 0.25 noborder\nplot ");
    for (ptrdiff_t i = 0; i < lines; i++) {
        ptrdiff_t cell = all ? i : rfi_figure_cell(f, rfi_figure_pick(f, RFI_SERIES_MAX, i), middle);
        add_curve(f, f->results->cells[cell], &data);
        rfi_text_add(&script, "%s\\\n  'curves.dat' index %td using 1:3:4 with filledcurves lc %td notitle, \\\n",
                     i ? ", " : "", i, i % 8 + 1);
        rfi_text_add(&script, "  '' index %td using 1:2 with lines lw 2 lc %td dt %d title '", i, i % 8 + 1,
                     i < 8 ? 1 : 4);
        rfi_figure_label(f, cell, true, &script);
        rfi_text_add(&script, "'");
    }
    if (rfi_figure_one_oracle(f) && (f->parameter < 0 || !all)) {
        add_references(f, rfi_figure_cell(f, 0, middle), lines, &data, &script);
    }
    rfi_text_add(&script, "\n");
    return rfi_figure_write(f, "curves", &data, &script, error);
}
