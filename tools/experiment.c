/* Experiments of the command line. */
#include "experiment.h"

#include "terminal.h"

#include <stdlib.h>
#include <string.h>

enum { INPUT_MAX = 1 << 24 };

/* All of standard input; NULL with a message. */
static char *read_input(size_t *size, reef_error *error)
{
    size_t room = 1 << 16;
    char *bytes = malloc(room);
    *size = 0;
    while (bytes) {
        *size += fread(bytes + *size, 1, room - *size, stdin);
        if (*size < room || room >= INPUT_MAX) {
            break;
        }
        room *= 2;
        char *more = realloc(bytes, room);
        if (!more) {
            free(bytes);
        }
        bytes = more;
    }
    bool good = bytes && !ferror(stdin) && *size < INPUT_MAX;
    if (!good) {
        error->status = bytes ? REEF_E_FILE : REEF_E_NOMEM;
        (void)snprintf(error->text, sizeof error->text, "standard input cannot be read, or has more than %d bytes",
                       INPUT_MAX);
        free(bytes);
    }
    return good ? bytes : NULL;
}

reef_status load_experiment(reef_context *context, reef_experiment **experiment, const char *path,
                            const char *const *overrides, ptrdiff_t count, reef_error *error)
{
    if (strcmp(path, "-") != 0) {
        return reef_experiment_load(context, experiment, path, overrides, count, error);
    }
    size_t size = 0;
    char *text = read_input(&size, error);
    if (!text) {
        return error->status;
    }
    reef_status status =
        reef_experiment_read(context, experiment, text, size, "standard_input", overrides, count, error);
    free(text);
    return status;
}

void describe_configuration(const reef_experiment *experiment, ptrdiff_t cell, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (ptrdiff_t a = 0; a < reef_experiment_axes(experiment) && used < size; a++) {
        char value[256];
        (void)reef_experiment_value(experiment, cell, a, value, sizeof value);
        int length =
            snprintf(text + used, size - used, "%s%s=%s", a ? " " : "", reef_experiment_axis(experiment, a), value);
        used += length > 0 ? (size_t)length : 0;
    }
}

static void gather(warnings *w, ptrdiff_t cell, const char *text, size_t length)
{
    char line[WARNING_SIZE];
    int i = 0;
    (void)snprintf(line, sizeof line, "%.*s", (int)length, text);
    while (i < w->kinds && strcmp(w->kind[i].text, line) != 0) {
        i++;
    }
    w->total++;
    if (i == WARNINGS_MAX) {
        return;
    }
    if (i == w->kinds) {
        memcpy(w->kind[i].text, line, sizeof line);
        w->kind[i].first = cell;
        w->kind[i].count = 0;
        w->kinds++;
    }
    w->kind[i].count++;
}

void gather_warnings(warnings *w, ptrdiff_t cell, const char *text)
{
    static const char label[] = "  WARNING";
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (strncmp(text, label, sizeof label - 1) == 0) {
            const char *what = text + sizeof label - 1;
            size_t blanks = strspn(what, " ");
            gather(w, cell, what + blanks, length - (sizeof label - 1) - blanks);
        }
        text += length + (text[length] == '\n');
    }
}

void print_warnings(const warnings *w, FILE *to)
{
    ptrdiff_t shown = 0;
    for (int i = 0; i < w->kinds; i++) {
        char place[512];
        ptrdiff_t all = reef_experiment_cells(w->experiment);
        describe_configuration(w->experiment, w->kind[i].first, place, sizeof place);
        fprintf(to, "%sWARNING%s  %s", tint_on(to, TINT_WARNING), tint_off(to), w->kind[i].text);
        if (all > 1 && w->kind[i].count == all) {
            fprintf(to, " (in all %td configurations)", all);
        } else if (all > 1) {
            fprintf(to, " (in %td of %td configurations, first: %s)", w->kind[i].count, all, place);
        }
        fprintf(to, "\n");
        shown += w->kind[i].count;
    }
    if (shown < w->total) {
        fprintf(to, "and %td more warning%s\n", w->total - shown, plural(w->total - shown));
    }
}
