/* Pre-aggregators from their definitions: explicit mixed rows. */
#include "support/check.h"
#include "support/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void oracle_nnm(const matrix *x, ptrdiff_t f, matrix *to)
{
    *to = *x;
    for (ptrdiff_t k = 0; k < x->n; k++) {
        bool chosen[ROWS_MAX] = {false};
        chosen[k] = true;
        for (ptrdiff_t step = 1; step < x->n - f; step++) {
            ptrdiff_t best = -1;
            for (ptrdiff_t l = 0; l < x->n; l++) {
                if (!chosen[l] && (best < 0 || oracle_distance2(x->x[k], x->x[l], x->m) <
                                                   oracle_distance2(x->x[k], x->x[best], x->m))) {
                    best = l;
                }
            }
            chosen[best] = true;
        }
        for (ptrdiff_t i = 0; i < x->m; i++) {
            double sum = 0;
            double mass = 0;
            for (ptrdiff_t l = 0; l < x->n; l++) {
                sum += chosen[l] ? x->a[l] * x->x[l][i] : 0;
                mass += chosen[l] ? x->a[l] : 0;
            }
            to->x[k][i] = sum / mass;
        }
    }
}

static double norm(const matrix *x, ptrdiff_t l)
{
    static const double zero[LENGTH_MAX];
    return sqrt(oracle_distance2(x->x[l], zero, x->m));
}

void oracle_clip(const matrix *x, double c, matrix *to)
{
    *to = *x;
    for (ptrdiff_t l = 0; l < x->n; l++) {
        double length = norm(x, l);
        for (ptrdiff_t i = 0; i < x->m; i++) {
            to->x[l][i] *= length > c ? c / length : 1;
        }
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void oracle_arc(const matrix *x, ptrdiff_t f, matrix *to)
{
    double sorted[ROWS_MAX];
    for (ptrdiff_t l = 0; l < x->n; l++) {
        sorted[l] = norm(x, l);
    }
    qsort(sorted, (size_t)x->n, sizeof sorted[0], ascending);
    ptrdiff_t clipped = 2 * f * (x->n - f) / x->n;
    oracle_clip(x, sorted[x->n - 1 - clipped], to);
}

void oracle_bucketing(const matrix *x, const char *spec, int64_t round, matrix *to)
{
    static double mixing[ROWS_MAX * ROWS_MAX];
    static double work[ROWS_MAX * (ROWS_MAX + 8)];
    static ptrdiff_t order[4 * ROWS_MAX];
    const reef_rule *rule = (const void *)reef_kind_find(NULL, REEF_FAMILY_RULE, "bucketing");
    int64_t params[2] = {2, 0}; /* s, seed: both int64_t, in this order in the field table */
    assert_int_equal(rule->kind.params_size, sizeof params);
    if (strstr(spec, "s=")) {
        params[0] = strtoll(strstr(spec, "s=") + 2, NULL, 10);
    }
    if (strstr(spec, "seed=")) {
        params[1] = strtoll(strstr(spec, "seed=") + 5, NULL, 10);
    }
    reef_points points = {.n = x->n, .count = x->n, .origin = -1, .centre = -1, .a = x->a, .round = round};
    points.work = work;
    points.index = order;
    memset(mixing, 0, sizeof mixing);
    to->n = rule->mixed(params, x->n);
    to->m = x->m;
    assert_int_equal(rule->mix(params, &points, mixing, to->a, NULL), REEF_OK);
    for (ptrdiff_t k = 0; k < to->n; k++) {
        for (ptrdiff_t i = 0; i < x->m; i++) {
            to->x[k][i] = 0;
            for (ptrdiff_t l = 0; l < x->n; l++) {
                to->x[k][i] += mixing[k * x->n + l] * x->x[l][i];
            }
        }
    }
}
