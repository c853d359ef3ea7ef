/* Plans: exact size, reuse, segments, alignment, states, argument errors. Streams are in test_stream.c, allocation in
 * test_allocation.c. */
#include "support/alloc.h"
#include "support/check.h"
#include "support/model.h"
#include "support/specs.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static reef_status apply(reef_plan *plan, model *d, reef_report *report, reef_error *error)
{
    reef_input input = {.has_self = true};
    return reef_plan_apply_segments(plan, &input, d->rows, d->outs, report, error);
}

/* ---- size ---- */

static void check_size(const char *spec, model *d)
{
    size_t bytes = 0;
    reef_error error;
    reef_plan *plan = NULL;
    reef_report *report = NULL;
    reef_agg *agg = make_agg(spec);
    assert_int_equal(reef_plan_size(agg, &d->shape, &bytes, &error), REEF_OK);
    unsigned char *memory = guarded_new(bytes);
    assert_int_equal(reef_plan_init(&plan, agg, &d->shape, memory, bytes - 1, &error), REEF_E_ARG);
    assert_null(plan);
    assert_int_equal(reef_plan_init(&plan, agg, &d->shape, memory, bytes, &error), REEF_OK);
    assert_int_equal(reef_report_create(NULL, &report, d->shape.rows, NULL), REEF_OK);
    for (uint32_t round = 0; round < 2; round++) {
        model_refill(d, round);
        reef_status status = apply(plan, d, report, &error);
        CHECK(status == REEF_OK, "%s: %s", spec, error.text);
    }
    CHECK(guarded_intact(memory, bytes), "%s writes outside of its %zu bytes", spec, bytes);
    reef_plan_destroy(&plan); /* allowed, and releases nothing */
    assert_null(plan);
    guarded_free(memory);
    /* the same in a block of its own, for the address sanitizer, without guards, badly aligned for SIMD */
    unsigned char *bare = malloc(bytes + 16);
    assert_non_null(bare);
    assert_int_equal(reef_plan_init(&plan, agg, &d->shape, bare + 16, bytes, &error), REEF_OK);
    assert_int_equal(apply(plan, d, NULL, &error), REEF_OK);
    free(bare);
    reef_report_destroy(&report);
    reef_agg_destroy(&agg);
}

static void size_is_exact(void **state)
{
    static const ptrdiff_t many[] = {1, 70, 3, 4097};
    static const ptrdiff_t one[] = {5000};
    static const ptrdiff_t tiny[] = {1};
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        model d;
        model_create(&d, 7, 4, many, i % 2 ? REEF_F32 : REEF_F64, 1 + i % 3, (uint32_t)i);
        check_size(all_specs[i], &d);
        model_destroy(&d);
        model_create(&d, 5, 1, one, REEF_F32, 1, (uint32_t)i);
        check_size(all_specs[i], &d);
        model_destroy(&d);
        model_create(&d, 1, 1, tiny, REEF_F64, 2, (uint32_t)i);
        check_size(all_specs[i], &d);
        model_destroy(&d);
    }
}

/* ---- segments ---- */

/* Cuts at multiples of a tile, where the canonical sums are the same tree; and anywhere for elementwise rules. */
static void segments_do_not_change_results(void **state)
{
    static const char *const specs[] = {
        "mean",       "ref",    "ref:scale_floor_rel=0.3", "vref",          "krum", "geomed", "mda:f=2", "nnm | ref",
        "arc | vref", "bulyan", "cclip:tau=3,L=4",         "vref:block=512"};
    static const ptrdiff_t cut[] = {4096, 4096, 1000};
    static const ptrdiff_t whole[] = {9192};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        model parts;
        model one;
        reef_agg *agg = make_agg(specs[i]);
        reef_plan *plan = NULL;
        model_create(&parts, 9, 3, cut, REEF_F64, 1, 5);
        model_create(&one, 9, 1, whole, REEF_F64, 1, 6);
        for (ptrdiff_t l = 0; l < 9; l++) {
            for (ptrdiff_t m = 0; m < 9192; m++) {
                model_set(&one, 0, l, m, model_get(&parts, m / 4096, l, m % 4096));
            }
        }
        assert_int_equal(reef_plan_create(&plan, agg, &parts.shape, NULL), REEF_OK);
        assert_int_equal(apply(plan, &parts, NULL, NULL), REEF_OK);
        reef_plan_destroy(&plan);
        assert_int_equal(reef_plan_create(&plan, agg, &one.shape, NULL), REEF_OK);
        assert_int_equal(apply(plan, &one, NULL, NULL), REEF_OK);
        reef_plan_destroy(&plan);
        double *joined = malloc(9192 * sizeof *joined);
        model_take_out(&parts, joined);
        /* two tiles and a rest add up in the same order as three segments */
        CHECK(memcmp(joined, one.out[0], 9192 * sizeof *joined) == 0, "%s", specs[i]);
        free(joined);
        model_destroy(&parts);
        model_destroy(&one);
        reef_agg_destroy(&agg);
    }
}

/* block=segment is each segment on its own; one liar in one layer is only ignored there. */
static void segments_as_blocks(void **state)
{
    static const ptrdiff_t cut[] = {30, 5000, 7};
    model d;
    reef_plan *plan = NULL;
    reef_report *report = NULL;
    reef_agg *agg = make_agg("vref:block=segment");
    double *shares = malloc(9 * 5037 * sizeof *shares);
    (void)state;
    model_create(&d, 9, 3, cut, REEF_F32, 1, 3);
    for (ptrdiff_t m = 0; m < 5000; m++) {
        model_set(&d, 1, 4, m, 50);
    }
    assert_int_equal(reef_report_create(NULL, &report, 9, NULL), REEF_OK);
    reef_report_keep_shares(report, shares, NULL);
    assert_int_equal(reef_plan_create(&plan, agg, &d.shape, NULL), REEF_OK);
    assert_int_equal(apply(plan, &d, report, NULL), REEF_OK);
    assert_true(shares[4 * 5037] > 0.05 && shares[4 * 5037 + 30] == 0 && shares[4 * 5037 + 5036] > 0.05);
    CHECK_CLOSE(reef_report_rejected(report)[4], 5000.0 / 5037, 1e-12, "rejected in one segment");
    for (ptrdiff_t s = 0; s < 3; s++) {
        float *alone = malloc((size_t)cut[s] * sizeof *alone);
        reef_input input = {.rows = d.rows[s]};
        assert_int_equal(reef_agg_apply(agg, &input, 9, cut[s], REEF_F32, alone, NULL, NULL), REEF_OK);
        assert_memory_equal(alone, d.out[s], (size_t)cut[s] * sizeof *alone);
        free(alone);
    }
    free(shares);
    reef_plan_destroy(&plan);
    reef_report_destroy(&report);
    reef_agg_destroy(&agg);
    model_destroy(&d);
}

/* ---- long models: sums over many tiles and slots lose nothing ---- */

/* Only coordinate `at` of row 2 gives the liar away. */
static void check_malicious_at(const char *spec, model *d, ptrdiff_t segment, ptrdiff_t at)
{
    reef_plan *plan = NULL;
    reef_report *report = NULL;
    reef_agg *agg = make_agg(spec);
    double sum = 0;
    assert_int_equal(reef_report_create(NULL, &report, 5, NULL), REEF_OK);
    assert_int_equal(reef_plan_create(&plan, agg, &d->shape, NULL), REEF_OK);
    double honest = model_get(d, segment, 2, at);
    model_set(d, segment, 2, at, 1e5);
    assert_int_equal(apply(plan, d, report, NULL), REEF_OK);
    model_set(d, segment, 2, at, honest);
    CHECK(reef_report_trust(report)[2] == 0, "%s: a lie at coordinate %td is not seen", spec, at);
    for (ptrdiff_t l = 0; l < 5; l++) {
        sum += reef_report_trust(report)[l] / 5;
    }
    CHECK_CLOSE(sum, 1, 1e-9, spec);
    reef_plan_destroy(&plan);
    reef_report_destroy(&report);
    reef_agg_destroy(&agg);
}

static void long_models(void **state)
{
    static const ptrdiff_t one[] = {13 * 4096 + 5};
    static const ptrdiff_t many[] = {10, 5 * 4096, 3 * 4096 + 1, 4096, 7};
    static const ptrdiff_t very_long[] = {300001};
    static const char *const specs[] = {"vref", "krum:f=1"};
    model d;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        model_create(&d, 5, 1, one, REEF_F32, 1, 2);
        for (ptrdiff_t at = 0; at < one[0]; at += 4096) {
            check_malicious_at(specs[i], &d, 0, at);
        }
        model_destroy(&d);
        model_create(&d, 5, 5, many, REEF_F64, 1, 2);
        for (ptrdiff_t s = 0; s < 5; s++) {
            check_malicious_at(specs[i], &d, s, many[s] - 1);
        }
        model_destroy(&d);
        model_create(&d, 5, 1, very_long, REEF_F32, 1, 2);
        check_malicious_at(specs[i], &d, 0, 300000);
        check_malicious_at(specs[i], &d, 0, 150000);
        model_destroy(&d);
    }
}

/* ---- reuse and alignment ---- */

/* A plan keeps nothing of earlier aggregations: bad rows, weights, reports. */
static void plans_are_reusable(void **state)
{
    static const ptrdiff_t length[] = {70};
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        model d;
        double fresh[70];
        reef_plan *plan = NULL;
        reef_report *report = NULL;
        reef_agg *agg = make_agg(all_specs[i]);
        bool weights = reef_agg_traits(agg) & REEF_TRAIT_WEIGHTS;
        static const double uneven[] = {1, 0, 2, 1, 5, 1, 1, 0.5, 3, 1, 1};
        reef_input input = {.has_self = true, .self = 2};
        model_create(&d, 11, 1, length, REEF_F64, 1, (uint32_t)i);
        input.rows = d.rows[0];
        assert_int_equal(reef_report_create(NULL, &report, 11, NULL), REEF_OK);
        assert_int_equal(reef_plan_create(&plan, agg, &d.shape, NULL), REEF_OK);
        for (int round = 0; round < 4; round++) {
            model_refill(&d, (uint32_t)round);
            input.weights = weights && round % 2 ? uneven : NULL;
            if (round == 2) {
                model_set(&d, 0, 1, 3, NAN);
                model_set(&d, 0, 10, 69, INFINITY);
            }
            assert_int_equal(reef_plan_apply(plan, &input, d.out[0], round % 2 ? report : NULL, NULL), REEF_OK);
            assert_int_equal(reef_agg_apply(agg, &input, 11, 70, REEF_F64, fresh, NULL, NULL), REEF_OK);
            CHECK(memcmp(fresh, d.out[0], sizeof fresh) == 0, "%s: round %d differs", all_specs[i], round);
        }
        reef_plan_destroy(&plan);
        reef_report_destroy(&report);
        reef_agg_destroy(&agg);
        model_destroy(&d);
    }
}

static void any_alignment(void **state)
{
    enum { K = 5, M = 67 };
    static unsigned char place[K][M * 8 + 8];
    static unsigned char to[M * 8 + 8];
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        for (size_t shift = 1; shift < 8; shift += 2) {
            model d;
            const void *rows[K];
            const ptrdiff_t length[] = {M};
            reef_agg *agg = make_agg(all_specs[i]);
            model_create(&d, K, 1, length, shift % 4 == 1 ? REEF_F32 : REEF_F64, 1, (uint32_t)i);
            for (ptrdiff_t l = 0; l < K; l++) {
                memcpy(place[l] + shift, d.pointers[0][l], (size_t)M * d.width);
                rows[l] = place[l] + shift;
            }
            reef_input input = {.rows = rows, .has_self = true};
            reef_input aligned = {.rows = d.rows[0], .has_self = true};
            assert_int_equal(reef_agg_apply(agg, &input, K, M, d.shape.dtype, to + shift, NULL, NULL), REEF_OK);
            assert_int_equal(reef_agg_apply(agg, &aligned, K, M, d.shape.dtype, d.out[0], NULL, NULL), REEF_OK);
            CHECK(memcmp(to + shift, d.out[0], (size_t)M * d.width) == 0, "%s at odd addresses", all_specs[i]);
            reef_agg_destroy(&agg);
            model_destroy(&d);
        }
    }
}

/* ---- argument errors of plans ---- */

static void overlap_is_refused(void **state)
{
    double x[40];
    const void *rows[] = {x, x + 10, x + 20};
    reef_input input = {.rows = rows};
    reef_agg *agg = make_agg("mean");
    reef_error error;
    (void)state;
    for (ptrdiff_t i = 0; i < 40; i++) {
        x[i] = (double)i;
    }
    for (ptrdiff_t at = 0; at <= 30; at++) {
        unsigned char *out = (unsigned char *)(x + at) - (at == 30 ? 1 : 0);
        reef_status status = reef_agg_apply(agg, &input, 3, 10, REEF_F64, out, NULL, &error);
        assert_int_equal(status, REEF_E_ARG);
        assert_non_null(strstr(error.text, "overlap"));
    }
    for (ptrdiff_t i = 0; i < 40; i++) {
        assert_true(x[i] == (double)i);
    }
    assert_int_equal(reef_agg_apply(agg, &input, 3, 10, REEF_F64, x + 30, NULL, &error), REEF_OK);
    /* rows may be the same memory */
    rows[1] = x;
    rows[2] = x;
    assert_int_equal(reef_agg_apply(agg, &input, 3, 10, REEF_F64, x + 30, NULL, &error), REEF_OK);
    assert_memory_equal(x, x + 30, 10 * sizeof *x);
    reef_agg_destroy(&agg);
}

static void one_call_for_one_segment(void **state)
{
    static const ptrdiff_t lengths_[] = {3, 4};
    model d;
    reef_plan *plan = NULL;
    reef_agg *agg = make_agg("mean");
    reef_error error;
    (void)state;
    model_create(&d, 3, 2, lengths_, REEF_F64, 1, 1);
    assert_int_equal(reef_plan_create(&plan, agg, &d.shape, &error), REEF_OK);
    reef_input input = {.rows = d.rows[0]};
    assert_int_equal(reef_plan_apply(plan, &input, d.out[0], NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_plan_apply(plan, NULL, d.out[0], NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_plan_apply(NULL, &input, d.out[0], NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_plan_apply_segments(plan, &input, NULL, d.outs, NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_plan_apply_segments(plan, &input, d.rows, NULL, NULL, &error), REEF_E_ARG);
    d.rows[1] = NULL;
    assert_int_equal(reef_plan_apply_segments(plan, &input, d.rows, d.outs, NULL, &error), REEF_E_ARG);
    d.rows[1] = d.pointers[1];
    d.pointers[1][2] = NULL;
    assert_int_equal(reef_plan_apply_segments(plan, &input, d.rows, d.outs, NULL, &error), REEF_E_ARG);
    assert_non_null(strstr(error.text, "row 2"));
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
    model_destroy(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_is_exact),      cmocka_unit_test(segments_do_not_change_results),
        cmocka_unit_test(segments_as_blocks), cmocka_unit_test(long_models),
        cmocka_unit_test(plans_are_reusable), cmocka_unit_test(any_alignment),
        cmocka_unit_test(overlap_is_refused), cmocka_unit_test(one_call_for_one_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
