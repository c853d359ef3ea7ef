/* The median against its definition; and the report of its fast path: the same trust and rejections as from the effective weights of every
 * coordinate, which the scalar rule gives. */
#include "num/rng.h"
#include "support/check.h"
#include "support/definition.h"
#include "support/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static definition d;

static void against_the_definition(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 34; n++) {
        rows_kind kind = definition_rows(n);
        definition_make(&d, kind, n, 6, n % 2, (uint32_t)n);
        oracle_weighted_median(&d.x, d.want);
        definition_check(&d, "median", 0);
        definition_make(&d, kind, n, 6, false, (uint32_t)n);
        oracle_median(&d.x, 0, d.want);
        definition_check(&d, "median", 0);
        oracle_median(&d.x, -1, d.want);
        definition_check(&d, "median:even=lower", 0);
        oracle_median(&d.x, 1, d.want);
        definition_check(&d, "median:even=upper", 0);
    }
}

/* With the own value kept, the median screens down to the middle one or two neighbours. */
static void keep_self(void **state)
{
    (void)state;
    for (ptrdiff_t n = 2; n <= 20; n += 3) {
        definition_make(&d, ROWS_GAUSS, n, 6, false, (uint32_t)n);
        d.t.has_self = true;
        oracle_trimmed(&d.x, (n - 2) / 2, 0, d.want);
        definition_check_relative(&d, "median:keep_self=true", 1e-14);
    }
}

/* ---- the fast path ---- */

enum { LENGTH = 5000 };

/* Rounded numbers tie often; every 7th coordinate is the same for all rows, every 50th is huge. */
static void fill(model *data, uint32_t seed, double step)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 71, 0, 0, 0);
    for (ptrdiff_t l = 0; l < data->shape.rows; l++) {
        for (ptrdiff_t m = 0; m < LENGTH; m++) {
            double x = rfi_rng_normal(&rng);
            x = step > 0 ? step * floor(x / step) : x;
            x = m % 7 == 0 ? 3.0 : x;
            model_set(data, 0, l, m, m % 50 == 1 ? x * 6e37 : x);
        }
    }
}

static void compare(const char *spec, model *data)
{
    reef_report *report = NULL;
    ptrdiff_t rows = data->shape.rows;
    reef_agg *agg = make_agg(spec);
    reef_input input = {.rows = data->rows[0]};
    double *shares = calloc((size_t)(rows * LENGTH), sizeof *shares);
    size_t bytes = (size_t)LENGTH * data->width;
    void *first = malloc(bytes);
    assert_int_equal(reef_report_create(NULL, &report, rows, NULL), REEF_OK);
    assert_int_equal(reef_agg_apply(agg, &input, rows, LENGTH, data->shape.dtype, data->out[0], report, NULL), REEF_OK);
    memcpy(first, data->out[0], bytes);
    double *trust = calloc((size_t)rows, 2 * sizeof *trust);
    double *rejected = trust + rows;
    memcpy(trust, reef_report_trust(report), (size_t)rows * sizeof *trust);
    memcpy(rejected, reef_report_rejected(report), (size_t)rows * sizeof *trust);
    reef_report_keep_shares(report, shares, NULL);
    assert_int_equal(reef_agg_apply(agg, &input, rows, LENGTH, data->shape.dtype, data->out[0], report, NULL), REEF_OK);
    CHECK(memcmp(first, data->out[0], bytes) == 0, "%s, n = %td: the result depends on the report", spec, rows);
    for (ptrdiff_t l = 0; l < rows; l++) {
        double sum = 0;
        double zeros = 0;
        for (ptrdiff_t m = 0; m < LENGTH; m++) {
            sum += shares[l * LENGTH + m];
            zeros += shares[l * LENGTH + m] == 0;
        }
        /* the vector code divides ties in the type of the rows */
        CHECK_CLOSE(trust[l], sum * (double)rows / LENGTH, 1e-7 * (double)rows, spec);
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
        model data;
        model_create(&data, counts[i / COUNT(specs)], 1, &length, i % 2 ? REEF_F64 : REEF_F32, 1, (uint32_t)i);
        fill(&data, (uint32_t)i, 0);
        compare(specs[i % COUNT(specs)], &data);
        fill(&data, (uint32_t)i, 0.25);
        compare(specs[i % COUNT(specs)], &data);
        model_destroy(&data);
    }
}

/* Entries left out, and with them coordinates that the kernel leaves to the scalar rule. */
static void holes_are_left_to_the_scalar_rule(void **state)
{
    static const ptrdiff_t length = LENGTH;
    (void)state;
    for (ptrdiff_t rows = 4; rows < 7; rows++) {
        model data;
        model_create(&data, rows, 1, &length, rows % 2 ? REEF_F64 : REEF_F32, 1, 5);
        fill(&data, 6, 0.25);
        for (ptrdiff_t m = 0; m < LENGTH; m += 11) {
            model_set(&data, 0, m % rows, m, m % 2 ? NAN : INFINITY);
        }
        compare("median:nan=drop-coordinate", &data);
        model_destroy(&data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition), cmocka_unit_test(keep_self),
                                       cmocka_unit_test(trust_is_the_sum_of_the_shares),
                                       cmocka_unit_test(holes_are_left_to_the_scalar_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
