/* MREF: what is kept of pairs of senders: averages of the products of what changed in their residuals, in three bands.
 *
 *   d_1 = y - E_1,  d_2 = E_1 - E_2,  d_3 = E_2 - E_3;   G_j += min(1, e_j / met) (<d_jl, d_jk> - G_j)
 *
 * Differences of averages: what a sender is for good drops out. met counts the rounds in which both were heard, up to twice the longest window. */
#include "agg/rules/mref/mref.h"
#include "agg/senders.h"

#include <math.h>

/* e_j: half to a quarter of the time in which a band forgets. The first is looked at in every round, because liars would know which are not. */
static const double every[RFI_MREF_BANDS] = {1, 4, 16};

/* d_j of the senders present, into view->average; their averages have been moved. */
static void find_band(const reef_recall *recall, const rfi_mref_view *view, int band)
{
    double *slower = view->line;
    for (ptrdiff_t l = 0; l < view->n; l++) {
        double *d = rfi_mref_average(view, l);
        const double *residual = view->residual + l * view->numbers;
        reef_recall_read(recall, l, band, slower);
        if (band > 0) {
            reef_recall_read(recall, l, band - 1, d);
        }
        for (ptrdiff_t i = 0; i < view->numbers; i++) {
            d[i] = (band > 0 ? d[i] : view->clip[l] * residual[i]) - slower[i];
        }
        for (ptrdiff_t i = view->numbers; i < view->width; i++) {
            d[i] = 0;
        }
    }
}

/* Rounds before this one that each sender can have met others in. One that came back late has lost a part of its age, and so have its pairs. */
static void find_seen(const rfi_mref_view *view)
{
    float *seen = (float *)(void *)view->work;
    int64_t most = 2 * view->window[RFI_WINDOWS - 1];
    for (ptrdiff_t l = 0; l < view->n; l++) {
        seen[l] = (float)((view->age[l] < most ? view->age[l] : most) - 1);
    }
}

/* Only averages that somebody has forged in a saved state have larger products; without the bound it could not be loaded again. */
static inline double clip(double x)
{
    x = x < RFI_MREF_LARGEST ? x : RFI_MREF_LARGEST;
    return x > -RFI_MREF_LARGEST ? x : -RFI_MREF_LARGEST;
}

/* Pairs of the place `one` of a block with all lower ones. */
static inline float *row_of(float *corner, ptrdiff_t one)
{
    return corner + one * (one + 1) / 2 * RFI_MREF_PAIR_NUMBERS;
}

/* All pairs of row l with rows up to it. */
static void move_row(const rfi_senders *s, const ptrdiff_t *place, const rfi_mref_view *view, int band, ptrdiff_t l)
{
    ptrdiff_t one = place[l] % RFI_MREF_BLOCK;
    ptrdiff_t first = place[l] - one; /* of the block */
    const float *seen = (const float *)(const void *)view->work;
    const double *d = rfi_mref_average(view, l);
    float *corner = place[l] < s->sizes.pair_places ? rfi_senders_pair(s, first, first) : NULL;
    for (ptrdiff_t k = 0; corner && k <= l; k++) {
        ptrdiff_t other = place[k] - first;
        if (other < 0 || other >= RFI_MREF_BLOCK) {
            continue;
        }
        float *pair = other <= one ? row_of(corner, one) + other * RFI_MREF_PAIR_NUMBERS
                                   : row_of(corner, other) + one * RFI_MREF_PAIR_NUMBERS;
        double now = clip(rfi_mref_product(d, rfi_mref_average(view, k), view->width));
        float met = pair[RFI_MREF_MET];
        if (band == 0) { /* one more round together */
            float known = seen[l] < seen[k] ? seen[l] : seen[k];
            met = (met < known ? met : known) + 1;
            pair[RFI_MREF_MET] = met;
        }
        double old = (double)pair[band];
        double rounds = (double)met > every[band] ? (double)met : every[band];
        pair[band] = (float)(old + every[band] / rounds * (now - old));
    }
}

void rfi_mref_move_pairs(const reef_recall *recall, const rfi_mref_view *view)
{
    find_seen(view);
    for (int band = 0; band < RFI_MREF_BANDS; band++) {
        if (view->rounds % (int64_t)every[band] != 0) {
            continue;
        }
        find_band(recall, view, band);
        for (ptrdiff_t l = 0; l < view->n; l++) {
            move_row(recall->memory, recall->place, view, band, l);
        }
    }
}
