/* Affine combinations of points in Gram space. */
#include "agg/gramspace.h"

#include <math.h>

double rfi_gram_product(const reef_points *points, const double *w, double *product)
{
    ptrdiff_t count = points->count;
    double square = 0;
    for (ptrdiff_t p = 0; p < count; p++) {
        product[p] = 0;
        for (ptrdiff_t q = 0; q < count; q++) {
            /* entries of far points are undefined; a coefficient 0 must not touch them */
            if (w[q] != 0) {
                product[p] += points->gram[p * count + q] * w[q];
            }
        }
        if (w[p] != 0) {
            square += w[p] * product[p];
        }
    }
    return square;
}

void rfi_gram_distances(const reef_points *points, const double *w, double *product, double *distance)
{
    double square = rfi_gram_product(points, w, product);
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
