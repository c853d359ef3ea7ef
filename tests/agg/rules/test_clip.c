/* Clipping to a length against its definition. */
#include "support/check.h"
#include "support/definition.h"

#include <stdio.h>

static definition d;

/* Through the mean of the clipped rows; a radius that nobody exceeds changes nothing. */
static void against_the_definition(void **state)
{
    static const double radii[] = {0.1, 1, 2.5, 1e6};
    static matrix mixed;
    (void)state;
    for (ptrdiff_t n = 1; n <= 21; n += 4) {
        for (ptrdiff_t i = 0; i < COUNT(radii); i++) {
            SPEC("clip:c=%g | mean", radii[i]);
            definition_make(&d, n % 8 == 1 ? ROWS_GAUSS : ROWS_OFFSET, n, 7, i % 2, (uint32_t)(n + i));
            oracle_clip(&d.x, radii[i], &mixed);
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
