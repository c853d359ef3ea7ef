/* reef: the command. Finds the subcommand and hands over. */
#include "commands.h"

#include <reef/reef.h>
#include <stdio.h>
#include <string.h>

static const command *const commands[] = {
    &command_run,  &command_check, &command_plot,  &command_compare, &command_init,       &command_aggregate,
    &command_list, &command_demo,  &command_bench, &command_doctor,  &command_completion,
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

const command *command_at(int index)
{
    return index >= 0 && index < COMMAND_COUNT ? commands[index] : NULL;
}

static void print_help(FILE *to)
{
    fprintf(to, "Usage: reef COMMAND [ARGUMENTS]\n\n"
                "Robust and efficient aggregation of models from agents some of whom lie.\n\nCommands:\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    fprintf(to, "  %-10s %s\n", "help", "show this, or the help of a command");
    fprintf(to, "  %-10s %s\n", "version", "print the version");
    fprintf(to, "\n`reef COMMAND --help` tells more. Exit codes: 0 done, 1 the job failed, 2 wrong usage or "
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

/* The command with the most first letters in common, at least two; or NULL. */
static const command *nearest(const char *name)
{
    const command *best = NULL;
    size_t most = 1;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        size_t same = 0;
        while (name[same] && name[same] == commands[i]->name[same]) {
            same++;
        }
        best = same > most ? commands[i] : best;
        most = same > most ? same : most;
    }
    return best;
}

static int unknown(const char *name)
{
    const command *meant = nearest(name);
    if (meant) {
        fprintf(stderr, "reef: there is no command '%s'; did you mean '%s'? `reef help` lists them\n", name,
                meant->name);
    } else {
        fprintf(stderr, "reef: there is no command '%s'; `reef help` lists them\n", name);
    }
    return EXIT_USAGE;
}

static int help(int argc, char **argv)
{
    if (argc < 2) {
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
    return wanted->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int code = dispatch(argc, argv);
    /* a full disk or a closed pipe must not look like success */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_DONE) {
        perror("reef: writing the output");
        code = EXIT_FAILED;
    }
    return code;
}
