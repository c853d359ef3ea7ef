/* MREF: who sends what others send has one voice with them.
 *
 *   c_l = 1 + sum over k != l of beta_k flat(d_lk / d; u / 2, u),   d_lk = ||E_l - E_k||,   d = median_l median_k d_lk,   u = 0.3
 * (less in few dimensions).
 *
 * Independent noise never gives two senders the same average, at no window: those whose averages coincide everywhere are copies, of one
 * honest agent (mimic) or of each other (colluders who all send the same). Their information is that of one sender, so each of c senders
 * counts 1 / c. The window where they look least alike decides. Senders that are not believed make nobody a copy. */
#include "agg/rules/mref/mref.h"

#include <math.h>

static double count_copies(const rfi_mref_round *round, const double *beta, ptrdiff_t l, double bound)
{
    const double *distance = round->recall->matrix + l * round->n;
    double count = 1;
    for (ptrdiff_t k = 0; k < round->n; k++) {
        if (k != l && distance[k] < bound) { /* hardly ever */
            count += beta[k] * rfi_mref_flat(distance[k], RFI_MREF_COPY_FULL * bound, bound);
        }
    }
    return count;
}

void rfi_mref_copies(const rfi_mref_round *round, const double *beta, double *voice)
{
    int without = round->params->without;
    bool whole = round->n <= RFI_MREF_SAMPLE; /* of larger crowds only a sample was compared */
    double bound = 0;
    if (whole && without != RFI_MREF_COPIES && without != RFI_MREF_ADDITIONS) {
        double typical = rfi_mref_median(rfi_mref_work(round, RFI_MREF_ROW_MEDIANS), round->n, rfi_mref_work(round, 6));
        bound = typical * pow(RFI_MREF_COPY_NONE, fmax(1, RFI_MREF_COPY_NUMBERS / (double)round->recall->numbers));
    }
    for (ptrdiff_t l = 0; l < round->n; l++) {
        voice[l] = bound > 0 ? 1 / count_copies(round, beta, l, bound) : 1;
    }
}
