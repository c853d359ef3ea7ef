/* Driving a plan: one aggregation of rows that may be anywhere.
 *
 *   reef_plan_begin -> whatever the caller checks then -> rfi_drive_run: passes of observe and solve, combine, end
 *
 * The rest of the library sees plans and aggregators through this file and the public header; the other headers of src/agg are its own.
 * Callers are agg/apply.c (rows in memory), ffi/widen.c (numbers of several types, widened as they come), merge/floats.c (files) and
 * learn/shard.c (slices of the coordinates on several ranks). */
#ifndef RFI_AGG_DRIVER_H
#define RFI_AGG_DRIVER_H

#include "base/registry.h"
#include "base/walk.h"
#include "io/array.h"

#include <reef/agg.h>

/* How ranks that have one slice each of the coordinates of a single segment exchange their sums. Collective calls. */
typedef struct rfi_across {
    void *user;
    ptrdiff_t rank, ranks;
    ptrdiff_t m0, m1; /* this rank's slice: it starts and ends at multiples of rfi_plan_unit, or with the segment */
    /* Bytes that one rank knows and all others have as 0 become known to all: bitwise or. */
    reef_status (*merge)(void *user, void *bytes, size_t count, reef_error *error);
    /* The status of the lowest rank that has failed, on all ranks. */
    reef_status (*agree)(void *user, reef_status mine, reef_error *error);
    int64_t *room; /* rfi_across_room bytes */
} rfi_across;

/* Bytes that an aggregation of so many rows exchanges with other ranks. */
size_t rfi_across_room(ptrdiff_t rows, ptrdiff_t ranks, bool report);

typedef struct rfi_drive {
    reef_plan *plan;
    void *user;
    /* The source: lets rows[l] point to coordinate at->m0 of every row in use, as far as at->m1, until the worker's next call. Called
     * from several threads at once, with one worker number each. */
    reef_status (*read)(void *user, const rfi_stretch *at, const void **rows, reef_error *error);
    /* The type of a stretch's rows, told after reading it: the plan's, or one that rfi_plan_reads. NULL: the plan's. */
    rfi_type (*type)(void *user, const rfi_stretch *at);
    /* Announces which stretch will be read next, in several calls; NULL: not needed. */
    void (*expect)(void *user, const rfi_stretch *part);
    /* The sink: where the results of a stretch are to be put, in the plan's type; */
    void *(*place)(void *user, const rfi_stretch *at);
    /* and what is done with them there, before the worker's next call. NULL: nothing. A stretch may be written again. */
    reef_status (*write)(void *user, const rfi_stretch *at, reef_error *error);
    ptrdiff_t workers; /* at most so many, each with buffers of its own; 0: all of the plan's */
    ptrdiff_t
        step; /* coordinates of a stretch at most: rfi_plan_step or more, or no segment is longer. 0: as it comes */
    const bool *without; /* K: rows known to hold NaN or Inf, left out from the start; NULL: none */
    /* NULL: rows found to hold NaN or Inf are searched for, and all is done again without them. Otherwise this is where to say that
     * there are such rows: the result is void then, and so is the status. */
    bool *suspect;
    const rfi_across *across; /* NULL: all coordinates are here */
} rfi_drive;

/* From an aggregation that was just begun to its end. */
reef_status rfi_drive_run(const rfi_drive *drive, reef_error *error);

/* ---- what others may know ---- */

/* Rules and pre-aggregators. */
extern const rfi_family rfi_family_rule;

reef_context *rfi_agg_context(const reef_agg *agg);
/* True if rows with NaN or Inf make an aggregation fail (nan=error). */
bool rfi_agg_refuses_nan(const reef_agg *agg);
/* Rows left out of the last aggregation because they held NaN or Inf. */
ptrdiff_t rfi_plan_dropped(const reef_plan *plan);
/* True if a row takes part in the aggregation under way. */
bool rfi_plan_uses(const reef_plan *plan, ptrdiff_t row);
/* True if rows of that type may be handed over as they are: the plan's own, or one of 16 bits that is widened as it is read. The result
 * has the plan's type, and is what widened rows would give. */
bool rfi_plan_reads(const reef_plan *plan, rfi_type type);
/* read[l]: the next pass over a segment depends on row l; K flags. A rule that has given whole rows their shares combines the rows that have one: for
 * another the source may let rows[l] point to the numbers of any row that it reads. At least one flag is true. */
void rfi_plan_rows_read(const reef_plan *plan, ptrdiff_t segment, bool *read);
/* Coordinates at whose multiples ranks may cut a segment. */
ptrdiff_t rfi_plan_unit(const reef_plan *plan, bool report);
/* Coordinates that there must be room for at once: a tile where something is observed, and the rule's block. */
ptrdiff_t rfi_plan_room(const reef_plan *plan);
/* Least number of coordinates that may be a step of rfi_drive: where every coordinate stands for itself, so few that the numbers of some dozen
 * rows stay in the first cache; else rfi_plan_room. */
ptrdiff_t rfi_plan_step(const reef_plan *plan, bool report);
/* True if the shares of every coordinate are to be kept. */
bool rfi_report_wants_shares(const reef_report *report);
/* The Gram matrix that the last aggregation was decided by, for plans of a rule that weighs whole rows and has no pre-aggregators: K x K,
 * around the coordinatewise median. Rows left out are NaN; the diagonal is infinite where a squared distance overflows. */
void rfi_plan_gram(const reef_plan *plan, double *gram);
size_t rfi_dtype_size(reef_dtype dtype);
/* The seed of a state that remembers senders but has heard nobody yet; NULL for others. Ranks must have the same one. */
uint64_t *rfi_state_first_seed(reef_state *state);

#endif
