/* The biweight against plain reweighting; with the paper's constants it is ref. */
#include "num/tuning.h"
#include "support/check.h"
#include "support/definition.h"

static definition d;

static void against_the_definition(void **state)
{
    double tukey = rfi_mest_tune(RFI_TUKEY, 0.95);
    (void)state;
    for (ptrdiff_t n = 3; n <= 33; n += 3) {
        definition_make(&d, n % 2 ? ROWS_GAUSS : ROWS_OFFSET, n, 8, n % 3 == 0, (uint32_t)n);
        oracle_mest(&d.x, tukey, 1.4815, d.want);
        definition_check_relative(&d, "tukey", 1e-11);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
