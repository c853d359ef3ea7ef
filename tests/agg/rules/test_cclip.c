/* Centered clipping over rounds against its definition. */
#include "support/check.h"
#include "support/definition.h"

static definition d;

static void check_rounds(const char *spec, double tau, int steps, bool median, bool weigh)
{
    double v[LENGTH_MAX] = {0};
    ptrdiff_t length = 9;
    reef_shape shape = {.rows = 7, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    reef_state *memory = NULL;
    reef_agg *agg = make_agg(spec);
    assert_int_equal(reef_state_create(&memory, agg, &shape, NULL), REEF_OK);
    assert_null(reef_state_centre(memory, 0));
    for (uint32_t round = 0; round < 6; round++) {
        definition_make(&d, round % 2 ? ROWS_GAUSS : ROWS_OFFSET, 7, length, weigh, round);
        d.t.state = memory;
        if (round == 0 && median) {
            oracle_median(&d.x, 0, v);
        }
        oracle_cclip(&d.x, tau, steps, v);
        trial_apply(&d.t, agg);
        assert_int_equal(d.t.status, REEF_OK);
        for (ptrdiff_t i = 0; i < length; i++) {
            CHECK_CLOSE(d.t.out[i], v[i], 1e-11, spec);
        }
        assert_memory_equal(reef_state_centre(memory, 0), d.t.out, (size_t)length * sizeof(double));
    }
    reef_state_reset(memory);
    assert_null(reef_state_centre(memory, 0));
    reef_state_destroy(&memory);
    assert_null(memory);
    reef_agg_destroy(&agg);
}

static void against_the_definition(void **state)
{
    (void)state;
    check_rounds("cclip", 100, 1, false, false);
    check_rounds("cclip:tau=1", 1, 1, false, true);
    check_rounds("cclip:tau=0.3,L=20", 0.3, 20, false, true);
    check_rounds("cclip:tau=2.5,L=3,start=median", 2.5, 3, true, false);
    check_rounds("cclip:tau=2.5,L=3,start=median", 2.5, 3, true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
