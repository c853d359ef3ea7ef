/* reef dash: the live page of a network of agents. */
#include "commands.h"
#include "net.h"
#include "signals.h"

#include <stdio.h>

enum { OPT_REPLAY = 256, OPT_PORT, OPT_KEY, OPT_COORDINATOR, OPT_AUTHORITY, OPT_RECORD };
static const option_row options[] = {
    {OPT_KEY, "key", "FILE", "key file of an observer of the run, from `reef keys new`", VALUE_FILE, NULL},
    {OPT_COORDINATOR, "coordinator", "R...", "identity that must have signed the run file", VALUE_TEXT, NULL},
    {OPT_AUTHORITY, "authority", "FILE", "certificate authorities for the broker (default: those of the system)",
     VALUE_FILE, NULL},
    {OPT_RECORD, "record", "FILE", "writes what the page shows to a new file, for --replay", VALUE_FILE, NULL},
    {OPT_REPLAY, "replay", "FILE", "plays back a recorded run; -: shows lines of standard input as they arrive",
     VALUE_FILE, NULL},
    {OPT_PORT, "port", "N", "port on this machine (default: any free port)", VALUE_TEXT, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    enum { PORT_MAX = 65535 };
    reef_dash_options *o = user;
    long port = 0;
    const char **const texts[] = {[OPT_KEY - OPT_REPLAY] = &o->key,
                                  [OPT_COORDINATOR - OPT_REPLAY] = &o->coordinator,
                                  [OPT_AUTHORITY - OPT_REPLAY] = &o->authority,
                                  [OPT_RECORD - OPT_REPLAY] = &o->record,
                                  [0] = &o->replay};
    if (code != OPT_PORT) {
        *texts[code - OPT_REPLAY] = value;
        return EXIT_DONE;
    }
    if (!read_whole(value, 1, PORT_MAX, &port)) {
        return bad_usage(&command_dash, "--port takes a number up to 65535, not", value);
    }
    o->port = (int)port;
    return EXIT_DONE;
}

/* The address is wanted at once, whoever reads it. */
static void print_now(void *user, const char *line)
{
    (void)user;
    printf("%s\n", line);
    (void)fflush(stdout);
}

static int run_dash(int argc, char **argv)
{
    reef_status (*run)(const reef_dash_options *, reef_error *) = NULL;
    reef_dash_options o = {.size = sizeof o, .tell = print_now, .stop = &stop_wanted};
    reef_error error = {REEF_OK, ""};
    int code = read_options(&command_dash, &argc, argv, take_option, &o);
    if (code != EXIT_DONE) {
        return code;
    }
    if (argc > 2 || (argc == 2) == (o.replay != NULL)) {
        return bad_usage(&command_dash, "one run file is expected, or --replay FILE", NULL);
    }
    if (argc == 2 && !o.key) {
        return bad_usage(&command_dash,
                         "--key FILE is missing: the key of an observer of the run (a recorded run needs --replay)",
                         NULL);
    }
    if (argc == 1 && (o.key || o.record)) {
        return bad_usage(&command_dash, "--key and --record go with a run file, not with --replay", NULL);
    }
    o.run_file = argc == 2 ? argv[1] : NULL;
    stop_on_signals();
    if (!NET_FIND("reef_net_dash", run, &error) || run(&o, &error) != REEF_OK) {
        fprintf(stderr, "reef dash: %s\n", error.text);
        return net_exit_code(error.status);
    }
    return EXIT_DONE;
}

const command command_dash = {
    "dash",
    "watch a network of agents in the browser",
    "Usage: reef dash RUN.yaml --key FILE [OPTIONS]\n       reef dash --replay FILE [OPTIONS]\n\n"
    "Serves a page on this machine that shows a network of agents: who trusts whom, how far and how well each\n"
    "learns, what was refused and why. It prints the page's address and runs until Ctrl-C. --replay plays back what\n"
    "--record FILE, here or with `reef swarm`, has written. The page follows the run into its next epoch by itself.\n",
    OPTIONS(options),
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 a malformed file, 4 the broker refuses the "
    "login,\n"
    "5 a file cannot be read or written.\n",
    VALUE_FILE,
    NULL,
    run_dash,
};
