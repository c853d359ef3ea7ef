/* MREF: where the averages of honest senders are.
 *
 *   medoid i = argmin_i median_l ||E_l - E_i||;  centre = mean of the half nearest to it
 *
 * A coordinatewise median would be pulled by colluders in every coordinate; the medoid is one of the senders, and for a minority of liars
 * an honest one. Among many senders the medoid is looked for in a sample. */
#include "agg/mref.h"
#include "num/order.h"

#include <math.h>
#include <string.h>

/* Place i of the sample of `size` among n rows. */
static ptrdiff_t sampled(ptrdiff_t i, ptrdiff_t n, ptrdiff_t size)
{
    return i * n / size;
}

static void fill_distances(const rfi_recall *recall, ptrdiff_t size, double *distance)
{
    ptrdiff_t numbers = recall->numbers;
    for (ptrdiff_t i = 0; i < size; i++) {
        const double *x = recall->average + sampled(i, recall->n, size) * numbers;
        distance[i * size + i] = 0;
        for (ptrdiff_t k = 0; k < i; k++) {
            const double *y = recall->average + sampled(k, recall->n, size) * numbers;
            distance[i * size + k] = distance[k * size + i] = rfi_mref_distance(x, y, numbers);
        }
    }
}

static ptrdiff_t find_medoid(const rfi_recall *recall, double *spare)
{
    ptrdiff_t size = recall->n < RFI_RECALL_SAMPLE ? recall->n : RFI_RECALL_SAMPLE;
    ptrdiff_t best = 0;
    double least = INFINITY;
    fill_distances(recall, size, recall->matrix);
    for (ptrdiff_t i = 0; i < size; i++) {
        double middle = rfi_mref_median(recall->matrix + i * size, size, spare);
        best = middle < least ? i : best;
        least = fmin(middle, least);
    }
    return sampled(best, recall->n, size);
}

/* Mean of the rows within the median distance of row i. */
static void average_half(const rfi_recall *recall, ptrdiff_t i, double *distance, double *spare, double *centre)
{
    ptrdiff_t numbers = recall->numbers;
    double count = 0;
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        distance[l] = rfi_mref_distance(recall->average + l * numbers, recall->average + i * numbers, numbers);
    }
    double middle = rfi_mref_median(distance, recall->n, spare);
    memset(centre, 0, (size_t)numbers * sizeof *centre);
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        const double *x = recall->average + l * numbers;
        count += distance[l] <= middle;
        for (ptrdiff_t m = 0; distance[l] <= middle && m < numbers; m++) {
            centre[m] += x[m];
        }
    }
    for (ptrdiff_t m = 0; m < numbers; m++) {
        centre[m] /= count;
    }
}

static void coordinate_median(const rfi_recall *recall, double *spare, double *centre)
{
    for (ptrdiff_t m = 0; m < recall->numbers; m++) {
        for (ptrdiff_t l = 0; l < recall->n; l++) {
            spare[l] = recall->average[l * recall->numbers + m];
        }
        centre[m] = rfi_median(spare, recall->n, RFI_MEDIAN_AVERAGE);
    }
}

void rfi_mref_centre(const rfi_mref_round *round, double *centre)
{
    const rfi_recall *recall = round->recall;
    double *distance = recall->work + 5 * round->n; /* beside what mref_window.c has there */
    double *spare = recall->work + 6 * round->n;
    if (round->own) {
        memcpy(centre, recall->average + recall->self * recall->numbers, (size_t)recall->numbers * sizeof *centre);
    } else if (round->params->without == RFI_MREF_MEDOID) {
        coordinate_median(recall, spare, centre);
    } else {
        average_half(recall, find_medoid(recall, spare), distance, spare, centre);
    }
}
