/* Rules x attacks: the steady state as numbers on colours. The worst attack on each rule has a frame, and the last column says what it
 * comes to: a rule is as good as its worst case. One panel per combination of what else varies, PANELS at most. */
#include "experiment/present/figures.h"

#include <math.h>

enum { PANELS = 4, CELL_WIDTH = 92, CELL_HEIGHT = 30 };

typedef struct matrix {
    const rfi_figures *f;
    ptrdiff_t rule, attack; /* axes */
    ptrdiff_t rules, attacks;
    double least, most; /* of all values shown, for the colours */
    ptrdiff_t panels;
    ptrdiff_t first[PANELS]; /* cell with the first rule and attack */
} matrix;

static ptrdiff_t cell_at(const matrix *m, ptrdiff_t panel, ptrdiff_t rule, ptrdiff_t attack)
{
    const reef_experiment *e = m->f->experiment;
    return m->first[panel] + rule * rfi_figure_stride(e, e->axes[m->rule].dimension) +
           attack * rfi_figure_stride(e, e->axes[m->attack].dimension);
}

static double value_at(const matrix *m, ptrdiff_t panel, ptrdiff_t rule, ptrdiff_t attack)
{
    const rfi_outcome *o = m->f->results->cells[cell_at(m, panel, rule, attack)];
    double value = rfi_figure_shown(m->f, rfi_figure_at(m->f, o, o->points).mean);
    return m->f->metric == RFI_ACCURACY ? 100 * value : value;
}

static double colour_of(const matrix *m, double value)
{
    return rfi_metric_decibels(m->f->metric) ? fmin(value, RFI_COLOUR_TOP) : value;
}

/* Large is bad for errors and good for accuracies. */
static bool is_worse(const matrix *m, double a, double b)
{
    bool good = m->f->metric == RFI_ACCURACY || m->f->metric == RFI_WORST_ACCURACY;
    return good ? a < b : a > b;
}

static ptrdiff_t worst_of(const matrix *m, ptrdiff_t panel, ptrdiff_t rule)
{
    ptrdiff_t worst = 0;
    for (ptrdiff_t a = 1; a < m->attacks; a++) {
        worst = is_worse(m, value_at(m, panel, rule, a), value_at(m, panel, rule, worst)) ? a : worst;
    }
    return worst;
}

static void find_panels(matrix *m)
{
    const reef_experiment *e = m->f->experiment;
    ptrdiff_t by_rule = rfi_figure_stride(e, e->axes[m->rule].dimension);
    ptrdiff_t by_attack = rfi_figure_stride(e, e->axes[m->attack].dimension);
    for (ptrdiff_t i = 0; i < e->cells && m->panels < PANELS; i++) {
        if (i / by_rule % m->rules == 0 && i / by_attack % m->attacks == 0) {
            m->first[m->panels++] = i;
        }
    }
    m->least = (double)INFINITY;
    m->most = -(double)INFINITY;
    for (ptrdiff_t i = 0; i < m->panels * m->rules * m->attacks; i++) {
        double value =
            colour_of(m, value_at(m, i / (m->rules * m->attacks), i / m->attacks % m->rules, i % m->attacks));
        m->least = fmin(m->least, value);
        m->most = fmax(m->most, value);
    }
}

/* "attack rule colour text ink": ink is black on the bright half of the colours. The worst case once more in a column of its own. */
static void add_panel(const matrix *m, ptrdiff_t panel, rfi_text *data)
{
    for (ptrdiff_t r = 0; r < m->rules; r++) {
        ptrdiff_t worst = worst_of(m, panel, r);
        for (ptrdiff_t a = 0; a <= m->attacks; a++) {
            double value = value_at(m, panel, r, a < m->attacks ? a : worst);
            double share = (colour_of(m, value) - m->least) / fmax(m->most - m->least, 1e-9);
            rfi_text_add(data, "%.1f %td ", a < m->attacks ? (double)a : (double)a + 0.2, r);
            rfi_text_number(data, colour_of(m, value));
            rfi_text_add(data, " %.1f %d\n", value, share > 0.6 ? 0x101010 : 0xffffff);
        }
    }
    rfi_text_add(data, "\n\n");
}

static void add_tics(const matrix *m, rfi_text *script)
{
    char value[RFI_LABEL_SIZE];
    rfi_text_add(script, "set ytics (");
    for (ptrdiff_t r = 0; r < m->rules; r++) {
        (void)reef_experiment_value(m->f->experiment, cell_at(m, 0, r, 0), m->rule, value, sizeof value);
        rfi_text_add(script, "%s'", r ? ", " : "");
        rfi_figure_safe(script, value);
        rfi_text_add(script, "' %td", r);
    }
    rfi_text_add(script, ")\nset xtics (");
    for (ptrdiff_t a = 0; a < m->attacks; a++) {
        (void)reef_experiment_value(m->f->experiment, cell_at(m, 0, 0, a), m->attack, value, sizeof value);
        rfi_text_add(script, "'");
        rfi_figure_safe(script, value);
        rfi_text_add(script, "' %td, ", a);
    }
    rfi_text_add(script, "'worst' %.1f) rotate by 30 right\n", (double)m->attacks + 0.2);
}

/* What varies beside rule and attack: "3 malicious". */
static void add_rest(const matrix *m, ptrdiff_t cell, rfi_text *script)
{
    const reef_experiment *e = m->f->experiment;
    for (ptrdiff_t a = 0, shown = 0; a < e->axis_count; a++) {
        if (a != m->rule && a != m->attack) {
            rfi_text_add(script, "%s", shown++ ? ", " : "");
            rfi_figure_setting(e, a, cell, script);
        }
    }
}

static void add_title(const matrix *m, rfi_text *script)
{
    rfi_text_add(script, "title '");
    rfi_figure_safe(script, m->f->experiment->name);
    rfi_text_add(script, ": rules against attacks (framed: the worst for each rule)'");
}

/* Several panels have a title in common, and each one what sets it apart. */
static void draw_panel(const matrix *m, ptrdiff_t panel, rfi_text *script)
{
    rfi_text_add(script, "unset object\n%s", panel == 1 ? "unset colorbox\n" : ""); /* one bar serves all */
    for (ptrdiff_t r = 0; r < m->rules; r++) {
        ptrdiff_t a = worst_of(m, panel, r);
        rfi_text_add(
            script,
            "set object rectangle from %.2f,%.2f to %.2f,%.2f front fillstyle empty border lc rgb '#d00000' lw 2.5\n",
            (double)a - 0.47, (double)r - 0.45, (double)a + 0.47, (double)r + 0.45);
    }
    rfi_text_add(script, "set ");
    if (m->panels > 1) {
        rfi_text_add(script, "title '");
        add_rest(m, m->first[panel], script);
        rfi_text_add(script, "'");
    } else {
        add_title(m, script);
    }
    rfi_text_add(
        script,
        "\nplot 'matrix.dat' index %td using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror fs solid "
        "noborder lc palette notitle, \\\n  '' index %td using 1:2:(sprintf('%%.1f', $4)):5 with labels tc rgb "
        "variable notitle\n",
        panel, panel);
}

/* Where panels, titles and the colour bar go. */
static void add_layout(const matrix *m, double height, double top, rfi_text *script)
{
    add_tics(m, script);
    rfi_text_add(script,
                 "set yrange [%.1f:-0.5]\nset xrange [-0.5:%.1f]\nset tics scale 0\nunset border\n"
                 "set multiplot layout %td,1 margins screen 0.22, screen 0.85, screen %.4f, screen %.4f spacing screen "
                 "0, screen %.4f ",
                 (double)m->rules - 0.5, (double)m->attacks + 0.7, m->panels, 100 / height, 1 - top / height,
                 150 / height);
    if (m->panels > 1) {
        add_title(m, script);
    }
    rfi_text_add(
        script,
        "\nset colorbox user origin screen 0.88, screen 0.3 size screen 0.02, screen 0.4\nset cblabel offset 0.8\n");
}

reef_status rfi_figure_matrix(const rfi_figures *f, reef_error *error)
{
    const reef_experiment *e = f->experiment;
    matrix m = {.f = f, .rule = rfi_figure_axis(e, "rule"), .attack = rfi_figure_axis(e, "attack")};
    rfi_text data = {.context = e->context};
    rfi_text script = {.context = e->context};
    if (m.rule < 0 || m.attack < 0 || e->axes[m.rule].dimension == e->axes[m.attack].dimension) {
        return REEF_OK;
    }
    m.rules = e->axes[m.rule].count;
    m.attacks = e->axes[m.attack].count;
    find_panels(&m);
    double top = m.panels > 1 ? 75 : 45; /* pixels for titles */
    double height = (double)(m.panels * (150 + CELL_HEIGHT * m.rules)) + top - 25;
    rfi_figure_head("matrix", 300 + CELL_WIDTH * (m.attacks + 1), (ptrdiff_t)height, &script);
    rfi_figure_metric_label(f, "cb", &script);
    if (f->metric == RFI_ACCURACY) {
        rfi_text_add(&script, "set cblabel 'test accuracy [%%]'\n");
    }
    add_layout(&m, height, top, &script);
    rfi_text_add(&script, "set cbrange [%.6g:%.6g]\n", m.least, m.most > m.least ? m.most : m.least + 1);
    for (ptrdiff_t p = 0; p < m.panels; p++) {
        add_panel(&m, p, &data);
        draw_panel(&m, p, &script);
    }
    rfi_text_add(&script, "unset multiplot\n");
    return rfi_figure_write(f, "matrix", &data, &script, error);
}
