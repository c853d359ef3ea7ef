/* A value with more than half of the weight survives when different values cancel each other pair by pair (Boyer and Moore): one pass
 * over the rows finds the only candidate, and a second one counts its weight. */
#include "num/vote.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Weights below two to this may be summed, as many as there are rows. */
enum { LARGE = 900 };

double rfi_vote_scale(double *weights, ptrdiff_t rows)
{
    double most = 0;
    double total = 0;
    int exponent = 0;
    for (ptrdiff_t l = 0; l < rows; l++) {
        assert(isfinite(weights[l]) && weights[l] >= 0);
        most = fmax(most, weights[l]);
    }
    (void)frexp(most, &exponent);
    for (ptrdiff_t l = 0; l < rows; l++) {
        weights[l] = exponent > LARGE ? ldexp(weights[l], -exponent) : weights[l];
        total += weights[l];
    }
    return total;
}

static const unsigned char *ballot(const rfi_vote *vote, ptrdiff_t row, ptrdiff_t i)
{
    return (const unsigned char *)vote->ballots[row] + (size_t)i * vote->width;
}

static bool same(const rfi_vote *vote, ptrdiff_t one, ptrdiff_t other, ptrdiff_t i)
{
    return memcmp(ballot(vote, one, i), ballot(vote, other, i), vote->width) == 0;
}

/* The row whose value has a majority at element i, or -1. *agreed: all rows have it. */
static ptrdiff_t elect(const rfi_vote *vote, ptrdiff_t i, bool *agreed)
{
    ptrdiff_t candidate = -1;
    double lead = 0;
    double weight = 0;
    *agreed = true;
    for (ptrdiff_t l = 0; l < vote->rows; l++) {
        if (!vote->ballots[l]) {
            continue;
        }
        bool agrees = candidate >= 0 && same(vote, l, candidate, i);
        *agreed = *agreed && (agrees || candidate < 0);
        lead += agrees ? vote->weights[l] : -vote->weights[l];
        if (!agrees && lead < 0) {
            candidate = l;
            lead = -lead;
        }
    }
    for (ptrdiff_t l = 0; !*agreed && l < vote->rows; l++) {
        weight += vote->ballots[l] && same(vote, l, candidate, i) ? vote->weights[l] : 0;
    }
    return *agreed || 2 * weight > vote->total ? candidate : -1;
}

rfi_turnout rfi_vote_decide(const rfi_vote *vote, ptrdiff_t count, void *out)
{
    assert(count >= 0 && vote->rows >= 1 && vote->arbiter >= 0 && vote->arbiter < vote->rows);
    rfi_turnout turnout = {0};
    for (ptrdiff_t i = 0; i < count; i++) {
        bool agreed = true;
        ptrdiff_t row = elect(vote, i, &agreed);
        turnout.disputed += !agreed;
        turnout.undecided += row < 0 && !vote->arbiter_decides;
        row = row < 0 || vote->arbiter_decides ? vote->arbiter : row;
        memcpy((unsigned char *)out + (size_t)i * vote->width, ballot(vote, row, i), vote->width);
    }
    return turnout;
}

bool rfi_vote_prefers(double trust, double weight, double other_trust, double other_weight)
{
    return trust > other_trust || (trust == other_trust && weight > other_weight);
}
