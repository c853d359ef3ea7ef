/* reef completion: scripts for shells, made from the tables of the commands. */
#include "commands.h"

#include <reef/reef.h>
#include <stdio.h>
#include <string.h>

static void print_names(reef_family family)
{
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, family); i++) {
        printf("%s%s", i ? " " : "", reef_kind_at(NULL, family, i)->name);
    }
}

/* Words of a kind, with blanks between them; files and folders are the shell's business. */
static void print_words(value_kind kind, const char *words)
{
    if ((kind == VALUE_WORDS || kind == VALUE_NAME) && words) {
        printf("%s", words);
    }
    for (int f = REEF_FAMILY_RULE; kind == VALUE_NAME && f < REEF_FAMILIES; f++) {
        printf(" ");
        print_names((reef_family)f);
    }
    if (kind == VALUE_RULE) {
        print_names(REEF_FAMILY_RULE);
    }
}

/* ---- bash ---- */

static void bash_values(value_kind kind, const char *words, const char *indent)
{
    printf("%s", indent);
    switch (kind) {
    case VALUE_RULE:
    case VALUE_NAME:
    case VALUE_WORDS:
        printf("COMPREPLY=($(compgen -W '");
        print_words(kind, words);
        printf("' -- \"$word\"))");
        break;
    case VALUE_FOLDER:
        printf("COMPREPLY=($(compgen -d -- \"$word\")); compopt -o filenames");
        break;
    case VALUE_EXPERIMENT:
        printf("COMPREPLY=($(compgen -f -X '!*.y*ml' -- \"$word\") $(compgen -d -- \"$word\")); compopt -o filenames");
        break;
    case VALUE_FILE:
    case VALUE_MODEL:
        printf("COMPREPLY=($(compgen -f -- \"$word\")); compopt -o filenames");
        break;
    case VALUE_NONE:
    case VALUE_TEXT:
        printf("COMPREPLY=()");
        break;
    }
    printf("\n");
}

static void bash_command(const command *c)
{
    printf("    %s)\n        case $before in\n", c->name);
    for (int i = 0; i < c->option_count; i++) {
        const option_row *row = &c->options[i];
        if (row->value) {
            printf("        ");
            if (row->code < 256) {
                printf("-%c | ", row->code);
            }
            printf("--%s)\n", row->name);
            bash_values(row->kind, row->words, "            ");
            printf("            return ;;\n");
        }
    }
    printf("        esac\n        if [[ $word == -* ]]; then\n            COMPREPLY=($(compgen -W '--help");
    for (int i = 0; i < c->option_count; i++) {
        printf(" --%s", c->options[i].name);
    }
    printf("' -- \"$word\"))\n        else\n");
    bash_values(c->argument, c->words, "            ");
    printf("        fi\n        ;;\n");
}

static void print_bash(void)
{
    printf("# Completion of reef for bash; made by `reef completion bash`.\n"
           "_reef() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W 'help version");
    for (int i = 0; command_at(i); i++) {
        printf(" %s", command_at(i)->name);
    }
    printf("' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (int i = 0; command_at(i); i++) {
        bash_command(command_at(i));
    }
    printf("    esac\n}\ncomplete -F _reef reef\n");
}

/* ---- zsh ---- */

/* Text within single quotes of an argument specification: quotes, brackets and colons mean something there. */
static void zsh_text(const char *text)
{
    for (; *text && *text != '\n'; text++) {
        if (*text == '\'') {
            printf("'\\''");
        } else {
            printf(strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
        }
    }
}

static void zsh_values(value_kind kind, const char *words)
{
    switch (kind) {
    case VALUE_RULE:
    case VALUE_NAME:
    case VALUE_WORDS:
        printf("(");
        print_words(kind, words);
        printf(")");
        break;
    case VALUE_FOLDER:
        printf("_files -/");
        break;
    case VALUE_EXPERIMENT:
        printf("_files -g \"*.(yaml|yml)\"");
        break;
    case VALUE_FILE:
        printf("_files");
        break;
    case VALUE_MODEL:
        printf("_files -g \"*.(safetensors|npy)\"");
        break;
    case VALUE_NONE:
    case VALUE_TEXT:
        printf(" ");
        break;
    }
}

static void zsh_option(const option_row *row)
{
    printf(" \\\n                ");
    if (row->code < 256) {
        printf("'(-%c --%s)'{-%c,--%s}'[", row->code, row->name, row->code, row->name);
    } else {
        printf("'--%s[", row->name);
    }
    zsh_text(row->help);
    printf("]");
    if (row->value) {
        printf(":%s:", row->value);
        zsh_values(row->kind, row->words);
    }
    printf("'");
}

static void print_zsh(void)
{
    printf("#compdef reef\n# Completion of reef for zsh; made by `reef completion zsh`.\n_reef() {\n"
           "    local -a commands\n    commands=('help:show the help of a command' 'version:print the version'");
    for (int i = 0; command_at(i); i++) {
        printf("\n        '%s:", command_at(i)->name);
        zsh_text(command_at(i)->summary);
        printf("'");
    }
    printf(")\n    if ((CURRENT == 2)); then\n        _describe command commands\n        return\n    fi\n"
           "    local name=$words[2]\n    shift words\n    ((CURRENT--))\n    case $name in\n");
    for (int i = 0; command_at(i); i++) {
        const command *c = command_at(i);
        printf("        %s)\n            _arguments '(-h --help)'{-h,--help}'[help]'", c->name);
        for (int k = 0; k < c->option_count; k++) {
            zsh_option(&c->options[k]);
        }
        if (c->argument != VALUE_NONE) {
            printf(" \\\n                '*:argument:");
            zsh_values(c->argument, c->words);
            printf("'");
        }
        printf("\n            ;;\n");
    }
    printf("    esac\n}\nif [ \"$funcstack[1]\" = _reef ]; then\n    _reef \"$@\"\nelse\n    compdef _reef reef\nfi\n");
}

/* ---- fish ---- */

static void fish_text(const char *text)
{
    for (; *text && *text != '\n'; text++) {
        printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    }
}

static void fish_values(value_kind kind, const char *words)
{
    if (kind == VALUE_RULE || kind == VALUE_NAME || kind == VALUE_WORDS) {
        printf(" -a '");
        print_words(kind, words);
        printf("'");
    } else if (kind == VALUE_FOLDER) {
        printf(" -a '(__fish_complete_directories)'");
    }
}

static void fish_command(const command *c)
{
    for (int i = 0; i < c->option_count; i++) {
        const option_row *row = &c->options[i];
        bool files = row->kind == VALUE_FILE;
        printf("complete -c reef -n '__fish_seen_subcommand_from %s'", c->name);
        if (row->code < 256) {
            printf(" -s %c", row->code);
        }
        printf(" -l %s%s -d '", row->name, !row->value ? "" : files ? " -r -F" : " -x");
        fish_text(row->help);
        printf("'");
        fish_values(row->value ? row->kind : VALUE_NONE, row->words);
        printf("\n");
    }
    bool files = c->argument == VALUE_FILE || c->argument == VALUE_MODEL || c->argument == VALUE_EXPERIMENT;
    if (files || c->argument == VALUE_FOLDER || c->argument == VALUE_NAME || c->argument == VALUE_WORDS) {
        printf("complete -c reef -n '__fish_seen_subcommand_from %s' %s", c->name, files ? "-F" : "");
        fish_values(c->argument, c->words);
        printf("\n");
    }
}

static void print_fish(void)
{
    printf("# Completion of reef for fish; made by `reef completion fish`.\ncomplete -c reef -f\n"
           "complete -c reef -n __fish_use_subcommand -a 'help version'\n");
    for (int i = 0; command_at(i); i++) {
        printf("complete -c reef -n __fish_use_subcommand -a %s -d '", command_at(i)->name);
        fish_text(command_at(i)->summary);
        printf("'\n");
    }
    printf("complete -c reef -s h -l help -d 'help'\n");
    for (int i = 0; command_at(i); i++) {
        fish_command(command_at(i));
    }
}

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

static int run_completion(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(argv[1], shells[i].name) == 0) {
            shells[i].print();
            return EXIT_DONE;
        }
    }
    return bad_usage(&command_completion, "the name of a shell is expected: bash, zsh or fish", NULL);
}

const command command_completion = {
    "completion",
    "print a completion script for bash, zsh or fish",
    "Usage: reef completion SHELL\n\n"
    "Prints a script that lets SHELL (bash, zsh or fish) complete commands, options, files, and names of rules, "
    "attacks, ...\n"
    "`make install` installs them for all users. For yourself:\n\n"
    "  bash   source <(reef completion bash)\n"
    "  zsh    source <(reef completion zsh)\n"
    "  fish   reef completion fish | source\n",
    NULL,
    0,
    "Exit codes: 0 done, 2 wrong usage.\n",
    VALUE_WORDS,
    "bash zsh fish",
    run_completion,
};
