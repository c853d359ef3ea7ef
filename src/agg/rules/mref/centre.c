/* MREF: where the averages of honest senders are.
 *
 *   medoid i = argmin_i median_l ||E_l - E_i||;  centre = mean of the half nearest to it
 *
 * A coordinatewise median would be pulled by colluders in every coordinate; the medoid is one of the senders, and for a minority of liars
 * an honest one. Among many senders the medoid is looked for in a sample. */
#include "agg/rules/mref/mref.h"
#include "num/kernels/kernels.h"
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

/* Medians of the rows of the matrix, which is symmetric: those of its columns, several at a time. */
static void find_medians(const rfi_mref_round *round, ptrdiff_t size)
{
    const rfi_mref_view *view = round->recall;
    const rfi_kernels *kernels = view->memory->kernels;
    const double *matrix = view->matrix;
    double *medians = rfi_mref_work(round, RFI_MREF_ROW_MEDIANS);
    int32_t *hard = view->sample_hard;
    ptrdiff_t left = size; /* to be done one by one */
    for (ptrdiff_t i = 0; i < size; i++) {
        view->sample_rows[i] = matrix + i * size;
        hard[i] = (int32_t)i;
    }
    if (kernels) {
        rfi_kernel_report nothing = {0};
        const rfi_span span = {.rows = view->sample_rows,
                               .n = size,
                               .count = size,
                               .out = medians,
                               .scratch = view->sample_scratch,
                               .hard = hard};
        left = kernels->median(&span, RFI_MEDIAN_AVERAGE, &nothing);
    }
    for (ptrdiff_t i = 0; i < left; i++) {
        medians[hard[i]] = rfi_mref_median(matrix + hard[i] * size, size, rfi_mref_work(round, 6));
    }
}

void rfi_mref_distances(const rfi_mref_round *round)
{
    const rfi_mref_view *recall = round->recall;
    ptrdiff_t size = sample_size(recall);
    double *distance = recall->matrix;
    for (ptrdiff_t i = 0; i < size; i++) {
        const double *x = rfi_mref_average(recall, sampled(i, recall->n, size));
        distance[i * size + i] = 0;
        for (ptrdiff_t k = 0; k < i; k++) {
            const double *y = rfi_mref_average(recall, sampled(k, recall->n, size));
            distance[i * size + k] = distance[k * size + i] = rfi_mref_distance(x, y, recall->width);
        }
    }
    find_medians(round, size);
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
    ptrdiff_t width = recall->width;
    double count = 0;
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        distance[l] = rfi_mref_distance(rfi_mref_average(recall, l), rfi_mref_average(recall, i), width);
    }
    double middle = rfi_mref_median(distance, recall->n, spare);
    memset(centre, 0, (size_t)width * sizeof *centre);
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        const double *x = rfi_mref_average(recall, l);
        count += distance[l] <= middle;
        for (ptrdiff_t m = 0; distance[l] <= middle && m < width; m++) {
            centre[m] += x[m];
        }
    }
    for (ptrdiff_t m = 0; m < width; m++) {
        centre[m] /= count;
    }
}

static void coordinate_median(const rfi_mref_view *recall, double *spare, double *centre)
{
    for (ptrdiff_t m = 0; m < recall->width; m++) {
        for (ptrdiff_t l = 0; l < recall->n; l++) {
            spare[l] = rfi_mref_average(recall, l)[m];
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
        memcpy(centre, rfi_mref_average(recall, recall->self), (size_t)recall->width * sizeof *centre);
    } else if (round->params->without == RFI_MREF_MEDOID) {
        coordinate_median(recall, spare, centre);
    } else {
        average_half(recall, find_medoid(round), distance, spare, centre);
    }
}
