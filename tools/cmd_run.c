/* reef run: an experiment from a YAML file to a folder of results. */
#include "commands.h"
#include "ranks.h"

#include <reef/reef.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OVERRIDES_MAX = 64, PATH_SIZE = 4096, BAR = 24, COLUMNS_MAX = 64, ROWS_MAX = 200 };
enum { NAME_SIZE = 40, RULES_SHOWN = 8, RULES_SIZE = 600, WIDTH = 140 };

typedef struct arguments {
    const char *file, *folder;
    const char *overrides[OVERRIDES_MAX];
    ptrdiff_t override_count;
    long threads;
    bool resume, quiet, no_figures, npy, models;
    reef_distribute distribute;
    int64_t checkpoint_rounds;
    double checkpoint_seconds;
} arguments;

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* ---- the command line ---- */

enum { OPT_SET = 256, OPT_RESUME, OPT_THREADS, OPT_DISTRIBUTE, OPT_CHECKPOINT, OPT_NPY, OPT_MODELS, OPT_NO_FIGURES };
static const option_row options[] = {
    {'o', "output", "FOLDER", "where the results go (default: results/NAME)", VALUE_FOLDER, NULL},
    {OPT_SET, "set", "PATH=VALUE", "replaces a value of the file:\n--set strategy.mu=0.05 --set 'rule=[mean, ref]'",
     VALUE_TEXT, NULL},
    {OPT_RESUME, "resume", NULL, "goes on with a run that was stopped; finished cells are not run again", VALUE_NONE,
     NULL},
    {OPT_THREADS, "threads", "N", "cores to use (default: all; of several ranks on a machine, each its share)",
     VALUE_TEXT, NULL},
    {OPT_DISTRIBUTE, "distribute", "WHAT",
     "under mpirun or srun: cells and repetitions over the ranks (cells), or the\nagents of each run (agents); default "
     "auto: agents if a cell does not fit a rank",
     VALUE_WORDS, "auto cells agents"},
    {OPT_CHECKPOINT, "checkpoint", "N",
     "with agents over ranks: state saved every N rounds, or Ns: every N seconds\n(default: 300s)", VALUE_TEXT, NULL},
    {OPT_NPY, "npy", NULL, "also writes the curves as .npy files, in FOLDER/arrays", VALUE_NONE, NULL},
    {OPT_MODELS, "save-models", NULL, "also writes each cell's trained model, in FOLDER/models", VALUE_NONE, NULL},
    {OPT_NO_FIGURES, "no-figures", NULL, "does not call gnuplot; `reef plot FOLDER` draws later", VALUE_NONE, NULL},
    {'q', "quiet", NULL, "no progress and no summary", VALUE_NONE, NULL},
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
        return value[0] ? EXIT_DONE : bad_usage(&command_run, "-o needs a folder", NULL);
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
        fprintf(stderr, "\r\033[K[%s] cell %td of %td, %.1f blocks/s, %.0f s left  %.*s", bar, p->cells_done, p->cells,
                rate, left, WIDTH - BAR - 50, rules);
    } else if (p->seconds - d->last > 10) {
        d->last = p->seconds;
        fprintf(stderr, "%.0f s: cell %td of %td, %.1f blocks/s, about %.0f s left; %s\n", p->seconds, p->cells_done,
                p->cells, rate, left, rules);
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

/* The linear values, the errors and the full configuration stay in the file. */
static bool is_shown(const char *name, bool decibels)
{
    static const char *const linear[] = {"msd", "excess", "consensus"};
    size_t length = strlen(name);
    bool hidden = (length > 3 && strcmp(name + length - 3, "_se") == 0) || strncmp(name, "config.", 7) == 0;
    for (size_t i = 0; i < sizeof linear / sizeof linear[0]; i++) {
        hidden = hidden || strcmp(name, linear[i]) == 0;
    }
    return !hidden && !(decibels && strcmp(name, "oracle") == 0);
}

/* Numbers with more digits than one reads are shortened in place. */
static char *shorten(char *field)
{
    char *end = NULL;
    double number = strtod(field, &end);
    size_t length = strlen(field);
    if (length > 8 && end == field + length) {
        (void)snprintf(field, length + 1, "%.6g", number);
    }
    return field;
}

/* Widths of the columns: -1 for those that are not shown, 0 before the head has been read. */
static void measure_row(char *line, bool head, int *widths)
{
    int column = 0;
    bool decibels = head && strstr(line, "oracle_db");
    for (char *field = next_field(&line); field && column < COLUMNS_MAX; field = next_field(&line), column++) {
        int width = (int)strlen(shorten(field));
        if (head) {
            widths[column] = is_shown(field, decibels) ? width : -1;
        } else if (widths[column] >= 0 && width > widths[column]) {
            widths[column] = width;
        }
    }
}

static void print_row(char *line, const int *widths)
{
    int column = 0;
    for (char *field = next_field(&line); field && column < COLUMNS_MAX; field = next_field(&line), column++) {
        if (widths[column] >= 0) {
            printf("%s%*s", column ? "  " : "", widths[column], shorten(field));
        }
    }
    printf("\n");
}

/* The summary as a table: read once for the widths, once for the rows. */
static void print_summary(const char *folder)
{
    char path[PATH_SIZE + 16];
    char line[16 * PATH_SIZE];
    int widths[COLUMNS_MAX] = {0};
    (void)snprintf(path, sizeof path, "%s/summary.csv", folder);
    for (int pass = 0; pass < 2; pass++) {
        FILE *file = fopen(path, "r");
        for (int i = 0; file && i < ROWS_MAX && fgets(line, sizeof line, file); i++) {
            line[strcspn(line, "\n")] = '\0';
            if (pass == 0) {
                measure_row(line, i == 0, widths);
            } else {
                print_row(line, widths);
            }
        }
        if (file) {
            (void)fclose(file);
        }
    }
}

/* Pictures, report and summary of a run that is done. */
static int finish(const reef_experiment *e, const arguments *a, const char *folder,
                  const reef_experiment_outcome *outcome)
{
    reef_error error;
    int drawn = a->no_figures ? 0 : plot_folder(folder);
    if (drawn < 0) {
        fprintf(stderr, "reef run: no pictures: %s\n",
                drawn == PLOT_FAILED ? "gnuplot failed" : "gnuplot is not there");
    }
    if (reef_experiment_report(NULL, folder, &error) != REEF_OK) {
        fprintf(stderr, "reef run: %s\n", error.text);
        return EXIT_FAILED;
    }
    if (!a->quiet) {
        print_summary(folder);
        printf("%td cells (%td taken from before) in %.1f s; results in %s, to look at: %s/report.html\n",
               reef_experiment_cells(e), outcome->reused, outcome->seconds, folder, folder);
    }
    return EXIT_DONE;
}

static int run_loaded(const reef_experiment *e, const arguments *a, const char *folder, const reef_engine *engine)
{
    display d = {.experiment = e, .terminal = isatty(STDERR_FILENO) == 1};
    find_rule_axis(&d);
    reef_error error;
    reef_experiment_outcome outcome;
    const reef_experiment_options wanted = {.folder = folder,
                                            .resume = a->resume,
                                            .arrays = a->npy,
                                            .models = a->models,
                                            .progress = a->quiet ? NULL : show,
                                            .user = &d,
                                            .stop = &stop,
                                            .engine = engine,
                                            .distribute = a->distribute,
                                            .checkpoint_rounds = a->checkpoint_rounds,
                                            .checkpoint_seconds = a->checkpoint_seconds};
    struct sigaction action = {.sa_handler = on_signal};
    action.sa_flags = (int)SA_RESETHAND; /* a second Ctrl-C ends it at once */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    reef_status status = reef_experiment_run(e, &wanted, &outcome, &error);
    if (d.terminal && !a->quiet) {
        fprintf(stderr, "\r\033[K");
    }
    if (engine && engine->rank > 0) { /* rank 0 says it */
        return status == REEF_OK && !outcome.stopped ? EXIT_DONE : EXIT_FAILED;
    }
    if (status != REEF_OK) {
        fprintf(stderr, "reef run: %s\n", error.text);
        return EXIT_FAILED;
    }
    if (outcome.stopped) {
        fprintf(stderr, "reef run: stopped; the finished cells are in %s, `--resume` goes on\n", folder);
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
    reef_status status = reef_context_create(&context, NULL, &error);
    status = status == REEF_OK ? reef_context_set_threads(context, threads_for(a, engine), &error) : status;
    status = status == REEF_OK ? reef_experiment_load(context, &e, a->file, a->overrides, a->override_count, &error)
                               : status;
    status = engine ? engine->ops->agree(engine, status, &error) : status;
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
        return EXIT_FAILED; /* one rank speaks */
    }
    int code = read_arguments(argc, argv, &a);
    if (code) {
        return code;
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
    "Runs every combination of the lists in the file, repeated as often as it says, on all cores, and writes tables,\n"
    "figures and report.html to a folder. Everything is checked before anything runs. `reef init` writes a file to\n"
    "start from.\n",
    OPTIONS(options),
    "Exit codes: 0 done, 1 the run failed or was stopped, 2 wrong usage or configuration, 3 a file cannot be read.\n",
    VALUE_EXPERIMENT,
    NULL,
    run_run,
};
