/* What ranks exchange while each drives its own plan for all rows over its slice of the coordinates (driver.h). Slices are
 * whole slots of the canonical tree (num/treesum.h): a slot's sum comes from one rank, and the result does not depend on which. */
#ifndef RFI_AGG_ACROSS_H
#define RFI_AGG_ACROSS_H

#include "agg/driver.h"

/* Before a pass: slots of other ranks are 0. */
void rfi_across_clear_sums(reef_plan *plan);
/* After it: the sums of all. `mine` is this rank's status; the result is that of all. */
reef_status rfi_across_sums(const rfi_across *across, reef_plan *plan, reef_status mine, reef_error *error);

/* Before combining: trust of other slots is 0, and only one rank reports what all have solved. */
void rfi_across_clear_trust(const rfi_across *across, reef_plan *plan);

/* Whether any rank has met a suspect; if none has, the status of all. */
reef_status rfi_across_agree(const rfi_across *across, reef_plan *plan, reef_status mine, reef_error *error);
/* Which rows hold NaN or Inf, on whatever rank. */
reef_status rfi_across_suspects(const rfi_across *across, reef_plan *plan, reef_status mine, reef_error *error);
/* The report's counters and trust, of all. */
reef_status rfi_across_report(const rfi_across *across, reef_plan *plan, reef_error *error);

#endif
