/* Order statistics of rows with unequal weights: few coordinates are left to the scalar rules, and half of the weight is found where they find
 * it: with whole numbers as weights, where exactly half is common; near half, inside and outside of the tolerance; and among ties. */
#include "num/kernels/kernels.h"
#include "num/order.h"
#include "num/rng.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40, COLUMNS = 203 };

typedef struct table {
    ptrdiff_t n;
    bool single;
    double x[MOST][COLUMNS];
    double weights[MOST]; /* sum 1 */
    unsigned char bytes[MOST][COLUMNS * sizeof(double)];
    const void *rows[MOST];
} table;

typedef struct result {
    unsigned char out[COLUMNS * sizeof(double)];
    int32_t hard[RFI_SPAN_MAX];
    double share[MOST];
    int64_t rejected[MOST];
    ptrdiff_t count; /* of hard ones */
} result;

typedef enum weights_kind { WHOLE, NEAR_HALF, ANY, WEIGHTS_KINDS } weights_kind;

static void weigh(table *t, weights_kind kind, rfi_rng *rng)
{
    double sum = 0;
    for (ptrdiff_t l = 0; l < t->n; l++) {
        double offset = (double)rfi_rng_below(rng, 5) * (t->single ? 4e-7 : 4e-13);
        t->weights[l] = kind == ANY ? 0.1 + rfi_rng_uniform(rng) : 1 + (double)rfi_rng_below(rng, 3);
        t->weights[l] *= kind == NEAR_HALF ? 1 + offset : 1;
        sum += t->weights[l];
    }
    for (ptrdiff_t l = 0; l < t->n; l++) {
        t->weights[l] /= sum;
    }
}

static void fill(table *t, ptrdiff_t n, bool single, bool ties, weights_kind kind, uint32_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x77, (uint32_t)n, 0, 0);
    t->n = n;
    t->single = single;
    weigh(t, kind, &rng);
    for (ptrdiff_t l = 0; l < n; l++) {
        t->rows[l] = t->bytes[l];
        for (ptrdiff_t i = 0; i < COLUMNS; i++) {
            double x = ties ? (double)rfi_rng_below(&rng, 5) - 2 : rfi_rng_normal(&rng);
            float narrow = (float)x;
            t->x[l][i] = single ? (double)narrow : x;
            memcpy(t->bytes[l] + (size_t)i * (single ? sizeof narrow : sizeof x), single ? (void *)&narrow : (void *)&x,
                   single ? sizeof narrow : sizeof x);
        }
    }
}

static void take_column(const table *t, ptrdiff_t i, double *x)
{
    for (ptrdiff_t l = 0; l < t->n; l++) {
        x[l] = t->x[l][i];
    }
}

static double out_at(const table *t, const result *r, ptrdiff_t i)
{
    float narrow;
    double value;
    memcpy(&narrow, r->out + (size_t)i * sizeof narrow, sizeof narrow);
    memcpy(&value, r->out + (size_t)i * sizeof value, sizeof value);
    return t->single ? (double)narrow : value;
}

static bool is_hard(const result *r, ptrdiff_t i)
{
    bool found = false;
    for (ptrdiff_t h = 0; h < r->count; h++) {
        found = found || r->hard[h] == i;
    }
    return found;
}

static void run_median(const rfi_kernels *kernels, const table *t, int kind, bool reported, result *r)
{
    double tol = t->single ? RFI_HALF_TOL_F32 : RFI_HALF_TOL_F64;
    memset(r, 0, sizeof *r);
    void *scratch = aligned_alloc(64, RFI_SPAN_SCRATCH(t->n));
    rfi_span span = {t->rows, t->weights, false, t->n, COLUMNS, r->out, scratch, r->hard};
    rfi_kernel_report report = {.rejected = r->rejected};
    report.share = reported ? r->share : NULL;
    assert_non_null(scratch);
    r->count = kernels->median_weighted(&span, kind, tol, &report);
    free(scratch);
}

/* The scalar definition: the two ends, and who has a share in them. */
static void expect_median(const table *t, const result *r, int kind, const char *isa, double *share)
{
    double tol = t->single ? RFI_HALF_TOL_F32 : RFI_HALF_TOL_F64;
    for (ptrdiff_t i = 0; i < COLUMNS; i++) {
        double x[MOST];
        ptrdiff_t order[MOST];
        ptrdiff_t spare[MOST];
        take_column(t, i, x);
        rfi_argsort(x, t->n, order, spare);
        double ends[2] = {
            rfi_wmedian(x, t->weights, order, t->n, tol, kind == 2 ? RFI_MEDIAN_UPPER : RFI_MEDIAN_LOWER),
            rfi_wmedian(x, t->weights, order, t->n, tol, kind == 1 ? RFI_MEDIAN_LOWER : RFI_MEDIAN_UPPER)};
        double want = rfi_midpoint(ends[0], ends[1]);
        want = t->single ? (double)(float)want : want;
        CHECK(is_hard(r, i) || out_at(t, r, i) == want, "%s, K = %td, float%d, kind %d: %.17g instead of %.17g", isa,
              t->n, t->single ? 32 : 64, kind, out_at(t, r, i), want);
        for (int e = 0; e < 2 && !is_hard(r, i); e++) {
            double mass = 0;
            for (ptrdiff_t l = 0; l < t->n; l++) {
                mass += x[l] == ends[e] ? t->weights[l] : 0;
            }
            for (ptrdiff_t l = 0; l < t->n; l++) {
                share[l] += x[l] == ends[e] ? 0.5 * t->weights[l] / mass : 0;
            }
        }
    }
}

static void check_median(const rfi_kernels *kernels, const table *t, int kind)
{
    static result with;
    static result without;
    double share[MOST] = {0};
    run_median(kernels, t, kind, true, &with);
    run_median(kernels, t, kind, false, &without);
    CHECK(with.count == 0, "%s: %td of %d coordinates are hard", kernels->name, with.count, COLUMNS);
    CHECK(with.count == without.count && memcmp(with.out, without.out, sizeof with.out) == 0,
          "%s: a report changes the result", kernels->name);
    expect_median(t, &with, kind, kernels->name, share);
    for (ptrdiff_t l = 0; l < t->n; l++) {
        CHECK_CLOSE(with.share[l], share[l], t->single ? 1e-4 : 1e-10, kernels->name);
    }
}

static void medians(void **state)
{
    static const ptrdiff_t counts[] = {2, 3, 4, 7, 8, 16, 31, 40};
    static table t;
    (void)state;
    for (uint32_t c = 0; c < COUNT(counts) * WEIGHTS_KINDS * 4; c++) {
        ptrdiff_t n = counts[c / 4 / WEIGHTS_KINDS];
        fill(&t, n, c % 2, c / 2 % 2, (weights_kind)(c / 4 % WEIGHTS_KINDS), c);
        for (int i = 0; rfi_kernels_at(t.single, i); i++) {
            check_median(rfi_kernels_at(t.single, i), &t, (int)(c % 3));
        }
    }
}

/* A value whose weight is smaller than the tolerance cannot be told from half: left to the scalar rule. */
static void tiny_weights_are_hard(void **state)
{
    static table t;
    static result r;
    (void)state;
    fill(&t, 3, true, false, WHOLE, 5);
    t.weights[0] = 0.5 - 1e-8;
    t.weights[1] = 2e-8;
    t.weights[2] = 0.5 - 1e-8;
    for (ptrdiff_t i = 0; i < COLUMNS; i++) {
        float x[3] = {-1, 0, 1};
        for (ptrdiff_t l = 0; l < 3; l++) {
            memcpy(t.bytes[l] + (size_t)i * sizeof *x, &x[l], sizeof *x);
        }
    }
    for (int k = 0; rfi_kernels_at(true, k); k++) {
        run_median(rfi_kernels_at(true, k), &t, 0, false, &r);
        CHECK(r.count == COLUMNS, "%s: %td of %d", rfi_kernels_at(true, k)->name, r.count, COLUMNS);
    }
}

/* Means of what is kept: hardly anything is left over. What they are is compared with the scalar rules in test_oracle.c and test_report.c. */
static void means_are_not_hard(void **state)
{
    static table t;
    static result r;
    (void)state;
    for (uint32_t c = 0; c < 16; c++) {
        fill(&t, 5 + (ptrdiff_t)c, c % 2, false, ANY, c);
        for (int i = 0; rfi_kernels_at(t.single, i); i++) {
            const rfi_kernels *kernels = rfi_kernels_at(t.single, i);
            void *scratch = aligned_alloc(64, RFI_SPAN_SCRATCH(t.n));
            rfi_span span = {t.rows, t.weights, false, t.n, COLUMNS, r.out, scratch, r.hard};
            rfi_kernel_report report = {0};
            assert_non_null(scratch);
            CHECK(kernels->trimmed_weighted(&span, 1, &report) == 0, "%s: trimmed", kernels->name);
            CHECK(kernels->meamed_weighted(&span, t.n - 2, &report) <= 1, "%s: meamed", kernels->name);
            free(scratch);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians),
        cmocka_unit_test(tiny_weights_are_hard),
        cmocka_unit_test(means_are_not_hard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
