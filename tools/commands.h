/* The subcommands of `reef`. Each takes its own arguments (argv[0] is its name) and returns an exit code.
 *
 * A command's options stand in one table, which drives reading them, `--help` and the completion of shells. */
#ifndef REEF_TOOLS_COMMANDS_H
#define REEF_TOOLS_COMMANDS_H

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>

/* 0: done; 1: the job failed; 2: the command line or a configuration is wrong; 3: a file is malformed or cannot be read. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_MALFORMED = 3 };

/* What an option's value or a command's argument is, for completion. */
typedef enum value_kind {
    VALUE_NONE,
    VALUE_TEXT, /* nothing can be guessed */
    VALUE_FILE,
    VALUE_FOLDER,
    VALUE_EXPERIMENT, /* .yaml file */
    VALUE_MODEL,      /* .safetensors or .npy file */
    VALUE_RULE,
    VALUE_NAME,  /* of a rule, attack, graph, ..., or a word of the row */
    VALUE_WORDS, /* one of the words of the row */
} value_kind;

typedef struct option_row {
    int code;          /* a letter: also -x; from 256 on: long form only */
    const char *name;  /* without -- */
    const char *value; /* name of the value in the help, NULL: takes none */
    const char *help;  /* may have several lines */
    value_kind kind;
    const char *words; /* "majority trusted" */
} option_row;

typedef struct command {
    const char *name;
    const char *summary; /* one line for `reef help` */
    const char *usage;   /* what `reef NAME --help` prints before the options */
    const option_row *options;
    int option_count;
    const char *more; /* and behind them; or NULL */
    value_kind argument;
    const char *words; /* of the argument */
    int (*run)(int argc, char **argv);
} command;

#define OPTIONS(table) (table), (int)(sizeof(table) / sizeof *(table))

extern const command command_agent;
extern const command command_aggregate;
extern const command command_bench;
extern const command command_broker;
extern const command command_check;
extern const command command_compare;
extern const command command_completion;
extern const command command_dash;
extern const command command_demo;
extern const command command_doctor;
extern const command command_init;
extern const command command_keys;
extern const command command_list;
extern const command command_plot;
extern const command command_proof;
extern const command command_run;
extern const command command_swarm;

/* reef.c: the commands in their order; NULL behind the last. */
const command *command_at(int index);

/* ---- options.c ---- */

void print_usage(const command *c);
/* "reef NAME: what which; see `reef NAME --help`"; returns EXIT_USAGE. */
int bad_usage(const command *c, const char *what, const char *which);
/* Hands every option with its value (or NULL) to take, and leaves the other arguments at argv[1..*count]. take returns EXIT_DONE or
 * the code to end with. */
int read_options(const command *c, int *argc, char **argv, int (*take)(void *user, int code, const char *value),
                 void *user);
/* Bytes of the control character that the text, in UTF-8, begins with, and its number; 0: it begins with none. A terminal would obey it, or
 * it turns text round or shows nothing, so that a name looks like another. */
int control_length(const char *text, unsigned long *code);
/* Copies as much of the end of `text` as buffer holds, for the terminal: bytes of control characters become '?'. */
const char *printable(const char *text, char *buffer, size_t size);
/* The same for a path as a whole; valid until the next call. */
const char *printable_path(const char *path);
/* A whole number within [least, most]. */
bool read_whole(const char *text, long least, long most, long *number);

/* ---- cmd_plot.c ---- */

/* Draws what `reef run` has prepared in a results folder; returns the number of pictures, or one of these. */
enum { PLOT_NO_GNUPLOT = -1, PLOT_FAILED = -2 };
int plot_folder(const char *results);

/* ---- cmd_run.c ---- */

/* Pictures if wanted, the report, and the table of the summary on the terminal if wanted; an exit code. */
int results_finish(const char *name, const char *folder, bool figures, bool summary);

/* Exit code when an experiment cannot be loaded: 2 if its text is wrong, 3 if a file cannot be read, 1 otherwise. */
int experiment_exit_code(reef_status status);

#endif
