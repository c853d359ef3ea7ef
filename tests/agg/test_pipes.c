/* A pipe equals the rule alone on rows that were mixed by hand (tests/support/oracle_mix.c). float64. */
#include "support/check.h"
#include "support/oracle.h"
#include "support/specs.h"

#include <stdio.h>
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

enum { LONG_ROWS = 11, LONG = 3001 };

static void run_long(const char *spec, reef_dtype dtype, double *out)
{
    static double numbers[LONG_ROWS][LONG];
    static double result[LONG];
    const void *rows[LONG_ROWS];
    reef_error error = {0};
    reef_agg *agg = make_agg(spec);
    uint32_t seed = 5;
    for (ptrdiff_t l = 0; l < LONG_ROWS; l++) {
        for (ptrdiff_t m = 0; m < LONG; m++) {
            seed = seed * 1664525U + 1013904223U;
            double value = (double)(seed >> 8) * 0x1p-24 * (l % 4 ? 1 : 3);
            float narrow = (float)value;
            numbers[l][m] = value;
            if (dtype == REEF_F32) {
                memcpy((float *)(void *)numbers[l] + m, &narrow, sizeof narrow);
            }
        }
        rows[l] = numbers[l];
    }
    const reef_input input = {.rows = rows};
    CHECK(reef_agg_apply(agg, &input, LONG_ROWS, LONG, dtype, result, NULL, &error) == REEF_OK, "%s: %s", spec,
          error.text);
    for (ptrdiff_t m = 0; m < LONG; m++) {
        out[m] = dtype == REEF_F32 ? (double)((const float *)(const void *)result)[m] : result[m];
    }
    reef_agg_destroy(&agg);
}

/* One block as long as the vector is what there is without blocks: its Gram matrix is that of many chunks of mixed rows. */
static void long_blocks(void **state)
{
    static const char *const firsts[] = {"nnm:f=3", "arc:f=3", "clip", "bucketing:s=2", "nnm:f=3 | bucketing:s=2"};
    static double got[LONG], want[LONG];
    (void)state;
    for (ptrdiff_t i = 0; i < 2 * COUNT(firsts); i++) {
        char spec[100];
        reef_dtype dtype = i % 2 ? REEF_F64 : REEF_F32;
        (void)snprintf(spec, sizeof spec, "%s | vref", firsts[i / 2]);
        run_long(spec, dtype, want);
        (void)snprintf(spec, sizeof spec, "%s | vref:block=%d", firsts[i / 2], LONG);
        run_long(spec, dtype, got);
        for (ptrdiff_t m = 0; m < LONG; m++) {
            CHECK_CLOSE(got[m], want[m], dtype == REEF_F32 ? 1e-5 : 1e-9, spec);
        }
    }
}

/* Rows of weight 0 change nothing, also where with them there are more rows than means are made of by kernels. */
enum { MANY = 300, SHORT = 37 };

static void run_many(const reef_agg *agg, ptrdiff_t n, const void *const *rows, const double *weights, float *out)
{
    reef_error error = {0};
    const reef_input input = {.rows = rows, .weights = weights};
    memset(out, 0, SHORT * sizeof *out);
    CHECK(reef_agg_apply(agg, &input, n, SHORT, REEF_F32, out, NULL, &error) == REEF_OK, "%s", error.text);
}

static void many_rows(void **state)
{
    static const char *const specs[] = {"nnm:f=100 | median", "arc:f=1 | nnm:f=100 | median",
                                        "nnm:f=100 | nnm:f=90 | ref"};
    static float numbers[MANY][SHORT];
    const void *rows[MANY], *left[MANY];
    double weights[MANY];
    float got[SHORT], want[SHORT];
    ptrdiff_t n = 0;
    uint32_t seed = 5;
    (void)state;
    for (ptrdiff_t l = 0; l < MANY; l++) {
        for (ptrdiff_t m = 0; m < SHORT; m++) {
            seed = seed * 1664525U + 1013904223U;
            numbers[l][m] = (float)(seed >> 8) * 0x1p-24F;
        }
        rows[l] = numbers[l];
        weights[l] = l % 5 > 0;
        if (weights[l] > 0) {
            left[n++] = rows[l];
        }
    }
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        reef_agg *agg = make_agg(specs[i]);
        run_many(agg, MANY, rows, weights, got);
        run_many(agg, n, left, NULL, want);
        CHECK(memcmp(got, want, sizeof got) == 0, "%s", specs[i]);
        reef_agg_destroy(&agg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stage),   cmocka_unit_test(two_stages), cmocka_unit_test(choosing_rules),
        cmocka_unit_test(long_blocks), cmocka_unit_test(many_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
