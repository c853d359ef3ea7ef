/* Bucketing: every row is in one bucket, chance decides in which, and rounds can be repeated. float64. */
#include "support/check.h"
#include "support/trial.h"

#include <math.h>
#include <string.h>

static trial first, second;
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
    trial_fill(&first, ROWS_GAUSS, 12, 3, REEF_F64, 1);
    first.round = 5;
    trial_must_run(&first, "bucketing | median");
    second = first;
    trial_must_run(&second, "bucketing | median");
    trial_same_out(&first, &second, "same round");
    second.round = (int64_t)5 << 32;
    trial_must_run(&second, "bucketing | median");
    assert_true(second.out[0] != first.out[0]);
    trial_must_run(&second, "bucketing:s=3 | mean");
    trial_must_run(&first, "mean");
    trial_close_out(&first, &second, 1e-14, "a mean of buckets is the mean");
}

static int find_bucketing(void **state)
{
    (void)state;
    bucketing = (const void *)reef_kind_find(NULL, REEF_FAMILY_RULE, "bucketing");
    return bucketing ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_hold_every_row_once),
        cmocka_unit_test(buckets_are_random),
        cmocka_unit_test(rounds_repeat),
    };
    return cmocka_run_group_tests(tests, find_bucketing, NULL);
}
