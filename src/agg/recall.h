/* Memory per sender: what a rule keeps about every sender, and how it looks at the rows of an aggregation.
 *
 *   n rows x_l of the senders l      m0      coordinatewise median of the rows
 *   d_l = x_l - m0 (residual), or a sketch of it: D numbers        r_l = ||d_l||
 *
 * Observing sums r_l^2 and the sketches tile by tile along the canonical tree; with full memory (D = M) the residuals
 * themselves are kept. The sketch is linear and seeded: 64 neighbouring coordinates go to 64 different places (to 16 or 32
 * of them in turn, if it is shorter), turned by a random number of places per 64, each with a random sign. Lengths are preserved
 * within about sqrt(2/D).
 * Solving reads the memory and leaves it alone; the end of an aggregation commits. Files: recall.c (plan's side), sketch.c,
 * senders.c (the memory itself), senders_bytes.c and state.c (its bytes). What to do with it is up to the rule (reef/rule.h). */
#ifndef RFI_AGG_RECALL_H
#define RFI_AGG_RECALL_H

#include "agg/senders.h"

/* An aggregation under way. */
typedef struct rfi_recall {
    reef_recall seen;        /* what the rule sees of it */
    reef_memory_sizes sizes; /* as the rule has them */
    bool full;               /* D = M */
    ptrdiff_t numbers;       /* D */
    bool sketches;           /* by the kernel for sketches of 64 numbers */
    ptrdiff_t chunk;         /* coordinates observed at a time */
    uint64_t key;            /* of the sketch */
    double *residual;        /* K x D: d_l */
    double *norm;            /* K */
    rfi_sender *who;         /* K: the senders present, as they were remembered */
    int64_t *ids, *heard;    /* K */
    ptrdiff_t *place;        /* K: the sender's place in the memory, -1: it is new, or starts afresh */
    ptrdiff_t *spare;        /* K: to work with */
    rfi_id_table table;      /* of `who` */
    double number[REEF_NUMBERS_MAX];
} rfi_recall;

/* ---- sketch.c ---- */

/* to[row * D ..] += sketch of `count` centred coordinates of n rows; `at`: absolute number of the first, a multiple of 64. */
void rfi_sketch_add(uint64_t key, ptrdiff_t numbers, const double *centred, ptrdiff_t stride, ptrdiff_t n, int64_t at,
                    ptrdiff_t count, double *to);
/* Signs and turns of the groups from coordinate `at` on, for the kernel that makes sketches of 64 numbers. */
void rfi_sketch_turns(uint64_t key, int64_t at, ptrdiff_t count, bool single, void *sign, unsigned char *shift);
/* sum[row] += squared length of these coordinates. */
void rfi_squares_add(const double *centred, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t count, double *sum);

#endif
