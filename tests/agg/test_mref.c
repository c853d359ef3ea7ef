/* mref: memory by sender, over rounds, absences, restarts and threads; and what its report says. */
#include "num/rng.h"
#include "agg/recall.h"
#include "agg/rules/mref/mref.h"
#include "base/hash.h"
#include "support/check.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 12, M = 8, MALICIOUS = 3 };

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
    assert_int_equal(reef_agg_create(k->context, &k->agg, spec, NULL), REEF_OK);
    const reef_shape shape = {.rows = n, .segments = 1, .lengths = &m, .dtype = dtype};
    assert_int_equal(reef_plan_create(&k->plan, k->agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_state_create(&k->memory, k->agg, &shape, NULL), REEF_OK);
    reef_state_set_seed(k->memory, 5);
    assert_int_equal(reef_report_create(NULL, &k->report, n, NULL), REEF_OK);
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
static void fill(desk *k, uint32_t round, int malicious_count, double lie)
{
    for (ptrdiff_t l = 0; l < k->n; l++) {
        rfi_rng rng;
        uint32_t agent = (uint32_t)(k->ids[l] - 100);
        rfi_rng_init(&rng, k->seed, 7, agent, 0, round);
        for (ptrdiff_t i = 0; i < k->m; i++) {
            double value = 5 + rfi_rng_normal(&rng) + (agent < (uint32_t)malicious_count ? lie : 0);
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
    fill(k, round, MALICIOUS, lie);
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
            bool malicious = agent < MALICIOUS;
            CHECK(malicious ? trust_of(&k, agent) < 0.05 : trust_of(&k, agent) > 1.2, "%s: trust of agent %d is %g",
                  specs[i], agent, trust_of(&k, agent));
        }
        for (ptrdiff_t c = 0; c < m; c++) {
            double honest = 0;
            for (ptrdiff_t l = MALICIOUS; l < N; l++) {
                honest += k.x[l * m + c] / (N - MALICIOUS);
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
    static const char *const specs[] = {"mref:without=together", "mref:without=together,lazy=0",
                                        "mref:without=together,sketch=16", "mref:without=additions"};
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
            double voice = reef_report_factor(k.report, l, RFI_MREF_BY_COPIES);
            CHECK(l == 4 ? voice >= 0.2 : fabs(voice - want) < 0.06, "%s: agent %td has %g of a voice", specs[i], l,
                  voice);
        }
        double together = 0;
        for (ptrdiff_t l = 0; l < 5; l++) {
            together += trust_of(&k, l) / N;
        }
        CHECK(used ? together < 0.25 : together > 0.4, "%s: copies have %g of the weight", specs[i], together);
        assert_int_equal(reef_report_cause(k.report, 0), used ? RFI_MREF_BY_COPIES : -1);
        assert_true(!used || reef_report_explain(k.report, 0, text, sizeof text) > 0);
        assert_true(!used || strncmp(text, "copies leaves 0.2", 17) == 0);
        close_desk(&k);
    }
}

/* Agents 0 to 4 have most of their noise in common, the correlation is 0.8. */
static void fill_sharers(desk *k, uint32_t round)
{
    rfi_rng rng;
    rfi_rng_init(&rng, k->seed, 8, 0, 0, round);
    fill(k, round, 0, 0);
    for (ptrdiff_t i = 0; i < k->m; i++) {
        double common = rfi_rng_normal(&rng);
        for (ptrdiff_t l = 0; l < 5; l++) {
            k->x[l * k->m + i] = 5 + 0.45 * (k->x[l * k->m + i] - 5) + 0.9 * common;
        }
    }
}

/* Honest senders that share their noise lose neither all of their weight nor keep all of it. */
static void sharers_of_noise_have_one_voice(void **state)
{
    static const char *const specs[] = {"mref", "mref:lazy=0", "mref:sketch=16", "mref:without=together"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        desk k;
        double voices = 0;
        open_desk(&k, specs[i], N, 40, REEF_F64, 1);
        for (uint32_t round = 0; round < 400; round++) {
            fill_sharers(&k, round);
            apply(&k, 0);
        }
        for (ptrdiff_t l = 0; l < N; l++) {
            double voice = fmin(reef_report_factor(k.report, l, RFI_MREF_BY_COPIES),
                                reef_report_factor(k.report, l, RFI_MREF_BY_TOGETHER));
            voices += l < 5 ? voice : 0;
            CHECK(l < 5 || voice > 0.99, "%s: agent %td, which shares nothing, has %g of a voice", specs[i], l, voice);
        }
        CHECK(i == 3 ? voices > 4.9 : voices > 0.95 && voices < 1.5, "%s: five have %g voices", specs[i], voices);
        close_desk(&k);
    }
}

static int64_t window_of(const desk *k, ptrdiff_t j)
{
    return (int64_t)reef_report_number(k->report, j * RFI_MREF_NUMBERS + RFI_MREF_ROUNDS);
}

/* The tables of the rule, through the report: names, meanings, and nothing beyond their ends. */
static void the_report_names_the_tests(void **state)
{
    desk k;
    reef_report *fresh = NULL;
    (void)state;
    open_desk(&k, "mref", N, M, REEF_F64, 1);
    step(&k, 0, 1);
    assert_int_equal(reef_report_factor_count(k.report), RFI_MREF_FACTORS);
    assert_string_equal(reef_report_factor_name(k.report, RFI_MREF_BY_SHORT + 1), "middle window");
    assert_string_equal(reef_report_factor_name(k.report, RFI_MREF_BY_COPIES), "copies");
    assert_int_equal(reef_report_number_count(k.report), RFI_MREF_NUMBER_COUNT);
    assert_string_equal(reef_report_number_name(k.report, RFI_MREF_BALANCED), "balance: factor");
    assert_string_equal(reef_report_factor_name(k.report, RFI_MREF_BY_TOGETHER), "together");
    assert_string_equal(reef_report_number_name(k.report, 0), "short window: rounds");
    for (ptrdiff_t i = -1; i <= RFI_MREF_FACTORS; i++) {
        bool exists = i >= 0 && i < RFI_MREF_FACTORS;
        assert_int_equal(reef_report_factor_name(k.report, i) != NULL, exists);
        assert_int_equal(reef_report_factor_meaning(k.report, i) != NULL, exists);
    }
    assert_null(reef_report_number_name(k.report, RFI_MREF_NUMBER_COUNT));
    assert_null(reef_report_number_meaning(k.report, -1));
    assert_true(isnan(reef_report_number(k.report, RFI_MREF_NUMBER_COUNT)));
    assert_int_equal(reef_report_create(NULL, &fresh, N, NULL), REEF_OK);
    assert_int_equal(reef_report_factor_count(fresh), 0);
    assert_int_equal(reef_report_number_count(fresh), 0);
    assert_int_equal(reef_report_cause(fresh, 0), -1);
    reef_report_destroy(&fresh);
    close_desk(&k);
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
    assert_int_equal(window_of(&k, 0), 8);
    assert_int_equal(window_of(&k, 1), 64);
    assert_int_equal(window_of(&k, 2), 512);
    ptrdiff_t cause = reef_report_cause(k.report, 0);
    assert_true(cause >= RFI_MREF_BY_SHORT && cause <= RFI_MREF_BY_SPLIT);
    assert_true(reef_report_factor(k.report, 0, cause) < 0.01);
    assert_true(reef_report_explain(k.report, 0, text, sizeof text) > 0);
    assert_non_null(strstr(text, "leaves 0.0"));
    assert_int_equal(reef_report_explain(k.report, 0, NULL, 0), strlen(text));
    assert_true(reef_report_factor(k.report, -1, RFI_MREF_BY_GATE) == 1);
    fill(&k, 100, 0, 0);
    k.x[(N - 1) * M] += 1000; /* an honest agent, once */
    apply(&k, 0);
    assert_int_equal(reef_report_cause(k.report, N - 1), RFI_MREF_BY_GATE);
    assert_true(reef_report_factor(k.report, N - 1, RFI_MREF_BY_GATE) == 0);
    assert_true(reef_report_explain(k.report, N - 1, text, sizeof text) > 0);
    assert_string_equal(text, "gate leaves 0.00");
    step(&k, 101, 1); /* no lasting expulsion */
    assert_true(trust_of(&k, N - 1) > 0.97);
    assert_int_equal(reef_report_cause(k.report, N - 1), -1);
    assert_int_equal(reef_report_explain(k.report, N - 1, text, sizeof text), 0);
    close_desk(&k);
}

/* A group stands apart in the first rounds: it is not cut yet, because one round, or five, are no memory. It loses its weight all the same. */
static void young_groups_are_not_cut(void **state)
{
    enum { MANY = 14, APART = 3, YOUNG = 6, OLD = 60 };
    desk k;
    (void)state;
    open_desk(&k, "mref:horizon=512,without=additions", MANY, M, REEF_F64, 1);
    for (int form = 0; form < 2; form++) {
        bool cut = false;
        for (uint32_t round = 0; round < OLD; round++) {
            fill(&k, round, APART, 4);
            apply(&k, 0);
            cut = cut || (round < YOUNG && reef_report_factor(k.report, 0, RFI_MREF_BY_SPLIT) < 0.5);
        }
        assert_int_equal(cut, form == 0); /* the first form did */
        CHECK(trust_of(&k, 0) < 0.01, "trust %g after %d rounds", trust_of(&k, 0), OLD);
        close_desk(&k);
        open_desk(&k, "mref:horizon=512", MANY, M, REEF_F64, 1);
    }
    close_desk(&k);
}

/* ---- who acts together, and how much anybody can have ---- */

/* The malicious agents change sides every few rounds, each with noise of its own: no average shows it. */
static void colluders_who_change_sides_are_found(void **state)
{
    enum { MANY = 20, COLLUDERS = 8 };
    static const char *const specs[] = {"mref", "mref:without=together"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        desk k;
        double theirs = 0;
        open_desk(&k, specs[i], MANY, M, REEF_F64, 1);
        for (uint32_t round = 0; round < 600; round++) {
            fill(&k, round, COLLUDERS, round / 20 % 2 ? 0.4 : -0.4);
            apply(&k, 0);
        }
        for (int agent = 0; agent < COLLUDERS; agent++) {
            theirs += trust_of(&k, agent) / MANY;
        }
        CHECK(i == 0 ? theirs < 0.01 : theirs > 0.2, "%s: they have %g of the weight", specs[i], theirs);
        assert_true(i > 0 || reef_report_cause(k.report, 0) == RFI_MREF_BY_TOGETHER);
        for (int agent = COLLUDERS; agent < MANY; agent++) {
            assert_true(trust_of(&k, agent) > 0.9);
        }
        close_desk(&k);
    }
}

/* One coordinate is much noisier than the others, and all senders are honest: their averages are nearly on a line, correlations of averages are 1 or
 * -1, and yet nobody acts together with anybody. */
static void noise_in_one_direction_makes_no_groups(void **state)
{
    enum { MANY = 20, LENGTH = 600 };
    desk k;
    double lost = 0;
    (void)state;
    open_desk(&k, "mref:horizon=64", MANY, M, REEF_F64, 1);
    for (uint32_t round = 0; round < LENGTH; round++) {
        fill(&k, round, 0, 0);
        for (ptrdiff_t l = 0; l < MANY; l++) {
            k.x[l * M] = 5 + 5 * (k.x[l * M] - 5);
        }
        apply(&k, 0);
        for (ptrdiff_t l = 0; l < MANY; l++) {
            lost += (reef_report_factor(k.report, l, RFI_MREF_BY_TOGETHER) < 0.5) / (double)(MANY * LENGTH);
        }
    }
    CHECK(lost < 0.02, "%g of the honest senders are taken for colluders", lost);
    close_desk(&k);
}

/* Distance of the result from the coordinatewise median over the median of such distances. */
static double distance_in_scales(const desk *k)
{
    double median[M];
    double length[N];
    double column[N];
    double spare[N];
    double own = 0;
    ptrdiff_t n = 0;
    for (ptrdiff_t i = 0; i < k->m; i++) {
        n = 0;
        for (ptrdiff_t l = 0; l < k->n; l++) {
            column[n] = k->x[l * k->m + i];
            n += k->weights[l] > 0;
        }
        median[i] = rfi_mref_median(column, n, spare);
    }
    n = 0;
    for (ptrdiff_t l = 0; l < k->n; l++) {
        length[n] = rfi_mref_distance(k->x + l * k->m, median, k->m);
        n += k->weights[l] > 0;
    }
    own = rfi_mref_distance(k->out, median, k->m);
    return own / rfi_mref_median(length, n, spare);
}

/* Random histories of lies, absences and new ids: nobody has more than twice its share of what the gate leaves, and the result is within 7.4
 * scales of the median. */
static void shares_are_bounded(void **state)
{
    desk k;
    double furthest = 0;
    double largest = 0;
    (void)state;
    open_desk(&k, "mref:lazy=0", N, M, REEF_F64, 1);
    for (uint32_t round = 0; round < 600; round++) {
        rfi_rng rng;
        rfi_rng_init(&rng, 3, 9, 0, 0, round / 40);
        for (ptrdiff_t l = 0; l < N; l++) {
            uint32_t dice = rfi_rng_below(&rng, 6);
            k.ids[l] = 100 + l + (l < 5 && dice == 0 ? 1000 * (int64_t)round : 0);
            k.weights[l] = l >= 5 || dice != 1;
        }
        fill(&k, round, 0, 0);
        for (ptrdiff_t i = 0; i < 5 * M; i++) {
            k.x[i] += (double)rfi_rng_below(&rng, 3) * (rfi_rng_below(&rng, 8) == 0 ? 1e6 : 0.7) * rfi_rng_normal(&rng);
        }
        apply(&k, 0);
        double gate = 0;
        for (ptrdiff_t l = 0; l < N; l++) {
            gate += k.weights[l] > 0 ? reef_report_factor(k.report, l, RFI_MREF_BY_GATE) : 0;
        }
        double there = 0;
        for (ptrdiff_t l = 0; l < N; l++) {
            there += k.weights[l];
        }
        for (ptrdiff_t l = 0; l < N; l++) {
            double fair = k.weights[l] > 0 ? reef_report_factor(k.report, l, RFI_MREF_BY_GATE) / gate : 0;
            double share = k.weights[l] > 0 ? reef_report_trust(k.report)[l] / there : 0;
            CHECK(share <= 2 * fair * (1 + 1e-9), "round %d: %g of the weight, fair %g", (int)round, share, fair);
            largest = fmax(largest, fair > 0 ? share / fair : 0);
        }
        furthest = fmax(furthest, distance_in_scales(&k));
    }
    CHECK(furthest <= 7.4, "%g scales from the median", furthest);
    CHECK(largest > 1.2, "the bound of shares was never put to the test: %g", largest);
    close_desk(&k);
}

/* One that lied for long and is honest from then on has its weight back in the end. */
static void nobody_is_locked_out(void **state)
{
    desk k;
    uint32_t round = 0;
    (void)state;
    open_desk(&k, "mref:horizon=64", N, M, REEF_F64, 1);
    for (; round < 300; round++) {
        fill(&k, round, MALICIOUS, round / 10 % 2 ? 1 : -1);
        apply(&k, 0);
    }
    CHECK(trust_of(&k, 0) < 0.1, "trust %g", trust_of(&k, 0)); /* a part of one voice among three */
    for (; round < 300 + 16 * 64; round++) {
        fill(&k, round, 0, 0);
        apply(&k, 0);
    }
    CHECK(trust_of(&k, 0) > 0.9, "trust %g", trust_of(&k, 0));
    close_desk(&k);
}

/* Nor are those who all sent the same from as far away as numbers go. What they left in the products of pairs has to fade by a factor of thousands before
 * they are no longer seen to act together, which takes longer: 18 longest windows here. */
static void far_ones_come_back(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "mref:horizon=64", N, M, REEF_F64, 1);
    for (uint32_t round = 0; round < 300 + 24 * 64; round++) {
        fill(&k, round, 0, 0);
        for (int i = 0; round < 300 && i < MALICIOUS * M; i++) {
            k.x[i] = 3e38;
        }
        apply(&k, 0);
        if (round == 300) {
            CHECK(trust_of(&k, 0) < 0.1, "trust %g", trust_of(&k, 0));
        }
    }
    CHECK(trust_of(&k, 0) > 0.9, "trust %g", trust_of(&k, 0));
    close_desk(&k);
}

/* Signs that a sketch of 16 numbers with this key does not see: those of the coordinates of a place cancel in pairs. */
static void find_blind_signs(uint64_t key, ptrdiff_t m, double *signs)
{
    double turn[16];
    double one[128] = {0};
    for (ptrdiff_t i = 0; i < 16; i++) {
        turn[i] = 1;
    }
    for (ptrdiff_t i = 0; i < m; i++) {
        double places[16] = {0};
        one[i] = 1;
        rfi_sketch_add(key, 16, one, m, 1, 0, m, places);
        one[i] = 0;
        for (ptrdiff_t at = 0; at < 16; at++) {
            if (places[at] != 0) {
                signs[i] = places[at] * turn[at];
                turn[at] = -turn[at];
            }
        }
    }
}

/* Colluders that know the sketch hide from it; they do not know the one that a state draws. */
static void a_secret_sketch_sees_more(void **state)
{
    enum { LONG = 128, KNOWN = 7 };
    static const char *const specs[] = {"mref:sketch=16,seed=7", "mref:sketch=16"};
    double signs[LONG];
    (void)state;
    find_blind_signs((KNOWN + 1) * UINT64_C(0xD1B54A32D192ED03), LONG, signs);
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        desk k;
        open_desk(&k, specs[i], N, LONG, REEF_F64, 1);
        for (uint32_t round = 0; round < 300; round++) {
            fill(&k, round, 0, 0);
            for (ptrdiff_t at = 0; at < MALICIOUS * LONG; at++) {
                k.x[at] += 0.4 * signs[at % LONG];
            }
            apply(&k, 0);
        }
        for (ptrdiff_t l = 0; l < MALICIOUS; l++) {
            CHECK(i == 0 ? trust_of(&k, l) > 0.9 : trust_of(&k, l) < 0.1, "%s: trust %g", specs[i], trust_of(&k, l));
        }
        close_desk(&k);
    }
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
        fill(&k, round, MALICIOUS, 1);
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

/* Newcomers are on probation, and not expelled for the noise of their young averages. */
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
    for (uint32_t round = 300; round < 700; round++) {
        step(&k, round, 1);
        double part = fmin(1, (round - 299) / fmin(512, round + 1)); /* on probation */
        for (int agent = 40; agent < 42; agent++) {
            double had = trust_of(&k, agent) / trust_of(&k, 5);
            CHECK(had <= 1.02 * part && had >= 0.5 * part, "round %d: a newcomer had %g of the weight of others",
                  (int)round, had);
        }
    }
    assert_int_equal(reef_state_age(k.memory, 140), 400);
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

static void an_absent_sender_makes_room(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "mref", 4, M, REEF_F64, 1); /* room for four senders */
    reef_state_set_limit(k.memory, 4);        /* and no more */
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

/* New ids in every round by three senders of twelve; five of the others are away in turn. Nobody who is known is forgotten. */
static void a_flood_of_new_ids_displaces_itself(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "mref", N, M, REEF_F64, 1);
    reef_state_set_limit(k.memory, N);
    for (uint32_t round = 0; round < 200; round++) {
        for (ptrdiff_t l = 0; l < N; l++) {
            k.ids[l] = l < MALICIOUS && round >= 20 ? 1000 + (int64_t)round * MALICIOUS + l : 100 + l;
            k.weights[l] = l < MALICIOUS || round < 20 || (l + round) % 5 > 0;
        }
        fill(&k, round, 0, 0);
        apply(&k, 0);
        assert_int_equal(reef_state_senders(k.memory), N);
    }
    for (ptrdiff_t l = MALICIOUS; l < N; l++) {
        assert_int_equal(reef_state_age(k.memory, 100 + l), 20 + 180 / 5 * 4);
    }
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
        assert_int_equal(window_of(&k, 2), cases[i].longest);
        assert_int_equal(window_of(&k, 1), cases[i].middle);
    }
    const reef_input bad = {.rows = k.rows, .state = k.memory, .step = NAN};
    assert_int_equal(reef_plan_apply(k.plan, &bad, k.out, NULL, NULL), REEF_E_ARG);
    close_desk(&k);
}

/* Few rows so large that squares of their differences overflow, though those of their residuals do not: a geometric median all the same. */
static void few_large_rows(void **state)
{
    enum { FEW = 4, WIDE = 7 };
    static const double rows[FEW][WIDE] = {{-4.33, 4.70, 4.11, 4.17, 4.74, -3.59, -4.20},
                                           {-3.60, 3.94, 4.36, 4.29, 4.21, -4.41, -4.65},
                                           {4.47, -4.39, 4.21, 4.59, -4.89, -4.52, 4.83},
                                           {2.60, -2.08, -3.09, 2.07, -2.43, -2.36, -2.43}};
    desk k;
    (void)state;
    open_desk(&k, "mref", FEW, WIDE, REEF_F64, 1);
    for (ptrdiff_t i = 0; i < FEW * WIDE; i++) {
        k.x[i] = 1e153 * rows[i / WIDE][i % WIDE];
    }
    k.weights[0] = k.weights[1] =
        10; /* the result is near the first two, and the distances of the others would be infinite */
    const reef_input input = {
        .rows = k.rows, .ids = k.ids, .weights = k.weights, .state = k.memory, .has_self = true, .self = 0};
    assert_int_equal(reef_plan_apply(k.plan, &input, k.out, k.report, NULL), REEF_OK);
    for (ptrdiff_t i = 0; i < WIDE; i++) {
        CHECK(fabs(((double *)k.out)[i]) < 5e153, "coordinate %d is %g", (int)i, ((double *)k.out)[i]);
    }
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
            size = reef_state_size(a.memory); /* more, once senders are heard */
            assert_int_equal(reef_state_size(b.memory), size);
            bytes = realloc(bytes, size);
            again = realloc(again, size);
            assert_true(bytes && again);
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

/* The checksum that changed bytes need to be taken for a state. */
static void sign_state(unsigned char *bytes, size_t size)
{
    uint64_t sum = rfi_hash_bytes(RFI_HASH_START, bytes, size - sizeof sum);
    memcpy(bytes + size - sizeof sum, &sum, sizeof sum);
}

/* Whatever the bytes, even with a checksum that fits: refused, or a state that can go on. */
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
    int refused = 0;
    for (size_t at = 0; at + sizeof(uint64_t) < size; at += 3) {
        memcpy(spoilt, bytes, size);
        spoilt[at] ^= 0xFF;
        sign_state(spoilt, size);
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
    assert_int_equal(reef_agg_create(NULL, &agg, "nnm | mref", &error), REEF_E_SYNTAX);
    assert_int_equal(reef_agg_create(NULL, &agg, "mref:sketch=48", &error), REEF_E_RANGE);
    assert_int_equal(reef_agg_create(NULL, &agg, "mref:horizon=8", &error), REEF_E_RANGE);
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
        cmocka_unit_test(sharers_of_noise_have_one_voice),
        cmocka_unit_test(the_report_names_the_tests),
        cmocka_unit_test(the_report_says_why),
        cmocka_unit_test(young_groups_are_not_cut),
        cmocka_unit_test(colluders_who_change_sides_are_found),
        cmocka_unit_test(noise_in_one_direction_makes_no_groups),
        cmocka_unit_test(shares_are_bounded),
        cmocka_unit_test(nobody_is_locked_out),
        cmocka_unit_test(far_ones_come_back),
        cmocka_unit_test(a_secret_sketch_sees_more),
        cmocka_unit_test(memory_follows_the_ids),
        cmocka_unit_test(absent_and_broken_senders_keep_their_memory),
        cmocka_unit_test(newcomers_start_afresh),
        cmocka_unit_test(who_was_away_for_long_is_new),
        cmocka_unit_test(an_absent_sender_makes_room),
        cmocka_unit_test(a_flood_of_new_ids_displaces_itself),
        cmocka_unit_test(equal_rows_teach_nothing),
        cmocka_unit_test(the_step_size_sets_the_horizon),
        cmocka_unit_test(few_large_rows),
        cmocka_unit_test(save_and_load_at_any_round),
        cmocka_unit_test(hostile_bytes),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
