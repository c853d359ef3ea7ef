/* Rules from their definitions. See oracle_mix.c for the pre-aggregators. */
#include "support/oracle.h"

#include "num/special.h"
#include "num/tuning.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void oracle_take(const trial *t, matrix *x)
{
    x->n = t->n;
    x->m = t->m;
    memcpy(x->x, t->x, sizeof x->x);
    for (ptrdiff_t l = 0; l < t->n; l++) {
        x->a[l] = trial_weight(t, l);
    }
}

void oracle_give(const matrix *x, trial *t)
{
    memset(t, 0, sizeof *t);
    t->n = x->n;
    t->m = x->m;
    t->dtype = REEF_F64;
    memcpy(t->x, x->x, sizeof t->x);
    memcpy(t->weights, x->a, sizeof t->weights);
    for (ptrdiff_t l = 1; l < x->n; l++) {
        t->weighted = t->weighted || fabs(x->a[l] - x->a[0]) > 1e-12;
    }
}

double oracle_distance2(const double *x, const double *y, ptrdiff_t m)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < m; i++) {
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    }
    return sum;
}

void oracle_mean_of(const matrix *x, const bool *in, double *out)
{
    for (ptrdiff_t i = 0; i < x->m; i++) {
        long double sum = 0;
        long double mass = 0;
        for (ptrdiff_t l = 0; l < x->n; l++) {
            sum += in[l] ? (long double)x->a[l] * x->x[l][i] : 0;
            mass += in[l] ? (long double)x->a[l] : 0;
        }
        out[i] = (double)(sum / mass);
    }
}

void oracle_mean(const matrix *x, double *out)
{
    bool in[ROWS_MAX];
    memset(in, true, sizeof in);
    oracle_mean_of(x, in, out);
}

/* Number of rows before row l in the order of column i, equal values by index. */
static ptrdiff_t rank_of(const matrix *x, ptrdiff_t l, ptrdiff_t i)
{
    ptrdiff_t rank = 0;
    for (ptrdiff_t k = 0; k < x->n; k++) {
        bool before = x->x[k][i] < x->x[l][i] || (x->x[k][i] == x->x[l][i] && k < l);
        rank += before;
    }
    return rank;
}

static double order_statistic(const matrix *x, ptrdiff_t rank, ptrdiff_t i)
{
    for (ptrdiff_t l = 0; l < x->n; l++) {
        if (rank_of(x, l, i) == rank) {
            return x->x[l][i];
        }
    }
    fail_msg("rank %td of %td", rank, x->n);
    return NAN;
}

void oracle_median(const matrix *x, int even, double *out)
{
    for (ptrdiff_t i = 0; i < x->m; i++) {
        double lower = order_statistic(x, (x->n - 1) / 2, i);
        double upper = order_statistic(x, x->n / 2, i);
        out[i] = even < 0 ? lower : (even > 0 ? upper : (lower + upper) / 2);
    }
}

/* Least x with at least (more than) half the weight at or below it. */
static double half_point(const matrix *x, ptrdiff_t i, bool more)
{
    double best = INFINITY;
    for (ptrdiff_t l = 0; l < x->n; l++) {
        double mass = 0;
        for (ptrdiff_t k = 0; k < x->n; k++) {
            mass += x->x[k][i] <= x->x[l][i] ? x->a[k] : 0;
        }
        bool enough = more ? mass > 0.5 + 1e-9 : mass >= 0.5 - 1e-9;
        best = enough && x->x[l][i] < best ? x->x[l][i] : best;
    }
    return best;
}

void oracle_weighted_median(const matrix *x, double *out)
{
    for (ptrdiff_t i = 0; i < x->m; i++) {
        out[i] = (half_point(x, i, false) + half_point(x, i, true)) / 2;
    }
}

/* What part of value l is kept when the values of rank first..last-1 are: ties across a border share alike. */
static double kept_part(const double *key, const bool *in, ptrdiff_t n, ptrdiff_t l, ptrdiff_t first, ptrdiff_t last)
{
    ptrdiff_t less = 0;
    ptrdiff_t same = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        less += in[k] && key[k] < key[l];
        same += in[k] && key[k] == key[l];
    }
    double inside = fmin((double)(less + same), (double)last) - fmax((double)less, (double)first);
    return inside > 0 ? inside / (double)same : 0;
}

void oracle_trimmed(const matrix *x, ptrdiff_t f, ptrdiff_t self, double *out)
{
    ptrdiff_t screened = self < 0 ? x->n : x->n - 1;
    for (ptrdiff_t i = 0; i < x->m; i++) {
        double key[ROWS_MAX];
        bool in[ROWS_MAX];
        double sum = 0;
        double mass = 0;
        for (ptrdiff_t l = 0; l < x->n; l++) {
            key[l] = x->x[l][i];
            in[l] = l != self;
        }
        for (ptrdiff_t l = 0; l < x->n; l++) {
            double kept = l == self ? 1 : kept_part(key, in, x->n, l, f, screened - f);
            sum += kept * x->a[l] * x->x[l][i];
            mass += kept * x->a[l];
        }
        out[i] = sum / mass;
    }
}

void oracle_meamed(const matrix *x, ptrdiff_t f, double *out)
{
    double median[LENGTH_MAX];
    bool in[ROWS_MAX];
    memset(in, true, sizeof in);
    oracle_median(x, 0, median);
    for (ptrdiff_t i = 0; i < x->m; i++) {
        double key[ROWS_MAX];
        double sum = 0;
        double mass = 0;
        for (ptrdiff_t l = 0; l < x->n; l++) {
            key[l] = fabs(x->x[l][i] - median[i]);
        }
        for (ptrdiff_t l = 0; l < x->n; l++) {
            double kept = kept_part(key, in, x->n, l, 0, x->n - f);
            sum += kept * x->a[l] * x->x[l][i];
            mass += kept * x->a[l];
        }
        out[i] = sum / mass;
    }
}

/* Sum of the `neighbours` smallest squared distances from l to the other rows that are in. */
static double score(const matrix *x, const bool *in, ptrdiff_t l, ptrdiff_t neighbours)
{
    bool used[ROWS_MAX] = {false};
    double sum = 0;
    for (ptrdiff_t step = 0; step < neighbours; step++) {
        ptrdiff_t best = -1;
        for (ptrdiff_t k = 0; k < x->n; k++) {
            if (k != l && in[k] && !used[k] &&
                (best < 0 || oracle_distance2(x->x[l], x->x[k], x->m) < oracle_distance2(x->x[l], x->x[best], x->m))) {
                best = k;
            }
        }
        if (best < 0) {
            break;
        }
        used[best] = true;
        sum += oracle_distance2(x->x[l], x->x[best], x->m);
    }
    return sum;
}

void oracle_krum(const matrix *x, ptrdiff_t neighbours, ptrdiff_t m, double *out)
{
    bool all[ROWS_MAX];
    bool chosen[ROWS_MAX] = {false};
    memset(all, true, sizeof all);
    for (ptrdiff_t step = 0; step < m; step++) {
        ptrdiff_t best = -1;
        for (ptrdiff_t l = 0; l < x->n; l++) {
            if (!chosen[l] && (best < 0 || score(x, all, l, neighbours) < score(x, all, best, neighbours))) {
                best = l;
            }
        }
        chosen[best] = true;
    }
    oracle_mean_of(x, chosen, out);
}

void oracle_bulyan(const matrix *x, ptrdiff_t f, double *out)
{
    static matrix rest;
    bool in[ROWS_MAX];
    ptrdiff_t theta = x->n - 2 * f;
    memset(in, true, sizeof in);
    rest.n = theta;
    rest.m = x->m;
    for (ptrdiff_t step = 0; step < theta; step++) {
        ptrdiff_t best = -1;
        ptrdiff_t neighbours = x->n - step - f - 2 > 1 ? x->n - step - f - 2 : 1;
        for (ptrdiff_t l = 0; l < x->n; l++) {
            if (in[l] && (best < 0 || score(x, in, l, neighbours) < score(x, in, best, neighbours))) {
                best = l;
            }
        }
        in[best] = false;
        memcpy(rest.x[step], x->x[best], sizeof rest.x[step]);
        rest.a[step] = 1.0 / (double)theta;
    }
    oracle_meamed(&rest, theta - 2 * f >= 1 ? 2 * f : theta - 1, out);
}

double oracle_diameter2(const matrix *x, const bool *in)
{
    double diameter = 0;
    for (ptrdiff_t l = 0; l < x->n; l++) {
        for (ptrdiff_t k = 0; in[l] && k < l; k++) {
            diameter = in[k] ? fmax(diameter, oracle_distance2(x->x[l], x->x[k], x->m)) : diameter;
        }
    }
    return diameter;
}

double oracle_mda(const matrix *x, ptrdiff_t f, bool *first)
{
    double smallest = INFINITY;
    assert_true(x->n <= 16);
    /* row 0 is the highest bit: counting down meets the sets in the order of itertools.combinations */
    for (unsigned set = (1U << x->n) - 1; set > 0; set--) {
        bool in[ROWS_MAX] = {false};
        ptrdiff_t size = 0;
        for (ptrdiff_t l = 0; l < x->n; l++) {
            in[l] = set >> (x->n - 1 - l) & 1;
            size += in[l];
        }
        double diameter = size == x->n - f ? oracle_diameter2(x, in) : (double)INFINITY;
        if (diameter < smallest) {
            smallest = diameter;
            memcpy(first, in, sizeof in);
        }
    }
    return smallest;
}

/* out = sum u x / sum u */
static void average(const matrix *x, const double *u, double *out)
{
    for (ptrdiff_t i = 0; i < x->m; i++) {
        double sum = 0;
        double mass = 0;
        for (ptrdiff_t l = 0; l < x->n; l++) {
            sum += u[l] * x->x[l][i];
            mass += u[l];
        }
        out[i] = sum / mass;
    }
}

void oracle_geomed_byzfl(const matrix *x, double nu, int steps, double *out)
{
    double u[ROWS_MAX];
    memset(out, 0, (size_t)x->m * sizeof *out);
    for (int step = 0; step < steps; step++) {
        for (ptrdiff_t l = 0; l < x->n; l++) {
            u[l] = x->a[l] / fmax(nu, sqrt(oracle_distance2(x->x[l], out, x->m)));
        }
        average(x, u, out);
    }
}

double oracle_geomed_gradient(const matrix *x, const double *y)
{
    double gradient[LENGTH_MAX] = {0};
    double held = 0;
    double square = 0;
    for (ptrdiff_t l = 0; l < x->n; l++) {
        double d = sqrt(oracle_distance2(x->x[l], y, x->m));
        if (d < 1e-6) {
            held += x->a[l];
            continue;
        }
        for (ptrdiff_t i = 0; i < x->m; i++) {
            gradient[i] += x->a[l] * (y[i] - x->x[l][i]) / d;
        }
    }
    for (ptrdiff_t i = 0; i < x->m; i++) {
        square += gradient[i] * gradient[i];
    }
    return sqrt(square) - held;
}

void oracle_cclip(const matrix *x, double tau, int steps, double *v)
{
    for (int step = 0; step < steps; step++) {
        double move[LENGTH_MAX] = {0};
        for (ptrdiff_t l = 0; l < x->n; l++) {
            double d = sqrt(oracle_distance2(x->x[l], v, x->m));
            double factor = d > tau ? tau / d : 1;
            for (ptrdiff_t i = 0; i < x->m; i++) {
                move[i] += x->a[l] * factor * (x->x[l][i] - v[i]);
            }
        }
        for (ptrdiff_t i = 0; i < x->m; i++) {
            v[i] += move[i];
        }
    }
}

static double weight_of(double r, double c)
{
    if (c < 0) {
        return fabs(r) <= -c ? 1 : -c / fabs(r);
    }
    double q = fmin(fabs(r) / c, 1);
    return (1 - q * q) * (1 - q * q);
}

void oracle_mest(const matrix *x, double c, double factor, double *out)
{
    static matrix away;
    double mad[LENGTH_MAX];
    oracle_median(x, 0, out);
    away = *x;
    for (ptrdiff_t i = 0; i < x->m; i++) {
        for (ptrdiff_t l = 0; l < x->n; l++) {
            away.x[l][i] = fabs(x->x[l][i] - out[i]);
        }
    }
    oracle_median(&away, 0, mad);
    for (ptrdiff_t i = 0; i < x->m; i++) {
        double s = factor * mad[i];
        for (int step = 0; s > 0 && step < 3000; step++) {
            double sum = 0;
            double mass = 0;
            for (ptrdiff_t l = 0; l < x->n; l++) {
                double b = x->a[l] * weight_of((x->x[l][i] - out[i]) / s, c);
                sum += b * (x->x[l][i] - out[i]);
                mass += b;
            }
            out[i] += sum / mass;
        }
    }
}

double oracle_kappa(const matrix *x, ptrdiff_t block, double efficiency)
{
    double largest = 0;
    for (ptrdiff_t l = 0; l < x->n; l++) {
        largest = fmax(largest, x->a[l]);
    }
    double kappa = rfi_joint_tune((double)block, efficiency) / rfi_chi_median((double)block);
    return fmax(fmax(kappa, 2), sqrt(1 + 8 * largest));
}

void oracle_vref(const matrix *x, ptrdiff_t from, ptrdiff_t to, double kappa, double *out, double *b)
{
    static matrix r; /* one column: distances */
    double centre[LENGTH_MAX];
    double radius = 0;
    oracle_median(x, 0, centre);
    memcpy(out + from, centre + from, (size_t)(to - from) * sizeof *out);
    r.n = x->n;
    r.m = 1;
    for (int step = 0; step < 500; step++) {
        double mass = 0;
        for (ptrdiff_t l = 0; l < x->n; l++) {
            r.x[l][0] = sqrt(oracle_distance2(x->x[l] + from, out + from, to - from));
        }
        if (step == 0) {
            oracle_median(&r, 0, &radius);
            radius *= kappa;
        }
        for (ptrdiff_t l = 0; l < x->n; l++) {
            b[l] = weight_of(r.x[l][0], radius) * x->a[l];
            mass += b[l];
        }
        for (ptrdiff_t i = from; i < to; i++) {
            out[i] = 0;
            for (ptrdiff_t l = 0; l < x->n; l++) {
                out[i] += b[l] / mass * x->x[l][i];
            }
        }
    }
}
