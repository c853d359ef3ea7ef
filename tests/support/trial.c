/* Making rows and running aggregators on them. */
#include "support/trial.h"

#include "num/rng.h"
#include "support/check.h"

#include <float.h>
#include <math.h>
#include <string.h>

double dtype_epsilon(reef_dtype dtype)
{
    return dtype == REEF_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
}

static double on_grid(double x)
{
    return rint(x * 4096) / 4096;
}

static double draw(rfi_rng *rng, rows_kind kind)
{
    switch (kind) {
    case ROWS_OFFSET:
        return on_grid(20 + rfi_rng_normal(rng));
    case ROWS_TIES:
        return (double)rfi_rng_below(rng, 5) - 2;
    case ROWS_SPARSE:
        return rfi_rng_below(rng, 5) ? 0 : on_grid(rfi_rng_normal(rng));
    case ROWS_HEAVY:
        return rfi_rng_normal(rng) / rfi_rng_uniform(rng);
    case ROWS_GAUSS:
    case ROWS_KINDS:
        break;
    }
    return on_grid(rfi_rng_normal(rng));
}

void trial_fill(trial *t, rows_kind kind, ptrdiff_t n, ptrdiff_t m, reef_dtype dtype, uint32_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x7472696c, (uint32_t)n, (uint32_t)m, (uint32_t)kind);
    assert_true(n >= 1 && n <= ROWS_MAX && m >= 1 && m <= LENGTH_MAX);
    memset(t, 0, sizeof *t);
    t->n = n;
    t->m = m;
    t->dtype = dtype;
    for (ptrdiff_t l = 0; l < n; l++) {
        for (ptrdiff_t i = 0; i < m; i++) {
            t->x[l][i] = draw(&rng, kind);
        }
    }
}

void trial_weigh(trial *t, uint32_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x77656967, (uint32_t)t->n, 0, 0);
    t->weighted = true;
    for (ptrdiff_t l = 0; l < t->n; l++) {
        t->weights[l] = 0.2 + 1.8 * rfi_rng_uniform(&rng);
    }
}

void trial_remove(const trial *from, const bool *out, trial *to)
{
    ptrdiff_t n = 0;
    *to = *from;
    to->has_self = false;
    for (ptrdiff_t l = 0; l < from->n; l++) {
        if (out[l]) {
            continue;
        }
        memcpy(to->x[n], from->x[l], sizeof to->x[n]);
        to->weights[n] = from->weights[l];
        if (from->has_self && from->self == l) {
            to->has_self = true;
            to->self = n;
        }
        n++;
    }
    to->n = n;
}

double trial_weight(const trial *t, ptrdiff_t l)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < t->n; i++) {
        sum += t->weighted ? t->weights[i] : 1;
    }
    return (t->weighted ? t->weights[l] : 1) / sum;
}

double trial_magnitude(const trial *t)
{
    double largest = 0;
    for (ptrdiff_t l = 0; l < t->n; l++) {
        for (ptrdiff_t i = 0; i < t->m; i++) {
            double size = fabs(t->x[l][i]);
            largest = isfinite(size) && size > largest ? size : largest;
        }
    }
    return largest;
}

/* The rows in their own type. */
typedef struct storage {
    union {
        float f32[LENGTH_MAX];
        double f64[LENGTH_MAX];
    } rows[ROWS_MAX], out;
    const void *pointers[ROWS_MAX];
} storage;

static void store_rows(trial *t, storage *s)
{
    for (ptrdiff_t l = 0; l < t->n; l++) {
        s->pointers[l] = &s->rows[l];
        for (ptrdiff_t i = 0; i < t->m; i++) {
            if (t->dtype == REEF_F32) {
                s->rows[l].f32[i] = (float)t->x[l][i];
                t->x[l][i] = (double)s->rows[l].f32[i];
            } else {
                s->rows[l].f64[i] = t->x[l][i];
            }
        }
    }
}

enum { PATTERN = 0xA5 };

static void take_out(trial *t, const storage *s)
{
    const unsigned char *bytes = (const unsigned char *)&s->out;
    t->untouched = true;
    for (size_t i = 0; i < sizeof s->out; i++) {
        t->untouched = t->untouched && bytes[i] == PATTERN;
    }
    for (ptrdiff_t i = 0; i < t->m; i++) {
        t->out[i] = t->dtype == REEF_F32 ? (double)s->out.f32[i] : s->out.f64[i];
    }
    /* nothing beyond the end either */
    size_t used = (size_t)t->m * (t->dtype == REEF_F32 ? sizeof(float) : sizeof(double));
    for (size_t i = used; i < sizeof s->out; i++) {
        assert_int_equal(bytes[i], PATTERN);
    }
}

static void take_report(trial *t, const reef_report *report)
{
    memcpy(t->trust, reef_report_trust(report), (size_t)t->n * sizeof(double));
    memcpy(t->rejected, reef_report_rejected(report), (size_t)t->n * sizeof(double));
    for (ptrdiff_t l = 0; l < t->n; l++) {
        t->reason[l] = reef_report_reason(report, l);
    }
    t->dropped = reef_report_dropped(report);
    t->masked = reef_report_masked(report);
    t->centre_share = reef_report_centre_share(report);
    t->mean_iterations = reef_report_mean_iterations(report);
    t->max_iterations = reef_report_max_iterations(report);
    t->unconverged = reef_report_unconverged(report);
    t->efficiency = reef_report_efficiency(report);
    t->dominant = reef_report_dominant(report);
}

static reef_input input_of(const trial *t, const storage *s)
{
    return (reef_input){.rows = s->pointers,
                        .weights = t->weighted ? t->weights : NULL,
                        .has_self = t->has_self,
                        .self = t->self,
                        .round = t->round,
                        .state = t->state};
}

/* A report must not change the result. Not possible with a state, which the first call has moved on. */
static void repeat_without_report(trial *t, const reef_agg *agg, storage *s)
{
    static storage again;
    again = *s;
    for (ptrdiff_t l = 0; l < t->n; l++) {
        again.pointers[l] = &again.rows[l];
    }
    memset(&again.out, PATTERN, sizeof again.out);
    reef_input input = input_of(t, &again);
    reef_status status = reef_agg_apply(agg, &input, t->n, t->m, t->dtype, &again.out, NULL, NULL);
    assert_int_equal(status, t->status);
    if (status == REEF_OK) {
        assert_memory_equal(&again.out, &s->out, sizeof s->out);
    }
}

void trial_apply(trial *t, const reef_agg *agg)
{
    static storage s;
    reef_report *report = NULL;
    assert_int_equal(reef_report_create(NULL, &report, t->n, NULL), REEF_OK);
    memset(t->shares, 0xFF, sizeof t->shares); /* NaN, to be overwritten */
    memset(t->centre, 0xFF, sizeof t->centre);
    reef_report_keep_shares(report, t->shares, t->centre);
    store_rows(t, &s);
    memset(&s.out, PATTERN, sizeof s.out);
    t->error = (reef_error){0};
    reef_input input = input_of(t, &s);
    t->status = reef_agg_apply(agg, &input, t->n, t->m, t->dtype, &s.out, report, &t->error);
    assert_int_equal(t->error.status, t->status);
    assert_true((t->error.text[0] != '\0') == (t->status != REEF_OK));
    take_out(t, &s);
    if (t->status == REEF_OK) {
        take_report(t, report);
    }
    if (!t->state) {
        repeat_without_report(t, agg, &s);
    }
    reef_report_destroy(&report);
    assert_null(report);
}

reef_agg *make_agg(const char *spec)
{
    reef_agg *agg = NULL;
    reef_error error = {0};
    reef_status status = reef_agg_create(NULL, &agg, spec, &error);
    CHECK(status == REEF_OK, "%s: %s", spec, error.text);
    return agg;
}

void trial_run(trial *t, const char *spec)
{
    reef_agg *agg = NULL;
    t->error = (reef_error){0};
    t->status = reef_agg_create(NULL, &agg, spec, &t->error);
    if (t->status == REEF_OK) {
        trial_apply(t, agg);
    }
    reef_agg_destroy(&agg);
}

void trial_must_run(trial *t, const char *spec)
{
    trial_run(t, spec);
    CHECK(t->status == REEF_OK, "%s, n = %td, m = %td: %s", spec, t->n, t->m, t->error.text);
}

void trial_same_out(const trial *a, const trial *b, const char *what)
{
    assert_int_equal(a->m, b->m);
    for (ptrdiff_t i = 0; i < a->m; i++) {
        CHECK(memcmp(&a->out[i], &b->out[i], sizeof(double)) == 0,
              "%s: n = %td, m = %td, coordinate %td: %.17g and %.17g", what, a->n, a->m, i, a->out[i], b->out[i]);
    }
}

void trial_close_out(const trial *a, const trial *b, double tol, const char *what)
{
    assert_int_equal(a->m, b->m);
    for (ptrdiff_t i = 0; i < a->m; i++) {
        CHECK(fabs(a->out[i] - b->out[i]) <= tol,
              "%s: n = %td, m = %td, coordinate %td: %.17g and %.17g (off by %g > %g)", what, a->n, a->m, i, a->out[i],
              b->out[i], fabs(a->out[i] - b->out[i]), tol);
    }
}
