/* reef plot: pictures from the scripts of a results folder, by gnuplot as a child process. */
#include "commands.h"
#include "terminal.h"

#include <errno.h>
#include <reef/reef.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, NOT_FOUND = 127 };

static const char *const figures[] = {"curves", "final", "heat", "matrix", "graph"};
static const char *const kinds[] = {"svg", "png", "pdf"};
enum { FIGURES = sizeof figures / sizeof figures[0], KINDS = sizeof kinds / sizeof kinds[0] };

/* Where gnuplot is, by the absolute folders of PATH alone: it is started in the folder of figures, which may come from anybody, and an empty or
 * relative entry would find what that folder has under this name. */
static bool find_gnuplot(char program[PATH_SIZE])
{
    const char *rest = getenv("PATH");
    rest = rest ? rest : "/usr/local/bin:/usr/bin:/bin";
    for (bool more = true; more;) {
        size_t length = strcspn(rest, ":");
        int used = snprintf(program, PATH_SIZE, "%.*s/gnuplot", (int)length, rest);
        if (rest[0] == '/' && used < PATH_SIZE && access(program, X_OK) == 0) {
            return true;
        }
        more = rest[length] == ':';
        rest += length + more;
    }
    return false;
}

/* In the child: never returns. -d: no start-up file, wherever gnuplot looks for one. */
static void become_gnuplot(const char *program, const char *folder, const char *figure, const char *kind)
{
    char choice[32];
    char script[64];
    (void)snprintf(choice, sizeof choice, "kind='%s'", kind);
    (void)snprintf(script, sizeof script, "%s.gp", figure);
    if (chdir(folder) == 0) {
        (void)execl(program, "gnuplot", "-d", "-e", choice, script, (char *)NULL);
    }
    _exit(errno == ENOENT ? NOT_FOUND : 1);
}

/* Exit status of gnuplot, or -1. */
static int draw(const char *program, const char *folder, const char *figure, const char *kind)
{
    int status = 0;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        become_gnuplot(program, folder, figure, kind);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int plot_folder(const char *results)
{
    char folder[PATH_SIZE];
    char script[PATH_SIZE + 64];
    char program[PATH_SIZE];
    int drawn = 0;
    bool found = find_gnuplot(program);
    (void)snprintf(folder, sizeof folder, "%s/figures", results);
    for (int i = 0; i < FIGURES; i++) {
        (void)snprintf(script, sizeof script, "%s/%s.gp", folder, figures[i]);
        for (int k = 0; k < KINDS && access(script, R_OK) == 0; k++) {
            int status = found ? draw(program, folder, figures[i], kinds[k]) : NOT_FOUND;
            if (status == NOT_FOUND) {
                return PLOT_NO_GNUPLOT;
            }
            if (status != 0) {
                return PLOT_FAILED;
            }
            drawn++;
        }
    }
    return drawn;
}

static int run_plot(int argc, char **argv)
{
    reef_error error;
    int code = read_options(&command_plot, &argc, argv, NULL, NULL);
    if (code != EXIT_DONE || argc != 2) {
        return code != EXIT_DONE ? code : bad_usage(&command_plot, "one results folder is expected", NULL);
    }
    reef_status status = reef_experiment_redraw(NULL, argv[1], &error);
    if (status != REEF_OK) {
        fprintf(stderr, "reef plot: %s\n", error.text);
        return status == REEF_E_NOMEM ? EXIT_FAILED : EXIT_MALFORMED;
    }
    int drawn = plot_folder(argv[1]);
    if (drawn == PLOT_NO_GNUPLOT || drawn == PLOT_FAILED) {
        fprintf(stderr, "reef plot: %s\n",
                drawn == PLOT_FAILED ? "gnuplot failed" : "gnuplot not found; `reef doctor` says how to get it");
        return EXIT_FAILED;
    }
    if (drawn == 0) {
        fprintf(stderr, "reef plot: %s has no figures/*.gp; is it a results folder?\n", printable_path(argv[1]));
        return EXIT_MALFORMED;
    }
    if (reef_experiment_report(NULL, argv[1], &error) != REEF_OK) {
        fprintf(stderr, "reef plot: %s\n", error.text);
        return EXIT_FAILED;
    }
    const char *shown = printable_path(argv[1]);
    printf("%d picture%s in %s/figures. Report: %s/report.html\n", drawn, plural(drawn), shown, shown);
    return EXIT_DONE;
}

const command command_plot = {
    "plot",
    "draw the figures of a results folder (needs gnuplot)",
    "Usage: reef plot FOLDER\n\n"
    "Draws the figures of FOLDER, which `reef run` wrote, as svg, png and pdf with gnuplot, and rewrites "
    "FOLDER/report.html.\n"
    "Scripts and data are generated from the configuration and its results: those in FOLDER/figures are "
    "replaced\n"
    "and never run, since a folder may come from a stranger. To draw your own changes to a script, call gnuplot "
    "yourself.\n",
    NULL,
    0,
    "Exit codes: 0 done, 1 gnuplot is missing or failed, 2 wrong usage, 3 there is nothing to draw.\n",
    VALUE_FOLDER,
    NULL,
    run_plot,
};
