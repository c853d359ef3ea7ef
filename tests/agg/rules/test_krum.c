/* Krum against its definition, in both dialects, and on mixtures. */
#include "support/check.h"
#include "support/definition.h"

#include <stdio.h>
#include <string.h>

static definition d;

static void against_the_definition(void **state)
{
    (void)state;
    for (ptrdiff_t f = 0; f <= 6; f++) {
        for (ptrdiff_t n = 2 * f + 3; n <= 2 * f + 9; n++) {
            definition_make(&d, n % 2 ? ROWS_GAUSS : ROWS_OFFSET, n, 5, false, (uint32_t)(n + f));
            SPEC("krum:f=%td", f);
            oracle_krum(&d.x, n - f - 2, 1, d.want);
            definition_check_relative(&d, spec, 0);
            (void)snprintf(spec, sizeof spec, "krum:f=%td,dialect=byzfl", f);
            oracle_krum(&d.x, n - f - 1, 1, d.want);
            definition_check_relative(&d, spec, 0);
        }
    }
}

/* After nnm: the chosen mixture is one of those with the smallest score. */
static void after_nnm(void **state)
{
    static matrix mixed;
    double best[LENGTH_MAX];
    (void)state;
    for (uint32_t seed = 0; seed < 30; seed++) {
        definition_make(&d, ROWS_GAUSS, 11, 5, false, seed);
        oracle_nnm(&d.x, 3, &mixed);
        oracle_krum(&mixed, 11 - 3 - 2, 1, best);
        trial_must_run(&d.t, "nnm:f=3 | krum:f=3");
        for (ptrdiff_t i = 0; i < 5; i++) {
            CHECK_CLOSE(d.t.out[i], best[i], 1e-12, "nnm | krum");
        }
    }
}

/* Two equal rows among others at all distances: which of the two is chosen changes nothing. */
static void twins(void **state)
{
    (void)state;
    for (ptrdiff_t first = 0; first < 7; first++) {
        definition_make(&d, ROWS_GAUSS, 7, 3, false, 1);
        for (ptrdiff_t l = 0; l < 7; l++) {
            d.t.x[l][0] = (double)(1 << (4 * l));
        }
        ptrdiff_t twin = (first + 3) % 7;
        memcpy(d.t.x[twin], d.t.x[first], sizeof d.t.x[first]);
        oracle_take(&d.t, &d.x);
        oracle_krum(&d.x, 3, 1, d.want);
        definition_check(&d, "krum:f=2", 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition), cmocka_unit_test(after_nnm),
                                       cmocka_unit_test(twins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
