/* reef check: what can be said of an experiment before it runs. */
#include "commands.h"

#include <reef/reef.h>

#include <stdio.h>

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

static int check_all(const reef_experiment *e)
{
    ptrdiff_t warnings = 0;
    for (ptrdiff_t i = 0; i < reef_experiment_cells(e); i++) {
        reef_cell_facts facts;
        reef_error error;
        char text[2048];
        ptrdiff_t found = 0;
        if (reef_experiment_check(e, i, &facts, &error) != REEF_OK) {
            fprintf(stderr, "reef check: %s\n", error.text);
            return EXIT_FAILED;
        }
        print_place(e, i);
        (void)reef_cell_facts_print(&facts, text, sizeof text, &found);
        (void)fputs(text, stdout);
        warnings += found;
    }
    printf("%s: %td cells can be run, %td warnings\n", reef_experiment_name(e), reef_experiment_cells(e), warnings);
    return EXIT_DONE;
}

typedef struct arguments {
    const char *overrides[OVERRIDES_MAX];
    ptrdiff_t count;
} arguments;

enum { OPT_SET = 256 };
static const option_row options[] = {
    {OPT_SET, "set", "PATH=VALUE", "replaces a value of the file, as for `reef run`", VALUE_TEXT, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    arguments *a = user;
    (void)code;
    if (a->count == OVERRIDES_MAX) {
        return bad_usage(&command_check, "too many --set", NULL);
    }
    a->overrides[a->count++] = value;
    return EXIT_DONE;
}

static int run_check(int argc, char **argv)
{
    arguments a = {.count = 0};
    reef_experiment *e = NULL;
    reef_error error;
    int code = read_options(&command_check, &argc, argv, take_option, &a);
    if (code != EXIT_DONE || argc != 2) {
        return code != EXIT_DONE ? code : bad_usage(&command_check, "one experiment is expected", NULL);
    }
    reef_status status = reef_experiment_load(NULL, &e, argv[1], a.overrides, a.count, &error);
    if (status != REEF_OK) {
        fprintf(stderr, "reef check: %s\n", error.text);
        return experiment_exit_code(status);
    }
    code = check_all(e);
    reef_experiment_destroy(&e);
    return code;
}

const command command_check = {
    "check",
    "check an experiment and say what to expect of it",
    "Usage: reef check EXPERIMENT.yaml [OPTIONS]\n\n"
    "Reads an experiment as `reef run` does and prints for each cell of its grid whether every benign agent hears a\n"
    "majority of benign ones, whether the benign agents are connected, how many liars can be borne, and the mean\n"
    "square deviation that theory predicts. Runs nothing.\n",
    OPTIONS(options),
    "Exit codes: 0 it can be run, 2 wrong usage or configuration, 3 a file cannot be read.\n",
    VALUE_EXPERIMENT,
    NULL,
    run_check,
};
