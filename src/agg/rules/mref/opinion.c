/* MREF: a second opinion. Where honest senders differ for good (H = 1), distance is no guilt, and colluders who flip their labels are not told apart: all
 * have their weight, the model follows both, and honest gradients stay as long as the others. It is an equilibrium, and there is a better one:
 * without the colluders honest gradients become short, and then the windows see who is far away. So when learning has stalled, the rule tries what distances
 * now say, o_l = flat(q_l; 0, 1.5), as one more factor, and looks whether that makes senders agree more:
 *
 *   kept = mean of o_l q_l^2 / sum o / mean of q_l^2,  q at most 4:  the disagreement among those who are left
 *
 * If o only leaves out honest senders who differ, kept stays what it is, and the trial ends after two looks. If it leads to the better equilibrium,
 * kept falls from look to look, and when it falls no more the windows have what they need. A look is a quarter of the longest window.
 * Liars who go farther and farther away let kept fall, too. But they cannot make those near the median agree: their own disagreement,
 * near = s^2 mean of o_l q_l^2 / sum o, has to fall as fast.
 *
 * Servers ask, agents do not: two-faced senders pull agents into two camps, and leaving out who is far away would drive these apart for good. */
#include "agg/rules/mref/mref.h"

#include <math.h>

enum { SHORTEST_LOOK = 8 };

/* Mean square distances from the median, q at most 4. */
typedef struct disagreement {
    double near; /* weighted by the opinion, in squared scales */
    double kept; /* over the unweighted one */
} disagreement;

/* Fills the factors of this round; returns what they leave of the disagreement. */
static disagreement find_opinion(const rfi_mref_round *round, bool counts)
{
    const rfi_mref_view *view = round->recall;
    double weight = 0;
    double left = 0;
    double all = 0;
    for (ptrdiff_t l = 0; l < round->n; l++) {
        double opinion = rfi_mref_flat(round->q[l], 0, RFI_MREF_OPINION_NONE);
        double q = fmin(round->q[l], RFI_MREF_OPINION_FAR);
        weight += opinion;
        left += opinion * q * q;
        all += q * q;
        view->by_opinion[l] = counts ? opinion : 1;
        view->weight[l] *= view->by_opinion[l];
    }
    double near = left / weight; /* half of the senders have q <= 1, and half q >= 1 */
    return (disagreement){.near = near, .kept = near / (all / (double)round->n)};
}

static bool honest_differ(const rfi_mref_view *view)
{
    bool differ = false;
    for (int j = 0; j < RFI_WINDOWS; j++) {
        differ = differ || view->spread[j] >= RFI_MREF_OPINION_SPREAD;
    }
    return differ;
}

/* Did those near the median agree more in this look than in the last one, among themselves and relative to all? */
static bool gains(const rfi_mref_shared *s, double level, disagreement now)
{
    double most = s->trial <= RFI_MREF_OPINION_LEAST ? 1 : RFI_MREF_OPINION_GAIN;
    return now.kept <= most * s->kept_last && now.near <= most * s->near_last * exp(2 * (s->level_last - level));
}

/* At the end of a look: does the opinion count in the next one? */
static void decide(const rfi_mref_view *view, double level, disagreement now)
{
    rfi_mref_shared *s = view->shared;
    if (s->trial > 0) {
        s->trial++;
        if (!gains(s, level, now) || s->trial > RFI_MREF_OPINION_MOST) {
            s->trial = 0;
            s->pause =
                view->rounds < INT64_MAX / RFI_MREF_OPINION_PAUSE ? RFI_MREF_OPINION_PAUSE * view->rounds : INT64_MAX;
        }
        return;
    }
    bool stalled = s->looks > 2 && level > s->level_before + log(RFI_MREF_OPINION_STALLED);
    if (stalled && view->rounds >= s->pause && honest_differ(view)) {
        s->trial = 1;
    }
}

static void end_look(const rfi_mref_view *view)
{
    rfi_mref_shared *s = view->shared;
    double rounds = (double)s->rounds;
    double level = s->level_sum / rounds;
    disagreement now = {.near = s->near_sum / rounds, .kept = s->kept_sum / rounds};
    s->looks++;
    decide(view, level, now);
    s->level_before = s->level_last;
    s->level_last = level;
    s->near_last = now.near;
    s->kept_last = now.kept;
    s->level_sum = s->near_sum = s->kept_sum = 0;
    s->rounds = 0;
}

void rfi_mref_ask_again(const rfi_mref_round *round, double scale)
{
    const rfi_mref_view *view = round->recall;
    rfi_mref_shared *s = view->shared;
    int64_t part = view->window[RFI_WINDOWS - 1] / RFI_MREF_OPINION_LOOKS;
    bool used = view->self < 0 && !rfi_mref_left_out(round->params, RFI_MREF_OPINION);
    disagreement now = find_opinion(round, used && s->trial > 0);
    if (!used) {
        return;
    }
    s->level_sum += log(scale);
    s->near_sum += now.near;
    s->kept_sum += now.kept;
    s->rounds++;
    if (s->rounds >= (part > SHORTEST_LOOK ? part : SHORTEST_LOOK)) {
        end_look(view);
    }
}
