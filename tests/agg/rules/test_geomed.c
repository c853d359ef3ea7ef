/* The geometric median: the gradient vanishes, or it is a row; and ByzFL's steps. */
#include "support/check.h"
#include "support/definition.h"

#include <math.h>
#include <string.h>

static definition d;

static void geomed_is_optimal(void **state)
{
    (void)state;
    for (ptrdiff_t n = 3; n <= 33; n += 2) {
        for (ptrdiff_t m = 2; m <= 20; m += 6) {
            definition_make(&d, n % 4 == 1 ? ROWS_OFFSET : ROWS_GAUSS, n, m, m % 4 == 0, (uint32_t)(n + m));
            trial_must_run(&d.t, "geomed:tol=1e-13,max_iter=100000");
            double gradient = oracle_geomed_gradient(&d.x, d.t.out);
            CHECK(gradient < 1e-6, "n = %td, m = %td: gradient %g", n, m, gradient);
            trial_must_run(&d.t, "geomed");
            gradient = oracle_geomed_gradient(&d.x, d.t.out);
            CHECK(gradient < 1e-4, "n = %td, m = %td: gradient %g with default tol", n, m, gradient);
        }
    }
}

/* A row of more than half the weight, a majority of equal rows, a row in the middle of a cross: the optimum is a row. */
static void geomed_at_a_row(void **state)
{
    static const double cross[5][2] = {{0, 0}, {1, 0}, {-2, 0}, {0, 3}, {0, -4}};
    (void)state;
    definition_make(&d, ROWS_GAUSS, 9, 6, true, 2);
    d.t.weights[4] = 40;
    trial_must_run(&d.t, "geomed");
    for (ptrdiff_t i = 0; i < d.t.m; i++) {
        CHECK_CLOSE(d.t.out[i], d.t.x[4][i], 1e-6, "heavy row");
    }
    definition_make(&d, ROWS_GAUSS, 9, 6, false, 3);
    for (ptrdiff_t l = 0; l < 5; l++) {
        memcpy(d.t.x[l], d.t.x[8], sizeof d.t.x[l]);
    }
    trial_must_run(&d.t, "geomed");
    for (ptrdiff_t i = 0; i < d.t.m; i++) {
        CHECK_CLOSE(d.t.out[i], d.t.x[8][i], 1e-6, "majority");
    }
    definition_make(&d, ROWS_GAUSS, 5, 2, false, 4);
    for (ptrdiff_t l = 0; l < 5; l++) {
        memcpy(d.t.x[l], cross[l], sizeof cross[l]);
    }
    trial_must_run(&d.t, "geomed");
    CHECK_CLOSE(hypot(d.t.out[0], d.t.out[1]), 0, 1e-6, "cross");
    /* collinear, odd: the middle one */
    definition_make(&d, ROWS_GAUSS, 7, 1, false, 5);
    oracle_median(&d.x, 0, d.want);
    trial_must_run(&d.t, "geomed");
    CHECK_CLOSE(d.t.out[0], d.want[0], 1e-5, "line");
}

static void geomed_byzfl(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 33; n += 4) {
        definition_make(&d, n % 8 == 1 ? ROWS_GAUSS : ROWS_OFFSET, n, 7, n % 3 == 0, (uint32_t)n);
        oracle_geomed_byzfl(&d.x, 0.1, 3, d.want);
        definition_check(&d, "geomed:dialect=byzfl", 1e-11);
        oracle_geomed_byzfl(&d.x, 2.5, 10, d.want);
        definition_check(&d, "geomed:dialect=byzfl,nu=2.5,steps=10", 1e-10);
    }
    /* a row at the very point of an iterate: nu keeps its weight finite */
    definition_make(&d, ROWS_GAUSS, 3, 2, false, 1);
    memset(d.t.x[1], 0, sizeof d.t.x[1]);
    oracle_take(&d.t, &d.x);
    oracle_geomed_byzfl(&d.x, 0.1, 3, d.want);
    definition_check(&d, "geomed:dialect=byzfl", 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(geomed_is_optimal), cmocka_unit_test(geomed_at_a_row),
                                       cmocka_unit_test(geomed_byzfl)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
