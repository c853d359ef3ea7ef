/* The kernel that makes means of many rows each: good to half a unit in the last place and a little, whatever is in the rows that a mean
 * does not have; the same bits at any offset; and it sees what is not finite. */
#include "num/kernels/kernels.h"
#include "num/rng.h"
#include "support/check.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ROWS = 33, COUNT_MAX = 203, STRIDE = 256, MEANS = 40 };

typedef struct scene {
    float x[ROWS][COUNT_MAX];
    double part[MEANS][ROWS];
    bool core[ROWS];
    rfi_mean mean[MEANS];
    uint16_t changes[MEANS][ROWS];
    ptrdiff_t n, means;
} scene;

/* Rows of size 1, some of them huge, tiny or nothing at some coordinates, and where all agree. */
static void fill_rows(scene *s, rfi_rng *rng)
{
    for (ptrdiff_t m = 0; m < COUNT_MAX; m++) {
        uint32_t kind = rfi_rng_below(rng, 8);
        double common = rfi_rng_normal(rng);
        for (ptrdiff_t l = 0; l < s->n; l++) {
            double value = common + 1e-3 * rfi_rng_normal(rng);
            value = kind == 1 && l % 5 == 0 ? 1e30 * value : value;
            value = kind == 2 && l % 5 == 0 ? (l % 2 ? 3e38 : -3e38) : value;
            value = kind == 3 ? (l % 3 ? 0 : 1e-20 * value) : value;
            value = kind == 4 ? common : value;
            value = kind == 5 && l % 4 == 1 ? common : (kind == 5 ? 1e6 * value : value);
            s->x[l][m] = (float)value;
        }
    }
}

/* At least half of the rows each, and a core of any kind: most rows of most means, all, or none. */
static void fill_means(scene *s, rfi_rng *rng, int core)
{
    for (ptrdiff_t l = 0; l < s->n; l++) {
        s->core[l] = core == 0 || (core == 1 && rfi_rng_below(rng, 4) > 0);
    }
    for (ptrdiff_t k = 0; k < s->means; k++) {
        rfi_mean *mean = &s->mean[k];
        ptrdiff_t parts = s->n;
        for (ptrdiff_t l = 0; l < s->n; l++) {
            bool left_out = 2 * (parts - 1) >= s->n && rfi_rng_below(rng, 4) == 0;
            s->part[k][l] = left_out ? 0 : 1;
            parts -= left_out;
        }
        *mean = (rfi_mean){.part = s->part[k], .factor = 1 / (double)parts, .change = s->changes[k], .place = k};
        for (int adds = 0; adds < 2; adds++) {
            for (ptrdiff_t l = 0; l < s->n; l++) {
                bool in = s->part[k][l] > 0;
                if (in != s->core[l] && in == adds) {
                    s->changes[k][mean->taken + mean->added] = (uint16_t)l;
                    mean->taken += !adds;
                    mean->added += adds;
                }
            }
        }
    }
}

static bool run(const scene *s, const rfi_kernels *kernels, ptrdiff_t from, ptrdiff_t count, float *out)
{
    static _Alignas(64) unsigned char scratch[RFI_SPAN_SCRATCH(ROWS)];
    const void *rows[ROWS];
    for (ptrdiff_t l = 0; l < s->n; l++) {
        rows[l] = s->x[l] + from;
    }
    const rfi_means means = {.rows = rows,
                             .core = s->core,
                             .n = s->n,
                             .count = count,
                             .mean = s->mean,
                             .means = s->means,
                             .out = out,
                             .stride = STRIDE,
                             .scratch = scratch};
    return kernels->means(&means);
}

static long double exact_mean(const scene *s, ptrdiff_t k, ptrdiff_t m)
{
    long double sum = 0;
    ptrdiff_t parts = 0;
    for (ptrdiff_t l = 0; l < s->n; l++) {
        sum += s->part[k][l] > 0 ? (long double)s->x[l][m] : 0;
        parts += s->part[k][l] > 0;
    }
    return sum / (long double)parts;
}

/* What double sums of the mean's own rows may be off by. */
static long double own_error(const scene *s, ptrdiff_t k, ptrdiff_t m)
{
    long double size = 0;
    for (ptrdiff_t l = 0; l < s->n; l++) {
        size += s->part[k][l] > 0 ? fabsl((long double)s->x[l][m]) : 0;
    }
    return size * (long double)DBL_EPSILON;
}

static void check_scene(const scene *s, const rfi_kernels *kernels)
{
    static float whole[MEANS * STRIDE];
    static float part[MEANS * STRIDE];
    assert_true(run(s, kernels, 0, COUNT_MAX, whole));
    for (ptrdiff_t k = 0; k < s->means; k++) {
        for (ptrdiff_t m = 0; m < COUNT_MAX; m++) {
            float got = whole[k * STRIDE + m];
            long double want = exact_mean(s, k, m);
            float away = nextafterf(fabsf((float)want), INFINITY) - fabsf((float)want);
            long double tol = 0.75L * (long double)away + own_error(s, k, m) + (long double)FLT_MIN;
            CHECK(fabsl((long double)got - want) <= tol, "%s: mean %td of %td rows at %td: %.9g instead of %.9Lg",
                  kernels->name, k, s->n, m, (double)got, want);
        }
    }
    for (ptrdiff_t from = 0; from < COUNT_MAX; from += 1 + from / 3) {
        ptrdiff_t count = COUNT_MAX - from < 37 ? COUNT_MAX - from : 37;
        assert_true(run(s, kernels, from, count, part));
        for (ptrdiff_t k = 0; k < s->means; k++) {
            CHECK(memcmp(part + k * STRIDE, whole + k * STRIDE + from, (size_t)count * sizeof *part) == 0,
                  "%s: other bits for coordinates from %td on", kernels->name, from);
        }
    }
}

static void means_are_good(void **state)
{
    static scene s;
    rfi_rng rng;
    int tested = 0;
    (void)state;
    for (uint32_t seed = 0; seed < 24; seed++) {
        rfi_rng_init(&rng, seed, 0x6d65616e, 0, 0, 0);
        s.n = seed < 4 ? 1 + seed : 5 + rfi_rng_below(&rng, ROWS - 4);
        s.means = 1 + rfi_rng_below(&rng, MEANS);
        fill_rows(&s, &rng);
        fill_means(&s, &rng, (int)(seed % 3));
        unsigned flush = rfi_flush_begin();
        for (int k = 0; rfi_kernels_at(true, k); k++) {
            if (rfi_kernels_at(true, k)->means) {
                check_scene(&s, rfi_kernels_at(true, k));
                tested++;
            }
        }
        rfi_flush_end(flush);
    }
    if (!tested) {
        skip();
    }
}

/* Wherever it is, in the core or not, as long as a mean has the row. */
static void not_finite_is_seen(void **state)
{
    static scene s;
    static float out[MEANS * STRIDE];
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    rfi_rng rng;
    (void)state;
    rfi_rng_init(&rng, 1, 0x6d65616e, 0, 0, 0);
    s.n = 9;
    s.means = 9;
    fill_rows(&s, &rng);
    fill_means(&s, &rng, 1);
    for (int k = 0; rfi_kernels_at(true, k); k++) {
        const rfi_kernels *kernels = rfi_kernels_at(true, k);
        for (ptrdiff_t i = 0; kernels->means && i < s.n * COUNT_MAX * COUNT(odd); i += 7) {
            float *x = &s.x[i % s.n][i / s.n % COUNT_MAX];
            float before = *x;
            *x = odd[i % COUNT(odd)];
            CHECK(!run(&s, kernels, 0, COUNT_MAX, out), "%s: %g in row %td was not seen", kernels->name, (double)*x,
                  i % s.n);
            *x = before;
            assert_true(run(&s, kernels, 0, COUNT_MAX, out));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_are_good),
        cmocka_unit_test(not_finite_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
