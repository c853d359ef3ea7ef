/* The figures of MATH.md sections 2 and 3 by Monte Carlo through the public interface: coordinates (or blocks) of one long
 * model are the repetitions.
 *
 * Clean Gaussian data: T - mean and mean are independent (Basu), so n Var(T) = 1 + n Var(T - mean), whose second term is
 * small and known well after few repetitions. efficiency = 1 / (n Var(T)).
 * Attacks: liars send what honest agents would, shifted by delta at every coordinate; n MSE per coordinate, and the worst
 * over delta. Under a sanitizer there are fewer repetitions and wider limits (see MONTE_CARLO). */
#include "num/rng.h"
#include "num/tuning.h"
#include "support/check.h"
#include "support/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* n rows of m numbers. */
typedef struct sample {
    ptrdiff_t n, m;
    double *x;
    double *out;
    const void **rows;
} sample;

static void draw(sample *s, ptrdiff_t n, ptrdiff_t m, ptrdiff_t malicious_count, double delta, uint64_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x7461626c, (uint32_t)n, 0, 0);
    *s = (sample){.n = n, .m = m};
    s->x = malloc((size_t)(n * m) * sizeof *s->x);
    s->out = malloc((size_t)m * sizeof *s->out);
    s->rows = malloc((size_t)n * sizeof *s->rows);
    assert_true(s->x && s->out && s->rows);
    for (ptrdiff_t l = 0; l < n; l++) {
        double *row = s->x + l * m;
        s->rows[l] = row;
        for (ptrdiff_t i = 0; i < m; i++) {
            row[i] = rfi_rng_normal(&rng) + (l < malicious_count ? delta : 0);
        }
    }
}

static void drop(sample *s)
{
    free(s->x);
    free(s->out);
    free(s->rows);
}

static void aggregate(sample *s, const char *spec, reef_report *report)
{
    reef_agg *agg = make_agg(spec);
    reef_input input = {.rows = s->rows};
    reef_error error;
    reef_status status = reef_agg_apply(agg, &input, s->n, s->m, REEF_F64, s->out, report, &error);
    CHECK(status == REEF_OK, "%s: %s", spec, error.text);
    reef_agg_destroy(&agg);
}

/* n MSE on clean data. */
static double clean_loss(const char *spec, ptrdiff_t n, ptrdiff_t m, uint64_t seed)
{
    sample s;
    double sum = 0;
    draw(&s, n, m, 0, 0, seed);
    aggregate(&s, spec, NULL);
    for (ptrdiff_t i = 0; i < m; i++) {
        double mean = 0;
        for (ptrdiff_t l = 0; l < n; l++) {
            mean += s.x[l * m + i] / (double)n;
        }
        sum += (s.out[i] - mean) * (s.out[i] - mean);
    }
    drop(&s);
    return 1 + (double)n * sum / (double)m;
}

/* Values of all n MSE over the shifts, the largest of them. */
static double worst_loss(const char *spec, ptrdiff_t malicious_count, const double *deltas, ptrdiff_t count,
                         ptrdiff_t m)
{
    double worst = 0;
    for (ptrdiff_t d = 0; d < count; d++) {
        sample s;
        double sum = 0;
        draw(&s, 32, m, malicious_count, deltas[d], 99);
        aggregate(&s, spec, NULL);
        for (ptrdiff_t i = 0; i < m; i++) {
            sum += s.out[i] * s.out[i];
        }
        worst = fmax(worst, 32 * sum / (double)m);
        drop(&s);
    }
    return worst;
}

/* Columns for n rows: so many numbers in all. Standard errors of an efficiency are then about 0.001. */
static ptrdiff_t columns(ptrdiff_t n)
{
    ptrdiff_t m = MONTE_CARLO(1000000, 60000) / n / 10 * 10;
    return m < MONTE_CARLO(200000, 10000) ? m : MONTE_CARLO(200000, 10000);
}
static const double efficiency_error = MONTE_CARLO(0.004, 0.02);

static void finite_efficiency(void **state)
{
    static const struct {
        const char *spec;
        ptrdiff_t n;
        double efficiency;
    } table[] = {
        {"ref", 3, .769},
        {"ref", 5, .814},
        {"ref", 8, .871},
        {"ref", 16, .907},
        {"ref", 32, .929},
        {"ref", 64, .940},
        {"ref", 128, .944},
        {"ref", 1024, .951},
        {"ref:scale=mad-finite", 3, .830},
        {"ref:scale=mad-finite", 5, .857},
        {"ref:scale=mad-finite", 8, .901},
        {"ref:scale=mad-finite", 16, .921},
        {"ref:scale=mad-finite", 32, .936},
        {"vref:block=10,efficiency=0.95", 32, .941},
        {"vref:block=10,efficiency=0.98", 32, .982},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(table); i++) {
        char text[100];
        double loss = clean_loss(table[i].spec, table[i].n, columns(table[i].n), 1234);
        (void)snprintf(text, sizeof text, "efficiency of %s, n = %td", table[i].spec, table[i].n);
        /* the table's own figures for vref come from plain Monte Carlo: .941 is .948 here */
        double rough = table[i].n > 100 || table[i].spec[0] == 'v' ? 2 : 1;
        CHECK_CLOSE(1 / loss, table[i].efficiency, efficiency_error * rough, text);
    }
}

/* Asymptotic constants: at n = 1024 the wanted efficiency is there. */
static void asymptotic_efficiency(void **state)
{
    static const double wanted[] = {0.80, 0.85, 0.90, 0.95, 0.98};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(wanted); i++) {
        char spec[64];
        (void)snprintf(spec, sizeof spec, "ref:scale=mad-exact,efficiency=%g", wanted[i]);
        CHECK_CLOSE(1 / clean_loss(spec, 513, columns(513), 5), wanted[i], 3 * efficiency_error, spec);
        (void)snprintf(spec, sizeof spec, "huber:scale=mad-exact,efficiency=%g", wanted[i]);
        CHECK_CLOSE(1 / clean_loss(spec, 513, columns(513), 5), wanted[i], 3 * efficiency_error, spec);
    }
    CHECK_CLOSE(1 / clean_loss("median", 513, columns(513), 6), 2 / 3.14159265, 6 * efficiency_error, "median");
}

/* n=auto reaches what was asked for, unless the cap on c binds; then it reaches what the tuning says. */
static void tuned_for_n(void **state)
{
    static const char *const scales[] = {"mad", "mad-exact", "mad-finite", "qn", "s"};
    (void)state;
    for (ptrdiff_t n = 3; n <= 64; n += n < 12 ? 1 : 7) {
        for (int k = 0; k < COUNT(scales); k++) {
            char spec[100];
            double wanted = k % 2 ? 0.9 : 0.95;
            double achieved = rfi_finite_tune((rfi_scale_kind)k, (double)n, wanted).achieved;
            (void)snprintf(spec, sizeof spec, "ref:n=auto,scale=%s,efficiency=%g", scales[k], wanted);
            assert_true(achieved <= wanted + 1e-9);
            /* slow scales get fewer columns; the limit of 1 % is the issue's */
            ptrdiff_t m = k < 3 ? columns(n) / 3 : columns(n) / 8;
            CHECK_CLOSE(1 / clean_loss(spec, n, m, 777), achieved, MONTE_CARLO(0.01, 0.04), spec);
        }
    }
}

static void worst_shift(void **state)
{
    static const double near[] = {1, 1.25, 1.5, 1.75, 2, 2.5};
    static const double far[] = {2, 2.5, 3, 3.5, 4};
    static const double ref_near[] = {3, 3.5, 4, 4.5, 5};
    static const double ref_far[] = {8, 9, 10}; /* where the table's shifts end; at 11 it is 479 */
    const ptrdiff_t m = MONTE_CARLO(20000, 1500);
    const double slack = MONTE_CARLO(1, 4);
    (void)state;
    CHECK_CLOSE(worst_loss("ref", 8, ref_near, COUNT(ref_near), m), 15.8, 0.8 * slack, "ref, 25 % liars");
    CHECK_CLOSE(worst_loss("ref", 14, ref_far, COUNT(ref_far), m), 455, 35 * slack, "ref, 44 % liars");
    CHECK_CLOSE(worst_loss("vref:block=10,efficiency=0.95", 8, near, COUNT(near), m), 2.6, 0.3 * slack,
                "vref .95, 25 %");
    CHECK_CLOSE(worst_loss("vref:block=10,efficiency=0.98", 8, near, COUNT(near), m), 3.8, 0.3 * slack,
                "vref .98, 25 %");
    CHECK_CLOSE(worst_loss("vref:block=10,efficiency=0.95", 14, far, COUNT(far), m), 25, 6 * slack, "vref .95, 44 %");
    CHECK_CLOSE(worst_loss("vref:block=10,efficiency=0.98", 14, far, COUNT(far), m), 58, 6 * slack, "vref .98, 44 %");
}

/* kappa never falls below 2, so vref does not collapse onto one agent where norms concentrate. */
static void vref_never_collapses(void **state)
{
    static const ptrdiff_t counts[] = {3, 4, 5, 6, 8, 16, 32, 64};
    static const ptrdiff_t blocks[] = {1, 2, 5, 30, 300, 1024, 16384, 100000};
    (void)state;
    for (ptrdiff_t b = 0; b < COUNT(blocks); b++) {
        for (ptrdiff_t i = 0; i < COUNT(counts); i++) {
            char spec[64];
            ptrdiff_t least = MONTE_CARLO(20000, 2000);
            ptrdiff_t m = blocks[b] > least ? blocks[b] : least / blocks[b] * blocks[b];
            (void)snprintf(spec, sizeof spec, "vref:block=%td", blocks[b]);
            if (blocks[b] > MONTE_CARLO(100000, 2000)) {
                continue;
            }
            double loss = clean_loss(spec, counts[i], m, 31);
            /* one or two coordinates and a handful of agents: no better than REF, whose losses these are */
            double limit = blocks[b] <= 2 && counts[i] < 8 ? 1.26 : 1.1;
            CHECK(loss <= limit + MONTE_CARLO(0, 0.05), "%s, n = %td: n MSE %g", spec, counts[i], loss);
        }
    }
}

/* Honest agents whose distances from the centre differ by 30 % either way are all heard. */
static void spread_of_norms(void **state)
{
    static const ptrdiff_t blocks[] = {64, 1024, 20000};
    (void)state;
    for (ptrdiff_t b = 0; b < COUNT(blocks); b++) {
        for (ptrdiff_t n = 3; n <= 64; n += n < 10 ? 1 : 9) {
            sample s;
            reef_report *report = NULL;
            assert_int_equal(reef_report_create(NULL, &report, n, NULL), REEF_OK);
            draw(&s, n, blocks[b], 0, 0, 8);
            for (ptrdiff_t l = 0; l < n; l++) {
                double size = 0.7 + 0.6 * (double)l / (double)(n - 1);
                for (ptrdiff_t i = 0; i < s.m; i++) {
                    s.x[l * s.m + i] = 5 + size * s.x[l * s.m + i];
                }
            }
            aggregate(&s, "vref", report);
            for (ptrdiff_t l = 0; l < n; l++) {
                CHECK(reef_report_rejected(report)[l] == 0 && reef_report_trust(report)[l] > 0,
                      "block %td, n = %td: agent %td has trust %g", blocks[b], n, l, reef_report_trust(report)[l]);
            }
            drop(&s);
            reef_report_destroy(&report);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finite_efficiency), cmocka_unit_test(asymptotic_efficiency), cmocka_unit_test(tuned_for_n),
        cmocka_unit_test(worst_shift),       cmocka_unit_test(vref_never_collapses),  cmocka_unit_test(spread_of_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
