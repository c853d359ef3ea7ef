/* Krum's scores, shared by krum, multikrum and bulyan. */
#ifndef RFI_AGG_RULES_KRUM_H
#define RFI_AGG_RULES_KRUM_H

#include <reef/rule.h>

/* Blanchard's paper sums the n - f - 2 smallest squared distances to others; ByzFL takes n - f - 1. */
typedef enum rfi_krum_dialect { RFI_KRUM_PAPER, RFI_KRUM_BYZFL, RFI_KRUM_FLOWER } rfi_krum_dialect;

/* How many nearest others a score sums: at least one (as far as there are others). */
ptrdiff_t rfi_krum_neighbours(ptrdiff_t n, ptrdiff_t f, int dialect);

/* Squared distances of all rows, into the scratch of the points: for the scores. */
void rfi_krum_prepare(const reef_points *points);
/* Score of row i among the rows with in[l] true: sum of its `neighbours` smallest squared distances to others. Overwrites the first n numbers
 * of scratch. */
double rfi_krum_score(const reef_points *points, const bool *in, ptrdiff_t i, ptrdiff_t neighbours);

extern const char *const rfi_krum_dialects[];

/* n >= 2 f + 3 in the paper, a minority in ByzFL. One or two rows are accepted if f = 0. */
ptrdiff_t rfi_krum_bound(int dialect, ptrdiff_t n);

#endif
