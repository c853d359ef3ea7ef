/* mref where honest agents differ and 40 % are malicious: handwritten digits, Dirichlet 0.5, eight of twenty. Without a second opinion the model learns
 * to please those who flip their labels as well (below 80 %), and copies of a small message in the middle of the honest ones (ipm) take their
 * weight, where senders count by heads in medians and in the split (13 % with seed 122). */
#include "support/check.h"
#include "support/runs.h"

enum { AGENTS = 20, MALICIOUS = 8, ROUNDS = 400 };

#define DIRICHLET "partition=(dirichlet:alpha=0.5)"
static const char softmax[] = "softmax:data=(digits:bias=yes)," DIRICHLET;
static const char network[] = "mlp:hidden=(32),data=digits," DIRICHLET;

/* Per cent of the test data after a run. */
static double accuracy(const char *problem, const char *rule, const char *attack, uint64_t seed)
{
    bool malicious[AGENTS] = {false};
    reef_score score;
    world w;
    for (uint64_t i = 0; i < MALICIOUS; i++) { /* as in bench/study_digits.c */
        malicious[(7 * i + seed) % AGENTS] = true;
    }
    world_open(&w, &(world_plan){.agents = AGENTS,
                                 .problem = problem,
                                 .problem_seed = seed,
                                 .strategy = "federated:mu=0.5,batch=32",
                                 .rule = rule,
                                 .attack = attack,
                                 .malicious_count = MALICIOUS,
                                 .malicious = malicious,
                                 .seed = seed});
    world_step(&w, ROUNDS);
    assert_int_equal(reef_run_score(w.run, &score, NULL), REEF_OK);
    world_close(&w);
    return 100 * score.accuracy;
}

static void flipped_labels(void **state)
{
    double least = 100;
    double without = 0;
    (void)state;
    for (uint64_t seed = 101; seed < 104; seed++) {
        double got = accuracy(softmax, "mref", "label_flip", seed);
        print_message("label_flip, seed %d: %.1f %%\n", (int)seed, got);
        least = got < least ? got : least;
        double other = accuracy(softmax, "mref:without=opinion", "label_flip", seed);
        without = other > without ? other : without;
    }
    CHECK(least >= 88, "%.1f %%", least);
    CHECK(without <= 82, "%.1f %% without a second opinion, so this is no test of it", without);
}

static void copies_in_the_middle(void **state)
{
    static const uint64_t seeds[] = {113, 120, 122}; /* some of the worst without votes */
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(seeds); i++) {
        double got = accuracy(softmax, "mref", "ipm", seeds[i]);
        print_message("ipm, seed %d: %.1f %%\n", (int)seeds[i], got);
        CHECK(got >= 85, "ipm, seed %d: %.1f %%", (int)seeds[i], got);
    }
}

/* Each of two camps shares what changes: the honest one must not lose its votes by that (9 % when it did). */
static void two_camps(void **state)
{
    (void)state;
    double got = accuracy(network, "mref", "sign_flip", 3);
    CHECK(got >= 90, "sign_flip: %.1f %%", got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(flipped_labels), cmocka_unit_test(copies_in_the_middle),
                                       cmocka_unit_test(two_camps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
