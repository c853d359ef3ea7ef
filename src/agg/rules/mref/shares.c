/* MREF: what bounds a sender's share of the result, whatever it did before.
 *
 *   probation  a newcomer's weight grows with its age, and is full at the age of a typical sender or of the longest window;
 *   balance    if less than half of the gate's weight is left, weights rise towards the gate's by a common factor until half is: nobody more than
 *              doubles its share of it, and those who are believed most rise first;
 *   absence    who was away for longer than is usual comes back with as much of its age as its memory is still worth;
 *   presence   a sender has as many votes as rounds it was heard in, fading over two longest windows: whoever rotates many ids has no more votes
 *              than the rows it sends. */
#include "agg/rules/mref/mref.h"
#include "num/order.h"

#include <math.h>

bool rfi_mref_left_out(const rfi_mref_params *params, rfi_mref_part part)
{
    return params->without == (int)part || params->without == RFI_MREF_ADDITIONS;
}

void rfi_mref_put_on_probation(const rfi_mref_round *round)
{
    const rfi_mref_view *view = round->recall;
    int64_t longest = view->window[RFI_WINDOWS - 1];
    double full = (double)(round->age < longest ? round->age : longest);
    bool used = !rfi_mref_left_out(round->params, RFI_MREF_PROBATION);
    for (ptrdiff_t l = 0; l < round->n; l++) {
        view->by_age[l] = used ? fmin(1, (double)view->age[l] / full) : 1;
        view->weight[l] *= view->by_age[l];
    }
}

/* A weight of b, of g by the gate, raised by the factor c: at c = 1 it is b, and it is g in the end. Those who have nothing rise slowly. */
static double raised(double b, double g, double c)
{
    return fmin(g, c * b + (c - 1) * RFI_MREF_BALANCE_LEAST * g);
}

/* Weight of all at the factor c, and how fast it grows there. */
static double held_at(const rfi_mref_view *view, const double *a, double c, double *slope)
{
    double held = 0;
    *slope = 0;
    for (ptrdiff_t l = 0; l < view->n; l++) {
        double b = view->weight[l];
        double g = view->gate[l];
        double now = raised(b, g, c);
        held += a[l] * now;
        *slope += now < g ? a[l] * (b + RFI_MREF_BALANCE_LEAST * g) : 0;
    }
    return held;
}

double rfi_mref_balance(const rfi_mref_round *round, const double *a)
{
    const rfi_mref_view *view = round->recall;
    double c = 1;
    double slope = 0;
    double half = 0;
    for (ptrdiff_t l = 0; l < round->n; l++) {
        half += a[l] * view->gate[l] / 2;
    }
    if (rfi_mref_left_out(round->params, RFI_MREF_BALANCE) || !(held_at(view, a, c, &slope) < half)) {
        return c;
    }
    for (ptrdiff_t i = 0; i <= round->n;
         i++) { /* Newton's steps: piece by piece from below, at most one for each sender that reaches its gate's */
        double missing = half - held_at(view, a, c, &slope);
        if (!(missing > 0 && slope > 0)) {
            break;
        }
        c += missing / slope;
    }
    for (ptrdiff_t l = 0; l < round->n; l++) {
        view->weight[l] = raised(view->weight[l], view->gate[l], c);
    }
    return c;
}

void rfi_mref_discount_absence(const reef_recall *recall, const rfi_mref_view *view)
{
    double *gaps = view->work;
    ptrdiff_t known = 0;
    for (ptrdiff_t l = 0; l < view->n; l++) {
        if (recall->heard[l] > 0) {
            gaps[known++] = (double)(view->rounds - recall->heard[l]);
        }
    }
    double usual = known > 0 ? rfi_median(gaps, known, RFI_MEDIAN_LOWER) : 1;
    for (ptrdiff_t l = 0; l < view->n; l++) {
        double missed = recall->heard[l] > 0 ? (double)(view->rounds - recall->heard[l]) / usual - 1 : 0;
        if (missed > RFI_MREF_SHORTEST) {
            double left = (double)(recall->age[l] - 1) * exp2(-missed / (double)view->window[RFI_WINDOWS - 1]);
            recall->age[l] = (left > 1 ? (int64_t)left : 1) + 1;
            for (int j = 0; j < RFI_WINDOWS; j++) {
                int64_t *judged = &view->traces[l].judged[j];
                *judged = *judged < recall->age[l] - 1 ? *judged : recall->age[l] - 1;
            }
        }
    }
}

double rfi_mref_faded(const rfi_mref_view *view, double presence, int64_t gap)
{
    double left = 1 - 0.5 / (double)view->window[RFI_WINDOWS - 1];
    return presence * (gap == 1 ? left : pow(left, (double)gap));
}

void rfi_mref_count_presence(const reef_recall *recall, const rfi_mref_view *view)
{
    double one = 0.5 / (double)view->window[RFI_WINDOWS - 1];
    for (ptrdiff_t l = 0; l < view->n; l++) {
        double *presence = &view->traces[l].presence;
        *presence = fmin(1, rfi_mref_faded(view, *presence, view->rounds - recall->heard[l]) + one);
    }
}
