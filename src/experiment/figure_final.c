/* Steady state against the parameter, with the oracle and the theory of the mean over the benign agents. */
#include "experiment/figures.h"

#include <math.h>

/* Place, theory and oracle per value of the parameter. */
static void add_references(const rfi_figures *f, const rfi_scale *scale, rfi_text *data)
{
    for (ptrdiff_t v = 0; v < rfi_figure_values(f); v++) {
        ptrdiff_t cell = rfi_figure_cell(f, 0, v);
        const rfi_outcome *oracle = rfi_figure_oracle(f, cell);
        double theory = f->results->cells[cell]->theory;
        const double numbers[] = {
            rfi_scale_at(scale, rfi_figure_number(f, cell)), f->metric == RFI_MSD ? 10 * log10(theory) : (double)NAN,
            oracle ? rfi_figure_shown(f, rfi_figure_at(f, oracle, oracle->points).mean) : (double)NAN};
        rfi_figure_line(data, numbers, RFI_COUNT(numbers));
    }
}

/* Those of them that there are, from block `index` of the data. */
static void draw_references(const rfi_figures *f, ptrdiff_t index, rfi_text *script)
{
    bool oracle = true;
    bool theory = f->metric == RFI_MSD;
    for (ptrdiff_t v = 0; v < rfi_figure_values(f); v++) {
        ptrdiff_t cell = rfi_figure_cell(f, 0, v);
        oracle = oracle && rfi_figure_oracle(f, cell);
        theory = theory && !isnan(f->results->cells[cell]->theory);
    }
    if (oracle) {
        rfi_text_add(script, ", \\\n  'final.dat' index %td using 1:3 with lines dt 2 lw 2 lc 'black' title 'oracle'",
                     index);
    }
    if (theory) {
        rfi_text_add(script,
                     ", \\\n  'final.dat' index %td using 1:2 with lines dt 3 lw 2 lc 'black' title 'theory (mean of "
                     "benign)'",
                     index);
    }
}

reef_status rfi_figure_final(const rfi_figures *f, reef_error *error)
{
    rfi_text data = {.context = f->experiment->context};
    rfi_text script = {.context = f->experiment->context};
    const rfi_scale scale = rfi_figure_scale(f);
    rfi_figure_head(f, "final", 900, 520, &script);
    rfi_figure_metric_label(f, "y", &script);
    rfi_scale_label(f, 'x', &script);
    rfi_scale_tics(f, &scale, 'x', &script);
    rfi_text_add(
        &script,
        "set grid lc rgb '#bbbbbb' lw 0.5\nset key outside right top Left reverse\nset offsets graph 0.03, graph "
        "0.03, graph 0.05, graph 0.05\nplot ");
    const ptrdiff_t lines = rfi_figure_shown_series(f, RFI_SERIES_MAX);
    for (ptrdiff_t i = 0; i < lines; i++) {
        ptrdiff_t s = rfi_figure_pick(f, RFI_SERIES_MAX, i);
        for (ptrdiff_t v = 0; v < rfi_figure_values(f); v++) {
            ptrdiff_t cell = rfi_figure_cell(f, s, v);
            const rfi_outcome *o = f->results->cells[cell];
            rfi_figure_point(f, o, o->points, rfi_scale_at(&scale, rfi_figure_number(f, cell)), &data);
        }
        rfi_text_add(&data, "\n\n");
        rfi_text_add(&script,
                     "%s\\\n  'final.dat' index %td using 1:2:3:4 with yerrorlines lw 2 ps 0.7 pt %td lc %td title '",
                     i ? ", " : "", i, i % 8 + 4, i % 8 + 1);
        rfi_figure_label(f, rfi_figure_cell(f, s, 0), false, &script);
        rfi_text_add(&script, "'");
    }
    if (rfi_figure_one_oracle(f)) {
        add_references(f, &scale, &data);
        draw_references(f, lines, &script);
    }
    rfi_text_add(&script, "\n");
    return rfi_figure_write(f, "final", &data, &script, error);
}
