/* reef check: what can be said of an experiment before it runs. */
#include "commands.h"

#include <reef/reef.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OVERRIDES_MAX = 64 };

static void print_place(const reef_experiment *e, ptrdiff_t cell)
{
    printf("cell %td", cell);
    for (ptrdiff_t a = 0; a < reef_experiment_axes(e); a++) {
        char value[256];
        (void)reef_experiment_value(e, cell, a, value, sizeof value);
        printf("  %s=%s", reef_experiment_axis(e, a), value);
    }
    printf("\n");
}

/* One line per assumption of the theorem, and what else may surprise. Returns how many warnings there are. */
static int print_graph(const reef_cell_facts *f)
{
    int warnings = 0;
    const reef_graph_facts *g = &f->graph;
    printf("  graph      %td agents, %td links, neighbourhoods of %td to %td, %td liars\n", g->agents, g->links,
           g->smallest, g->largest, f->liars);
    if (!g->by_count.holds) {
        printf("  WARNING    %td benign agents hear no majority of benign ones; agent %td: %.0f %%\n",
               g->by_count.failing, g->by_count.worst, 100 * g->by_count.share);
        warnings++;
    }
    if (!g->primitive) {
        printf("  WARNING    without the liars the graph is not %s\n", g->connected ? "aperiodic" : "connected");
        warnings++;
    }
    if (g->self_heavy > 0) {
        printf("  WARNING    %td agents give half of the weight or more to themselves (agent %td first)\n",
               g->self_heavy, g->self_heavy_first);
        warnings++;
    }
    printf("  bears      %td more liars at the worst place (agent %td)\n", g->least_spare, g->least_spare_agent);
    if (f->has_spectrum) {
        printf("  Perron     shares of the benign agents %.4g to %.4g; gap %.4g\n", f->perron_min, f->perron_max,
               f->spectrum.gap);
    }
    return warnings;
}

static int print_facts(const reef_cell_facts *f)
{
    int warnings = f->has_graph ? print_graph(f) : 0;
    if (f->bearable >= 0) {
        printf("  rule       bears %td liars by its own setting\n", f->bearable);
    }
    if (f->bearable >= 0 && f->liars > f->bearable) {
        printf("  WARNING    there are %td liars\n", f->liars);
        warnings++;
    }
    if (!isnan(f->theory)) {
        printf("  theory     MSD %.2f dB for the mean over the benign agents\n", 10 * log10(f->theory));
    }
    return warnings;
}

static int check_all(const reef_experiment *e)
{
    int warnings = 0;
    for (ptrdiff_t i = 0; i < reef_experiment_cells(e); i++) {
        reef_cell_facts facts;
        reef_error error;
        if (reef_experiment_check(e, i, &facts, &error) != REEF_OK) {
            fprintf(stderr, "reef check: %s\n", error.text);
            return EXIT_FAILED;
        }
        print_place(e, i);
        warnings += print_facts(&facts);
    }
    printf("%s: %td cells can be run, %d warnings\n", reef_experiment_name(e), reef_experiment_cells(e), warnings);
    return EXIT_DONE;
}

static int run_check(int argc, char **argv)
{
    const char *overrides[OVERRIDES_MAX];
    ptrdiff_t count = 0;
    const char *file = NULL;
    reef_experiment *e = NULL;
    reef_error error;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--set") == 0 && i + 1 < argc && count < OVERRIDES_MAX) {
            overrides[count++] = argv[++i];
        } else if (argv[i][0] == '-' || file) {
            fprintf(stderr, "reef check: '%s' is not expected; see `reef check --help`\n", argv[i]);
            return EXIT_USAGE;
        } else {
            file = argv[i];
        }
    }
    if (!file) {
        fprintf(stderr, "reef check: the experiment is missing; see `reef check --help`\n");
        return EXIT_USAGE;
    }
    reef_status status = reef_experiment_load(NULL, &e, file, overrides, count, &error);
    if (status != REEF_OK) {
        fprintf(stderr, "reef check: %s\n", error.text);
        return experiment_exit_code(status);
    }
    int code = check_all(e);
    reef_experiment_destroy(&e);
    return code;
}

const command command_check = {
    "check",
    "check an experiment and say what to expect of it",
    "Usage: reef check EXPERIMENT.yaml [--set PATH=VALUE]...\n\n"
    "Reads an experiment as `reef run` does and prints for each cell of its grid whether every benign agent hears a\n"
    "majority of benign ones, whether the benign agents are connected, how many liars can be borne, and the mean\n"
    "square deviation that theory predicts. Runs nothing.\n",
    run_check,
};
