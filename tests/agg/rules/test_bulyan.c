/* Bulyan against its definition. */
#include "support/check.h"
#include "support/definition.h"

#include <stdio.h>

static definition d;

static void against_the_definition(void **state)
{
    (void)state;
    for (ptrdiff_t f = 0; f <= 4; f++) {
        for (ptrdiff_t n = 4 * f + 3; n <= 4 * f + 7; n++) {
            SPEC("bulyan:f=%td", f);
            definition_make(&d, ROWS_GAUSS, n, 5, false, (uint32_t)(n + f));
            oracle_bulyan(&d.x, f, d.want);
            definition_check_relative(&d, spec, 1e-14);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
