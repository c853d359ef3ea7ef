/* Huber's estimate against plain reweighting, from the median and from the mean. */
#include "num/scale.h"
#include "num/tuning.h"
#include "support/check.h"
#include "support/definition.h"

static definition d;

static void against_the_definition(void **state)
{
    double huber = rfi_mest_tune(RFI_HUBER, 0.95);
    (void)state;
    CHECK_CLOSE(huber, 1.345, 2e-4, "k at 95 %");
    for (ptrdiff_t n = 3; n <= 33; n += 3) {
        definition_make(&d, n % 2 ? ROWS_GAUSS : ROWS_OFFSET, n, 8, n % 3 == 0, (uint32_t)n);
        oracle_mest(&d.x, -huber, 1.4815, d.want);
        definition_check_relative(&d, "huber", 1e-11);
        oracle_mest(&d.x, -huber, rfi_mad_factor(RFI_SCALE_MAD_EXACT, 0), d.want);
        definition_check_relative(&d, "huber:scale=mad-exact,start=mean", 1e-11);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
