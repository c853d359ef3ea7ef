/* Steady state against the parameter, with the oracle and the theory of the mean over the honest agents. What is beyond the upper edge is
 * an arrow there. */
#include "experiment/present/figures.h"

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

static bool all_have_oracle(const rfi_figures *f)
{
    bool all = rfi_figure_one_oracle(f);
    for (ptrdiff_t v = 0; v < rfi_figure_values(f) && all; v++) {
        all = rfi_figure_oracle(f, rfi_figure_cell(f, 0, v)) != NULL;
    }
    return all;
}

static bool all_have_theory(const rfi_figures *f)
{
    bool all = rfi_figure_one_oracle(f) && f->metric == RFI_MSD;
    for (ptrdiff_t v = 0; v < rfi_figure_values(f) && all; v++) {
        all = !isnan(f->results->cells[rfi_figure_cell(f, 0, v)]->theory);
    }
    return all;
}

/* Adds the points of a series; true if some are beyond the edge. */
static bool add_series(const rfi_figures *f, const rfi_scale *scale, ptrdiff_t series, rfi_text *data)
{
    bool beyond = false;
    for (ptrdiff_t v = 0; v < rfi_figure_values(f); v++) {
        ptrdiff_t cell = rfi_figure_cell(f, series, v);
        const rfi_outcome *o = f->results->cells[cell];
        rfi_figure_point(f, o, o->points, rfi_scale_at(scale, rfi_figure_number(f, cell)), true, data);
        beyond = beyond || rfi_figure_beyond(f, rfi_figure_at(f, o, o->points).mean);
    }
    rfi_text_add(data, "\n\n");
    return beyond;
}

static void draw_series(const rfi_figures *f, const ptrdiff_t *cells, ptrdiff_t i, bool arrows, rfi_text *script)
{
    rfi_look look = rfi_figure_look(f, cells, i);
    rfi_text_add(
        script,
        "%s\\\n  'final.dat' index %td using 1:2:3:4 with yerrorlines lw 2 ps 0.9 pt %d lc rgb '%s' dt %d title '",
        i ? ", " : "", i, look.marker, look.colour, look.dash);
    rfi_figure_label(f, cells[i], false, script);
    rfi_text_add(script, "'");
    if (arrows) {
        rfi_figure_arrows("final", i, look, script);
    }
}

static void draw_head(const rfi_figures *f, const rfi_scale *scale, const ptrdiff_t *cells, ptrdiff_t lines, bool edge,
                      rfi_text *script)
{
    rfi_figure_head("final", 900, 520, script);
    rfi_text_add(script, "set ");
    rfi_figure_title(f, "steady state", false, edge ? " (triangles: above +20 dB)" : "", script);
    rfi_text_add(script, "\n");
    rfi_figure_metric_label(f, "y", script);
    rfi_scale_label(f, 'x', script);
    rfi_scale_tics(f, scale, 'x', 600, script);
    rfi_figure_edge(edge, script);
    rfi_figure_legend(f, cells, lines, false, script);
    rfi_text_add(script,
                 "set grid lc rgb '#bbbbbb' lw 0.5\nset offsets graph 0.03, graph 0.03, graph %s, graph 0.05\nplot ",
                 edge ? "0" : "0.05");
}

reef_status rfi_figure_final(const rfi_figures *f, reef_error *error)
{
    rfi_text data = {.context = f->experiment->context};
    rfi_text script = {.context = f->experiment->context};
    const rfi_scale scale = rfi_figure_scale(f);
    const ptrdiff_t lines = rfi_figure_shown_series(f, RFI_SERIES_MAX);
    ptrdiff_t cells[RFI_SERIES_MAX];
    bool beyond[RFI_SERIES_MAX];
    bool edge = false;
    for (ptrdiff_t i = 0; i < lines; i++) {
        ptrdiff_t series = rfi_figure_pick(f, RFI_SERIES_MAX, i);
        cells[i] = rfi_figure_cell(f, series, 0);
        beyond[i] = add_series(f, &scale, series, &data);
        edge = edge || beyond[i];
    }
    draw_head(f, &scale, cells, lines, edge, &script);
    if (all_have_oracle(f) || all_have_theory(f)) {
        add_references(f, &scale, &data);
    }
    if (all_have_oracle(f)) { /* below the rules, and wider: both are seen where they coincide */
        rfi_text_add(&script, "\\\n  'final.dat' index %td using 1:3 with lines lw 7 lc rgb '#b5b5b5' title 'oracle', ",
                     lines);
    }
    for (ptrdiff_t i = 0; i < lines; i++) {
        draw_series(f, cells, i, beyond[i], &script);
    }
    if (all_have_theory(f)) {
        rfi_text_add(&script,
                     ", \\\n  'final.dat' index %td using 1:2 with lines dt 3 lw 2 lc 'black' title 'theory (mean over "
                     "honest)'",
                     lines);
    }
    rfi_text_add(&script, "\n");
    return rfi_figure_write(f, "final", &data, &script, error);
}
