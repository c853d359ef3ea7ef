/* Learning curves with bands of two standard errors; the oracle and the theory beside them where one serves all. Curves that leave the
 * figure at its upper edge have arrows there. */
#include "experiment/present/figures.h"

#include <math.h>

enum { ARROWS = 8 }; /* along a curve */

static void add_curve(const rfi_figures *f, const rfi_outcome *o, rfi_text *data)
{
    ptrdiff_t step = (o->points + ARROWS - 1) / ARROWS;
    for (ptrdiff_t p = 0; p < o->points; p++) {
        bool arrow = p % step == step / 2;
        rfi_figure_point(f, o, p, (double)rfi_outcome_round(o, p), arrow, data);
    }
    rfi_text_add(data, "\n\n");
}

static bool leaves(const rfi_figures *f, const rfi_outcome *o)
{
    bool any = false;
    for (ptrdiff_t p = 0; p < o->points; p++) {
        any = any || rfi_figure_beyond(f, rfi_figure_at(f, o, p).mean);
    }
    return any;
}

/* The lines of the figure: all cells if they are few, otherwise those with the middle value of the parameter. */
static ptrdiff_t choose_lines(const rfi_figures *f, ptrdiff_t cells[RFI_SERIES_MAX], bool *all)
{
    *all = f->experiment->cells <= RFI_SERIES_MAX;
    ptrdiff_t lines = *all ? f->experiment->cells : rfi_figure_shown_series(f, RFI_SERIES_MAX);
    for (ptrdiff_t i = 0; i < lines; i++) {
        cells[i] = *all ? i : rfi_figure_cell(f, rfi_figure_pick(f, RFI_SERIES_MAX, i), rfi_figure_values(f) / 2);
    }
    return lines;
}

/* Below the lines of the rules and wider than these, so that both are seen where they coincide. */
static void draw_oracle(const rfi_figures *f, ptrdiff_t cell, ptrdiff_t block, rfi_text *data, rfi_text *script)
{
    const rfi_outcome *oracle = rfi_figure_oracle(f, cell);
    if (oracle) {
        add_curve(f, oracle, data);
        rfi_text_add(script, "\\\n  'curves.dat' index %td using 1:2 with lines lw 7 lc rgb '#b5b5b5' title 'oracle', ",
                     block);
    }
}

static void draw_theory(const rfi_figures *f, ptrdiff_t cell, rfi_text *script)
{
    double theory = f->metric == RFI_MSD ? f->results->cells[cell]->theory : (double)NAN;
    if (!isnan(theory)) {
        rfi_text_add(script, ", \\\n  ");
        rfi_text_number(script, 10 * log10(theory));
        rfi_text_add(script, " with lines dt 3 lw 2 lc 'black' title 'theory (mean over honest)'");
    }
}

/* all: the lines are all cells, and the parameter stands in the legend; otherwise it has one value, which stands in the title. */
static void draw_head(const rfi_figures *f, const ptrdiff_t *cells, ptrdiff_t lines, bool all, bool edge,
                      rfi_text *script)
{
    rfi_figure_head("curves", 900, 520, script);
    rfi_text_add(script, "set ");
    rfi_figure_title(f, "learning curves", !all, edge ? " (triangles: above +20 dB)" : "", script);
    rfi_text_add(script, "\n");
    rfi_figure_metric_label(f, "y", script);
    rfi_figure_edge(edge, script);
    rfi_figure_legend(f, cells, lines, all, script);
    rfi_text_add(script, "set grid lc rgb '#bbbbbb' lw 0.5\nset xlabel 'round'\nset autoscale xfix\n"
                         "set style fill transparent solid 0.25 noborder\nplot ");
}

static void draw_line(const rfi_figures *f, const ptrdiff_t *cells, ptrdiff_t i, bool all, bool edge, rfi_text *script)
{
    rfi_look look = rfi_figure_look(f, cells, i);
    rfi_text_add(script, "%s\\\n  'curves.dat' index %td using 1:3:4 with filledcurves lc rgb '%s' notitle, \\\n",
                 i ? ", " : "", i, look.colour);
    rfi_text_add(script, "  '' index %td using 1:2 with lines lw 2 lc rgb '%s' dt %d title '", i, look.colour,
                 look.dash);
    rfi_figure_label(f, cells[i], all, script);
    rfi_text_add(script, "'");
    if (edge && leaves(f, f->results->cells[cells[i]])) {
        rfi_figure_arrows("curves", i, look, script);
    }
}

reef_status rfi_figure_curves(const rfi_figures *f, reef_error *error)
{
    rfi_text data = {.context = f->experiment->context};
    rfi_text script = {.context = f->experiment->context};
    ptrdiff_t cells[RFI_SERIES_MAX];
    bool all = false;
    bool edge = false;
    ptrdiff_t lines = choose_lines(f, cells, &all);
    for (ptrdiff_t i = 0; i < lines; i++) {
        add_curve(f, f->results->cells[cells[i]], &data);
        edge = edge || leaves(f, f->results->cells[cells[i]]);
    }
    bool references = rfi_figure_one_oracle(f) && (f->parameter < 0 || !all);
    ptrdiff_t reference = rfi_figure_cell(f, 0, rfi_figure_values(f) / 2);
    draw_head(f, cells, lines, all, edge, &script);
    if (references) {
        draw_oracle(f, reference, lines, &data, &script);
    }
    for (ptrdiff_t i = 0; i < lines; i++) {
        draw_line(f, cells, i, all, edge, &script);
    }
    if (references) {
        draw_theory(f, reference, &script);
    }
    rfi_text_add(&script, "\n");
    return rfi_figure_write(f, "curves", &data, &script, error);
}
