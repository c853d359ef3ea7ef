/* Figures as gnuplot scripts with their data beside them; to get pictures, run gnuplot on the scripts (`reef plot`).
 *
 *   figure_style.c    colours, markers and words of all figures
 *   figure_curves.c   learning curves with bands of two standard errors
 *   figure_final.c    steady state against the parameter that varies
 *   figure_heat.c     rounds x parameter, one panel per value of everything else; the paper's panels
 *   figure_matrix.c   rules x attacks, the worst attack on each rule marked
 *   figure_graph.c    the network, agents coloured by the trust they receive
 *
 * The parameter is the axis with the most values that are numbers, at least 3; what else varies are the series. */
#ifndef RFI_EXPERIMENT_PRESENT_FIGURES_H
#define RFI_EXPERIMENT_PRESENT_FIGURES_H

#include "experiment/run/outcome.h"

/* More lines or panels than these cannot be told apart. */
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
    bool held; /* too many series: they differ in the rule alone, everything else is held at its middle value */
} rfi_figures;

/* ---- figure_style.c ---- */

/* Colour, marker and dash, in gnuplot's terms. */
typedef struct rfi_look {
    const char *colour;
    int marker, dash;
} rfi_look;
/* Of line i of a figure whose lines are these cells: a rule has the same colour and marker in every figure, lines of one rule differ in
 * their dash. */
rfi_look rfi_figure_look(const rfi_figures *f, const ptrdiff_t *cells, ptrdiff_t i);
/* What a path of the configuration is called on an axis: "attack.delta" is "attack strength delta". */
void rfi_figure_words(const char *path, rfi_text *text);
/* A metric with its unit. */
const char *rfi_figure_metric_words(rfi_metric metric);

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
/* Whether a value is above that: then it is not drawn where it is, but as an arrow at the upper edge. */
bool rfi_figure_beyond(const rfi_figures *f, double value);
/* Statistics of the metric. point = points: the steady state. */
rfi_moments rfi_figure_at(const rfi_figures *f, const rfi_outcome *o, ptrdiff_t point);
/* Whether the series differ in the rule alone, so that one oracle serves them all. */
bool rfi_figure_one_oracle(const rfi_figures *f);
/* The oracle of a cell if it has the metric, or NULL. */
const rfi_outcome *rfi_figure_oracle(const rfi_figures *f, ptrdiff_t cell);

/* Text from outside within quotes: gnuplot would run what is in backquotes, and a quote would end the string. */
void rfi_figure_safe(rfi_text *text, const char *words);
/* An axis and its value in a cell: "ref", "z = 1", "4 malicious". script.js of the page knows these forms. */
void rfi_figure_setting(const reef_experiment *e, ptrdiff_t axis, ptrdiff_t cell, rfi_text *text);
/* Terminal, size in pixels, palette: the head of NAME.gp. */
void rfi_figure_head(const char *name, ptrdiff_t width, ptrdiff_t height, rfi_text *text);
/* "title '...'": the experiment, what is shown, what is held (and the parameter, if the figure shows one value of it), and a remark. */
void rfi_figure_title(const rfi_figures *f, const char *what, bool with_parameter, const char *remark, rfi_text *text);
/* The legend of so many lines, outside of the plot: at its right or, where labels are long, below. */
void rfi_figure_legend(const rfi_figures *f, const ptrdiff_t *cells, ptrdiff_t count, bool with_parameter,
                       rfi_text *text);
/* Range of the y axis that ends at RFI_COLOUR_TOP if anything is beyond. */
void rfi_figure_edge(bool beyond, rfi_text *text);
/* Arrows at the upper edge for what is beyond it, from column 5 of a block of the data; only after rfi_figure_edge(true, ...). */
void rfi_figure_arrows(const char *name, ptrdiff_t block, rfi_look look, rfi_text *text);
/* "set ylabel" and the like, with the metric's name and unit. */
void rfi_figure_metric_label(const rfi_figures *f, const char *which, rfi_text *text);
/* What varies between the lines, as it is in a cell, for legends: "ref, z = 1"; with_parameter: the parameter too. */
void rfi_figure_label(const rfi_figures *f, ptrdiff_t cell, bool with_parameter, rfi_text *text);
/* A line "x mean low high edge" of the metric: edge is where the arrow stands if the mean is beyond the upper edge and `arrow` is true,
 * NaN otherwise. */
void rfi_figure_point(const rfi_figures *f, const rfi_outcome *o, ptrdiff_t point, double x, bool arrow,
                      rfi_text *text);
/* Numbers of a line, with blanks between them. */
void rfi_figure_line(rfi_text *text, const double *numbers, ptrdiff_t count);
/* Writes NAME.dat and NAME.gp and frees both texts. */
reef_status rfi_figure_write(const rfi_figures *f, const char *name, rfi_text *data, rfi_text *script,
                             reef_error *error);

/* ---- figure_axis.c: the positions of the parameter's values ---- */

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
/* "set xtics" or "set ytics" with the parameter's values, those left out that would run into each other on an axis of so many pixels. */
void rfi_scale_tics(const rfi_figures *f, const rfi_scale *scale, char axis, double pixels, rfi_text *script);
/* Name of the parameter for an axis. */
void rfi_scale_label(const rfi_figures *f, char axis, rfi_text *script);

/* ---- the kinds; each writes its pair of files, or nothing where it does not apply ---- */

reef_status rfi_figure_curves(const rfi_figures *f, reef_error *error);
reef_status rfi_figure_final(const rfi_figures *f, reef_error *error);
reef_status rfi_figure_heat(const rfi_figures *f, reef_error *error);
reef_status rfi_figure_matrix(const rfi_figures *f, reef_error *error);
reef_status rfi_figure_graph(const rfi_figures *f, reef_error *error);

#endif
