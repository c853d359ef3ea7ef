/* mref in runs against attackers who know it: the strategies A to E of an adversary who has read the source, those who watch the trust they get, and
 * two-faced ones. The settings of experiments/hard_cases.yaml and mref_fresh.yaml with other seeds and one run each; always the same bits, and
 * compared with the oracle on the same data. */
#include "support/check.h"
#include "support/runs.h"

#include <math.h>
#include <stdio.h>

enum { ROUNDS = MONTE_CARLO(1800, 600), CAMP_ROUNDS = MONTE_CARLO(2700, 600), EVERY = 10 };

typedef struct setting {
    ptrdiff_t agents, malicious_count;
    const char *problem;
    const char *steps; /* of the strategy */
    int rounds;
    const bool *malicious; /* [the first so many] */
} setting;

/* Eight honest agents with odd numbers, who hear the one, and six with even ones, who hear the other. */
static const bool uneven[24] = {[2] = true,  [4] = true,  [6] = true,  [7] = true,  [11] = true,
                                [13] = true, [16] = true, [18] = true, [20] = true, [21] = true};

static const setting hard = {32, 14, "lms:dimension=10,noise=0.01", "mu=0.02,batch=16", ROUNDS, NULL};
static const setting camps = {24, 10, "lms:dimension=20,noise=0.01", "mu=0.03,batch=4", CAMP_ROUNDS, uneven};

/* Mean square deviation over the last third of a run, in dB. */
static double run_once(const setting *s, const char *rule, const char *attack)
{
    char strategy[80];
    world w;
    double sum = 0;
    double msd = 0;
    int points = 0;
    (void)snprintf(strategy, sizeof strategy, "%s:%s", *rule ? "diffusion" : "oracle", s->steps);
    world_open(&w, &(world_plan){.agents = s->agents,
                                 .problem = s->problem,
                                 .problem_seed = 5,
                                 .strategy = strategy,
                                 .rule = rule,
                                 .attack = attack,
                                 .malicious_count = s->malicious_count,
                                 .malicious = s->malicious,
                                 .seed = 13});
    world_step(&w, s->rounds - s->rounds / 3);
    for (int i = 0; i < s->rounds / 3; i += EVERY) {
        world_step(&w, EVERY);
        assert_int_equal(reef_run_msd(w.run, NULL, &msd, NULL), REEF_OK);
        sum += msd;
        points++;
    }
    world_close(&w);
    return 10 * log10(sum / points);
}

static void check_attack(const setting *s, const char *attack, double most)
{
    double got = run_once(s, "mref", attack);
    double best = run_once(s, "", attack);
    print_message("%s: %.2f dB above the oracle\n", attack, got - best);
    CHECK(got - best <= most, "%s: %.2f dB above the oracle, at most %.1f", attack, got - best, most);
}

static void fixed_patterns(void **state)
{
    static const char *const attacks[] = {
        "whitewash",                                      /* A: a new id in every round */
        "whitewash:identity=64,away=1300,ids=same,z=0.6", /* A'': away, then back */
        "come_and_go",                                    /* A': honest agents under new ids */
        "alie:z=0.3,period=100,jitter=1",                 /* C: change sides */
        "shared_noise:z=1.1",                             /* D */
        "alie:z=5,on=1,off=19,jitter=1",                  /* E: strikes */
        "alie:z=1,period=16,jitter=1", /* out by the split whenever it is looked who acts together: 3 dB when only those in were looked at */
        "alie:z=3,period=2,jitter=1", /* two camps, each of which seems to share its noise: 5 dB when the honest one kept one vote, too */
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(attacks); i++) {
        check_attack(&hard, attacks[i], ROUNDS < 1800 ? 1.5 : 0.5);
    }
}

static void attackers_who_watch_their_trust(void **state)
{
    (void)state;
    check_attack(&hard, "adaptive", 3);
    check_attack(&hard, "adaptive:period=100", 3);
}

/* Colluders who are more than two groups, or who hide what moves them in the noise of the others' mean: they keep weight, but gain nothing over the mean. */
static void hard_to_divide(void **state)
{
    static const char *const attacks[] = {"alie:z=0.25,period=100,jitter=1,weak=0.6",
                                          "alie:z=1.5,period=100,jitter=1,strike=20"};
    (void)state;
    check_attack(&hard, "whitewash:z=0.3,period=100,identity=160", ROUNDS < 1800 ? 4 : 1.5);
    for (ptrdiff_t i = 0; i < COUNT(attacks); i++) {
        double got = run_once(&hard, "mref", attacks[i]);
        double mean = run_once(&hard, "mean", attacks[i]);
        print_message("%s: %.2f dB above the mean\n", attacks[i], got - mean);
        CHECK(got - mean <= 0.5, "%s: %.2f dB above the mean", attacks[i], got - mean);
    }
}

/* Honest agents are pulled into two camps, which must not exclude each other: 19 dB when they did, with this seed. */
static void two_faced(void **state)
{
    (void)state;
    check_attack(&camps, "two_faced:delta=0.002", ROUNDS < 1800 ? 6 : 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fixed_patterns),
                                       cmocka_unit_test(attackers_who_watch_their_trust),
                                       cmocka_unit_test(hard_to_divide), cmocka_unit_test(two_faced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
