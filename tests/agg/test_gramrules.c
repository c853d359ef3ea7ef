/* Rules that work in Gram space against direct computation on vectors: geomed, cclip, vref. float64. */
#include "num/rng.h"
#include "num/tuning.h"
#include "support/check.h"
#include "support/oracle.h"
#include "support/specs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static trial t;
static matrix x;
static double want[LENGTH_MAX];

static void make(rows_kind kind, ptrdiff_t n, ptrdiff_t m, bool weigh, uint32_t seed)
{
    trial_fill(&t, kind, n, m, REEF_F64, seed);
    if (weigh) {
        trial_weigh(&t, seed);
    }
    oracle_take(&t, &x);
}

static void check(const char *spec, double tol)
{
    trial_must_run(&t, spec);
    for (ptrdiff_t i = 0; i < t.m; i++) {
        CHECK(fabs(t.out[i] - want[i]) <= tol, "%s (n = %td, m = %td, weighted %d): %.17g instead of %.17g", spec, t.n,
              t.m, t.weighted, t.out[i], want[i]);
    }
}

/* ---- geometric median ---- */

static void geomed_is_optimal(void **state)
{
    (void)state;
    for (ptrdiff_t n = 3; n <= 33; n += 2) {
        for (ptrdiff_t m = 2; m <= 20; m += 6) {
            make(n % 4 == 1 ? ROWS_OFFSET : ROWS_GAUSS, n, m, m % 4 == 0, (uint32_t)(n + m));
            trial_must_run(&t, "geomed:tol=1e-13,max_iter=100000");
            double gradient = oracle_geomed_gradient(&x, t.out);
            CHECK(gradient < 1e-6, "n = %td, m = %td: gradient %g", n, m, gradient);
            trial_must_run(&t, "geomed");
            gradient = oracle_geomed_gradient(&x, t.out);
            CHECK(gradient < 1e-4, "n = %td, m = %td: gradient %g with default tol", n, m, gradient);
        }
    }
}

/* A row of more than half the weight, a majority of equal rows, a row in the middle of a cross: the optimum is a row. */
static void geomed_at_a_row(void **state)
{
    static const double cross[5][2] = {{0, 0}, {1, 0}, {-2, 0}, {0, 3}, {0, -4}};
    (void)state;
    make(ROWS_GAUSS, 9, 6, true, 2);
    t.weights[4] = 40;
    trial_must_run(&t, "geomed");
    for (ptrdiff_t i = 0; i < t.m; i++) {
        CHECK_CLOSE(t.out[i], t.x[4][i], 1e-6, "heavy row");
    }
    make(ROWS_GAUSS, 9, 6, false, 3);
    for (ptrdiff_t l = 0; l < 5; l++) {
        memcpy(t.x[l], t.x[8], sizeof t.x[l]);
    }
    trial_must_run(&t, "geomed");
    for (ptrdiff_t i = 0; i < t.m; i++) {
        CHECK_CLOSE(t.out[i], t.x[8][i], 1e-6, "majority");
    }
    make(ROWS_GAUSS, 5, 2, false, 4);
    for (ptrdiff_t l = 0; l < 5; l++) {
        memcpy(t.x[l], cross[l], sizeof cross[l]);
    }
    trial_must_run(&t, "geomed");
    CHECK_CLOSE(hypot(t.out[0], t.out[1]), 0, 1e-6, "cross");
    /* collinear, odd: the middle one */
    make(ROWS_GAUSS, 7, 1, false, 5);
    oracle_median(&x, 0, want);
    trial_must_run(&t, "geomed");
    CHECK_CLOSE(t.out[0], want[0], 1e-5, "line");
}

static void geomed_byzfl(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 33; n += 4) {
        make(n % 8 == 1 ? ROWS_GAUSS : ROWS_OFFSET, n, 7, n % 3 == 0, (uint32_t)n);
        oracle_geomed_byzfl(&x, 0.1, 3, want);
        check("geomed:dialect=byzfl", 1e-11);
        oracle_geomed_byzfl(&x, 2.5, 10, want);
        check("geomed:dialect=byzfl,nu=2.5,steps=10", 1e-10);
    }
    /* a row at the very point of an iterate: nu keeps its weight finite */
    make(ROWS_GAUSS, 3, 2, false, 1);
    memset(t.x[1], 0, sizeof t.x[1]);
    oracle_take(&t, &x);
    oracle_geomed_byzfl(&x, 0.1, 3, want);
    check("geomed:dialect=byzfl", 1e-12);
}

/* ---- centered clipping ---- */

static void check_rounds(const char *spec, double tau, int steps, bool median, bool weigh)
{
    double v[LENGTH_MAX] = {0};
    ptrdiff_t length = 9;
    reef_shape shape = {.rows = 7, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    reef_state *memory = NULL;
    reef_agg *agg = make_agg(spec);
    assert_int_equal(reef_state_create(&memory, agg, &shape, NULL), REEF_OK);
    assert_null(reef_state_centre(memory, 0));
    for (uint32_t round = 0; round < 6; round++) {
        make(round % 2 ? ROWS_GAUSS : ROWS_OFFSET, 7, length, weigh, round);
        t.state = memory;
        if (round == 0 && median) {
            oracle_median(&x, 0, v);
        }
        oracle_cclip(&x, tau, steps, v);
        trial_apply(&t, agg);
        assert_int_equal(t.status, REEF_OK);
        for (ptrdiff_t i = 0; i < length; i++) {
            CHECK_CLOSE(t.out[i], v[i], 1e-11, spec);
        }
        assert_memory_equal(reef_state_centre(memory, 0), t.out, (size_t)length * sizeof(double));
    }
    reef_state_reset(memory);
    assert_null(reef_state_centre(memory, 0));
    reef_state_destroy(&memory);
    assert_null(memory);
    reef_agg_destroy(&agg);
}

static void cclip(void **state)
{
    (void)state;
    check_rounds("cclip", 100, 1, false, false);
    check_rounds("cclip:tau=1", 1, 1, false, true);
    check_rounds("cclip:tau=0.3,L=20", 0.3, 20, false, true);
    check_rounds("cclip:tau=2.5,L=3,start=median", 2.5, 3, true, false);
    check_rounds("cclip:tau=2.5,L=3,start=median", 2.5, 3, true, true);
}

/* ---- vref ---- */

static void check_vref(const char *spec, ptrdiff_t block, double efficiency)
{
    double b[ROWS_MAX];
    for (ptrdiff_t from = 0; from < t.m; from += block) {
        ptrdiff_t to = from + block < t.m ? from + block : t.m;
        oracle_vref(&x, from, to, oracle_kappa(&x, to - from, efficiency), want, b);
    }
    check(spec, 2e-7);
}

static void vref_against_vectors(void **state)
{
    (void)state;
    for (ptrdiff_t n = 2; n <= 33; n += 3) {
        for (ptrdiff_t m = 1; m <= 40; m += 13) {
            make(n % 2 ? ROWS_GAUSS : ROWS_OFFSET, n, m, n % 4 == 0, (uint32_t)(n + m));
            check_vref("vref", m, 0.98);
            check_vref("vref:efficiency=0.95,tol=1e-13,max_iter=1000", m, 0.95);
            check_vref("vref:block=segment", m, 0.98);
            check_vref("vref:block=7", 7, 0.98);
            check_vref("vref:block=3,efficiency=0.9", 3, 0.9);
            check_vref("vref:block=100000", m, 0.98);
        }
    }
}

/* Blocks of one coordinate are REF with the exact MAD factor; c / chi_1 times the median residual is c times the scale. The
 * two medians agree for odd n. */
static void vref_of_one_coordinate_is_ref(void **state)
{
    (void)state;
    for (ptrdiff_t n = 3; n <= 33; n += 2) {
        make(ROWS_GAUSS, n, 20, false, (uint32_t)n);
        trial_must_run(&t, "ref:scale=mad-exact,efficiency=0.95,max_iter=1000");
        memcpy(want, t.out, sizeof want);
        check("vref:block=1,efficiency=0.95,tol=1e-13,max_iter=10000", 1e-9);
    }
}

static void vref_blocks_are_consistent(void **state)
{
    static trial part;
    (void)state;
    make(ROWS_GAUSS, 15, 60, true, 8);
    t.x[0][5] += 9; /* so that blocks differ */
    t.x[1][50] -= 9;
    trial_must_run(&t, "vref:block=20");
    for (ptrdiff_t k = 0; k < 3; k++) {
        part = t;
        part.m = 20;
        for (ptrdiff_t l = 0; l < t.n; l++) {
            memcpy(part.x[l], t.x[l] + 20 * k, 20 * sizeof(double));
        }
        trial_must_run(&part, "vref");
        for (ptrdiff_t i = 0; i < 20; i++) {
            assert_true(part.out[i] == t.out[20 * k + i]);
        }
    }
    trial_must_run(&t, "vref:block=60");
    part = t;
    trial_must_run(&part, "vref");
    trial_same_out(&part, &t, "whole and one block");
    trial_must_run(&part, "vref:block=segment");
    trial_same_out(&part, &t, "whole and one segment");
}

/* Constants of MATH.md section 3: c_B and chi_B at 95 % and 98 %. */
static void kappa_follows_the_table(void **state)
{
    static const struct {
        ptrdiff_t block;
        double c95, c98, chi;
    } table[] = {
        {1, 4.685, 5.921, .6745},     {2, 5.123, 6.431, 1.1774},    {4, 5.810, 7.227, 1.8321},
        {8, 6.818, 8.385, 2.7100},    {10, 7.224, 8.847, 3.0564},   {16, 8.228, 9.982, 3.9164},
        {32, 10.154, 12.123, 5.5978}, {64, 12.771, 14.973, 7.9583},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(table); i++) {
        double b = (double)table[i].block;
        CHECK_CLOSE(rfi_joint_kappa(b, 0.95), fmax(table[i].c95 / table[i].chi, 2), 2e-3, "95 %");
        CHECK_CLOSE(rfi_joint_kappa(b, 0.98), fmax(table[i].c98 / table[i].chi, 2), 2e-3, "98 %");
        /* the rule uses it: a row just inside the radius is heard, one just outside is not */
        double kappa = fmax(table[i].c98 / table[i].chi, 2);
        for (int outside = 0; outside < 2; outside++) {
            make(ROWS_GAUSS, 21, table[i].block, false, 1);
            memset(t.x, 0, sizeof t.x);
            for (ptrdiff_t l = 0; l < 19; l++) {
                t.x[l][0] = l % 2 ? 1 : -1; /* with rows 19 and 20: median 0, median residual 1 */
            }
            t.x[20][0] = kappa * (outside ? 1.01 : 0.98);
            trial_must_run(&t, "vref:max_iter=1");
            assert_true((t.trust[20] > 0) == !outside);
        }
    }
}

/* kappa^2 >= 1 + 8 max a: an agent of large weight is not expelled by its own pull. */
static void heavy_agents_stay(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 200; seed++) {
        make(ROWS_GAUSS, 3 + (ptrdiff_t)(seed % 8), 60, true, seed);
        t.weights[seed % (uint32_t)t.n] = (double)t.n * (0.5 + seed % 5);
        trial_must_run(&t, "vref");
        double least = 1;
        for (ptrdiff_t l = 0; l < t.n; l++) {
            least = fmin(least, t.trust[l]);
        }
        CHECK(least > 0.2, "n = %td, heavy row %u: least trust %g", t.n, seed % (uint32_t)t.n, least);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(geomed_is_optimal),
        cmocka_unit_test(geomed_at_a_row),
        cmocka_unit_test(geomed_byzfl),
        cmocka_unit_test(cclip),
        cmocka_unit_test(vref_against_vectors),
        cmocka_unit_test(vref_of_one_coordinate_is_ref),
        cmocka_unit_test(vref_blocks_are_consistent),
        cmocka_unit_test(kappa_follows_the_table),
        cmocka_unit_test(heavy_agents_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
