/* Votes on integers and booleans: no averages, but the value of a majority.
 *
 * Values are compared as bytes, so one implementation serves every type. An element without a value that has more than half of the weight
 * goes to one row, the arbiter. */
#ifndef RFI_NUM_VOTE_H
#define RFI_NUM_VOTE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rfi_vote {
    ptrdiff_t rows;
    const void *const *ballots; /* rows: the elements of each, any alignment; NULL: it has no vote */
    const double *weights;      /* rows, > 0 for those that vote */
    double total;               /* weight of those */
    ptrdiff_t arbiter;          /* one of those */
    bool arbiter_decides;       /* everything, not only where there is no majority */
    size_t width;               /* bytes of an element */
} rfi_vote;

typedef struct rfi_turnout {
    long long disputed;  /* elements that not all rows agreed on */
    long long undecided; /* of which without a majority */
} rfi_turnout;

/* Scales weights by a power of two if their sum might overflow, and returns the sum. */
double rfi_vote_scale(double *weights, ptrdiff_t rows);
/* Decides `count` elements; `out` must not overlap a ballot. */
rfi_turnout rfi_vote_decide(const rfi_vote *vote, ptrdiff_t count, void *out);
/* Whether a row rather than another should be the arbiter: higher trust, then weight; of equals the first. */
bool rfi_vote_prefers(double trust, double weight, double other_trust, double other_weight);

#endif
