/* reef proof: checks a proof that an agent has signed two models for one round. */
#include "commands.h"
#include "net.h"

#include <stdio.h>

enum { OPT_RUN = 256 };
static const option_row options[] = {
    {OPT_RUN, "run", "RUN.yaml", "run file, to look up whose key it is", VALUE_FILE, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    (void)code;
    *(const char **)user = value;
    return EXIT_DONE;
}

static int run_proof(int argc, char **argv)
{
    reef_status (*check)(const char *, const char *, reef_tell *, void *, bool *, reef_error *) = NULL;
    reef_error error = {REEF_OK, ""};
    const char *run_file = NULL;
    bool proven = false;
    int code = read_options(&command_proof, &argc, argv, take_option, (void *)&run_file);
    if (code != EXIT_DONE) {
        return code;
    }
    if (argc != 2) {
        return bad_usage(&command_proof, "one file is expected", NULL);
    }
    if (!NET_FIND("reef_net_proof", check, &error) ||
        check(argv[1], run_file, net_print, NULL, &proven, &error) != REEF_OK) {
        fprintf(stderr, "reef proof: %s\n", error.text);
        return net_exit_code(error.status);
    }
    return proven ? EXIT_DONE : EXIT_FAILED;
}

const command command_proof = {
    "proof",
    "check a proof that an agent has signed two models for one round",
    "Usage: reef proof FILE [--run RUN.yaml]\n\n"
    "Checks, without a network, a proof that an agent is two-faced: it has signed two models for one round. Agents\n"
    "keep the proofs they have found or received as proof-NUMBER in their state folders.\n",
    OPTIONS(options),
    "Exit codes: 0 the proof is valid, 1 it proves nothing, 2 wrong usage or not a key of the run, 3 the file is not\n"
    "a proof, 5 a file cannot be read.\n",
    VALUE_FILE,
    NULL,
    run_proof,
};
