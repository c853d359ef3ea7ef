/* Vector normals: accuracy against the C library, the same bits on every instruction set and in every packing, and the law. */
#include "num/kernels/normals_tmpl.h" /* with the plain C compiled here as one more implementation */
#include "num/lanes.h"
#include "num/rng.h"
#include "num/special.h"
#include "support/check.h"

#include <stdlib.h>

/* Box-Muller of two words in double precision, from the definition at the head of normals.h. */
static void exact_pair(uint32_t x, uint32_t v, double *first, double *second)
{
    const double quarter = 0.785398163397448310;
    const double radius = sqrt(-2 * log((double)(x >> 1 | 1) / 0x1p31));
    const double s = (double)(int32_t)(v << 2 | 2) / 0x1p31;
    const double a = radius * cos(quarter * s) * (v >> 31 ? -1 : 1);
    const double b = radius * sin(quarter * s);
    *first = v >> 30 & 1 ? b : a;
    *second = v >> 30 & 1 ? a : b;
}

static void check_pair(uint32_t x, uint32_t v)
{
    double want[2];
    float got[2];
    exact_pair(x, v, &want[0], &want[1]);
    box_muller(x, v, &got[0], &got[1]);
    const double radius = sqrt(want[0] * want[0] + want[1] * want[1]);
    /* Near U = 1 the rounding of U itself, 2^-25, makes an error of 2^-25 / radius. */
    const double most = 4e-7 * fmax(1, radius) + fmin(0x1p-25 / radius, 4e-4);
    for (int i = 0; i < 2; i++) {
        CHECK(fabs((double)got[i] - want[i]) <= most, "words %x %x: %.9g instead of %.9g", x, v, (double)got[i],
              want[i]);
    }
}

static void accuracy(void **state)
{
    static const uint32_t edge[] = {0,          1,          2,          3,          0x3FFFFFFF, 0x40000000,
                                    0x7FFFFFFF, 0x80000000, 0x80000001, 0xB504F333, 0xB504F334, 0xBFFFFFFF,
                                    0xC0000000, 0xFFFFFF00, 0xFFFFFFFE, 0xFFFFFFFF};
    rfi_rng rng;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(edge); i++) {
        for (ptrdiff_t j = 0; j < COUNT(edge); j++) {
            check_pair(edge[i], edge[j]);
        }
    }
    rfi_rng_init(&rng, 1, 0, 0, 0, 0);
    for (int i = 0; i < 300000; i++) {
        const uint32_t x = rfi_rng_u32(&rng) >> (i % 32); /* small ones too: they make the tails */
        check_pair(x, rfi_rng_u32(&rng));
    }
    float first;
    float second;
    box_muller(0, 0, &first, &second);
    CHECK(first > 4.6F && first * first + second * second > 42.9F, "largest radius: %g %g", (double)first,
          (double)second);
}

/* The stream as documented: Philox of (block, agent, repetition, round). */
static void definition(void **state)
{
    const uint32_t agent = 12;
    const uint32_t repetition = 34;
    const int64_t round = (INT64_C(7) << 32) + 56;
    const uint64_t key = rfi_rng_key(rfi_rng_key(99, RFI_PURPOSE_DATA), UINT64_C(7) << 32 | 3);
    float got[40];
    (void)state;
    rfi_normal_stream stream = rfi_normal_open(99, RFI_PURPOSE_DATA, round, 3);
    rfi_lanes_find()->normals(&stream, &agent, &repetition, 1, 8, 40, got);
    for (uint32_t b = 0; b < 10; b++) {
        const uint32_t counter[] = {b + 2, agent, repetition, 56};
        const uint32_t keys[] = {(uint32_t)key, (uint32_t)(key >> 32)};
        uint32_t word[4];
        double want[4];
        rfi_philox(counter, keys, word);
        exact_pair(word[0], word[1], &want[0], &want[1]);
        exact_pair(word[2], word[3], &want[2], &want[3]);
        for (uint32_t i = 0; i < 4; i++) {
            CHECK_CLOSE((double)got[4 * b + i], want[i], 3e-6, "number of a stream");
        }
    }
}

/* Every implementation and every packing of the same lanes: the same bits, and nothing written beyond them. */
static void same_bits(void **state)
{
    enum { MAX = 70, COUNT_MAX = 41, GUARD = 8 };
    static const ptrdiff_t widths[] = {1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 48, 64, 70};
    static const ptrdiff_t counts[] = {1, 2, 3, 4, 5, 11, 12, 40, 41};
    static float want[MAX][COUNT_MAX];
    static float got[MAX * COUNT_MAX + GUARD];
    uint32_t agents[MAX];
    uint32_t repetitions[MAX];
    (void)state;
    rfi_normal_stream stream = rfi_normal_open(5, RFI_PURPOSE_DATA, 1000, 0);
    for (uint32_t l = 0; l < MAX; l++) {
        agents[l] = l * l;
        repetitions[l] = 1000 + l / 3;
        normals(&stream, agents + l, repetitions + l, 1, 4, COUNT_MAX, want[l]);
    }
    for (int k = 0; rfi_lanes_at(k); k++) {
        const char *name = rfi_lanes_at(k)->name;
        for (ptrdiff_t i = 0; i < COUNT(widths) * COUNT(counts); i++) {
            const ptrdiff_t lanes = widths[i / COUNT(counts)];
            const ptrdiff_t count = counts[i % COUNT(counts)];
            memset(got, 0x5A, sizeof got);
            rfi_lanes_at(k)->normals(&stream, agents, repetitions, lanes, 4, count, got);
            for (ptrdiff_t j = 0; j < count * lanes; j++) {
                CHECK(memcmp(&got[j], &want[j % lanes][j / lanes], sizeof got[j]) == 0,
                      "%s, %td lanes, %td numbers: number %td of lane %td", name, lanes, count, j / lanes, j % lanes);
            }
            for (ptrdiff_t j = 0; j < GUARD * (ptrdiff_t)sizeof(float); j++) {
                assert_int_equal(((unsigned char *)(got + count * lanes))[j], 0x5A);
            }
        }
    }
    assert_null(rfi_lanes_at(-1));
    /* REEF_ISA caps the choice. */
    assert_int_equal(setenv("REEF_ISA", "scalar", 1), 0);
    assert_ptr_equal(rfi_lanes_find(), rfi_lanes_at(0));
    assert_int_equal(unsetenv("REEF_ISA"), 0);
}

/* The two steps of regression: against the definition, and the same bits everywhere. */
static void regression(void **state)
{
    enum { M = 13, STRIDE = 19 };
    float u[M * RFI_LANES], target[M], model[M * STRIDE];
    float want[RFI_LANES], sums[M * STRIDE];
    (void)state;
    for (int i = 0; i < M * RFI_LANES; i++) {
        u[i] = sinf((float)i);
    }
    for (int i = 0; i < M * STRIDE; i++) {
        model[i] = cosf((float)i);
        sums[i] = (float)i;
    }
    for (int m = 0; m < M; m++) {
        target[m] = 1 / (float)(m + 1);
    }
    for (int l = 0; l < RFI_LANES; l++) {
        want[l] = (float)l;
        for (int m = 0; m < M; m++) {
            want[l] += u[m * RFI_LANES + l] * (target[m] - model[m * STRIDE + l]);
        }
    }
    for (int k = 0; rfi_lanes_at(k); k++) {
        float error[RFI_LANES];
        float out[M * STRIDE];
        for (int l = 0; l < RFI_LANES; l++) {
            error[l] = (float)l;
        }
        rfi_lanes_at(k)->residual(u, target, model, STRIDE, M, error);
        assert_memory_equal(error, want, sizeof want);
        memcpy(out, sums, sizeof out);
        rfi_lanes_at(k)->scale(u, want, k % 2, STRIDE, M, out);
        for (int i = 0; i < M * STRIDE; i++) {
            const bool inside = i % STRIDE < RFI_LANES;
            const float product = inside ? u[i / STRIDE * RFI_LANES + i % STRIDE] * want[i % STRIDE] : 0;
            const float sum = !inside ? sums[i] : k % 2 ? product + sums[i] : product;
            assert_memory_equal(&out[i], &sum, sizeof sum);
        }
    }
}

enum { DRAWS = MONTE_CARLO(1 << 22, 1 << 16), CHUNK = 1 << 16 };

/* Draws of one stream, a chunk per round. */
static void draw(int64_t round, float *out)
{
    const uint32_t zero = 0;
    rfi_normal_stream stream = rfi_normal_open(2024, RFI_PURPOSE_DATA, round, 0);
    rfi_lanes_find()->normals(&stream, &zero, &zero, 1, 0, CHUNK, out);
}

/* Moments by place in the block, each within 5 standard errors, and counts in the tails. */
static void moments_and_tails(void **state)
{
    static const double edges[] = {1, 2, 3, 4, 4.5};
    static float z[CHUNK];
    double moment[4][4] = {{0}};
    double cross = 0;
    ptrdiff_t beyond[2][5] = {{0}};
    (void)state;
    for (int64_t round = 0; round < DRAWS / CHUNK; round++) {
        draw(round, z);
        for (int i = 0; i < CHUNK; i++) {
            double power = 1;
            for (int q = 0; q < 4; q++) {
                power *= (double)z[i];
                moment[i % 4][q] += power;
            }
            for (int e = 0; e < 5; e++) {
                beyond[z[i] > 0][e] += fabs((double)z[i]) > edges[e];
            }
        }
        for (int i = 0; i + 1 < CHUNK; i += 2) {
            cross += (double)z[i] * (double)z[i] * (double)z[i + 1] * (double)z[i + 1];
        }
    }
    static const double mean[] = {0, 1, 0, 3};
    static const double variance[] = {1, 2, 15, 96};
    for (int i = 0; i < 16; i++) {
        const double n = DRAWS / 4.0;
        CHECK_CLOSE(moment[i / 4][i % 4] / n, mean[i % 4], 5 * sqrt(variance[i % 4] / n), "moment");
    }
    CHECK_CLOSE(cross / (DRAWS / 2.0), 1, 5 * sqrt(8 / (DRAWS / 2.0)), "squares of a pair are independent");
    for (int e = 0; e < 5; e++) {
        const double expected = DRAWS * rfi_normal_cdf(-edges[e]);
        for (int side = 0; side < 2; side++) {
            CHECK_CLOSE((double)beyond[side][e], expected, 5 * sqrt(expected) + 1, "numbers in a tail");
        }
    }
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a;
    const float y = *(const float *)b;
    return (x > y) - (x < y);
}

/* sqrt(n) sup |F_n - F| exceeds 1.95 with probability 0.001. */
static void kolmogorov_smirnov(void **state)
{
    static float z[CHUNK];
    (void)state;
    for (int64_t round = 0; round < 4; round++) {
        double worst = 0;
        draw(round, z);
        qsort(z, CHUNK, sizeof *z, ascending);
        for (int i = 0; i < CHUNK; i++) {
            const double f = rfi_normal_cdf((double)z[i]);
            worst = fmax(worst, fmax(fabs(f - (double)i / CHUNK), fabs(f - (double)(i + 1) / CHUNK)));
        }
        CHECK(sqrt(CHUNK) * worst < 1.95, "Kolmogorov-Smirnov: %g", sqrt(CHUNK) * worst);
    }
}

/* Streams that differ in one thing only are uncorrelated, and so are their squares. */
static void independence(void **state)
{
    static const struct {
        uint64_t seed, purpose;
        uint32_t agent, repetition;
        int64_t round;
        int32_t step;
    } at[] = {
        {1, RFI_PURPOSE_DATA, 0, 0, 0, 0},  {2, RFI_PURPOSE_DATA, 0, 0, 0, 0},
        {1, RFI_PURPOSE_DRIFT, 0, 0, 0, 0}, {1, RFI_PURPOSE_DATA, 1, 0, 0, 0},
        {1, RFI_PURPOSE_DATA, 0, 1, 0, 0},  {1, RFI_PURPOSE_DATA, 0, 0, 1, 0},
        {1, RFI_PURPOSE_DATA, 0, 0, 0, 1},  {1, RFI_PURPOSE_DATA, 0, 0, INT64_C(1) << 32, 0},
    };
    enum { STREAMS = sizeof at / sizeof at[0], N = 20000 };
    static float z[STREAMS][N];
    (void)state;
    for (int i = 0; i < STREAMS; i++) {
        rfi_normal_stream stream = rfi_normal_open(at[i].seed, at[i].purpose, at[i].round, at[i].step);
        rfi_lanes_find()->normals(&stream, &at[i].agent, &at[i].repetition, 1, 0, N, z[i]);
        for (int j = 0; j < i; j++) {
            double product = 0;
            double squares = 0;
            for (int n = 0; n < N; n++) {
                const double x = (double)z[i][n];
                const double y = (double)z[j][n];
                product += x * y;
                squares += (x * x - 1) * (y * y - 1);
            }
            CHECK_CLOSE(product / N, 0, 5 / sqrt(N), "correlation of two streams");
            CHECK_CLOSE(squares / N, 0, 10 / sqrt(N), "correlation of squares of two streams");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accuracy),     cmocka_unit_test(definition),        cmocka_unit_test(same_bits),
        cmocka_unit_test(regression),   cmocka_unit_test(moments_and_tails), cmocka_unit_test(kolmogorov_smirnov),
        cmocka_unit_test(independence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
