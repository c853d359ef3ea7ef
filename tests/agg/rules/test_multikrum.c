/* Multi-Krum against its definition, in both dialects. */
#include "support/check.h"
#include "support/definition.h"

#include <stdio.h>

static definition d;

static void against_the_definition(void **state)
{
    (void)state;
    for (ptrdiff_t f = 0; f <= 6; f++) {
        for (ptrdiff_t n = 2 * f + 3; n <= 2 * f + 9; n++) {
            definition_make(&d, ROWS_GAUSS, n, 5, f % 2, (uint32_t)(n + f));
            SPEC("multikrum:f=%td", f);
            oracle_krum(&d.x, n - f - 2, n - f, d.want);
            definition_check_relative(&d, spec, 1e-14);
            (void)snprintf(spec, sizeof spec, "multikrum:f=%td,dialect=byzfl,m=3", f);
            oracle_krum(&d.x, n - f - 1, 3 < n - f ? 3 : n - f, d.want);
            definition_check_relative(&d, spec, 1e-14);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
