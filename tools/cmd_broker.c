/* reef broker: the server between agents. */
#include "commands.h"
#include "net.h"
#include "signals.h"

#include <stdio.h>

enum {
    OPT_LISTEN = 256,
    OPT_STORE,
    OPT_CERT,
    OPT_PRIVATE,
    OPT_AUTHORITY,
    OPT_PRINT,
    OPT_LOG,
    OPT_LEVEL,
    OPT_LEAVES,
    OPT_LEAF,
    OPT_KEY
};
static const option_row options[] = {
    {OPT_LISTEN, "listen", "HOST:PORT", "address to listen on (default: as the run file says)", VALUE_TEXT, NULL},
    {OPT_STORE, "store", "FOLDER", "folder of the configuration, log and stored models (default: reef-broker)",
     VALUE_FOLDER, NULL},
    {OPT_CERT, "cert", "FILE", "the broker's certificate; needed unless all agents are on this machine", VALUE_FILE,
     NULL},
    {OPT_PRIVATE, "private-key", "FILE", "the private key of the certificate", VALUE_FILE, NULL},
    {OPT_AUTHORITY, "authority", "FILE",
     "certificate authorities for the broker's own certificate\n(default: those of the system)", VALUE_FILE, NULL},
    {OPT_LEAVES, "leaves", "HOST:PORT", "address to listen on for leaves (default: no leaves)", VALUE_TEXT, NULL},
    {OPT_LEAF, "leaf", "HUB", "runs as a leaf of the broker that listens for leaves at HUB,\ntls://HOST:PORT",
     VALUE_TEXT, NULL},
    {OPT_KEY, "key", "FILE", "the leaf's key file, from `reef keys new`", VALUE_FILE, NULL},
    {OPT_LOG, "log", "FORMAT", "format of the log on standard error: plain, logfmt or json (default: plain)",
     VALUE_TEXT, NULL},
    {OPT_LEVEL, "log-level", "LEVEL", "lowest level that is logged: debug, info, warning or error (default: info)",
     VALUE_TEXT, NULL},
    {OPT_PRINT, "print", NULL, "prints the configuration of the server and exits", VALUE_NONE, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    reef_broker_options *b = user;
    switch (code) {
    case OPT_LISTEN:
        b->listen = value;
        break;
    case OPT_STORE:
        b->store = value;
        break;
    case OPT_CERT:
        b->certificate = value;
        break;
    case OPT_PRIVATE:
        b->private_key = value;
        break;
    case OPT_AUTHORITY:
        b->authority = value;
        break;
    case OPT_LEAVES:
        b->leaves = value;
        break;
    case OPT_LEAF:
        b->hub = value;
        break;
    case OPT_KEY:
        b->key = value;
        break;
    case OPT_LOG:
        return net_log_format(value, &b->log)
                   ? EXIT_DONE
                   : bad_usage(&command_broker, "--log takes plain, logfmt or json, not", value);
    case OPT_LEVEL:
        return net_log_level(value, &b->level)
                   ? EXIT_DONE
                   : bad_usage(&command_broker, "--log-level takes debug, info, warning or error, not", value);
    default:
        b->print = true;
        break;
    }
    return EXIT_DONE;
}

static int run_broker(int argc, char **argv)
{
    reef_status (*run)(const reef_broker_options *, reef_error *) = NULL;
    reef_broker_options b = {.size = sizeof b, .store = "reef-broker", .stop = &stop_wanted};
    reef_error error = {REEF_OK, ""};
    int code = read_options(&command_broker, &argc, argv, take_option, &b);
    if (code != EXIT_DONE) {
        return code;
    }
    if (argc != 2) {
        return bad_usage(&command_broker, "one run file is expected", NULL);
    }
    if (!b.certificate != !b.private_key) {
        return bad_usage(&command_broker, "--cert and --private-key go together", NULL);
    }
    if (!b.hub != !b.key) {
        return bad_usage(&command_broker, "--leaf and --key go together", NULL);
    }
    if (b.hub && b.leaves) {
        return bad_usage(&command_broker, "a leaf has no leaves of its own: give --leaf or --leaves, not both", NULL);
    }
    b.run_file = argv[1];
    b.tell = b.print ? net_print : net_log;
    stop_on_signals();
    if (!NET_FIND("reef_net_broker", run, &error) || run(&b, &error) != REEF_OK) {
        net_failed("broker", b.log, &error);
        return net_exit_code(error.status);
    }
    return EXIT_DONE;
}

const command command_broker = {
    "broker",
    "the broker between the agents of a run: configures and runs a nats-server",
    "Usage: reef broker RUN.yaml [OPTIONS]\n\n"
    "Configures and runs a nats-server for the agents of a run file. Each agent has its own login and may send under\n"
    "its own name only. If the server dies, it is restarted. Agents need not trust the broker: it can delay or lose\n"
    "models, but not change them.\n",
    OPTIONS(options),
    "Exit codes: 0 stopped by a signal, 1 the server does not run, 2 wrong usage or configuration, 3 a malformed "
    "file,\n"
    "5 a file cannot be read or written, or there is no nats-server.\n",
    VALUE_FILE,
    NULL,
    run_broker,
};
