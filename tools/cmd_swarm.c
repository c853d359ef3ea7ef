/* reef swarm: an experiment played by agents that are processes of this machine. */
#include "commands.h"
#include "net.h"
#include "plugins.h"
#include "signals.h"

#include <reef/reef.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OVERRIDES_MAX = 64, PATH_SIZE = 4096 };

typedef struct arguments {
    reef_swarm_options swarm;
    const char *overrides[OVERRIDES_MAX];
    char rounds[64], agents[64];
    bool quiet, no_figures;
} arguments;

enum {
    OPT_SET = 256,
    OPT_KEEP,
    OPT_FORCE,
    OPT_ROUNDS,
    OPT_MALICIOUS,
    OPT_DEADLINE,
    OPT_DROP,
    OPT_KILLS,
    OPT_BROKERS,
    OPT_TWO_FACED,
    OPT_LATE,
    OPT_STALE,
    OPT_WAIT,
    OPT_SEAL,
    OPT_NO_FIGURES,
    OPT_DASH,
    OPT_PORT,
    OPT_RECORD,
};
static const option_row options[] = {
    {'o', "output", "FOLDER", "where the results go (default: results/NAME-swarm)", VALUE_FOLDER, NULL},
    {OPT_SET, "set", "PATH=VALUE", "replaces a value of the file, as for `reef run`", VALUE_TEXT, NULL},
    {'n', "agents", "N", "the same as --set agents=N", VALUE_TEXT, NULL},
    {OPT_ROUNDS, "rounds", "N", "the same as --set rounds=N", VALUE_TEXT, NULL},
    {OPT_MALICIOUS, "malicious", "F",
     "largest share of the weight that may be malicious in a neighbourhood\n(default: 1/3, or what the "
     "experiment places)",
     VALUE_TEXT, NULL},
    {OPT_DEADLINE, "deadline", "SECONDS", "how long a round waits at most", VALUE_TEXT, NULL},
    {OPT_WAIT, "wait", NULL,
     "rounds wait for all agents until the deadline, whatever goes wrong\n(default, unless "
     "messages are lost or agents killed)",
     VALUE_NONE, NULL},
    {OPT_DROP, "drop", "SHARE", "loses this share of the messages, such as 0.3", VALUE_TEXT, NULL},
    {OPT_KILLS, "kills", "N", "kills agents N times (kill -9) and restarts them", VALUE_TEXT, NULL},
    {OPT_BROKERS, "brokers", "N", "starts N independent brokers (1 to 8); one that works is enough", VALUE_TEXT, NULL},
    {OPT_TWO_FACED, "two-faced", "DELTA", "malicious agents add DELTA to what they send to every second broker",
     VALUE_TEXT, NULL},
    {OPT_LATE, "late", "SHARE", "malicious agents hold their models back for this share of the deadline", VALUE_TEXT,
     NULL},
    {OPT_STALE, "stale", "N", "maximum age of a neighbour's model in rounds, 0 to 2 (default: 1)", VALUE_TEXT, NULL},
    {OPT_SEAL, "seal", NULL, "encrypts models for the neighbours: brokers see sizes and times", VALUE_NONE, NULL},
    {OPT_KEEP, "keep", "FOLDER", "keeps keys, run file, logs and states in a new folder", VALUE_FOLDER, NULL},
    {OPT_DASH, "dash", NULL, "shows the run in the browser: prints the address of a live page and runs until Ctrl-C",
     VALUE_NONE, NULL},
    {OPT_PORT, "port", "N", "port of the live page (default: any free port)", VALUE_TEXT, NULL},
    {OPT_RECORD, "record", "FILE", "writes what the live page shows to a new file, for `reef dash --replay`",
     VALUE_FILE, NULL},
    {OPT_FORCE, "force", NULL, "replaces the results of another configuration in the folder", VALUE_NONE, NULL},
    {OPT_NO_FIGURES, "no-figures", NULL, "does not call gnuplot; `reef plot FOLDER` draws later", VALUE_NONE, NULL},
    {'q', "quiet", NULL, "no progress and no summary", VALUE_NONE, NULL},
};

static int take_number(const char *what, const char *value, double least, double most, double *number)
{
    char *end = NULL;
    *number = strtod(value, &end);
    return end != value && *end == '\0' && *number >= least && *number <= most ? EXIT_DONE
                                                                               : bad_usage(&command_swarm, what, value);
}

/* A whole number from `least` to `most`. */
static int take_whole(const char *what, const char *value, long least, long most, long *number)
{
    return read_whole(value, least, most, number) ? EXIT_DONE : bad_usage(&command_swarm, what, value);
}

static int add_override(arguments *a, const char *text)
{
    if (a->swarm.override_count == OVERRIDES_MAX) {
        return bad_usage(&command_swarm, "too many --set", NULL);
    }
    a->overrides[a->swarm.override_count++] = text;
    return EXIT_DONE;
}

static int take_count(arguments *a, const char *key, const char *value, char text[64])
{
    long number = 0;
    if (!read_whole(value, 1, 1000000000, &number)) {
        return bad_usage(&command_swarm, "a whole number is expected, not", value);
    }
    (void)snprintf(text, 64, "%s=%ld", key, number);
    return add_override(a, text);
}

static int take_trouble(arguments *a, int code, const char *value)
{
    long number = 0;
    int status = EXIT_DONE;
    switch (code) {
    case OPT_MALICIOUS: /* 0 is the library's word for the default */
        return take_number("--malicious takes a number above 0 and below 0.5, not", value, 1e-9, 0.4999,
                           &a->swarm.malicious);
    case OPT_DEADLINE:
        return take_number("--deadline takes 0.01 to 86400 seconds, not", value, 0.01, 86400, &a->swarm.deadline);
    case OPT_PORT:
        status = take_whole("--port takes a number up to 65535, not", value, 1, 65535, &number);
        a->swarm.dash_port = (int)number;
        return status;
    case OPT_DROP:
        return take_number("--drop takes a share up to 0.95, not", value, 0, 0.95, &a->swarm.drop);
    case OPT_BROKERS:
        status = take_whole("--brokers takes 1 to 8, not", value, 1, 8, &number);
        a->swarm.brokers = (ptrdiff_t)number;
        return status;
    case OPT_TWO_FACED:
        return take_number("--two-faced takes a number up to 1e6, not", value, 0, 1e6, &a->swarm.two_faced);
    case OPT_STALE:
        status = take_whole("--stale takes 0, 1 or 2, not", value, 0, 2, &number);
        a->swarm.stale = (int)number;
        return status;
    case OPT_LATE:
        return take_number("--late takes a share up to 1, not", value, 0, 1, &a->swarm.late);
    default:
        status = take_whole("--kills takes a whole number, not", value, 0, 1000000, &number);
        a->swarm.kills = (ptrdiff_t)number;
        return status;
    }
}

static int take_option(void *user, int code, const char *value)
{
    arguments *a = user;
    switch (code) {
    case 'o':
        a->swarm.results = value;
        return EXIT_DONE;
    case OPT_SET:
        return add_override(a, value);
    case 'n':
        return take_count(a, "agents", value, a->agents);
    case OPT_ROUNDS:
        return take_count(a, "rounds", value, a->rounds);
    case OPT_KEEP:
        a->swarm.keep = value;
        return EXIT_DONE;
    case OPT_DASH:
        a->swarm.dash = true;
        return EXIT_DONE;
    case OPT_RECORD:
        a->swarm.record = value;
        return EXIT_DONE;
    case OPT_FORCE:
        a->swarm.force = true;
        return EXIT_DONE;
    case OPT_WAIT:
        a->swarm.patient = true;
        return EXIT_DONE;
    case OPT_SEAL:
        a->swarm.seal = true;
        return EXIT_DONE;
    case OPT_NO_FIGURES:
        a->no_figures = true;
        return EXIT_DONE;
    case 'q':
        a->quiet = true;
        return EXIT_DONE;
    default:
        return take_trouble(a, code, value);
    }
}

/* Lines of progress: one that is written over on a terminal. */
static void show(void *user, const char *line)
{
    const bool *terminal = user;
    fprintf(stderr, *terminal ? "\r\033[K%s" : "%s\n", line);
}

/* The page's address is wanted at once, whoever reads it. */
static void show_page(void *user, const char *line)
{
    (void)user;
    printf("%s\n", line);
    (void)fflush(stdout);
}

static int play(arguments *a)
{
    reef_status (*run)(const reef_swarm_options *, reef_swarm_outcome *, reef_error *) = NULL;
    static bool terminal;
    terminal = isatty(STDERR_FILENO) == 1;
    reef_swarm_outcome outcome = {0};
    reef_error error = {REEF_OK, ""};
    a->swarm.tell = a->quiet ? NULL : show;
    a->swarm.user = &terminal;
    a->swarm.tell_page = show_page;
    a->swarm.overrides = a->overrides;
    stop_on_signals();
    bool done = NET_FIND("reef_net_swarm", run, &error) && run(&a->swarm, &outcome, &error) == REEF_OK;
    if (terminal && !a->quiet) {
        fprintf(stderr, "\r\033[K");
    }
    if (!done) {
        fprintf(stderr, "reef swarm: %s\n", error.text);
        return net_exit_code(error.status);
    }
    int code = results_finish("swarm", a->swarm.results, !a->no_figures, !a->quiet);
    if (code == EXIT_DONE && !a->quiet) {
        const char *shown = printable_path(a->swarm.results);
        double rounds = (double)(outcome.combined + outcome.alone);
        printf("%td agents in %.1f s; %.1f %% of their rounds alone, %lld frames refused; results in %s, report: "
               "%s/report.html\n",
               outcome.agents, outcome.seconds, rounds > 0 ? 100 * (double)outcome.alone / rounds : 0,
               (long long)outcome.refused, shown, shown);
    }
    return code;
}

static int run_swarm(int argc, char **argv)
{
    static char program[PATH_SIZE];
    static char folder[PATH_SIZE];
    arguments a = {.swarm = {.size = sizeof a.swarm, .stale = -1, .stop = &stop_wanted, .program = program}};
    int code = read_options(&command_swarm, &argc, argv, take_option, &a);
    if (code != EXIT_DONE) {
        return code;
    }
    if (argc != 2) {
        return bad_usage(&command_swarm, "one experiment is expected", NULL);
    }
    if (a.swarm.two_faced != 0 && a.swarm.brokers < 2) {
        return bad_usage(&command_swarm, "--two-faced needs two brokers, one for each face: add --brokers 2", NULL);
    }
    if (a.swarm.dash_port && !a.swarm.dash) {
        return bad_usage(&command_swarm, "--port is the live page's: add --dash", NULL);
    }
    if (plugins_at(0)) {
        return bad_usage(&command_swarm, "plug-ins cannot be used in a swarm yet:", plugins_at(0));
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) {
        perror("reef swarm: /proc/self/exe");
        return EXIT_FAILED;
    }
    a.swarm.file = argv[1];
    if (!a.swarm.results) {
        const char *name = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
        (void)snprintf(folder, sizeof folder, "results/%.*s-swarm", (int)strcspn(name, "."), name);
        a.swarm.results = folder;
    }
    return play(&a);
}

const command command_swarm = {
    "swarm",
    "run an experiment with one process per agent, over a broker",
    "Usage: reef swarm EXPERIMENT.yaml [OPTIONS]\n\n"
    "Runs an experiment the way agents on a network would: with a broker and one process per agent on this machine,\n"
    "signed messages, journals and deadlines. Writes the tables and the report of `reef run`; if no agent misses a\n"
    "round, models are bit-identical to those of `reef run`. The experiment must have a single configuration, and\n"
    "only one repetition is run. --drop and --kills inject faults, --late and --two-faced attacks.\n",
    OPTIONS(options),
    "Exit codes: 0 done, 1 the run failed or was stopped, 2 wrong usage or configuration, 3 a malformed file, 5 a "
    "file\n"
    "cannot be read or written.\n",
    VALUE_EXPERIMENT,
    NULL,
    run_swarm,
};
