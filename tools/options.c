/* Reading options and printing help, both from a command's table. */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN = 24 };

/* "  -o, --output FOLDER   help", further lines of the help below the first. */
static void print_option(const option_row *row)
{
    char head[80];
    const char *line = row->help;
    const char *blank = row->value ? " " : "";
    const char *value = row->value ? row->value : "";
    if (row->code < 256) {
        (void)snprintf(head, sizeof head, "  -%c, --%s%s%s", row->code, row->name, blank, value);
    } else {
        (void)snprintf(head, sizeof head, "      --%s%s%s", row->name, blank, value);
    }
    printf("%-*s", COLUMN, head);
    if (strlen(head) >= COLUMN) {
        printf("\n%*s", COLUMN, "");
    }
    while (line) {
        int length = (int)strcspn(line, "\n");
        printf("%.*s\n", length, line);
        line = line[length] ? line + length + 1 : NULL;
        if (line) {
            printf("%*s", COLUMN, "");
        }
    }
}

void print_usage(const command *c)
{
    (void)fputs(c->usage, stdout);
    if (c->option_count > 0) {
        printf("\nOptions:\n");
    }
    for (int i = 0; i < c->option_count; i++) {
        print_option(&c->options[i]);
    }
    if (c->more) {
        printf("\n%s", c->more);
    }
}

int bad_usage(const command *c, const char *what, const char *which)
{
    fprintf(stderr, "reef %s: %s%s%s; see `reef %s --help`\n", c->name, what, which ? " " : "", which ? which : "",
            c->name);
    return EXIT_USAGE;
}

bool read_whole(const char *text, long least, long most, long *number)
{
    char *end = NULL;
    errno = 0;
    *number = strtol(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *number >= least && *number <= most;
}

/* ---- reading ---- */

/* Letters two words have in common at the beginning. */
static size_t common(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i]) {
        i++;
    }
    return i;
}

static int unknown(const command *c, const char *argument)
{
    const option_row *nearest = NULL;
    size_t best = 2;
    for (int i = 0; i < c->option_count && strncmp(argument, "--", 2) == 0; i++) {
        size_t same = common(argument + 2, c->options[i].name);
        nearest = same > best ? &c->options[i] : nearest;
        best = same > best ? same : best;
    }
    if (nearest) {
        fprintf(stderr, "reef %s: there is no option %s; did you mean --%s?\n", c->name, argument, nearest->name);
        return EXIT_USAGE;
    }
    return bad_usage(c, "there is no option", argument);
}

/* The row of "--name", "--name=value", "-x" or "-xvalue"; *value: what is attached, or NULL. */
static const option_row *find(const command *c, const char *argument, const char **value)
{
    bool is_long = argument[1] == '-';
    const char *name = argument + 1 + is_long;
    size_t length = is_long ? strcspn(name, "=") : 1;
    *value = name[length] == '\0' ? NULL : name + length + (name[length] == '=' && is_long);
    for (int i = 0; i < c->option_count; i++) {
        const option_row *row = &c->options[i];
        bool same = is_long ? strlen(row->name) == length && strncmp(row->name, name, length) == 0
                            : row->code == (unsigned char)name[0];
        if (same) {
            return row;
        }
    }
    return NULL;
}

/* Option number *i with its value, which may be the next argument. */
static int read_one(const command *c, int argc, char **argv, int *i,
                    int (*take)(void *user, int code, const char *value), void *user)
{
    const char *value = NULL;
    const option_row *row = find(c, argv[*i], &value);
    if (!row) {
        return unknown(c, argv[*i]);
    }
    if (!row->value && value) {
        return bad_usage(c, "this option takes no value:", argv[*i]);
    }
    if (row->value && !value) {
        if (*i + 1 >= argc) {
            return bad_usage(c, "this option needs a value:", argv[*i]);
        }
        value = argv[++*i];
    }
    return take(user, row->code, value);
}

int read_options(const command *c, int *argc, char **argv, int (*take)(void *user, int code, const char *value),
                 void *user)
{
    int kept = 1;
    bool options = true;
    for (int i = 1; i < *argc; i++) {
        bool is_option = options && argv[i][0] == '-' && argv[i][1] != '\0';
        if (is_option && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (is_option) {
            int code = read_one(c, *argc, argv, &i, take, user);
            if (code != EXIT_DONE) {
                return code;
            }
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
    return EXIT_DONE;
}
