/* A pipe equals the rule alone on rows that were mixed by hand (tests/support/oracle_mix.c), and bucketing keeps its
 * promises. float64. */
#include "num/rng.h"
#include "support/check.h"
#include "support/oracle.h"
#include "support/specs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static trial piped, alone;
static matrix raw, mixed;

enum { MIX_STAGES = 5 };
static const char *const stage_texts[MIX_STAGES] = {"nnm:f=2", "clip:c=2.5", "arc:f=2", "bucketing:s=2,seed=3",
                                                    "clip:c=0.5"};

static void mix(int stage, const matrix *from, matrix *to)
{
    static matrix copy;
    copy = *from;
    switch (stage) {
    case 0:
        oracle_nnm(&copy, 2, to);
        break;
    case 1:
        oracle_clip(&copy, 2.5, to);
        break;
    case 2:
        oracle_arc(&copy, 2, to);
        break;
    case 3:
        oracle_bucketing(&copy, stage_texts[3], piped.round, to);
        break;
    default:
        oracle_clip(&copy, 0.5, to);
    }
}

/* Rules for the end of a pipe; those that break ties between equal mixtures by rounding are left out. */
static const char *const ends[] = {"mean",
                                   "median",
                                   "ref",
                                   "huber:init=weighted",
                                   "trimmed:f=1",
                                   "meamed:f=1",
                                   "geomed:tol=1e-12,max_iter=100000",
                                   "cclip:tau=1,L=3",
                                   "cclip:start=median,tau=1",
                                   "vref",
                                   "vref:block=4",
                                   "vref:block=segment",
                                   "geomed:dialect=byzfl"};

static void check_pipe(const int *stages, int count, const char *end, bool weigh, uint32_t seed)
{
    char spec[240] = "";
    size_t used = 0;
    /* trimming by count needs a definite order, which equal mixtures of unequal weight do not have */
    bool ties = stages[0] == 0 || (count > 1 && stages[1] == 0);
    bool counts = strstr(end, "trimmed") || strstr(end, "meamed");
    trial_fill(&piped, seed % 2 ? ROWS_GAUSS : ROWS_OFFSET, 13, 9, REEF_F64, seed);
    if (weigh && !(ties && counts)) {
        trial_weigh(&piped, seed);
    }
    piped.round = seed;
    oracle_take(&piped, &raw);
    mixed = raw;
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(spec + used, sizeof spec - used, "%s | ", stage_texts[stages[i]]);
        mix(stages[i], &mixed, &mixed);
    }
    (void)snprintf(spec + used, sizeof spec - used, "%s", end);
    trial_must_run(&piped, spec);
    oracle_give(&mixed, &alone);
    alone.weighted = alone.weighted && !spec_uses(end, "krum"); /* krum counts buckets, whatever their size */
    trial_must_run(&alone, end);
    double tol = spec_uses(end, "geomed") ? 1e-6 : (spec_uses(end, "vref") ? 1e-8 : 1e-11);
    trial_close_out(&piped, &alone, tol * trial_magnitude(&alone), spec);
}

static void one_stage(void **state)
{
    (void)state;
    for (int s = 0; s < MIX_STAGES; s++) {
        for (ptrdiff_t e = 0; e < COUNT(ends); e++) {
            for (uint32_t seed = 0; seed < 4; seed++) {
                check_pipe((const int[]){s}, 1, ends[e], seed >= 2, seed);
            }
        }
    }
}

static void two_stages(void **state)
{
    (void)state;
    for (int s = 0; s < MIX_STAGES * MIX_STAGES; s++) {
        int stages[2] = {s / MIX_STAGES, s % MIX_STAGES};
        if (s == 0) {
            continue; /* nnm of equal mixtures: ties everywhere */
        }
        for (ptrdiff_t e = 0; e < COUNT(ends); e++) {
            check_pipe(stages, 2, ends[e], stages[0] != 3, (uint32_t)(s + e));
        }
    }
}

/* Rules that choose rows, where mixtures are all different. */
static void choosing_rules(void **state)
{
    static const char *const choosers[] = {"krum:f=1", "multikrum:f=1", "mda:f=1", "krum:f=2,dialect=byzfl"};
    (void)state;
    for (int s = 1; s < 4; s++) {
        for (ptrdiff_t e = 0; e < COUNT(choosers); e++) {
            for (uint32_t seed = 0; seed < 5; seed++) {
                check_pipe((const int[]){s}, 1, choosers[e], false, seed);
            }
        }
    }
}

/* Krum on nnm: the chosen mixture is one of those with the smallest score. */
static void krum_after_nnm(void **state)
{
    double best[LENGTH_MAX];
    (void)state;
    for (uint32_t seed = 0; seed < 30; seed++) {
        trial_fill(&piped, ROWS_GAUSS, 11, 5, REEF_F64, seed);
        oracle_take(&piped, &raw);
        oracle_nnm(&raw, 3, &mixed);
        trial_must_run(&piped, "nnm:f=3 | krum:f=3");
        oracle_krum(&mixed, 11 - 3 - 2, 1, best);
        for (ptrdiff_t i = 0; i < 5; i++) {
            CHECK_CLOSE(piped.out[i], best[i], 1e-12, "nnm | krum");
        }
    }
}

/* ---- bucketing ---- */

static const reef_rule *bucketing;
static double mixing[ROWS_MAX * ROWS_MAX];
static double bucket_weights[ROWS_MAX];

static ptrdiff_t draw_buckets(ptrdiff_t n, const double *a, int64_t s, int64_t seed, int64_t round)
{
    static ptrdiff_t order[4 * ROWS_MAX];
    int64_t params[2] = {s, seed};
    reef_points points = {.n = n, .count = n, .origin = -1, .centre = -1, .a = a, .round = round, .index = order};
    memset(mixing, 0, sizeof mixing);
    assert_int_equal(bucketing->mix(params, &points, mixing, bucket_weights, NULL), REEF_OK);
    return bucketing->mixed(params, n);
}

static void buckets_hold_every_row_once(void **state)
{
    double a[ROWS_MAX];
    (void)state;
    for (ptrdiff_t n = 1; n <= 40; n++) {
        for (int64_t s = 1; s <= n + 1; s++) {
            for (ptrdiff_t l = 0; l < n; l++) {
                a[l] = 2 * (double)(l + 1) / (double)(n * (n + 1));
            }
            ptrdiff_t buckets = draw_buckets(n, a, s, 1, n);
            assert_int_equal(buckets, (n + s - 1) / s);
            for (ptrdiff_t l = 0; l < n; l++) {
                int homes = 0;
                for (ptrdiff_t k = 0; k < buckets; k++) {
                    homes += mixing[k * n + l] > 0;
                    /* weighted mean inside, mass outside: together the weight of the row */
                    if (mixing[k * n + l] > 0) {
                        CHECK_CLOSE(mixing[k * n + l] * bucket_weights[k], a[l], 1e-14, "weight");
                    }
                }
                assert_int_equal(homes, 1);
            }
            for (ptrdiff_t k = 0; k + 1 < buckets; k++) {
                ptrdiff_t size = 0;
                for (ptrdiff_t l = 0; l < n; l++) {
                    size += mixing[k * n + l] > 0;
                }
                assert_int_equal(size, s);
            }
        }
    }
}

/* Rows 0 and 1 meet in a bucket of two with probability 1/(n - 1), whatever the round or seed. */
static void buckets_are_random(void **state)
{
    enum { N = 8, ROUNDS = 6000 };
    double a[N];
    double met[2] = {0, 0};
    (void)state;
    for (int l = 0; l < N; l++) {
        a[l] = 1.0 / N;
    }
    for (int64_t i = 0; i < ROUNDS; i++) {
        for (int by_seed = 0; by_seed < 2; by_seed++) {
            ptrdiff_t buckets = draw_buckets(N, a, 2, by_seed ? i : 0, by_seed ? 0 : i);
            for (ptrdiff_t k = 0; k < buckets; k++) {
                met[by_seed] += mixing[k * N] > 0 && mixing[k * N + 1] > 0;
            }
        }
    }
    double p = 1.0 / (N - 1);
    double error = sqrt(p * (1 - p) / ROUNDS);
    CHECK_CLOSE(met[0] / ROUNDS, p, 4 * error, "over rounds");
    CHECK_CLOSE(met[1] / ROUNDS, p, 4 * error, "over seeds");
}

static void rounds_repeat(void **state)
{
    (void)state;
    trial_fill(&piped, ROWS_GAUSS, 12, 3, REEF_F64, 1);
    piped.round = 5;
    trial_must_run(&piped, "bucketing | median");
    alone = piped;
    trial_must_run(&alone, "bucketing | median");
    trial_same_out(&piped, &alone, "same round");
    alone.round = (int64_t)5 << 32;
    trial_must_run(&alone, "bucketing | median");
    assert_true(alone.out[0] != piped.out[0]);
    trial_must_run(&alone, "bucketing:s=3 | mean");
    trial_must_run(&piped, "mean");
    trial_close_out(&piped, &alone, 1e-14, "a mean of buckets is the mean");
}

static int find_bucketing(void **state)
{
    (void)state;
    bucketing = reef_rule_find(NULL, "bucketing");
    return bucketing ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stage),
        cmocka_unit_test(two_stages),
        cmocka_unit_test(choosing_rules),
        cmocka_unit_test(krum_after_nnm),
        cmocka_unit_test(buckets_hold_every_row_once),
        cmocka_unit_test(buckets_are_random),
        cmocka_unit_test(rounds_repeat),
    };
    return cmocka_run_group_tests(tests, find_bucketing, NULL);
}
