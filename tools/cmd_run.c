/* reef run: an experiment from a YAML file to a folder of results. */
#include "commands.h"
#include "experiment.h"
#include "launch.h"
#include "plugins.h"
#include "signals.h"
#include "table.h"
#include "terminal.h"

#include <reef/reef.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OVERRIDES_MAX = 64, PATH_SIZE = 4096, BAR = 24 };
enum { NAME_SIZE = 40, RULES_SHOWN = 8, RULES_SIZE = 600, WIDTH = 140 };

typedef struct arguments {
    const char *file, *folder;
    const char *overrides[OVERRIDES_MAX];
    ptrdiff_t override_count;
    long threads;
    bool resume, force, quiet, no_figures, npy, models;
    reef_distribute distribute;
    int64_t checkpoint_rounds;
    double checkpoint_seconds;
} arguments;

/* ---- the command line ---- */

enum {
    OPT_SET = 256,
    OPT_RESUME,
    OPT_FORCE,
    OPT_THREADS,
    OPT_DISTRIBUTE,
    OPT_CHECKPOINT,
    OPT_NPY,
    OPT_MODELS,
    OPT_NO_FIGURES
};
static const option_row options[] = {
    {'o', "output", "FOLDER", "where the results go (default: results/NAME)", VALUE_FOLDER, NULL},
    {OPT_SET, "set", "PATH=VALUE", "replaces a value of the file:\n--set strategy.mu=0.05 --set 'rule=[mean, ref]'",
     VALUE_TEXT, NULL},
    {OPT_RESUME, "resume", NULL, "resumes an interrupted run; finished configurations are not run again", VALUE_NONE,
     NULL},
    {OPT_FORCE, "force", NULL, "replaces the results of another configuration in the folder", VALUE_NONE, NULL},
    {OPT_THREADS, "threads", "N", "cores to use (default: all; ranks on the same machine share them)", VALUE_TEXT,
     NULL},
    {OPT_DISTRIBUTE, "distribute", "WHAT",
     "under mpirun or srun, what is spread over the ranks: configurations and\nrepetitions (cells), or the agents of "
     "each "
     "run (agents); default auto: agents if a\nconfiguration does not fit a rank",
     VALUE_WORDS, "auto cells agents"},
    {OPT_CHECKPOINT, "checkpoint", "N",
     "if agents are spread over ranks: saves the state every N rounds, or every\nN seconds with Ns (default: 300s)",
     VALUE_TEXT, NULL},
    {OPT_NPY, "npy", NULL, "also writes the curves as .npy files, in FOLDER/arrays", VALUE_NONE, NULL},
    {OPT_MODELS, "save-models", NULL, "also writes the trained model of each configuration, in FOLDER/models",
     VALUE_NONE, NULL},
    {OPT_NO_FIGURES, "no-figures", NULL, "does not call gnuplot; `reef plot FOLDER` draws the figures later",
     VALUE_NONE, NULL},
    {'q', "quiet", NULL, "no progress, no warnings and no summary", VALUE_NONE, NULL},
};

static bool read_distribute(const char *text, reef_distribute *distribute)
{
    static const char *const words[] = {"auto", "cells", "agents"};
    int i = 0;
    while (i < 3 && strcmp(text, words[i]) != 0) {
        i++;
    }
    *distribute = (reef_distribute)i;
    return i < 3;
}

/* 500: rounds; 60s: seconds. */
static bool read_checkpoint(const char *text, arguments *a)
{
    char *end = NULL;
    double number = strtod(text, &end);
    bool seconds = end != text && strcmp(end, "s") == 0;
    if (end == text || (*end != '\0' && !seconds) || !(number >= (seconds ? 0.001 : 1) && number <= 1e15)) {
        return false;
    }
    a->checkpoint_seconds = seconds ? number : 0;
    a->checkpoint_rounds = seconds ? 0 : (int64_t)number;
    return true;
}

static int take_option(void *user, int code, const char *value)
{
    arguments *a = user;
    switch (code) {
    case 'o':
        a->folder = value;
        return value[0] && strcmp(value, "-") != 0 ? EXIT_DONE
                                                   : bad_usage(&command_run, "-o needs a folder, not", value);
    case OPT_SET:
        if (a->override_count == OVERRIDES_MAX) {
            return bad_usage(&command_run, "too many --set", NULL);
        }
        a->overrides[a->override_count++] = value;
        return EXIT_DONE;
    case OPT_THREADS:
        return read_whole(value, 0, REEF_THREADS_MAX, &a->threads)
                   ? EXIT_DONE
                   : bad_usage(&command_run, "--threads takes a number from 0 to 1024, not", value);
    case OPT_DISTRIBUTE:
        return read_distribute(value, &a->distribute)
                   ? EXIT_DONE
                   : bad_usage(&command_run, "--distribute takes auto, cells or agents, not", value);
    case OPT_CHECKPOINT:
        return read_checkpoint(value, a)
                   ? EXIT_DONE
                   : bad_usage(&command_run, "--checkpoint takes rounds (500) or seconds (60s), not", value);
    case OPT_FORCE:
        a->force = true;
        return EXIT_DONE;
    case OPT_RESUME:
        a->resume = true;
        return EXIT_DONE;
    case OPT_NPY:
        a->npy = true;
        return EXIT_DONE;
    case OPT_MODELS:
        a->models = true;
        return EXIT_DONE;
    case OPT_NO_FIGURES:
        a->no_figures = true;
        return EXIT_DONE;
    default:
        a->quiet = true;
        return EXIT_DONE;
    }
}

static int read_arguments(int argc, char **argv, arguments *a)
{
    int code = read_options(&command_run, &argc, argv, take_option, a);
    if (code == EXIT_DONE && argc != 2) {
        code = argc < 2 ? bad_usage(&command_run, "the experiment is missing", NULL)
                        : bad_usage(&command_run, "one experiment at a time, not also", argv[2]);
    }
    a->file = argc > 1 ? argv[1] : NULL;
    return code;
}

/* ---- progress ---- */

/* The newest steady state of a rule, or of everything where the rule does not vary. */
typedef struct rule_value {
    char name[NAME_SIZE];
    double value;
} rule_value;

typedef struct display {
    const reef_experiment *experiment;
    bool terminal;
    double last;         /* second of the last line */
    ptrdiff_t rule_axis; /* or -1 */
    rule_value rules[RULES_SHOWN];
    int rule_count;
    const char *metric;
} display;

static void find_rule_axis(display *d)
{
    d->rule_axis = reef_experiment_axes(d->experiment) - 1;
    while (d->rule_axis >= 0 && strcmp(reef_experiment_axis(d->experiment, d->rule_axis), "rule") != 0) {
        d->rule_axis--;
    }
}

/* Remembers the value of the cell that has just been finished. */
static void note_cell(display *d, const reef_progress *p)
{
    char name[NAME_SIZE] = "";
    int i = 0;
    if (p->finished < 0) {
        return;
    }
    (void)reef_experiment_value(d->experiment, p->finished, d->rule_axis, name, sizeof name);
    while (i < d->rule_count && strcmp(d->rules[i].name, name) != 0) {
        i++;
    }
    if (i < RULES_SHOWN) {
        d->rule_count += i == d->rule_count;
        (void)snprintf(d->rules[i].name, sizeof d->rules[i].name, "%s", name);
        d->rules[i].value = p->value;
    }
    d->metric = p->metric;
}

/* "msd: mean 19.9, ref -47.7", as much as there is room for. */
static void describe_rules(const display *d, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < d->rule_count && used + NAME_SIZE + 20 < size; i++) {
        const rule_value *r = &d->rules[i];
        int length = snprintf(text + used, size - used, "%s%s%s%s%.4g", i ? "" : d->metric, i ? ", " : ": ", r->name,
                              r->name[0] ? " " : "", r->value);
        used += length > 0 ? (size_t)length : 0;
    }
}

static void show(void *user, const reef_progress *p)
{
    display *d = user;
    char rules[RULES_SIZE];
    double part = p->items ? (double)p->items_done / (double)p->items : 1;
    double left = part > 0 ? p->seconds * (1 - part) / part : 0;
    double rate = p->seconds > 0 ? (double)p->items_done / p->seconds : 0;
    note_cell(d, p);
    describe_rules(d, rules, sizeof rules);
    if (d->terminal) {
        char bar[BAR + 1];
        for (int i = 0; i < BAR; i++) {
            bar[i] = i < (int)(part * BAR) ? '#' : '.';
        }
        bar[BAR] = '\0';
        fprintf(stderr, "\r\033[K[%s] %td of %td configurations, %.1f blocks/s, %.0f s left  %.*s", bar, p->cells_done,
                p->cells, rate, left, WIDTH - BAR - 50, rules);
    } else if (p->seconds - d->last > 10) {
        d->last = p->seconds;
        fprintf(stderr, "%.0f s: %td of %td configurations, %.1f blocks/s, about %.0f s left; %s\n", p->seconds,
                p->cells_done, p->cells, rate, left, rules);
    }
}

/* ---- run ---- */

int experiment_exit_code(reef_status status)
{
    switch (status) {
    case REEF_E_NOMEM:
    case REEF_E_OVERFLOW:
        return EXIT_FAILED;
    case REEF_E_FILE:
        return EXIT_MALFORMED;
    default:
        return EXIT_USAGE;
    }
}

int results_finish(const char *name, const char *folder, bool figures, bool summary)
{
    reef_error error;
    int drawn = figures ? plot_folder(folder) : 0;
    if (drawn < 0) {
        fprintf(stderr, "reef %s: no pictures: %s\n", name,
                drawn == PLOT_FAILED ? "gnuplot failed" : "gnuplot not found");
    }
    if (reef_experiment_report(NULL, folder, &error) != REEF_OK) {
        fprintf(stderr, "reef %s: %s\n", name, error.text);
        return EXIT_FAILED;
    }
    if (summary) {
        print_table(folder);
    }
    return EXIT_DONE;
}

/* Pictures, report and summary of a run that is done. */
static int finish(const reef_experiment *e, const arguments *a, const char *folder,
                  const reef_experiment_outcome *outcome)
{
    if (outcome->damaged > 0) {
        fprintf(stderr, "reef run: %td damaged file%s in %s; the results were computed again\n", outcome->damaged,
                plural(outcome->damaged), printable_path(folder));
    }
    int code = results_finish("run", folder, !a->no_figures, !a->quiet);
    if (code == EXIT_DONE && !a->quiet) {
        ptrdiff_t cells = reef_experiment_cells(e);
        printf("%td configuration%s in %.1f s", cells, plural(cells), outcome->seconds);
        if (outcome->reused > 0) {
            printf(" (%td reused from the previous run)", outcome->reused);
        }
        const char *shown = printable_path(folder);
        printf("; results in %s. Report: %s/report.html\n", shown, shown);
    }
    return code;
}

static void take_warnings(void *user, ptrdiff_t cell, const reef_cell_facts *facts)
{
    char text[2048];
    (void)reef_cell_facts_print(facts, text, sizeof text, NULL);
    gather_warnings(user, cell, text);
}

/* What `reef check` would warn of, before anything runs. What cannot be checked is left to the run to complain about. */
static void show_warnings(const reef_experiment *e)
{
    static warnings w; /* too large for a stack */
    w = (warnings){.experiment = e};
    if (reef_experiment_check_all(e, take_warnings, &w, NULL) == REEF_OK) {
        print_warnings(&w, stderr);
    }
}

static int run_loaded(const reef_experiment *e, const arguments *a, const char *folder, const reef_engine *engine)
{
    display d = {.experiment = e, .terminal = isatty(STDERR_FILENO) == 1};
    find_rule_axis(&d);
    reef_error error;
    reef_experiment_outcome outcome;
    const reef_experiment_options wanted = {.folder = folder,
                                            .resume = a->resume,
                                            .force = a->force,
                                            .arrays = a->npy,
                                            .models = a->models,
                                            .progress = a->quiet ? NULL : show,
                                            .user = &d,
                                            .stop = &stop_wanted,
                                            .engine = engine,
                                            .distribute = a->distribute,
                                            .checkpoint_rounds = a->checkpoint_rounds,
                                            .checkpoint_seconds = a->checkpoint_seconds};
    if (!a->quiet) {
        show_warnings(e);
    }
    stop_on_signals();
    reef_status status = reef_experiment_run(e, &wanted, &outcome, &error);
    if (d.terminal && !a->quiet) {
        fprintf(stderr, "\r\033[K");
    }
    if (engine && engine->rank > 0) { /* only rank 0 prints */
        return status == REEF_OK && !outcome.stopped ? EXIT_DONE : EXIT_FAILED;
    }
    if (status != REEF_OK) {
        fprintf(stderr, "reef run: %s\n", error.text);
        return EXIT_FAILED;
    }
    if (outcome.stopped) {
        fprintf(stderr, "reef run: interrupted; finished configurations are in %s, resume with --resume\n",
                printable_path(folder));
        return EXIT_FAILED;
    }
    return finish(e, a, folder, &outcome);
}

/* The ranks of one machine share its cores. */
static ptrdiff_t threads_for(const arguments *a, const reef_engine *engine)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (a->threads > 0 || !engine || engine->sharing < 2 || cores < 1) {
        return a->threads;
    }
    return cores > engine->sharing ? cores / engine->sharing : 1;
}

/* With an engine all ranks load, and fail together. */
static int load_and_run(const arguments *a, const reef_engine *engine)
{
    char folder[PATH_SIZE];
    reef_context *context = NULL;
    reef_experiment *e = NULL;
    reef_error error = {REEF_OK, ""};
    int code = EXIT_DONE;
    reef_status status = plugins_context(&context, &error);
    if (status == REEF_OK) {
        status = reef_context_set_threads(context, threads_for(a, engine), &error);
    }
    if (status == REEF_OK) {
        status = load_experiment(context, &e, a->file, a->overrides, a->override_count, &error);
    }
    if (engine) {
        status = engine->ops->agree(engine, status, &error);
    }
    if (status == REEF_OK) {
        (void)snprintf(folder, sizeof folder, "results/%s", reef_experiment_name(e));
        code = run_loaded(e, a, a->folder ? a->folder : folder, engine);
    } else {
        code = experiment_exit_code(status);
        if (!engine || engine->rank == 0) {
            fprintf(stderr, "reef run: %s\n", error.text);
        }
    }
    reef_experiment_destroy(&e);
    reef_context_destroy(&context);
    return code;
}

static int run_run(int argc, char **argv)
{
    arguments a = {0};
    reef_error error;
    bool ranks = ranks_wanted();
    if (ranks && ranks_number() > 0 && !freopen("/dev/null", "w", stdout)) {
        return EXIT_FAILED; /* only rank 0 prints */
    }
    int code = read_arguments(argc, argv, &a);
    if (code) {
        return code;
    }
    if (ranks && a.file && strcmp(a.file, "-") == 0) {
        return bad_usage(&command_run, "several ranks cannot share standard input; give a file, not", a.file);
    }
    reef_engine *engine = ranks ? ranks_start(&error) : NULL;
    if (ranks && !engine) {
        if (ranks_number() == 0) {
            fprintf(stderr, "reef run: started on several ranks, but %s\n", error.text);
        }
        return EXIT_USAGE;
    }
    a.quiet = a.quiet || (engine && engine->rank > 0);
    code = load_and_run(&a, engine);
    ranks_stop(&engine);
    return code;
}

const command command_run = {
    "run",
    "run an experiment described by a YAML file",
    "Usage: reef run EXPERIMENT.yaml [OPTIONS]\n\n"
    "Runs every configuration (combination of the lists in the file) with all its repetitions, on all cores, and "
    "writes\n"
    "tables, figures and report.html to a folder. Everything is checked before anything runs, and warnings of `reef "
    "check`\n"
    "are shown. - reads the experiment from standard input. `reef init` writes a file to start from.\n",
    OPTIONS(options),
    "Exit codes: 0 done, 1 the run failed or was stopped, 2 wrong usage or configuration, 3 a file cannot be read.\n",
    VALUE_EXPERIMENT,
    NULL,
    run_run,
};
