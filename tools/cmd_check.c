/* reef check: what is known about an experiment before it runs. */
#include "commands.h"
#include "experiment.h"
#include "files.h"
#include "json.h"
#include "net.h"
#include "plugins.h"
#include "terminal.h"

#include <math.h>
#include <reef/reef.h>
#include <stdio.h>
#include <string.h>

enum { OVERRIDES_MAX = 64, LISTED_MAX = 12 };

typedef struct arguments {
    const char *overrides[OVERRIDES_MAX];
    ptrdiff_t count;
    bool all, as_json, strict;
} arguments;

/* What is said about all configurations together. */
typedef struct totals {
    const reef_experiment *experiment;
    bool each; /* also about every single one */
    json *out; /* or NULL: as text */
    warnings warned;
    ptrdiff_t agents_least, agents_most;
    double theory_least, theory_most; /* in decibels; NaN: unknown */
} totals;

/* ---- text ---- */

static void add_to_totals(totals *t, ptrdiff_t cell, const reef_cell_facts *facts)
{
    double theory = 10 * log10(facts->theory);
    if (facts->has_graph) {
        ptrdiff_t agents = facts->graph.agents;
        t->agents_least = cell == 0 || agents < t->agents_least ? agents : t->agents_least;
        t->agents_most = agents > t->agents_most ? agents : t->agents_most;
    }
    t->theory_least = fmin(t->theory_least, theory); /* fmin and fmax ignore NaN */
    t->theory_most = fmax(t->theory_most, theory);
}

static void print_one(totals *t, ptrdiff_t cell, const char *text)
{
    char place[2048];
    describe_configuration(t->experiment, cell, place, sizeof place);
    printf("%sconfiguration %td  %s%s\n%s", tint_on(stdout, TINT_HEADING), cell, place, tint_off(stdout), text);
}

static void print_totals(const totals *t)
{
    const reef_experiment *e = t->experiment;
    ptrdiff_t cells = reef_experiment_cells(e);
    if (!t->each) {
        print_warnings(&t->warned, stdout);
    }
    if (!t->each && t->agents_most > 0) {
        printf("agents     %td", t->agents_least);
        printf(t->agents_most > t->agents_least ? " to %td\n" : "\n", t->agents_most);
    }
    if (!t->each && !isnan(t->theory_least)) {
        printf("theory     MSD %.2f to %.2f dB for the mean over the honest agents\n", t->theory_least, t->theory_most);
    }
    printf("%s: %td configuration%s can be run, %td warning%s\n", reef_experiment_name(e), cells, plural(cells),
           t->warned.total, plural(t->warned.total));
    if (!t->each) {
        printf("`reef check --all` shows every configuration.\n");
    }
}

/* ---- JSON ---- */

static void json_majority(json *j, const reef_majority *m)
{
    json_open(j, "honest_majority", '{');
    json_flag(j, "holds", m->holds);
    json_whole(j, "failing", m->failing);
    json_whole(j, "worst_agent", m->worst);
    json_number(j, "honest_share", m->share);
    json_close(j);
}

static void json_graph(json *j, const reef_cell_facts *facts)
{
    const reef_graph_facts *g = &facts->graph;
    json_open(j, "graph", '{');
    json_whole(j, "agents", g->agents);
    json_whole(j, "links", g->links);
    json_whole(j, "smallest_neighbourhood", g->smallest);
    json_whole(j, "largest_neighbourhood", g->largest);
    json_majority(j, &g->by_count);
    json_flag(j, "connected", g->connected);
    json_flag(j, "primitive", g->primitive);
    json_whole(j, "margin", g->least_spare);
    json_whole(j, "margin_agent", g->least_spare_agent);
    json_number(j, "perron_min", facts->has_spectrum ? facts->perron_min : (double)NAN);
    json_number(j, "perron_max", facts->has_spectrum ? facts->perron_max : (double)NAN);
    json_number(j, "spectral_gap", facts->has_spectrum ? facts->spectrum.gap : (double)NAN);
    json_close(j);
}

static void json_warnings(json *j, ptrdiff_t cell, const char *text)
{
    static warnings own; /* too large for a stack; of this configuration alone */
    own = (warnings){.total = 0};
    gather_warnings(&own, cell, text);
    json_open(j, "warnings", '[');
    for (int i = 0; i < own.kinds; i++) {
        json_text(j, NULL, own.kind[i].text);
    }
    json_close(j);
}

static void json_one(totals *t, ptrdiff_t cell, const reef_cell_facts *facts, const char *text)
{
    json *j = t->out;
    json_open(j, NULL, '{');
    json_whole(j, "configuration", cell);
    json_open(j, "parameters", '[');
    for (ptrdiff_t a = 0; a < reef_experiment_axes(t->experiment); a++) {
        char value[512];
        (void)reef_experiment_value(t->experiment, cell, a, value, sizeof value);
        json_open(j, NULL, '{');
        json_text(j, "name", reef_experiment_axis(t->experiment, a));
        json_text(j, "value", value);
        json_close(j);
    }
    json_close(j);
    json_whole(j, "malicious", facts->malicious_count);
    if (facts->has_graph) {
        json_graph(j, facts);
    } else {
        json_text(j, "graph", NULL);
    }
    json_number(j, "tolerates", facts->tolerated >= 0 ? (double)facts->tolerated : (double)NAN);
    json_number(j, "theory_db", 10 * log10(facts->theory));
    json_warnings(j, cell, text);
    json_close(j);
}

/* ---- the command ---- */

static void take_cell(void *user, ptrdiff_t cell, const reef_cell_facts *facts)
{
    totals *t = user;
    char text[2048];
    (void)reef_cell_facts_print(facts, text, sizeof text, NULL);
    gather_warnings(&t->warned, cell, text);
    add_to_totals(t, cell, facts);
    if (t->out) {
        json_one(t, cell, facts, text);
    } else if (t->each) {
        print_one(t, cell, text);
    }
}

static int check_all(const reef_experiment *e, const arguments *a)
{
    static totals t; /* too large for a stack */
    reef_error error;
    json out = json_start(stdout);
    t = (totals){.experiment = e,
                 .each = a->all || reef_experiment_cells(e) <= LISTED_MAX,
                 .out = a->as_json ? &out : NULL,
                 .warned = {.experiment = e},
                 .theory_least = (double)NAN,
                 .theory_most = (double)NAN};
    if (t.out) {
        json_open(&out, NULL, '{');
        json_text(&out, "name", reef_experiment_name(e));
        json_open(&out, "configurations", '[');
    }
    if (reef_experiment_check_all(e, take_cell, &t, &error) != REEF_OK) {
        fprintf(stderr, "reef check: %s\n", error.text);
        return EXIT_FAILED;
    }
    if (t.out) {
        json_close(&out);
        json_whole(&out, "warning_count", t.warned.total);
        json_close(&out);
    } else {
        print_totals(&t);
    }
    return a->strict && t.warned.total > 0 ? EXIT_FAILED : EXIT_DONE;
}

/* Reads up to size - 1 bytes from an offset on, as text. */
static void read_piece(FILE *file, long offset, int from, char *piece, size_t size)
{
    size_t got = fseek(file, offset, from) == 0 ? fread(piece, 1, size - 1, file) : 0;
    piece[got] = '\0';
}

/* Whether a file is a run file of agents on a network, signed (its last line says so) or still a draft (it has the key `reef`, which no
 * experiment has). */
static bool is_run_file(const char *path)
{
    char start[4096] = "", end[256] = "";
    FILE *file = open_regular(path);
    if (!file) {
        return false; /* reading it as an experiment reports why */
    }
    read_piece(file, 0, SEEK_SET, start, sizeof start);
    read_piece(file, -(long)(sizeof end - 1), SEEK_END, end, sizeof end);
    (void)fclose(file);
    return strncmp(start, "reef:", 5) == 0 || strstr(start, "\nreef:") || strstr(end, "\n# signed R");
}

static int check_run_file(const char *path, bool strict)
{
    reef_status (*check)(const char *, const char *, reef_tell *, void *, ptrdiff_t *, reef_error *) = NULL;
    reef_error error = {REEF_OK, ""};
    ptrdiff_t found = 0;
    if (!NET_FIND("reef_net_check", check, &error) || check(path, NULL, net_print, NULL, &found, &error) != REEF_OK) {
        fprintf(stderr, "reef check: %s\n", error.text);
        return net_exit_code(error.status);
    }
    printf("%s is a valid run file, %td warning%s\n", printable_path(path), found, plural(found));
    return strict && found > 0 ? EXIT_FAILED : EXIT_DONE;
}

enum { OPT_SET = 256, OPT_ALL, OPT_STRICT, OPT_JSON };
static const option_row options[] = {
    {OPT_SET, "set", "PATH=VALUE", "replaces a value of the file, as for `reef run`", VALUE_TEXT, NULL},
    {OPT_ALL, "all", NULL, "shows every configuration, however many there are", VALUE_NONE, NULL},
    {OPT_STRICT, "strict", NULL, "exit code 1 if there are warnings", VALUE_NONE, NULL},
    {OPT_JSON, "json", NULL, "prints JSON, described in reef-check(1)", VALUE_NONE, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    arguments *a = user;
    a->all = a->all || code == OPT_ALL;
    a->as_json = a->as_json || code == OPT_JSON;
    a->strict = a->strict || code == OPT_STRICT;
    if (code != OPT_SET) {
        return EXIT_DONE;
    }
    if (a->count == OVERRIDES_MAX) {
        return bad_usage(&command_check, "too many --set", NULL);
    }
    a->overrides[a->count++] = value;
    return EXIT_DONE;
}

static int run_check(int argc, char **argv)
{
    arguments a = {.count = 0};
    reef_context *context = NULL;
    reef_experiment *e = NULL;
    reef_error error;
    int code = read_options(&command_check, &argc, argv, take_option, &a);
    if (code != EXIT_DONE || argc != 2) {
        return code != EXIT_DONE ? code : bad_usage(&command_check, "one experiment is expected", NULL);
    }
    if (is_run_file(argv[1])) {
        return a.count > 0 || a.as_json
                   ? bad_usage(&command_check, "a run file is signed: neither --set nor --json apply to it", NULL)
                   : check_run_file(argv[1], a.strict);
    }
    reef_status status = plugins_context(&context, &error);
    if (status == REEF_OK) {
        status = load_experiment(context, &e, argv[1], a.overrides, a.count, &error);
    }
    if (status == REEF_OK) {
        code = check_all(e, &a);
    } else {
        fprintf(stderr, "reef check: %s\n", error.text);
        code = experiment_exit_code(status);
    }
    reef_experiment_destroy(&e);
    reef_context_destroy(&context);
    return code;
}

const command command_check = {
    "check",
    "check an experiment and show what to expect of it",
    "Usage: reef check EXPERIMENT.yaml [OPTIONS]\n"
    "       reef check RUN.yaml [--strict]\n\n"
    "Reads an experiment as `reef run` does (- is standard input), without running it. For each configuration of its "
    "grid\n"
    "it determines whether every honest agent has an honest majority among its neighbours, whether the honest agents "
    "are\n"
    "connected, how many more malicious agents are tolerated, and the mean-square deviation (MSD) that theory "
    "predicts.\n"
    "More than 12 configurations are summarised: each warning once, with the number of configurations it concerns.\n\n"
    "For a signed run file of agents on a network it prints whether models are sealed, how many malicious and absent\n"
    "neighbours each agent tolerates, and the memory and traffic it needs.\n",
    OPTIONS(options),
    "Exit codes: 0 it can be run, 1 the check failed or, with --strict, there are warnings, 2 wrong usage or "
    "configuration,\n3 a file cannot be read.\n",
    VALUE_EXPERIMENT,
    NULL,
    run_check,
};
