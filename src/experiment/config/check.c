/* What is known about every configuration before it runs, as text: for `reef check`, check.txt and the report. */
#include "base/error.h"
#include "base/text.h"
#include "base/memory.h"
#include "experiment/run/outcome.h"

#include <math.h>
#include <string.h>

/* A text with warnings that are counted. */
typedef struct notes {
    char *text;
    size_t size, used;
    ptrdiff_t warnings;
} notes;

/* "s" unless there is one. */
static const char *several(ptrdiff_t count)
{
    return count == 1 ? "" : "s";
}

static void warn_majority(notes *n, const reef_majority *m)
{
    if (m->holds) {
        return;
    }
    rfi_append(n->text, n->size, &n->used, "  WARNING    no honest majority at agent %td (%.0f %% honest)", m->worst,
               100 * m->share);
    if (m->failing > 1) {
        rfi_append(n->text, n->size, &n->used, " and %td more agent%s", m->failing - 1, several(m->failing - 1));
    }
    rfi_append(n->text, n->size, &n->used, "\n");
    n->warnings++;
}

/* How many malicious agents could be added around the most exposed agent. */
static void note_margin(notes *n, const reef_graph_facts *g)
{
    if (g->least_spare < 0) {
        rfi_append(n->text, n->size, &n->used, "  margin     no honest majority at agent %td (margin %td)\n",
                   g->least_spare_agent, g->least_spare);
    } else {
        rfi_append(n->text, n->size, &n->used,
                   "  margin     agent %td, the most exposed one, tolerates %td more malicious neighbour%s\n",
                   g->least_spare_agent, g->least_spare, several(g->least_spare));
    }
}

static void note_spectrum(notes *n, const reef_cell_facts *f)
{
    const char *bound = "";
    if (!f->spectrum.second_converged) {
        bound = f->spectrum.reversible ? "at most " : "about ";
    }
    rfi_append(n->text, n->size, &n->used,
               "  Perron     shares of the honest agents %.4g to %.4g; spectral gap %s%.4g\n", f->perron_min,
               f->perron_max, bound, f->spectrum.gap);
}

static void note_graph(notes *n, const reef_cell_facts *f)
{
    const reef_graph_facts *g = &f->graph;
    rfi_append(n->text, n->size, &n->used,
               "  graph      %td agent%s, %td link%s, neighbourhoods of %td to %td, %td malicious agent%s\n", g->agents,
               several(g->agents), g->links, several(g->links), g->smallest, g->largest, f->malicious_count,
               several(f->malicious_count));
    warn_majority(n, &g->by_count);
    if (!g->primitive) {
        rfi_append(n->text, n->size, &n->used, "  WARNING    without the malicious agents the graph is not %s\n",
                   g->connected ? "aperiodic" : "connected");
        n->warnings++;
    }
    if (g->self_heavy > 0) {
        rfi_append(n->text, n->size, &n->used,
                   "  WARNING    %td agent%s half of the weight or more to %s (first: agent %td)\n", g->self_heavy,
                   g->self_heavy == 1 ? " gives" : "s give", g->self_heavy == 1 ? "itself" : "themselves",
                   g->self_heavy_first);
        n->warnings++;
    }
    note_margin(n, g);
    if (f->has_spectrum) {
        note_spectrum(n, f);
    }
}

size_t reef_cell_facts_print(const reef_cell_facts *facts, char *text, size_t size, ptrdiff_t *warnings)
{
    notes n = {.text = text, .size = size};
    size_t nothing = rfi_no_text(text, size);
    if (!facts) {
        return nothing;
    }
    if (facts->has_graph) {
        note_graph(&n, facts);
    }
    if (facts->tolerated >= 0) {
        rfi_append(text, size, &n.used, "  rule       tolerates %td malicious input%s (its f)\n", facts->tolerated,
                   several(facts->tolerated));
    }
    if (facts->tolerated >= 0 && facts->malicious_count > facts->tolerated) {
        rfi_append(text, size, &n.used, "  WARNING    %td malicious agent%s, but the rule tolerates %td\n",
                   facts->malicious_count, several(facts->malicious_count), facts->tolerated);
        n.warnings++;
    }
    if (facts->no_attack) {
        rfi_append(
            text, size, &n.used,
            "  WARNING    no attack: malicious agents behave like honest ones (attack: none if that is meant)\n");
        n.warnings++;
    }
    if (!isnan(facts->theory)) {
        rfi_append(text, size, &n.used, "  theory     MSD %.2f dB for the mean over the honest agents\n",
                   10 * log10(facts->theory));
    }
    if (warnings) {
        *warnings = n.warnings;
    }
    return n.used;
}

/* Whether two cells have the same network with the same malicious agents in it. */
static bool same_network(const rfi_cell *a, const rfi_cell *b)
{
    static const rfi_part parts[] = {RFI_PART_GRAPH, RFI_PART_WEIGHTS, RFI_PART_PROBLEM, RFI_PART_PLACEMENT};
    bool same = a->numbers.agents == b->numbers.agents && a->numbers.seed == b->numbers.seed &&
                a->numbers.malicious_count.kind == b->numbers.malicious_count.kind &&
                a->numbers.malicious_count.value == b->numbers.malicious_count.value;
    for (ptrdiff_t i = 0; i < RFI_COUNT(parts); i++) {
        same = same && strcmp(a->specs[parts[i]], b->specs[parts[i]]) == 0;
    }
    return same;
}

typedef void cell_teller(void *user, ptrdiff_t cell, const reef_cell_facts *facts);

/* All cells in their order; theory is computed only if asked for. */
static reef_status walk_cells(const reef_experiment *e, bool theory, cell_teller *tell, void *user, reef_error *error)
{
    rfi_world *world = rfi_world_create(e, e->context);
    rfi_cell *last = rfi_allocate(e->context, sizeof *last);
    reef_cell_facts facts;
    bool ready = world && last;
    reef_status status =
        ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory to check %td configurations", e->cells);
    for (ptrdiff_t i = 0; ready && i < e->cells && status == REEF_OK; i++) {
        status = rfi_world_set(world, i, error);
        if (status == REEF_OK) {
            bool known = i > 0 && same_network(last, &world->cell);
            status = rfi_world_facts(world, known, &facts, error);
            *last = world->cell;
        }
        if (status == REEF_OK) {
            facts.theory = theory ? rfi_world_theory(world) : (double)NAN;
            tell(user, i, &facts);
        }
    }
    rfi_release(e->context, last);
    rfi_world_destroy(&world);
    return status;
}

reef_status reef_experiment_check_all(const reef_experiment *experiment,
                                      void (*tell)(void *user, ptrdiff_t cell, const reef_cell_facts *facts),
                                      void *user, reef_error *error)
{
    if (!experiment || !tell) {
        return rfi_fail(error, REEF_E_ARG, "reef_experiment_check_all: the experiment or the function is NULL");
    }
    return walk_cells(experiment, true, tell, user, error);
}

/* A file being made. */
typedef struct listing {
    const rfi_results *results;
    rfi_text text;
} listing;

/* Adds a cell's line of parameters and what is known of it. */
static void add_cell(void *user, ptrdiff_t cell, const reef_cell_facts *facts)
{
    listing *l = user;
    const reef_experiment *e = l->results->experiment;
    reef_cell_facts known = *facts;
    char lines[2048];
    char value[RFI_LABEL_SIZE];
    rfi_text_add(&l->text, "configuration %td", cell);
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        (void)reef_experiment_value(e, cell, a, value, sizeof value);
        rfi_text_add(&l->text, "  %s=%s", e->axes[a].path, value);
    }
    known.theory = l->results->cells[cell]->theory;
    (void)reef_cell_facts_print(&known, lines, sizeof lines, NULL);
    rfi_text_add(&l->text, "\n%s", lines);
}

reef_status rfi_check_write(const rfi_results *results, const char *folder, reef_error *error)
{
    const reef_experiment *e = results->experiment;
    listing l = {.results = results, .text = {.context = e->context}};
    reef_status status = walk_cells(e, false, add_cell, &l, error);
    if (status == REEF_OK) {
        status = rfi_text_write(&l.text, folder, "check.txt", error);
    }
    rfi_text_free(&l.text);
    return status;
}
