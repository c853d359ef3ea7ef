/* MREF: where the averages of honest senders are.
 *
 *   medoid i = argmin_i median_l ||E_l - E_i||;  centre = mean of the half nearest to it
 *
 * A coordinatewise median would be pulled by colluders in every coordinate; the medoid is one of the senders, and for a minority of liars
 * an honest one. Among many senders the medoid is looked for in a sample. */
#include "agg/rules/mref/mref.h"
#include "num/order.h"

#include <math.h>
#include <string.h>

/* Place i of the sample of `size` among n rows. */
static ptrdiff_t sampled(ptrdiff_t i, ptrdiff_t n, ptrdiff_t size)
{
    return i * n / size;
}

static ptrdiff_t sample_size(const rfi_mref_view *recall)
{
    return recall->n < RFI_MREF_SAMPLE ? recall->n : RFI_MREF_SAMPLE;
}

void rfi_mref_distances(const rfi_mref_round *round)
{
    const rfi_mref_view *recall = round->recall;
    ptrdiff_t numbers = recall->numbers;
    ptrdiff_t size = sample_size(recall);
    double *distance = recall->matrix;
    double *medians = rfi_mref_work(round, RFI_MREF_ROW_MEDIANS);
    for (ptrdiff_t i = 0; i < size; i++) {
        const double *x = recall->average + sampled(i, recall->n, size) * numbers;
        distance[i * size + i] = 0;
        for (ptrdiff_t k = 0; k < i; k++) {
            const double *y = recall->average + sampled(k, recall->n, size) * numbers;
            distance[i * size + k] = distance[k * size + i] = rfi_mref_distance(x, y, numbers);
        }
    }
    for (ptrdiff_t i = 0; i < size; i++) {
        medians[i] = rfi_mref_median(distance + i * size, size, rfi_mref_work(round, 6));
    }
}

static ptrdiff_t find_medoid(const rfi_mref_round *round)
{
    const double *medians = rfi_mref_work(round, RFI_MREF_ROW_MEDIANS);
    ptrdiff_t size = sample_size(round->recall);
    ptrdiff_t best = 0;
    for (ptrdiff_t i = 1; i < size; i++) {
        best = medians[i] < medians[best] ? i : best;
    }
    return sampled(best, round->n, size);
}

/* Mean of the rows within the median distance of row i. */
static void average_half(const rfi_mref_view *recall, ptrdiff_t i, double *distance, double *spare, double *centre)
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

static void coordinate_median(const rfi_mref_view *recall, double *spare, double *centre)
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
    const rfi_mref_view *recall = round->recall;
    double *distance = rfi_mref_work(round, 5);
    double *spare = rfi_mref_work(round, 6);
    if (round->own) {
        memcpy(centre, recall->average + recall->self * recall->numbers, (size_t)recall->numbers * sizeof *centre);
    } else if (round->params->without == RFI_MREF_MEDOID) {
        coordinate_median(recall, spare, centre);
    } else {
        average_half(recall, find_medoid(round), distance, spare, centre);
    }
}
