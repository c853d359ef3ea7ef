/* Elementwise rules: the fast path of every instruction set against the scalar rules, which are the definition.
 *
 * Each case is aggregated through the public API under REEF_ISA=scalar and under every set this processor runs. They
 * may differ by
 *   float32  1e-6 s + 1 ulp of the result        float64  1e-12 s + 4 ulp
 * with s the scale in force (MAD of the column, or a floor above it), and by the smallest normal number, because the
 * fast path flushes denormal numbers to zero. With unequal weights a redescending estimate has several stationary
 * points; there the fast path may reach another one, rarely, if its objective is not higher. */
#include "num/kernels/kernels.h"
#include "num/mest.h"
#include "num/order.h"
#include "num/rng.h"
#include "num/scale.h"
#include "num/tuning.h"
#include "support/check.h"
#include "support/trial.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

typedef enum data_kind {
    GAUSS,
    FAR20, /* a fifth of the values far away, other rows in every column */
    FAR40,
    EDGE, /* a fifth at 3 to 6 scales: where Tukey's function lets go */
    T2,   /* Student's t with 2 degrees of freedom */
    CAUCHY,
    TIES, /* small integers */
    CONSTANT,
    MAJORITY, /* more than half coincide: MAD 0 */
    BIMODAL,
    OFFSET,    /* spread of a few last bits */
    TINY,      /* 1e-30 */
    DENORMAL,  /* 1e-39, float64: 1e-310 */
    LARGE,     /* 1e30, float64: 1e200 */
    HUGE_ONES, /* 1e37, float64: 1e307 */
    TOP,       /* up to the largest number, where c s overflows */
    DATA_KINDS,
} data_kind;

static const char *const kind_names[DATA_KINDS] = {
    "Gaussian", "20 % far", "40 % far", "20 % at the edge", "t2",    "Cauchy", "integer ties", "constant", "majority",
    "bimodal",  "offset",   "tiny",     "denormal",         "large", "huge",   "top"};

static double draw_t2(rfi_rng *rng)
{
    return rfi_rng_normal(rng) /
           sqrt(-log(rfi_rng_uniform(rng))); /* chi^2 / 2 with 2 degrees of freedom is exponential */
}

static double draw_contaminated(rfi_rng *rng, data_kind kind, bool malicious)
{
    double honest = rfi_rng_normal(rng);
    double side = rfi_rng_below(rng, 2) ? 1 : -1;
    if (!malicious) {
        return honest;
    }
    return kind == EDGE ? side * (3 + 3 * rfi_rng_uniform(rng)) : 1000 + honest;
}

/* Value of one row among n; place counts through rows and columns, so that liars sit in other rows in every column. */
static double draw(rfi_rng *rng, data_kind kind, ptrdiff_t place, ptrdiff_t n, bool single)
{
    double normal = rfi_rng_normal(rng);
    switch (kind) {
    case FAR20:
    case EDGE:
        return draw_contaminated(rng, kind, place % n < n / 5);
    case FAR40:
        return draw_contaminated(rng, kind, place % n < 2 * n / 5);
    case T2:
        return draw_t2(rng);
    case CAUCHY:
        return tan(3.14159265358979 * (rfi_rng_uniform(rng) - 0.5));
    case TIES:
        return (double)rfi_rng_below(rng, 7) - 3;
    case CONSTANT:
        return 0.1;
    case MAJORITY:
        return place % n <= n / 2 ? 0.1 : normal;
    case BIMODAL:
        return normal / 8 + (rfi_rng_below(rng, 2) ? 2 : -2);
    case OFFSET:
        return (single ? 1e4 : 1e12) + 0.01 * normal;
    case TINY:
        return 1e-30 * normal;
    case DENORMAL:
        return (single ? 1e-39 : 1e-310) * normal;
    case LARGE:
        return (single ? 1e30 : 1e200) * normal;
    case HUGE_ONES:
        return (single ? 1e37 : 1e307) * normal;
    case TOP:
        return (single ? (double)FLT_MAX : DBL_MAX) * (2 * rfi_rng_uniform(rng) - 1);
    case GAUSS:
    case DATA_KINDS:
        break;
    }
    return normal;
}

/* A table of rows, each in memory of its own that ends where the row ends and starts at any address. */
typedef struct table {
    data_kind kind;
    ptrdiff_t n, m;
    bool single;
    unsigned char **memory;
    const void **rows;
    double *weights; /* n, or NULL */
    double *mad;     /* m */
} table;

enum { ROOM_ROWS = 10000, ROOM_COLUMNS = 4097 };

static double get(const table *t, ptrdiff_t l, ptrdiff_t i)
{
    float narrow;
    double value;
    if (t->single) {
        memcpy(&narrow, (const char *)t->rows[l] + (size_t)i * sizeof narrow, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&value, (const char *)t->rows[l] + (size_t)i * sizeof value, sizeof value);
    return value;
}

static void put(table *t, ptrdiff_t l, ptrdiff_t i, double value)
{
    float narrow = (float)value;
    char *row = (char *)t->memory[l] + ((const char *)t->rows[l] - (const char *)t->memory[l]);
    if (t->single) {
        memcpy(row + (size_t)i * sizeof narrow, &narrow, sizeof narrow);
    } else {
        memcpy(row + (size_t)i * sizeof value, &value, sizeof value);
    }
}

static void *must_allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    assert_non_null(memory);
    return memory;
}

static void take_column(const table *t, ptrdiff_t i, double *column)
{
    for (ptrdiff_t l = 0; l < t->n; l++) {
        column[l] = get(t, l, i);
    }
}

static void measure(table *t)
{
    static double column[ROOM_ROWS];
    static double spare[ROOM_ROWS];
    for (ptrdiff_t i = 0; i < t->m; i++) {
        take_column(t, i, column);
        double median = rfi_median(column, t->n, RFI_MEDIAN_AVERAGE);
        t->mad[i] = rfi_mad(column, t->n, median, spare);
    }
}

static table make_table(data_kind kind, ptrdiff_t n, ptrdiff_t m, bool single, uint32_t seed)
{
    table t = {.kind = kind, .n = n, .m = m, .single = single};
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x6f7261, (uint32_t)n, (uint32_t)m, (uint32_t)kind);
    t.memory = must_allocate((size_t)n * sizeof *t.memory);
    t.rows = must_allocate((size_t)n * sizeof *t.rows);
    t.mad = must_allocate((size_t)m * sizeof *t.mad);
    for (ptrdiff_t l = 0; l < n; l++) {
        size_t shift = rfi_rng_below(&rng, 64);
        t.memory[l] = must_allocate((size_t)m * (single ? sizeof(float) : sizeof(double)) + shift);
        t.rows[l] = t.memory[l] + shift;
        for (ptrdiff_t i = 0; i < m; i++) {
            put(&t, l, i, draw(&rng, kind, l + i, n, single));
        }
    }
    measure(&t);
    return t;
}

static void weigh_table(table *t, uint32_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x776569, (uint32_t)t->n, 0, 0);
    t->weights = must_allocate((size_t)t->n * sizeof *t->weights);
    for (ptrdiff_t l = 0; l < t->n; l++) {
        t->weights[l] = 0.1 + 1.9 * rfi_rng_uniform(&rng);
    }
}

static void free_table(table *t)
{
    for (ptrdiff_t l = 0; l < t->n; l++) {
        free(t->memory[l]);
    }
    free(t->memory);
    free((void *)t->rows);
    free(t->weights);
    free(t->mad);
}

/* ---- rules ---- */

typedef enum rule_family { AVERAGE, ORDER, TUKEY, HUBER } rule_family;

typedef struct rule_case {
    const char *spec;
    rule_family family;
    rfi_scale_kind scale;
    bool finite;            /* tuned for the number of rows */
    double floor, relative; /* least scale; the same, relative to the typical one */
    reef_agg *agg;
} rule_case;

static rule_case rules[] = {
    {"mean", AVERAGE, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"median", ORDER, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"median:even=lower", ORDER, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"median:even=upper", ORDER, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"trimmed", AVERAGE, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"trimmed:f=max", AVERAGE, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"meamed", AVERAGE, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"meamed:f=25%", AVERAGE, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"huber", HUBER, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"tukey", TUKEY, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"ref", TUKEY, RFI_SCALE_MAD, false, 0, 0, NULL},
    {"ref:scale=mad-exact", TUKEY, RFI_SCALE_MAD_EXACT, false, 0, 0, NULL},
    {"ref:scale=mad-finite", TUKEY, RFI_SCALE_MAD_FINITE, false, 0, 0, NULL},
    {"ref:n=auto", TUKEY, RFI_SCALE_MAD, true, 0, 0, NULL},
    {"ref:scale_floor=0.5", TUKEY, RFI_SCALE_MAD, false, 0.5, 0, NULL},
    {"ref:scale_floor_rel=0.8", TUKEY, RFI_SCALE_MAD, false, 0, 0.8, NULL},
};

static int make_rules(void **state)
{
    (void)state;
    for (ptrdiff_t r = 0; r < COUNT(rules); r++) {
        rules[r].agg = make_agg(rules[r].spec);
    }
    return 0;
}

static int free_rules(void **state)
{
    (void)state;
    for (ptrdiff_t r = 0; r < COUNT(rules); r++) {
        reef_agg_destroy(&rules[r].agg);
    }
    return unsetenv("REEF_ISA");
}

/* shares, if not NULL: n x m effective weights. */
static void run(const rule_case *rule, const table *t, const char *isa, void *out, double *shares)
{
    reef_error error = {0};
    reef_report *report = NULL;
    reef_input input = {.rows = t->rows, .weights = t->weights};
    assert_int_equal(setenv("REEF_ISA", isa, 1), 0);
    if (shares) {
        assert_int_equal(reef_report_create(NULL, &report, t->n, NULL), REEF_OK);
        reef_report_keep_shares(report, shares, NULL);
    }
    reef_status status =
        reef_agg_apply(rule->agg, &input, t->n, t->m, t->single ? REEF_F32 : REEF_F64, out, report, &error);
    CHECK(status == REEF_OK, "%s, %s, %s, K = %td: %s", rule->spec, isa, kind_names[t->kind], t->n, error.text);
    reef_report_destroy(&report);
}

/* ---- tolerances ---- */

static double ulp(double x, bool single)
{
    return single ? (double)(nextafterf((float)fabs(x), INFINITY) - (float)fabs(x))
                  : nextafter(fabs(x), INFINITY) - fabs(x);
}

/* Typical scale of the tile that coordinate i is in. */
static double typical_scale(const table *t, ptrdiff_t i, double factor)
{
    static double scales[4096];
    ptrdiff_t start = i / 4096 * 4096;
    ptrdiff_t positive = 0;
    for (ptrdiff_t j = start; j < t->m && j < start + 4096; j++) {
        scales[positive] = factor * t->mad[j];
        positive += scales[positive] > 0;
    }
    return positive ? rfi_median(scales, positive, RFI_MEDIAN_AVERAGE) : 0;
}

static double scale_in_force(const rule_case *rule, const table *t, ptrdiff_t i)
{
    double factor = rfi_mad_factor(rule->scale, (double)t->n);
    double floor = rule->relative > 0 ? rule->relative * typical_scale(t, i, factor) : rule->floor;
    return fmax(factor * t->mad[i], floor);
}

/* An average is judged by the spread of what it averages, sum abar |x - out|, where that is more than s (at MAD 0, or
 * when a rule that is not robust keeps outliers). In float64 the scalar rule itself sums K products with rounding
 * errors. */
static double allowed(const rule_case *rule, const table *t, ptrdiff_t i, const double *shares, double want)
{
    double s = scale_in_force(rule, t, i);
    double spread = 0;
    double size = 0;
    for (ptrdiff_t l = 0; rule->family == AVERAGE && l < t->n; l++) {
        double share = shares[l * t->m + i];
        spread += share * fabs(get(t, l, i) - want);
        size += share * fabs(get(t, l, i));
    }
    s = fmax(s, spread);
    double rounding = (double)t->n * DBL_EPSILON * size;
    return rounding +
           (t->single ? 1e-6 * s + ulp(want, true) + (double)FLT_MIN : 1e-12 * s + 4 * ulp(want, false) + DBL_MIN);
}

/* ---- comparing ---- */

typedef struct tally {
    int64_t columns, wrong, elsewhere; /* elsewhere: at another stationary point */
    char first[400];                   /* what was wrong */
} tally;

static double effective_n(const table *t, double *a)
{
    double sum = 0;
    double squares = 0;
    for (ptrdiff_t l = 0; l < t->n; l++) {
        sum += t->weights[l];
    }
    for (ptrdiff_t l = 0; l < t->n; l++) {
        a[l] = t->weights[l] / sum;
        squares += a[l] * a[l];
    }
    return 1 / squares;
}

/* Whether `got` is at least as good a minimum as `want`. */
static bool other_minimum(const rule_case *rule, const table *t, ptrdiff_t i, double got, double want)
{
    static double column[ROOM_ROWS];
    static double a[ROOM_ROWS];
    if (rule->family < TUKEY || !t->weights) {
        return false;
    }
    double n = effective_n(t, a);
    rfi_mest est = {.family = rule->family == HUBER ? RFI_HUBER : RFI_TUKEY};
    est.c = rule->finite ? rfi_finite_tune(rule->scale, n, 0.95).c : rfi_mest_tune(est.family, 0.95);
    take_column(t, i, column);
    double s = scale_in_force(rule, t, i);
    double reached = rfi_mest_objective(&est, column, a, t->n, got, s);
    return s > 0 && reached <= (1 + 1e-6) * rfi_mest_objective(&est, column, a, t->n, want, s);
}

static void compare(const rule_case *rule, const table *t, const char *isa, const void *fast, const void *scalar,
                    const double *shares, tally *sum)
{
    const void *outs[] = {fast, scalar};
    table view = {.single = t->single, .rows = outs};
    for (ptrdiff_t i = 0; i < t->m; i++) {
        double got = get(&view, 0, i);
        double want = get(&view, 1, i);
        double tol = allowed(rule, t, i, shares, want);
        sum->columns++;
        if (fabs(got - want) <= tol) {
            continue;
        }
        if (other_minimum(rule, t, i, got, want)) {
            sum->elsewhere++;
            continue;
        }
        if (!sum->wrong++) {
            snprintf(
                sum->first, sizeof sum->first,
                "%s, %s, float%d, %s, K = %td%s, coordinate %td of %td: %.9g instead of %.9g (allowed %.3g, s %.3g)",
                rule->spec, isa, t->single ? 32 : 64, kind_names[t->kind], t->n, t->weights ? " weighted" : "", i, t->m,
                got, want, tol, scale_in_force(rule, t, i));
        }
    }
}

static void check_tally(const tally *sum)
{
    CHECK(sum->columns > 0, "nothing was compared");
    CHECK(!sum->wrong, "%lld of %lld columns; first: %s", (long long)sum->wrong, (long long)sum->columns, sum->first);
    CHECK((double)sum->elsewhere <= 0.002 * (double)sum->columns, "%lld of %lld columns at another stationary point",
          (long long)sum->elsewhere, (long long)sum->columns);
}

static void compare_rule(const rule_case *rule, const table *t, tally *sum)
{
    static double scalar[ROOM_COLUMNS];
    static double fast[ROOM_COLUMNS];
    double *shares = rule->family == AVERAGE ? must_allocate((size_t)(t->n * t->m) * sizeof *shares) : NULL;
    run(rule, t, "scalar", scalar, shares);
    for (int i = 0; rfi_kernels_at(t->single, i); i++) {
        const char *isa = rfi_kernels_at(t->single, i)->name;
        run(rule, t, isa, fast, NULL);
        compare(rule, t, isa, fast, scalar, shares, sum);
    }
    free(shares);
}

/* Every rule on every kind of data; M walks through lengths with tails of all kinds. */
static void compare_all(const ptrdiff_t *counts, ptrdiff_t count, const ptrdiff_t *lengths, ptrdiff_t length_count,
                        const data_kind *kinds, ptrdiff_t kind_count, bool weighted)
{
    tally sum = {0};
    for (ptrdiff_t c = 0; c < count * kind_count * 2; c++) {
        data_kind kind = kinds[c / 2 % kind_count];
        ptrdiff_t n = counts[c / 2 / kind_count];
        ptrdiff_t m = lengths[(c / 2 + c / 2 / kind_count) % length_count];
        table t = make_table(kind, n, m, c % 2, (uint32_t)c);
        if (weighted) {
            weigh_table(&t, (uint32_t)c);
        }
        for (ptrdiff_t r = 0; r < COUNT(rules); r++) {
            compare_rule(&rules[r], &t, &sum);
        }
        free_table(&t);
    }
    check_tally(&sum);
}

static const data_kind all_kinds[] = {GAUSS,    FAR20,   FAR40,  EDGE, T2,       CAUCHY, TIES,      CONSTANT,
                                      MAJORITY, BIMODAL, OFFSET, TINY, DENORMAL, LARGE,  HUGE_ONES, TOP};
static const data_kind some_kinds[] = {GAUSS, EDGE, CAUCHY, TIES, OFFSET};

static void few_rows(void **state)
{
    static const ptrdiff_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 32, 33};
    static const ptrdiff_t lengths[] = {1, 7, 15, 16, 17, 63, 64, 65, 200};
    (void)state;
    compare_all(counts, MONTE_CARLO(COUNT(counts), 10), lengths, MONTE_CARLO(COUNT(lengths), 5), all_kinds,
                COUNT(all_kinds), false);
}

static void few_weighted_rows(void **state)
{
    static const ptrdiff_t counts[] = {1, 2, 3, 4, 5, 8, 16, 31, 32, 33};
    static const ptrdiff_t lengths[] = {17, 65, 64, 7, 200};
    (void)state;
    compare_all(counts, COUNT(counts), lengths, MONTE_CARLO(COUNT(lengths), 4), all_kinds, COUNT(all_kinds), true);
}

static void many_rows(void **state)
{
    static const ptrdiff_t counts[] = {48, 63, 64, 65, 96, 100, 127, 128, 129};
    static const ptrdiff_t lengths[] = {17, 33, 7};
    (void)state;
    ptrdiff_t used = MONTE_CARLO(COUNT(counts), 4);
    compare_all(counts, used, lengths, COUNT(lengths), all_kinds, COUNT(all_kinds), false);
    compare_all(counts, used, lengths, COUNT(lengths), some_kinds, COUNT(some_kinds), true);
}

static void very_many_rows(void **state)
{
    static const ptrdiff_t counts[] = {255, 300, 1024, 1500};
    static const ptrdiff_t lengths[] = {7, 17};
    (void)state;
    compare_all(counts, MONTE_CARLO(COUNT(counts), 2), lengths, COUNT(lengths), some_kinds, COUNT(some_kinds), false);
}

static void ten_thousand_rows(void **state)
{
    static const ptrdiff_t counts[] = {10000};
    static const ptrdiff_t lengths[] = {3};
    (void)state;
    compare_all(counts, 1, lengths, 1, some_kinds, MONTE_CARLO(COUNT(some_kinds), 1), false);
}

static void long_rows(void **state)
{
    static const ptrdiff_t counts[] = {8, 33};
    static const ptrdiff_t lengths[] = {4097};
    (void)state;
    compare_all(counts, MONTE_CARLO(COUNT(counts), 1), lengths, 1, some_kinds, MONTE_CARLO(COUNT(some_kinds), 2),
                false);
}

/* Huber's function has kinks: a Newton step across one of them is not the last, however short. Many short columns, so
 * that some need it. */
static void huber_steps_across_kinks(void **state)
{
    tally sum = {0};
    (void)state;
    for (uint32_t c = 0; c < MONTE_CARLO(60, 6); c++) {
        table t = make_table(c % 3 ? GAUSS : T2, 3 + c % 7, 4097, c % 2, 1000 + c);
        compare_rule(&rules[8], &t, &sum);
        free_table(&t);
    }
    assert_string_equal(rules[8].spec, "huber");
    check_tally(&sum);
}

/* Weights of any ratio are allowed. The one who carries nearly all of the weight may be rejected, since the start
 * counts rows; the others must then be told apart by weights far below the smallest number of the type. */
static void compare_light_rows(double ratio, bool single)
{
    tally sum = {0};
    table t = make_table(GAUSS, 6, 65, single, 77);
    weigh_table(&t, 77);
    for (ptrdiff_t l = 1; l < t.n; l++) {
        t.weights[l] *= ratio;
    }
    for (ptrdiff_t i = 0; i < t.m; i++) {
        put(&t, 0, i, i % 2 ? 50 : -50);
    }
    measure(&t);
    for (ptrdiff_t r = 0; r < COUNT(rules); r++) {
        compare_rule(&rules[r], &t, &sum);
    }
    free_table(&t);
    /* the honest rows are close together: hardly a column has two minima */
    CHECK(!sum.wrong && sum.elsewhere <= sum.columns / 100,
          "weights %g to 1, float%d: %lld of %lld columns elsewhere, %lld wrong; first: %s", ratio, single ? 32 : 64,
          (long long)sum.elsewhere, (long long)sum.columns, (long long)sum.wrong, sum.first);
}

static void extreme_weights(void **state)
{
    static const double ratios[] = {1e-6, 1e-20, 1e-37, 1e-42, 1e-60, 1e-200, 1e-300};
    (void)state;
    for (ptrdiff_t c = 0; c < 2 * COUNT(ratios); c++) {
        compare_light_rows(ratios[c / 2], c % 2);
    }
}

/* The set that is taken unasked: the last of the list, except that avx512i pays on AMD processors only. */
static const rfi_kernels *preferred(bool single)
{
    const rfi_kernels *best = NULL;
    for (int i = 0; rfi_kernels_at(single, i); i++) {
        const rfi_kernels *set = rfi_kernels_at(single, i);
#if defined(__x86_64__)
        best = strcmp(set->name, "avx512i") != 0 || __builtin_cpu_is("amd") ? set : best;
#else
        best = set;
#endif
    }
    return best;
}

/* REEF_ISA: the named set, the best for a name unknown here, none for scalar. */
static void the_environment_decides(void **state)
{
    (void)state;
    for (int single = 0; single < 2; single++) {
        const rfi_kernels *best = preferred(single);
        for (int i = 0; rfi_kernels_at(single, i); i++) {
            assert_int_equal(setenv("REEF_ISA", rfi_kernels_at(single, i)->name, 1), 0);
            assert_ptr_equal(rfi_kernels_find(single), rfi_kernels_at(single, i));
        }
        assert_non_null(best);
        assert_ptr_not_equal(best, rfi_kernels_at(!single, 0));
        assert_null(rfi_kernels_at(single, -1));
        assert_int_equal(setenv("REEF_ISA", "scalar", 1), 0);
        assert_null(rfi_kernels_find(single));
        assert_int_equal(setenv("REEF_ISA", "no such set", 1), 0);
        assert_ptr_equal(rfi_kernels_find(single), best);
        assert_int_equal(unsetenv("REEF_ISA"), 0);
        assert_ptr_equal(rfi_kernels_find(single), best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows),
        cmocka_unit_test(few_weighted_rows),
        cmocka_unit_test(many_rows),
        cmocka_unit_test(very_many_rows),
        cmocka_unit_test(ten_thousand_rows),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(huber_steps_across_kinks),
        cmocka_unit_test(extreme_weights),
        cmocka_unit_test(the_environment_decides),
    };
    return cmocka_run_group_tests(tests, make_rules, free_rules);
}
