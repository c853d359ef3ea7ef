/* MREF: colluders share a direction. Two groups along the first principal axis of the averages accepted so far, cut where that leaves
 * the least variance; if they are far apart, the smaller one goes; copies count as one.
 *
 *   I = |mean_1 - mean_2| / pooled deviation;   the smaller group gets flat(I; u, 1.3 u)
 *   u = 5 + 25 / n;   3 + 35 / n where honest agents differ for good (H = 1); between for H between;   16 / t times that for a typical age t < 16
 *
 * The axis is the first eigenvector of the smaller of two Gram matrices (senders or numbers); among many senders of that of a sample of them. */
#include "agg/rules/mref/mref.h"
#include "num/order.h"

#include <math.h>
#include <string.h>

/* The senders accepted so far. */
typedef struct group {
    const rfi_mref_view *recall;
    ptrdiff_t *who; /* count */
    ptrdiff_t count;
    double *mean, *axis; /* D each */
    double *along;       /* count: projections */
} group;

static double dot(const double *x, const double *y, ptrdiff_t count)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

static void find_mean(const group *g)
{
    ptrdiff_t numbers = g->recall->numbers;
    memset(g->mean, 0, (size_t)numbers * sizeof *g->mean);
    for (ptrdiff_t k = 0; k < g->count; k++) {
        const double *x = rfi_mref_average(g->recall, g->who[k]);
        for (ptrdiff_t i = 0; i < numbers; i++) {
            g->mean[i] += x[i] / (double)g->count;
        }
    }
}

/* axis = centred average of member k, as a place to put it. */
static const double *centred(const group *g, ptrdiff_t k)
{
    ptrdiff_t numbers = g->recall->numbers;
    const double *x = rfi_mref_average(g->recall, g->who[k]);
    for (ptrdiff_t i = 0; i < numbers; i++) {
        g->axis[i] = x[i] - g->mean[i];
    }
    return g->axis;
}

/* Gram matrix of the numbers: D x D. */
static void gram_of_numbers(const group *g, ptrdiff_t size, double *gram)
{
    ptrdiff_t numbers = g->recall->numbers;
    memset(gram, 0, (size_t)(numbers * numbers) * sizeof *gram);
    for (ptrdiff_t k = 0; k < size; k++) {
        const double *x = centred(g, k * g->count / size);
        for (ptrdiff_t i = 0; i < numbers; i++) {
            for (ptrdiff_t m = 0; m < numbers; m++) {
                gram[i * numbers + m] += x[i] * x[m];
            }
        }
    }
}

/* Gram matrix of the members: size x size. */
static void gram_of_members(const group *g, ptrdiff_t size, double *gram)
{
    ptrdiff_t numbers = g->recall->numbers;
    for (ptrdiff_t k = 0; k < size; k++) {
        const double *x = centred(g, k * g->count / size);
        double from_mean = dot(x, g->mean, numbers);
        for (ptrdiff_t m = 0; m <= k; m++) {
            const double *y = rfi_mref_average(g->recall, g->who[m * g->count / size]);
            gram[k * size + m] = gram[m * size + k] = dot(x, y, numbers) - from_mean;
        }
    }
}

/* axis = first principal axis of the members; false if they are all the same. */
static bool find_axis(const group *g)
{
    const rfi_mref_view *recall = g->recall;
    ptrdiff_t numbers = recall->numbers;
    ptrdiff_t sample = g->count < RFI_MREF_SAMPLE ? g->count : RFI_MREF_SAMPLE;
    bool by_numbers = numbers <= sample;
    ptrdiff_t size = by_numbers ? numbers : sample;
    double *gram = recall->matrix;
    if (by_numbers) {
        gram_of_numbers(g, g->count, gram);
    } else {
        gram_of_members(g, sample, gram);
    }
    double *vector = by_numbers ? g->axis : g->along;
    if (!(rfi_mref_first_vector(gram, size, RFI_MREF_SPLIT_STEPS, vector, gram + size * size) > 0)) {
        return false;
    }
    if (by_numbers) {
        return true;
    }
    double *axis = recall->line + 2 * recall->width;
    memset(axis, 0, (size_t)numbers * sizeof *axis);
    for (ptrdiff_t k = 0; k < sample; k++) {
        const double *x = centred(g, k * g->count / sample);
        for (ptrdiff_t i = 0; i < numbers; i++) {
            axis[i] += vector[k] * x[i];
        }
    }
    memcpy(g->axis, axis, (size_t)numbers * sizeof *axis);
    return true;
}

static void project(const group *g)
{
    ptrdiff_t numbers = g->recall->numbers;
    double from_mean = dot(g->mean, g->axis, numbers);
    for (ptrdiff_t k = 0; k < g->count; k++) {
        g->along[k] = dot(rfi_mref_average(g->recall, g->who[k]), g->axis, numbers) - from_mean;
    }
}

double rfi_mref_best_cut(const double *along, ptrdiff_t n, const ptrdiff_t *order, ptrdiff_t *cut)
{
    double total = 0;
    double squares = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        total += along[k];
        squares += along[k] * along[k];
    }
    double least = INFINITY;
    double apart = 0;
    double sum = along[order[0]];
    *cut = 0;
    for (ptrdiff_t k = RFI_MREF_SPLIT_GROUP; k <= n - RFI_MREF_SPLIT_GROUP; k++) {
        sum += along[order[k - 1]];
        double rest = total - sum;
        double within = squares - sum * sum / (double)k - rest * rest / (double)(n - k);
        if (within < least) {
            least = within;
            *cut = k;
            apart = rest / (double)(n - k) - sum / (double)k;
        }
    }
    return apart / sqrt(fmax(least, 1e-30 * squares) / (double)(n - 2));
}

/* Members: accepted by all so far, and not too young to tell. */
static void list_members(group *g, const double *beta, const double *noise, const double *split)
{
    g->count = 0;
    for (ptrdiff_t l = 0; l < g->recall->n; l++) {
        if (fmin(beta[l], split[l]) > RFI_MREF_SPLIT_ACCEPTED && noise[l] <= RFI_MREF_SPLIT_NOISE) {
            g->who[g->count++] = l;
        }
    }
}

/* u */
static double bound_of(const rfi_mref_tolerance *tolerance, double spread, ptrdiff_t count)
{
    double n = (double)count;
    return (1 - spread) * (RFI_MREF_SPLIT_APART + RFI_MREF_SPLIT_APART_FEW / n) +
           spread * (tolerance->apart + tolerance->apart_few / n);
}

/* Votes of the members from number `first` to number `end`: senders with one voice together have one. */
static double votes_of(const group *g, const ptrdiff_t *order, ptrdiff_t first, ptrdiff_t end)
{
    double votes = 0;
    for (ptrdiff_t k = first; k < end; k++) {
        votes += g->recall->traces[g->who[order[k]]].voice;
    }
    return votes;
}

/* Lowers the group with fewer votes; returns its weight, 1 if nothing was cut. */
static double cut_group(const group *g, const ptrdiff_t *order, ptrdiff_t cut, double apart, double bound,
                        double *split)
{
    double more = votes_of(g, order, 0, cut) - votes_of(g, order, cut, g->count);
    if (fabs(more) < 1e-9 || apart < bound) {
        return 1;
    }
    double left = rfi_mref_flat(apart, bound, RFI_MREF_SPLIT_NONE * bound);
    bool first = more < 0;
    for (ptrdiff_t k = first ? 0 : cut; k < (first ? cut : g->count); k++) {
        ptrdiff_t l = g->who[order[k]];
        split[l] = fmin(split[l], left);
    }
    return left;
}

double rfi_mref_split(const rfi_mref_round *round, double spread, const double *beta, const double *noise,
                      double *split)
{
    const rfi_mref_view *recall = round->recall;
    group g = {.recall = recall,
               .who = recall->index,
               .mean = recall->line,
               .axis = recall->line + recall->width,
               .along = rfi_mref_work(round, 5)};
    ptrdiff_t *order = recall->index + round->n;
    double largest = 0;
    for (int i = 0; i < RFI_MREF_SPLIT_CUTS; i++) {
        ptrdiff_t cut = 0;
        list_members(&g, beta, noise, split);
        if (g.count < RFI_MREF_SPLIT_ROWS) {
            break;
        }
        find_mean(&g);
        if (!find_axis(&g)) {
            break;
        }
        project(&g);
        rfi_argsort(g.along, g.count, order, order + round->n);
        double apart = rfi_mref_best_cut(g.along, g.count, order, &cut);
        largest = fmax(largest, apart);
        double bound =
            bound_of(round->tolerance, spread, g.count) * fmax(1, round->tolerance->young / (double)round->age);
        if (cut_group(&g, order, cut, apart, bound, split) > RFI_MREF_SPLIT_ACCEPTED) {
            break;
        }
    }
    return largest;
}
