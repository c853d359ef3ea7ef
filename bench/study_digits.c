/* A study, not a benchmark of speed: final accuracy on handwritten digits for rules against attacks.
 *
 * 20 agents with a server (exchange=update), digits of UCI spread over them, 0, 20 and 40 % malicious at random places. Every cell is the
 * mean over seeds with its standard error; the same seed has the same data, partition and malicious agents for every rule, so that cells of a
 * column are paired. Rules that must be told the number of malicious agents are told it; without an attack they expect 40 %.
 *
 * usage: study_digits [--problem SPEC] [--strategy SPEC] [--rounds N] [--seeds N] [--show accuracy|trust] [--rule TEXT]
 * prints one table in Markdown: accuracy at the end in per cent, or the trust given to malicious agents (fair share: 100), the mean over rounds.
 * --rule: only rules whose name contains TEXT.
 */
#include <reef/reef.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGENTS = 20, SPEC_SIZE = 200 };

static const char *const rules[] = {
    "mean", "median",         "trimmed:f=%d", "krum:f=%d", "geomed", "cclip:tau=1", "ref", "ref:scale_floor_rel=3",
    "vref", "nnm:f=%d | ref", "mref",
};
static const char *const attacks[] = {
    "sign_flip", "alie", "ipm", "additive:delta=1,direction=gaussian", "label_flip",
};
static const int malicious_counts[] = {4, 8};
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

typedef struct study {
    const char *problem;
    const char *strategy;
    int rounds, seeds;
    bool trust;       /* of malicious agents, instead of the accuracy */
    const char *only; /* part of a rule's name */
} study;

typedef struct cell {
    double mean, error; /* in per cent */
} cell;

static void must(reef_status status, const reef_error *error)
{
    if (status != REEF_OK) {
        (void)fprintf(stderr, "study_digits: %s\n", error->text);
        exit(1);
    }
}

static double accuracy_at_end(const study *s, reef_run *run)
{
    reef_error error;
    reef_score score;
    must(reef_run_step(run, s->rounds, &error), &error);
    must(reef_run_score(run, &score, &error), &error);
    return 100 * score.accuracy;
}

/* Looked at twenty times. */
static double trust_of_malicious(const study *s, reef_run *run)
{
    enum { LOOKS = 20 };
    reef_error error;
    reef_trust_facts facts;
    double sum = 0;
    for (int i = 0; i < LOOKS; i++) {
        must(reef_run_step(run, s->rounds / LOOKS, &error), &error);
        must(reef_run_trust_facts(run, &facts, &error), &error);
        sum += facts.malicious_count;
    }
    return 100 * sum / LOOKS;
}

/* One run. attack NULL: nobody lies. */
static double run_once(const study *s, const char *rule, const char *attack, int malicious_count, uint64_t seed)
{
    reef_error error;
    reef_problem *problem = NULL;
    reef_agg *agg = NULL;
    reef_attack *lies = NULL;
    reef_run *run = NULL;
    bool malicious[AGENTS] = {false};
    for (int i = 0; i < malicious_count; i++) { /* 7 and 20 have no common divisor: all different */
        malicious[(7 * i + (int)seed) % AGENTS] = true;
    }
    must(reef_problem_create(NULL, &problem, s->problem, AGENTS, seed, &error), &error);
    must(reef_agg_create(NULL, &agg, rule, &error), &error);
    if (attack) {
        must(reef_attack_create(NULL, &lies, attack, &error), &error);
    }
    const reef_run_setup setup = {.problem = problem,
                                  .strategy = s->strategy,
                                  .rule = agg,
                                  .attack = lies,
                                  .malicious = malicious,
                                  .seed = seed,
                                  .trust = s->trust};
    must(reef_run_create(NULL, &run, &setup, &error), &error);
    double found = s->trust ? trust_of_malicious(s, run) : accuracy_at_end(s, run);
    reef_run_destroy(&run);
    reef_attack_destroy(&lies);
    reef_agg_destroy(&agg);
    reef_problem_destroy(&problem);
    return found;
}

static cell run_cell(const study *s, const char *pattern, const char *attack, int malicious_count)
{
    char rule[SPEC_SIZE];
    double sum = 0;
    double squares = 0;
    const char *place = strstr(pattern, "%d");
    (void)snprintf(rule, sizeof rule, "%s", pattern);
    if (place) {
        (void)snprintf(rule, sizeof rule, "%.*s%d%s", (int)(place - pattern), pattern, attack ? malicious_count : 8,
                       place + 2);
    }
    for (int seed = 1; seed <= s->seeds; seed++) {
        double found = run_once(s, rule, attack, malicious_count, (uint64_t)seed);
        sum += found;
        squares += found * found;
    }
    double mean = sum / s->seeds;
    double variance = fmax(squares / s->seeds - mean * mean, 0) * s->seeds / fmax(s->seeds - 1, 1);
    return (cell){mean, sqrt(variance / s->seeds)};
}

static void print_head(const study *s)
{
    printf("`%s`, `%s`, %d rounds, %d seeds%s:\n\n| rule |%s", s->problem, s->strategy, s->rounds, s->seeds,
           s->trust ? ", trust of malicious agents" : "", s->trust ? "" : " no attack |");
    for (int a = 0; a < COUNT(attacks); a++) {
        for (int f = 0; f < COUNT(malicious_counts); f++) {
            printf(" %.*s %d %% |", (int)strcspn(attacks[a], ":"), attacks[a], 100 * malicious_counts[f] / AGENTS);
        }
    }
    printf("\n|---|");
    for (int i = s->trust; i <= COUNT(attacks) * COUNT(malicious_counts); i++) {
        printf("---|");
    }
    printf("\n");
}

static void print_rule(const study *s, const char *rule)
{
    char name[SPEC_SIZE];
    (void)snprintf(name, sizeof name, "%s", rule);
    char *parameter = strstr(name, ":f=%d");
    if (parameter) {
        memmove(parameter, parameter + 5, strlen(parameter + 5) + 1);
    }
    printf("| `%s` |", name);
    (void)fprintf(stderr, "%s ...\n", name);
    if (!s->trust) {
        cell clean = run_cell(s, rule, NULL, 0);
        printf(" %.1f ± %.1f |", clean.mean, clean.error);
    }
    for (int a = 0; a < COUNT(attacks); a++) {
        for (int f = 0; f < COUNT(malicious_counts); f++) {
            cell c = run_cell(s, rule, attacks[a], malicious_counts[f]);
            printf(" %.1f ± %.1f |", c.mean, c.error);
            (void)fflush(stdout);
        }
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    study s = {"softmax:data=(digits:bias=yes),partition=(dirichlet:alpha=0.5)",
               "federated:mu=0.5,batch=32",
               600,
               10,
               false,
               ""};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--problem") == 0) {
            s.problem = argv[i + 1];
        } else if (strcmp(argv[i], "--strategy") == 0) {
            s.strategy = argv[i + 1];
        } else if (strcmp(argv[i], "--rounds") == 0) {
            s.rounds = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--seeds") == 0) {
            s.seeds = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--show") == 0) {
            s.trust = strcmp(argv[i + 1], "trust") == 0;
        } else if (strcmp(argv[i], "--rule") == 0) {
            s.only = argv[i + 1];
        }
    }
    print_head(&s);
    for (int i = 0; i < COUNT(rules); i++) {
        if (strstr(rules[i], s.only)) {
            print_rule(&s, rules[i]);
        }
    }
    return 0;
}
