/* States: the memory of centered clipping between aggregations, over rounds, failures, segments and restarts. */
#include "support/check.h"
#include "support/model.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct desk {
    model d;
    reef_agg *agg;
    reef_plan *plan;
    reef_state *memory;
    reef_input input;
} desk;

static const ptrdiff_t lengths[] = {5, 4100};

static void open_desk(desk *k, const char *spec, reef_dtype dtype)
{
    *k = (desk){.agg = make_agg(spec)};
    model_create(&k->d, 6, 2, lengths, dtype, 1, 1);
    assert_int_equal(reef_plan_create(&k->plan, k->agg, &k->d.shape, NULL), REEF_OK);
    assert_int_equal(reef_state_create(&k->memory, k->agg, &k->d.shape, NULL), REEF_OK);
    k->input.state = k->memory;
}

static void close_desk(desk *k)
{
    reef_state_destroy(&k->memory);
    reef_plan_destroy(&k->plan);
    reef_agg_destroy(&k->agg);
    model_destroy(&k->d);
}

static reef_status apply(desk *k, uint32_t seed)
{
    model_refill(&k->d, seed);
    return reef_plan_apply_segments(k->plan, &k->input, k->d.rows, k->d.outs, NULL, NULL);
}

static void check_centre_is_out(const desk *k)
{
    for (ptrdiff_t s = 0; s < 2; s++) {
        assert_memory_equal(reef_state_centre(k->memory, s), k->d.out[s], (size_t)lengths[s] * k->d.width);
    }
    assert_null(reef_state_centre(k->memory, 2));
    assert_null(reef_state_centre(k->memory, -1));
}

static void the_centre_is_the_last_result(void **state)
{
    desk k;
    (void)state;
    for (int single = 0; single < 2; single++) {
        open_desk(&k, "cclip:tau=3", single ? REEF_F32 : REEF_F64);
        assert_null(reef_state_centre(k.memory, 0));
        for (uint32_t round = 0; round < 3; round++) {
            assert_int_equal(apply(&k, round), REEF_OK);
            check_centre_is_out(&k);
        }
        close_desk(&k);
    }
}

/* Saved after two rounds, restored elsewhere: the third round gives the same bits. */
static void save_and_restore(void **state)
{
    desk a;
    desk b;
    (void)state;
    open_desk(&a, "nnm | cclip:tau=2,L=2", REEF_F32);
    open_desk(&b, "nnm | cclip:tau=2,L=2", REEF_F32);
    assert_int_equal(apply(&a, 1), REEF_OK);
    assert_int_equal(apply(&a, 2), REEF_OK);
    assert_int_equal(reef_state_set_centre(b.memory, 1, reef_state_centre(a.memory, 1), NULL), REEF_OK);
    assert_null(reef_state_centre(b.memory, 1)); /* counts when all segments are set */
    assert_int_equal(reef_state_set_centre(b.memory, 0, reef_state_centre(a.memory, 0), NULL), REEF_OK);
    assert_non_null(reef_state_centre(b.memory, 1));
    assert_int_equal(apply(&a, 3), REEF_OK);
    assert_int_equal(apply(&b, 3), REEF_OK);
    for (ptrdiff_t s = 0; s < 2; s++) {
        assert_memory_equal(a.d.out[s], b.d.out[s], (size_t)lengths[s] * a.d.width);
    }
    reef_state_reset(a.memory);
    assert_null(reef_state_centre(a.memory, 0));
    b.input.state = NULL;
    assert_int_equal(apply(&a, 4), REEF_OK);
    assert_int_equal(apply(&b, 4), REEF_OK); /* afresh, like after a reset */
    assert_memory_equal(a.d.out[1], b.d.out[1], (size_t)lengths[1] * a.d.width);
    close_desk(&a);
    close_desk(&b);
}

/* Whatever goes wrong, the memory stays as it was. */
static void failures_leave_the_state_alone(void **state)
{
    static const double no_weights[6] = {0};
    desk k;
    float saved[4100];
    (void)state;
    open_desk(&k, "cclip:tau=2,nan=error", REEF_F32);
    assert_int_equal(apply(&k, 1), REEF_OK);
    memcpy(saved, reef_state_centre(k.memory, 1), sizeof saved);
    k.input.weights = no_weights;
    assert_int_equal(apply(&k, 2), REEF_E_WEIGHTS);
    k.input.weights = NULL;
    assert_memory_equal(saved, reef_state_centre(k.memory, 1), sizeof saved);
    model_refill(&k.d, 3);
    model_set(&k.d, 1, 2, 4099, NAN);
    reef_status status = reef_plan_apply_segments(k.plan, &k.input, k.d.rows, k.d.outs, NULL, NULL);
    assert_int_equal(status, REEF_E_NONFINITE);
    assert_memory_equal(saved, reef_state_centre(k.memory, 1), sizeof saved);
    /* an aggregation that is begun and never ended */
    assert_int_equal(reef_plan_begin(k.plan, &k.input, NULL, NULL), REEF_OK);
    assert_memory_equal(saved, reef_state_centre(k.memory, 1), sizeof saved);
    close_desk(&k);
}

static void states_fit_their_shape(void **state)
{
    static const ptrdiff_t other[] = {4100, 5};
    desk k;
    reef_state *foreign = NULL;
    reef_error error;
    double centre[4100] = {0};
    (void)state;
    open_desk(&k, "cclip", REEF_F64);
    reef_shape shape = {.rows = 6, .segments = 2, .lengths = other, .dtype = REEF_F64};
    assert_int_equal(reef_state_create(&foreign, k.agg, &shape, NULL), REEF_OK);
    k.input.state = foreign;
    assert_int_equal(apply(&k, 1), REEF_E_ARG);
    reef_state_destroy(&foreign);
    shape = (reef_shape){.rows = 6, .segments = 2, .lengths = lengths, .dtype = REEF_F32};
    assert_int_equal(reef_state_create(&foreign, k.agg, &shape, NULL), REEF_OK);
    k.input.state = foreign;
    assert_int_equal(apply(&k, 1), REEF_E_ARG);
    reef_state_destroy(&foreign);
    assert_int_equal(reef_state_create(NULL, k.agg, &shape, &error), REEF_E_ARG);
    shape.rows = 0;
    assert_int_equal(reef_state_create(&foreign, k.agg, &shape, &error), REEF_E_ARG);
    centre[3] = NAN;
    assert_int_equal(reef_state_set_centre(k.memory, 0, centre, &error), REEF_E_NONFINITE);
    assert_int_equal(reef_state_set_centre(k.memory, 2, centre, &error), REEF_E_ARG);
    assert_int_equal(reef_state_set_centre(k.memory, 0, NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_state_set_centre(NULL, 0, centre, &error), REEF_E_ARG);
    reef_state_destroy(NULL);
    close_desk(&k);
}

/* Rows shortened towards the origin, then clipped around another centre: the shares still make the result. */
static void shares_with_origin_and_centre(void **state)
{
    enum { N = 5, M = 4 };
    const double centre[M] = {5, 6, 7, 8};
    const ptrdiff_t length = M;
    const reef_shape shape = {.rows = N, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    double x[N][M], shares[N * M], centre_share[M], out[M];
    const void *rows[N];
    reef_agg *agg = make_agg("clip:c=3 | cclip:tau=1");
    reef_state *memory = NULL;
    reef_report *report = NULL;
    (void)state;
    for (ptrdiff_t l = 0; l < N; l++) {
        rows[l] = x[l];
        for (ptrdiff_t m = 0; m < M; m++) {
            x[l][m] = 20 + (double)((l * 7 + m * 3) % 5);
        }
    }
    assert_int_equal(reef_state_create(&memory, agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_state_set_centre(memory, 0, centre, NULL), REEF_OK);
    assert_int_equal(reef_report_create(NULL, &report, N, NULL), REEF_OK);
    reef_report_keep_shares(report, shares, centre_share);
    reef_input input = {.rows = rows, .state = memory};
    assert_int_equal(reef_agg_apply(agg, &input, N, M, REEF_F64, out, report, NULL), REEF_OK);
    for (ptrdiff_t m = 0; m < M; m++) {
        double again = centre_share[m] * centre[m];
        for (ptrdiff_t l = 0; l < N; l++) {
            again += shares[l * M + m] * x[l][m];
        }
        CHECK_CLOSE(out[m], again, 1e-12, "clip | cclip");
    }
    reef_report_destroy(&report);
    reef_state_destroy(&memory);
    reef_agg_destroy(&agg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_with_origin_and_centre),
        cmocka_unit_test(the_centre_is_the_last_result),
        cmocka_unit_test(save_and_restore),
        cmocka_unit_test(failures_leave_the_state_alone),
        cmocka_unit_test(states_fit_their_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
