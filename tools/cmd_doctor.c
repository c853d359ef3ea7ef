/* reef doctor: how this command was built, what it found on this machine, and how to get what is missing. */
#include "commands.h"
#include "json.h"
#include "launch.h"
#include "net.h"
#include "plugins.h"

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

static const char *processor(char *line, int size)
{
    static const char label[] = "model name";
    const char *name = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, size, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, label, sizeof label - 1) == 0 && colon && colon[1]) {
            line[strcspn(line, "\n")] = '\0';
            name = colon + 2;
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return name;
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
    reef_status status = reef_agg_create(NULL, &agg, "median", error);
    if (status == REEF_OK) {
        status = reef_agg_apply(agg, &(reef_input){.rows = rows}, 5, 1, REEF_F32, &out, NULL, error);
    }
    reef_agg_destroy(&agg);
    return status == REEF_OK && out == 3;
}

/* An optional part: what it is for if it was found, otherwise what is wrong and how to get it. */
typedef struct part {
    const char *name;
    bool found;
    const char *text;
    const char *get;
} part;
enum { PARTS = 7, LINE = 400 };

/* Texts that belong to the parts. */
typedef struct findings {
    reef_error digits, mpi, net;
    char server[LINE];
} findings;

/* The program that is the broker between agents, as libreef_net finds it; tells which one. */
static bool has_server(findings *f)
{
    enum { OLD_MAJOR = 2, OLD_MINOR = 12 };
    bool (*server)(char *, size_t, int *, int *) = NULL;
    reef_error error = {REEF_OK, ""};
    char path[LINE - 100] = "";
    int major = 0;
    int minor = 0;
    bool found = NET_FIND("reef_net_server", server, &error) && server(path, sizeof path, &major, &minor);
    bool old = major < OLD_MAJOR || (major == OLD_MAJOR && minor < OLD_MINOR);
    (void)snprintf(f->server, sizeof f->server, "%s, version %d.%d%s", path, major, minor,
                   old ? ": old; good enough on one machine, run a current release on a network" : "");
    return found;
}

/* What libreef_net was built with, or NULL. */
static const char *describe_net(reef_error *error)
{
    const char *(*describe)(void) = NULL;
    return NET_FIND("reef_net_describe", describe, error) ? describe() : NULL;
}

/* What the live page lacks; NULL: nothing. */
static const char *page_lacks(void)
{
    const char *(*lacks)(void) = NULL;
    reef_error error = {REEF_OK, ""};
    return NET_FIND("reef_net_dash_lacks", lacks, &error) ? lacks() : "missing: it is part of the network";
}

static void find_parts(part parts[PARTS], findings *f)
{
    const char *ranks = ranks_describe(&f->mpi);
    const char *net = describe_net(&f->net);
    const char *page = page_lacks();
    bool server = has_server(f);
    bool yaml = reef_system_facts().yaml;
    bool gnuplot = has_program("gnuplot");
    bool data = has_digits(&f->digits);
    parts[0] =
        (part){"YAML", yaml, yaml ? "libyaml: experiments can be run" : "missing: `reef run` cannot read experiments",
               "install libyaml-dev (Debian, Ubuntu) or libyaml-devel (Fedora) and build Reef again"};
    parts[1] = (part){"gnuplot", gnuplot, gnuplot ? "found: figures can be drawn" : "missing: no figures",
                      "install gnuplot-nox (Debian, Ubuntu) or gnuplot (others), then `reef plot FOLDER`"};
    parts[2] = (part){"digits", data, data ? "found" : f->digits.text,
                      "set REEF_DATA to the folder data/ of the source tree, or run `make install`"};
    parts[3] = (part){"MPI", ranks != NULL, ranks ? ranks : f->mpi.text,
                      "install libopenmpi-dev (Debian, Ubuntu) or openmpi-devel (Fedora) and build Reef again"};
    parts[4] = (part){"network", net != NULL, net ? net : f->net.text,
                      "install libsodium-dev and libnats-dev (Debian, Ubuntu) and build Reef again"};
    parts[5] = (part){"nats-server", server, server ? f->server : "missing: agents on a network need a broker",
                      "install nats-server (Debian, Ubuntu) or a release from nats.io, or set REEF_NATS_SERVER"};
    parts[6] = (part){"live page", !page, page ? page : "`reef dash` can show networks in a browser",
                      "install libmicrohttpd-dev, nodejs and npm (Debian, Ubuntu) and build Reef again"};
}

static void print_parts(const part parts[PARTS])
{
    int missing = 0;
    for (int i = 0; i < PARTS; i++) {
        printf("%-14s %s\n", parts[i].name, parts[i].text);
        if (!parts[i].found) {
            printf("%-14s to get it: %s\n", "", parts[i].get);
        }
        missing += !parts[i].found;
    }
    if (missing) {
        printf("%d optional %s missing; everything else works.\n", missing, missing == 1 ? "part is" : "parts are");
    } else {
        printf("Nothing is missing.\n");
    }
}

static void print_text(const part parts[PARTS], bool passed)
{
    const reef_system system = reef_system_facts();
    const char *cap = getenv("REEF_ISA");
    char line[512];
    printf("reef           %s\n", reef_version());
    printf("processor      %s\n", processor(line, sizeof line));
    printf("instructions   %s%s%s\n", system.instructions, cap ? ", capped by REEF_ISA=" : "",
           cap ? printable_path(cap) : "");
    printf("threads        %td\n", system.threads);
    printf("BLAS           %s\n", system.blas);
    for (int i = 0; plugins_at(i); i++) { /* reef.c has loaded them */
        printf("plug-in        %s\n", printable_path(plugins_at(i)));
    }
    printf("self-test      %s\n",
           passed ? "passed" : "FAILED: the median of five numbers is wrong; please report this");
    print_parts(parts);
}

static void print_json(const part parts[PARTS], bool passed)
{
    const reef_system system = reef_system_facts();
    char line[512];
    json j = json_start(stdout);
    json_open(&j, NULL, '{');
    json_text(&j, "version", reef_version());
    json_text(&j, "processor", processor(line, sizeof line));
    json_text(&j, "instructions", system.instructions);
    json_text(&j, "instructions_cap", getenv("REEF_ISA"));
    json_whole(&j, "threads", system.threads);
    json_text(&j, "blas", system.blas);
    json_open(&j, "parts", '[');
    for (int i = 0; i < PARTS; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", parts[i].name);
        json_flag(&j, "found", parts[i].found);
        json_text(&j, "text", parts[i].text);
        json_text(&j, "get", parts[i].found ? NULL : parts[i].get);
        json_close(&j);
    }
    json_close(&j);
    json_open(&j, "plugins", '[');
    for (int i = 0; plugins_at(i); i++) {
        json_text(&j, NULL, plugins_at(i));
    }
    json_close(&j);
    json_flag(&j, "self_test", passed);
    json_close(&j);
}

enum { OPT_JSON = 256 };
static const option_row options[] = {
    {OPT_JSON, "json", NULL, "prints JSON, described in reef-doctor(1)", VALUE_NONE, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    bool *as_json = user;
    (void)code;
    (void)value;
    *as_json = true;
    return EXIT_DONE;
}

static int run_doctor(int argc, char **argv)
{
    reef_error error = {REEF_OK, ""};
    findings f = {.server = ""};
    part parts[PARTS];
    bool as_json = false;
    int code = read_options(&command_doctor, &argc, argv, take_option, &as_json);
    if (code != EXIT_DONE || argc > 1) {
        return code != EXIT_DONE ? code : bad_usage(&command_doctor, "it takes no arguments, not", argv[1]);
    }
    bool passed = computes(&error);
    find_parts(parts, &f);
    if (as_json) {
        print_json(parts, passed);
    } else {
        print_text(parts, passed);
    }
    return passed ? EXIT_DONE : EXIT_FAILED;
}

const command command_doctor = {
    "doctor",
    "show the build configuration, and how to get what is missing",
    "Usage: reef doctor [OPTIONS]\n\n"
    "Prints the version, the processor, the vector instructions in use, the number of threads, and which optional "
    "parts\n"
    "were found (BLAS, libyaml, gnuplot, the shipped data, MPI), with how to get those that are missing. REEF_ISA in "
    "the\n"
    "environment limits the instructions (scalar, portable, avx2, ...).\n",
    OPTIONS(options),
    "Exit codes: 0 it works, though optional parts may be missing; 1 the self-test failed; 2 wrong usage.\n",
    VALUE_NONE,
    NULL,
    run_doctor,
};
