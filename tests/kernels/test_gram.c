/* Rules of distances: the fast path of every instruction set against the scalar rules.
 *
 * The fast path sums products of float32 rows in float32, at most 1024 at a time, of rows centred at the
 * coordinatewise median; rows that are close together it sums again in double precision. A squared distance is then good to some 1e-6
 * of itself, whatever the rows have in common and however close some of them are.
 *   A choice (krum, multikrum, mda) is the same one, unless the other is as good within 1e-5 (float64: 1e-12).
 *   Shares (vref, geomed, clip, ...) differ by at most 1e-5 of themselves, so the result by 1e-5 of the spread of what
 *   it is made of, sum abar |x - out|; float64: 1e-8, which is what iterations that stop at steps of 1e-9 leave. */
#include "num/kernels/kernels.h"
#include "num/order.h"
#include "num/rng.h"
#include "support/check.h"
#include "support/model.h"
#include "support/specs.h"
#include "support/trial.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

typedef enum data_kind {
    GAUSS,
    FAR_MALICIOUS, /* one in five at 1000, apart from each other */
    COLLUDING,     /* one in five at 1e6 and close together */
    SIMILAR,       /* large models that differ in their last bits */
    TWINS,         /* one in five at 3, 1e-7 apart */
    CAUCHY,        /* nobody is honest */
    TIES,          /* small integers */
    CONSTANT,
    TINY,          /* squares vanish in the type of the data */
    TINY_BESIDE_1, /* the same, beside coordinates of ordinary size that all agree on */
    LARGE,         /* squares overflow in float32 */
    PAIRS,         /* every row has another 1e-7 away */
    DATA_KINDS,
} data_kind;

static const char *const kind_names[DATA_KINDS] = {
    "Gaussian", "far liars", "colluding liars", "similar", "twins", "Cauchy", "ties",
    "constant", "tiny",      "tiny beside 1",   "large",   "pairs"};

static double draw(rfi_rng *rng, data_kind kind, bool malicious, ptrdiff_t m, bool single)
{
    double normal = rfi_rng_normal(rng);
    switch (kind) {
    case FAR_MALICIOUS:
        return malicious ? 1000 * normal : normal;
    case COLLUDING:
        return malicious ? 1e6 + normal : normal;
    case SIMILAR:
        return (single ? 1e3 : 1e9) + 1e-2 * normal;
    case TWINS:
        return malicious ? 3 + 1e-7 * normal : normal;
    case CAUCHY:
        return tan(3.14159265358979 * (rfi_rng_uniform(rng) - 0.5));
    case TIES:
        return (double)rfi_rng_below(rng, 4);
    case CONSTANT:
        return 0.1;
    case TINY:
        return (single ? 1e-25 : 1e-140) * normal;
    case TINY_BESIDE_1:
        return m % 2 ? 1 : (single ? 1e-25 : 1e-140) * normal;
    case LARGE:
        return (single ? 1e25 : 1e140) * normal;
    case GAUSS:
    case PAIRS:
    case DATA_KINDS:
        break;
    }
    return normal;
}

static void fill(model *d, data_kind kind, uint32_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x6772616d, 0, 0, (uint32_t)kind);
    for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
        for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
            for (ptrdiff_t i = 0; i < d->lengths[s]; i++) {
                bool malicious = l % 5 == 0 && d->shape.rows > 2; /* a minority */
                double value = draw(&rng, kind, malicious, i, d->shape.dtype == REEF_F32);
                bool second = kind == PAIRS && l % 2;
                model_set(d, s, l, i, second ? model_get(d, s, l - 1, i) + 1e-7 * value : value);
            }
        }
    }
}

/* ---- aggregating ---- */

typedef struct outcome {
    reef_status status;
    double *out, *shares, *centre; /* M, K x M, M */
} outcome;

static double value_at(const model *d, ptrdiff_t segment, ptrdiff_t i)
{
    float narrow;
    double value;
    const unsigned char *place = d->out[segment] + (size_t)i * d->width;
    if (d->shape.dtype == REEF_F32) {
        memcpy(&narrow, place, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&value, place, sizeof value);
    return value;
}

static double *allocate(ptrdiff_t count)
{
    double *memory = calloc((size_t)count, sizeof *memory);
    assert_non_null(memory);
    return memory;
}

static outcome run(model *d, const reef_agg *agg, const char *isa, reef_state *state)
{
    outcome o = {.out = allocate(d->total), .shares = allocate(d->shape.rows * d->total), .centre = allocate(d->total)};
    reef_report *report = NULL;
    reef_plan *plan = NULL;
    reef_input input = {.state = state};
    assert_int_equal(setenv("REEF_ISA", isa, 1), 0);
    assert_int_equal(reef_report_create(NULL, &report, d->shape.rows, NULL), REEF_OK);
    reef_report_keep_shares(report, o.shares, o.centre);
    assert_int_equal(reef_plan_create(&plan, agg, &d->shape, NULL), REEF_OK);
    o.status = reef_plan_apply_segments(plan, &input, d->rows, d->outs, report, NULL);
    double *next = o.out;
    for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
        for (ptrdiff_t i = 0; i < d->lengths[s]; i++) {
            *next++ = value_at(d, s, i);
        }
    }
    reef_plan_destroy(&plan);
    reef_report_destroy(&report);
    return o;
}

static void drop(outcome *o)
{
    free(o->out);
    free(o->shares);
    free(o->centre);
}

/* ---- how good a choice is ---- */

static double distance2(const model *d, ptrdiff_t k, ptrdiff_t l)
{
    double sum = 0;
    for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
        for (ptrdiff_t i = 0; i < d->lengths[s]; i++) {
            double away = model_get(d, s, k, i) - model_get(d, s, l, i);
            sum += away * away;
        }
    }
    return sum;
}

static double krum_score(const model *d, ptrdiff_t row)
{
    double others[MODEL_ROWS];
    ptrdiff_t n = d->shape.rows;
    ptrdiff_t f = n >= 3 ? (n - 3) / 2 : 0;
    ptrdiff_t neighbours = n - f - 2 > 1 ? n - f - 2 : 1;
    ptrdiff_t count = 0;
    double score = 0;
    for (ptrdiff_t l = 0; l < n; l++) {
        if (l != row) {
            others[count++] = distance2(d, row, l);
        }
    }
    rfi_sort(others, count);
    for (ptrdiff_t i = 0; i < neighbours && i < count; i++) {
        score += others[i];
    }
    return score;
}

/* Sum of the scores of the rows with a share, or their largest distance. */
static double cost(const model *d, const outcome *o, bool diameter)
{
    double sum = 0;
    double most = 0;
    for (ptrdiff_t k = 0; k < d->shape.rows; k++) {
        bool in = o->shares[k * d->total] > 0;
        sum += in && !diameter ? krum_score(d, k) : 0;
        for (ptrdiff_t l = 0; diameter && in && l < k; l++) {
            most = o->shares[l * d->total] > 0 ? fmax(most, distance2(d, k, l)) : most;
        }
    }
    return diameter ? most : sum;
}

static bool same_choice(const model *d, const outcome *a, const outcome *b)
{
    for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
        if ((a->shares[l * d->total] > 0) != (b->shares[l * d->total] > 0)) {
            return false;
        }
    }
    return true;
}

/* ---- comparing ---- */

typedef struct gram_case {
    const char *spec;
    bool choice;
} gram_case;

static const gram_case cases[] = {
    {"krum", true},
    {"multikrum", true},
    {"multikrum:m=2", true},
    {"mda:f=1", true},
    {"bulyan", false},
    {"geomed", false},
    {"geomed:dialect=byzfl", false},
    {"vref", false},
    {"vref:block=segment", false},
    {"vref:block=10", false},
    {"vref:block=100", false},
    {"vref:block=5000", false},
    {"cclip:tau=1,L=3", false},
    {"cclip:start=median,tau=1,L=3", false},
    {"nnm | krum", false},
    {"nnm | mean", false},
    {"nnm | vref", false},
    {"nnm | cclip:start=median,tau=1", false},
    {"arc | geomed", false},
    {"clip | mean", false},
    {"clip:c=3 | vref", false},
    {"bucketing | krum", false},
    {"bucketing | vref", false},
    {"bucketing | cclip:start=median,L=2", false},
};

typedef struct tally {
    int64_t compared, wrong;
    char first[300];
} tally;

static void count(tally *sum, bool good, const char *what, double got, double want, double tol)
{
    sum->compared++;
    if (!good && !sum->wrong++) {
        snprintf(sum->first, sizeof sum->first, "%s: %.9g instead of %.9g (allowed %.3g)", what, got, want, tol);
    }
}

static void check_tally(const tally *sum)
{
    CHECK(sum->compared > 0 && !sum->wrong, "%lld of %lld wrong; first: %s", (long long)sum->wrong,
          (long long)sum->compared, sum->first);
}

static double ulp(const model *d, double x)
{
    return d->shape.dtype == REEF_F32 ? (double)(nextafterf((float)fabs(x), INFINITY) - (float)fabs(x))
                                      : 4 * (nextafter(fabs(x), INFINITY) - fabs(x));
}

static double share_error(const char *spec, bool single)
{
    double slow = spec_uses(spec, "geomed") ? 10 : 1; /* Weiszfeld's iteration stops some way off */
    return slow * (single ? 1e-5 : 1e-8);
}

/* What errors of the shares do at coordinate `at` of all, i of its segment, and rounding in sums of K terms. */
static double allowed(const model *d, const char *spec, const outcome *o, ptrdiff_t s, ptrdiff_t i, ptrdiff_t at)
{
    bool single = d->shape.dtype == REEF_F32;
    double spread = fabs(o->centre[at] * o->out[at]);
    double size = 0;
    for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
        double x = model_get(d, s, l, i);
        spread += o->shares[l * d->total + at] * fabs(x - o->out[at]);
        size += o->shares[l * d->total + at] * fabs(x);
    }
    return share_error(spec, single) * spread + (double)d->shape.rows * DBL_EPSILON * size + ulp(d, o->out[at]) +
           (single ? (double)FLT_MIN : DBL_MIN);
}

static void compare(const model *d, const char *spec, const outcome *got, const outcome *want, const char *what,
                    tally *sum)
{
    ptrdiff_t at = 0;
    for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
        for (ptrdiff_t i = 0; i < d->lengths[s]; i++) {
            double tol = allowed(d, spec, want, s, i, at);
            count(sum, fabs(got->out[at] - want->out[at]) <= tol, what, got->out[at], want->out[at], tol);
            at++;
        }
    }
}

static void compare_choice(const model *d, const gram_case *c, const outcome *got, const outcome *want,
                           const char *what, tally *sum)
{
    bool diameter = spec_uses(c->spec, "mda");
    if (same_choice(d, got, want)) {
        compare(d, c->spec, got, want, what, sum);
        return;
    }
    double best = cost(d, want, diameter);
    double chosen = cost(d, got, diameter);
    double tol = (d->shape.dtype == REEF_F32 ? 1e-5 : 1e-12) * best;
    count(sum, fabs(chosen - best) <= tol, what, chosen, best, tol);
}

static void check_case(model *d, const gram_case *c, const char *data, tally *sum)
{
    bool single = d->shape.dtype == REEF_F32;
    reef_agg *agg = make_agg(c->spec);
    outcome scalar = run(d, agg, "scalar", NULL);
    for (int k = 0; rfi_kernels_at(single, k); k++) {
        char what[200];
        const char *isa = rfi_kernels_at(single, k)->name;
        snprintf(what, sizeof what, "%s, %s, float%d, %s, K = %td, M = %td", c->spec, isa, single ? 32 : 64, data,
                 d->shape.rows, d->total);
        outcome fast = run(d, agg, isa, NULL);
        count(sum, fast.status == scalar.status, what, (double)fast.status, (double)scalar.status, 0);
        if (scalar.status == REEF_OK && c->choice) {
            compare_choice(d, c, &fast, &scalar, what, sum);
        } else if (scalar.status == REEF_OK) {
            compare(d, c->spec, &fast, &scalar, what, sum);
        }
        drop(&fast);
    }
    drop(&scalar);
    reef_agg_destroy(&agg);
}

/* Mixed rows are often equal, or each other's nearest, and then scores tie; of two pairs of rows, as nnm too makes of 4 rows, neither is
 * the majority: leave those out. */
static bool may_tie(const char *spec, data_kind kind, ptrdiff_t rows)
{
    return (strchr(spec, '|') && spec_uses(spec, "krum") && (kind >= CAUCHY || rows < 8)) ||
           (kind == PAIRS && rows < 8) || (strcmp(spec, "nnm | vref") == 0 && rows == 4);
}

static void check_shape(ptrdiff_t rows, ptrdiff_t segments, const ptrdiff_t *sizes, uint32_t seed)
{
    enum { STEP = MONTE_CARLO(1, 3) };
    tally sum = {0};
    for (int k = 0; k < 2 * DATA_KINDS; k++) {
        model d;
        model_create(&d, rows, segments, sizes, k % 2 ? REEF_F32 : REEF_F64, 1, seed);
        fill(&d, (data_kind)(k / 2), seed);
        for (ptrdiff_t i = k % STEP; i < COUNT(cases); i += STEP) {
            if (!may_tie(cases[i].spec, (data_kind)(k / 2), rows)) {
                check_case(&d, &cases[i], kind_names[k / 2], &sum);
            }
        }
        model_destroy(&d);
    }
    check_tally(&sum);
}

static void few_coordinates(void **state)
{
    static const ptrdiff_t counts[] = {1, 2, 3, 4, 5, 8, 9, 16, 31, 33, 64};
    static const ptrdiff_t sizes[] = {7, 17, 3, 65, 200, 64};
    (void)state;
    for (ptrdiff_t k = 0; k < COUNT(counts); k += MONTE_CARLO(1, 3)) {
        check_shape(counts[k], 1, &sizes[k % COUNT(sizes)], (uint32_t)k);
    }
}

/* Chunks of 1024, tiles of 4096, blocks across them, several segments. */
static void many_coordinates(void **state)
{
    static const ptrdiff_t sizes[] = {1025, 4097, 31, 5003};
    (void)state;
    check_shape(10, MONTE_CARLO(4, 2), sizes, 5);
}

/* A remembered centre: three rounds, each path with its own state. */
static void remembered_centres(void **state)
{
    static const char *const specs[] = {"cclip:tau=1,L=3", "cclip:start=median,tau=2,L=2", "nnm | cclip:tau=1",
                                        "arc | cclip:tau=1,L=2"};
    static const ptrdiff_t sizes[] = {1030, 65};
    tally sum = {0};
    (void)state;
    for (ptrdiff_t c = 0; c < COUNT(specs) * 2; c++) {
        reef_agg *agg = make_agg(specs[c / 2]);
        model d;
        model_create(&d, 9, 2, sizes, c % 2 ? REEF_F32 : REEF_F64, 1, (uint32_t)c);
        for (int k = 0; rfi_kernels_at(c % 2, k); k++) {
            reef_state *states[2] = {NULL, NULL};
            assert_int_equal(reef_state_create(&states[0], agg, &d.shape, NULL), REEF_OK);
            assert_int_equal(reef_state_create(&states[1], agg, &d.shape, NULL), REEF_OK);
            for (uint32_t round = 0; round < 3; round++) {
                fill(&d, round == 1 ? FAR_MALICIOUS : GAUSS, round);
                outcome want = run(&d, agg, "scalar", states[0]);
                outcome got = run(&d, agg, rfi_kernels_at(c % 2, k)->name, states[1]);
                assert_int_equal(want.status, REEF_OK);
                assert_int_equal(got.status, REEF_OK);
                compare(&d, specs[c / 2], &got, &want, specs[c / 2], &sum);
                drop(&want);
                drop(&got);
            }
            reef_state_destroy(&states[0]);
            reef_state_destroy(&states[1]);
        }
        model_destroy(&d);
        reef_agg_destroy(&agg);
    }
    check_tally(&sum);
}

/* The kernel itself against plain sums: every number of points up to 20, padding and strides. */
static void check_gram(bool single, ptrdiff_t points, ptrdiff_t count, ptrdiff_t stride)
{
    static double x[24 * 256];
    rfi_rng rng;
    rfi_rng_init(&rng, 3, 4, (uint32_t)points, (uint32_t)count, 0);
    for (ptrdiff_t i = 0; i < points * stride; i++) {
        x[i] = rfi_rng_normal(&rng);
    }
    for (int k = 0; rfi_kernels_at(single, k); k++) {
        double sum[24 * 25 / 2];
        for (ptrdiff_t i = 0; i < COUNT(sum); i++) {
            sum[i] = 1000 + (double)i; /* added to, not overwritten; nothing beyond */
        }
        rfi_kernels_at(single, k)->gram(x, stride, points, count, sum);
        for (ptrdiff_t p = 0, next = 0; p < 24; p++) {
            for (ptrdiff_t q = 0; q <= p; q++, next++) {
                double want = 1000 + (double)next;
                for (ptrdiff_t t = 0; p < points && t < count; t++) {
                    want += x[p * stride + t] * x[q * stride + t];
                }
                CHECK_CLOSE(sum[next], want, 1e-11, rfi_kernels_at(single, k)->name);
            }
        }
    }
}

/* The same in single precision: 64 additions one after the other, and what is left out of the sums of the lanes. */
static void check_gram_single(ptrdiff_t points, ptrdiff_t count, ptrdiff_t stride)
{
    static float x[24 * 256];
    rfi_rng rng;
    rfi_rng_init(&rng, 3, 5, (uint32_t)points, (uint32_t)count, 0);
    for (ptrdiff_t i = 0; i < points * stride; i++) {
        x[i] = (float)rfi_rng_normal(&rng);
    }
    for (int k = 0; rfi_kernels_at(true, k); k++) {
        double sum[24 * 25 / 2] = {0};
        if (!rfi_kernels_at(true, k)->gram_single) {
            continue;
        }
        rfi_kernels_at(true, k)->gram_single(x, stride, points, count, sum);
        for (ptrdiff_t p = 0, next = 0; p < 24; p++) {
            for (ptrdiff_t q = 0; q <= p; q++, next++) {
                double want = 0;
                double size = 0;
                for (ptrdiff_t t = 0; p < points && t < count; t++) {
                    double product = (double)x[p * stride + t] * (double)x[q * stride + t];
                    want += product;
                    size += fabs(product);
                }
                CHECK(fabs(sum[next] - want) <= 69 * 0x1p-24 * size, "%s: %.9g instead of %.9g",
                      rfi_kernels_at(true, k)->name, sum[next], want);
            }
        }
    }
}

static void gram_kernel(void **state)
{
    (void)state;
    for (ptrdiff_t points = 1; points <= 20; points++) {
        for (ptrdiff_t count = 16; count <= 240; count += points % 3 ? 112 : 16) {
            check_gram(false, points, count, 256);
            check_gram(true, points, count, 248);
            check_gram_single(points, count, 248);
        }
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
        cmocka_unit_test(gram_kernel),
        cmocka_unit_test(few_coordinates),
        cmocka_unit_test(many_coordinates),
        cmocka_unit_test(remembered_centres),
    };
    return cmocka_run_group_tests(tests, NULL, forget_isa);
}
