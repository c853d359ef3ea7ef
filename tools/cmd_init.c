/* reef init: a commented experiment to start from. */
#include "commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char starter[] =
    "# An experiment. Every list is swept: this one has 3 x 3 = 9 configurations. Run it:  reef run FILE\n"
    "# What there is to choose from: reef list rules, graphs, weights, links, problems, strategies, attacks.\n"
    "\n"
    "name: first                 # results go to results/first\n"
    "\n"
    "agents: 20\n"
    "graph: erdos_renyi:p=0.4    # who hears whom; as text, or as a map {kind: erdos_renyi, p: 0.4}\n"
    "weights: metropolis         # combination weights of neighbours\n"
    "\n"
    "problem: {kind: lms, dimension: 10, noise: 0.01}\n"
    "strategy: {kind: diffusion, mu: 0.02}\n"
    "rule: [mean, median, ref]   # how they combine what they receive; mref also remembers who sent what\n"
    "\n"
    "malicious: [0, 1, 2]        # a count, a fraction (10%), or max\n"
    "placement: {kind: random, keep_majority: true}\n"
    "attack: {kind: additive, delta: 100}\n"
    "\n"
    "rounds: 1000\n"
    "repetitions: 32             # with independent data, averaged\n"
    "seed: 1                     # the same data for every configuration\n"
    "oracle: true                # also run the oracle, which knows the malicious agents\n";

static int run_init(int argc, char **argv)
{
    int code = read_options(&command_init, &argc, argv, NULL, NULL);
    if (code != EXIT_DONE || argc > 2) {
        return code != EXIT_DONE ? code : bad_usage(&command_init, "one file name at most, not also", argv[2]);
    }
    const char *path = argc > 1 ? argv[1] : "experiment.yaml";
    if (strcmp(path, "-") == 0) {
        (void)fputs(starter, stdout);
        return EXIT_DONE;
    }
    const char *shown = printable_path(path);
    FILE *file = fopen(path, "wx"); /* never over an existing file */
    if (!file) {
        bool taken = errno == EEXIST;
        fprintf(stderr, "reef init: %s: %s\n", shown, taken ? "exists already; give another name" : strerror(errno));
        return EXIT_FAILED;
    }
    size_t length = sizeof starter - 1;
    int bad = fwrite(starter, 1, length, file) != length;
    bad = fclose(file) != 0 || bad;
    if (bad) {
        fprintf(stderr, "reef init: %s could not be written\n", shown);
        return EXIT_FAILED;
    }
    printf("%s written. Next: `reef check %s`, `reef run %s`.\n", shown, shown, shown);
    return EXIT_DONE;
}

const command command_init = {
    "init",
    "write a commented experiment to start from",
    "Usage: reef init [FILE]\n\n"
    "Writes a small commented experiment to FILE (default: experiment.yaml; - is standard output). An existing file "
    "is\n"
    "not overwritten.\n",
    NULL,
    0,
    "Exit codes: 0 written, 1 it could not be written, 2 wrong usage.\n",
    VALUE_FILE,
    NULL,
    run_init,
};
