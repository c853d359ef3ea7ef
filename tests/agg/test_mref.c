/* mref: memory by sender, over rounds, absences, restarts and threads; and what its report says. */
#include "num/rng.h"
#include "support/check.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 12, M = 8, LIARS = 3 };

typedef struct desk {
    reef_agg *agg;
    reef_plan *plan;
    reef_state *memory;
    reef_report *report;
    reef_context *context;
    ptrdiff_t n, m;
    reef_dtype dtype;
    double *x;     /* n x m */
    float *narrow; /* the same */
    const void *rows[64];
    int64_t ids[64];
    double weights[64];
    void *out;
    uint32_t seed;
} desk;

static void open_desk(desk *k, const char *spec, ptrdiff_t n, ptrdiff_t m, reef_dtype dtype, int threads)
{
    *k = (desk){.n = n, .m = m, .dtype = dtype, .seed = 1};
    assert_int_equal(reef_context_create(&k->context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(k->context, threads, NULL), REEF_OK);
    assert_int_equal(reef_agg_create_in(k->context, &k->agg, spec, NULL), REEF_OK);
    const reef_shape shape = {.rows = n, .segments = 1, .lengths = &m, .dtype = dtype};
    assert_int_equal(reef_plan_create(&k->plan, k->agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_state_create(&k->memory, k->agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_report_create(&k->report, n, NULL), REEF_OK);
    k->x = calloc((size_t)(n * m), sizeof *k->x);
    k->narrow = calloc((size_t)(n * m), sizeof *k->narrow);
    k->out = calloc((size_t)m, sizeof(double));
    assert_true(k->x && k->narrow && k->out);
    for (ptrdiff_t l = 0; l < n; l++) {
        k->rows[l] = dtype == REEF_F32 ? (const void *)(k->narrow + l * m) : (const void *)(k->x + l * m);
        k->ids[l] = 100 + l;
        k->weights[l] = 1;
    }
}

static void close_desk(desk *k)
{
    free(k->x);
    free(k->narrow);
    free(k->out);
    reef_report_destroy(&k->report);
    reef_state_destroy(&k->memory);
    reef_plan_destroy(&k->plan);
    reef_agg_destroy(&k->agg);
    reef_context_destroy(&k->context);
}

/* Row l of a round is that of agent ids[l] - 100; the first `liars` agents stand `lie` off in every coordinate. */
static void fill(desk *k, uint32_t round, int liars, double lie)
{
    for (ptrdiff_t l = 0; l < k->n; l++) {
        rfi_rng rng;
        uint32_t agent = (uint32_t)(k->ids[l] - 100);
        rfi_rng_init(&rng, k->seed, 7, agent, 0, round);
        for (ptrdiff_t i = 0; i < k->m; i++) {
            double value = 5 + rfi_rng_normal(&rng) + (agent < (uint32_t)liars ? lie : 0);
            k->x[l * k->m + i] = value;
            k->narrow[l * k->m + i] = (float)value;
        }
    }
}

static void apply(desk *k, double step)
{
    const reef_input input = {.rows = k->rows, .ids = k->ids, .weights = k->weights, .state = k->memory, .step = step};
    reef_error error;
    reef_status status = reef_plan_apply(k->plan, &input, k->out, k->report, &error);
    CHECK(status == REEF_OK, "%s", error.text);
}

static void step(desk *k, uint32_t round, double lie)
{
    fill(k, round, LIARS, lie);
    apply(k, 0);
}

/* Index of the row of an agent. */
static ptrdiff_t row_of(const desk *k, int64_t agent)
{
    ptrdiff_t l = 0;
    while (k->ids[l] != 100 + agent) {
        l++;
    }
    return l;
}

static double trust_of(const desk *k, int64_t agent)
{
    return reef_report_trust(k->report)[row_of(k, agent)];
}

/* ---- who is believed ---- */

static void colluders_inside_the_spread_are_found(void **state)
{
    static const char *const specs[] = {"mref", "mref:lazy=0", "mref:sketch=16,lazy=0"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        desk k;
        ptrdiff_t m = i == 2 ? 200 : M;
        open_desk(&k, specs[i], N, m, REEF_F64, 1);
        for (uint32_t round = 0; round < 200; round++) {
            step(&k, round, 0.5);
        }
        double error = 0;
        for (int agent = 0; agent < N; agent++) {
            bool liar = agent < LIARS;
            CHECK(liar ? trust_of(&k, agent) < 0.05 : trust_of(&k, agent) > 1.2, "%s: trust of agent %d is %g",
                  specs[i], agent, trust_of(&k, agent));
        }
        for (ptrdiff_t c = 0; c < m; c++) {
            double honest = 0;
            for (ptrdiff_t l = LIARS; l < N; l++) {
                honest += k.x[l * m + c] / (N - LIARS);
            }
            error = fmax(error, fabs(((double *)k.out)[c] - honest));
        }
        CHECK(error < 0.05, "%s: %g away from the mean of the honest", specs[i], error);
        close_desk(&k);
    }
}

/* Agents 1 to 3 send what agent 0 sends, 4 nearly does: its own noise is a fifth of the honest one. */
static void fill_copies(desk *k, uint32_t round)
{
    fill(k, round, 0, 0);
    for (ptrdiff_t l = 1; l <= 4; l++) {
        for (ptrdiff_t i = 0; i < k->m; i++) {
            double own = l == 4 ? 0.2 * (k->x[l * k->m + i] - 5) : 0;
            k->x[l * k->m + i] = k->x[i] + own;
        }
    }
}

static void copies_have_one_voice(void **state)
{
    static const char *const specs[] = {"mref", "mref:lazy=0", "mref:sketch=16", "mref:without=copies",
                                        "mref:without=additions"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        desk k;
        char text[80];
        bool used = i < 3;
        open_desk(&k, specs[i], N, 40, REEF_F64, 1);
        for (uint32_t round = 0; round < 60; round++) {
            fill_copies(&k, round);
            apply(&k, 0);
        }
        for (ptrdiff_t l = 0; l < N; l++) {
            double want = used && l < 4 ? 0.25 : 1;
            double voice = reef_report_factor(k.report, l, REEF_TEST_COPIES);
            CHECK(l == 4 ? voice >= 0.2 : fabs(voice - want) < 0.06, "%s: agent %td has %g of a voice", specs[i], l,
                  voice);
        }
        double together = 0;
        for (ptrdiff_t l = 0; l < 5; l++) {
            together += trust_of(&k, l) / N;
        }
        CHECK(used ? together < 0.25 : together > 0.4, "%s: copies have %g of the weight", specs[i], together);
        assert_int_equal(reef_report_cause(k.report, 0), used ? REEF_TEST_COPIES : REEF_TESTS);
        assert_true(!used || reef_report_explain(k.report, 0, text, sizeof text) > 0);
        assert_true(!used || strncmp(text, "copies leaves 0.2", 17) == 0);
        close_desk(&k);
    }
}

static void the_report_says_why(void **state)
{
    desk k;
    char text[80];
    (void)state;
    open_desk(&k, "mref:horizon=512", N, M, REEF_F64, 1);
    for (uint32_t round = 0; round < 100; round++) {
        step(&k, round, 1);
    }
    assert_int_equal(reef_report_window(k.report, 0).rounds, 8);
    assert_int_equal(reef_report_window(k.report, 1).rounds, 64);
    assert_int_equal(reef_report_window(k.report, 2).rounds, 512);
    assert_int_equal(reef_report_window(k.report, 3).rounds, 0);
    reef_test cause = reef_report_cause(k.report, 0);
    assert_true(cause >= REEF_TEST_SHORT && cause <= REEF_TEST_SPLIT);
    assert_true(reef_report_factor(k.report, 0, cause) < 0.01);
    assert_true(reef_report_explain(k.report, 0, text, sizeof text) > 0);
    assert_non_null(strstr(text, "leaves 0.0"));
    assert_int_equal(reef_report_explain(k.report, 0, NULL, 0), strlen(text));
    assert_true(reef_report_factor(k.report, -1, REEF_TEST_GATE) == 1);
    assert_string_equal(reef_test_name(REEF_TEST_MIDDLE), "middle window");
    assert_null(reef_test_name(REEF_TESTS));
    fill(&k, 100, 0, 0);
    k.x[(N - 1) * M] += 1000; /* an honest agent, once */
    apply(&k, 0);
    assert_int_equal(reef_report_cause(k.report, N - 1), REEF_TEST_GATE);
    assert_true(reef_report_factor(k.report, N - 1, REEF_TEST_GATE) == 0);
    assert_true(reef_report_explain(k.report, N - 1, text, sizeof text) > 0);
    assert_string_equal(text, "gate leaves 0.00");
    step(&k, 101, 1); /* no lasting expulsion */
    assert_true(trust_of(&k, N - 1) > 0.97);
    assert_int_equal(reef_report_cause(k.report, N - 1), REEF_TESTS);
    assert_int_equal(reef_report_explain(k.report, N - 1, text, sizeof text), 0);
    close_desk(&k);
}

/* ---- memory ---- */

static void memory_follows_the_ids(void **state)
{
    desk a;
    desk b;
    (void)state;
    open_desk(&a, "mref", N, M, REEF_F64, 1);
    open_desk(&b, "mref", N, M, REEF_F64, 1);
    for (uint32_t round = 0; round < 60; round++) {
        for (ptrdiff_t l = 0; l < N; l++) { /* another order in every round */
            b.ids[l] = 100 + (l * 5 + (ptrdiff_t)round) % N;
        }
        step(&a, round, 0.6);
        step(&b, round, 0.6);
        for (int agent = 0; agent < N; agent++) {
            CHECK_CLOSE(trust_of(&b, agent), trust_of(&a, agent), 1e-9, "another order of the rows");
        }
    }
    close_desk(&a);
    close_desk(&b);
}

static void absent_and_broken_senders_keep_their_memory(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "mref", N, M, REEF_F64, 1);
    for (uint32_t round = 0; round < 80; round++) {
        step(&k, round, 1);
    }
    assert_int_equal(reef_state_age(k.memory, 100), 80);
    for (uint32_t round = 80; round < 90; round++) {
        k.weights[0] = 0; /* a liar stays away */
        fill(&k, round, LIARS, 1);
        k.x[1 * M + 3] = NAN; /* another one breaks down */
        apply(&k, 0);
        assert_true(trust_of(&k, 0) == 0 && trust_of(&k, 1) == 0);
        assert_int_equal(reef_report_reason(k.report, 1), REEF_NONFINITE);
    }
    assert_int_equal(reef_state_age(k.memory, 100), 80);
    assert_int_equal(reef_state_age(k.memory, 101), 80);
    assert_int_equal(reef_state_age(k.memory, 102), 90);
    k.weights[0] = 1;
    fill(&k, 90, 0, 0); /* all honest for once: they are still not believed */
    apply(&k, 0);
    assert_true(trust_of(&k, 0) < 0.1 && trust_of(&k, 1) < 0.1);
    close_desk(&k);
}

/* Newcomers are neither believed blindly nor expelled for the noise of their young averages. */
static void newcomers_start_afresh(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "mref", N, M, REEF_F64, 1);
    for (uint32_t round = 0; round < 300; round++) {
        step(&k, round, 1);
    }
    k.ids[N - 1] = 100 + 40;
    k.ids[0] = 100 + 41; /* takes the place of a liar, and is honest */
    double least = 2;
    for (uint32_t round = 300; round < 360; round++) {
        step(&k, round, 1);
        least = fmin(least, fmin(trust_of(&k, 40), trust_of(&k, 41)));
    }
    assert_int_equal(reef_state_age(k.memory, 140), 60);
    assert_true(trust_of(&k, 40) > 1 && trust_of(&k, 41) > 1);
    CHECK(least > 0.5, "an honest newcomer had trust %g", least);
    assert_true(trust_of(&k, 1) < 0.05);
    close_desk(&k);
}

static void who_was_away_for_long_is_new(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "mref:forget=10", N, M, REEF_F64, 1);
    for (uint32_t round = 0; round < 30; round++) {
        k.weights[5] = round < 10 || round >= 25;
        step(&k, round, 1);
        if (round == 24) {
            assert_int_equal(reef_state_age(k.memory, 105), 10);
        }
    }
    assert_int_equal(reef_state_age(k.memory, 105), 5);
    assert_int_equal(reef_state_age(k.memory, 106), 30);
    reef_state_reset(k.memory);
    assert_int_equal(reef_state_age(k.memory, 106), 0);
    close_desk(&k);
}

static void the_oldest_makes_room(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "mref", 4, M, REEF_F64, 1); /* room for four senders */
    for (uint32_t round = 0; round < 4; round++) {
        step(&k, round, 0);
    }
    k.weights[2] = 0;
    step(&k, 4, 0);
    k.weights[2] = 1;
    k.ids[2] = 100 + 50;
    step(&k, 5, 0);
    assert_int_equal(reef_state_age(k.memory, 102), 0);
    assert_int_equal(reef_state_age(k.memory, 150), 1);
    assert_int_equal(reef_state_age(k.memory, 103), 6);
    close_desk(&k);
}

static void equal_rows_teach_nothing(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "mref", N, M, REEF_F64, 1);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)N * M; i++) {
        k.x[i] = 3;
    }
    k.x[0] = 4;
    apply(&k, 0);
    assert_true(((double *)k.out)[0] == 3);
    assert_int_equal(reef_state_age(k.memory, 101), 0);
    close_desk(&k);
}

/* ---- horizon ---- */

static void the_step_size_sets_the_horizon(void **state)
{
    static const struct {
        double step;
        int64_t longest, middle;
    } cases[] = {{0, 512, 64}, {0.02, 512, 64}, {0.5, 64, 23}, {0.005, 2048, 128}, {1e-9, 8192, 256}};
    desk k;
    (void)state;
    open_desk(&k, "mref", N, M, REEF_F64, 1);
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        fill(&k, (uint32_t)i, 0, 0);
        apply(&k, cases[i].step);
        assert_int_equal(reef_report_window(k.report, 2).rounds, cases[i].longest);
        assert_int_equal(reef_report_window(k.report, 1).rounds, cases[i].middle);
    }
    const reef_input bad = {.rows = k.rows, .state = k.memory, .step = NAN};
    assert_int_equal(reef_plan_apply(k.plan, &bad, k.out, NULL, NULL), REEF_E_ARG);
    close_desk(&k);
}

/* ---- bits ---- */

static void save_and_load_at_any_round(void **state)
{
    static const char *const specs[] = {"mref", "mref:sketch=16,lazy=0"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        desk a;
        ptrdiff_t m = i ? 300 : M;
        reef_dtype dtype = i ? REEF_F32 : REEF_F64;
        open_desk(&a, specs[i], N, m, dtype, 1);
        size_t width = dtype == REEF_F32 ? sizeof(float) : sizeof(double);
        for (uint32_t round = 0; round < 40; round++) {
            desk b;
            size_t size = reef_state_size(a.memory);
            unsigned char *bytes = malloc(size);
            unsigned char *again = malloc(size);
            assert_true(bytes && again);
            open_desk(&b, specs[i], N, m, dtype, 1);
            assert_int_equal(reef_state_save(a.memory, bytes, size, NULL), REEF_OK);
            assert_int_equal(reef_state_load(b.memory, bytes, size, NULL), REEF_OK);
            step(&a, round, 0.8);
            step(&b, round, 0.8);
            assert_memory_equal(a.out, b.out, (size_t)m * width);
            assert_int_equal(reef_state_save(a.memory, bytes, size, NULL), REEF_OK);
            assert_int_equal(reef_state_save(b.memory, again, size, NULL), REEF_OK);
            assert_memory_equal(bytes, again, size);
            free(bytes);
            free(again);
            close_desk(&b);
        }
        close_desk(&a);
    }
}

/* Whatever the bytes: refused, or a state that can go on. */
static void hostile_bytes(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "mref", N, M, REEF_F64, 1);
    for (uint32_t round = 0; round < 5; round++) {
        step(&k, round, 1);
    }
    size_t size = reef_state_size(k.memory);
    unsigned char *bytes = malloc(size);
    unsigned char *spoilt = malloc(size);
    assert_true(bytes && spoilt);
    assert_int_equal(reef_state_save(k.memory, bytes, size, NULL), REEF_OK);
    assert_int_equal(reef_state_save(k.memory, bytes, size - 1, NULL), REEF_E_ARG);
    assert_int_equal(reef_state_load(k.memory, bytes, size + 1, NULL), REEF_E_ARG);
    int refused = 0;
    for (size_t at = 0; at < size; at += 3) {
        memcpy(spoilt, bytes, size);
        spoilt[at] ^= 0xFF;
        refused += reef_state_load(k.memory, spoilt, size, NULL) != REEF_OK;
        step(&k, 6, 1);
        assert_true(isfinite(((double *)k.out)[0]));
    }
    assert_true(refused > 100);
    assert_int_equal(reef_state_load(k.memory, bytes, size, NULL), REEF_OK);
    free(bytes);
    free(spoilt);
    close_desk(&k);
}

static void threads_change_no_bit(void **state)
{
    enum { LONG = 60000 };
    static const char *const specs[] = {"mref:sketch=64", "mref:sketch=full,lazy=4"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        desk one;
        desk four;
        open_desk(&one, specs[i], N, LONG, REEF_F32, 1);
        open_desk(&four, specs[i], N, LONG, REEF_F32, 4);
        for (uint32_t round = 0; round < 6; round++) {
            step(&one, round, 0.3);
            step(&four, round, 0.3);
            assert_memory_equal(one.out, four.out, LONG * sizeof(float));
        }
        size_t size = reef_state_size(one.memory);
        unsigned char *a = malloc(size);
        unsigned char *b = malloc(size);
        assert_true(a && b);
        assert_int_equal(reef_state_save(one.memory, a, size, NULL), REEF_OK);
        assert_int_equal(reef_state_save(four.memory, b, size, NULL), REEF_OK);
        assert_memory_equal(a, b, size);
        free(a);
        free(b);
        close_desk(&one);
        close_desk(&four);
    }
}

/* ---- refusals ---- */

static void what_is_refused(void **state)
{
    reef_agg *agg = NULL;
    reef_error error;
    desk k;
    desk other;
    double centre[M] = {0};
    (void)state;
    assert_int_equal(reef_agg_create(&agg, "nnm | mref", &error), REEF_E_SYNTAX);
    assert_int_equal(reef_agg_create(&agg, "mref:sketch=48", &error), REEF_E_RANGE);
    assert_int_equal(reef_agg_create(&agg, "mref:horizon=8", &error), REEF_E_RANGE);
    open_desk(&k, "mref", N, M, REEF_F64, 1);
    open_desk(&other, "cclip", N, M, REEF_F64, 1);
    assert_int_equal(reef_state_set_centre(k.memory, 0, centre, &error), REEF_E_ARG);
    const reef_input foreign = {.rows = k.rows, .state = other.memory};
    assert_int_equal(reef_plan_apply(k.plan, &foreign, k.out, NULL, &error), REEF_E_ARG);
    const reef_input swapped = {.rows = k.rows, .state = k.memory};
    assert_int_equal(reef_plan_apply(other.plan, &swapped, k.out, NULL, &error), REEF_E_ARG);
    assert_int_equal(reef_state_age(other.memory, 100), 0);
    close_desk(&k);
    close_desk(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colluders_inside_the_spread_are_found),
        cmocka_unit_test(copies_have_one_voice),
        cmocka_unit_test(the_report_says_why),
        cmocka_unit_test(memory_follows_the_ids),
        cmocka_unit_test(absent_and_broken_senders_keep_their_memory),
        cmocka_unit_test(newcomers_start_afresh),
        cmocka_unit_test(who_was_away_for_long_is_new),
        cmocka_unit_test(the_oldest_makes_room),
        cmocka_unit_test(equal_rows_teach_nothing),
        cmocka_unit_test(the_step_size_sets_the_horizon),
        cmocka_unit_test(save_and_load_at_any_round),
        cmocka_unit_test(hostile_bytes),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
