/* VREF, computed from the Gram matrix, against its definition on vectors; its constants. */
#include "num/tuning.h"
#include "support/check.h"
#include "support/definition.h"

#include <math.h>
#include <string.h>

static definition d;

static void check_vref(const char *spec, ptrdiff_t block, double efficiency)
{
    double b[ROWS_MAX];
    for (ptrdiff_t from = 0; from < d.t.m; from += block) {
        ptrdiff_t to = from + block < d.t.m ? from + block : d.t.m;
        oracle_vref(&d.x, from, to, oracle_kappa(&d.x, to - from, efficiency), d.want, b);
    }
    definition_check(&d, spec, 2e-7);
}

static void vref_against_vectors(void **state)
{
    (void)state;
    for (ptrdiff_t n = 2; n <= 33; n += 3) {
        for (ptrdiff_t m = 1; m <= 40; m += 13) {
            definition_make(&d, n % 2 ? ROWS_GAUSS : ROWS_OFFSET, n, m, n % 4 == 0, (uint32_t)(n + m));
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
        definition_make(&d, ROWS_GAUSS, n, 20, false, (uint32_t)n);
        trial_must_run(&d.t, "ref:scale=mad-exact,efficiency=0.95,max_iter=1000");
        memcpy(d.want, d.t.out, sizeof d.want);
        definition_check(&d, "vref:block=1,efficiency=0.95,tol=1e-13,max_iter=10000", 1e-9);
    }
}

static void vref_blocks_are_consistent(void **state)
{
    static trial part;
    (void)state;
    definition_make(&d, ROWS_GAUSS, 15, 60, true, 8);
    d.t.x[0][5] += 9; /* so that blocks differ */
    d.t.x[1][50] -= 9;
    trial_must_run(&d.t, "vref:block=20");
    for (ptrdiff_t k = 0; k < 3; k++) {
        part = d.t;
        part.m = 20;
        for (ptrdiff_t l = 0; l < d.t.n; l++) {
            memcpy(part.x[l], d.t.x[l] + 20 * k, 20 * sizeof(double));
        }
        trial_must_run(&part, "vref");
        for (ptrdiff_t i = 0; i < 20; i++) {
            assert_true(part.out[i] == d.t.out[20 * k + i]);
        }
    }
    trial_must_run(&d.t, "vref:block=60");
    part = d.t;
    trial_must_run(&part, "vref");
    trial_same_out(&part, &d.t, "whole and one block");
    trial_must_run(&part, "vref:block=segment");
    trial_same_out(&part, &d.t, "whole and one segment");
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
            definition_make(&d, ROWS_GAUSS, 21, table[i].block, false, 1);
            memset(d.t.x, 0, sizeof d.t.x);
            for (ptrdiff_t l = 0; l < 19; l++) {
                d.t.x[l][0] = l % 2 ? 1 : -1; /* with rows 19 and 20: median 0, median residual 1 */
            }
            d.t.x[20][0] = kappa * (outside ? 1.01 : 0.98);
            trial_must_run(&d.t, "vref:max_iter=1");
            assert_true((d.t.trust[20] > 0) == !outside);
        }
    }
}

/* kappa^2 >= 1 + 8 max a: an agent of large weight is not expelled by its own pull. */
static void heavy_agents_stay(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 200; seed++) {
        definition_make(&d, ROWS_GAUSS, 3 + (ptrdiff_t)(seed % 8), 60, true, seed);
        d.t.weights[seed % (uint32_t)d.t.n] = (double)d.t.n * (0.5 + seed % 5);
        trial_must_run(&d.t, "vref");
        double least = 1;
        for (ptrdiff_t l = 0; l < d.t.n; l++) {
            least = fmin(least, d.t.trust[l]);
        }
        CHECK(least > 0.2, "n = %td, heavy row %u: least trust %g", d.t.n, seed % (uint32_t)d.t.n, least);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vref_against_vectors),
                                       cmocka_unit_test(vref_of_one_coordinate_is_ref),
                                       cmocka_unit_test(vref_blocks_are_consistent),
                                       cmocka_unit_test(kappa_follows_the_table), cmocka_unit_test(heavy_agents_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
