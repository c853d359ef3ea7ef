/* What `reef run` and `reef check` have in common: reading an experiment, and the warnings about it. */
#ifndef REEF_TOOLS_EXPERIMENT_H
#define REEF_TOOLS_EXPERIMENT_H

#include <reef/experiment.h>
#include <stdio.h>

/* From a file or, if path is "-", from standard input. */
reef_status load_experiment(reef_context *context, reef_experiment **experiment, const char *path,
                            const char *const *overrides, ptrdiff_t count, reef_error *error);
/* What varies, in a configuration: "rule=mean malicious=2"; "" if nothing does. */
void describe_configuration(const reef_experiment *experiment, ptrdiff_t cell, char *text, size_t size);

enum { WARNINGS_MAX = 64, WARNING_SIZE = 200 };

/* Warnings that say the same are counted together. */
typedef struct warnings {
    const reef_experiment *experiment;
    ptrdiff_t total;
    int kinds; /* different ones, WARNINGS_MAX at most */
    struct {
        char text[WARNING_SIZE];
        ptrdiff_t count, first; /* configurations that have it, and the first of these */
    } kind[WARNINGS_MAX];
} warnings;

/* Adds those of a configuration. `text` is from reef_cell_facts_print. */
void gather_warnings(warnings *w, ptrdiff_t cell, const char *text);
/* One line each, with how many configurations it is about. */
void print_warnings(const warnings *w, FILE *to);

#endif
