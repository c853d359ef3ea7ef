/* Internals of partitions: what a kind gets and what it does. A kind only says who owns each sample; the rest is common. */
#ifndef RFI_PROBLEM_SPREAD_H
#define RFI_PROBLEM_SPREAD_H

#include "num/rng.h"
#include "problem/partition.h"

typedef struct rfi_spread {
    rfi_partition_input in; /* classes >= 1 here; labels may be NULL only if the kind needs none */
    rfi_rng rng;
    int32_t *owner; /* N: the result, an agent for each sample */

    /* Room to work in. */
    ptrdiff_t *order;       /* N */
    ptrdiff_t *sorted;      /* N */
    ptrdiff_t *class_start; /* classes + 1 */
    ptrdiff_t *pick;        /* classes */
    ptrdiff_t *who;         /* K */
    ptrdiff_t *size;        /* K */
    double *share;          /* K */
} rfi_spread;

typedef struct rfi_partition_kind {
    reef_kind kind;
    bool needs_labels;
    /* Fills owner; an agent may still be left without a sample, which is repaired afterwards. */
    reef_status (*assign)(const void *params, rfi_spread *s, reef_error *error);
} rfi_partition_kind;

#define RFI_PARTITION(name) extern const rfi_partition_kind rfi_partition_##name;
#include "problem/partition_list.h"
#undef RFI_PARTITION

/* Position i of n spread evenly over `parts`: floor(i parts / n). n < 2^32, parts < 2^31. */
ptrdiff_t rfi_even_part(ptrdiff_t i, ptrdiff_t n, ptrdiff_t parts);
/* Sorts order[from..N-1] by label into sorted[from..N-1], equal labels in the order they have; class c is then at
 * sorted[class_start[c]] .. sorted[class_start[c + 1] - 1]. */
void rfi_sort_by_class(rfi_spread *s, ptrdiff_t from);
/* size[k] = samples of agent k; returns the smallest. */
ptrdiff_t rfi_count_sizes(rfi_spread *s);
/* Moves samples, chosen at random, from the largest agents to those with fewer than `least` samples until there are none;
 * least * K <= N. The largest agents come down to one common level, no agent below it loses anything. */
void rfi_repair(rfi_spread *s, ptrdiff_t least);

#endif
