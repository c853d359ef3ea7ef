/* reef doctor: what this reef is made of, what it found on this machine, and what is missing. */
#include "commands.h"
#include "ranks.h"

#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether a program is on the PATH. */
static bool has_program(const char *name)
{
    const char *path = getenv("PATH");
    char file[4096];
    while (path && *path) {
        int length = (int)strcspn(path, ":");
        (void)snprintf(file, sizeof file, "%.*s/%s", length, path, name);
        if (access(file, X_OK) == 0) {
            return true;
        }
        path += length + (path[length] == ':');
    }
    return false;
}

static void print_processor(void)
{
    static const char label[] = "model name";
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, label, sizeof label - 1) == 0 && colon) {
            printf("processor      %s", colon + 2);
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
}

/* Whether the shipped data can be read: making a problem with them is the test. */
static bool has_digits(reef_error *error)
{
    reef_problem *problem = NULL;
    bool found = reef_problem_create(NULL, &problem, "softmax:data=digits", 2, 1, error) == REEF_OK;
    reef_problem_destroy(&problem);
    return found;
}

/* One small aggregation whose result is known. */
static bool computes(reef_error *error)
{
    static const float x[5] = {1, 2, 3, 4, 1000};
    const void *rows[5] = {&x[0], &x[1], &x[2], &x[3], &x[4]};
    float out = 0;
    reef_agg *agg = NULL;
    reef_status status = reef_agg_create(&agg, "median", error);
    if (status == REEF_OK) {
        status = reef_agg_apply(agg, &(reef_input){.rows = rows}, 5, 1, REEF_F32, &out, NULL, error);
    }
    reef_agg_destroy(&agg);
    return status == REEF_OK && out == 3;
}

static int print_line(const char *what, bool found, const char *yes, const char *no)
{
    printf("%-14s %s\n", what, found ? yes : no);
    return !found;
}

static int run_doctor(int argc, char **argv)
{
    const reef_system system = reef_system_facts();
    const char *cap = getenv("REEF_ISA");
    reef_error error = {REEF_OK, ""};
    int missing = 0;
    if (argc > 1) {
        return bad_usage(&command_doctor, "it takes no arguments, not", argv[1]);
    }
    printf("reef           %s\n", reef_version());
    print_processor();
    printf("instructions   %s%s%s\n", system.instructions, cap ? ", capped by REEF_ISA=" : "", cap ? cap : "");
    printf("threads        %td\n", system.threads);
    printf("BLAS           %s\n", system.blas);
    missing += print_line("YAML", system.yaml, "libyaml: experiments can be run",
                          "missing: built without libyaml (libyaml-dev), `reef run` cannot read experiments");
    missing += print_line("gnuplot", has_program("gnuplot"), "found: figures can be drawn",
                          "missing: no figures (Debian: gnuplot-nox)");
    missing += print_line("digits", has_digits(&error), "found", error.text);
    const char *mpi = ranks_describe(&error);
    missing += print_line("MPI", mpi != NULL, mpi, error.text);
    if (!computes(&error)) {
        printf("self-test      FAILED %s\n", error.text);
        return EXIT_FAILED;
    }
    printf("self-test      passed\n%s\n",
           missing ? "Some optional parts are missing; everything else works." : "All is well.");
    return EXIT_DONE;
}

const command command_doctor = {
    "doctor",
    "say what this reef is made of, and what is missing",
    "Usage: reef doctor\n\n"
    "Prints version, processor, the vector instructions in use, threads, and which optional parts were found: BLAS,\n"
    "libyaml, gnuplot, the shipped data, MPI. REEF_ISA in the environment caps the instructions (scalar, portable, "
    "avx2, "
    "...).\n",
    NULL,
    0,
    "Exit codes: 0 it works, optional parts may be missing; 1 the self-test failed; 2 wrong usage.\n",
    VALUE_NONE,
    NULL,
    run_doctor,
};
