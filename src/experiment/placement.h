/* Who lies: random, worst or a list of agents, by spec. */
#ifndef RFI_EXPERIMENT_PLACEMENT_H
#define RFI_EXPERIMENT_PLACEMENT_H

#include <reef/graph.h>

/* liar receives K flags, *placed how many are set. Without a graph (NULL) all agents are alike to one another. */
reef_status rfi_place_liars(const reef_context *context, const reef_graph *graph, ptrdiff_t agents, const char *spec,
                            reef_liars liars, uint64_t seed, bool *liar, ptrdiff_t *placed, reef_error *error);

ptrdiff_t rfi_placement_count(void);
const reef_kind *rfi_placement_at(ptrdiff_t index);

#endif
