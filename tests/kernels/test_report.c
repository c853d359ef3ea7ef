/* The fast path and everything around the result: reports, and rows that hold NaN or Inf.
 *
 * A report must say the same as that of the scalar rules and must not change a bit of the result, whether it keeps the
 * shares of every coordinate or not. */
#include "num/kernels/kernels.h"
#include "num/rng.h"
#include "support/check.h"
#include "support/model.h"
#include "support/specs.h"
#include "support/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum report_kind { NO_REPORT, PLAIN, WITH_SHARES } report_kind;

typedef struct outcome {
    reef_status status;
    char text[sizeof((reef_error *)0)->text];
    unsigned char *out; /* total * width bytes */
    double trust[MODEL_ROWS], rejected[MODEL_ROWS];
    double kept_trust[MODEL_ROWS]; /* from the shares of every coordinate */
    double centre, iterations;
    int most;
    int64_t masked, unconverged;
    ptrdiff_t dropped;
} outcome;

static void take_kept(outcome *o, const model *d, const double *shares, const double *a)
{
    for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
        double sum = 0;
        for (ptrdiff_t i = 0; i < d->total; i++) {
            sum += shares[l * d->total + i];
        }
        o->kept_trust[l] = sum / (double)d->total / a[l];
    }
}

static void take_report(outcome *o, const model *d, const reef_report *report)
{
    memcpy(o->trust, reef_report_trust(report), (size_t)d->shape.rows * sizeof(double));
    memcpy(o->rejected, reef_report_rejected(report), (size_t)d->shape.rows * sizeof(double));
    o->centre = reef_report_centre_share(report);
    o->iterations = reef_report_mean_iterations(report);
    o->most = reef_report_max_iterations(report);
    o->masked = reef_report_masked(report);
    o->unconverged = reef_report_unconverged(report);
    o->dropped = reef_report_dropped(report);
}

static void run(outcome *o, model *d, const reef_agg *agg, const char *isa, const double *weights, report_kind kind)
{
    reef_report *report = NULL;
    reef_plan *plan = NULL;
    reef_error error = {0};
    double *shares = kind == WITH_SHARES ? calloc((size_t)(d->shape.rows * d->total), sizeof *shares) : NULL;
    *o = (outcome){.out = malloc((size_t)d->total * d->width)};
    assert_int_equal(setenv("REEF_ISA", isa, 1), 0);
    assert_int_equal(reef_report_create(NULL, &report, d->shape.rows, NULL), REEF_OK);
    if (shares) {
        reef_report_keep_shares(report, shares, NULL);
    }
    assert_int_equal(reef_plan_create(&plan, agg, &d->shape, NULL), REEF_OK);
    reef_input input = {.weights = weights};
    o->status = reef_plan_apply_segments(plan, &input, d->rows, d->outs, kind == NO_REPORT ? NULL : report, &error);
    memcpy(o->text, error.text, sizeof o->text);
    model_take_out(d, o->out);
    if (o->status == REEF_OK && kind != NO_REPORT) {
        take_report(o, d, report);
    }
    if (o->status == REEF_OK && shares) {
        double a[MODEL_ROWS];
        double sum = 0;
        for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
            sum += weights ? weights[l] : 1;
        }
        for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
            a[l] = (weights ? weights[l] : 1) / sum;
        }
        take_kept(o, d, shares, a);
    }
    free(shares);
    reef_plan_destroy(&plan);
    reef_report_destroy(&report);
}

static const char *const specs[] = {
    "mean",
    "median",
    "median:even=lower",
    "trimmed",
    "meamed",
    "huber",
    "tukey",
    "ref",
    "ref:n=auto",
    "ref:scale=mad-finite",
    "ref:scale_floor=0.5",
    "ref:scale_floor_rel=0.5",
    "vref",
    "vref:block=segment",
    "vref:block=10",
    "vref:block=100",
    "vref:block=5000",
    "krum",
    "multikrum",
    "bulyan",
    "mda:f=2",
    "geomed",
    "geomed:dialect=byzfl",
    "cclip:tau=1",
    "cclip:start=median,tau=2,L=3",
    "nnm | krum",
    "nnm | ref",
    "arc | geomed",
    "clip | mean",
    "clip:c=3 | geomed",
    "bucketing | krum",
    "bucketing | bulyan",
    "nnm | vref",
    "huber:c=1000", /* equal shares in every coordinate: their sums must not drift */
    "ref:c=100000",
};

/* One liar in five, far away. */
static void add_malicious(model *d)
{
    for (ptrdiff_t l = 0; l < d->shape.rows / 5; l++) {
        for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
            for (ptrdiff_t i = 0; i < d->lengths[s]; i++) {
                model_set(d, s, 5 * l, i, 30 + model_get(d, s, 5 * l, i));
            }
        }
    }
}

/* Weiszfeld's iteration for geomed converges slowly where it nears a row, and stops some way off. */
static double trust_tolerance(const char *spec)
{
    return spec_uses(spec, "geomed") ? 1e-4 : 1e-5;
}

static void compare_reports(const outcome *got, const outcome *want, ptrdiff_t rows, double tol, const char *what)
{
    for (ptrdiff_t l = 0; l < rows; l++) {
        CHECK_CLOSE(got->trust[l], want->trust[l], tol, what);
        CHECK_CLOSE(got->rejected[l], want->rejected[l], 1e-12, what);
    }
    CHECK_CLOSE(got->centre, want->centre, tol, what);
    CHECK((got->iterations > 0) == (want->iterations > 0) && (got->most > 0) == (want->most > 0),
          "%s: %g iterations, at most %d, instead of %g and %d", what, got->iterations, got->most, want->iterations,
          want->most);
    CHECK(got->iterations <= got->most && got->unconverged == want->unconverged && got->masked == want->masked &&
              got->dropped == want->dropped,
          "%s: %g iterations, at most %d; unconverged %lld, masked %lld, dropped %td instead of %lld, %lld, %td", what,
          got->iterations, got->most, (long long)got->unconverged, (long long)got->masked, got->dropped,
          (long long)want->unconverged, (long long)want->masked, want->dropped);
}

static void check_reports(model *d, const char *spec, const double *weights)
{
    reef_agg *agg = make_agg(spec);
    size_t bytes = (size_t)d->total * d->width;
    bool single = d->shape.dtype == REEF_F32;
    outcome scalar;
    run(&scalar, d, agg, "scalar", weights, PLAIN);
    CHECK(scalar.status == REEF_OK, "%s: %s", spec, scalar.text);
    for (int i = 0; rfi_kernels_at(single, i); i++) {
        const char *isa = rfi_kernels_at(single, i)->name;
        char what[200];
        snprintf(what, sizeof what, "%s, %s, float%d, K = %td, M = %td%s", spec, isa, single ? 32 : 64, d->shape.rows,
                 d->total, weights ? ", weighted" : "");
        outcome o[3];
        for (int kind = NO_REPORT; kind <= WITH_SHARES; kind++) {
            run(&o[kind], d, agg, isa, weights, (report_kind)kind);
            CHECK(o[kind].status == REEF_OK, "%s: %s", what, o[kind].text);
            CHECK(memcmp(o[kind].out, o[0].out, bytes) == 0, "%s: a report (%d) changes the result", what, kind);
        }
        compare_reports(&o[PLAIN], &scalar, d->shape.rows, trust_tolerance(spec), what);
        compare_reports(&o[WITH_SHARES], &scalar, d->shape.rows, trust_tolerance(spec), what);
        for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
            CHECK_CLOSE(o[PLAIN].trust[l], o[WITH_SHARES].kept_trust[l], trust_tolerance(spec), what);
        }
        for (int kind = NO_REPORT; kind <= WITH_SHARES; kind++) {
            free(o[kind].out);
        }
    }
    free(scalar.out);
    reef_agg_destroy(&agg);
}

static void check_model(ptrdiff_t rows, ptrdiff_t segments, const ptrdiff_t *sizes, uint32_t seed)
{
    enum { STEP = MONTE_CARLO(1, 2) };
    for (int single = 0; single < 2; single++) {
        model d;
        double weights[MODEL_ROWS];
        model_create(&d, rows, segments, sizes, single ? REEF_F32 : REEF_F64, 1, seed);
        add_malicious(&d);
        for (ptrdiff_t l = 0; l < rows; l++) {
            weights[l] = 1 + 0.1 * (double)(l % 7);
        }
        for (ptrdiff_t i = (single + (ptrdiff_t)seed) % STEP; i < COUNT(specs); i += STEP) {
            reef_agg *agg = make_agg(specs[i]);
            bool takes_weights = reef_agg_traits(agg) & REEF_TRAIT_WEIGHTS;
            reef_agg_destroy(&agg);
            check_reports(&d, specs[i], NULL);
            if (takes_weights) {
                check_reports(&d, specs[i], weights);
            }
        }
        model_destroy(&d);
    }
}

static void reports_of_short_rows(void **state)
{
    static const ptrdiff_t counts[] = {5, 8, 16, 31, 33, 64};
    static const ptrdiff_t sizes[] = {3, 7, 64, 65, 17, 130};
    (void)state;
    for (ptrdiff_t k = 0; k < MONTE_CARLO(COUNT(counts), 3); k++) {
        check_model(counts[k], 1, &sizes[k], (uint32_t)k);
    }
}

/* Several segments, tiles and blocks. */
static void reports_of_long_rows(void **state)
{
    static const ptrdiff_t sizes[] = {1, 4097, 65, 9000};
    (void)state;
    check_model(11, MONTE_CARLO(4, 3), sizes, 9);
}

/* ---- values that are not finite ---- */

static void set_policy(char *text, size_t size, const char *spec, const char *policy)
{
    const char *last = strrchr(spec, '|') ? strrchr(spec, '|') : spec;
    snprintf(text, size, "%s%cnan=%s", spec, strchr(last, ':') ? ',' : ':', policy);
}

static double value_at(const model *d, const unsigned char *bytes, ptrdiff_t i)
{
    float narrow;
    double value;
    if (d->shape.dtype == REEF_F32) {
        memcpy(&narrow, bytes + (size_t)i * sizeof narrow, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&value, bytes + (size_t)i * sizeof value, sizeof value);
    return value;
}

/* Honest rows have spread 1 and liars are at 30 or left out, so the tolerance is absolute. Shares from Gram matrices in
 * float32 are good to a few 1e-6. */
static void compare_policy(model *d, const char *spec)
{
    reef_agg *agg = make_agg(spec);
    bool single = d->shape.dtype == REEF_F32;
    outcome scalar;
    run(&scalar, d, agg, "scalar", NULL, PLAIN);
    for (int k = 0; rfi_kernels_at(single, k); k++) {
        char what[200];
        outcome fast;
        snprintf(what, sizeof what, "%s, %s, float%d", spec, rfi_kernels_at(single, k)->name, single ? 32 : 64);
        run(&fast, d, agg, rfi_kernels_at(single, k)->name, NULL, PLAIN);
        CHECK(fast.status == scalar.status && strcmp(fast.text, scalar.text) == 0, "%s: %d, %s; scalar %d, %s", what,
              (int)fast.status, fast.text, (int)scalar.status, scalar.text);
        for (ptrdiff_t i = 0; scalar.status == REEF_OK && i < d->total; i++) {
            CHECK_CLOSE(value_at(d, fast.out, i), value_at(d, scalar.out, i), single ? 3e-5 : 1e-8, what);
        }
        if (scalar.status == REEF_OK) {
            compare_reports(&fast, &scalar, d->shape.rows, trust_tolerance(spec), what);
        }
        free(fast.out);
    }
    free(scalar.out);
    reef_agg_destroy(&agg);
}

/* Bad entries in every lane of a vector and in the last, incomplete one; rows 0 and 5 are liars anyway. */
static void spoil(model *d, uint32_t c)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    ptrdiff_t last = d->lengths[0] - 1;
    ptrdiff_t at = (ptrdiff_t)(c % 17);
    model_set(d, 0, 0, at < last ? at : last, bad[c % 3]);
    if (c % 4 == 1) {
        model_set(d, 0, 5, last, (double)-INFINITY);
        model_set(d, 0, 0, last, (double)INFINITY); /* their sum is NaN */
    }
    if (c % 4 == 2) {
        model_set(d, 0, d->shape.rows - 1, last / 2, bad[c % 3]);
    }
    if (c % 4 == 3) {
        for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
            model_set(d, 0, l, 0, bad[c % 3]); /* nobody has a value here */
        }
    }
}

static void policies(void **state)
{
    static const char *const names[] = {"drop-row", "drop-coordinate", "error"};
    static const ptrdiff_t sizes[] = {17, 65, 5, 64};
    (void)state;
    for (uint32_t c = 0; c < MONTE_CARLO(16, 4); c++) {
        model d;
        model_create(&d, c % 2 ? 11 : 40, 1, &sizes[c % 4], c / 2 % 2 ? REEF_F32 : REEF_F64, 1, c);
        add_malicious(&d);
        spoil(&d, c);
        for (ptrdiff_t i = 0; i < COUNT(specs) * COUNT(names); i++) {
            char spec[100];
            set_policy(spec, sizeof spec, specs[i / COUNT(names)], names[i % COUNT(names)]);
            compare_policy(&d, spec);
        }
        model_destroy(&d);
    }
}

/* Coordinates with values so large that the kernels leave them to the scalar rules, among others that they do: each is in the report, once. */
static void huge_values(void **state)
{
    static const char *const rules[] = {"median", "median:even=upper", "trimmed:f=20%", "meamed:f=20%", "ref"};
    static const ptrdiff_t sizes[] = {17, 64, 65, 131};
    (void)state;
    for (uint32_t c = 0; c < COUNT(rules) * COUNT(sizes) * 4; c++) {
        model d;
        ptrdiff_t size = sizes[c / 4 % COUNT(sizes)];
        bool single = c % 2;
        model_create(&d, c / 2 % 2 ? 11 : 40, 1, &size, single ? REEF_F32 : REEF_F64, 1, c);
        add_malicious(&d);
        for (ptrdiff_t i = c % 3; i < size; i += 5 + i / 16) {
            model_set(&d, 0, 0, i, single ? 3e38 : 1.5e308); /* the sum overflows */
            model_set(&d, 0, 5, i, single ? 3e38 : 1.5e308);
        }
        compare_policy(&d, rules[c / 4 / COUNT(sizes)]);
        model_destroy(&d);
    }
}

/* A dropped row leaves no trace: the same bits as if it had never been sent. One segment of three holds it, so that a
 * whole aggregation is under way before it is met. */
static void dropped_rows_leave_no_trace(void **state)
{
    static const char *const rules[] = {"mean", "median", "huber", "ref", "vref", "vref:block=10", "geomed"};
    static const ptrdiff_t sizes[] = {70, 5000, 33};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(rules) * 2; i++) {
        reef_agg *agg = make_agg(rules[i / 2]);
        model d;
        outcome with;
        outcome without;
        double weights[MODEL_ROWS];
        model_create(&d, 12, 3, sizes, i % 2 ? REEF_F32 : REEF_F64, 1, (uint32_t)i);
        for (ptrdiff_t l = 0; l < 12; l++) {
            weights[l] = l != 7;
        }
        assert_int_equal(unsetenv("REEF_ISA"), 0);
        run(&without, &d, agg, "best", weights, PLAIN);
        model_set(&d, 2, 7, 32, NAN);
        run(&with, &d, agg, "best", NULL, PLAIN);
        assert_int_equal(with.status, REEF_OK);
        assert_int_equal(with.dropped, 1);
        CHECK(memcmp(with.out, without.out, (size_t)d.total * d.width) == 0, "%s: other bits", rules[i / 2]);
        /* nor is a row of weight 0 read */
        free(with.out);
        run(&with, &d, agg, "best", weights, PLAIN);
        assert_int_equal(with.dropped, 0);
        CHECK(memcmp(with.out, without.out, (size_t)d.total * d.width) == 0, "%s: weight 0", rules[i / 2]);
        free(with.out);
        free(without.out);
        model_destroy(&d);
        reef_agg_destroy(&agg);
    }
}

static int forget_isa(void **state)
{
    (void)state;
    return unsetenv("REEF_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_of_short_rows),
        cmocka_unit_test(reports_of_long_rows),
        cmocka_unit_test(policies),
        cmocka_unit_test(dropped_rows_leave_no_trace),
        cmocka_unit_test(huge_values),
    };
    return cmocka_run_group_tests(tests, NULL, forget_isa);
}
