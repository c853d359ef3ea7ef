/* The subset of smallest diameter against a search through all subsets. */
#include "support/check.h"
#include "support/definition.h"

#include <stdio.h>

static definition d;

/* Of all sets with the smallest diameter one is averaged; byzfl takes the first. */
static void check_mda(ptrdiff_t n, ptrdiff_t f, uint32_t seed)
{
    bool first[ROWS_MAX];
    bool chosen[ROWS_MAX];
    ptrdiff_t size = 0;
    SPEC("mda:f=%td", f);
    definition_make(&d, seed % 2 ? ROWS_GAUSS : ROWS_TIES, n, 1 + (ptrdiff_t)seed, seed % 3 == 0, seed);
    double smallest = oracle_mda(&d.x, f, first);
    trial_must_run(&d.t, spec);
    for (ptrdiff_t l = 0; l < n; l++) {
        chosen[l] = d.t.trust[l] > 0;
        size += chosen[l];
    }
    assert_int_equal(size, n - f);
    CHECK_CLOSE(oracle_diameter2(&d.x, chosen), smallest, 1e-12 * smallest, spec);
    oracle_mean_of(&d.x, chosen, d.want);
    definition_check_relative(&d, spec, 1e-14);
    (void)snprintf(spec, sizeof spec, "mda:f=%td,dialect=byzfl", f);
    oracle_mean_of(&d.x, first, d.want);
    definition_check_relative(&d, spec, 1e-14);
}

static void against_all_subsets(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 12; n++) {
        for (ptrdiff_t f = 0; 2 * f < n; f++) {
            for (uint32_t seed = 0; seed < 6; seed++) {
                check_mda(n, f, seed);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_all_subsets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
