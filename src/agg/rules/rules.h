/* Declarations of the built-in rules, made from rule_list.h, and what several of them share. */
#ifndef RFI_AGG_RULES_RULES_H
#define RFI_AGG_RULES_RULES_H

#include "base/fields.h"
#include "num/order.h"

#include <reef/rule.h>

#define REEF_AGG(name) extern const reef_rule rfi_agg_##name;
#include "agg/rules/rule_list.h"
#undef REEF_AGG

/* The usual field for the number of malicious rows. */
#define RFI_FIELD_F(params, preset_)                                                                                   \
    {                                                                                                                  \
        .name = "f", .type = REEF_FIELD_MALICIOUS, .offset = offsetof(params, f), .preset = (preset_),                 \
        .unit = "agents",                                                                                              \
        .help =                                                                                                        \
            "malicious inputs to tolerate: a count, a fraction of the agents, or max (the most the rule tolerates)"    \
    }

/* A strict minority: f <= (n - 1) / 2. */
ptrdiff_t rfi_bound_minority(const void *params, ptrdiff_t n);
#define RFI_BOUND_MINORITY_TEXT "n >= 2 f + 1"

unsigned rfi_needs_gram(const void *params);

/* share_l = a_l on the kept rows (keep[l] true), normalised; 0 elsewhere, on points beyond the rows too. */
void rfi_share_kept(const reef_points *points, const bool *keep, double *share);

/* value = sum share x over n values, the shares scaled to sum 1 first. */
double rfi_normalise_sum(const double *x, double *share, ptrdiff_t n);

/* share_l = a_l for the values of rank first..last-1 in `order` (count indices that sort key), 0 for the others. Values that tie across a
 * border are kept in part, all of them alike, so that neither result nor trust depends on the order of the rows. */
void rfi_share_ranks(const reef_column *column, const double *key, const ptrdiff_t *order, ptrdiff_t count,
                     ptrdiff_t first, ptrdiff_t last, double *share);

/* Mean by weights of the `kept` values nearest to `middle` (ties as above); fills in share. */
double rfi_mean_nearest(const reef_column *column, double middle, ptrdiff_t kept, double *share);

/* Median of a column, by count or by weight mass; share (unless NULL) receives who made it. */
double rfi_column_median(const reef_column *column, bool by_weight, rfi_median_kind kind, double *share);

/* Midpoint of two values of the column, and shares of the rows that hold them. */
double rfi_share_middle(const reef_column *column, double lower, double upper, double *share);

/* Squared distances of all rows, n x n, from their Gram matrix: those of reef_points_distance2. */
void rfi_points_apart(const reef_points *points, double *distance);

/* Row l of a mixing matrix: x_l moved towards the origin, factor x_l + (1 - factor) 0. */
void rfi_shorten(const reef_points *points, ptrdiff_t l, double factor, double *matrix);

#endif
