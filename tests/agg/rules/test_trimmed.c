/* The trimmed mean against its definition, also with the own value kept. */
#include "support/check.h"
#include "support/definition.h"

#include <math.h>
#include <stdio.h>

static definition d;

static void against_the_definition(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 33; n += 2) {
        for (ptrdiff_t f = 0; 2 * f < n; f += 1 + n / 10) {
            SPEC("trimmed:f=%td", f);
            definition_make(&d, definition_rows(n + f), n, 6, f % 2, (uint32_t)n);
            oracle_trimmed(&d.x, f, -1, d.want);
            definition_check_relative(&d, spec, 1e-14);
        }
    }
    static const double betas[] = {0, 0.05, 0.1, 0.25, 0.4, 0.49};
    for (ptrdiff_t i = 0; i < COUNT(betas); i++) {
        SPEC("trimmed:beta=%g", betas[i]);
        for (ptrdiff_t n = 1; n <= 33; n += 4) {
            definition_make(&d, ROWS_GAUSS, n, 6, false, (uint32_t)n);
            oracle_trimmed(&d.x, (ptrdiff_t)floor(betas[i] * (double)n), -1, d.want);
            definition_check_relative(&d, spec, 1e-14);
        }
    }
}

/* BRIDGE: b smallest and b largest of the |N| neighbours go, the own value stays, divisor |N| - 2 b + 1. */
static void keep_self(void **state)
{
    (void)state;
    for (ptrdiff_t n = 2; n <= 20; n += 3) {
        for (ptrdiff_t b = 0; 2 * b <= n - 2; b++) {
            SPEC("trimmed:f=%td,keep_self=true", b);
            for (ptrdiff_t self = 0; self < n; self += 4) {
                definition_make(&d, ROWS_GAUSS, n, 6, false, (uint32_t)n);
                d.t.has_self = true;
                d.t.self = self;
                d.t.x[self][0] = 1e6; /* kept even where it is the largest */
                oracle_take(&d.t, &d.x);
                oracle_trimmed(&d.x, b, self, d.want);
                definition_check_relative(&d, spec, 1e-14);
                double divisor = (double)(n - 1 - 2 * b + 1);
                CHECK_CLOSE(d.t.trust[self], (double)n / divisor, 1e-12, spec);
                assert_true(d.t.rejected[self] == 0);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition), cmocka_unit_test(keep_self)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
