/* reef plot: pictures from the scripts of a results folder, by gnuplot as a child process. */
#include "commands.h"

#include <errno.h>
#include <reef/reef.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, NOT_FOUND = 127 };

static const char *const figures[] = {"curves", "final", "heat", "matrix", "graph"};
static const char *const kinds[] = {"svg", "png", "pdf"};
enum { FIGURES = sizeof figures / sizeof figures[0], KINDS = sizeof kinds / sizeof kinds[0] };

/* In the child: never returns. */
static void become_gnuplot(const char *folder, const char *figure, const char *kind)
{
    char choice[32];
    char script[64];
    (void)snprintf(choice, sizeof choice, "kind='%s'", kind);
    (void)snprintf(script, sizeof script, "%s.gp", figure);
    if (chdir(folder) == 0) {
        (void)execlp("gnuplot", "gnuplot", "-e", choice, script, (char *)NULL);
    }
    _exit(errno == ENOENT ? NOT_FOUND : 1);
}

/* Exit status of gnuplot, or -1. */
static int draw(const char *folder, const char *figure, const char *kind)
{
    int status = 0;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        become_gnuplot(folder, figure, kind);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int plot_folder(const char *results)
{
    char folder[PATH_SIZE];
    char script[PATH_SIZE + 64];
    int drawn = 0;
    (void)snprintf(folder, sizeof folder, "%s/figures", results);
    for (int i = 0; i < FIGURES; i++) {
        (void)snprintf(script, sizeof script, "%s/%s.gp", folder, figures[i]);
        for (int k = 0; k < KINDS && access(script, R_OK) == 0; k++) {
            int status = draw(folder, figures[i], kinds[k]);
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
    int drawn = plot_folder(argv[1]);
    if (drawn == PLOT_NO_GNUPLOT || drawn == PLOT_FAILED) {
        fprintf(stderr, "reef plot: %s\n", drawn == PLOT_FAILED ? "gnuplot failed" : "gnuplot is not there");
        return EXIT_FAILED;
    }
    if (drawn == 0) {
        fprintf(stderr, "reef plot: %s has no figures/*.gp; is it a results folder?\n", argv[1]);
        return EXIT_MALFORMED;
    }
    if (reef_experiment_report(NULL, argv[1], &error) != REEF_OK) {
        fprintf(stderr, "reef plot: %s\n", error.text);
        return EXIT_FAILED;
    }
    printf("%d pictures in %s/figures, and %s/report.html\n", drawn, argv[1], argv[1]);
    return EXIT_DONE;
}

const command command_plot = {
    "plot",
    "draw the figures of a results folder (needs gnuplot)",
    "Usage: reef plot FOLDER\n\n"
    "Draws FOLDER/figures/*.gp, which `reef run` wrote, as svg, png and pdf with gnuplot, and makes "
    "FOLDER/report.html\n"
    "anew. The scripts and their data can be changed and drawn again.\n",
    NULL,
    0,
    "Exit codes: 0 done, 1 gnuplot is missing or failed, 2 wrong usage, 3 there is nothing to draw.\n",
    VALUE_FOLDER,
    NULL,
    run_plot,
};
