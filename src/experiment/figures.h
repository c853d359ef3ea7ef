/* Figures as gnuplot scripts with their data beside them; whoever wants pictures runs gnuplot on the scripts (`reef plot`).
 *
 *   figure_curves.c   learning curves with bands of two standard errors
 *   figure_final.c    steady state against the parameter that varies
 *   figure_heat.c     rounds x parameter, one panel per value of everything else; the paper's panels
 *   figure_matrix.c   rules x attacks, the worst attack on each rule marked
 *   figure_graph.c    the network, agents coloured by the trust they receive
 *
 * The parameter is the axis with the most values that are numbers, at least 3; what else varies are the series. */
#ifndef RFI_EXPERIMENT_FIGURES_H
#define RFI_EXPERIMENT_FIGURES_H

#include "experiment/outcome.h"

/* More lines or panels than these nobody can tell apart. */
enum { RFI_SERIES_MAX = 12, RFI_COLOUR_TOP = 20 };
/* Series to choose them from. */
enum { RFI_SERIES_ROOM = 256 };

typedef struct rfi_figures {
    const rfi_results *results;
    const reef_experiment *experiment;
    const char *folder;
    rfi_metric metric;   /* the first that all cells have */
    ptrdiff_t parameter; /* axis, or -1 */
    ptrdiff_t series_count;
    ptrdiff_t first[RFI_SERIES_ROOM]; /* a cell of each series */
} rfi_figures;

/* ---- figures.c ---- */

/* Values of the parameter, 1 without one, and cell number v of a series. */
ptrdiff_t rfi_figure_values(const rfi_figures *f);
ptrdiff_t rfi_figure_cell(const rfi_figures *f, ptrdiff_t series, ptrdiff_t v);
/* How many of the series are shown if there is room for `most`, and which is number i of these: spread evenly over all. */
ptrdiff_t rfi_figure_shown_series(const rfi_figures *f, ptrdiff_t most);
ptrdiff_t rfi_figure_pick(const rfi_figures *f, ptrdiff_t most, ptrdiff_t i);
/* Distance between cells that are neighbours along a dimension of the grid. */
ptrdiff_t rfi_figure_stride(const reef_experiment *e, ptrdiff_t dimension);
/* Axis of that path, or -1. */
ptrdiff_t rfi_figure_axis(const reef_experiment *e, const char *path);
/* The value of the parameter in a cell. */
double rfi_figure_number(const rfi_figures *f, ptrdiff_t cell);
/* The metric in the unit of the figure, decibels where usual. */
double rfi_figure_shown(const rfi_figures *f, double value);
/* The same, powers not above RFI_COLOUR_TOP decibels: what has diverged must not take all the room. */
double rfi_figure_clipped(const rfi_figures *f, double value);
/* Statistics of the metric. point = points: the steady state. */
rfi_moments rfi_figure_at(const rfi_figures *f, const rfi_outcome *o, ptrdiff_t point);
/* Whether the series differ in the rule alone, so that one oracle serves them all. */
bool rfi_figure_one_oracle(const rfi_figures *f);
/* The oracle of a cell if it has the metric, or NULL. */
const rfi_outcome *rfi_figure_oracle(const rfi_figures *f, ptrdiff_t cell);

/* Text from outside within quotes: gnuplot would run what stands in backquotes, and a quote would end the string. */
void rfi_figure_safe(rfi_text *text, const char *words);
/* Terminal, size in pixels, palette, title: the head of NAME.gp. */
void rfi_figure_head(const rfi_figures *f, const char *name, ptrdiff_t width, ptrdiff_t height, rfi_text *text);
/* "set ylabel" and the like, with the metric's name and unit. */
void rfi_figure_metric_label(const rfi_figures *f, const char *which, rfi_text *text);
/* What of a cell varies, for legends; with_parameter: the parameter too. */
void rfi_figure_label(const rfi_figures *f, ptrdiff_t cell, bool with_parameter, rfi_text *text);
/* A line "x mean low high" of the metric. */
void rfi_figure_point(const rfi_figures *f, const rfi_outcome *o, ptrdiff_t point, double x, rfi_text *text);
/* Numbers of a line, with blanks between them. */
void rfi_figure_line(rfi_text *text, const double *numbers, ptrdiff_t count);
/* Writes NAME.dat and NAME.gp and frees both texts. */
reef_status rfi_figure_write(const rfi_figures *f, const char *name, rfi_text *data, rfi_text *script,
                             reef_error *error);

/* ---- figure_axis.c: where the values of the parameter stand ---- */

/* A logarithmic axis when the positive values span a factor of 100; zeros then have a strip of their own below the least. Places are
 * decimal logarithms there and plain numbers otherwise. */
typedef struct rfi_scale {
    bool logarithmic, has_zero;
    double low, high;       /* edges of the region of the values without zero */
    double zero, zero_half; /* middle of the strip, and half its width */
} rfi_scale;
rfi_scale rfi_figure_scale(const rfi_figures *f);
/* Place of a value. */
double rfi_scale_at(const rfi_scale *scale, double value);
/* "set xtics" or "set ytics" with the parameter's values. */
void rfi_scale_tics(const rfi_figures *f, const rfi_scale *scale, char axis, rfi_text *script);
/* Name of the parameter for an axis. */
void rfi_scale_label(const rfi_figures *f, char axis, rfi_text *script);

/* ---- the kinds; each writes its pair of files, or nothing where it does not apply ---- */

reef_status rfi_figure_curves(const rfi_figures *f, reef_error *error);
reef_status rfi_figure_final(const rfi_figures *f, reef_error *error);
reef_status rfi_figure_heat(const rfi_figures *f, reef_error *error);
reef_status rfi_figure_matrix(const rfi_figures *f, reef_error *error);
reef_status rfi_figure_graph(const rfi_figures *f, reef_error *error);

#endif
