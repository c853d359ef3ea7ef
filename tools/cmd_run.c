/* reef run: an experiment from a YAML file to a folder of results. */
#include "commands.h"

#include <reef/reef.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OVERRIDES_MAX = 64, TEXT_SIZE = 512, PATH_SIZE = 4096, BAR = 24, COLUMNS_MAX = 64, ROWS_MAX = 200 };

typedef struct arguments {
    const char *file, *folder;
    const char *overrides[OVERRIDES_MAX];
    ptrdiff_t override_count;
    ptrdiff_t threads;
    bool resume, quiet, no_figures;
} arguments;

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* ---- the command line ---- */

static int usage(const char *what, const char *which)
{
    fprintf(stderr, "reef run: %s%s; see `reef run --help`\n", what, which);
    return EXIT_USAGE;
}

/* The value of an option: what follows '=' in a long option, or the next argument; NULL if there is none. */
static const char *value_of(int argc, char **argv, int *i, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) == 0 && argv[*i][length] == '=') {
        return argv[*i] + length + 1;
    }
    return *i + 1 < argc ? argv[++*i] : NULL;
}

static bool is_option(const char *argument, const char *name)
{
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 && (argument[length] == '\0' || argument[length] == '=');
}

static bool read_threads(const char *text, ptrdiff_t *threads)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);
    *threads = number;
    return end != text && *end == '\0' && number >= 0 && number <= REEF_THREADS_MAX;
}

/* 0, or the exit code after a message. */
static int read_option(int argc, char **argv, int *i, arguments *a)
{
    const char *argument = argv[*i];
    if (strcmp(argument, "--resume") == 0) {
        a->resume = true;
    } else if (strcmp(argument, "--no-figures") == 0) {
        a->no_figures = true;
    } else if (strcmp(argument, "--quiet") == 0 || strcmp(argument, "-q") == 0) {
        a->quiet = true;
    } else if (strcmp(argument, "-o") == 0 || is_option(argument, "--output")) {
        a->folder = value_of(argc, argv, i, "--output");
        return a->folder && a->folder[0] ? 0 : usage("-o needs a folder", "");
    } else if (is_option(argument, "--set")) {
        const char *value = value_of(argc, argv, i, "--set");
        if (!value || a->override_count == OVERRIDES_MAX) {
            return usage(value ? "too many --set" : "--set needs path=value", "");
        }
        a->overrides[a->override_count++] = value;
    } else if (is_option(argument, "--threads")) {
        const char *value = value_of(argc, argv, i, "--threads");
        return value && read_threads(value, &a->threads) ? 0 : usage("--threads needs a number from 0 to 1024", "");
    } else {
        return usage("there is no option ", argument);
    }
    return 0;
}

static int read_arguments(int argc, char **argv, arguments *a)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            int code = read_option(argc, argv, &i, a);
            if (code) {
                return code;
            }
        } else if (a->file) {
            return usage("one experiment at a time, not also ", argv[i]);
        } else {
            a->file = argv[i];
        }
    }
    return a->file ? 0 : usage("the experiment is missing", "");
}

/* ---- progress ---- */

typedef struct display {
    const reef_experiment *experiment;
    bool terminal;
    double last; /* seconds at the last plain line */
    char newest[TEXT_SIZE];
} display;

static void describe_cell(const reef_experiment *e, ptrdiff_t cell, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (ptrdiff_t a = 0; a < reef_experiment_axes(e) && used < size; a++) {
        char value[128];
        (void)reef_experiment_value(e, cell, a, value, sizeof value);
        int more = snprintf(text + used, size - used, "%s%s=%s", a ? " " : "", reef_experiment_axis(e, a), value);
        used += more > 0 ? (size_t)more : 0;
    }
}

static void note_cell(display *d, const reef_progress *p)
{
    char cell[TEXT_SIZE / 2];
    if (p->finished < 0) {
        return;
    }
    describe_cell(d->experiment, p->finished, cell, sizeof cell);
    (void)snprintf(d->newest, sizeof d->newest, "%s: %s %.4g", cell, p->metric, p->value);
}

static void show(void *user, const reef_progress *p)
{
    display *d = user;
    double part = p->items ? (double)p->items_done / (double)p->items : 1;
    double left = part > 0 ? p->seconds * (1 - part) / part : 0;
    note_cell(d, p);
    if (d->terminal) {
        char bar[BAR + 1];
        for (int i = 0; i < BAR; i++) {
            bar[i] = i < (int)(part * BAR) ? '#' : '.';
        }
        bar[BAR] = '\0';
        fprintf(stderr, "\r\033[K[%s] %td of %td cells, %.0f s left  %.60s", bar, p->cells_done, p->cells, left,
                d->newest);
    } else if (p->seconds - d->last > 10) {
        d->last = p->seconds;
        fprintf(stderr, "%.0f s: %td of %td cells, about %.0f s left; %s\n", p->seconds, p->cells_done, p->cells, left,
                d->newest);
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

/* Cuts the next field off a line of csv, without its quotes; NULL at the end. */
static char *next_field(char **rest)
{
    char *field = *rest;
    char *to = field;
    bool quoted = field && *field == '"';
    if (!field) {
        return NULL;
    }
    char *from = field + quoted;
    while (*from && (quoted || *from != ',')) {
        if (quoted && *from == '"') {
            quoted = from[1] == '"';
            from += 1;
            if (!quoted) {
                continue;
            }
        }
        *to++ = *from++;
    }
    *rest = *from == ',' ? from + 1 : NULL;
    *to = '\0';
    return field;
}

/* The linear values and their errors stay in the file. */
static bool is_shown(const char *name)
{
    size_t length = strlen(name);
    bool error = length > 3 && strcmp(name + length - 3, "_se") == 0;
    return !error && strcmp(name, "msd") != 0 && strcmp(name, "excess") != 0 && strcmp(name, "consensus") != 0;
}

/* Widths of the columns: -1 for those that are not shown, 0 before the head has been read. */
static void measure_row(char *line, bool head, int *widths)
{
    int column = 0;
    for (char *field = next_field(&line); field && column < COLUMNS_MAX; field = next_field(&line), column++) {
        int width = (int)strlen(field);
        if (head) {
            widths[column] = is_shown(field) ? width : -1;
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
            printf("%s%*s", column ? "  " : "", widths[column], field);
        }
    }
    printf("\n");
}

/* The summary as a table: read once for the widths, once for the rows. */
static void print_summary(const char *folder)
{
    char path[PATH_SIZE + 16];
    char line[2 * PATH_SIZE];
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

static int run_loaded(const reef_experiment *e, const arguments *a, const char *folder)
{
    display d = {.experiment = e, .terminal = isatty(STDERR_FILENO) == 1};
    reef_error error;
    reef_experiment_outcome outcome;
    const reef_experiment_options options = {
        .folder = folder, .resume = a->resume, .progress = a->quiet ? NULL : show, .user = &d, .stop = &stop};
    struct sigaction action = {.sa_handler = on_signal};
    action.sa_flags = (int)SA_RESETHAND; /* a second Ctrl-C ends it at once */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    reef_status status = reef_experiment_run(e, &options, &outcome, &error);
    if (d.terminal && !a->quiet) {
        fprintf(stderr, "\r\033[K");
    }
    if (status != REEF_OK) {
        fprintf(stderr, "reef run: %s\n", error.text);
        return EXIT_FAILED;
    }
    if (outcome.stopped) {
        fprintf(stderr, "reef run: stopped; the finished cells are in %s, `--resume` goes on\n", folder);
        return EXIT_FAILED;
    }
    int drawn = a->no_figures ? 0 : plot_folder(folder);
    if (drawn < 0) {
        fprintf(stderr, "reef run: no pictures: %s\n",
                drawn == PLOT_FAILED ? "gnuplot failed" : "gnuplot is not there");
    }
    if (!a->quiet) {
        print_summary(folder);
        printf("%td cells (%td taken from before) in %.1f s; results in %s\n", reef_experiment_cells(e), outcome.reused,
               outcome.seconds, folder);
    }
    return EXIT_DONE;
}

static int run_run(int argc, char **argv)
{
    arguments a = {0};
    char folder[PATH_SIZE];
    reef_context *context = NULL;
    reef_experiment *e = NULL;
    reef_error error;
    int code = read_arguments(argc, argv, &a);
    if (code) {
        return code;
    }
    reef_status status = reef_context_create(&context, NULL, &error);
    status = status == REEF_OK ? reef_context_set_threads(context, a.threads, &error) : status;
    status =
        status == REEF_OK ? reef_experiment_load(context, &e, a.file, a.overrides, a.override_count, &error) : status;
    if (status == REEF_OK) {
        (void)snprintf(folder, sizeof folder, "results/%s", reef_experiment_name(e));
        code = run_loaded(e, &a, a.folder ? a.folder : folder);
    } else {
        fprintf(stderr, "reef run: %s\n", error.text);
        code = experiment_exit_code(status);
    }
    reef_experiment_destroy(&e);
    reef_context_destroy(&context);
    return code;
}

const command command_run = {
    "run",
    "run an experiment described by a YAML file",
    "Usage: reef run EXPERIMENT.yaml [OPTIONS]\n\n"
    "Runs every combination of the lists in the file, repeated as often as it says, on all cores, and writes\n"
    "summary.csv, curves.csv and manifest.json to a folder. Everything is checked before anything runs.\n\n"
    "  -o, --output FOLDER   where the results go (default: results/NAME)\n"
    "      --set PATH=VALUE  replaces a value of the file: --set strategy.mu=0.05 --set 'rule=[mean, ref]'\n"
    "      --resume          goes on with a run that was stopped; finished cells are not run again\n"
    "      --threads N       cores to use (default: all)\n"
    "      --no-figures      does not call gnuplot; `reef plot FOLDER` draws later\n"
    "  -q, --quiet           no progress and no summary\n\n"
    "Exit codes: 0 done, 1 the run failed or was stopped, 2 wrong usage or configuration, 3 a file cannot be read.\n",
    run_run,
};
