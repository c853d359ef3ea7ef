/* Rules of the user: elementwise, by weights and as pre-aggregators, alone and in pipes. */
#include "support/check.h"
#include "support/oracle.h"
#include "support/trial.h"

#include <math.h>
#include <string.h>

static trial t, other;
static reef_context *context;

/* ---- midrange: (min + max) / 2, elementwise, with one parameter ---- */

typedef struct midrange_params {
    double lean; /* share of the maximum */
    reef_malicious f;
} midrange_params;

static const reef_field midrange_fields[] = {
    {.name = "lean",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(midrange_params, lean),
     .preset = "0.5",
     .min = 0,
     .max = 1,
     .unit = "",
     .help = "share of the maximum"},
    {.name = "f",
     .type = REEF_FIELD_MALICIOUS,
     .offset = offsetof(midrange_params, f),
     .preset = "0",
     .unit = "",
     .help = "liars"},
};

static double midrange_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    const midrange_params *p = params;
    ptrdiff_t low = 0;
    ptrdiff_t high = 0;
    (void)effort;
    for (ptrdiff_t i = 0; i < column->n; i++) {
        share[i] = 0;
        low = column->x[i] < column->x[low] ? i : low;
        high = column->x[i] > column->x[high] ? i : high;
    }
    share[low] += 1 - p->lean;
    share[high] += p->lean;
    return (1 - p->lean) * column->x[low] + p->lean * column->x[high];
}

static ptrdiff_t third(const void *params, ptrdiff_t n)
{
    (void)params;
    return n / 3;
}

static const reef_rule midrange = {
    .kind = {.name = "midrange",
             .summary = "middle of the extremes",
             .citation = "",
             .fields = midrange_fields,
             .field_count = 2,
             .params_size = sizeof(midrange_params)},
    .traits = REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_HULL,
    .bound = third,
    .bound_text = "n >= 3 f",
    .column = midrange_column,
};

/* ---- nearest: the row nearest to the origin ---- */

static unsigned needs_origin(const void *params)
{
    (void)params;
    return REEF_NEED_GRAM | REEF_NEED_ORIGIN;
}

static reef_status nearest_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                                 reef_error *error)
{
    ptrdiff_t best = 0;
    (void)params;
    (void)effort;
    (void)error;
    for (ptrdiff_t l = 0; l < points->count; l++) {
        share[l] = 0;
    }
    for (ptrdiff_t l = 1; l < points->n; l++) {
        if (reef_points_distance2(points, l, points->origin) < reef_points_distance2(points, best, points->origin)) {
            best = l;
        }
    }
    share[best] = 1;
    return REEF_OK;
}

static const reef_rule nearest = {
    .kind = {.name = "nearest", .summary = "the shortest row", .citation = ""},
    .traits = REEF_TRAIT_PERMUTATION | REEF_TRAIT_SCALE | REEF_TRAIT_HULL,
    .needs = needs_origin,
    .weigh = nearest_weigh,
};

/* ---- halves: each row moved half-way to the origin, every second row only ---- */

static ptrdiff_t halves_mixed(const void *params, ptrdiff_t n)
{
    (void)params;
    return (n + 1) / 2;
}

static reef_status halves_mix(const void *params, const reef_points *points, double *mixing, double *weights,
                              reef_error *error)
{
    ptrdiff_t rows = halves_mixed(params, points->n);
    (void)error;
    for (ptrdiff_t k = 0; k < rows; k++) {
        mixing[k * points->count + 2 * k] = 0.5;
        mixing[k * points->count + points->origin] = 0.5;
        weights[k] = 1 / (double)rows;
    }
    return REEF_OK;
}

static const reef_rule halves = {
    .kind = {.name = "halves", .summary = "pre-aggregator: every second row, halved", .citation = ""},
    .traits = REEF_TRAIT_SCALE,
    .needs = needs_origin,
    .mixed = halves_mixed,
    .mix = halves_mix,
};

/* ---- tests ---- */

static int open_context(void **state)
{
    (void)state;
    bool good = reef_context_create(&context, NULL, NULL) == REEF_OK &&
                reef_kind_register(context, REEF_FAMILY_RULE, &midrange.kind, NULL) == REEF_OK &&
                reef_kind_register(context, REEF_FAMILY_RULE, &nearest.kind, NULL) == REEF_OK &&
                reef_kind_register(context, REEF_FAMILY_RULE, &halves.kind, NULL) == REEF_OK;
    return good ? 0 : -1;
}

static int close_context(void **state)
{
    (void)state;
    reef_context_destroy(&context);
    return 0;
}

static void run(trial *on, const char *spec)
{
    reef_agg *agg = NULL;
    reef_error error = {0};
    reef_status status = reef_agg_create(context, &agg, spec, &error);
    CHECK(status == REEF_OK, "%s: %s", spec, error.text);
    trial_apply(on, agg);
    CHECK(on->status == REEF_OK, "%s: %s", spec, on->error.text);
    reef_agg_destroy(&agg);
}

static void registry_lists_them(void **state)
{
    ptrdiff_t builtin = reef_kind_count(NULL, REEF_FAMILY_RULE);
    (void)state;
    assert_int_equal(reef_kind_count(context, REEF_FAMILY_RULE), builtin + 3);
    assert_ptr_equal(reef_kind_at(context, REEF_FAMILY_RULE, builtin), &midrange);
    assert_ptr_equal(reef_kind_find(context, REEF_FAMILY_RULE, "halves"), &halves);
    assert_null(reef_kind_find(NULL, REEF_FAMILY_RULE, "halves"));
    reef_agg *agg = NULL;
    reef_error error;
    assert_int_equal(reef_agg_create(NULL, &agg, "midrange", &error), REEF_E_NAME); /* another context */
    assert_int_equal(reef_agg_create(context, &agg, "midrnge", &error), REEF_E_NAME);
    assert_non_null(strstr(error.text, "midrange"));
    assert_int_equal(reef_agg_create(context, &agg, "midrange:lean=2", &error), REEF_E_RANGE);
    assert_int_equal(reef_agg_create(context, &agg, "halves", &error), REEF_E_SYNTAX);
}

static void elementwise_rule(void **state)
{
    (void)state;
    for (int single = 0; single < 2; single++) {
        trial_fill(&t, ROWS_GAUSS, 6, 70, single ? REEF_F32 : REEF_F64, 1);
        run(&t, "midrange:lean=0.25");
        for (ptrdiff_t i = 0; i < t.m; i++) {
            double low = INFINITY;
            double high = -INFINITY;
            double sum = 0;
            for (ptrdiff_t l = 0; l < 6; l++) {
                low = fmin(low, t.x[l][i]);
                high = fmax(high, t.x[l][i]);
                sum += t.shares[l * t.m + i] * t.x[l][i];
            }
            CHECK_CLOSE(t.out[i], 0.75 * low + 0.25 * high, 1e-6, "midrange");
            CHECK_CLOSE(t.out[i], sum, 1e-6, "shares");
        }
    }
    reef_agg *agg = NULL;
    assert_int_equal(reef_agg_create(context, &agg, "midrange:f=3", NULL), REEF_OK);
    trial_fill(&t, ROWS_GAUSS, 6, 2, REEF_F64, 1);
    trial_apply(&t, agg);
    assert_int_equal(t.status, REEF_E_MALICIOUS);
    assert_non_null(strstr(t.error.text, "n >= 3 f"));
    trial_fill(&t, ROWS_GAUSS, 9, 2, REEF_F64, 1);
    trial_weigh(&t, 1);
    trial_apply(&t, agg);
    assert_int_equal(t.status, REEF_E_WEIGHTS);
    reef_agg_destroy(&agg);
}

static void weighing_rule(void **state)
{
    static matrix x;
    static const double zero[LENGTH_MAX];
    (void)state;
    trial_fill(&t, ROWS_GAUSS, 8, 20, REEF_F64, 5);
    oracle_take(&t, &x);
    ptrdiff_t best = 0;
    for (ptrdiff_t l = 1; l < 8; l++) {
        best = oracle_distance2(x.x[l], zero, 20) < oracle_distance2(x.x[best], zero, 20) ? l : best;
    }
    run(&t, "nearest");
    assert_memory_equal(t.out, t.x[best], 20 * sizeof(double));
    CHECK_CLOSE(t.trust[best], 8, 1e-12, "trust");
    /* and among mixed rows */
    run(&t, "nnm:f=2 | nearest");
    static matrix mixed;
    oracle_nnm(&x, 2, &mixed);
    best = 0;
    for (ptrdiff_t l = 1; l < 8; l++) {
        best = oracle_distance2(mixed.x[l], zero, 20) < oracle_distance2(mixed.x[best], zero, 20) ? l : best;
    }
    for (ptrdiff_t i = 0; i < 20; i++) {
        CHECK_CLOSE(t.out[i], mixed.x[best][i], 1e-13, "nnm | nearest");
    }
}

static void mixing_rule(void **state)
{
    (void)state;
    trial_fill(&t, ROWS_GAUSS, 7, 5, REEF_F64, 5);
    other = t;
    for (ptrdiff_t k = 0; k < 4; k++) {
        for (ptrdiff_t i = 0; i < 5; i++) {
            other.x[k][i] = t.x[2 * k][i] / 2;
        }
    }
    other.n = 4;
    run(&other, "median");
    run(&t, "halves | median");
    trial_close_out(&t, &other, 1e-15, "halves | median");
    CHECK_CLOSE(t.centre_share, 0.5, 1e-15, "half of it is the origin");
    assert_true(t.trust[1] == 0 && t.rejected[1] == 1);
    run(&t, "halves | halves | midrange");
    run(&t, "bucketing:s=2 | halves | vref");
    run(&t, "halves | nearest");
}

static void refused_rules(void **state)
{
    reef_rule bad[] = {nearest,  nearest,  nearest, nearest, nearest,  nearest, nearest,
                       midrange, midrange, halves,  halves,  midrange, midrange};
    const char *const why[] = {"no name",        "empty name", "blank in name", "colon in name", "long name",
                               "no entry",       "no needs",   "no bound",      "no bound text", "no mixed",
                               "mix and column", "no fields",  "too many"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        bad[i].kind.name = "fresh";
    }
    bad[0].kind.name = NULL;
    bad[1].kind.name = "";
    bad[2].kind.name = "two words";
    bad[3].kind.name = "a:b";
    bad[4].kind.name = "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd";
    bad[5].weigh = NULL;
    bad[6].needs = NULL;
    bad[7].bound = NULL;
    bad[8].bound_text = NULL;
    bad[9].mixed = NULL;
    bad[10].column = midrange_column;
    bad[11].kind.fields = NULL;
    bad[12].kind.field_count = 33;
    ptrdiff_t count = reef_kind_count(context, REEF_FAMILY_RULE);
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        reef_error error = {0};
        CHECK(reef_kind_register(context, REEF_FAMILY_RULE, &bad[i].kind, &error) == REEF_E_ARG, "%s", why[i]);
        assert_true(strlen(error.text) > 10);
    }
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, NULL, NULL), REEF_E_ARG);
    assert_int_equal(reef_kind_register(NULL, REEF_FAMILY_RULE, &nearest.kind, NULL), REEF_E_ARG);
    reef_rule clash = nearest;
    clash.kind.name = "median";
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &clash.kind, NULL), REEF_E_NAME);
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &midrange.kind, NULL), REEF_E_NAME);
    assert_int_equal(reef_kind_count(context, REEF_FAMILY_RULE), count);
}

/* A failing prepare or weigh passes its own words on. */
static reef_status refuse_params(void *params, reef_error *error)
{
    (void)params;
    if (error) {
        *error = (reef_error){REEF_E_RANGE, "never"};
    }
    return REEF_E_RANGE;
}

static reef_status refuse_rows(const void *params, const reef_points *points, double *share, reef_effort *effort,
                               reef_error *error)
{
    (void)points;
    (void)share;
    (void)effort;
    return refuse_params((void *)(uintptr_t)params, error);
}

static void failures_of_rules_are_passed_on(void **state)
{
    static reef_rule unwilling;
    static reef_rule unable;
    reef_agg *agg = NULL;
    reef_error error;
    (void)state;
    unwilling = midrange;
    unwilling.kind.name = "unwilling";
    unwilling.prepare = refuse_params;
    unable = nearest;
    unable.kind.name = "unable";
    unable.weigh = refuse_rows;
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &unwilling.kind, NULL), REEF_OK);
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &unable.kind, NULL), REEF_OK);
    assert_int_equal(reef_agg_create(context, &agg, "unwilling", &error), REEF_E_RANGE);
    assert_string_equal(error.text, "never");
    assert_int_equal(reef_agg_create(context, &agg, "unable", &error), REEF_OK);
    trial_fill(&t, ROWS_GAUSS, 4, 3, REEF_F64, 1);
    trial_apply(&t, agg);
    assert_int_equal(t.status, REEF_E_RANGE);
    assert_string_equal(t.error.text, "never");
    reef_agg_destroy(&agg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry_lists_them), cmocka_unit_test(elementwise_rule),
        cmocka_unit_test(weighing_rule),       cmocka_unit_test(mixing_rule),
        cmocka_unit_test(refused_rules),       cmocka_unit_test(failures_of_rules_are_passed_on),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
