/* Sums of vectors along the canonical binary tree over their index.
 *
 * Coordinates are summed in tiles of RFI_TILE by absolute index; tile sums are then added pairwise,
 * (0+1)+(2+3) and so on, a missing right neighbour counting as absent. The shape of that tree depends on the number of
 * tiles alone, so any split into aligned groups of 2^j tiles (slots), on any thread or rank, gives the same bits.
 */
#ifndef RFI_NUM_TREESUM_H
#define RFI_NUM_TREESUM_H

#include <stddef.h>

#define RFI_TILE 4096

/* Sum of up to 2^levels leaves pushed in index order. Memory: (levels + 2) x length doubles, by the caller. */
typedef struct rfi_treesum {
    ptrdiff_t length;
    double *memory;
    unsigned long filled; /* bit j: a finished subtree of 2^j leaves waits at level j */
} rfi_treesum;

/* Doubles a tree of up to 2^levels leaves of that length needs. */
ptrdiff_t rfi_treesum_rows(int levels);
void rfi_treesum_start(rfi_treesum *sum);
/* The current leaf, zeroed, to accumulate into; push adds it to the tree. */
double *rfi_treesum_leaf(rfi_treesum *sum);
void rfi_treesum_push(rfi_treesum *sum);
/* Sum of everything pushed (zeros if nothing was). */
void rfi_treesum_finish(rfi_treesum *sum, double *out);

/* The upper part of the same tree: slots[0] becomes the sum of `count` vectors; the others are overwritten. */
void rfi_treesum_slots(double *slots, ptrdiff_t count, ptrdiff_t length);

#endif
