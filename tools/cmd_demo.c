/* reef demo: 32 synthetic models, 8 of them malicious in four different ways, aggregated by every rule.
 *
 * The table shows the error against the honest mean in units of the honest mean's own statistical error, so 0 is perfect and 1
 * means that the attack adds as much error as sampling noise; then the trust of each agent. */
#include "commands.h"

#include <reef/reef.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AGENTS = 32, MALICIOUS = 8, HONEST = AGENTS - MALICIOUS, COORDINATES = 20000 };

static const char *const scenarios[] = {"far", "near", "hidden", "broken"};
enum { FAR, NEAR, HIDDEN, BROKEN, SCENARIOS };
static const int widths[SCENARIOS] = {
    7, 6, 7, 7}; /* of the columns: with names of 18 and marks of trust just the 80 of a terminal */

/* Rules that need the number of malicious inputs get it; bulyan tolerates 7 of 32 at most. */
static const char *const specs[] = {
    "mean",
    "median",
    "trimmed:f=8",
    "meamed:f=8",
    "geomed",
    "krum:f=8",
    "multikrum:f=8",
    "bulyan:f=7",
    "mda:f=8",
    "huber",
    "tukey",
    "cclip:start=median",
    "ref",
    "ref:n=auto",
    "ref:scale=s",
    "vref",
    "mref",
    "nnm:f=8 | ref",
    "clip:c=200 | mean",
    "arc:f=8 | ref",
    "bucketing | vref",
};
enum { SPECS = sizeof specs / sizeof specs[0] };

typedef struct demo {
    float *data[SCENARIOS]; /* AGENTS x COORDINATES each */
    double *honest_mean;    /* COORDINATES */
    float *out;             /* COORDINATES */
    reef_report *report;
    bool utf8;
} demo;

typedef struct outcome {
    double error[SCENARIOS];
    double trust[SCENARIOS][AGENTS];
    reef_reason reason[SCENARIOS][AGENTS];
} outcome;

/* SplitMix64 and Box-Muller: plain, reproducible, good enough to show something. */
static double uniform(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

/* What malicious agent number i sends at a coordinate whose honest values have this mean and standard deviation 1. */
static float lie(int scenario, int i, double mean, float own)
{
    switch (scenario) {
    case FAR: /* each by its own amount */
        return (float)(mean + 100 * (i + 1));
    case NEAR: /* together, at the edge of the honest spread */
        return (float)(mean - 2.5);
    case HIDDEN: /* together, inside it ("a little is enough") */
        return (float)(mean - 1.0);
    default:
        break;
    }
    switch (i % 4) {
    case 0:
        return NAN;
    case 1:
        return INFINITY;
    case 2:
        return 1e38F;
    default:
        return -own * 1e6F;
    }
}

static void make_data(demo *d)
{
    uint64_t state = 2022;
    for (int m = 0; m < COORDINATES; m++) {
        double truth = 0.3 * normal(&state);
        float own[AGENTS];
        double sum = 0;
        for (int l = 0; l < AGENTS; l++) {
            own[l] = (float)(truth + normal(&state));
            sum += l < HONEST ? (double)own[l] : 0;
        }
        d->honest_mean[m] = sum / HONEST;
        for (int s = 0; s < SCENARIOS; s++) {
            for (int l = 0; l < AGENTS; l++) {
                bool malicious = l >= HONEST;
                d->data[s][l * COORDINATES + m] = malicious ? lie(s, l - HONEST, d->honest_mean[m], own[l]) : own[l];
            }
        }
    }
}

/* Root mean square distance to the honest mean, over that mean's own standard error. */
static double error_of(const demo *d)
{
    double squares = 0;
    for (int m = 0; m < COORDINATES; m++) {
        double off = (double)d->out[m] - d->honest_mean[m];
        squares += off * off;
    }
    return sqrt(squares / COORDINATES) * sqrt((double)HONEST);
}

static reef_status run_spec(demo *d, const char *spec, outcome *o, reef_error *error)
{
    reef_agg *agg = NULL;
    reef_status status = reef_agg_create(NULL, &agg, spec, error);
    for (int s = 0; status == REEF_OK && s < SCENARIOS; s++) {
        const void *rows[AGENTS];
        for (int l = 0; l < AGENTS; l++) {
            rows[l] = d->data[s] + (ptrdiff_t)l * COORDINATES;
        }
        status =
            reef_agg_apply(agg, &(reef_input){.rows = rows}, AGENTS, COORDINATES, REEF_F32, d->out, d->report, error);
        o->error[s] = error_of(d);
        for (int l = 0; l < AGENTS; l++) {
            o->trust[s][l] = reef_report_trust(d->report)[l];
            o->reason[s][l] = reef_report_reason(d->report, l);
        }
    }
    reef_agg_destroy(&agg);
    return status;
}

static void print_error(double error, int width)
{
    if (error < 1000) {
        printf("%*.2f", width, error);
    } else {
        printf("%*.0e", width, error);
    }
}

/* One mark per agent: from ignored to more than its fair share. */
static void print_trust(const demo *d, const double *trust)
{
    static const char *const blocks[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const digits[] = {".", "1", "2", "3", "4", "5", "6", "7", "8"};
    for (int l = 0; l < AGENTS; l++) {
        int level = trust[l] <= 0.005 ? 0 : (int)fmin(8, 1 + trust[l] * 6);
        printf("%s%s", l == HONEST ? " " : "", d->utf8 ? blocks[level] : digits[level]);
    }
}

static void print_head(const demo *d)
{
    printf("%d agents send model vectors of %d numbers; the last %d are malicious:\n", AGENTS, COORDINATES, MALICIOUS);
    printf("  far      each is off by its own 100 to 800 standard deviations\n");
    printf("  near     all of them collude 2.5 standard deviations off, at the edge of the\n");
    printf("           honest spread\n");
    printf("  hidden   the same at 1.0, well inside it: the hardest case without memory\n");
    printf("  broken   NaN, Inf, 1e38, and a sign flip times a million\n\n");
    printf("Error against the honest mean, in units of that mean's own statistical error\n");
    printf("(0 is perfect; below 1 the attack adds less error than sampling noise), and\n");
    printf("trust under 'near' (%s ignored, %s fair share, %s more; honest agents first, then\n", d->utf8 ? "·" : ".",
           d->utf8 ? "▇" : "7", d->utf8 ? "█" : "8");
    printf("malicious ones):\n\n%-18s", "rule");
    for (int s = 0; s < SCENARIOS; s++) {
        printf("%*s", widths[s], scenarios[s]);
    }
    printf("  trust under 'near'\n");
}

static void print_scenarios(const char *name)
{
    printf("%5s:", name);
    for (int s = 0; s < SCENARIOS; s++) {
        printf(" %6s", scenarios[s]);
    }
}

static void print_agents(const char *first_name, const outcome *first, const char *second_name, const outcome *second)
{
    const outcome *both[] = {first, second};
    printf("\nTrust of each agent (1: its fair share, 0: ignored, *: left out for NaN or Inf)\n\nagent       ");
    print_scenarios(first_name);
    print_scenarios(second_name);
    printf("\n");
    for (int l = 0; l < AGENTS; l++) {
        printf("%3d %s", l, l < HONEST ? "honest   " : "MALICIOUS");
        for (int i = 0; i < 2; i++) {
            printf("%5s", "");
            for (int s = 0; s < SCENARIOS; s++) {
                printf(" %6.2f", both[i]->trust[s][l]);
            }
        }
        printf("%s\n", second->reason[BROKEN][l] == REEF_NONFINITE ? "*" : "");
    }
}

static void show_progress(const char *spec, int done)
{
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%d of %d: %-20s", done + 1, SPECS, spec);
    }
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%40s\r", "");
    }
}

static int show(demo *d)
{
    static outcome outcomes[SPECS];
    const outcome *ref = NULL;
    const outcome *vref = NULL;
    reef_error error;
    clock_t start = clock();
    print_head(d);
    for (int i = 0; i < SPECS; i++) {
        show_progress(specs[i], i);
        if (run_spec(d, specs[i], &outcomes[i], &error) != REEF_OK) {
            fprintf(stderr, "reef demo: %s: %s\n", specs[i], error.text);
            return EXIT_FAILED;
        }
        clear_progress();
        printf("%-18s", specs[i]);
        for (int s = 0; s < SCENARIOS; s++) {
            print_error(outcomes[i].error[s], widths[s]);
        }
        printf("  ");
        print_trust(d, outcomes[i].trust[NEAR]);
        printf("\n");
        fflush(stdout);
        ref = strcmp(specs[i], "ref") == 0 ? &outcomes[i] : ref;
        vref = strcmp(specs[i], "vref") == 0 ? &outcomes[i] : vref;
    }
    print_agents("ref", ref, "vref", vref);
    printf("\n%d aggregations in %.1f s. Next: `reef list`, and examples/ for your own data.\n", SPECS * SCENARIOS,
           (double)(clock() - start) / CLOCKS_PER_SEC);
    return EXIT_DONE;
}

static int run_demo(int argc, char **argv)
{
    demo d = {0};
    int code = EXIT_FAILED;
    bool ready = true;
    if (argc > 1) {
        return bad_usage(&command_demo, "it takes no arguments, not", argv[1]);
    }
    d.utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    for (int s = 0; s < SCENARIOS; s++) {
        d.data[s] = malloc(sizeof(float) * AGENTS * COORDINATES);
        ready = ready && d.data[s];
    }
    d.honest_mean = malloc(sizeof(double) * COORDINATES);
    d.out = malloc(sizeof(float) * COORDINATES);
    if (ready && d.honest_mean && d.out && reef_report_create(NULL, &d.report, AGENTS, NULL) == REEF_OK) {
        make_data(&d);
        code = show(&d);
    } else {
        fprintf(stderr, "reef demo: out of memory\n");
    }
    reef_report_destroy(&d.report);
    for (int s = 0; s < SCENARIOS; s++) {
        free(d.data[s]);
    }
    free(d.honest_mean);
    free(d.out);
    return code;
}

const command command_demo = {
    "demo",
    "aggregate 32 models, 8 of them malicious, by every rule",
    "Usage: reef demo\n\n"
    "Aggregates 32 synthetic model vectors, 8 of them malicious in four different ways, by every rule, and prints the\n"
    "error against the honest mean, and the trust that each agent received. Takes a few seconds.\n",
    NULL,
    0,
    "Exit codes: 0 done, 1 it failed, 2 wrong usage.\n",
    VALUE_NONE,
    NULL,
    run_demo,
};
