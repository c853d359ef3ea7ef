/* Mixing with the nearest rows against its definition. */
#include "support/check.h"
#include "support/definition.h"

#include <stdio.h>

static definition d;

/* Through the mean of the mixed rows. */
static void against_the_definition(void **state)
{
    static matrix mixed;
    (void)state;
    for (ptrdiff_t n = 3; n <= 21; n += 3) {
        for (ptrdiff_t f = 0; 2 * f < n; f += 1 + n / 8) {
            SPEC("nnm:f=%td | mean", f);
            definition_make(&d, n % 2 ? ROWS_GAUSS : ROWS_OFFSET, n, 7, false, (uint32_t)(n + f));
            oracle_nnm(&d.x, f, &mixed);
            oracle_mean(&mixed, d.want);
            definition_check_relative(&d, spec, 1e-12);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
