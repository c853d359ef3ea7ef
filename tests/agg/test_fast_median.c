/* The report of the fast median: the same trust and rejections as from the effective weights of every coordinate, which the scalar
 * rule gives. */
#include "num/rng.h"
#include "support/check.h"
#include "support/model.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 5000 };

/* Rounded numbers tie often; every 7th coordinate is the same for all rows, every 50th is huge. */
static void fill(model *d, uint32_t seed, double step)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 71, 0, 0, 0);
    for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
        for (ptrdiff_t m = 0; m < LENGTH; m++) {
            double x = rfi_rng_normal(&rng);
            x = step > 0 ? step * floor(x / step) : x;
            x = m % 7 == 0 ? 3.0 : x;
            model_set(d, 0, l, m, m % 50 == 1 ? x * 6e37 : x);
        }
    }
}

static void compare(const char *spec, model *d)
{
    reef_report *report = NULL;
    ptrdiff_t rows = d->shape.rows;
    reef_agg *agg = make_agg(spec);
    reef_input input = {.rows = d->rows[0]};
    double *shares = calloc((size_t)(rows * LENGTH), sizeof *shares);
    size_t bytes = (size_t)LENGTH * d->width;
    void *first = malloc(bytes);
    assert_int_equal(reef_report_create(&report, rows, NULL), REEF_OK);
    assert_int_equal(reef_agg_apply(agg, &input, rows, LENGTH, d->shape.dtype, d->out[0], report, NULL), REEF_OK);
    memcpy(first, d->out[0], bytes);
    double *trust = calloc((size_t)rows, 2 * sizeof *trust);
    double *rejected = trust + rows;
    memcpy(trust, reef_report_trust(report), (size_t)rows * sizeof *trust);
    memcpy(rejected, reef_report_rejected(report), (size_t)rows * sizeof *trust);
    reef_report_keep_shares(report, shares, NULL);
    assert_int_equal(reef_agg_apply(agg, &input, rows, LENGTH, d->shape.dtype, d->out[0], report, NULL), REEF_OK);
    CHECK(memcmp(first, d->out[0], bytes) == 0, "%s, n = %td: the result depends on the report", spec, rows);
    for (ptrdiff_t l = 0; l < rows; l++) {
        double sum = 0;
        double zeros = 0;
        for (ptrdiff_t m = 0; m < LENGTH; m++) {
            sum += shares[l * LENGTH + m];
            zeros += shares[l * LENGTH + m] == 0;
        }
        CHECK_CLOSE(trust[l], sum * (double)rows / LENGTH, 1e-12 * (double)rows, spec);
        CHECK_CLOSE(rejected[l], zeros / LENGTH, 1e-15, spec);
    }
    free(trust);
    free(first);
    free(shares);
    reef_report_destroy(&report);
    reef_agg_destroy(&agg);
}

static void trust_is_the_sum_of_the_shares(void **state)
{
    static const ptrdiff_t counts[] = {1, 2, 3, 8, 31, 32, 33, 64};
    static const char *const specs[] = {"median", "median:even=lower", "median:even=upper"};
    static const ptrdiff_t length = LENGTH;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(counts) * COUNT(specs); i++) {
        model d;
        model_create(&d, counts[i / COUNT(specs)], 1, &length, i % 2 ? REEF_F64 : REEF_F32, 1, (uint32_t)i);
        fill(&d, (uint32_t)i, 0);
        compare(specs[i % COUNT(specs)], &d);
        fill(&d, (uint32_t)i, 0.25);
        compare(specs[i % COUNT(specs)], &d);
        model_destroy(&d);
    }
}

/* Entries left out, and with them coordinates that the kernel leaves to the scalar rule. */
static void holes_are_left_to_the_scalar_rule(void **state)
{
    static const ptrdiff_t length = LENGTH;
    (void)state;
    for (ptrdiff_t rows = 4; rows < 7; rows++) {
        model d;
        model_create(&d, rows, 1, &length, rows % 2 ? REEF_F64 : REEF_F32, 1, 5);
        fill(&d, 6, 0.25);
        for (ptrdiff_t m = 0; m < LENGTH; m += 11) {
            model_set(&d, 0, m % rows, m, m % 2 ? NAN : INFINITY);
        }
        compare("median:nan=drop-coordinate", &d);
        model_destroy(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trust_is_the_sum_of_the_shares),
        cmocka_unit_test(holes_are_left_to_the_scalar_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
