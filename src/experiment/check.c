/* What can be said of every cell before it runs, as text: for `reef check`, check.txt and the report. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/outcome.h"

#include <math.h>
#include <string.h>

/* A text with warnings that are counted. */
typedef struct notes {
    char *text;
    size_t size, used;
    ptrdiff_t warnings;
} notes;

static void note_graph(notes *n, const reef_cell_facts *f)
{
    const reef_graph_facts *g = &f->graph;
    rfi_append(n->text, n->size, &n->used,
               "  graph      %td agents, %td links, neighbourhoods of %td to %td, %td liars\n", g->agents, g->links,
               g->smallest, g->largest, f->liars);
    if (!g->by_count.holds) {
        rfi_append(n->text, n->size, &n->used,
                   "  WARNING    %td benign agents hear no majority of benign ones; agent %td: %.0f %%\n",
                   g->by_count.failing, g->by_count.worst, 100 * g->by_count.share);
        n->warnings++;
    }
    if (!g->primitive) {
        rfi_append(n->text, n->size, &n->used, "  WARNING    without the liars the graph is not %s\n",
                   g->connected ? "aperiodic" : "connected");
        n->warnings++;
    }
    if (g->self_heavy > 0) {
        rfi_append(n->text, n->size, &n->used,
                   "  WARNING    %td agents give half of the weight or more to themselves (agent %td first)\n",
                   g->self_heavy, g->self_heavy_first);
        n->warnings++;
    }
    rfi_append(n->text, n->size, &n->used, "  bears      %td more liars at the worst place (agent %td)\n",
               g->least_spare, g->least_spare_agent);
    if (f->has_spectrum) {
        rfi_append(n->text, n->size, &n->used, "  Perron     shares of the benign agents %.4g to %.4g; gap %.4g\n",
                   f->perron_min, f->perron_max, f->spectrum.gap);
    }
}

size_t reef_cell_facts_print(const reef_cell_facts *facts, char *text, size_t size, ptrdiff_t *warnings)
{
    notes n = {.text = text, .size = size};
    if (size > 0) {
        text[0] = '\0';
    }
    if (facts->has_graph) {
        note_graph(&n, facts);
    }
    if (facts->bearable >= 0) {
        rfi_append(text, size, &n.used, "  rule       bears %td liars by its own setting\n", facts->bearable);
    }
    if (facts->bearable >= 0 && facts->liars > facts->bearable) {
        rfi_append(text, size, &n.used, "  WARNING    there are %td liars, and the rule bears %td\n", facts->liars,
                   facts->bearable);
        n.warnings++;
    }
    if (!isnan(facts->theory)) {
        rfi_append(text, size, &n.used, "  theory     MSD %.2f dB for the mean over the benign agents\n",
                   10 * log10(facts->theory));
    }
    if (warnings) {
        *warnings = n.warnings;
    }
    return n.used;
}

/* Whether two cells have the same network with the same liars in it. */
static bool same_network(const rfi_cell *a, const rfi_cell *b)
{
    static const rfi_part parts[] = {RFI_PART_GRAPH, RFI_PART_WEIGHTS, RFI_PART_PROBLEM, RFI_PART_PLACEMENT};
    bool same = a->numbers.agents == b->numbers.agents && a->numbers.seed == b->numbers.seed &&
                a->numbers.liars.kind == b->numbers.liars.kind && a->numbers.liars.value == b->numbers.liars.value;
    for (ptrdiff_t i = 0; i < RFI_COUNT(parts); i++) {
        same = same && strcmp(a->specs[parts[i]], b->specs[parts[i]]) == 0;
    }
    return same;
}

/* Adds a cell's line of parameters and what is known of it. */
static void add_cell(const reef_experiment *e, ptrdiff_t cell, const reef_cell_facts *facts, rfi_text *text)
{
    char lines[2048];
    char value[RFI_LABEL_SIZE];
    rfi_text_add(text, "cell %td", cell);
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        (void)reef_experiment_value(e, cell, a, value, sizeof value);
        rfi_text_add(text, "  %s=%s", e->axes[a].path, value);
    }
    (void)reef_cell_facts_print(facts, lines, sizeof lines, NULL);
    rfi_text_add(text, "\n%s", lines);
}

reef_status rfi_check_write(const reef_experiment *e, const char *folder, reef_error *error)
{
    rfi_text text = {.context = e->context};
    rfi_world *world = rfi_world_create(e, e->context);
    rfi_cell *last = rfi_allocate(e->context, sizeof *last);
    reef_cell_facts facts;
    bool ready = world && last;
    reef_status status = ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory to check %td cells", e->cells);
    for (ptrdiff_t i = 0; ready && i < e->cells && status == REEF_OK; i++) {
        status = rfi_world_set(world, i, error);
        if (status == REEF_OK) {
            bool known = i > 0 && same_network(last, &world->cell);
            status = rfi_world_facts(world, known, &facts, error);
            *last = world->cell;
        }
        if (status == REEF_OK) {
            add_cell(e, i, &facts, &text);
        }
    }
    status = status == REEF_OK ? rfi_text_write(&text, folder, "check.txt", error) : status;
    rfi_text_free(&text);
    rfi_release(e->context, last);
    rfi_world_destroy(&world);
    return status;
}
