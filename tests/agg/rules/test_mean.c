/* The mean against its definition. */
#include "support/check.h"
#include "support/definition.h"

static definition d;

static void against_the_definition(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 34; n++) {
        definition_make(&d, definition_rows(n), n, 6, n % 2, (uint32_t)n);
        oracle_mean(&d.x, d.want);
        definition_check_relative(&d, "mean", 1e-15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
