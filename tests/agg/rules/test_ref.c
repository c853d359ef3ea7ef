/* REF against plain reweighting, with several scales; and floors of the scale. */
#include "num/scale.h"
#include "num/tuning.h"
#include "support/check.h"
#include "support/definition.h"

static definition d;

/* By plain reweighting with the scale by count. */
static void against_the_definition(void **state)
{
    double tukey = rfi_mest_tune(RFI_TUKEY, 0.95);
    double exact = rfi_mad_factor(RFI_SCALE_MAD_EXACT, 0);
    (void)state;
    CHECK_CLOSE(tukey, 4.685, 2e-4, "c at 95 %");
    CHECK_CLOSE(exact, 1.4826, 1e-5, "MAD factor");
    for (ptrdiff_t n = 3; n <= 33; n += 3) {
        definition_make(&d, n % 2 ? ROWS_GAUSS : ROWS_OFFSET, n, 8, n % 3 == 0, (uint32_t)n);
        oracle_mest(&d.x, tukey, 1.4815, d.want);
        definition_check_relative(&d, "ref", 1e-11);
        oracle_mest(&d.x, 4.685, 1.4815, d.want);
        definition_check_relative(&d, "ref:c=4.685", 1e-11);
        oracle_mest(&d.x, tukey, exact, d.want);
        definition_check_relative(&d, "ref:scale=mad-exact", 1e-11);
        oracle_mest(&d.x, tukey, rfi_mad_factor(RFI_SCALE_MAD_FINITE, (double)n), d.want);
        definition_check_relative(&d, "ref:scale=mad-finite", 1e-11);
    }
}

/* Where the MAD is 0 the result is the median, until a floor lets the others be heard. */
static void scale_floors(void **state)
{
    static const double values[] = {0, 0, 0, 0, 1, 1, -0.5};
    (void)state;
    definition_make(&d, ROWS_GAUSS, 7, 3, false, 1);
    for (ptrdiff_t l = 0; l < 7; l++) {
        d.t.x[l][0] = values[l];
    }
    trial_must_run(&d.t, "ref");
    assert_true(d.t.out[0] == 0 && d.t.trust[4] < 1);
    assert_true(d.t.shares[4 * d.t.m] == 0);
    trial_must_run(&d.t, "ref:scale_floor=100");
    CHECK_CLOSE(d.t.out[0], 1.5 / 7, 1e-3, "nearly the mean");
    trial_must_run(&d.t, "ref:scale_floor_rel=1000");
    CHECK_CLOSE(d.t.out[0], 1.5 / 7, 1e-3, "nearly the mean");
    CHECK_CLOSE(d.t.shares[4 * d.t.m], 1.0 / 7, 1e-3, "heard");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition), cmocka_unit_test(scale_floors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
