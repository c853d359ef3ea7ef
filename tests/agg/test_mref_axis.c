/* mref: the first eigenvalue and vector of matrices whose spectrum is known. */
#include "agg/rules/mref/mref.h"
#include "num/rng.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 200, PURPOSE = 11 };

typedef struct problem {
    ptrdiff_t q;
    double *a, *room, *vector; /* q x q; for the steps; q */
    double *first;             /* q: its first eigenvector */
} problem;

static void open_problem(problem *p, ptrdiff_t q)
{
    *p = (problem){.q = q};
    p->a = calloc((size_t)(q * q), sizeof *p->a);
    p->room = calloc((size_t)((RFI_MREF_SPLIT_STEPS + 1) * q), sizeof *p->room);
    p->vector = calloc((size_t)q, sizeof *p->vector);
    p->first = calloc((size_t)q, sizeof *p->first);
    assert_true(p->a && p->room && p->vector && p->first);
}

static void close_problem(problem *p)
{
    free(p->a);
    free(p->room);
    free(p->vector);
    free(p->first);
}

/* A = (I - 2 u u') diag(values) (I - 2 u u') with a random u of length 1; the first value is the largest. */
static void fill(problem *p, const double *values)
{
    double u[LARGEST];
    double squares = 0;
    rfi_rng rng;
    rfi_rng_init(&rng, 3, PURPOSE, (uint32_t)p->q, 0, 0);
    for (ptrdiff_t i = 0; i < p->q; i++) {
        u[i] = rfi_rng_normal(&rng);
        squares += u[i] * u[i];
    }
    for (ptrdiff_t i = 0; i < p->q; i++) {
        p->first[i] = (i == 0) - 2 * u[i] * u[0] / squares;
        for (ptrdiff_t k = 0; k < p->q; k++) {
            double sum = 0;
            for (ptrdiff_t m = 0; m < p->q; m++) {
                double left = (i == m) - 2 * u[i] * u[m] / squares;
                double right = (k == m) - 2 * u[k] * u[m] / squares;
                sum += left * values[m] * right;
            }
            p->a[i * p->q + k] = sum;
        }
    }
}

/* Of values that go from `second` down to 0, and the first one, which is 1. */
static void check_gap(ptrdiff_t q, double second, int steps, double error)
{
    double values[LARGEST] = {0};
    double along = 0;
    problem p;
    open_problem(&p, q);
    for (ptrdiff_t i = 0; i < q; i++) {
        values[i] = i == 0 ? 1 : second * (double)(q - i) / (double)q;
    }
    fill(&p, values);
    double lambda = rfi_mref_first_vector(p.a, q, steps, p.vector, p.room);
    for (ptrdiff_t i = 0; i < q; i++) {
        along += p.vector[i] * p.first[i];
    }
    assert_true(fabs(lambda - 1) < 1e-11 + error * error);
    assert_true(fabs(fabs(along) - 1) < 1e-11 + error * error);
    close_problem(&p);
}

static void known_spectra(void **state)
{
    static const ptrdiff_t sizes[] = {1, 2, 3, 6, 10, 20};
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) { /* as many steps as numbers: exact */
        check_gap(sizes[i], 0.99, RFI_MREF_AXIS_STEPS, 1e-9);
    }
    check_gap(32, 0.7, RFI_MREF_AXIS_STEPS, 1e-6);
    check_gap(200, 0.7, RFI_MREF_AXIS_STEPS, 1e-6);
    check_gap(64, 0.9, RFI_MREF_SPLIT_STEPS, 1e-6);
    check_gap(200, 0.95, RFI_MREF_SPLIT_STEPS, 1e-5);
}

static void large_and_small_numbers(void **state)
{
    static const double scales[] = {1e-150, 1e-12, 1e12, 1e24};
    problem p;
    (void)state;
    open_problem(&p, 10);
    for (size_t s = 0; s < COUNT(scales); s++) {
        double values[10];
        double along = 0;
        for (int i = 0; i < 10; i++) {
            values[i] = scales[s] / (1 + i);
        }
        fill(&p, values);
        double lambda = rfi_mref_first_vector(p.a, p.q, RFI_MREF_SPLIT_STEPS, p.vector, p.room);
        for (ptrdiff_t i = 0; i < p.q; i++) {
            along += p.vector[i] * p.first[i];
        }
        assert_true(fabs(lambda / scales[s] - 1) < 1e-10);
        assert_true(fabs(fabs(along) - 1) < 1e-10);
    }
    close_problem(&p);
}

/* Nothing to find: 0, and a vector of numbers all the same. Of two equal eigenvalues some vector between theirs is found. */
static void no_first_one(void **state)
{
    problem p;
    (void)state;
    open_problem(&p, 8);
    assert_true(rfi_mref_first_vector(p.a, p.q, RFI_MREF_AXIS_STEPS, p.vector, p.room) == 0);
    for (ptrdiff_t i = 0; i < p.q; i++) {
        assert_true(isfinite(p.vector[i]));
    }
    for (ptrdiff_t i = 0; i < p.q; i++) {
        p.a[i * p.q + i] = i < 2 ? 3 : 1;
    }
    assert_true(fabs(rfi_mref_first_vector(p.a, p.q, RFI_MREF_AXIS_STEPS, p.vector, p.room) - 3) < 1e-11);
    assert_true(fabs(hypot(p.vector[0], p.vector[1]) - 1) < 1e-11);
    close_problem(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_spectra),
        cmocka_unit_test(large_and_small_numbers),
        cmocka_unit_test(no_first_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
