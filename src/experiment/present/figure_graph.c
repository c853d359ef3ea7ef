/* The network: agents coloured by the trust they receive, malicious ones as squares with a frame; one panel per series, PANELS at most.
 *
 * Dense networks are drawn on a circle. Others by springs (Fruchterman and Reingold 1991): all agents repel each other with force
 * d^2 / distance, linked ones attract with distance^2 / d, d = sqrt(area / K), and steps shrink to nothing. */
#include "experiment/present/figures.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>

enum { PANELS = 6, AGENTS_MAX = 400, LINKS_MAX = 4000, STEPS = 300, SIZE = 380, BAR_WIDTH = 125 };

typedef struct drawing {
    const rfi_figures *f;
    rfi_world *world;
    double *x, *y;           /* places within [-1, 1] */
    double *move_x, *move_y; /* of one step */
} drawing;

/* ---- places ---- */

static void place_on_circle(drawing *d, ptrdiff_t agents, double spiral)
{
    const double turn = 2 * acos(-1.0);
    for (ptrdiff_t k = 0; k < agents; k++) {
        double radius = spiral > 0 ? sqrt(((double)k + 0.5) / (double)agents) : 1;
        double angle = spiral > 0 ? spiral * (double)k : turn * (double)k / (double)agents;
        d->x[k] = radius * cos(angle);
        d->y[k] = radius * sin(angle);
    }
}

/* Adds force along the line from b to a: repelling and, if they are linked, attracting. */
static void push(drawing *d, ptrdiff_t a, ptrdiff_t b, double spring, bool linked)
{
    double dx = d->x[a] - d->x[b];
    double dy = d->y[a] - d->y[b];
    double length = fmax(sqrt(dx * dx + dy * dy), 1e-6);
    double force = linked ? -length / spring : spring * spring / (length * length);
    d->move_x[a] += dx * force;
    d->move_y[a] += dy * force;
    d->move_x[b] -= dx * force;
    d->move_y[b] -= dy * force;
}

static void step(drawing *d, const reef_csr *csr, double spring, double longest)
{
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        d->move_x[k] = d->move_y[k] = 0;
    }
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        for (ptrdiff_t l = 0; l < k; l++) {
            push(d, k, l, spring, false);
        }
        for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
            if (csr->senders[i] < k) {
                push(d, k, csr->senders[i], spring, true);
            }
        }
    }
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        double length = fmax(sqrt(d->move_x[k] * d->move_x[k] + d->move_y[k] * d->move_y[k]), 1e-12);
        double shorten = fmin(length, longest) / length;
        d->x[k] += d->move_x[k] * shorten;
        d->y[k] += d->move_y[k] * shorten;
    }
}

/* Into [-1, 1] x [-1, 1]. */
static void fit(drawing *d, ptrdiff_t agents)
{
    double *const coordinates[] = {d->x, d->y};
    for (int i = 0; i < 2; i++) {
        double *c = coordinates[i];
        double low = c[0];
        double high = c[0];
        for (ptrdiff_t k = 0; k < agents; k++) {
            low = fmin(low, c[k]);
            high = fmax(high, c[k]);
        }
        for (ptrdiff_t k = 0; k < agents; k++) {
            c[k] = high > low ? 2 * (c[k] - low) / (high - low) - 1 : 0;
        }
    }
}

static void place(drawing *d, const reef_csr *csr)
{
    const double golden_angle = 2.399963229728653;
    ptrdiff_t links = csr->start[csr->agents];
    if (links > csr->agents * csr->agents / 3) {
        place_on_circle(d, csr->agents, 0);
        return;
    }
    place_on_circle(d, csr->agents, golden_angle);
    double spring = sqrt(4.0 / (double)csr->agents);
    for (int i = 0; i < STEPS; i++) {
        step(d, csr, spring, 0.2 * (1 - (double)i / STEPS));
    }
    fit(d, csr->agents);
}

/* ---- data and script ---- */

static void add_links(const drawing *d, const reef_csr *csr, rfi_text *data)
{
    rfi_text_add(data, "# links: dx dy from x y\n0 0 0 0\n");
    for (ptrdiff_t k = 0; k < csr->agents && csr->start[csr->agents] <= 2 * LINKS_MAX; k++) {
        for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
            ptrdiff_t l = csr->senders[i];
            if (l < k || (l > k && reef_csr_find(csr, k, l) < 0)) { /* once if it goes both ways */
                const double numbers[] = {d->x[l], d->y[l], d->x[k] - d->x[l], d->y[k] - d->y[l]};
                rfi_figure_line(data, numbers, RFI_COUNT(numbers));
            }
        }
    }
    rfi_text_add(data, "\n\n");
}

/* Honest agents, then malicious ones; a point that cannot be seen keeps an empty block from missing. */
static void add_agents(const drawing *d, const rfi_outcome *o, bool malicious_count, rfi_text *data)
{
    rfi_text_add(data, "# %s: x y trust agent\n9 9 0 -1\n", malicious_count ? "malicious agents" : "honest agents");
    for (ptrdiff_t k = 0; k < o->agents; k++) {
        if (d->world->malicious[k] == malicious_count) {
            const double numbers[] = {d->x[k], d->y[k], fmin(rfi_outcome_trust(o, k).mean, 1.5), (double)k};
            rfi_figure_line(data, numbers, RFI_COUNT(numbers));
        }
    }
    rfi_text_add(data, "\n\n");
}

static void draw_panel(const drawing *d, ptrdiff_t panel, ptrdiff_t cell, rfi_text *script)
{
    double size = d->world->agents > 100 ? 0.8 : d->world->agents > 40 ? 1.3 : 2;
    rfi_text_add(script, "%sset title '", panel == 1 ? "unset colorbox\n" : ""); /* one bar serves all */
    rfi_figure_label(d->f, cell, false, script);
    rfi_text_add(script,
                 "'\nplot 'graph.dat' index %td using 1:2:3:4 with vectors nohead lw 0.6 lc rgb '#a0a0a0' notitle, \\\n"
                 "  '' index %td using 1:2:3 with points pt 7 ps %.1f lc palette notitle, \\\n"
                 "  '' index %td using 1:2:3 with points pt 5 ps %.1f lc palette notitle, \\\n"
                 "  '' index %td using 1:2 with points pt 4 ps %.1f lw 1.5 lc rgb '#d00000' notitle\n",
                 3 * panel, 3 * panel + 1, size, 3 * panel + 2, size, 3 * panel + 2, size * 1.2);
}

static reef_status add_panel(drawing *d, ptrdiff_t panel, ptrdiff_t cell, rfi_text *data, rfi_text *script,
                             reef_error *error)
{
    reef_status status = rfi_world_set(d->world, cell, error);
    if (status != REEF_OK) {
        return status;
    }
    reef_csr csr = reef_graph_csr(d->world->graph);
    place(d, &csr);
    add_links(d, &csr, data);
    add_agents(d, d->f->results->cells[cell], false, data);
    add_agents(d, d->f->results->cells[cell], true, data);
    draw_panel(d, panel, cell, script);
    return REEF_OK;
}

static void add_layout(const rfi_figures *f, ptrdiff_t panels, rfi_text *script)
{
    ptrdiff_t columns = panels < 2 ? 1 : panels == 2 || panels == 4 ? 2 : 3;
    ptrdiff_t rows = (panels + columns - 1) / columns;
    double width = (double)(columns * SIZE + BAR_WIDTH);
    double height = (double)(rows * SIZE + 40);
    rfi_figure_head("graph", (ptrdiff_t)width, (ptrdiff_t)height, script);
    rfi_text_add(script,
                 "unset border\nunset xtics\nunset ytics\nset xrange [-1.12:1.12]\nset yrange [-1.12:1.12]\n"
                 "set size ratio 1\nunset key\nset cblabel 'trust (1: fair share)' offset 0.7\n"
                 "set palette defined (0 '#7f0000', 0.5 '#e9a33b', 1 '#2f7fbf', 1.5 '#0b2f5b')\n"
                 "set cbrange [0:1.5]\nset colorbox user origin screen %.4f, screen 0.25 size screen %.4f, screen 0.5\n"
                 "set multiplot layout %td,%td margins screen 0.01, screen %.4f, screen 0.02, screen %.4f "
                 "spacing screen 0.01, screen %.4f ",
                 1 - (BAR_WIDTH - 20) / width, 15 / width, rows, columns, 1 - BAR_WIDTH / width, 1 - 70 / height,
                 40 / height);
    rfi_figure_title(f, "trust in the network", true, " (red squares: malicious)", script);
    rfi_text_add(script, "\n");
}

/* Cells that can be drawn: with trust, a graph, and not too many agents. */
static bool can_be_drawn(drawing *d, ptrdiff_t cell)
{
    const rfi_outcome *o = d->f->results->cells[cell];
    return o->agents > 0 && o->agents <= AGENTS_MAX && rfi_world_set(d->world, cell, NULL) == REEF_OK &&
           d->world->graph;
}

static reef_status draw(drawing *d, reef_error *error)
{
    const rfi_figures *f = d->f;
    rfi_text data = {.context = f->experiment->context};
    rfi_text script = {.context = f->experiment->context};
    ptrdiff_t cells[PANELS];
    ptrdiff_t panels = 0;
    for (ptrdiff_t i = 0; i < rfi_figure_shown_series(f, PANELS); i++) {
        ptrdiff_t cell = rfi_figure_cell(f, rfi_figure_pick(f, PANELS, i), rfi_figure_values(f) / 2);
        if (can_be_drawn(d, cell)) {
            cells[panels++] = cell;
        }
    }
    if (panels == 0) {
        return REEF_OK;
    }
    add_layout(f, panels, &script);
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; i < panels && status == REEF_OK; i++) {
        status = add_panel(d, i, cells[i], &data, &script, error);
    }
    rfi_text_add(&script, "unset multiplot\n");
    if (status == REEF_OK) {
        return rfi_figure_write(f, "graph", &data, &script, error);
    }
    rfi_text_free(&data);
    rfi_text_free(&script);
    return status;
}

reef_status rfi_figure_graph(const rfi_figures *f, reef_error *error)
{
    const reef_context *context = f->experiment->context;
    bool any = false;
    for (ptrdiff_t i = 0; i < f->experiment->cells; i++) {
        any = any || f->results->cells[i]->agents > 0;
    }
    if (!any) {
        return REEF_OK;
    }
    drawing d = {.f = f, .world = rfi_world_create(f->experiment, f->experiment->context)};
    double *numbers = rfi_allocate_many(context, (ptrdiff_t)4 * AGENTS_MAX, sizeof *numbers);
    reef_status status = REEF_OK;
    if (d.world && numbers) {
        d.x = numbers;
        d.y = d.x + AGENTS_MAX;
        d.move_x = d.y + AGENTS_MAX;
        d.move_y = d.move_x + AGENTS_MAX;
        status = draw(&d, error);
    } else {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory to draw a network");
    }
    rfi_release(context, numbers);
    rfi_world_destroy(&d.world);
    return status;
}
