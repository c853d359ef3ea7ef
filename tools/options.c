/* Reading options and printing help, both from a command's table. */
#include "commands.h"
#include "terminal.h"

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
        printf("\n%sOptions:%s\n", tint_on(stdout, TINT_HEADING), tint_off(stdout));
    }
    for (int i = 0; i < c->option_count; i++) {
        print_option(&c->options[i]);
    }
    if (c->more) {
        printf("\n%s", c->more);
    }
}

/* As in src/base/text.c. */
static const struct {
    unsigned long first, last;
} controls[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},
                {0x180E, 0x180E}, {0x200B, 0x200B}, {0x200E, 0x200F}, {0x2028, 0x202E},
                {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0001, 0xE007F}};

int control_length(const char *text, unsigned long *code)
{
    const unsigned char *c = (const unsigned char *)text;
    int length = *c >= 0xF0 ? 4 : *c >= 0xE0 ? 3 : *c >= 0xC0 ? 2 : 1;
    *code = length > 1 ? *c & (0x7FUL >> length) : *c;
    for (int i = 1; i < length; i++) { /* the NUL at the end is no continuation */
        if ((c[i] & 0xC0) != 0x80) {
            return 0;
        }
        *code = *code << 6 | (c[i] & 0x3FUL);
    }
    for (size_t i = 0; i < sizeof controls / sizeof *controls && (*c < 0x80 || length > 1); i++) {
        if (*code >= controls[i].first && *code <= controls[i].last) {
            return length;
        }
    }
    return 0;
}

const char *printable(const char *text, char *buffer, size_t size)
{
    unsigned long code = 0;
    size_t length = strlen(text);
    (void)snprintf(buffer, size, "%s", length >= size ? text + length - size + 1 : text);
    for (char *c = buffer; *c; c++) {
        memset(c, '?', (size_t)control_length(c, &code));
    }
    return buffer;
}

const char *printable_path(const char *path)
{
    static char shown[4097];
    return printable(path, shown, sizeof shown);
}

int bad_usage(const command *c, const char *what, const char *which)
{
    char shown[200];
    fprintf(stderr, "reef %s: %s%s%s; see `reef %s --help`\n", c->name, what, which ? " " : "",
            which ? printable(which, shown, sizeof shown) : "", c->name);
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

static const char *option_at(const void *user, int i)
{
    const command *c = user;
    return i < c->option_count ? c->options[i].name : NULL;
}

static int unknown(const command *c, const char *argument)
{
    char shown[80];
    bool is_long = strncmp(argument, "--", 2) == 0;
    int meant = is_long ? nearest_word(argument + 2, option_at, c) : -1;
    if (meant < 0) {
        return bad_usage(c, "unknown option", argument);
    }
    fprintf(stderr, "reef %s: unknown option %s; did you mean --%s?\n", c->name,
            printable(argument, shown, sizeof shown), c->options[meant].name);
    return EXIT_USAGE;
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
