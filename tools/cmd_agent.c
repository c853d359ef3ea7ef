/* reef agent: one agent of a run on a network. */
#include "commands.h"
#include "net.h"
#include "signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_KEY = 256,
    OPT_COORDINATOR,
    OPT_STATE,
    OPT_AUTHORITY,
    OPT_ROUNDS,
    OPT_MEMORY,
    OPT_RECORD,
    OPT_MALICIOUS,
    OPT_METRICS,
    OPT_LOG,
    OPT_LEVEL,
    OPT_SOCKET,
};
static const option_row options[] = {
    {OPT_KEY, "key", "FILE", "this agent's key file, from `reef keys new`", VALUE_FILE, NULL},
    {OPT_COORDINATOR, "coordinator", "R...",
     "identity of the coordinator whose run files are trusted; needed at the first\nstart, unless all brokers are on "
     "this machine",
     VALUE_TEXT, NULL},
    {OPT_STATE, "state", "FOLDER", "folder of the journal and checkpoints (default: the key file with .state)",
     VALUE_FOLDER, NULL},
    {OPT_AUTHORITY, "authority", "FILE", "certificate authorities for the broker (default: those of the system)",
     VALUE_FILE, NULL},
    {OPT_SOCKET, "socket", "PATH", "Unix socket through which your own program, in any language, sends models",
     VALUE_FILE, NULL},
    {OPT_ROUNDS, "rounds", "N", "exits after round N (default: as the run file says, or never)", VALUE_TEXT, NULL},
    {OPT_MEMORY, "memory", "MB", "refuses to start if models and computations may need more", VALUE_TEXT, NULL},
    {OPT_MALICIOUS, "malicious-at-least", "F", "refuses run files that tolerate less malicious weight than F",
     VALUE_TEXT, NULL},
    {OPT_METRICS, "metrics", "PORT", "serves Prometheus metrics at http://127.0.0.1:PORT/metrics", VALUE_TEXT, NULL},
    {OPT_LOG, "log", "FORMAT", "format of the log on standard error: plain, logfmt or json (default: plain)",
     VALUE_TEXT, NULL},
    {OPT_LEVEL, "log-level", "LEVEL", "lowest level that is logged: debug, info, warning or error (default: info)",
     VALUE_TEXT, NULL},
    {OPT_RECORD, "record", "FILE", "records models and trust in a file (used by `reef swarm`)", VALUE_FILE, NULL},
};

typedef struct arguments {
    reef_agent_options agent;
    char state[4096];
} arguments;

static int take_number(const char *name, const char *value, double most, double *number)
{
    char *end = NULL;
    *number = strtod(value, &end);
    return end != value && *end == '\0' && *number >= 0 && *number <= most ? EXIT_DONE
                                                                           : bad_usage(&command_agent, name, value);
}

static int take_option(void *user, int code, const char *value)
{
    reef_agent_options *a = &((arguments *)user)->agent;
    double number = 0;
    int status = EXIT_DONE;
    switch (code) {
    case OPT_KEY:
        a->key = value;
        break;
    case OPT_COORDINATOR:
        a->coordinator = value;
        break;
    case OPT_STATE:
        a->state = value;
        break;
    case OPT_AUTHORITY:
        a->authority = value;
        break;
    case OPT_RECORD:
        a->record = value;
        break;
    case OPT_LOG:
        return net_log_format(value, &a->log)
                   ? EXIT_DONE
                   : bad_usage(&command_agent, "--log takes plain, logfmt or json, not", value);
    case OPT_LEVEL:
        return net_log_level(value, &a->level)
                   ? EXIT_DONE
                   : bad_usage(&command_agent, "--log-level takes debug, info, warning or error, not", value);
    case OPT_SOCKET:
        a->socket = value;
        break;
    case OPT_METRICS:
        status = take_number("--metrics takes a port, not", value, 65535, &number);
        a->metrics = (int)number;
        break;
    case OPT_ROUNDS:
        status = take_number("--rounds takes a number, not", value, 1e14, &number);
        a->rounds = (int64_t)number;
        break;
    case OPT_MEMORY:
        status = take_number("--memory takes megabytes, not", value, 1e9, &number);
        a->memory = (size_t)(number * 1e6);
        break;
    default:
        status = take_number("--malicious-at-least takes a number below 0.5, not", value, 0.5, &a->malicious_at_least);
        break;
    }
    return status;
}

static int run_agent(int argc, char **argv)
{
    reef_status (*run)(const reef_agent_options *, reef_error *) = NULL;
    arguments a = {.agent = {.size = sizeof a.agent, .tell = net_log, .stop = &stop_wanted}};
    reef_error error = {REEF_OK, ""};
    int code = read_options(&command_agent, &argc, argv, take_option, &a);
    if (code != EXIT_DONE) {
        return code;
    }
    if (argc != 2 || !a.agent.key) {
        return bad_usage(&command_agent, argc == 2 ? "--key FILE is missing" : "one run file is expected", NULL);
    }
    a.agent.run_file = argv[1];
    if (!a.agent.state) {
        if (snprintf(a.state, sizeof a.state, "%s.state", a.agent.key) >= (int)sizeof a.state) {
            return bad_usage(&command_agent, "the path of the key is too long", NULL);
        }
        a.agent.state = a.state;
    }
    stop_on_signals();
    if (!NET_FIND("reef_net_agent", run, &error) || run(&a.agent, &error) != REEF_OK) {
        net_failed("agent", a.agent.log, &error);
        return net_exit_code(error.status);
    }
    return EXIT_DONE;
}

const command command_agent = {
    "agent",
    "one agent of a run on a network",
    "Usage: reef agent RUN.yaml --key FILE [OPTIONS]\n\n"
    "Takes part in the run that a signed run file describes (`reef keys`): exchanges models with its neighbours\n"
    "through the brokers, and combines them by the run's rule. Its own models come from your program (--socket), or\n"
    "from the built-in problem in the run file's test: part. It keeps what it has signed and learned on disk, and\n"
    "resumes after a restart.\n",
    OPTIONS(options),
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 a malformed file, 4 the key is used by another\n"
    "process, or all brokers refuse it, 5 a file cannot be read or written.\n",
    VALUE_FILE,
    NULL,
    run_agent,
};
