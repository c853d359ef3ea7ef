/* Philox against the published vectors of Random123, and the distributions drawn from it. */
#include "num/rng.h"
#include "num/special.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

/* Random123, kat_vectors: philox4x32 10. */
static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4];
        uint32_t key[2];
        uint32_t out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[4];
        rfi_philox(known[i].counter, known[i].key, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

/* The words of a stream are the blocks with counters (0, ..), (1, ..), .. in order. */
static void test_stream_is_a_pure_function(void **state)
{
    (void)state;
    rfi_rng rng;
    rfi_rng_init(&rng, 42, 7, 3, 5, 9);
    uint32_t key[2] = {rng.key[0], rng.key[1]};
    for (uint32_t block = 0; block < 5; block++) {
        uint32_t want[4];
        rfi_philox((uint32_t[4]){block, 3, 5, 9}, key, want);
        for (int i = 0; i < 4; i++)
            assert_int_equal(rfi_rng_u32(&rng), want[i]);
    }
}

/* The key of (seed, purpose) is part of every result ever published: it must not change. */
static void test_key_is_frozen(void **state)
{
    (void)state;
    rfi_rng rng;
    rfi_rng_init(&rng, 0, 0, 0, 0, 0);
    assert_int_equal(rng.key[1], 0x48218226);
    assert_int_equal(rng.key[0], 0xff3cd4bf);
    rfi_rng_init(&rng, 42, 7, 0, 0, 0);
    assert_int_equal(rng.key[1], 0xaebdb1a5);
    assert_int_equal(rng.key[0], 0x611cee63);
}

static void test_streams_differ(void **state)
{
    (void)state;
    static const uint32_t at[][5] = {{1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 0},
                                     {0, 0, 0, 0, 1}, {0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}};
    enum { STREAMS = sizeof at / sizeof at[0] };
    uint32_t first[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        rfi_rng rng;
        rfi_rng_init(&rng, at[i][0], at[i][1], at[i][2], at[i][3], at[i][4]);
        first[i] = rfi_rng_u32(&rng);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(first[i], first[j]);
    }
}

static void test_uniform_stays_inside(void **state)
{
    (void)state;
    /* the extreme words */
    rfi_rng rng = {.used = 0};
    assert_true(rfi_rng_uniform(&rng) == 0x1p-53);
    rng = (rfi_rng){.buffer = {0xffffffff, 0xffffffff, 0, 0}, .used = 0};
    assert_true(rfi_rng_uniform(&rng) == 1.0 - 0x1p-53);
}

static void test_uniform_moments(void **state)
{
    (void)state;
    enum { N = 200000 };
    rfi_rng rng;
    rfi_rng_init(&rng, 11, 0, 0, 0, 0);
    double mean = 0.0;
    double square = 0.0;
    for (int i = 0; i < N; i++) {
        const double u = rfi_rng_uniform(&rng);
        mean += u / N;
        square += u * u / N;
    }
    assert_true(fabs(mean - 0.5) < 5.0 * sqrt(1.0 / 12.0 / N));
    assert_true(fabs(square - 1.0 / 3.0) < 5.0 * sqrt(4.0 / 45.0 / N));
}

/* Two normals come from one block: how many words a draw takes is part of the stream's definition. */
static void test_normals_come_in_pairs(void **state)
{
    (void)state;
    rfi_rng rng;
    rfi_rng_init(&rng, 15, 0, 0, 0, 0);
    for (uint32_t pair = 1; pair < 4; pair++) {
        const double first = rfi_rng_normal(&rng);
        assert_true(first != rfi_rng_normal(&rng));
        assert_int_equal(rng.counter[0], pair);
        assert_int_equal(rng.used, 4);
    }
}

/* Kolmogorov-Smirnov against the normal distribution, in 1000 bins; and neighbours are uncorrelated. */
static void test_normal_distribution(void **state)
{
    (void)state;
    enum { N = 200000, BINS = 1000 };
    rfi_rng rng;
    rfi_rng_init(&rng, 12, 0, 0, 0, 0);
    long count[BINS] = {0};
    double before = 0.0;
    double product = 0.0;
    for (int i = 0; i < N; i++) {
        const double z = rfi_rng_normal(&rng);
        count[(int)(rfi_normal_cdf(z) * BINS)]++;
        product += z * before / N;
        before = z;
    }
    double worst = 0.0;
    double below = 0.0;
    for (int b = 0; b < BINS; b++) {
        below += (double)count[b] / N;
        worst = fmax(worst, fabs(below - (b + 1.0) / BINS));
    }
    assert_true(worst * sqrt(N) < 1.95); /* 0.1 % level */
    assert_true(fabs(product) < 5.0 / sqrt(N));
}

static void test_below_is_uniform(void **state)
{
    (void)state;
    enum { N = 70000, BOUND = 7 };
    rfi_rng rng;
    rfi_rng_init(&rng, 13, 0, 0, 0, 0);
    int count[BOUND] = {0};
    for (int i = 0; i < N; i++) {
        const uint32_t value = rfi_rng_below(&rng, BOUND);
        assert_true(value < BOUND);
        count[value]++;
    }
    double chi2 = 0.0;
    for (int v = 0; v < BOUND; v++)
        chi2 += pow(count[v] - N / (double)BOUND, 2) / (N / (double)BOUND);
    assert_true(chi2 < 22.5); /* 0.1 % level, 6 degrees of freedom */
    assert_int_equal(rfi_rng_below(&rng, 1), 0);
    /* three quarters of the range: without refusals every third value would come twice as often */
    int thirds = 0;
    for (int i = 0; i < N; i++)
        thirds += rfi_rng_below(&rng, 0xC0000000) % 3 == 0;
    assert_true(fabs(thirds - N / 3.0) < 5.0 * sqrt(N * 2.0 / 9.0));
}

static void test_permutation(void **state)
{
    (void)state;
    enum { N = 5, TRIALS = 60000 };
    rfi_rng rng;
    rfi_rng_init(&rng, 14, 0, 0, 0, 0);
    int count[N][N] = {{0}};
    for (int trial = 0; trial < TRIALS; trial++) {
        ptrdiff_t order[N];
        int seen[N] = {0};
        rfi_rng_permutation(&rng, order, N);
        for (int i = 0; i < N; i++) {
            assert_int_equal(seen[order[i]]++, 0);
            count[i][order[i]]++;
        }
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            assert_true(fabs(count[i][j] - TRIALS / (double)N) < 5.0 * sqrt(TRIALS * 0.16));
}

/* Every n has a permutation, another for each key, and each number comes to each place equally often. */
static void test_permuted(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 300; n += n < 20 ? 1 : 37) {
        bool seen[300] = {false};
        for (ptrdiff_t i = 0; i < n; i++) {
            const ptrdiff_t to = rfi_permuted(77, n, i);
            assert_true(to >= 0 && to < n && !seen[to]);
            seen[to] = true;
        }
    }
    enum { N = 7, KEYS = 7000 };
    int count[N][N] = {{0}};
    for (uint64_t key = 0; key < KEYS; key++) {
        for (ptrdiff_t i = 0; i < N; i++) {
            count[i][rfi_permuted(rfi_rng_key(key, 0), N, i)]++;
        }
    }
    double chi = 0;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            chi += pow(count[i][j] - KEYS / (double)N, 2) / (KEYS / (double)N);
        }
    }
    assert_true(chi < 80); /* 36 degrees of freedom: 1e-5 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_stream_is_a_pure_function),
        cmocka_unit_test(test_key_is_frozen),
        cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_permuted),
        cmocka_unit_test(test_uniform_stays_inside),
        cmocka_unit_test(test_uniform_moments),
        cmocka_unit_test(test_normals_come_in_pairs),
        cmocka_unit_test(test_normal_distribution),
        cmocka_unit_test(test_below_is_uniform),
        cmocka_unit_test(test_permutation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
