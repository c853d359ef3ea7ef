/* The subcommands of `reef`. Each takes its own arguments (argv[0] is its name) and returns an exit code. */
#ifndef REEF_TOOLS_COMMANDS_H
#define REEF_TOOLS_COMMANDS_H

#include <reef/status.h>

/* 0: done; 1: the job failed; 2: the command line or a configuration is wrong; 3: a file is malformed. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_MALFORMED = 3 };

typedef struct command {
    const char *name;
    const char *summary; /* one line for `reef help` */
    const char *usage;   /* what `reef NAME --help` prints */
    int (*run)(int argc, char **argv);
} command;

extern const command command_aggregate;
extern const command command_demo;
extern const command command_list;
extern const command command_run;
extern const command command_check;
extern const command command_init;
extern const command command_plot;

/* Draws what `reef run` has prepared in a results folder; returns the number of pictures, or one of these. */
enum { PLOT_NO_GNUPLOT = -1, PLOT_FAILED = -2 };
int plot_folder(const char *results);

/* Exit code when an experiment cannot be loaded: 2 if its text is wrong, 3 if a file cannot be read, 1 otherwise. */
int experiment_exit_code(reef_status status);

#endif
