/* MREF: what is kept of pairs of senders: averages of the products of what changed in their residuals, in three bands.
 *
 *   d_1 = y - E_1,  d_2 = E_1 - E_2,  d_3 = E_2 - E_3;   G_j += min(1, e_j / met) (<d_jl, d_jk> - G_j)
 *
 * Differences of averages: what a sender is for good drops out. met counts the rounds in which both were heard, up to twice the longest window. */
#include "agg/rules/mref/mref.h"
#include "agg/senders.h"

#include <math.h>

/* e_j: half to a quarter of the time in which a band forgets. The first is looked at in every round, because liars would know which are not. */
static const int64_t every[RFI_MREF_BANDS] = {1, 4, 16};

static inline double product(const double *x, const double *y, ptrdiff_t count)
{
    double part[4] = {0, 0, 0, 0};
    ptrdiff_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int k = 0; k < 4; k++) {
            part[k] += x[i + k] * y[i + k];
        }
    }
    for (; i < count; i++) {
        part[i % 4] += x[i] * y[i];
    }
    return (part[0] + part[2]) + (part[1] + part[3]);
}

double rfi_mref_product(const double *x, const double *y, ptrdiff_t count)
{
    return product(x, y, count);
}

/* d_j of the senders present, into view->average; their averages have been moved. */
static void find_band(const reef_recall *recall, const rfi_mref_view *view, int band)
{
    double *slower = view->line;
    for (ptrdiff_t l = 0; l < view->n; l++) {
        double *d = view->average + l * view->numbers;
        const double *residual = view->residual + l * view->numbers;
        reef_recall_read(recall, l, band, slower);
        if (band > 0) {
            reef_recall_read(recall, l, band - 1, d);
        }
        for (ptrdiff_t i = 0; i < view->numbers; i++) {
            d[i] = (band > 0 ? d[i] : view->clip[l] * residual[i]) - slower[i];
        }
    }
}

/* One more round together; a sender that came back late has lost a part of its age, and so has the pair. */
static void count_meeting(float *pair, int64_t age, int64_t other_age, int64_t most)
{
    int64_t known = (age < other_age ? age : other_age) - 1;
    known = known < most - 1 ? known : most - 1;
    float met = pair[RFI_MREF_MET];
    pair[RFI_MREF_MET] = (met < (float)known ? met : (float)known) + 1;
}

/* All pairs of row l with rows up to it. */
static void move_row(const rfi_senders *s, const ptrdiff_t *place, const rfi_mref_view *view, int band, ptrdiff_t l)
{
    int64_t most = 2 * view->window[RFI_WINDOWS - 1];
    ptrdiff_t first = place[l] - place[l] % RFI_MREF_BLOCK; /* of the block */
    const double *d = view->average + l * view->numbers;
    float *corner = place[l] < s->sizes.pair_places ? rfi_senders_pair(s, first, first) : NULL;
    for (ptrdiff_t k = 0; corner && k <= l; k++) {
        ptrdiff_t one = place[l] - first;
        ptrdiff_t other = place[k] - first;
        if (other < 0 || other >= RFI_MREF_BLOCK) {
            continue;
        }
        ptrdiff_t high = one > other ? one : other;
        ptrdiff_t low = one > other ? other : one;
        float *pair = corner + (high * (high + 1) / 2 + low) * RFI_MREF_PAIR_NUMBERS;
        double old = (double)pair[band];
        double now = product(d, view->average + k * view->numbers, view->numbers);
        if (band == 0) {
            count_meeting(pair, view->age[l], view->age[k], most);
        }
        double met = (double)pair[RFI_MREF_MET];
        double rate = met > (double)every[band] ? (double)every[band] / met : 1;
        /* only averages that somebody has forged in a saved state have larger products; without the bound it could not be loaded again */
        now = fmax(fmin(now, RFI_MREF_LARGEST), -RFI_MREF_LARGEST);
        pair[band] = (float)(old + rate * (now - old));
    }
}

void rfi_mref_move_pairs(const reef_recall *recall, const rfi_mref_view *view)
{
    for (int band = 0; band < RFI_MREF_BANDS; band++) {
        if (view->rounds % every[band] != 0) {
            continue;
        }
        find_band(recall, view, band);
        for (ptrdiff_t l = 0; l < view->n; l++) {
            move_row(recall->memory, recall->place, view, band, l);
        }
    }
}
