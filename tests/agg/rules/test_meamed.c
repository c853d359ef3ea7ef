/* The mean around the median against its definition. */
#include "support/check.h"
#include "support/definition.h"

#include <stdio.h>

static definition d;

static void against_the_definition(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 33; n += 2) {
        for (ptrdiff_t f = 0; 2 * f < n; f += 1 + n / 10) {
            SPEC("meamed:f=%td", f);
            definition_make(&d, definition_rows(n + f), n, 6, f % 2, (uint32_t)n);
            oracle_meamed(&d.x, f, d.want);
            definition_check_relative(&d, spec, 1e-14);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
