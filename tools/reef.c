/* reef: the command. Finds the subcommand and hands over. */
#include "commands.h"
#include "plugins.h"
#include "signals.h"
#include "terminal.h"

#include <reef/reef.h>
#include <stdio.h>
#include <string.h>

static const command *const commands[] = {
    &command_run,   &command_check, &command_plot,  &command_compare, &command_init,       &command_aggregate,
    &command_list,  &command_demo,  &command_bench, &command_doctor,  &command_keys,       &command_broker,
    &command_agent, &command_swarm, &command_dash,  &command_proof,   &command_completion,
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

const command *command_at(int index)
{
    return index >= 0 && index < COMMAND_COUNT ? commands[index] : NULL;
}

static void print_help(FILE *to)
{
    fprintf(
        to,
        "Usage: reef [--plugin PATH]... COMMAND [ARGUMENTS]\n\n"
        "Byzantine-robust aggregation and learning: combines models from participants some of whom may be faulty or\n"
        "malicious.\n\n");
    fprintf(to, "%sCommands:%s\n", tint_on(to, TINT_HEADING), tint_off(to));
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    fprintf(to, "  %-10s %s\n", "help", "show this, or the help of a command");
    fprintf(to, "  %-10s %s\n", "version", "print the version");
    fprintf(to, "\n--plugin PATH loads your own rules, attacks and problems from a shared library, as does "
                "REEF_PLUGINS=PATH:PATH in\n"
                "the environment. NO_COLOR=1 switches colours off.\n");
    fprintf(to, "\n`reef COMMAND --help` shows the options of a command. Exit codes: 0 done, 1 the job failed, 2 wrong "
                "usage or "
                "configuration,\n3 a file is malformed or cannot be read.\n");
}

static const command *find(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

static const char *name_at(const void *user, int i)
{
    (void)user;
    return i < COMMAND_COUNT ? commands[i]->name : NULL;
}

static int unknown(const char *name)
{
    char shown[80];
    int meant = nearest_word(name, name_at, NULL);
    (void)printable(name, shown, sizeof shown);
    if (meant >= 0) {
        fprintf(stderr, "reef: there is no command '%s'; did you mean '%s'? `reef help` lists all commands\n", shown,
                commands[meant]->name);
    } else {
        fprintf(stderr, "reef: there is no command '%s'; `reef help` lists all commands\n", shown);
    }
    return EXIT_USAGE;
}

static int help(int argc, char **argv)
{
    static const char *const general[] = {"help",    "--help",    "-h",
                                          "version", "--version", "-V"}; /* explained by the overview */
    bool overview = argc < 2;
    for (int i = 0; !overview && i < (int)(sizeof general / sizeof general[0]); i++) {
        overview = strcmp(argv[1], general[i]) == 0;
    }
    if (overview) {
        print_help(stdout);
        return EXIT_DONE;
    }
    const command *wanted = find(argv[1]);
    if (!wanted) {
        return unknown(argv[1]);
    }
    print_usage(wanted);
    return EXIT_DONE;
}

static int is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (is_one_of(name, "--version", "version") || strcmp(name, "-V") == 0) {
        printf("reef %s\n", reef_version());
        return EXIT_DONE;
    }
    if (is_one_of(name, "--help", "-h") || strcmp(name, "help") == 0) {
        return help(argc - 1, argv + 1);
    }
    const command *wanted = find(name);
    if (!wanted) {
        return unknown(name);
    }
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_one_of(argv[i], "--help", "-h")) {
            print_usage(wanted);
            return EXIT_DONE;
        }
    }
    int code = plugins_try();
    return code == EXIT_DONE ? wanted->run(argc - 1, argv + 1) : code;
}

int main(int argc, char **argv)
{
    prepare_process();
    int code = plugins_take(&argc, &argv);
    code = code == EXIT_DONE ? dispatch(argc, argv) : code;
    /* a full disk or a closed pipe must not look like success */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_DONE) {
        perror("reef: writing the output");
        code = EXIT_FAILED;
    }
    return code;
}
