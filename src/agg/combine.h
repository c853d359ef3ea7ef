/* Combining one range: what its files share. combine.c goes over ranges, blocks and spans, combine_column.c is the scalar code, one coordinate at a
 * time, combine_sum.c the sum of rows by their shares. */
#ifndef RFI_AGG_COMBINE_H
#define RFI_AGG_COMBINE_H

#include "agg/plan.h"

/* What combine works on: one range of one segment. */
typedef struct rfi_combining {
    reef_plan *plan;
    rfi_worker *worker;
    rfi_space space; /* the rule's: mixed rows, origin and centre as it asked */
    ptrdiff_t segment, m0;
    const void *const *rows;
    void *out;
    const double *share; /* solved shares in force, NULL for purely elementwise rules */
    double floor;        /* least scale in force */
    double tuned;        /* the rule's constant for columns without holes */
    bool silent;         /* out is written already; only the report is wanted */
    reef_error *error;
} rfi_combining;

/* Where the result of a coordinate goes. */
static inline void *rfi_combining_out(const rfi_combining *j, ptrdiff_t m)
{
    return (char *)j->out + (m - j->m0) * (ptrdiff_t)rfi_dtype_size(j->plan->dtype);
}

/* combine_column.c: coordinates by the scalar rules, and their report. */
reef_status rfi_combine_columns(const rfi_combining *j, ptrdiff_t from, ptrdiff_t to);
/* The scale floor of a tile, relative to its typical (median positive) scale, in j->floor. */
void rfi_combine_floor(rfi_combining *j, ptrdiff_t from, ptrdiff_t to);
/* worker->share on the rule's points -> raw_share on raw rows and, last, on the centre where there is one that is not 0, else on the
 * origin. Where both exist the origin's share goes unsaid: it adds nothing. */
void rfi_combine_trace(const rfi_combining *j);

/* combine_sum.c: whether the rule's centre is the coordinatewise median of the rows here. */
bool rfi_combine_at_median(const rfi_combining *j);
/* A rule of one share per row, by kernels: the number of hard coordinates, or -1. *reported: trust is wanted; it is given. */
ptrdiff_t rfi_combine_sum(const rfi_combining *j, ptrdiff_t from, ptrdiff_t to, const bool *reported);

#endif
