/* Affine combinations of points in Gram space. */
#include "agg/rules/gramspace.h"

#include <math.h>

static void add_column(double *restrict product, const double *restrict column, double weight, ptrdiff_t count)
{
    ptrdiff_t p = 0;
    for (; p + 8 <= count; p += 8) { /* an even number at a time, which compilers turn into vectors */
        for (int i = 0; i < 8; i++) {
            product[p + i] += column[p + i] * weight;
        }
    }
    for (; p < count; p++) {
        product[p] += column[p] * weight;
    }
}

/* Column by column, so that the sums of all points run side by side; each is still added up in the order of the points. */
double rfi_gram_product(const reef_points *points, const double *w, double *product)
{
    ptrdiff_t count = points->count;
    double square = 0;
    for (ptrdiff_t p = 0; p < count; p++) {
        product[p] = 0;
    }
    for (ptrdiff_t q = 0; q < count; q++) {
        const double *column = points->gram + q * count; /* or row: the matrix is symmetric */
        /* entries of far points are undefined; a coefficient 0 must not touch them */
        if (w[q] != 0) {
            add_column(product, column, w[q], count);
        }
    }
    for (ptrdiff_t p = 0; p < count; p++) {
        if (w[p] != 0) {
            square += w[p] * product[p];
        }
    }
    return square;
}

void rfi_gram_distances(const reef_points *points, const double *w, double *product, double *distance)
{
    rfi_gram_spread(points, product, rfi_gram_product(points, w, product), distance);
}

void rfi_gram_spread(const reef_points *points, const double *product, double square, double *distance)
{
    for (ptrdiff_t l = 0; l < points->n; l++) {
        double squared = points->gram[l * points->count + l] - 2 * product[l] + square;
        distance[l] = points->far[l] ? (double)INFINITY : sqrt(squared > 0 ? squared : 0);
    }
}

double rfi_gram_step(const reef_points *points, const double *v, const double *w, double *spare)
{
    double *difference = spare;
    for (ptrdiff_t p = 0; p < points->count; p++) {
        difference[p] = v[p] - w[p];
    }
    double squared = rfi_gram_product(points, difference, spare + points->count);
    return sqrt(squared > 0 ? squared : 0);
}
