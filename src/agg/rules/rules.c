/* What several rules share. */
#include "agg/rules/rules.h"

#include "num/order.h"

#include <math.h>

ptrdiff_t rfi_bound_minority(const void *params, ptrdiff_t n)
{
    (void)params;
    return (n - 1) / 2;
}

unsigned rfi_needs_gram(const void *params)
{
    (void)params;
    return REEF_NEED_GRAM;
}

void rfi_share_kept(const reef_points *points, const bool *keep, double *share)
{
    double sum = 0;
    for (ptrdiff_t l = 0; l < points->count; l++) {
        share[l] = l < points->n && keep[l] ? points->a[l] : 0;
        sum += share[l];
    }
    for (ptrdiff_t l = 0; l < points->n; l++) {
        share[l] /= sum;
    }
}

double rfi_normalise_sum(const double *x, double *share, ptrdiff_t n)
{
    double sum = 0;
    double value = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += share[i];
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        share[i] /= sum;
        value += share[i] * x[i];
    }
    return value;
}

void rfi_share_ranks(const reef_column *column, const double *key, const ptrdiff_t *order, ptrdiff_t count,
                     ptrdiff_t first, ptrdiff_t last, double *share)
{
    for (ptrdiff_t i = 0, end = 0; i < count; i = end) {
        for (end = i; end < count && key[order[end]] == key[order[i]]; end++) {
        }
        ptrdiff_t from = i > first ? i : first;
        ptrdiff_t to = end < last ? end : last;
        double kept = to > from ? (double)(to - from) / (double)(end - i) : 0;
        for (ptrdiff_t j = i; j < end; j++) {
            share[order[j]] = kept * column->a[order[j]];
        }
    }
}

double rfi_mean_nearest(const reef_column *column, double middle, ptrdiff_t kept, double *share)
{
    ptrdiff_t n = column->n;
    double *away = column->work;
    ptrdiff_t *order = column->index;
    for (ptrdiff_t i = 0; i < n; i++) {
        away[i] = fabs(column->x[i] - middle);
    }
    rfi_argsort(away, n, order, order + n);
    rfi_share_ranks(column, away, order, n, 0, kept, share);
    return rfi_normalise_sum(column->x, share, n);
}

/* Half the mass on each end; rows that tie at an end divide it by their weights. */
double rfi_share_middle(const reef_column *column, double lower, double upper, double *share)
{
    double low_mass = 0;
    double high_mass = 0;
    for (ptrdiff_t i = 0; i < column->n; i++) {
        low_mass += column->x[i] == lower ? column->a[i] : 0;
        high_mass += column->x[i] == upper ? column->a[i] : 0;
    }
    for (ptrdiff_t i = 0; i < column->n; i++) {
        share[i] = column->x[i] == lower ? 0.5 * (column->a[i] / low_mass) : 0;
        share[i] += column->x[i] == upper ? 0.5 * (column->a[i] / high_mass) : 0;
    }
    return rfi_midpoint(lower, upper);
}

double rfi_column_median(const reef_column *column, bool by_weight, rfi_median_kind kind, double *share)
{
    ptrdiff_t n = column->n;
    ptrdiff_t *order = column->index;
    ptrdiff_t low = (n - 1) / 2;
    ptrdiff_t high = n / 2;
    rfi_argsort(column->x, n, order, order + n);
    if (by_weight && !column->equal) {
        double half_tol = column->single ? RFI_HALF_TOL_F32 : RFI_HALF_TOL_F64;
        rfi_wmedian_ranks(column->a, order, n, half_tol, &low, &high);
    }
    double lower = column->x[order[kind == RFI_MEDIAN_UPPER ? high : low]];
    double upper = column->x[order[kind == RFI_MEDIAN_LOWER ? low : high]];
    return share ? rfi_share_middle(column, lower, upper, share) : rfi_midpoint(lower, upper);
}

void rfi_shorten(const reef_points *points, ptrdiff_t l, double factor, double *matrix)
{
    double *row = matrix + l * points->count;
    row[l] = factor;
    row[points->origin] = 1 - factor;
}
